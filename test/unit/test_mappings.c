// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of a restored task: their new offsets, and the descriptors that CRIU is given for them.
 * Files are stand-ins, told apart by what they are opened on. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kfd_criu.h"
#include "restore/mappings.h"

#define KFD     "/dev/kfd"
#define RENDER0 "/dev/dri/renderD128"
#define RENDER1 "/dev/dri/renderD129"

#define LOWEST 200

/* mmap offsets of /dev/kfd, as the kernel contract has them. */
#define DOORBELL(id) (3ULL << 62 | (uint64_t)(id) << 46)
#define EVENTS       (2ULL << 62)
#define MMIO(id)     ((uint64_t)(id) << 46)

static void add_file(struct mappings *table, const char *name, uint32_t minor)
{
	int fd = open(unit_path("%s", name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(fd_move_up(&fd, LOWEST), 0);
	assert_int_equal(mappings_add_file(table, minor, fd), 0);
}

static void add_bo(struct mappings *table, uint32_t minor, uint64_t addr, uint64_t size,
		   uint64_t old_offset, uint64_t new_offset)
{
	const struct vma_bo bo = { minor, addr, size, old_offset, new_offset };

	assert_int_equal(mappings_add_bo(table, &bo), 0);
}

/* Two GPUs with BOs at the same fake offset, which is each device's own, and /dev/kfd. */
static struct mappings make_table(int64_t num_mappings)
{
	struct mappings table = { .num_left = num_mappings };

	add_file(&table, "render0", 128);
	add_file(&table, "render1", 129);
	add_file(&table, "kfd", 0);
	add_bo(&table, 128, 0x10000000, 0x200000, 0x100000000, 0x500000000);
	add_bo(&table, 129, 0x20000000, 0x200000, 0x100000000, 0x600000000);
	add_bo(&table, 128, 0x30000000, 0x1000, 0x100200000, 0x700000000);
	add_bo(&table, 0, 0x40000000, 0x2000, DOORBELL(0x1111), DOORBELL(0xaaaa));
	add_bo(&table, 0, 0x50000000, 0x1000, MMIO(0x1111), MMIO(0xaaaa));
	assert_int_equal(mappings_add_gpu(&table, 0x1111, 0xaaaa), 0);
	assert_int_equal(mappings_add_gpu(&table, 0x2222, 0xbbbb), 0);
	return table;
}

static bool is_file(int fd, const char *name)
{
	struct stat a, b;

	assert_int_equal(stat(unit_path("%s", name), &a), 0);
	return fstat(fd, &b) == 0 && a.st_ino == b.st_ino;
}

static void each_mapping_moves_to_its_offset_and_file(void **state)
{
	static const struct {
		const char *path;
		uint64_t addr;
		uint64_t old_offset;
		uint64_t new_offset;
		const char *file;
	} cases[] = {
		{ RENDER0, 0x10000000, 0x100000000, 0x500000000, "render0" },
		/* The same offset, but of the other GPU. */
		{ RENDER1, 0x20000000, 0x100000000, 0x600000000, "render1" },
		{ RENDER0, 0x30000000, 0x100200000, 0x700000000, "render0" },
		/* A second mapping of a BO, elsewhere than on the GPU. */
		{ RENDER0, 0x77770000, 0x100000000, 0x500000000, "render0" },
		{ KFD, 0x40000000, DOORBELL(0x1111), DOORBELL(0xaaaa), "kfd" },
		{ KFD, 0x50000000, MMIO(0x1111), MMIO(0xaaaa), "kfd" },
		/* No BO: the page of events is the process's, the others name the GPU. */
		{ KFD, 0x60000000, EVENTS, EVENTS, "kfd" },
		{ KFD, 0x61000000, DOORBELL(0x2222), DOORBELL(0xbbbb), "kfd" },
		{ KFD, 0x62000000, MMIO(0x2222), MMIO(0xbbbb), "kfd" },
	};
	struct mappings table = make_table(-1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* CRIU's own string: one a file, so another one each time here. */
		char *path = strdup(cases[i].path);
		uint64_t offset = 42;
		int fd = -1;

		print_message("case %zu\n", i);
		assert_int_equal(mappings_update(&table, path, cases[i].addr, cases[i].old_offset,
						 &offset, &fd),
				 0);
		assert_true(offset == cases[i].new_offset);
		assert_true(is_file(fd, cases[i].file));
		assert_true(fd > LOWEST);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		(void)close(fd);
		/* The next string must not come to lie where this one was. */
		table.run_path = NULL;
		free(path);
	}
	mappings_done(&table);
}

/* A BO of each of two GPUs whose doorbells had the same number on two machines. */
static void a_doorbell_at_its_address_is_preferred(void **state)
{
	struct mappings table = { .num_left = -1 };
	uint64_t offset;
	int fd;

	(void)state;
	add_file(&table, "kfd", 0);
	add_bo(&table, 0, 0x1000, 0x2000, DOORBELL(5), DOORBELL(6));
	add_bo(&table, 0, 0x9000, 0x2000, DOORBELL(5), DOORBELL(7));
	assert_int_equal(mappings_update(&table, KFD, 0x9000, DOORBELL(5), &offset, &fd), 0);
	assert_true(offset == DOORBELL(7));
	(void)close(fd);
	mappings_done(&table);
}

/* A container whose render nodes had each other's names: the one that CRIU names has another BO at
 * this offset. */
static void a_bo_at_its_address_is_found_whatever_its_node_was_called(void **state)
{
	struct mappings table = make_table(-1);
	uint64_t offset;
	int fd;

	(void)state;
	assert_int_equal(mappings_update(&table, RENDER0, 0x20000000, 0x100000000, &offset, &fd),
			 0);
	assert_true(offset == 0x600000000);
	assert_true(is_file(fd, "render1"));
	(void)close(fd);
	mappings_done(&table);
}

static void what_is_no_device_of_ours_is_left_to_others(void **state)
{
	static const char *const paths[] = {
		"/dev/null",
		"/dev/dri/card0",
		"/dev/dri/renderD",
		"/dev/dri/renderD130",
		"/dev/dri/renderD128x",
		"/dev/shm/x",
		"",
		"/dev/kfdx",
		"/SYSV00000000",
	};
	struct mappings table = make_table(-1), empty = { .num_left = -1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		uint64_t offset = 42;
		int fd = 43;

		print_message("case \"%s\"\n", paths[i]);
		assert_int_equal(mappings_update(&table, paths[i], 0, 0, &offset, &fd), -ENOTSUP);
		assert_int_equal(mappings_update(&empty, RENDER0, 0, 0, &offset, &fd), -ENOTSUP);
		assert_int_equal(mappings_update(&empty, KFD, 0, 0, &offset, &fd), -ENOTSUP);
		assert_int_equal(offset, 42);
		assert_int_equal(fd, 43);
	}
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	mappings_done(&table);
	mappings_done(&empty);
}

static void what_cannot_be_mapped_is_refused_by_address(void **state)
{
	static const struct {
		const char *path;
		uint64_t addr;
		uint64_t offset;
		const char *words;
	} cases[] = {
		/* Begins inside the BO: munmap() or mprotect() cut its head off. */
		{ RENDER0, 0x10001000, 0x100001000, "inside" },
		{ RENDER1, 0x201ff000, 0x1001ff000, "inside" },
		/* Offsets of no BO. */
		{ RENDER0, 0x10000000, 0x100201000, "no BO" },
		{ RENDER0, 0x10000000, 0xfffff000, "no BO" },
		/* The other GPU's, and not at its address. */
		{ RENDER1, 0x31000000, 0x100200000, "no BO" },
		/* A GPU that the image does not have. */
		{ KFD, 0x61000000, DOORBELL(0x3333), "no BO" },
		{ KFD, 0x61000000, MMIO(0x3333), "no BO" },
	};
	struct mappings table = make_table(-1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char address[32];
		uint64_t offset = 42;
		int fd = 43;

		print_message("case %zu\n", i);
		(void)snprintf(address, sizeof(address), "0x%llx",
			       (unsigned long long)cases[i].addr);
		unit_forget_lines();
		assert_int_equal(mappings_update(&table, cases[i].path, cases[i].addr,
						 cases[i].offset, &offset, &fd),
				 -EINVAL);
		assert_logged("Error (amdgpu_plugin): ", address, cases[i].words);
		assert_int_equal(offset, 42);
		assert_int_equal(fd, 43);
	}
	mappings_done(&table);
}

/* What a CRIU does with mappings in order: it asks for each, keeps the descriptor of the
 * first of a run of one file and forgets those given for the rest. When a run's
 * descriptor is closed differs. */
enum closing {
	CLOSES_ALL_AT_THE_END,
	CLOSES_AFTER_THE_NEXT_IS_HAD,
	CLOSES_BEFORE_THE_NEXT_IS_HAD,
	CLOSINGS,
};

struct loader {
	struct mappings *table;
	enum closing closing;
	const char *path;
	int fd;
	int fds[64];
	size_t num_fds;
	unsigned int maps;
};

static void begin_run(struct loader *loader, const char *path, int fd)
{
	if (loader->closing != CLOSES_ALL_AT_THE_END && loader->fd >= 0)
		(void)close(loader->fd);
	if (loader->closing == CLOSES_ALL_AT_THE_END && fd >= 0)
		loader->fds[loader->num_fds++] = fd;
	loader->path = path;
	loader->fd = fd;
}

static void end_run(struct loader *loader, const char *path)
{
	if (loader->closing == CLOSES_BEFORE_THE_NEXT_IS_HAD && loader->path != path)
		begin_run(loader, NULL, -1);
}

static void end_all(struct loader *loader)
{
	begin_run(loader, NULL, -1);
	for (size_t i = 0; i < loader->num_fds; i++)
		assert_int_equal(close(loader->fds[i]), 0);
}

static void map_device(struct loader *loader, const char *path, uint64_t addr, uint64_t offset,
		       const char *file)
{
	uint64_t new_offset;
	int fd = -1;

	end_run(loader, path);
	assert_int_equal(mappings_update(loader->table, path, addr, offset, &new_offset, &fd), 0);
	if (loader->path != path)
		begin_run(loader, path, fd);
	if (!is_file(loader->fd, file))
		fail_msg("mapping %u: descriptor %d is not open on %s", loader->maps, loader->fd,
			 file);
	loader->maps++;
}

static void map_file(struct loader *loader, const char *path)
{
	if (loader->path == path)
		return;
	end_run(loader, path);
	begin_run(loader, path, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/* Of a memfd that was only read CRIU keeps the second descriptor, and closes the first. */
static void map_memfd(struct loader *loader, const char *path)
{
	int first, second;

	end_run(loader, path);
	first = open("/dev/null", O_RDWR | O_CLOEXEC);
	second = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)close(first);
	begin_run(loader, path, second);
}

/* One letter a mapping: 0 and 1 the GPUs, k /dev/kfd, f and g files of CRIU's own, m a memfd. */
static void map_all(struct loader *loader, const char *sequence)
{
	static const char kfd[] = KFD, render0[] = RENDER0, render1[] = RENDER1;
	static const char file[] = "/usr/lib/a", other[] = "/usr/lib/b", memfd[] = "/memfd:c";

	for (const char *at = sequence; *at; at++) {
		if (*at == '0')
			map_device(loader, render0, 0x10000000, 0x100000000, "render0");
		else if (*at == '1')
			map_device(loader, render1, 0x20000000, 0x100000000, "render1");
		else if (*at == 'k')
			map_device(loader, kfd, 0x40000000, DOORBELL(0x1111), "kfd");
		else if (*at == 'm')
			map_memfd(loader, memfd);
		else
			map_file(loader, *at == 'f' ? file : other);
	}
	end_all(loader);
}

static unsigned int count_devices(const char *sequence)
{
	unsigned int count = 0;

	for (; *sequence; sequence++)
		count += *sequence == '0' || *sequence == '1' || *sequence == 'k';
	return count;
}

static void runs_of_any_order_leave_nothing_open(void **state)
{
	static const char *const sequences[] = {
		"0",        "00",       "0000k",    "0101",        "k0k0",        "f0f",
		"ff00ff00", "0f0",      "00f00g00", "0f1f0",       "k00011kkff0", "fgf0gf",
		"0k1f0k1f", "000fg000", "0m0",      "00m00f0m1m1",
	};

	(void)state;
	for (size_t i = 0; i < CLOSINGS * ARRAY_SIZE(sequences); i++) {
		const char *sequence = sequences[i / CLOSINGS];
		struct mappings table = make_table(count_devices(sequence));
		struct loader loader = { .table = &table, .fd = -1, .closing = i % CLOSINGS };

		print_message("case %s, closing %zu\n", sequence, i % CLOSINGS);
		map_all(&loader, sequence);
		assert_int_equal(loader.maps, count_devices(sequence));
		/* The task could run now: no hook comes after the last mapping. */
		assert_int_equal(table.num_files, 0);
		for (int fd = LOWEST; fd < LOWEST + 50; fd++)
			assert_int_equal(fcntl(fd, F_GETFD), -1);
		mappings_done(&table);
	}
}

static void a_run_is_given_one_descriptor(void **state)
{
	static const char path[] = RENDER0, other[] = RENDER1;
	struct mappings table = make_table(-1);
	int first, again, third;
	uint64_t offset;

	(void)state;
	assert_int_equal(mappings_update(&table, path, 0x10000000, 0x100000000, &offset, &first),
			 0);
	assert_int_equal(mappings_update(&table, path, 0x30000000, 0x100200000, &offset, &again),
			 0);
	assert_int_equal(first, again);
	assert_true(offset == 0x700000000);
	assert_int_equal(mappings_update(&table, other, 0x20000000, 0x100000000, &offset, &third),
			 0);
	assert_int_not_equal(third, first);
	assert_true(is_file(third, "render1"));
	(void)close(first);
	(void)close(third);
	mappings_done(&table);
}

static void a_file_opened_in_between_ends_the_run(void **state)
{
	static const char path[] = RENDER0;
	struct mappings table = make_table(-1);
	int first, own, again;
	uint64_t offset;

	(void)state;
	assert_int_equal(mappings_update(&table, path, 0x10000000, 0x100000000, &offset, &first),
			 0);
	own = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)close(first);
	assert_int_equal(mappings_update(&table, path, 0x30000000, 0x100200000, &offset, &again),
			 0);
	assert_true(is_file(again, "render0"));
	(void)close(own);
	(void)close(again);
	mappings_done(&table);
}

/* Two opens of one render node have the same name, but each its own string in CRIU. */
static void another_string_with_the_same_name_ends_the_run(void **state)
{
	static const char path[] = RENDER0, twin[] = "" RENDER0 "\0twin";
	struct mappings table = make_table(-1);
	int first, again;
	uint64_t offset;

	(void)state;
	assert_int_equal(mappings_update(&table, path, 0x10000000, 0x100000000, &offset, &first),
			 0);
	assert_int_equal(mappings_update(&table, twin, 0x30000000, 0x100200000, &offset, &again),
			 0);
	assert_int_not_equal(first, again);
	(void)close(first);
	assert_true(is_file(again, "render0"));
	(void)close(again);
	mappings_done(&table);
}

/* It copies what it is given and closes the copy alone. */
static void a_host_that_copies_is_given_the_task_s_own_descriptor(void **state)
{
	static const char path[] = RENDER0, other[] = RENDER1;
	struct mappings table = make_table(3);
	uint64_t offset;
	int own, fd;

	(void)state;
	table.host_copies = true;
	own = fcntl(mappings_find_file(&table, 128), F_DUPFD_CLOEXEC, 0);
	assert_int_equal(mappings_update(&table, path, 0x10000000, 0x100000000, &offset, &fd), 0);
	assert_int_equal(fd, own);
	assert_int_equal(mappings_update(&table, path, 0x30000000, 0x100200000, &offset, &fd), 0);
	assert_int_equal(fd, own);
	/* The task has closed its descriptor of the other GPU. */
	assert_int_equal(mappings_update(&table, other, 0x20000000, 0x100000000, &offset, &fd), 0);
	assert_true(is_file(fd, "render1"));
	assert_int_equal(table.num_files, 0);
	(void)close(fd);
	assert_true(is_file(own, "render0"));
	(void)close(own);
	mappings_done(&table);
}

static void files_stay_while_mappings_are_to_come(void **state)
{
	static const char path[] = RENDER0;
	struct mappings table = make_table(2);
	uint64_t offset;
	int fd;

	(void)state;
	assert_int_equal(mappings_update(&table, path, 0x10000000, 0x100000000, &offset, &fd), 0);
	assert_true(mappings_find_file(&table, 128) >= LOWEST);
	assert_true(is_file(mappings_find_file(&table, 129), "render1"));
	assert_int_equal(mappings_update(&table, path, 0x10000000, 0x100000000, &offset, &fd), 0);
	assert_int_equal(mappings_find_file(&table, 128), -1);
	assert_int_equal(mappings_find_file(&table, 129), -1);
	assert_int_equal(mappings_find_file(&table, 0), -1);
	/* CRIU's stays CRIU's. */
	assert_true(is_file(fd, "render0"));
	(void)close(fd);
	mappings_done(&table);
}

static void images_without_a_count_keep_the_files(void **state)
{
	struct mappings table = make_table(-1);
	uint64_t offset;
	int fd;

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(
			mappings_update(&table, RENDER0, 0x10000000, 0x100000000, &offset, &fd), 0);
	assert_true(is_file(mappings_find_file(&table, 128), "render0"));
	(void)close(fd);
	mappings_done(&table);
}

static void refused_mappings_are_not_counted(void **state)
{
	struct mappings table = make_table(1);
	uint64_t offset;
	int fd;

	(void)state;
	assert_int_equal(mappings_update(&table, RENDER0, 0x1, 0x2, &offset, &fd), -EINVAL);
	assert_int_equal(mappings_update(&table, "/dev/zero", 0x1, 0x2, &offset, &fd), -ENOTSUP);
	assert_true(mappings_find_file(&table, 128) >= 0);
	mappings_done(&table);
}

static void a_table_can_be_done_with_twice_and_empty(void **state)
{
	struct mappings table = make_table(3), empty = { 0 };

	(void)state;
	mappings_done(&table);
	mappings_done(&table);
	mappings_done(&empty);
	assert_int_equal(mappings_find_file(&table, 128), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(each_mapping_moves_to_its_offset_and_file),
		UNIT_TEST(a_doorbell_at_its_address_is_preferred),
		UNIT_TEST(a_bo_at_its_address_is_found_whatever_its_node_was_called),
		UNIT_TEST(what_is_no_device_of_ours_is_left_to_others),
		UNIT_TEST(what_cannot_be_mapped_is_refused_by_address),
		UNIT_TEST(runs_of_any_order_leave_nothing_open),
		UNIT_TEST(a_run_is_given_one_descriptor),
		UNIT_TEST(a_file_opened_in_between_ends_the_run),
		UNIT_TEST(another_string_with_the_same_name_ends_the_run),
		UNIT_TEST(a_host_that_copies_is_given_the_task_s_own_descriptor),
		UNIT_TEST(files_stay_while_mappings_are_to_come),
		UNIT_TEST(images_without_a_count_keep_the_files),
		UNIT_TEST(refused_mappings_are_not_counted),
		UNIT_TEST(a_table_can_be_done_with_twice_and_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
