// SPDX-License-Identifier: GPL-2.0-only
/* Prints the lines of a selftest as they come, and keeps them for the file and the JSON. */
#include "selftest_report.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "text.h"

#define LISTS(X)       X("results") X("failures") X("not_tried")
#define ADD_LIST(name) json_object_object_add(report->json, name, json_object_new_array());

int selftest_report_init(struct selftest_report *report, bool quiet)
{
	*report = (struct selftest_report){ .quiet = quiet };
	report->json = json_object_new_object();
	report->text = open_memstream(&report->bytes, &report->size);
	if (!report->json || !report->text)
		return -ENOMEM;
	LISTS(ADD_LIST)
	return 0;
}

void selftest_report_done(struct selftest_report *report)
{
	json_object_put(report->json);
	if (report->text)
		(void)fclose(report->text);
	free(report->bytes);
	*report = (struct selftest_report){ 0 };
}

static void put_line(struct selftest_report *report, const char *colour, const char *head,
		     const char *line)
{
	(void)fprintf(report->text, "%s%s\n", head, line);
	if (report->quiet)
		return;
	printf("%s%s%s%s\n", text_colour(stdout, colour), head, text_colour(stdout, TEXT_PLAIN),
	       line);
	(void)fflush(stdout);
}

/* The list takes the object. */
static void add(struct selftest_report *report, const char *list, json_object *object)
{
	(void)json_object_array_add(json_object_object_get(report->json, list), object);
}

static void add_text(json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, json_object_new_string(text));
}

void selftest_report_say(struct selftest_report *report, const char *key, const char *format, ...)
{
	char text[1024], line[1100];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	(void)snprintf(line, sizeof(line), "%s%s%s", key ? key : "", key ? ": " : "", text);
	if (key)
		add_text(report->json, key, text);
	put_line(report, "", "", line);
}

static json_object *new_result(const struct selftest_trip_result *result)
{
	json_object *object = json_object_new_object();

	add_text(object, "gpus", result->gpus);
	add_text(object, "part", result->part);
	json_object_object_add(object, "trip", json_object_new_int((int)result->trip));
	return object;
}

static void put_said(struct selftest_report *report, json_object *object, const char *key,
		     const char *text)
{
	if (!*text)
		return;
	add_text(object, key, text);
	put_line(report, "", "    ", text);
}

void selftest_report_pass(struct selftest_report *report, const struct selftest_trip_result *result,
			  const char *compared)
{
	json_object *object = new_result(result);
	char line[600], size[16], restored[48] = "left running";

	report->passed++;
	json_object_object_add(object, "dump_seconds",
			       json_object_new_double(result->dump.seconds));
	if (result->restore.seconds >= 0)
		json_object_object_add(object, "restore_seconds",
				       json_object_new_double(result->restore.seconds));
	json_object_object_add(object, "image_bytes",
			       json_object_new_int64((int64_t)result->image_bytes));
	add_text(object, "compared", compared);
	add(report, "results", object);
	if (result->restore.seconds >= 0)
		(void)snprintf(restored, sizeof(restored), "restored in %.1f s",
			       result->restore.seconds);
	(void)snprintf(line, sizeof(line), "%s: %s, trip %u: dumped %s in %.1f s, %s; %s",
		       result->gpus, result->part, result->trip,
		       text_size(result->image_bytes, size), result->dump.seconds, restored,
		       compared);
	put_line(report, TEXT_GREEN, "ok  ", line);
	put_said(report, object, "dump_said", result->dump.said);
	put_said(report, object, "restore_said", result->restore.said);
}

/* The lines of a log, each behind a tab. */
static void put_log(struct selftest_report *report, const char *log)
{
	while (*log) {
		size_t length = strcspn(log, "\n");
		char line[512];

		(void)snprintf(line, sizeof(line), "    %.*s", (int)length, log);
		put_line(report, "", "", line);
		log += length + (log[length] == '\n');
	}
}

void selftest_report_fail(struct selftest_report *report, const struct selftest_trip_result *result,
			  const char *what, const char *log)
{
	json_object *object = new_result(result);
	char line[1100];

	report->failed++;
	add_text(object, "failure", what);
	if (log)
		add_text(object, "log", log);
	add(report, "failures", object);
	(void)snprintf(line, sizeof(line), "%s: %s, trip %u: %s", result->gpus, result->part,
		       result->trip, what);
	put_line(report, TEXT_RED, "FAILED  ", line);
	if (log)
		put_log(report, log);
}

void selftest_report_skip(struct selftest_report *report, const char *format, ...)
{
	va_list arguments;
	char line[600];

	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	add(report, "not_tried", json_object_new_string(line));
	put_line(report, "", "not tried  ", line);
}

static int write_file(const struct selftest_report *report, const char *path)
{
	FILE *file = fopen(path, "we");
	bool good = file && fwrite(report->bytes, 1, report->size, file) == report->size;

	if (file && fclose(file))
		good = false;
	return good ? 0 : log_error(-errno, "selftest: cannot write the report %s", path);
}

int selftest_report_end(struct selftest_report *report, bool json, const char *path)
{
	bool right = report->passed && !report->failed;
	int ret;

	json_object_object_add(report->json, "right", json_object_new_boolean(right));
	if (right)
		put_line(report, TEXT_GREEN, "", "All that was tried is right.");
	else
		put_line(report, TEXT_RED, "",
			 report->failed ? "The selftest has FAILED." : "Nothing could be tried.");
	if (json)
		printf("%s\n",
		       json_object_to_json_string_ext(report->json, JSON_C_TO_STRING_PLAIN));
	ret = fflush(report->text) ? -ENOMEM : 0;
	return ret || !path ? ret : write_file(report, path);
}
