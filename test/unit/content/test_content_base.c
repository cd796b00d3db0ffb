// SPDX-License-Identifier: GPL-2.0-only
/* Tests images that share chunks with those of an older dump (option base). Sharing copies here,
 * because the file system of the tests may not be able to share. */
#include "drm_calls.h"

#include <linux/fs.h>
#include <sys/vfs.h>

#include "content/pool.h"
#include "content_set.h"
#include "dump/base_dir.h"
#include "image/image.h"

#define CHUNK (256ull << 10)
#define ID    7

static const struct content_settings large = {
	.staging_bytes = 8 * MIB, .copy_timeout_s = 7, .skip_zeros = true, .checksum = true
};

static struct {
	atomic_uint calls;
	atomic_ullong bytes;
	/* Calls that the kernel would refuse. */
	atomic_uint wrong;
	/* Of each call. */
	int error;
	/* Called once, before the first chunk is shared. */
	void (*before)(void);
} clones;

/* Moves to a descriptor without O_DIRECT. */
static int open_again(int fd, int flags)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

static int copy_range(int fd, const struct file_clone_range *range)
{
	_cleanup_close_ int from = open_again((int)range->src_fd, O_RDONLY);
	_cleanup_close_ int to = open_again(fd, O_WRONLY);
	_cleanup_free_ char *bytes = malloc(range->src_length);

	if (bytes && !pread_full(from, bytes, range->src_length, range->src_offset))
		return pwrite_full(to, bytes, range->src_length, range->dest_offset);
	clones.wrong++;
	return -EIO;
}

int __real_xioctl(int fd, unsigned long request, void *argument);
int __wrap_xioctl(int fd, unsigned long request, void *argument);
int __wrap_xioctl(int fd, unsigned long request, void *argument)
{
	const struct file_clone_range *range = argument;

	if (request != FICLONERANGE)
		return __real_xioctl(fd, request, argument);
	if (!clones.calls++ && clones.before)
		clones.before();
	if (clones.error)
		return -clones.error;
	clones.bytes += range->src_length;
	clones.wrong += range->src_length % CHUNK || range->src_offset % CHUNK ||
			range->dest_offset % CHUNK;
	return copy_range(fd, range);
}

/* The tests may run in a tmpfs. */
int fstatfs(int fd, struct statfs *stat)
{
	(void)fd;
	*stat = (struct statfs){ .f_type = 0xef53 };
	return 0;
}

static char base_path[] = "older";
static struct options options;

static int begin(void **state)
{
	int ret = drm_calls_begin(state);

	memset(&clones, 0, sizeof(clones));
	options = (struct options){ .base = base_path, .content = large };
	assert_int_equal(mkdir(unit_path("older"), 0700), 0);
	return ret;
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

#define PAGES "amdgpu-pages-7-0100.img"
#define SUMS  "amdgpu-sums-7-0100.img"

/* Dumps the BOs of @set. The image stays open. The result is what content_save() says. */
static int dump_with(struct set *set, struct pool *pool)
{
	struct dump_session session = { .options = &options };
	const struct dumped_process process = { .session = &session, .id = ID };
	struct content_job *job = &set->job;
	int ret;

	clones.calls = 0;
	clones.bytes = 0;
	unit_forget_lines();
	(void)close(job->image_fd);
	assert_int_equal(base_dir_open(&session), 0);
	assert_int_equal(image_create_pages(ID, job->gpu_id, 1, &job->image_fd), 0);
	assert_int_equal(base_dir_add(&process, job), 0);
	job->pool = pool;
	ret = content_save(job, 1, &options.content);
	if (!ret)
		base_dir_finish(&process, job);
	/* The tests read and change single bytes. */
	(void)fcntl(job->image_fd, F_SETFL, O_RDWR);
	base_chunks_done(&job->chunks);
	base_free(session.base);
	assert_int_equal(clones.wrong, 0);
	return ret;
}

static void dump(struct set *set)
{
	assert_int_equal(dump_with(set, NULL), 0);
	assert_true(image_is_filled(set));
}

/* The images of the last dump become the base. */
static void make_base(void)
{
	assert_int_equal(rename(unit_path(PAGES), unit_path("older/" PAGES)), 0);
	assert_int_equal(rename(unit_path(SUMS), unit_path("older/" SUMS)), 0);
}

static void remove_base(void)
{
	(void)unlink(unit_path("older/" PAGES));
	(void)unlink(unit_path("older/" SUMS));
}

/* 39 chunks, and a part of one. */
static const uint64_t sizes[] = { 5 * MIB, 3 * MIB - PAGE, PAGE, 2 * MIB - 5 * PAGE, 0 };

#define CHUNKS 39

static struct set *make_older(void)
{
	struct set *set = make_set(sizes);

	fill(set);
	dump(set);
	assert_int_equal(clones.calls, 0);
	make_base();
	return set;
}

static void end(struct set **set)
{
	remove_base();
	(void)unlink(unit_path(PAGES));
	(void)unlink(unit_path(SUMS));
	free_set_at(set);
}

#define _cleanup_end_ _cleanup_(end)

TEST(equal_contents_are_shared)
{
	_cleanup_end_ struct set *set = make_older();

	dump(set);
	assert_int_equal(clones.bytes, CHUNKS * CHUNK);
	assert_in_range(clones.calls, 1, CHUNKS);
	assert_logged("amdgpu_plugin: ", "shares 10223616 of 10465280 bytes");
}

TEST(a_chain_of_dumps_needs_only_the_last)
{
	_cleanup_end_ struct set *set = make_older();

	for (int i = 0; i < 3; i++) {
		dump(set);
		assert_int_equal(clones.bytes, CHUNKS * CHUNK);
		remove_base();
		make_base();
	}
}

/* A byte of a BO differs from the pattern. */
static void change(const struct set *set, size_t bo, uint64_t at)
{
	char *memory = map_bo(&set->bos[bo]);

	memory[at] ^= 0x10;
	(void)munmap(memory, set->bos[bo].size);
}

/* Whether the image is that of a BO 0 with this byte changed; in the image it is 8 bytes later. */
static bool is_changed_at(const struct set *set, uint64_t at)
{
	bool same;

	change_byte(set, HEADER + at);
	same = image_is_filled(set);
	change_byte(set, HEADER + at);
	return same;
}

/* The first and the last bytes of chunks of the file, and of ranges. */
TEST(a_changed_byte_is_written)
{
	static const uint64_t places[] = { 0,
					   CHUNK - HEADER - 1,
					   CHUNK - HEADER,
					   CHUNK - 1,
					   CHUNK,
					   2 * CHUNK - HEADER - 1,
					   2 * CHUNK - HEADER,
					   3 * CHUNK - 1,
					   4 * CHUNK - HEADER - 1,
					   4 * CHUNK - 1 };
	_cleanup_end_ struct set *set = make_older();

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		print_message("byte %lu\n", places[i]);
		change(set, 0, places[i]);
		assert_int_equal(dump_with(set, NULL), 0);
		assert_true(is_changed_at(set, places[i]));
		assert_int_equal(clones.bytes, (CHUNKS - 1) * CHUNK);
		change(set, 0, places[i]);
	}
}

/* The BOs are in another order, so that chunks of the file have other places. */
TEST(contents_that_moved_are_shared)
{
	static const uint64_t before[] = { 2 * MIB, 3 * MIB, MIB, 0 };
	_cleanup_end_ struct set *set = make_set(before);
	struct content_bo first = set->bos[0];

	fill(set);
	dump(set);
	make_base();
	set->bos[0] = set->bos[1];
	set->bos[1] = first;
	assert_int_equal(dump_with(set, NULL), 0);
	/* All but those at the ends of BOs: they have eight bytes of another. */
	assert_int_equal(clones.bytes, (24 - 3) * CHUNK);
	assert_int_equal(content_load(&set->job, 1, &large), 0);
	set->bos[1] = set->bos[0];
	set->bos[0] = first;
	assert_true(bos_are_filled(set));
}

TEST(kept_contents_are_shared)
{
	const struct pool_share share = { FIRST_MINOR, 16 * MIB };
	_cleanup_end_ struct set *set = make_older();
	struct pool *pool = NULL;

	assert_int_equal(pool_new(&share, 1, 0, &pool), 0);
	assert_int_equal(pool_start(pool), 0);
	assert_int_equal(dump_with(set, pool), 0);
	assert_int_equal(clones.bytes, CHUNKS * CHUNK);
	assert_true(image_is_filled(set));
	pool_free(pool);
}

TEST(zeros_stay_holes)
{
	_cleanup_end_ struct set *set = make_set(sizes);
	struct stat stat;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(dump_with(set, NULL), 0);
		/* The length is not zero. */
		assert_int_equal(clones.bytes, i * CHUNK);
		assert_int_equal(fstat(set->job.image_fd, &stat), 0);
		assert_in_range(stat.st_blocks * 512, 1, 2 * CHUNK);
		make_base();
	}
}

static void touch(void)
{
	assert_int_equal(utimensat(AT_FDCWD, unit_path("older/" PAGES), NULL, 0), 0);
}

static void append(void)
{
	FILE *file = fopen(unit_path("older/" PAGES), "ae");

	assert_int_equal(fputc('x', file), 'x');
	assert_int_equal(fclose(file), 0);
}

static void cut(void)
{
	assert_int_equal(truncate(unit_path("older/" PAGES), 9 * MIB), 0);
}

/* With the same time. */
static void copy(void)
{
	char command[1000], path[400];

	(void)snprintf(path, sizeof(path), "%s", unit_path("older"));
	(void)snprintf(command, sizeof(command), "cd %s && cp -p %s x && mv x %s", path, PAGES,
		       PAGES);
	assert_int_equal(system(command), 0);
}

static void lose(void)
{
	assert_int_equal(unlink(unit_path("older/" PAGES)), 0);
}

static void flip_at(off_t at)
{
	_cleanup_close_ int fd = open(unit_path("older/" SUMS), O_RDWR | O_CLOEXEC);
	char byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void damage_sum(void)
{
	flip_at(200);
}

static void damage_length(void)
{
	flip_at(0);
}

static void damage_version(void)
{
	flip_at(16);
}

static void cut_sums(void)
{
	assert_int_equal(truncate(unit_path("older/" SUMS), 20), 0);
}

static int writer = -1;

static void open_to_write(void)
{
	writer = open(unit_path("older/" PAGES), O_WRONLY | O_CLOEXEC);
	assert_true(writer >= 0);
}

TEST(a_base_that_is_not_as_it_was_is_not_used)
{
	static const struct {
		void (*change)(void);
		const char *text;
	} rows[] = {
		{ touch, "have changed" },         { append, "have changed" },
		{ cut, "have changed" },           { copy, "are copies" },
		{ lose, "are missing" },           { damage_sum, "damaged sums" },
		{ damage_length, "damaged sums" }, { damage_version, "damaged sums" },
		{ cut_sums, "damaged sums" },      { open_to_write, "are open for writing" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_end_ struct set *set = make_older();

		print_message("case %s\n", rows[i].text);
		rows[i].change();
		dump(set);
		assert_int_equal(clones.calls, 0);
		assert_logged("Warn  (amdgpu_plugin): ", "option base: 1 of its pages files",
			      rows[i].text);
	}
	(void)close(writer);
}

TEST(a_base_that_changes_meanwhile_fails_the_dump)
{
	_cleanup_end_ struct set *set = make_older();

	clones.before = touch;
	assert_int_equal(dump_with(set, NULL), -ESTALE);
	assert_logged("Error (amdgpu_plugin): ", "the base has changed meanwhile");
}

TEST(a_base_may_be_deleted_meanwhile)
{
	_cleanup_end_ struct set *set = make_older();

	clones.before = remove_base;
	dump(set);
	assert_int_equal(clones.bytes, CHUNKS * CHUNK);
}

TEST(where_files_cannot_share_all_is_written)
{
	static const int errors[] = { EXDEV, EOPNOTSUPP, EINVAL, EPERM, ETXTBSY };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		_cleanup_end_ struct set *set = make_older();

		clones.error = errors[i];
		dump(set);
		/* At most once in each thread. */
		assert_in_range(clones.calls, 1, 12);
		assert_logged("Warn  (amdgpu_plugin): ", "cannot share", strerror(errors[i]));
		clones.error = 0;
		/* The next dump may share with this one. */
		remove_base();
		make_base();
		dump(set);
		assert_int_equal(clones.bytes, CHUNKS * CHUNK);
	}
}

TEST(a_full_file_system_fails_the_dump)
{
	_cleanup_end_ struct set *set = make_older();

	clones.error = ENOSPC;
	assert_int_equal(dump_with(set, NULL), -ENOSPC);
	assert_logged("Error (amdgpu_plugin): ", "write to the image", strerror(ENOSPC));
}

TEST(without_a_base_directory_all_is_written)
{
	static char missing[] = "missing", itself[] = ".", file[] = "older/" PAGES;
	static const struct {
		char *path;
		const char *text;
	} rows[] = {
		{ missing, "No such file" },
		{ file, "Not a directory" },
		{ itself, "is the image directory itself" },
	};
	_cleanup_end_ struct set *set = make_older();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		options.base = rows[i].path;
		dump(set);
		assert_int_equal(clones.calls, 0);
		assert_logged("Warn  (amdgpu_plugin): ", "option base: ", rows[i].text);
	}
}

TEST(without_the_option_there_are_no_sums)
{
	_cleanup_end_ struct set *set = make_older();

	options.base = NULL;
	dump(set);
	assert_int_equal(clones.calls, 0);
	assert_int_equal(access(unit_path(SUMS), F_OK), -1);
}

/* Its ranges would be no whole chunks. */
TEST(little_staging_memory_shares_nothing)
{
	_cleanup_end_ struct set *set = make_older();

	options.content.staging_bytes = MIB;
	dump(set);
	assert_logged("Warn  (amdgpu_plugin): ", "shares nothing", "max-buffer-size");
	assert_int_equal(clones.calls, 0);
	assert_int_equal(access(unit_path(SUMS), F_OK), -1);
}
