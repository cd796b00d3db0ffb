// SPDX-License-Identifier: GPL-2.0-only
/* Reads the environment into a struct that nobody changes afterwards. */
#include "amdgpu_plugin_options.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_util.h"

/* Enough to keep a copy engine and a disk busy at once, little enough for a small container. */
#define STAGING_BYTES_DEFAULT (32ULL << 20)
/* A step is some MiB: milliseconds on a GPU that works. */
#define COPY_TIMEOUT_DEFAULT 60
#define COPY_TIMEOUT_MAX     86400

static int read_switch(const char *variable, bool *ret_on)
{
	const char *text = getenv(variable);

	*ret_on = true;
	if (!text || parse_switch(text, ret_on) == 0)
		return 0;
	return log_error(-EINVAL, "option %s: \"%s\" is none of 0, 1, NO, YES", variable, text);
}

static int read_number(const char *variable, uint64_t *ret_value)
{
	const char *text = getenv(variable);
	int ret;

	*ret_value = 0;
	ret = text ? parse_size(text, ret_value) : 0;
	if (ret < 0)
		return log_error(ret, "option %s: \"%s\" is no number, nor one with K, M or G",
				 variable, text);
	return 0;
}

int options_read(struct options *ret_options)
{
	struct options options = { 0 };
	int ret;

#define READ_SWITCH(field, variable)                   \
	ret = read_switch(#variable, &options.field);  \
	if (ret < 0)                                   \
		return ret;
	OPTION_SWITCHES(READ_SWITCH)
#undef READ_SWITCH

	ret = read_number("KFD_MAX_BUFFER_SIZE", &options.content.staging_bytes);
	if (ret < 0)
		return ret;
	if (!options.content.staging_bytes)
		options.content.staging_bytes = STAGING_BYTES_DEFAULT;

	ret = read_number("KFD_COPY_TIMEOUT", &options.content.copy_timeout_s);
	if (ret < 0)
		return ret;
	if (!options.content.copy_timeout_s)
		options.content.copy_timeout_s = COPY_TIMEOUT_DEFAULT;
	if (options.content.copy_timeout_s > COPY_TIMEOUT_MAX)
		return log_error(-EINVAL, "option KFD_COPY_TIMEOUT: more than %d seconds",
				 COPY_TIMEOUT_MAX);

	*ret_options = options;
	return 0;
}
