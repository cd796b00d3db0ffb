// SPDX-License-Identifier: GPL-2.0-only
/* Options from the file and from CRIU, and the precedence of the sources. test_options.c tests
 * environment variables alone. */
#include "host.h"

#include <ctype.h>

#include "criu/options.h"

/* The function that CRIU 4.3 exports. */
int criu_plugin_get_options(int *argc, char ***argv);

static struct {
	char *argv[8];
	int argc;
	int ret;
} given;

int criu_plugin_get_options(int *argc, char ***argv)
{
	*argc = given.argc;
	*argv = given.argv;
	return given.ret;
}

static const char *const variables[] = {
	"KFD_FW_VER_CHECK",     "KFD_SDMA_FW_VER_CHECK", "KFD_CACHES_COUNT_CHECK",
	"KFD_NUM_GWS_CHECK",    "KFD_VRAM_SIZE_CHECK",   "KFD_NUMA_CHECK",
	"KFD_CAPABILITY_CHECK", "KFD_MAX_BUFFER_SIZE",   "KFD_COPY_TIMEOUT",
	"AMDGPU_DEVICE_MAP",    "KFD_XGMI_CHECK",
};

static int begin(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		(void)unsetenv(variables[i]);
	memset(&given, 0, sizeof(given));
	return unit_begin(state);
}

static void give(const char *first, const char *second)
{
	given.argv[0] = (char *)"amdgpu_plugin";
	given.argv[1] = (char *)first;
	given.argv[2] = (char *)second;
	given.argc = 1 + !!first + !!second;
}

static int read_file(const char *text, struct options *options)
{
	unit_forget_lines();
	unit_print("plugin.conf", "%s", text);
	return options_read_with_file(unit_path("plugin.conf"), options);
}

#define TEST(name) TEST_WITH(name, begin, unit_end)

TEST(a_missing_file_is_no_error)
{
	_cleanup_(options_done) struct options options = { 0 };

	assert_int_equal(options_read_with_file(unit_path("none/plugin.conf"), &options), 0);
	assert_true(options.map.check_numa);
	assert_null(options.map.device_map);
}

TEST(the_file_may_have_each_option)
{
	_cleanup_(options_done) struct options options = { 0 };

	assert_int_equal(read_file("# What an admin has written.\n"
				   "\n"
				   "fw-ver-check = 0\n"
				   "  sdma-fw-ver-check=NO\n"
				   "caches-count-check =no  \n"
				   "num-gws-check\t=\t0\n"
				   "vram-size-check = 0\r\n"
				   "numa-check = 0\n"
				   "xgmi-check = 0\n"
				   "capability-check = 0\n"
				   "max-buffer-size = 2M\n"
				   "copy-timeout = 7\n"
				   "device-map = 0x1=0x2, 0x3=0x4\n"
				   "fw-ver-check = 1",
				   &options),
			 0);
	assert_false(options.map.check_sdma_fw || options.map.check_caches ||
		     options.map.check_num_gws || options.map.check_vram_size ||
		     options.map.check_numa || options.map.check_xgmi ||
		     options.map.check_capability);
	assert_true(options.map.check_fw_version);
	assert_int_equal(options.content.staging_bytes, 2 << 20);
	assert_int_equal(options.content.copy_timeout_s, 7);
	assert_string_equal(options.map.device_map, "0x1=0x2, 0x3=0x4");
}

TEST(an_error_in_the_file_is_logged_with_its_line)
{
	static const struct {
		const char *text;
		const char *place;
		const char *problem;
	} cases[] = {
		{ "numa-check = maybe\n", "plugin.conf:1", "\"maybe\"" },
		{ "\n\nnuma-check\n", "plugin.conf:3", "\"numa-check\"" },
		{ "#\nnuma = 0\n", "plugin.conf:2", "\"numa\"" },
		{ "KFD_NUMA_CHECK = 0\n", "plugin.conf:1",
		  "no option \"KFD_NUMA_CHECK\"; use \"numa-check\"" },
		{ "Fw_Ver_Check = 0\n", "plugin.conf:1",
		  "no option \"Fw_Ver_Check\"; use \"fw-ver-check\"" },
		{ "amdgpu-force = 1\n", "plugin.conf:1", "\"amdgpu-force\"; use \"force\"" },
		{ "KFD_FORCE = 1\n", "plugin.conf:1", "no option \"KFD_FORCE\": " },
		{ "copy-timeout = 1e9\n", "plugin.conf:1", "\"1e9\"" },
		{ "max-buffer-size =\n", "plugin.conf:1", "\"\"" },
		{ "= 0\n", "plugin.conf:1", "\"\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options options = { .content.staging_bytes = 42 };

		print_message("case %s\n", cases[i].text);
		assert_int_equal(read_file(cases[i].text, &options), -EINVAL);
		assert_logged("Error (amdgpu_plugin): ", cases[i].place, cases[i].problem);
		assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
		assert_int_equal(options.content.staging_bytes, 42);
	}
}

TEST(an_unreadable_file_is_an_error)
{
	struct options options;
	_cleanup_free_ char *line = malloc(100000);

	assert_true(options_read_with_file(unit_path("."), &options) < 0);
	/* Container runtimes make a directory of a mount's source that is missing. */
	assert_logged("Error (amdgpu_plugin): ", "cannot read", "Is a directory");
	assert_non_null(line);
	memset(line, 'x', 99999);
	line[99999] = '\0';
	assert_int_equal(read_file(line, &options), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "plugin.conf:1", "too long");
}

TEST(a_file_may_begin_with_a_byte_order_mark)
{
	_cleanup_(options_done) struct options options = { 0 };

	assert_int_equal(read_file("\xef\xbb\xbf# comment\nnuma-check = 0\n", &options), 0);
	assert_false(options.map.check_numa);
	assert_int_equal(read_file("\xef\xbb\xbfxgmi-check = 0\r\n", &options), 0);
	assert_false(options.map.check_xgmi);
	assert_int_equal(read_file("\n\xef\xbb\xbfxgmi-check = 0\n", &options), -EINVAL);
}

TEST(a_zero_byte_in_the_file_is_named)
{
	struct options options;

	unit_write("plugin.conf", "f\0o\0r\0c\0e\0=\0001\0\n\0", 16);
	assert_int_equal(options_read_with_file(unit_path("plugin.conf"), &options), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "plugin.conf:1: ", "has a zero byte");
}

TEST(the_environment_overrides_the_file)
{
	_cleanup_(options_done) struct options options = { 0 };

	(void)setenv("KFD_NUMA_CHECK", "1", 1);
	(void)setenv("KFD_COPY_TIMEOUT", "9", 1);
	(void)setenv("AMDGPU_DEVICE_MAP", "0x5=0x6", 1);
	assert_int_equal(
		read_file("numa-check = 0\ncopy-timeout = 7\nfw-ver-check = 0\ndevice-map = 1=2\n",
			  &options),
		0);
	assert_true(options.map.check_numa);
	assert_false(options.map.check_fw_version);
	assert_int_equal(options.content.copy_timeout_s, 9);
	assert_string_equal(options.map.device_map, "0x5=0x6");
}

TEST(options_of_criu_override_both)
{
	_cleanup_(options_done) struct options options = { 0 };

	(void)setenv("KFD_NUMA_CHECK", "1", 1);
	give("--amdgpu_plugin.numa-check=0", "--amdgpu_plugin.device-map=0x7=0x8,0x9=0xa");
	assert_int_equal(
		read_file("numa-check = 1\ndevice-map = 1=2\ncopy-timeout = 7\n", &options), 0);
	assert_false(options.map.check_numa);
	assert_int_equal(options.content.copy_timeout_s, 7);
	assert_string_equal(options.map.device_map, "0x7=0x8,0x9=0xa");
}

TEST(options_of_other_plugins_are_ignored)
{
	_cleanup_(options_done) struct options options = { 0 };

	give("--cuda_plugin.numa-check=maybe", "--amdgpu_plugin2.numa-check");
	assert_int_equal(read_file("", &options), 0);
	assert_true(options.map.check_numa);
	options_done(&options);
	give("--other.x=amdgpu_plugin.numa-check=0", "--amdgpu_plugin.copy-timeout=11");
	assert_int_equal(read_file("", &options), 0);
	assert_true(options.map.check_numa);
	assert_int_equal(options.content.copy_timeout_s, 11);
	options_done(&options);
	give(NULL, NULL);
	assert_int_equal(read_file("", &options), 0);
}

TEST(wrong_options_of_criu_are_refused_and_quoted)
{
	static const struct {
		const char *argument;
		const char *problem;
	} cases[] = {
		{ "--amdgpu_plugin.numa-check=maybe", "\"maybe\"" },
		{ "--amdgpu_plugin.numa-check", "has no value" },
		{ "--amdgpu_plugin.no-such=1", "no option \"no-such\"" },
		{ "--amdgpu_plugin.=1", "no option \"\"" },
		{ "--amdgpu_plugin.a-key-that-is-longer-than-any-key-that-there-is=1",
		  "no option" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options options;

		print_message("case %s\n", cases[i].argument);
		give(cases[i].argument, NULL);
		assert_int_equal(read_file("", &options), -EINVAL);
		assert_logged("Error (amdgpu_plugin): ", "--plugin-option", cases[i].problem);
	}
	give(NULL, NULL);
	given.ret = -1;
	assert_int_equal(read_file("", &(struct options){ 0 }), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "CRIU");
}

static const char *const keyed_variables[] = {
#define VARIABLE(field, variable, kind, value) #variable,
	MAP_OPTIONS(VARIABLE) CONTENT_OPTIONS(VARIABLE) OTHER_OPTIONS(VARIABLE)
};

/* Copies the example to @text, with the mark of a comment removed from the lines that set options.
 */
static void read_example(size_t size, char text[size])
{
	_cleanup_fclose_ FILE *file = fopen("docs/examples/amdgpu_plugin.conf", "re");
	size_t used = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		bool sets = line[0] == '#' && line[1] != ' ';
		int written = snprintf(text + used, size - used, "%s", line + sets);

		assert_true(written >= 0 && (size_t)written < size - used);
		used += (size_t)written;
	}
}

TEST(the_example_sets_each_option_to_its_default)
{
	char text[4096] = "", line[64];
	_cleanup_(options_done) struct options options = { 0 };

	read_example(sizeof(text), text);
	for (size_t i = 0; i < ARRAY_SIZE(keyed_variables); i++) {
		(void)snprintf(line, sizeof(line), "\n%s = ", strchr(keyed_variables[i], '_') + 1);
		for (char *c = line; *c; c++)
			*c = *c == '_' ? '-' : (char)tolower(*c);
		print_message("key %s\n", line + 1);
		assert_non_null(strstr(text, line));
	}
	assert_int_equal(read_file(text, &options), 0);
	/* Off by default; the example has a size. */
	assert_int_equal(options.dump_memory, 16ULL << 30);
	options.dump_memory = 0;
	assert_string_equal(options.base, "../one");
	free(take_ptr(&options.base));
#define SAME(group, field, value)                  assert_int_equal((uintptr_t)options.group field, value)
#define SAME_MAP(field, variable, kind, value)     SAME(map., field, value);
#define SAME_CONTENT(field, variable, kind, value) SAME(content., field, value);
#define SAME_OTHER(field, variable, kind, value)   SAME(, field, value);
	MAP_CHECKS(SAME_MAP)
	CONTENT_OPTIONS(SAME_CONTENT)
	OTHER_OPTIONS(SAME_OTHER)
	assert_non_null(options.map.device_map);
}
