// SPDX-License-Identifier: GPL-2.0-only
/* Tests the storage side of contents: files on a disk, holes, and system calls that fail or move
 * fewer bytes, at several offsets. */
#include "drm_calls.h"

#include "content_set.h"

#include <sys/syscall.h>

#include "content/sdma.h"
#include "content/transfer.h"

/* Seconds, for loads that could hang. */
#define TIME_LIMIT 60

/* How the system calls below differ from the real ones for the file "image". @error and @part
 * affect the first call that reaches the byte @at. */
static struct {
	ino_t image;
	uint64_t at;
	/* 0: move only @part bytes. */
	int error;
	size_t part;
	atomic_bool armed;
	/* Each call with O_DIRECT fails. */
	bool no_direct;
	atomic_uint direct_calls;
	int fallocate_error;
	int fdatasync_error;
	/* The block size of holes; 0: the size of this file system. */
	off_t hole_block;
} files;

static bool is_affected(int fd, uint64_t offset, size_t size)
{
	bool armed = true;

	return is_inode(fd, files.image) && files.at >= offset && files.at - offset < size &&
	       atomic_compare_exchange_strong(&files.armed, &armed, false);
}

static bool refuses_direct(int fd)
{
	bool direct = is_inode(fd, files.image) && fcntl(fd, F_GETFL) & O_DIRECT;

	files.direct_calls += direct;
	errno = EINVAL;
	return direct && files.no_direct;
}

static ssize_t transfer(long number, int fd, void *bytes, size_t size, off_t offset)
{
	if (refuses_direct(fd))
		return -1;
	if (is_affected(fd, (uint64_t)offset, size)) {
		errno = files.error;
		if (files.error)
			return -1;
		size = files.part < size ? files.part : size;
	}
	return system_call(number, fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	return transfer(SYS_pwrite64, fd, (void *)bytes, size, offset);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	return transfer(SYS_pread64, fd, bytes, size, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
	errno = files.fallocate_error;
	return files.fallocate_error ? -1 : (int)system_call(SYS_fallocate, fd, mode, offset, size);
}

int fdatasync(int fd)
{
	errno = files.fdatasync_error;
	return files.fdatasync_error ? -1 : (int)system_call(SYS_fdatasync, fd);
}

/* Reads whole pages, because the file may have O_DIRECT. */
static bool is_hole_at(int fd, off_t block)
{
	static const char zeros[4096];
	_Alignas(4096) char page[4096] = "";

	(void)system_call(SYS_pread64, fd, page, sizeof(page), block / 4096 * 4096);
	return !memcmp(page + block % 4096, zeros, (size_t)files.hole_block);
}

off_t lseek(int fd, off_t offset, int whence)
{
	bool holes = whence == SEEK_HOLE;
	off_t at = offset, end;

	if (!files.hole_block || !is_inode(fd, files.image) || (!holes && whence != SEEK_DATA))
		return system_call(SYS_lseek, fd, offset, whence);
	end = system_call(SYS_lseek, fd, 0, SEEK_END);
	while (at < end && is_hole_at(fd, at / files.hole_block * files.hole_block) != holes)
		at = (at / files.hole_block + 1) * files.hole_block;
	if (at < end || holes)
		return at < end ? at : end;
	errno = ENXIO;
	return -1;
}

static int begin(void **state)
{
	memset(&files, 0, sizeof(files));
	return drm_calls_begin(state);
}

static struct set *make_disk_set(const uint64_t *sizes)
{
	return make_set_in_file(sizes, &files.image);
}

static void write_uncached(struct set *set)
{
	write_image(set);
	assert_int_equal(fsync(set->job.image_fd), 0);
	(void)posix_fadvise(set->job.image_fd, 0, 0, POSIX_FADV_DONTNEED);
}

static uint64_t disk_bytes(const struct set *set)
{
	struct stat stat;

	assert_int_equal(fstat(set->job.image_fd, &stat), 0);
	return (uint64_t)stat.st_blocks * 512;
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

/* Some file systems accept O_DIRECT at open() and refuse the access. They get buffered access. */
TEST(files_on_a_disk_hold_the_same_bytes)
{
	for (unsigned int no_direct = 0; no_direct < 2; no_direct++) {
		_cleanup_set_ struct set *saved = make_disk_set(mixed), *loaded = NULL;

		files.no_direct = no_direct;
		fill(saved);
		assert_int_equal(content_save(&saved->job, 1, &settings), 0);
		assert_true(image_is_filled(saved));

		loaded = make_disk_set(mixed);
		write_uncached(loaded);
		assert_int_equal(content_load(&loaded->job, 1, &settings), 0);
		assert_true(bos_are_filled(loaded));
	}
}

/* Sets @size bytes of BO @bo at @offset to zero. */
static void clear(const struct set *set, size_t bo, uint64_t offset, uint64_t size)
{
	char *memory = map_bo(&set->bos[bo]);

	memset(memory + offset, 0, size);
	(void)munmap(memory, set->bos[bo].size);
}

static void check_image_word(const struct set *set, uint64_t offset, uint64_t expected)
{
	const char *image =
		mmap(NULL, image_size(set), PROT_READ, MAP_SHARED, set->job.image_fd, 0);
	uint64_t word;

	assert_true(image != MAP_FAILED);
	memcpy(&word, image + offset, sizeof(word));
	(void)munmap((void *)image, image_size(set));
	assert_int_equal(word, expected);
}

static struct set *make_half_zero_set(void)
{
	struct set *set =
		make_disk_set((const uint64_t[]){ 2 * MIB, 16 * MIB, 2 * MIB, 4 * MIB, 0 });

	fill(set);
	clear(set, 1, 0, 16 * MIB);
	clear(set, 3, MIB, 3 * MIB);
	return set;
}

TEST(zeros_become_holes)
{
	_cleanup_set_ struct set *set = make_half_zero_set();

	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_int_equal(lseek(set->job.image_fd, 0, SEEK_END), image_size(set));
	assert_in_range(disk_bytes(set), 5 * MIB, 8 * MIB);
	check_image_word(set, HEADER + 2 * MIB - 8, pattern(0, 2 * MIB / 8 - 1));
	check_image_word(set, HEADER + 2 * MIB, 0);
	check_image_word(set, HEADER + 18 * MIB, pattern(2, 0));
	check_image_word(set, HEADER + 24 * MIB - 8, 0);
}

TEST(holes_are_off_by_option)
{
	struct content_settings plain = settings;
	_cleanup_set_ struct set *set = make_half_zero_set();

	plain.skip_zeros = false;
	assert_int_equal(content_save(&set->job, 1, &plain), 0);
	assert_true(disk_bytes(set) >= image_size(set));
}

/* New BOs of a restore may hold any bytes. */
TEST(holes_are_loaded_as_zeros)
{
	_cleanup_set_ struct set *set = make_half_zero_set();

	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	fill(set);
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
	for (size_t i = 0; i < set->num_bos; i++) {
		uint64_t *words = map_bo(&set->bos[i]);
		uint64_t zeros_from = i == 1 ? 0 : i == 3 ? MIB : set->bos[i].size;

		assert_true(are_filled(words, i, zeros_from));
		for (uint64_t at = zeros_from / 8; at < set->bos[i].size / 8; at++)
			assert_int_equal(words[at], 0);
		(void)munmap(words, set->bos[i].size);
	}
}

/* "cp --sparse=always" makes such holes on file systems with blocks of 1 KiB. */
TEST(holes_that_end_within_a_page_are_loaded)
{
	static const off_t blocks[] = { 512, 1024, 2048, 4096 };

	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		_cleanup_set_ struct set *set = make_half_zero_set();

		print_message("case %lld\n", (long long)blocks[i]);
		/* At the end of a hole of whole pages, and between data. */
		clear(set, 2, 0, 3 * 1024);
		clear(set, 2, 5 * PAGE, 7 * 1024);
		assert_int_equal(content_save(&set->job, 1, &settings), 0);
		fill(set);
		files.hole_block = blocks[i];
		(void)alarm(TIME_LIMIT);
		/* The checksums cover the zeros too. */
		assert_int_equal(content_load(&set->job, 1, &settings), 0);
		(void)alarm(0);
		files.hole_block = 0;
	}
}

/* Offsets in the length, the first range, at the border of two ranges, in the middle, in the last
 * range, and at the end. */
static uint64_t offset_case(const struct set *set, unsigned int which)
{
	/* Contents have a page before them and a page after them. */
	const uint64_t slot = settings.staging_bytes / 4 - 2 * PAGE, end = image_size(set);
	const uint64_t offsets[] = { 0,      PAGE, slot, slot - 1, 5 * slot + 7, end / slot * slot,
				     end - 1 };

	return which < ARRAY_SIZE(offsets) ? offsets[which] : UINT64_MAX;
}

/* EINTR only repeats the call. */
TEST(each_error_at_each_offset_fails_the_save_or_the_load)
{
	static const int errors[] = { EIO, ENOSPC, EINTR, EDQUOT };

	for (unsigned int i = 0; i < 7 * 2 * ARRAY_SIZE(errors); i++) {
		_cleanup_set_ struct set *set = make_disk_set(mixed);
		const bool saves = i / ARRAY_SIZE(errors) % 2;
		size_t fds = unit_count_fds();
		int ret;

		if (saves)
			fill(set);
		else
			write_uncached(set);
		files.at = offset_case(set, i / 2 / ARRAY_SIZE(errors));
		files.error = errors[i % ARRAY_SIZE(errors)];
		files.armed = true;
		unit_forget_lines();
		print_message("case %s at %llu, saves %d\n", strerror(files.error),
			      (unsigned long long)files.at, saves);
		ret = saves ? content_save(&set->job, 1, &settings)
			    : content_load(&set->job, 1, &settings);
		assert_false(files.armed);
		assert_int_equal(unit_count_fds(), fds);
		if (files.error == EINTR) {
			assert_int_equal(ret, 0);
			assert_true(saves ? image_is_filled(set) : bos_are_filled(set));
			continue;
		}
		assert_int_equal(ret, -files.error);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "image",
			      strerror(files.error));
		assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	}
}

/* After an odd length, the rest is not aligned. */
TEST(short_reads_and_writes_are_continued)
{
	static const size_t parts[] = { 1, 100, 512, PAGE };

	for (unsigned int i = 0; i < 7 * ARRAY_SIZE(parts); i++) {
		_cleanup_set_ struct set *set = make_disk_set(mixed);

		fill(set);
		files.at = offset_case(set, i / ARRAY_SIZE(parts));
		files.part = parts[i % ARRAY_SIZE(parts)];
		files.armed = true;
		print_message("case %zu bytes at %llu\n", files.part, (unsigned long long)files.at);
		assert_int_equal(content_save(&set->job, 1, &settings), 0);
		assert_false(files.armed);
		assert_true(image_is_filled(set));
		(void)posix_fadvise(set->job.image_fd, 0, 0, POSIX_FADV_DONTNEED);
		files.armed = true;
		assert_int_equal(content_load(&set->job, 1, &settings), 0);
		assert_false(files.armed);
	}
}

TEST(a_full_disk_is_an_error_before_the_first_copy)
{
	_cleanup_set_ struct set *set = make_disk_set(mixed);

	files.fallocate_error = ENOSPC;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), -ENOSPC);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "room", strerror(ENOSPC));
	assert_int_equal(gpu.submissions, 0);
}

TEST(a_file_system_that_cannot_reserve_space_works)
{
	_cleanup_set_ struct set *set = make_disk_set(mixed);

	files.fallocate_error = EOPNOTSUPP;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_true(image_is_filled(set));
}

/* The device may report an error after the last write. */
TEST(an_error_of_fdatasync_fails_the_save)
{
	_cleanup_set_ struct set *set = make_disk_set(mixed);

	files.fdatasync_error = EIO;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), -EIO);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "BO 5 of 6", "write to the image");
}

TEST(bos_need_not_be_whole_pages)
{
	static const uint64_t sizes[] = { 4097, 5000, 100001, MIB + 3, PAGE, 0 };
	struct content_settings tiny = settings;

	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_set_ struct set *set = make_set(sizes);

		tiny.staging_bytes = i ? PAGE : MIB;
		fill(set);
		assert_int_equal(content_save(&set->job, 1, &tiny), 0);
		assert_int_equal(lseek(set->job.image_fd, 0, SEEK_END), image_size(set));
		for (size_t bo = 0; bo < set->num_bos; bo++) {
			char *memory = map_bo(&set->bos[bo]);

			memset(memory, 0x55, set->bos[bo].size);
			(void)munmap(memory, set->bos[bo].size);
		}
		assert_int_equal(content_load(&set->job, 1, &tiny), 0);
		assert_true(bos_are_filled(set));
	}
}

/* On file systems that do not need aligned memory, as tmpfs. */
TEST(contents_have_the_same_place_in_pages_of_bos_and_slots)
{
	_cleanup_set_ struct set *set = make_set(mixed);

	gpu.counts_copies = true;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_true(image_is_filled(set));
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
	assert_true(gpu.copies >= 2 * set->num_bos);
	assert_int_equal(gpu.unaligned_copies, 0);
}

TEST(large_bos_have_gpu_addresses_of_huge_pages)
{
	_cleanup_set_ struct set *set = make_set(
		(const uint64_t[]){ PAGE, 2 * MIB, PAGE, 4 * MIB + PAGE, 3 * PAGE, 2 * MIB, 0 });

	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_true(image_is_filled(set));
	assert_int_equal(gpu.small_page_addresses, 0);
}

TEST(slots_are_distributed_over_the_rings)
{
	_cleanup_set_ struct set *set = make_set(mixed);
	struct sdma_bo bo;
	struct sdma *engine;

	gpu.rings = 0xa;
	assert_int_equal(sdma_open(128, 5, PAGE, &engine), 0);
	assert_int_equal(sdma_bo_import(engine,
					&(struct content_bo){ .dmabuf_fd = set->bos[0].dmabuf_fd,
							      .size = PAGE },
					&bo),
			 0);
	for (unsigned int slot = 0; slot < 5; slot++) {
		const struct sdma_piece piece = { &bo, 0, 0, PAGE };

		assert_int_equal(sdma_submit(engine, slot, SDMA_BO_TO_SLOT, &piece, 1), 0);
		assert_int_equal(sdma_wait(engine, slot, 1), 0);
	}
	assert_int_equal(gpu.ring_submissions[1], 3);
	assert_int_equal(gpu.ring_submissions[3], 2);
	sdma_bo_release(&bo);
	sdma_close(engine);
}

TEST(a_gpu_without_a_ring_is_an_error)
{
	_cleanup_set_ struct set *set = make_set(mixed);

	gpu.rings = 0;
	assert_int_equal(content_save(&set->job, 1, &settings), -ENODATA);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "copy engine");
}

static void end_hang(const char *line)
{
	(void)line;
	sim_write("fence_hang", "0");
}

/* The copy hangs until the line of progress. */
TEST(a_long_copy_logs_its_progress)
{
	struct content_settings patient = settings;
	_cleanup_set_ struct set *set = make_set(mixed);

	sim_write("fence_hang", "1");
	patient.copy_timeout_s = 120;
	unit_criu()->printed = end_hang;
	assert_int_equal(content_save(&set->job, 1, &patient), 0);
	assert_logged("GPU 0x0100: saved 0 of 3 MiB", "limited by");
}
