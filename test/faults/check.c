// SPDX-License-Identifier: GPL-2.0-only
/* Checks the host's output and exit status. */
#include "check.h"

#include <string.h>

/* Lines of test/native/host.c: before the second dump, and about the first. */
#define SECOND_DUMP "host: dumps again"
#define FIRST_DUMP  "first "
/* The plugin's line if a dump fails where CRIU asks for no result any more (finish_dump()). */
#define ENDS_CRIU "dump: failed at its end, so CRIU exits here"

void check_add(struct text *wrong, const char *format, ...)
{
	va_list arguments;

	if (wrong->length)
		text_append(wrong, "; ", 2);
	va_start(arguments, format);
	text_vadd(wrong, format, arguments);
	va_end(arguments);
}

/* Adds the left resources, and the simulator's complaints. Returns whether there was a first dump,
 * which failed. */
static bool check_output(const char *out, const struct rules *rules, struct text *wrong)
{
	bool first = false;
	size_t length;

	for (const char *line; (line = piece_next(&out, "\n", &length));) {
		if (starts_with(line, FIRST_DUMP))
			first = true;
		else if ((starts_with(line, "left pages") && rules->may_leave_pages) ||
			 (starts_with(line, "left image") && rules->may_leave_images))
			continue;
		else if (starts_with(line, "left "))
			check_add(wrong, "%.*s", (int)length, line);
		else if (starts_with(line, "violations ") &&
			 strncmp(line, "violations 0", length) != 0)
			check_add(wrong, "the simulator found a %.*s", (int)length, line);
	}
	return first;
}

/* Whether the plugin has printed the cause, and before the second dump. */
static bool has_error_line(const char *err)
{
	const char *error = strstr(err, "Error (amdgpu_plugin):"),
		   *second = strstr(err, SECOND_DUMP);

	return error && (!second || error < second);
}

bool check_outcome(const struct outcome *outcome, const struct rules *rules, struct text *wrong)
{
	int status = outcome->status;
	bool again = rules->dumps_again && !strstr(text_string(&outcome->err), ENDS_CRIU);
	bool first, failed;

	first = check_output(text_string(&outcome->out), rules, wrong);
	failed = again ? first : !outcome->ended || status != 0;
	if (!outcome->ended) {
		check_add(wrong, "does not end");
		return failed;
	}
	if (status != 0 && status != 1) {
		check_add(wrong, "ends with status %d", status);
		return failed;
	}
	if (again && status)
		check_add(wrong, first ? "the second dump fails" : "fails with no second dump");
	if (failed && !has_error_line(text_string(&outcome->err)))
		check_add(wrong, "fails without an error line");
	return failed;
}
