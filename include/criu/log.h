/* SPDX-License-Identifier: GPL-2.0-only */
/* Lines in CRIU's log. */
#ifndef AMDGPU_PLUGIN_CRIU_LOG_H
#define AMDGPU_PLUGIN_CRIU_LOG_H

/* CRIU's log. Each call is one line, in CRIU's own form: "Error (amdgpu_plugin): ...",
 * "Warn  (amdgpu_plugin): ...", else "amdgpu_plugin: ...". log_error() adds the words
 * for -@ret (nothing where @ret is 0) and returns @ret. Not for worker threads: CRIU's log
 * is not made for them. */
int log_error(int ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
