/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints lines to CRIU's log. */
#ifndef AMDGPU_PLUGIN_CRIU_LOG_H
#define AMDGPU_PLUGIN_CRIU_LOG_H

/* Each call prints one line with CRIU's prefix: "Error (amdgpu_plugin): ...",
 * "Warn  (amdgpu_plugin): ...", else "amdgpu_plugin: ...". log_error() appends strerror(-@ret),
 * unless @ret is 0, and returns @ret. Only the main thread may call them: CRIU's log is not
 * thread-safe.
 *
 * "Logs on error" in a header means that the function has logged the error that it returns. */
int log_error(int ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
