// SPDX-License-Identifier: GPL-2.0-only
/* Options in environment variables: their values, their defaults, and the errors of invalid values.
 * test_map_options.c tests the file and CRIU's --plugin-option. */
#include "host.h"

#include "criu/options.h"

static const struct {
	const char *variable;
	size_t offset;
} switches[] = {
	{ "KFD_FW_VER_CHECK", offsetof(struct options, map.check_fw_version) },
	{ "KFD_SDMA_FW_VER_CHECK", offsetof(struct options, map.check_sdma_fw) },
	{ "KFD_CACHES_COUNT_CHECK", offsetof(struct options, map.check_caches) },
	{ "KFD_NUM_GWS_CHECK", offsetof(struct options, map.check_num_gws) },
	{ "KFD_VRAM_SIZE_CHECK", offsetof(struct options, map.check_vram_size) },
	{ "KFD_NUMA_CHECK", offsetof(struct options, map.check_numa) },
	{ "KFD_XGMI_CHECK", offsetof(struct options, map.check_xgmi) },
	{ "KFD_CAPABILITY_CHECK", offsetof(struct options, map.check_capability) },
	{ "AMDGPU_SKIP_ZEROS", offsetof(struct options, content.skip_zeros) },
	{ "AMDGPU_PARALLEL_DUMP", offsetof(struct options, parallel_dump) },
	{ "AMDGPU_PARALLEL_RESTORE", offsetof(struct options, parallel_restore) },
	{ "AMDGPU_CHECKSUM", offsetof(struct options, content.checksum) },
};

/* Switches that are off by default. */
static const struct {
	const char *variable;
	size_t offset;
} off_switches[] = {
	{ "AMDGPU_FORCE", offsetof(struct options, force) },
	{ "AMDGPU_FORCE", offsetof(struct options, map.force) },
};

static const char *const numbers[] = { "KFD_MAX_BUFFER_SIZE", "KFD_COPY_TIMEOUT" };

static int clean_environment(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		(void)unsetenv(switches[i].variable);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		(void)unsetenv(numbers[i]);
	return unit_begin(state);
}

static bool value_of(const struct options *options, size_t row)
{
	return *(const bool *)((const char *)options + switches[row].offset);
}

static int read_with(const char *variable, const char *value, struct options *options)
{
	int ret;

	assert_int_equal(setenv(variable, value, 1), 0);
	ret = options_read(options);
	(void)unsetenv(variable);
	return ret;
}

#define TEST(name) TEST_WITH(name, clean_environment, unit_end)

TEST(force_is_off_by_default)
{
	struct options options;

	for (size_t i = 0; i < ARRAY_SIZE(off_switches); i++) {
		const bool *value = (const void *)((const char *)&options + off_switches[i].offset);

		(void)unsetenv(off_switches[i].variable);
		assert_int_equal(options_read(&options), 0);
		assert_false(*value);
		assert_int_equal(read_with(off_switches[i].variable, "yes", &options), 0);
		assert_true(*value);
	}
}

TEST(each_switch_turns_off_its_own_check_only)
{
	static const char *const off[] = { "0", "NO", "no", "nO" };
	static const char *const on[] = { "1", "YES", "yes", "Yes" };

	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		struct options options;

		print_message("case %s\n", switches[i].variable);
		for (size_t j = 0; j < ARRAY_SIZE(off); j++) {
			assert_int_equal(read_with(switches[i].variable, off[j], &options), 0);
			for (size_t k = 0; k < ARRAY_SIZE(switches); k++)
				assert_int_equal(value_of(&options, k), k != i);
		}
		for (size_t j = 0; j < ARRAY_SIZE(on); j++) {
			assert_int_equal(read_with(switches[i].variable, on[j], &options), 0);
			assert_true(value_of(&options, i));
		}
	}
}

TEST(an_invalid_switch_is_refused_with_variable_and_value)
{
	static const char *const bad[] = { "maybe", "2", "", " 0", "off" };

	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(bad); j++) {
			struct options options;
			char quoted[32];

			unit_forget_lines();
			(void)snprintf(quoted, sizeof(quoted), "\"%s\"", bad[j]);
			assert_int_equal(read_with(switches[i].variable, bad[j], &options),
					 -EINVAL);
			assert_logged("Error (amdgpu_plugin): ", switches[i].variable, quoted);
			assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
		}
	}
}

TEST(the_copy_timeout_can_be_set)
{
	struct options standard, options;

	assert_int_equal(options_read(&standard), 0);
	assert_int_equal(read_with("KFD_COPY_TIMEOUT", "5", &options), 0);
	assert_int_equal(options.content.copy_timeout_s, 5);
	assert_int_equal(read_with("KFD_COPY_TIMEOUT", "0", &options), 0);
	assert_int_equal(options.content.copy_timeout_s, standard.content.copy_timeout_s);
}

TEST(memory_for_a_dump_is_a_size_or_a_part_of_the_free_memory)
{
	struct options options;

	assert_int_equal(options_read(&options), 0);
	assert_int_equal(options.dump_memory, 0);
	assert_int_equal(read_with("AMDGPU_DUMP_MEMORY", "0", &options), 0);
	assert_int_equal(options.dump_memory, 0);
	assert_int_equal(read_with("AMDGPU_DUMP_MEMORY", "16G", &options), 0);
	assert_int_equal(options.dump_memory, 16ULL << 30);
	assert_int_equal(read_with("AMDGPU_DUMP_MEMORY", "1%", &options), 0);
	assert_int_equal(options.dump_memory, OPTION_SHARE | 1);
	assert_int_equal(read_with("AMDGPU_DUMP_MEMORY", "90%", &options), 0);
	assert_int_equal(options.dump_memory, OPTION_SHARE | 90);
}

TEST(a_wait_of_zero_is_no_wait)
{
	struct options options;

	assert_int_equal(options_read(&options), 0);
	assert_int_equal(options.drain_s, 10);
	assert_int_equal(read_with("AMDGPU_DRAIN", "0", &options), 0);
	assert_int_equal(options.drain_s, 0);
	assert_int_equal(read_with("AMDGPU_DRAIN", "3600", &options), 0);
	assert_int_equal(options.drain_s, 3600);
}

TEST(an_invalid_number_is_refused_with_variable_and_value)
{
	static const struct {
		const char *variable;
		const char *value;
	} cases[] = {
		{ "KFD_MAX_BUFFER_SIZE", "" },
		{ "KFD_MAX_BUFFER_SIZE", "lots" },
		{ "KFD_MAX_BUFFER_SIZE", "-1" },
		{ "KFD_MAX_BUFFER_SIZE", "1T" },
		{ "KFD_MAX_BUFFER_SIZE", "99999999999999999999" },
		{ "KFD_MAX_BUFFER_SIZE", "99999999999G" },
		{ "KFD_COPY_TIMEOUT", "soon" },
		{ "KFD_COPY_TIMEOUT", "1.5" },
		/* In nanoseconds, these do not fit 64 bits. */
		{ "KFD_COPY_TIMEOUT", "18446744073709551615" },
		{ "KFD_COPY_TIMEOUT", "18446744073" },
		{ "AMDGPU_DRAIN", "" },
		{ "AMDGPU_DRAIN", "-1" },
		{ "AMDGPU_DRAIN", "long" },
		{ "AMDGPU_DRAIN", "3601" },
		{ "AMDGPU_DUMP_MEMORY", "" },
		{ "AMDGPU_DUMP_MEMORY", "half" },
		{ "AMDGPU_DUMP_MEMORY", "%" },
		{ "AMDGPU_DUMP_MEMORY", "0%" },
		{ "AMDGPU_DUMP_MEMORY", "91%" },
		{ "AMDGPU_DUMP_MEMORY", "50 %" },
		{ "AMDGPU_DUMP_MEMORY", "50%G" },
		{ "AMDGPU_DUMP_MEMORY", "-50%" },
		{ "AMDGPU_DUMP_MEMORY", "0.5%" },
		{ "AMDGPU_DUMP_MEMORY", "18446744073709551666%" },
		{ "AMDGPU_DUMP_MEMORY", "9223372036854775858" },
		{ "KFD_MAX_BUFFER_SIZE", "50%" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options options = { .content.staging_bytes = 42 };

		print_message("case %s=%s\n", cases[i].variable, cases[i].value);
		unit_forget_lines();
		assert_true(read_with(cases[i].variable, cases[i].value, &options) < 0);
		assert_logged("Error (amdgpu_plugin): ", cases[i].variable, cases[i].value);
		assert_int_equal(options.content.staging_bytes, 42);
	}
}
