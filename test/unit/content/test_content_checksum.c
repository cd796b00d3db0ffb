// SPDX-License-Identifier: GPL-2.0-only
/* Tests checksums of contents: what they cover, that a load compares them, and that they can be
 * off. */
#include "drm_calls.h"

#include "content_set.h"

#include <xxhash.h>

static void checksums_cover_the_contents(void **state)
{
	static const uint64_t staging[] = { PAGE, 1 << 20, 1ull << 40 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(staging); i++) {
		struct content_settings some = settings;
		struct set *set = make_set(mixed);
		uint64_t sums[8] = { 0 }, all;

		some.staging_bytes = staging[i];
		fill(set);
		assert_int_equal(content_save(&set->job, 1, &some), 0);
		assert_true(set->job.has_checksums);
		for (size_t bo = 0; bo < set->num_bos; bo++) {
			void *memory = map_bo(&set->bos[bo]);

			sums[bo] = XXH3_64bits(memory, set->bos[bo].size);
			assert_int_equal(set->bos[bo].checksum, sums[bo]);
			(void)munmap(memory, set->bos[bo].size);
		}
		assert_int_equal(content_checksum(&set->job, &all), 0);
		assert_int_equal(all, XXH3_64bits(sums, set->num_bos * sizeof(*sums)));
		free_set(set);
	}
}

static void checksums_are_off_by_option(void **state)
{
	struct content_settings plain = settings;
	struct set *set = make_set(mixed);

	(void)state;
	plain.checksum = false;
	fill(set);
	assert_int_equal(content_save(&set->job, 1, &plain), 0);
	assert_true(image_is_filled(set));
	assert_false(set->job.has_checksums);
	/* An image without checksums loads. */
	unit_forget_lines();
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "GPU 0x0100", "not verified");
	free_set(set);
}

static void a_changed_byte_is_detected(void **state)
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

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct set *set = make_set(mixed);
		char byte;

		print_message("case byte %llu\n", (unsigned long long)cases[i].offset);
		fill(set);
		assert_int_equal(content_save(&set->job, 1, &settings), 0);
		assert_int_equal(pread(set->job.image_fd, &byte, 1, (off_t)cases[i].offset), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(set->job.image_fd, &byte, 1, (off_t)cases[i].offset), 1);
		unit_forget_lines();
		assert_int_equal(content_load(&set->job, 1, &settings), -EBADMSG);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", cases[i].bo);
		free_set(set);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, drm_calls_begin, drm_calls_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(checksums_cover_the_contents),
		TEST(checksums_are_off_by_option),
		TEST(a_changed_byte_is_detected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
