// SPDX-License-Identifier: GPL-2.0-only
/* Tests checksums of contents: what they cover, that a load compares them, and that they can be
 * off. */
#include "drm_calls.h"

#include "content_set.h"

#include <endian.h>
#include <xxhash.h>

#include "content/checksum.h"
#include "content/kfd_jobs.h"
#include "kernel/kfd.h"

static uint64_t sum_of_pages(const char *bytes, uint64_t size)
{
	uint64_t sum = 0;

	for (uint64_t page = 0; page < size / PAGE; page++)
		sum += XXH3_64bits_withSeed(bytes + page * PAGE, PAGE, page);
	return sum;
}

static void set_checksums(struct set *set)
{
	set->job.has_checksums = true;
	for (size_t bo = 0; bo < set->num_bos; bo++) {
		char *memory = map_bo(&set->bos[bo]);

		set->bos[bo].checksum = sum_of_pages(memory, set->bos[bo].size);
		(void)munmap(memory, set->bos[bo].size);
	}
}

static const uint64_t staging[] = { PAGE, 100 * PAGE, MIB, 1ull << 40 };

static struct content_settings with_staging(uint64_t bytes)
{
	struct content_settings some = settings;

	some.staging_bytes = bytes;
	return some;
}

#define TEST(name) TEST_WITH(name, drm_calls_begin, drm_calls_end)

TEST(checksums_cover_the_contents)
{
	for (size_t i = 0; i < ARRAY_SIZE(staging); i++) {
		struct content_settings some = with_staging(staging[i]);
		_cleanup_set_ struct set *set = make_set(mixed);
		uint64_t sums[8] = { 0 }, all;

		fill(set);
		assert_int_equal(content_save(&set->job, 1, &some), 0);
		assert_true(set->job.has_checksums);
		for (size_t bo = 0; bo < set->num_bos; bo++) {
			void *memory = map_bo(&set->bos[bo]);

			sums[bo] = sum_of_pages(memory, set->bos[bo].size);
			assert_int_equal(set->bos[bo].checksum, sums[bo]);
			(void)munmap(memory, set->bos[bo].size);
		}
		assert_int_equal(checksum_of_job(&set->job, &all), 0);
		assert_int_equal(all, XXH3_64bits(sums, set->num_bos * sizeof(*sums)));
	}
}

TEST(pages_are_summed_in_any_order)
{
	static const uint64_t order[] = { 3, 0, 4, 1, 2 };
	static uint64_t words[5 * 3 * PAGE / 8];
	const char *bytes = (const char *)words;
	uint64_t sum = 0;

	fill_words(words, 1, sizeof(words));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		sum += checksum_pages(bytes + order[i] * 3 * PAGE, 3 * PAGE, order[i] * 3);
	assert_int_equal(sum, checksum_pages(bytes, sizeof(words), 0));
	assert_int_equal(sum, sum_of_pages(bytes, sizeof(words)));
	assert_int_equal(checksum_pages(bytes, 0, 0), 0);
}

TEST(pages_that_changed_places_have_another_sum)
{
	static uint64_t words[2 * PAGE / 8], swapped[2 * PAGE / 8];

	fill_words(words, 1, sizeof(words));
	memcpy(swapped, words + PAGE / 8, PAGE);
	memcpy(swapped + PAGE / 8, words, PAGE);
	assert_int_not_equal(checksum_pages(words, sizeof(words), 0),
			     checksum_pages(swapped, sizeof(swapped), 0));
}

TEST(checksums_are_off_by_option)
{
	struct content_settings plain = settings;
	_cleanup_set_ struct set *set = make_set(mixed);

	plain.checksum = false;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &plain), 0);
	assert_true(image_is_filled(set));
	assert_false(set->job.has_checksums);
	/* An image without checksums loads. */
	unit_forget_lines();
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "GPU 0x0100", "not verified");
}

TEST(checksums_are_compared)
{
	for (size_t i = 0; i < ARRAY_SIZE(staging); i++) {
		struct content_settings some = with_staging(staging[i]);
		_cleanup_set_ struct set *set = make_set(mixed);

		print_message("case %zu\n", i);
		fill(set);
		set_checksums(set);
		write_image(set);
		unit_forget_lines();
		assert_int_equal(content_load(&set->job, 1, &some), 0);
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
		set->bos[5].checksum ^= 1;
		assert_int_equal(content_load(&set->job, 1, &some), -EBADMSG);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "BO 5 of 6");
	}
}

TEST(a_changed_byte_is_detected)
{
	static const struct {
		uint64_t offset;
		const char *bo;
	} cases[] = {
		{ HEADER, "BO 0 of 6" },
		{ HEADER + 3 * PAGE - 1, "BO 0 of 6" },
		{ HEADER + 3 * PAGE, "BO 1 of 6" },
		{ HEADER + 3 * PAGE + MIB, "BO 1 of 6" },
		{ HEADER + 5 * PAGE + 3 * MIB + MIB / 4 - 1, "BO 4 of 6" },
		{ HEADER + 5 * PAGE + 3 * MIB + MIB / 4, "BO 5 of 6" },
		{ HEADER + 6 * PAGE + 3 * MIB + MIB / 4 - 1, "BO 5 of 6" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t offset = cases[i].offset;
		_cleanup_set_ struct set *set = make_set(mixed);

		print_message("case byte %llu\n", (unsigned long long)offset);
		fill(set);
		set_checksums(set);
		write_image(set);
		change_byte(set, offset);
		unit_forget_lines();
		assert_int_equal(content_load(&set->job, 1, &settings), -EBADMSG);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", cases[i].bo);
	}
}

/* A BO of several ranges, the last of which is not full. */
TEST(a_changed_byte_is_detected_in_each_page)
{
	struct content_settings some = with_staging(20 * PAGE);
	_cleanup_set_ struct set *set = make_set((const uint64_t[]){ 11 * PAGE, PAGE, 0 });

	fill(set);
	assert_int_equal(content_save(&set->job, 1, &some), 0);
	for (uint64_t page = 0; page < 12; page++) {
		uint64_t offset = HEADER + page * PAGE + page * 97;

		change_byte(set, offset);
		unit_forget_lines();
		assert_int_equal(content_load(&set->job, 1, &some), -EBADMSG);
		assert_logged("Error (amdgpu_plugin): ", page < 11 ? "BO 0 of 2" : "BO 1 of 2");
		change_byte(set, offset);
	}
	assert_int_equal(content_load(&set->job, 1, &some), 0);
}

/* One GPU with one BO, whose checksums are valid. Whether a load compares them. */
static bool are_known(char *name, bool has_checksum)
{
	struct kfd_device_bucket device = { .user_gpu_id = 0x10 };
	struct kfd_bo_bucket bo = { .gpu_id = 0x10, .size = PAGE, .alloc_flags = KFD_BO_VRAM };
	struct kfd_state state = { .num_devices = 1, .devices = &device, .num_bos = 1, .bos = &bo };
	KfdDeviceEntry entry = KFD_DEVICE_ENTRY__INIT;
	KfdBoEntry bo_entry = KFD_BO_ENTRY__INIT;
	KfdDeviceEntry *entries[] = { &entry };
	KfdBoEntry *bo_entries[] = { &bo_entry };
	uint64_t sum = htole64(9);
	CriuKfd kfd = CRIU_KFD__INIT;
	struct kfd_jobs jobs;
	bool known;

	entry.gpu_id = 0x10;
	entry.has_contents_checksum = has_checksum;
	entry.contents_checksum = XXH3_64bits(&sum, sizeof(sum));
	bo_entry.checksum = 9;
	kfd.n_device_entries = kfd.n_bo_entries = 1;
	kfd.device_entries = entries;
	kfd.bo_entries = bo_entries;
	kfd.checksums = name;
	assert_int_equal(kfd_jobs_init(&state, NULL, &jobs), 0);
	assert_int_equal(kfd_jobs_set_checksums(&jobs, 5, &kfd), 0);
	known = jobs.jobs[0].has_checksums;
	assert_int_equal(jobs.jobs[0].bos[0].checksum, 9);
	bo_entry.checksum = 1;
	assert_int_equal(kfd_jobs_set_checksums(&jobs, 5, &kfd), known ? -EBADMSG : 0);
	kfd_jobs_done(&jobs);
	return known;
}

TEST(the_image_names_the_kind_of_its_checksums)
{
	char known[] = CHECKSUM_NAME, unknown[] = "xxh3-pages2";

	assert_true(are_known(known, true));
	assert_false(are_known(known, false));
	assert_false(are_known(NULL, true));
	assert_false(are_known(NULL, false));
	/* Of a newer version of this plugin: nothing is compared. */
	assert_false(are_known(unknown, true));
}
