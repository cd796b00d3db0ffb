// SPDX-License-Identifier: GPL-2.0-only
/* Reads the environment into a struct that nobody changes afterwards. */
#include "amdgpu_plugin_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_util.h"

/* Enough to keep a copy engine and a disk busy at once, little enough for a small container. */
#define STAGING_BYTES_DEFAULT (32ULL << 20)
/* A step is some MiB: milliseconds on a GPU that works. */
#define COPY_TIMEOUT_DEFAULT 60
/* A day; beyond that, nanoseconds would soon no longer fit. */
#define COPY_TIMEOUT_MAX 86400

static int read_switch(const char *variable, bool *ret_on)
{
	const char *text = getenv(variable);

	*ret_on = true;
	if (!text || parse_switch(text, ret_on) == 0)
		return 0;
	return log_error(-EINVAL, "option %s: \"%s\" is none of 0, 1, NO, YES", variable, text);
}

/* Where the variable is missing or 0, the value is @fallback. */
static int read_number(const char *variable, uint64_t fallback, uint64_t max, uint64_t *ret_value)
{
	const char *text = getenv(variable);
	uint64_t value = 0;
	int ret;

	ret = text ? parse_size(text, &value) : 0;
	if (ret < 0)
		return log_error(ret, "option %s: \"%s\" is no number, nor one with K, M or G",
				 variable, text);
	if (value > max)
		return log_error(-ERANGE, "option %s: \"%s\" is more than %" PRIu64, variable, text,
				 max);
	*ret_value = value ? value : fallback;
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

	ret = read_number("KFD_MAX_BUFFER_SIZE", STAGING_BYTES_DEFAULT, SIZE_MAX / 2,
			  &options.content.staging_bytes);
	if (!ret)
		ret = read_number("KFD_COPY_TIMEOUT", COPY_TIMEOUT_DEFAULT, COPY_TIMEOUT_MAX,
				  &options.content.copy_timeout_s);
	if (ret < 0)
		return ret;
	*ret_options = options;
	return 0;
}
