/* SPDX-License-Identifier: GPL-2.0-only */
/* What the selftest says: lines while it runs, and at its end the same as JSON or in a file.
 * Nothing in it names the machine or its owner. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_REPORT_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

#define SELFTEST_SAID 320

/* A dump or a restore. */
struct selftest_step {
	double seconds; /* negative: there was none, and the job was left running */
	/* The plugin's last line: speeds, what limits them, and how long the queues stood still.
	 * Empty if the log has no such line. */
	char said[SELFTEST_SAID];
};

struct selftest_trip_result {
	const char *part;
	const char *gpus;  /* "GPU 0x07cd" or "all GPUs" */
	unsigned int trip; /* from 1 */
	struct selftest_step dump, restore;
	uint64_t image_bytes;
};

struct selftest_report {
	struct json_object *json;
	/* The lines, for the file. */
	FILE *text;
	char *bytes;
	size_t size;
	bool quiet; /* no lines on standard output */
	unsigned int passed, failed;
};

/* -ENOMEM */
int selftest_report_init(struct selftest_report *report, bool quiet);
void selftest_report_done(struct selftest_report *report);

/* A line about the machine or about the run. With @key it is a field of the JSON, too. */
void selftest_report_say(struct selftest_report *report, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void selftest_report_pass(struct selftest_report *report, const struct selftest_trip_result *result,
			  const char *compared);
/* @log: the lines of a log that say more, or NULL. */
void selftest_report_fail(struct selftest_report *report, const struct selftest_trip_result *result,
			  const char *what, const char *log);
void selftest_report_skip(struct selftest_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The verdict. Prints the JSON if @json, and writes the lines to file @path, if that is not NULL.
 * Logs on error. */
int selftest_report_end(struct selftest_report *report, bool json, const char *path);

#endif
