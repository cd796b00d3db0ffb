// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the options. The first byte selects the file, CRIU's --plugin-option or a variable. */
#include "fuzz.h"

#include <string.h>

#include "criu/options.h"

int criu_plugin_get_options(int *argc, char ***argv);

static char *argument;

int criu_plugin_get_options(int *argc, char ***argv)
{
	*argc = argument != NULL;
	*argv = &argument;
	return 0;
}

static int read_from_argument(struct options *options)
{
	return options_read_with_file("/nowhere", options);
}

static int read_from_file(const char *text, size_t size, struct options *options)
{
	unit_write("conf", text, size);
	return options_read_with_file(unit_path("conf"), options);
}

static int read_from_variable(const char *text, struct options *options)
{
	static const char *const variables[] = { "KFD_MAX_BUFFER_SIZE", "KFD_COPY_TIMEOUT",
						 "AMDGPU_SKIP_ZEROS", "AMDGPU_DEVICE_MAP" };
	const char *variable = variables[(uint8_t)text[0] % 4];
	int ret;

	(void)setenv(variable, text[0] ? text + 1 : text, 1);
	ret = options_read_with_file("/nowhere", options);
	(void)unsetenv(variable);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = { bytes, size };
	uint64_t kind = fuzz_take_number(&input, 1) % 3;
	size_t length = input.size;
	struct options options = { 0 };
	char *text;
	int ret;

	fuzz_begin();
	text = fuzz_take_text(&input);
	argument = kind == 1 ? text : NULL;
	if (kind == 0)
		ret = read_from_file(text, length, &options);
	else
		ret = kind == 1 ? read_from_argument(&options) : read_from_variable(text, &options);
	promise(unit_count_errors() == (ret < 0));
	promise(ret < 0 ||
		(options.content.copy_timeout_s && options.content.copy_timeout_s <= 86400));
	if (!ret)
		options_done(&options);
	free(text);
	fuzz_end();
	return 0;
}
