// SPDX-License-Identifier: GPL-2.0-only
/* Tests contents in files of tmpfs, which are written through mappings, or on few processors by
 * pwrite(). */
#include "drm_calls.h"

#include "content_set.h"
#include "processors.h"
#include "storage/image_io.h"

#include <sys/mount.h>
#include <sys/syscall.h>

/* Not in the headers of older systems. */
#define POPULATE_WRITE 23

static struct {
	atomic_uint populated;
	atomic_uint written;
	/* Mappings that have too few bytes for several ranges. */
	atomic_uint small;
	int populate_error;
	/* The first thread that fills a mapping waits until the others have filled many. */
	bool one_is_slow;
	/* pwrite() takes a moment; threads in it now, and the most at once. */
	bool writes_take_long;
	atomic_uint writers;
	atomic_uint most_writers;
	/* Threads that fill mappings now, and the most at once. */
	atomic_uint fillers;
	atomic_uint most_fillers;
} calls;

/* The bytes of the mapping of an image that contains @address, 0: none. NULL: of any one. */
static size_t size_of_mapping(const void *address)
{
	uintptr_t at = (uintptr_t)address;
	unsigned long begin, end;
	size_t size = 0;
	char line[512];
	_cleanup_fclose_ FILE *file = fopen("/proc/self/maps", "re");

	assert_non_null(file);
	while (!size && fgets(line, sizeof(line), file)) {
		if (strstr(line, "/memfd:image ") && sscanf(line, "%lx-%lx", &begin, &end) == 2 &&
		    (!address || (at >= begin && at < end)))
			size = end - begin;
	}
	return size;
}

/* With so many parts, the others have used each mapping that is there for something else. If they
 * cannot map the file, they write. */
#define MANY_PARTS  560
#define MANY_WRITES 40
/* So long that other threads come meanwhile. */
#define LONG_US 2000

static void wait_for_others(void)
{
	while (calls.populated < MANY_PARTS && calls.written < MANY_WRITES)
		(void)sched_yield();
}

static void note_most(atomic_uint *most, unsigned int now)
{
	if (now > *most)
		*most = now;
}

int madvise(void *memory, size_t size, int advice)
{
	bool first;
	int ret;

	if (advice != POPULATE_WRITE)
		return (int)system_call(SYS_madvise, memory, size, advice);
	first = !calls.populated++;
	note_most(&calls.most_fillers, ++calls.fillers);
	calls.small += size_of_mapping(memory) < 4 * MIB;
	if (calls.writes_take_long)
		(void)usleep(LONG_US);
	errno = calls.populate_error;
	ret = errno ? -1 : (int)system_call(SYS_madvise, memory, size, advice);
	if (first && calls.one_is_slow)
		wait_for_others();
	calls.fillers--;
	return ret;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	ssize_t ret;

	note_most(&calls.most_writers, ++calls.writers);
	calls.written++;
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

static const uint64_t many_ranges[] = { 5 * MIB, PAGE, 12 * MIB + PAGE, 3 * PAGE, 0 };

/* Saves a new set of BOs, and counts the calls of that only. */
static struct set *save_set(const uint64_t *sizes, bool one_is_slow)
{
	struct set *set = make_set(sizes);

	fill(set);
	calls.written = calls.populated = calls.small = 0;
	calls.one_is_slow = one_is_slow;
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	return set;
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

TEST(many_processors_write_to_mappings)
{
	_cleanup_set_ struct set *set = save_set(many_ranges, false);

	assert_true(calls.populated >= 16);
	assert_int_equal(calls.written, 0);
	assert_true(image_is_filled(set));
}

/* More threads would only wait for the kernel's lock of the file. */
TEST(at_most_six_threads_fill_mappings)
{
	_cleanup_set_ struct set *set = make_set(many_ranges);
	struct content_settings large = settings;

	fill(set);
	large.staging_bytes = 8 * MIB;
	processors = 16;
	calls.writes_take_long = true;
	assert_int_equal(content_save(&set->job, 1, &large), 0);
	assert_in_range(calls.most_fillers, 2, 6);
	assert_true(image_is_filled(set));
}

/* With few processors, or with many images, the others have enough to do. */
TEST(few_processors_write)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 3;
	set = save_set(many_ranges, false);
	assert_int_equal(calls.populated, 0);
	assert_true(image_is_filled(set));
}

/* Threads that wait for the kernel's lock of the file would use the processors. */
TEST(few_processors_write_one_at_a_time)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 3;
	calls.writes_take_long = true;
	set = save_set(many_ranges, false);
	assert_true(calls.written >= 64);
	assert_int_equal(calls.most_writers, 1);
}

/* The slots of a load with 8 MiB of staging memory, while @running GPUs of other runs are copied.
 */
static void load_beside(struct set *set, unsigned int running, const char *slots)
{
	struct content_settings large = settings;
	struct content_run *run;
	sem_t limit;

	large.staging_bytes = 8 * MIB;
	unit_forget_lines();
	assert_int_equal(sem_init(&limit, 0, CONTENT_GPUS_AT_ONCE - running), 0);
	assert_int_equal(content_start_load(&set->job, 1, &large, &limit, &run), 0);
	assert_int_equal(content_finish(run), 0);
	assert_logged("amdgpu_plugin: ", "GPU 0x0100", slots);
	assert_int_equal(sem_destroy(&limit), 0);
}

TEST(gpus_of_other_runs_share_the_processors)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 16;
	set = save_set(many_ranges, false);
	load_beside(set, 0, "16 slots of 512 KiB");
	load_beside(set, 7, "4 slots of 2048 KiB");
}

TEST(an_unknown_number_of_processors_is_a_large_one)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 0;
	set = save_set(many_ranges, false);
	assert_true(calls.populated >= 16);
	assert_int_equal(calls.written, 0);
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

/* Threads wait while one of them maps the file, so they share mappings of many ranges. */
TEST(threads_share_mappings)
{
	_cleanup_set_ struct set *set = save_set(many_ranges, false);

	assert_true(calls.populated >= 16);
	assert_int_equal(calls.small, 0);
	assert_int_equal(size_of_mapping(NULL), 0);
}

TEST(a_slow_thread_keeps_its_mapping)
{
	static const uint64_t sizes[] = { 160 * MIB, 0 };
	_cleanup_set_ struct set *set = save_set(sizes, true);

	assert_true(calls.populated >= MANY_PARTS);
	assert_true(image_is_filled(set));
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
		assert_int_equal(content_save(&set->job, 1, &settings), -ENOSPC);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "write to the image",
			      strerror(ENOSPC));
		free_set(set);
		unmount_tmpfs();
	}
}
