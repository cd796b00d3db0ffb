// SPDX-License-Identifier: GPL-2.0-only
/* Tests contents in files of tmpfs, which are written to huge pages, through mappings, or on few
 * processors by pwrite(). Huge pages are plain ones here, as the kernel may have none, and what a
 * way costs is what the test says. */
#include "drm_calls.h"

#include "content/image_io.h"
#include "content_set.h"
#include "processors.h"

#include <sys/mount.h>
#include <sys/syscall.h>

/* Not in the headers of older systems. */
#define POPULATE_WRITE 23
#define COLLAPSE       25

#define HUGE (2 * MIB)

static struct {
	atomic_uint populated;
	atomic_uint written;
	/* Mappings that have too few bytes for several ranges. */
	atomic_uint small;
	int populate_error;
	/* What huge and plain pages cost for each page of 2 MiB, in a unit of the test. */
	unsigned int huge_cost, plain_cost;
	/* From this number of huge pages on, each costs ten times as much. */
	unsigned int dear_from;
	atomic_uint huge, plain, refused;
	/* The kernel makes them. */
	bool is_real;
	/* Calls with which the kernel would make no huge page, or too late. */
	atomic_uint wrong_place, late;
	int huge_error;
	/* Each thread waits until so many make huge pages. */
	unsigned int threads_wanted;
	atomic_uint threads, most_threads;
	/* pwrite() takes a moment; threads in it now, and the most at once. */
	bool writes_take_long;
	atomic_uint writers;
	atomic_uint most_writers;
	/* Threads that fill mappings now, and the most at once. */
	atomic_uint fillers;
	atomic_uint most_fillers;
} calls;

/* The processor time of this thread. */
static _Thread_local unsigned long cost;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_THREAD_CPUTIME_ID)
		return (int)system_call(SYS_clock_gettime, clock, time);
	*time = (struct timespec){ .tv_sec = (time_t)cost };
	return 0;
}

struct mapping {
	uintptr_t begin, end;
	uint64_t offset;
};

/* The mapping of an image that contains @address; NULL: any one. */
static bool find_mapping(const void *address, struct mapping *ret_mapping)
{
	uintptr_t at = (uintptr_t)address;
	bool found = false;
	char line[512];
	_cleanup_fclose_ FILE *file = fopen("/proc/self/maps", "re");

	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file)) {
		struct mapping mapping;

		found = strstr(line, "/memfd:image ") &&
			sscanf(line, "%lx-%lx %*s %lx", &mapping.begin, &mapping.end,
			       &mapping.offset) == 3 &&
			(!address || (at >= mapping.begin && at < mapping.end));
		if (found)
			*ret_mapping = mapping;
	}
	return found;
}

/* So long that other threads come meanwhile. */
#define LONG_US 2000

static void note_most(atomic_uint *most, unsigned int now)
{
	if (now > *most)
		*most = now;
}

static void note_plain(size_t size)
{
	calls.plain += (unsigned int)(size / HUGE);
	cost += size / HUGE * calls.plain_cost;
}

/* Whether the kernel would make huge pages, and whether they are empty. */
static void check_place(const char *memory, size_t size)
{
	const uintptr_t at = (uintptr_t)memory;
	struct mapping mapping = { 0 };

	calls.wrong_place += !find_mapping(memory, &mapping) || at % HUGE || size % HUGE ||
			     (at - mapping.begin + mapping.offset) % HUGE ||
			     at + size > mapping.end;
	for (size_t page = 0; page < size; page += PAGE)
		calls.late += memory[page + PAGE / 2] != 0;
}

static void wait_for_threads(void)
{
	note_most(&calls.most_threads, ++calls.threads);
	while (calls.most_threads < calls.threads_wanted)
		(void)sched_yield();
	calls.threads--;
}

/* The next call of this thread maps what the last has made. */
static _Thread_local bool maps_huge;

static int make_huge(char *memory, size_t size)
{
	unsigned int before = calls.huge;

	calls.huge += (unsigned int)(size / HUGE);
	cost += size / HUGE * calls.huge_cost *
		(calls.dear_from && before >= calls.dear_from ? 10 : 1);
	wait_for_threads();
	errno = calls.huge_error;
	maps_huge = !errno && system_call(SYS_madvise, memory, size,
					  calls.is_real ? COLLAPSE : POPULATE_WRITE) == 0;
	if (maps_huge)
		check_place(memory, size);
	calls.refused += !maps_huge;
	return maps_huge ? 0 : -1;
}

int madvise(void *memory, size_t size, int advice)
{
	int ret;

	if (advice == COLLAPSE)
		return make_huge(memory, size);
	if (advice != POPULATE_WRITE || maps_huge) {
		maps_huge = false;
		return (int)system_call(SYS_madvise, memory, size, advice);
	}
	calls.populated++;
	note_plain(size);
	note_most(&calls.most_fillers, ++calls.fillers);
	if (calls.writes_take_long)
		(void)usleep(LONG_US);
	errno = calls.populate_error;
	ret = errno ? -1 : (int)system_call(SYS_madvise, memory, size, advice);
	calls.fillers--;
	return ret;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	ssize_t ret;

	note_most(&calls.most_writers, ++calls.writers);
	calls.written++;
	note_plain(size);
	if (calls.writes_take_long)
		(void)usleep(LONG_US);
	ret = system_call(SYS_pwrite64, fd, bytes, size, offset);
	calls.writers--;
	return ret;
}

static int begin(void **state)
{
	memset(&calls, 0, sizeof(calls));
	processors = 4;
	return drm_calls_begin(state);
}

static const struct content_settings large = {
	.staging_bytes = 48 * MIB, .copy_timeout_s = 7, .skip_zeros = true, .checksum = true
};

static const uint64_t many_ranges[] = { 5 * MIB, PAGE, 12 * MIB + PAGE, 3 * PAGE, 0 };

/* Saves a new set of BOs, and counts the calls of that only. */
static struct set *save_set(const uint64_t *sizes)
{
	struct set *set = make_set(sizes);

	fill(set);
	calls.written = calls.populated = 0;
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	return set;
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

/* With few processors, or with many images, the others have enough to do. An unknown number of
 * processors is a large one. */
TEST(many_processors_write_to_mappings)
{
	static const unsigned int counts[] = { 4, 3, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		_cleanup_set_ struct set *set = NULL;
		struct mapping mapping;

		print_message("case %u\n", counts[i]);
		processors = counts[i];
		set = save_set(many_ranges);
		assert_true(image_is_filled(set));
		if (counts[i] == 3) {
			assert_int_equal(calls.populated, 0);
			continue;
		}
		assert_true(calls.populated >= 16);
		assert_int_equal(calls.written, 0);
		/* No mapping stays. */
		assert_false(find_mapping(NULL, &mapping));
	}
}

/* More threads would only wait for the kernel's lock of the file. */
TEST(at_most_six_threads_fill_mappings)
{
	_cleanup_set_ struct set *set = make_set(many_ranges);
	struct content_settings more = settings;

	fill(set);
	more.staging_bytes = 8 * MIB;
	processors = 16;
	calls.writes_take_long = true;
	assert_int_equal(content_save(&set->job, 1, &more), 0);
	assert_in_range(calls.most_fillers, 2, 6);
	assert_true(image_is_filled(set));
}

/* Threads that wait for the kernel's lock of the file would use the processors. */
TEST(few_processors_write_one_at_a_time)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 3;
	calls.writes_take_long = true;
	set = save_set(many_ranges);
	assert_true(calls.written >= 64);
	assert_int_equal(calls.most_writers, 1);
}

/* The slots of a load with 8 MiB of staging memory, while @running GPUs of other runs are copied.
 */
static void load_beside(struct set *set, unsigned int running, const char *slots)
{
	struct content_settings more = settings;
	struct content_run *run;
	sem_t limit;

	more.staging_bytes = 8 * MIB;
	unit_forget_lines();
	assert_int_equal(sem_init(&limit, 0, CONTENT_GPUS_AT_ONCE - running), 0);
	assert_int_equal(content_start_load(&set->job, 1, &more, &limit, &run), 0);
	assert_int_equal(content_finish(run), 0);
	assert_logged("amdgpu_plugin: ", "GPU 0x0100", slots);
	assert_int_equal(sem_destroy(&limit), 0);
}

TEST(gpus_of_other_runs_share_the_processors)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 16;
	set = save_set(many_ranges);
	load_beside(set, 0, "16 slots of 512 KiB");
	load_beside(set, 7, "4 slots of 2048 KiB");
}

/* Eight ranges of 248 KiB. */
static const uint64_t eight_ranges[] = { 1984 << 10, 0 };

/* Saves two images at the same time with @count processors, and returns how many ranges were
 * mapped. */
static unsigned int save_two_images(unsigned int count)
{
	struct set *sets[] = { make_set_of_gpu(0, eight_ranges), make_set_of_gpu(1, eight_ranges) };
	struct content_job jobs[] = { sets[0]->job, sets[1]->job };

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		fill(sets[i]);
	processors = count;
	calls.populated = 0;
	assert_int_equal(content_save(jobs, ARRAY_SIZE(jobs), &settings), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		assert_true(image_is_filled(sets[i]));
		free_set(sets[i]);
	}
	return calls.populated;
}

TEST(images_share_the_processors)
{
	assert_int_equal(save_two_images(8), 16);
	assert_int_equal(save_two_images(7), 0);
}

TEST(a_file_that_cannot_be_mapped_is_written)
{
	static const int errors[] = { EINVAL, EFAULT, ENOMEM };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		_cleanup_set_ struct set *set = make_set(many_ranges);

		fill(set);
		calls.populated = 0;
		calls.populate_error = errors[i];
		assert_int_equal(content_save(&set->job, 1, &settings), 0);
		/* At most once in each thread. */
		assert_in_range(calls.populated, 1, 8);
		assert_true(image_is_filled(set));
	}
}

/* Mounts a tmpfs of @size bytes at the directory of the tests, for this process only. */
static void mount_tmpfs(const char *size)
{
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mkdir(unit_path("tmpfs"), 0700), 0);
	assert_int_equal(mount("tmpfs", unit_path("tmpfs"), "tmpfs", 0, size), 0);
}

static void unmount_tmpfs(void)
{
	assert_int_equal(umount(unit_path("tmpfs")), 0);
	assert_int_equal(rmdir(unit_path("tmpfs")), 0);
}

static int open_on_tmpfs(void)
{
	int fd = open(unit_path("tmpfs/image"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* Newer kernels accept O_DIRECT on tmpfs, and RWF_NOWAIT does not tell there what is in memory. The
 * contents of a file with direct access start 8 bytes after a whole page of memory. */
TEST(files_in_memory_are_loaded_into_whole_pages)
{
	struct image_io io;
	int fd;

	mount_tmpfs("size=1M");
	fd = open_on_tmpfs();
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_int_equal(image_io_begin_load(&io, fd, false, PAGE), 0);
	assert_int_equal(image_io_shift(&io), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_DIRECT, 0);
	image_io_done(&io);
	assert_int_equal(close(fd), 0);
	unmount_tmpfs();
}

/* A store to a mapping of a full tmpfs would end the process with SIGBUS. */
TEST(a_full_tmpfs_is_an_error)
{
	static const char *const sizes[] = { "size=1M", "size=3M", "size=5M", "size=12M" };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct set *set = make_set(many_ranges);

		print_message("case %s\n", sizes[i]);
		mount_tmpfs(sizes[i]);
		(void)close(set->job.image_fd);
		set->job.image_fd = open_on_tmpfs();
		fill(set);
		unit_forget_lines();
		assert_int_equal(content_save(&set->job, 1, i % 2 ? &settings : &large), -ENOSPC);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "write to the image",
			      strerror(ENOSPC));
		free_set(set);
		unmount_tmpfs();
	}
}

/* The image has 40 whole huge pages, and a part of one. */
static const uint64_t huge_pages[] = { 50 * MIB, PAGE, 30 * MIB - PAGE, 3 * PAGE, 0 };

#define HUGE_PAGES 40

/* Saves BOs where pages cost so much, and looks at the image. */
static struct set *save_huge(unsigned int huge_cost, unsigned int plain_cost)
{
	struct set *set = make_set(huge_pages);

	calls.huge = calls.plain = 0;
	calls.huge_cost = huge_cost;
	calls.plain_cost = plain_cost;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &large), 0);
	assert_true(image_is_filled(set));
	assert_int_equal(calls.wrong_place, 0);
	assert_int_equal(calls.late, 0);
	return set;
}

TEST(huge_pages_are_made_where_they_cost_less)
{
	/* Where they cost less, the others are of the trial, some of them by threads that began
	 * before its end. Where they cost more, each thread may have begun one before. */
	static const struct {
		unsigned int processors, huge_cost, least, most;
	} rows[] = {
		{ 2, 1, HUGE_PAGES / 2, HUGE_PAGES - 4 },
		{ 16, 1, HUGE_PAGES / 2, HUGE_PAGES - 4 },
		{ 2, 50, 1, 2 * 11 },
		{ 16, 50, 1, 2 * 11 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_set_ struct set *set = NULL;

		print_message("case %u processors, cost %u\n", rows[i].processors,
			      rows[i].huge_cost);
		processors = rows[i].processors;
		set = save_huge(rows[i].huge_cost, 2);
		assert_in_range(calls.huge, rows[i].least, rows[i].most);
		assert_int_equal(calls.huge + calls.plain, HUGE_PAGES);
	}
}

TEST(huge_pages_are_given_up_when_they_become_dear)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 1;
	calls.dear_from = 10;
	set = save_huge(2, 3);
	assert_in_range(calls.huge, 10, 10 + 2 * 11);
	assert_int_equal(calls.huge + calls.plain, HUGE_PAGES);
}

/* A lock limits the threads with plain pages. */
TEST(all_threads_make_huge_pages)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 16;
	calls.threads_wanted = 7;
	set = save_huge(1, 2);
	assert_in_range(calls.most_threads, 7, 11);
}

TEST(refused_huge_pages_are_plain)
{
	static const struct {
		int error;
		/* Before huge pages are given up. */
		unsigned int most;
	} rows[] = { { EINVAL, 1 }, { EAGAIN, 4 }, { ENOMEM, 4 }, { EBUSY, 4 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_set_ struct set *set = NULL;

		print_message("case %s\n", strerror(rows[i].error));
		calls.huge_error = rows[i].error;
		calls.refused = 0;
		set = save_huge(1, 2);
		/* A range has at most two, and each thread may have begun one before. */
		assert_in_range(calls.refused, 1, rows[i].most + 11);
		assert_true(calls.plain >= HUGE_PAGES);
	}
}

/* All but the beginning of each huge page is zero: no memory is taken for that. */
TEST(huge_pages_with_holes_are_plain)
{
	_cleanup_set_ struct set *set = make_set((const uint64_t[]){ 50 * MIB, 0 });
	struct stat stat;
	char *memory = map_bo(&set->bos[0]);

	calls.huge_cost = 1;
	calls.plain_cost = 2;
	for (uint64_t at = 0; at < set->bos[0].size; at += HUGE)
		memory[at] = 1;
	(void)munmap(memory, set->bos[0].size);
	assert_int_equal(content_save(&set->job, 1, &large), 0);
	assert_int_equal(calls.huge, 0);
	assert_int_equal(fstat(set->job.image_fd, &stat), 0);
	assert_in_range(stat.st_blocks * 512, 25 * MIB / 4, 8 * MIB);
}

/* A write that begins and ends inside huge pages, and has whole ones between, as behind a hole. */
TEST(only_whole_huge_pages_of_a_write_are_made)
{
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	const struct image_io_file file = { .fd = fd, .size = 64 * MIB, .num_images = 1 };
	const uint64_t size = 7 * MIB - PAGE;
	_cleanup_free_ char *memory = malloc(size), *written = malloc(size);
	struct image_io io;

	calls.huge_cost = 1;
	calls.plain_cost = 2;
	memset(memory, 0x5a, size);
	assert_int_equal(image_io_begin_save(&io, &file), 0);
	for (uint64_t at = MIB; at + size <= file.size; at += size) {
		assert_int_equal(image_io_write(&io, memory, at, size), 0);
		assert_int_equal(pread_full(fd, written, size, at), 0);
		assert_memory_equal(written, memory, size);
	}
	assert_in_range(calls.huge, 8, 28);
	assert_int_equal(calls.wrong_place, 0);
	assert_int_equal(calls.late, 0);
	image_io_done(&io);
}

/* What the kernel says of a mapping of the image. */
static uint64_t huge_bytes_of(const struct set *set)
{
	const size_t size = image_size(set) / HUGE * HUGE;
	char *room = mmap(NULL, size + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *image = room + -(uintptr_t)room % HUGE;
	_cleanup_fclose_ FILE *file = NULL;
	uint64_t sum = 0, kib;
	char line[512];

	assert_true(room != MAP_FAILED);
	assert_true(mmap(image, size, PROT_READ, MAP_SHARED | MAP_FIXED, set->job.image_fd, 0) !=
		    MAP_FAILED);
	for (size_t at = 0; at < size; at += HUGE)
		(void)*(volatile char *)(image + at);
	file = fopen("/proc/self/smaps", "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1)
			sum += kib * 1024;
	}
	assert_int_equal(munmap(room, size + HUGE), 0);
	return sum;
}

/* With the kernel's huge pages, if it has some. */
TEST(the_kernel_makes_huge_pages)
{
	_cleanup_set_ struct set *set = NULL;

	calls.is_real = true;
	set = save_huge(1, 2);
	if (calls.refused)
		skip();
	assert_true(huge_bytes_of(set) >= HUGE_PAGES / 2 * HUGE);
}
