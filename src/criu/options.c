// SPDX-License-Identifier: GPL-2.0-only
/* Reads the options from file, environment and CRIU. To add an option, add a row to a table in
 * include/criu/options.h. */
#include "criu/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"

#define LINE_MAX_LENGTH 8192
#define KEY_MAX_LENGTH  40
#define MARK            "\xef\xbb\xbf"

enum kind {
	SWITCH,
	BYTES,
	SIZE,
	SECONDS,
	WAIT,
	TEXT,
};

static const uint64_t max_numbers[] = {
	[BYTES] = SIZE_MAX / 2,
	/* A day. In nanoseconds, the time must fit 64 bits. */
	[SECONDS] = 86400,
	[WAIT] = 3600,
};

static const struct row {
	const char *variable;
	enum kind kind;
	size_t offset;
} rows[] = {
#define MAP_ROW(field, variable, kind, value) \
	{ #variable, kind, offsetof(struct options, map.field) },
#define CONTENT_ROW(field, variable, kind, value) \
	{ #variable, kind, offsetof(struct options, content.field) },
#define OTHER_ROW(field, variable, kind, value) \
	{ #variable, kind, offsetof(struct options, field) },
	MAP_OPTIONS(MAP_ROW) CONTENT_OPTIONS(CONTENT_ROW) OTHER_OPTIONS(OTHER_ROW)
};

static const struct options defaults = {
#define MAP_DEFAULT(field, variable, kind, value)     .map.field = value,
#define CONTENT_DEFAULT(field, variable, kind, value) .content.field = value,
#define OTHER_DEFAULT(field, variable, kind, value)   .field = value,
	MAP_OPTIONS(MAP_DEFAULT) CONTENT_OPTIONS(CONTENT_DEFAULT) OTHER_OPTIONS(OTHER_DEFAULT)
};

static const char *to_key(const char *word, char key[static KEY_MAX_LENGTH])
{
	size_t i;

	for (i = 0; i < KEY_MAX_LENGTH - 1 && word[i]; i++)
		key[i] = (char)(word[i] == '_' ? '-' : tolower((unsigned char)word[i]));
	key[i] = '\0';
	return key;
}

static const char *key_of(const struct row *row, char key[static KEY_MAX_LENGTH])
{
	return to_key(strchr(row->variable, '_') + 1, key);
}

static void *field_of(const struct options *options, const struct row *row)
{
	return (char *)options + row->offset;
}

static int set_switch(bool *field, const char *value, const char *source)
{
	if (parse_switch(value, field) == 0)
		return 0;
	return log_error(-EINVAL, "option %s: \"%s\" is not a switch; use 1, YES, 0 or NO", source,
			 value);
}

static int set_number(uint64_t *field, const struct row *row, const char *value, const char *source)
{
	uint64_t max = max_numbers[row->kind];
	int ret = parse_size(value, field);

	if (ret < 0)
		return log_error(ret,
				 "option %s: \"%s\" is not a number, such as 64, 64K, 64M or 64G",
				 source, value);
	if (*field > max)
		return log_error(-ERANGE, "option %s: \"%s\" is more than the maximum, %" PRIu64,
				 source, value, max);
	if (!*field && row->kind != WAIT)
		*field = *(const uint64_t *)field_of(&defaults, row);
	return 0;
}

static int parse_share(const char *value, uint64_t *ret_share)
{
	size_t digits = strspn(value, "0123456789");
	unsigned long percent = strtoul(value, NULL, 10);

	if (!digits || strcmp(value + digits, "%") != 0)
		return -EINVAL;
	if (!percent || percent > OPTION_SHARE_MAX)
		return -ERANGE;
	*ret_share = OPTION_SHARE | percent;
	return 0;
}

/* All sizes have one error line, because they have two forms. */
static int set_size(uint64_t *field, const char *value, const char *source)
{
	bool is_share = strchr(value, '%') != NULL;
	int ret = is_share ? parse_share(value, field) : parse_size(value, field);

	if (!ret && !is_share && *field > SIZE_MAX / 2)
		ret = -ERANGE;
	if (ret < 0)
		return log_error(
			ret,
			"option %s: \"%s\" is neither a size, such as 16G, nor a part of the free memory, from 1%% to %u%%",
			source, value, OPTION_SHARE_MAX);
	return 0;
}

static int set_text(char **field, const char *value, const char *source)
{
	char *copy = strdup(value);

	if (!copy)
		return log_error(-ENOMEM, "option %s: cannot store the value", source);
	free(*field);
	*field = copy;
	return 0;
}

static int set_option(struct options *options, const struct row *row, const char *value,
		      const char *source)
{
	void *field = field_of(options, row);

	switch (row->kind) {
	case SWITCH:
		return set_switch(field, value, source);
	case SIZE:
		return set_size(field, value, source);
	case BYTES:
	case SECONDS:
	case WAIT:
		return set_number(field, row, value, source);
	case TEXT:
		return set_text(field, value, source);
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

/* Users write the variable's name for the key, or the key in upper case or with underscores. */
static int refuse_key(const char *key, const char *place)
{
	char written[KEY_MAX_LENGTH], variable[KEY_MAX_LENGTH], known[KEY_MAX_LENGTH];

	(void)to_key(key, written);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!strcmp(key_of(&rows[i], known), written) ||
		    !strcmp(to_key(rows[i].variable, variable), written))
			return log_error(-EINVAL,
					 "option %s: there is no option \"%s\"; use \"%s\"", place,
					 key, known);
	}
	return log_error(-EINVAL, "option %s: there is no option \"%s\"", place, key);
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
	return refuse_key(key, place);
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

/* @line is no whole line. */
static int refuse_line(const char *line, const char *place)
{
	if (strlen(line) < LINE_MAX_LENGTH - 1)
		return log_error(-EINVAL, "option %s: the line has a zero byte; use plain text",
				 place);
	return log_error(-EINVAL, "option %s: the line is too long; use at most %d bytes", place,
			 LINE_MAX_LENGTH - 1);
}

static int read_file(struct options *options, const char *path)
{
	_cleanup_fclose_ FILE *file = stream_open(path);
	char line[LINE_MAX_LENGTH], place[200];
	unsigned int number = 0;
	int ret = 0;

	/* ENOTDIR: the directory is missing. */
	if (!file && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!file)
		return log_error(-errno, "options: cannot open %s", path);
	while (!ret && fgets(line, sizeof(line), file)) {
		(void)snprintf(place, sizeof(place), "%s:%u", path, ++number);
		if (!strchr(line, '\n') && !feof(file))
			return refuse_line(line, place);
		/* Some editors begin a file with a byte order mark. */
		ret = read_line(options, line + (number == 1 && !strncmp(line, MARK, 3) ? 3 : 0),
				place);
	}
	return !ret && ferror(file) ? log_error(-errno, "options: cannot read %s", path) : ret;
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

/* Parses an argument "--PLUGIN.KEY=VALUE", and ignores those of other plugins. */
static int read_argument(struct options *options, const char *argument)
{
	const char *prefix = "--" PLUGIN_NAME ".";
	const char *value = strchr(argument, '=');
	char key[KEY_MAX_LENGTH];

	if (strncmp(argument, prefix, strlen(prefix)) != 0)
		return 0;
	if (!value)
		return log_error(-EINVAL,
				 "option --plugin-option: \"%s\" has no value; add \"=VALUE\"",
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
	_cleanup_(options_done) struct options options = defaults;
	int ret = read_all(path, &options);

	if (ret < 0)
		return ret;
	options.map.force = options.force;
	*ret_options = take_struct(options);
	return 0;
}

int options_read(struct options *ret_options)
{
	return options_read_with_file(OPTIONS_FILE, ret_options);
}

void options_done(struct options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].kind == TEXT)
			free(*(char **)field_of(options, &rows[i]));
	}
	*options = (struct options){ 0 };
}
