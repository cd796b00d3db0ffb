// SPDX-License-Identifier: GPL-2.0-only
/* Tests content_save() and content_load() on simulated GPUs: every byte, bounded
 * memory, and each call that fails. test_content_io.c tests files, streams and checksums. */
#include "drm_calls.h"

#include "content/pool.h"
#include "content/sdma.h"
#include "content_set.h"

static const uint64_t size_cases[][12] = {
	{ PAGE },
	{ 3 * PAGE, PAGE, 7 * PAGE },
	/* As large as the staging memory, a page less, a page more; as large as slots. */
	{ MIB },
	{ MIB - PAGE },
	{ MIB + PAGE },
	{ MIB / 4, MIB / 4, MIB / 4 },
	/* Larger than the staging memory. */
	{ 2 * MIB + PAGE },
	{ PAGE, 2 * MIB, PAGE, MIB, 3 * PAGE, MIB / 4 + PAGE },
};

static const uint64_t staging_cases[] = {
	0, 1, PAGE, 3 * PAGE, 64 << 10, MIB, 32 * MIB, UINT64_MAX
};

#define TEST(name) TEST_WITH(name, drm_calls_begin, drm_calls_end)

TEST(every_byte_is_saved_and_loaded_for_all_sizes)
{
	for (size_t i = 0; i < ARRAY_SIZE(size_cases) * ARRAY_SIZE(staging_cases); i++) {
		const struct content_settings some = {
			.staging_bytes = staging_cases[i % ARRAY_SIZE(staging_cases)],
			.copy_timeout_s = 1,
			.skip_zeros = true,
			.checksum = true,
		};
		_cleanup_set_ struct set *set = NULL;

		print_message("case %zu, %llu bytes of memory\n", i / ARRAY_SIZE(staging_cases),
			      (unsigned long long)some.staging_bytes);
		set = make_set(size_cases[i / ARRAY_SIZE(staging_cases)]);
		fill(set);
		assert_int_equal(content_save(&set->job, 1, &some), 0);
		assert_true(image_is_filled(set));
		free_set(set);

		set = make_set(size_cases[i / ARRAY_SIZE(staging_cases)]);
		write_image(set);
		assert_int_equal(content_load(&set->job, 1, &some), 0);
		assert_true(bos_are_filled(set));
	}
}

TEST(older_engines_have_another_byte_count)
{
	for (uint32_t version = 2; version <= 6; version++) {
		/* More bytes than a packet of the oldest engine copies. */
		struct set *set = make_set((const uint64_t[]){ 9 * MIB + PAGE, 0 });

		print_message("case SDMA %u\n", version);
		gpu.sdma_version = version;
		fill(set);
		assert_int_equal(
			content_save(&set->job, 1,
				     &(struct content_settings){ 64 * MIB, 1, true, true, false }),
			0);
		assert_true(image_is_filled(set));
		free_set(set);
	}
}

static int page_size = PAGE;

/* Called by the plugin. */
int getpagesize(void)
{
	return page_size;
}

TEST(staging_memory_has_whole_pages_of_the_kernel)
{
	_cleanup_set_ struct set *set = make_set((const uint64_t[]){ PAGE, 0 });

	fill(set);
	page_size = 16 * PAGE;
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_int_equal(gpu.last_user_memory_size % (size_t)page_size, 0);
	assert_true(image_is_filled(set));
	page_size = PAGE;
}

TEST(kept_parts_have_whole_pages_of_the_kernel)
{
	const struct pool_share share = { FIRST_MINOR, (uint64_t)8 * 20 * PAGE };
	struct pool *pool = NULL;

	page_size = 16 * PAGE;
	assert_int_equal(pool_new(&share, 1, 0, &pool), 0);
	assert_int_equal(gpu.last_user_memory_size, 32 * PAGE);
	pool_free(pool);
	page_size = PAGE;
}

/* The system has less free memory than is to stay free. */
TEST(memory_that_others_need_is_not_kept)
{
	const struct pool_share share = { FIRST_MINOR, MIB };
	struct pool *pool = NULL;

	assert_int_equal(pool_new(&share, 1, UINT64_MAX, &pool), -ENOMEM);
	assert_null(pool);
	assert_int_equal(gpu.user_memory, 0);
}

TEST(staging_memory_is_bounded_for_all_bos)
{
	_cleanup_set_ struct set *set = make_set((const uint64_t[]){ 20 * MIB, 20 * MIB, 0 });

	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_in_range(gpu.user_memory, PAGE, settings.staging_bytes);
	free_set(set);
	/* A small image takes less staging memory. */
	gpu.user_memory = 0;
	set = make_set((const uint64_t[]){ PAGE, PAGE, 0 });
	assert_int_equal(content_save(&set->job, 1,
				      &(struct content_settings){ 32 * MIB, 1, true, true, false }),
			 0);
	/* A page, and the page before and after it. */
	assert_in_range(gpu.user_memory, PAGE, 2 * 3 * PAGE);
}

TEST(no_staging_memory_stays_mapped)
{
	/* Three slots of 1 MiB are in two huge pages. */
	static const size_t slot_sizes[] = { 4 * PAGE, MIB };
	static const size_t mapped_sizes[] = { 12 * PAGE, 4 * MIB };
	unsigned char in_memory;
	uintptr_t first;

	for (size_t i = 0; i < ARRAY_SIZE(slot_sizes); i++) {
		struct sdma *sdma;

		assert_int_equal(sdma_open(FIRST_MINOR, 3, slot_sizes[i], &sdma), 0);
		assert_int_equal(gpu.last_user_memory_size, slot_sizes[i]);
		first = gpu.last_user_memory - 2 * slot_sizes[i];
		sdma_close(sdma);
		for (size_t at = 0; at < mapped_sizes[i]; at += PAGE)
			assert_int_equal(mincore((void *)(first + at), PAGE, &in_memory), -1);
	}
}

TEST(many_small_bos_take_few_submissions)
{
	_cleanup_set_ struct set *set = new_set(0);

	for (unsigned int i = 0; i < 2000; i++)
		add(set, PAGE);
	make_image(set, 0);
	fill(set);
	assert_int_equal(content_save(&set->job, 1,
				      &(struct content_settings){ 4 * MIB, 1, true, true, false }),
			 0);
	assert_true(image_is_filled(set));
	/* Eight MiB in slots of one MiB. */
	assert_in_range(gpu.submissions, 1, 16);
}

/* Four slots of some 30 BOs. A load has two slots for each thread, and the BOs of the range before.
 */
TEST(bos_are_imported_while_a_slot_needs_them)
{
	static const struct content_settings little = { MIB / 2, 1, true, true, false };
	_cleanup_set_ struct set *set = new_set(0);

	for (unsigned int i = 0; i < 2000; i++)
		add(set, PAGE);
	make_image(set, 0);
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &little), 0);
	assert_true(image_is_filled(set));
	assert_in_range(gpu.most_bos, 30, 400);
	gpu.most_bos = 0;
	assert_int_equal(content_load(&set->job, 1, &little), 0);
	assert_in_range(gpu.most_bos, 30, 400);
}

TEST(eight_gpus_are_copied_at_the_same_time)
{
	struct content_job jobs[8];
	struct set *sets[8];

	for (uint32_t i = 0; i < 8; i++) {
		sets[i] = make_set_of_gpu(i, size_cases[i % 4]);
		fill(sets[i]);
		jobs[i] = sets[i]->job;
	}
	assert_int_equal(content_save(jobs, 8, &settings), 0);
	for (unsigned int i = 0; i < 8; i++) {
		assert_true(image_is_filled(sets[i]));
		free_set(sets[i]);
	}
}

TEST(gpus_without_contents_need_no_engine)
{
	struct content_job job = { .gpu_id = 1, .render_minor = 128, .image_fd = -1 };

	assert_int_equal(content_save(&job, 1, &settings), 0);
	assert_int_equal(content_load(&job, 1, &settings), 0);
	assert_int_equal(content_save(NULL, 0, &settings), 0);
	assert_int_equal(gpu.opens, 0);
}

/* The copies of the other GPUs may end early. */
TEST(the_error_names_the_gpu_that_failed)
{
	struct content_job jobs[3];
	struct set *sets[3];

	for (uint32_t i = 0; i < 3; i++) {
		sets[i] = make_set(size_cases[1]);
		sets[i]->job.gpu_id += i;
		fill(sets[i]);
		jobs[i] = sets[i]->job;
	}
	/* The second one's file is closed. */
	jobs[1].image_fd = -1;
	assert_int_equal(content_save(jobs, 3, &settings), -EBADF);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0101");
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	for (unsigned int i = 0; i < 3; i++)
		free_set(sets[i]);
}

TEST(a_short_image_fails_the_load)
{
	static const uint64_t missing[] = { 1, PAGE, 2 * MIB };

	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		_cleanup_set_ struct set *set = make_set(size_cases[7]);
		off_t size = (off_t)(HEADER + content_size(set->bos, set->num_bos) - missing[i]);

		write_image(set);
		assert_int_equal(ftruncate(set->job.image_fd, size), 0);
		unit_forget_lines();
		assert_int_equal(content_load(&set->job, 1, &settings), -EIO);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "image");
	}
}

TEST(a_dmabuf_smaller_than_its_bo_is_refused_by_index)
{
	_cleanup_set_ struct set *set = make_set((const uint64_t[]){ PAGE, 2 * PAGE, PAGE, 0 });

	(void)close(set->bos[1].dmabuf_fd);
	set->bos[1].dmabuf_fd = new_dmabuf(set->number, PAGE);
	assert_int_equal(content_save(&set->job, 1, &settings), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "BO 1 of 3");
}

TEST(an_engine_that_hangs_times_out)
{
	const struct content_settings impatient = { .staging_bytes = 1 << 20, .copy_timeout_s = 1 };
	_cleanup_set_ struct set *set = make_set(size_cases[7]);

	sim_write("fence_hang", "1");
	assert_int_equal(content_save(&set->job, 1, &impatient), -ETIME);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", strerror(ETIME));
	/* The kernel's clock may differ from the clock of the task, so the kernel gets no time. */
	assert_true(gpu.time_is_absolute);
	assert_int_equal(gpu.timeout_ns, 0);
}

/* The thread waits for a copy after it has read another range. */
TEST(an_engine_that_hangs_during_a_load_times_out)
{
	const struct content_settings impatient = { .staging_bytes = 1 << 20, .copy_timeout_s = 1 };
	_cleanup_set_ struct set *set = make_set((const uint64_t[]){ 3 * MIB, PAGE, 0 });

	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	sim_write("fence_hang", "1");
	assert_int_equal(content_load(&set->job, 1, &impatient), -ETIME);
	assert_logged("Error (amdgpu_plugin): ", "cannot load BO 0 of 2", strerror(ETIME));
}

/* The process may have been stopped before it polls. */
TEST(a_copy_that_has_ended_does_not_time_out)
{
	const struct content_settings hurried = { .staging_bytes = 1 << 20, .copy_timeout_s = 0 };
	_cleanup_set_ struct set *set = make_set(size_cases[7]);

	gpu.ends_before_poll = true;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &hurried), 0);
	assert_true(image_is_filled(set));
}

/* The thread of the next copy polls first, and starts the timer. */
TEST(a_copy_may_be_polled_before_its_submission_returns)
{
	_cleanup_set_ struct set *set = make_set(size_cases[7]);

	gpu.rings = 0x1;
	gpu.polls_before_return = true;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_true(image_is_filled(set));
}

/* The fence of a job that faulted signals too. */
TEST(a_reset_of_the_gpu_fails_the_copy)
{
	/* RESET, VRAMLOST, RESET_IN_PROGRESS. */
	static const uint32_t flags[] = { 1, 2, 0x20 };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		_cleanup_set_ struct set *set = make_set(size_cases[1]);

		fill(set);
		assert_int_equal(content_save(&set->job, 1, &settings), 0);
		gpu.context_flags = flags[i];
		assert_int_equal(content_load(&set->job, 1, &settings), -EIO);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100");
		assert_int_equal(content_save(&set->job, 1, &settings), -EIO);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100");
		gpu.context_flags = 0;
	}
}

/* RAS_CE, an error that the GPU has corrected, and RAS_UE, which may be of the past. */
TEST(memory_errors_that_a_context_reports_do_not)
{
	_cleanup_set_ struct set *set = make_set(size_cases[1]);

	gpu.context_flags = 8 | 0x10;
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
}

TEST(the_handle_of_another_gpu_is_refused)
{
	_cleanup_set_ struct set *set = make_set(size_cases[1]);

	gpu.is_another = true;
	assert_int_equal(content_save(&set->job, 1, &settings), -ENODEV);
}

/* Redirects libdrm's list of names to the test's directory. */
int __wrap_stat(const char *path, struct stat *stat);

int __wrap_stat(const char *path, struct stat *stat)
{
	if (!strcmp(path, "/usr/share/libdrm/amdgpu.ids"))
		path = unit_path("amdgpu.ids");
	return fstatat(AT_FDCWD, path, stat, 0);
}

static void make_node(const char *path, mode_t mode, uint64_t size)
{
	assert_int_equal(mknod(path, mode | 0600, 0), 0);
	if (size)
		assert_int_equal(truncate(path, (off_t)size), 0);
}

/* A restored task sees the files of its container, and libdrm reads its list to the end. */
TEST(libdrm_reads_no_endless_list_of_names)
{
	static const struct {
		const char *name, *target;
		mode_t mode;
		uint64_t size;
		int ret;
	} cases[] = {
		{ "nothing", NULL, 0, 0, 0 },
		{ "a file", NULL, S_IFREG, 16 << 10, 0 },
		{ "a link to a file", "target", S_IFREG, 16 << 10, 0 },
		{ "a link to nothing", "nowhere", 0, 0, 0 },
		{ "a link to zeros", "/dev/zero", 0, 0, -EMEDIUMTYPE },
		{ "a pipe", NULL, S_IFIFO, 0, -EMEDIUMTYPE },
		{ "a large file", NULL, S_IFREG, MIB + 1, -EMEDIUMTYPE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *path = unit_path("amdgpu.ids"), *target = cases[i].target;
		_cleanup_set_ struct set *set = make_set((const uint64_t[]){ PAGE, 0 });

		print_message("case %s\n", cases[i].name);
		unit_forget_lines();
		gpu.opens = 0;
		if (target)
			assert_int_equal(symlink(target, path), 0);
		if (cases[i].mode)
			make_node(target ? unit_path("%s", target) : path, cases[i].mode,
				  cases[i].size);
		assert_int_equal(content_save(&set->job, 1, &settings), cases[i].ret);
		if (cases[i].ret)
			assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "amdgpu.ids");
		assert_int_equal(gpu.opens, !cases[i].ret);
		(void)unlink(path);
	}
}

TEST(an_unknown_engine_is_refused)
{
	_cleanup_set_ struct set *set = make_set(size_cases[1]);

	gpu.sdma_version = 7;
	assert_int_equal(content_save(&set->job, 1, &settings), -EOPNOTSUPP);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "copy engine");
}
