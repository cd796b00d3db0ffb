/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints lines to CRIU's log. */
#ifndef AMDGPU_PLUGIN_CRIU_LOG_H
#define AMDGPU_PLUGIN_CRIU_LOG_H

#include <stdbool.h>

/* Each call prints one line with CRIU's prefix: "Error (amdgpu_plugin): ...",
 * "Warn  (amdgpu_plugin): ...", else "amdgpu_plugin: ...". log_error() appends strerror(-@ret),
 * unless @ret is 0, and returns @ret. Only the main thread may call them: CRIU's log is not
 * thread-safe.
 *
 * "Logs on error" in a header means that the function has logged the error that it returns. */
int log_error(int ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Refuses something of a restore: logs the error @ret and returns it. With @force it logs a warning
 * instead, and returns 0. Appends what AMDGPU_FORCE=1 does. */
int log_refusal(bool force, int ret, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define LOG_LINE_SIZE 1024

/* The first error of several processes, in memory that they share. All zero: no error yet. */
struct log_first {
	/* A process has taken the line, and it is complete. */
	bool taken;
	bool complete;
	char line[LOG_LINE_SIZE];
};

/* From now on log_error() also keeps the first line in *@first, which must outlive its use. With
 * NULL it keeps none. */
void log_keep_first(struct log_first *first);
/* The kept line, without its prefix. NULL: there was no error, or nothing keeps it. */
const char *log_first_error(void);

void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
