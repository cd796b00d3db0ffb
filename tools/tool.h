/* SPDX-License-Identifier: GPL-2.0-only */
/* criu-amdgpu: reads the images of the plugin, without CRIU and without a GPU. Each command is a
 * function in a file of its own. */
#ifndef AMDGPU_PLUGIN_TOOLS_TOOL_H
#define AMDGPU_PLUGIN_TOOLS_TOOL_H

#include <stdbool.h>

/* The exit status of a command. */
enum tool_status {
	TOOL_YES = 0,
	/* The answer is no: a dump is refused, contents differ, or the images do not fit. */
	TOOL_NO = 1,
	/* The command line is wrong, or something cannot be read. */
	TOOL_TROUBLE = 2,
	/* check, selftest: there is no AMD GPU, or the process uses none. */
	TOOL_NO_GPU = 3,
};

/* What the user has asked. */
struct tool_request {
	/* The image directory or an archive; for check the directory for a dump, or NULL if it is
	 * not given. */
	const char *dir;
	/* The directory of CRIU's plugins, or NULL for CRIU's own. */
	const char *libdir;
	/* check: the process or the name of its container, or NULL for the machine. */
	const char *pid;
	/* A tree like /sys/class/kfd/kfd/topology, or NULL for this machine. */
	const char *topology;
	/* Print only errors. */
	bool quiet;
	bool json;
	/* selftest: a GPU, the bytes on each, the seconds of a step, and the file of the report, or
	 * NULL each. */
	const char *gpu, *size, *limit, *report;
	bool keep, quick, force;
};

/* The commands, which return an enum tool_status. */
/* Whether this machine can dump processes on its GPUs, or the process of the request. */
int check_run(const struct tool_request *request);
/* What the images hold. */
int show_run(const struct tool_request *request);
/* Whether all images are whole. */
int verify_run(const struct tool_request *request);
/* Whether a restore would map the saved GPUs to those of a machine, and accept the mapping. */
int fit_run(const struct tool_request *request);
/* Dumps and restores jobs of its own on the GPUs of this machine. */
int selftest_command(const struct tool_request *request);

#endif
