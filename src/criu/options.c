// SPDX-License-Identifier: GPL-2.0-only
/* Reads file, environment and CRIU's plugin options by one table into a struct that nobody changes
 * afterwards. What an option does is its users' business. */
#include "criu/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"

/* Enough to keep a copy engine and a disk busy at once, little enough for a small container. */
#define STAGING_BYTES_DEFAULT (8ULL << 20)
/* A step is some MiB: milliseconds on a GPU that works. */
#define COPY_TIMEOUT_DEFAULT 60
/* A day; beyond that, nanoseconds would soon no longer fit. */
#define COPY_TIMEOUT_MAX 86400
#define LINE_MAX_LENGTH  8192
#define KEY_MAX_LENGTH   40

enum kind {
	SWITCH,
	BYTES,
	SECONDS,
	TEXT,
};

struct row {
	const char *variable;
	enum kind kind;
	size_t offset;
};

#define SWITCH_ROW(field, variable) { #variable, SWITCH, offsetof(struct options, map.field) },
static const struct row rows[] = {
	{ "KFD_MAX_BUFFER_SIZE", BYTES, offsetof(struct options, content.staging_bytes) },
	{ "KFD_COPY_TIMEOUT", SECONDS, offsetof(struct options, content.copy_timeout_s) },
	{ "AMDGPU_SKIP_ZEROS", SWITCH, offsetof(struct options, content.skip_zeros) },
	{ "AMDGPU_CHECKSUM", SWITCH, offsetof(struct options, content.checksum) },
	{ "AMDGPU_PARALLEL_RESTORE", SWITCH, offsetof(struct options, parallel_restore) },
	{ "AMDGPU_FORCE", SWITCH, offsetof(struct options, force) },
	{ "AMDGPU_DEVICE_MAP", TEXT, offsetof(struct options, map.device_map) },
	OPTION_SWITCHES(SWITCH_ROW)
};

/* KFD_FW_VER_CHECK is fw-ver-check in the file and as an option. */
static const char *key_of(const struct row *row, char key[static KEY_MAX_LENGTH])
{
	const char *word = strchr(row->variable, '_') + 1;
	size_t i;

	for (i = 0; i < KEY_MAX_LENGTH - 1 && word[i]; i++)
		key[i] = (char)(word[i] == '_' ? '-' : tolower(word[i]));
	key[i] = '\0';
	return key;
}

static void *field_of(struct options *options, const struct row *row)
{
	return (char *)options + row->offset;
}

static int set_switch(bool *field, const char *value, const char *source)
{
	if (parse_switch(value, field) == 0)
		return 0;
	return log_error(-EINVAL, "option %s: \"%s\" is none of 0, 1, NO, YES", source, value);
}

static int set_number(uint64_t *field, uint64_t max, const char *value, const char *source)
{
	int ret = parse_size(value, field);

	if (ret < 0)
		return log_error(ret, "option %s: \"%s\" is no number, nor one with K, M or G",
				 source, value);
	if (*field > max)
		return log_error(-ERANGE, "option %s: \"%s\" is more than %" PRIu64, source, value,
				 max);
	return 0;
}

static int set_text(char **field, const char *value, const char *source)
{
	char *copy = strdup(value);

	if (!copy)
		return log_error(-ENOMEM, "option %s: cannot be kept", source);
	free(*field);
	*field = copy;
	return 0;
}

static int set_option(struct options *options, const struct row *row, const char *value,
		      const char *source)
{
	switch (row->kind) {
	case SWITCH:
		return set_switch(field_of(options, row), value, source);
	case BYTES:
		return set_number(field_of(options, row), SIZE_MAX / 2, value, source);
	case SECONDS:
		return set_number(field_of(options, row), COPY_TIMEOUT_MAX, value, source);
	case TEXT:
		return set_text(field_of(options, row), value, source);
	}
	return -EINVAL;
}

static char *strip(char *text)
{
	char *end;

	text += strspn(text, " \t\r\n");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return text;
}

static int set_by_key(struct options *options, const char *key, const char *value,
		      const char *place)
{
	char source[256], known[KEY_MAX_LENGTH];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(key_of(&rows[i], known), key))
			continue;
		(void)snprintf(source, sizeof(source), "%s: %s", place, key);
		return set_option(options, &rows[i], value, source);
	}
	return log_error(-EINVAL, "option %s: there is no option \"%s\"", place, key);
}

static int read_line(struct options *options, char *line, const char *place)
{
	char *key = strip(line), *value = strchr(key, '=');

	if (!*key || *key == '#')
		return 0;
	if (!value)
		return log_error(-EINVAL, "option %s: \"%s\" is not \"key = value\"", place, key);
	*value++ = '\0';
	return set_by_key(options, strip(key), strip(value), place);
}

static int read_file(struct options *options, const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[LINE_MAX_LENGTH], place[200];
	unsigned int number = 0;
	int ret = 0;

	/* A missing directory is a missing file. */
	if (!file && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!file)
		return log_error(-errno, "options: cannot open %s", path);
	while (!ret && fgets(line, sizeof(line), file)) {
		(void)snprintf(place, sizeof(place), "%s:%u", path, ++number);
		if (!strchr(line, '\n') && !feof(file))
			return log_error(-EINVAL, "option %s: is too long a line", place);
		ret = read_line(options, line, place);
	}
	return !ret && ferror(file) ? log_error(-EIO, "options: cannot read %s", path) : ret;
}

static int read_environment(struct options *options)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(rows); i++) {
		const char *value = getenv(rows[i].variable);

		if (value)
			ret = set_option(options, &rows[i], value, rows[i].variable);
	}
	return ret;
}

/* One of "--PLUGIN.KEY=VALUE", as CRIU gives them: those of other plugins are among them. */
static int read_argument(struct options *options, const char *argument)
{
	const char *prefix = "--" PLUGIN_NAME ".";
	const char *value = strchr(argument, '=');
	char key[KEY_MAX_LENGTH];

	if (strncmp(argument, prefix, strlen(prefix)) != 0)
		return 0;
	if (!value)
		return log_error(-EINVAL, "option --plugin-option: \"%s\" wants a value",
				 argument + 2);
	argument += strlen(prefix);
	(void)snprintf(key, sizeof(key), "%.*s", (int)(value - argument), argument);
	return set_by_key(options, key, value + 1, "--plugin-option");
}

static int read_all(const char *path, struct options *options)
{
	char **argv = NULL;
	int argc = 0;
	int ret;

	ret = read_file(options, path);
	if (!ret)
		ret = read_environment(options);
	if (!ret)
		ret = host_plugin_options(&argc, &argv);
	for (int i = 0; !ret && i < argc; i++)
		ret = read_argument(options, argv[i]);
	return ret;
}

int options_read_with_file(const char *path, struct options *ret_options)
{
	_cleanup_(options_done) struct options options = {
		.content = { .skip_zeros = true, .checksum = true },
		.parallel_restore = true,
	};
	int ret;

#define SWITCH_ON(field, variable) options.map.field = true;
	OPTION_SWITCHES(SWITCH_ON)
#undef SWITCH_ON
	ret = read_all(path, &options);
	if (ret < 0)
		return ret;
	if (!options.content.staging_bytes)
		options.content.staging_bytes = STAGING_BYTES_DEFAULT;
	if (!options.content.copy_timeout_s)
		options.content.copy_timeout_s = COPY_TIMEOUT_DEFAULT;
	*ret_options = options;
	options.map.device_map = NULL;
	return 0;
}

int options_read(struct options *ret_options)
{
	return options_read_with_file(OPTIONS_FILE, ret_options);
}

void options_done(struct options *options)
{
	free(options->map.device_map);
	*options = (struct options){ 0 };
}
