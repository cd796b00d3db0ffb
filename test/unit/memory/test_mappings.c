// SPDX-License-Identifier: GPL-2.0-only
/* The mappings of a restored task: new offsets, and descriptors for CRIU. Regular files stand for
 * device files. */
#include "host.h"

#include <sys/mman.h>

#include "kernel/kfd.h"
#include "memory/gpu_files.h"
#include "memory/mappings.h"

#define KFD     "/dev/kfd"
#define RENDER0 "/dev/dri/renderD128"
#define RENDER1 "/dev/dri/renderD129"

#define LOWEST 200

static struct gpu_files files, no_files;
static struct mappings table;
/* What mappings_update() returned for the last mapping. */
static uint64_t offset;
static int fd;

/* mmap offsets of /dev/kfd, see kernel/kfd.h. */
#define DOORBELL(id) (3ULL << 62 | (uint64_t)(id) << 46)
#define EVENTS       (2ULL << 62)
#define MMIO(id)     ((uint64_t)(id) << 46)

static void add_file(const char *name, uint32_t minor)
{
	int file = open(unit_path("%s", name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(fd_move_up(&file, LOWEST), 0);
	assert_int_equal(gpu_files_add(&files, minor, file), 0);
}

static void add_bo(uint32_t minor, uint64_t addr, uint64_t size, uint64_t old_offset,
		   uint64_t new_offset)
{
	const struct mapped_bo bo = { minor, addr, size, old_offset, new_offset };

	assert_int_equal(mappings_add_bo(&table, &bo), 0);
}

static void add_gpu(uint32_t old_id, uint32_t user_id, uint32_t new_id)
{
	const struct mapped_gpu gpu = { old_id, user_id, new_id };

	assert_int_equal(mappings_add_gpu(&table, &gpu), 0);
}

/* Two GPUs with BOs at the same offset, as each device has its own offsets, and /dev/kfd. */
static void make_table(int64_t num_mappings)
{
	table = (struct mappings){ .files = &files, .num_pending = num_mappings };
	add_file("render0", 128);
	add_file("render1", 129);
	add_file("kfd", 0);
	add_bo(128, 0x10000000, 0x200000, 0x100000000, 0x500000000);
	add_bo(129, 0x20000000, 0x200000, 0x100000000, 0x600000000);
	add_bo(128, 0x30000000, 0x1000, 0x100200000, 0x700000000);
	add_bo(0, 0x40000000, 0x2000, DOORBELL(0x1111), DOORBELL(0xaaaa));
	add_bo(0, 0x50000000, 0x1000, MMIO(0x1111), MMIO(0xaaaa));
	add_gpu(0x1111, 0x9999, 0xaaaa);
	add_gpu(0x2222, 0x2222, 0xbbbb);
}

static int update(const char *path, uint64_t addr, uint64_t old_offset)
{
	offset = 42;
	fd = 43;
	return mappings_update(&table, path, addr, old_offset, &offset, &fd);
}

static void free_table(void)
{
	mappings_done(&table);
	gpu_files_close(&files, -1);
}

static int begin(void **state)
{
	int ret = unit_begin(state);

	if (!ret)
		make_table(-1);
	return ret;
}

static int end(void **state)
{
	free_table();
	return unit_end(state);
}

#define TEST(name) TEST_WITH(name, begin, end)

static bool is_file(int open_fd, const char *name)
{
	struct stat a, b;

	assert_int_equal(stat(unit_path("%s", name), &a), 0);
	return fstat(open_fd, &b) == 0 && a.st_ino == b.st_ino;
}

TEST(each_mapping_moves_to_its_offset_and_file)
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
		/* Mappings without a BO. The event page names no GPU. */
		{ KFD, 0x60000000, EVENTS, EVENTS, "kfd" },
		{ KFD, 0x61000000, DOORBELL(0x2222), DOORBELL(0xbbbb), "kfd" },
		{ KFD, 0x62000000, MMIO(0x2222), MMIO(0xbbbb), "kfd" },
		/* A kernel that maps by the id that the process knows, with and without a BO. */
		{ KFD, 0x40000000, DOORBELL(0x9999), DOORBELL(0xaaaa), "kfd" },
		{ KFD, 0x61000000, DOORBELL(0x9999), DOORBELL(0xaaaa), "kfd" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* CRIU has one string for each open file, so each case has its own. */
		char *path = strdup(cases[i].path);

		print_message("case %zu\n", i);
		assert_int_equal(update(path, cases[i].addr, cases[i].old_offset), 0);
		assert_true(offset == cases[i].new_offset);
		assert_true(is_file(fd, cases[i].file));
		assert_true(fd > LOWEST);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		(void)close(fd);
		/* strdup() may return the same address again. */
		table.run.path = NULL;
		free(path);
	}
}

/* BOs of two GPUs, with the same offset. */
TEST(a_doorbell_is_found_by_address_first)
{
	add_bo(0, 0x1000, 0x2000, DOORBELL(5), DOORBELL(6));
	add_bo(0, 0x9000, 0x2000, DOORBELL(5), DOORBELL(7));
	assert_int_equal(update(KFD, 0x9000, DOORBELL(5)), 0);
	assert_true(offset == DOORBELL(7));
	(void)close(fd);
}

/* In a container, two render nodes may have each other's names. The node that CRIU names has
 * another BO at this offset. */
TEST(a_bo_is_found_by_address_under_a_wrong_node_name)
{
	assert_int_equal(update(RENDER0, 0x20000000, 0x100000000), 0);
	assert_true(offset == 0x600000000);
	assert_true(is_file(fd, "render1"));
	(void)close(fd);
}

TEST(mappings_of_other_devices_are_not_supported)
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
	struct mappings empty = { .files = &no_files, .num_pending = -1 };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		print_message("case \"%s\"\n", paths[i]);
		assert_int_equal(update(paths[i], 0, 0), -ENOTSUP);
		assert_int_equal(mappings_update(&empty, RENDER0, 0, 0, &offset, &fd), -ENOTSUP);
		assert_int_equal(mappings_update(&empty, KFD, 0, 0, &offset, &fd), -ENOTSUP);
		assert_int_equal(offset, 42);
		assert_int_equal(fd, 43);
	}
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	mappings_done(&empty);
}

TEST(mappings_that_cannot_be_restored_are_refused)
{
	static const struct {
		const char *path;
		uint64_t addr;
		uint64_t offset;
		const char *words;
	} cases[] = {
		/* Begins inside the BO, as after munmap() of its first page. */
		{ RENDER0, 0x10001000, 0x100001000, "inside" },
		{ RENDER1, 0x201ff000, 0x1001ff000, "inside" },
		/* No BO has this offset. */
		{ RENDER0, 0x10000000, 0x100201000, "no BO" },
		{ RENDER0, 0x10000000, 0xfffff000, "no BO" },
		/* A BO of the other GPU, and not at its address. */
		{ RENDER1, 0x31000000, 0x100200000, "no BO" },
		/* A GPU that the image does not have. */
		{ KFD, 0x61000000, DOORBELL(0x3333), "no BO" },
		{ KFD, 0x61000000, MMIO(0x3333), "no BO" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char address[32];

		print_message("case %zu\n", i);
		(void)snprintf(address, sizeof(address), "0x%llx",
			       (unsigned long long)cases[i].addr);
		unit_forget_lines();
		assert_int_equal(update(cases[i].path, cases[i].addr, cases[i].offset), -EINVAL);
		assert_logged("Error (amdgpu_plugin): ", address, cases[i].words);
		assert_int_equal(offset, 42);
		assert_int_equal(fd, 43);
	}
}

/* Does as CRIU does with mappings in order: it asks about each, but keeps only the first descriptor
 * of a run of one file. Versions differ in when they close the descriptor of a run. */
enum closing {
	CLOSES_ALL_AT_THE_END,
	CLOSES_AFTER_OPENING_THE_NEXT,
	CLOSES_BEFORE_OPENING_THE_NEXT,
	CLOSINGS,
};

struct loader {
	enum closing closing;
	const char *path;
	int fd;
	int fds[64];
	size_t num_fds;
	unsigned int maps;
};

static void begin_run(struct loader *loader, const char *path, int new_fd)
{
	if (loader->closing != CLOSES_ALL_AT_THE_END && loader->fd >= 0)
		(void)close(loader->fd);
	if (loader->closing == CLOSES_ALL_AT_THE_END && new_fd >= 0)
		loader->fds[loader->num_fds++] = new_fd;
	loader->path = path;
	loader->fd = new_fd;
}

static void end_run(struct loader *loader, const char *path)
{
	if (loader->closing == CLOSES_BEFORE_OPENING_THE_NEXT && loader->path != path)
		begin_run(loader, NULL, -1);
}

static void end_all(struct loader *loader)
{
	begin_run(loader, NULL, -1);
	for (size_t i = 0; i < loader->num_fds; i++)
		assert_int_equal(close(loader->fds[i]), 0);
}

static void map_device(struct loader *loader, const char *path, uint64_t addr, uint64_t old_offset,
		       const char *file)
{
	end_run(loader, path);
	assert_int_equal(update(path, addr, old_offset), 0);
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

/* CRIU opens a read-only memfd twice, and closes the first descriptor. */
static void map_memfd(struct loader *loader, const char *path)
{
	int first, second;

	end_run(loader, path);
	first = open("/dev/null", O_RDWR | O_CLOEXEC);
	second = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)close(first);
	begin_run(loader, path, second);
}

/* CRIU's restorer closes the memfd of an anonymous shared mapping. */
static void map_shared_memory(struct loader *loader)
{
	int memory = memfd_create("", 0);

	assert_true(memory >= 0);
	loader->fds[loader->num_fds++] = memory;
}

/* One letter for each mapping: 0 and 1 are GPUs, k is /dev/kfd, f and g are files that CRIU opens,
 * m is a memfd, s is anonymous shared memory. */
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
		else if (*at == 's')
			map_shared_memory(loader);
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

TEST(runs_of_any_order_leave_nothing_open)
{
	static const char *const sequences[] = {
		"0",           "00",
		"0000k",       "0101",
		"k0k0",        "f0f",
		"ff00ff00",    "0f0",
		"00f00g00",    "0f1f0",
		"k00011kkff0", "fgf0gf",
		"0k1f0k1f",    "000fg000",
		"0m0",         "00m00f0m1m1",
		"0s0",         "s0s00ss0s1s1s",
		"0sf0ssm0",    "0ssssssssssssss0s0ssssssssssssss00",
	};

	for (size_t i = 0; i < CLOSINGS * ARRAY_SIZE(sequences); i++) {
		const char *sequence = sequences[i / CLOSINGS];
		struct loader loader = { .fd = -1, .closing = i % CLOSINGS };

		print_message("case %s, closing %zu\n", sequence, i % CLOSINGS);
		free_table();
		make_table(count_devices(sequence));
		map_all(&loader, sequence);
		assert_int_equal(loader.maps, count_devices(sequence));
		/* No hook runs after the last mapping, so no file may be open. */
		assert_int_equal(files.count, 0);
		for (int number = LOWEST; number < LOWEST + 50; number++)
			assert_int_equal(fcntl(number, F_GETFD), -1);
	}
}

TEST(a_file_that_criu_opens_ends_the_run)
{
	static const char path[] = RENDER0;
	int own;

	assert_int_equal(update(path, 0x10000000, 0x100000000), 0);
	own = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)close(fd);
	assert_int_equal(update(path, 0x30000000, 0x100200000), 0);
	assert_true(is_file(fd, "render0"));
	(void)close(own);
	(void)close(fd);
}

/* CRIU has one string for each open file, also for two opens of one render node. */
TEST(another_string_with_the_same_name_ends_the_run)
{
	static const char path[] = RENDER0, other_string[] = "" RENDER0 "\0other";
	int first;

	assert_int_equal(update(path, 0x10000000, 0x100000000), 0);
	first = fd;
	assert_int_equal(update(other_string, 0x30000000, 0x100200000), 0);
	assert_int_not_equal(first, fd);
	(void)close(first);
	assert_true(is_file(fd, "render0"));
	(void)close(fd);
}

TEST(images_without_a_count_keep_the_files)
{
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(update(RENDER0, 0x10000000, 0x100000000), 0);
	assert_true(is_file(gpu_files_find(&files, 128), "render0"));
	(void)close(fd);
}

TEST(refused_mappings_are_not_counted)
{
	table.num_pending = 1;
	assert_int_equal(update(RENDER0, 0x1, 0x2), -EINVAL);
	assert_int_equal(update("/dev/zero", 0x1, 0x2), -ENOTSUP);
	assert_true(gpu_files_find(&files, 128) >= 0);
}

TEST(mappings_done_accepts_empty_and_done_tables)
{
	struct mappings empty = { 0 };

	free_table();
	free_table();
	mappings_done(&empty);
	assert_int_equal(gpu_files_find(&files, 128), -1);
}
