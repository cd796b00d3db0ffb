/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the command selftest share. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "check.h"
#include "selftest_report.h"
#include "tool.h"

/* The program of the job. */
#define SELFTEST_JOB "selftest-job"

struct selftest {
	const struct tool_request *request;
	struct check check;
	char criu[PATH_MAX], job[PATH_MAX];
	/* Empty if no streamer is installed. */
	char streamer[PATH_MAX];
	/* Of this selftest alone, in the directory for images. */
	char dir[PATH_MAX];
	/* More VRAM of each job, beside its small buffers. */
	uint64_t bytes;
	/* For each step. */
	double limit_s;
	struct selftest_report report;
};

#endif
