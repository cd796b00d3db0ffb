/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of the command check. A part prints one line for each thing that it examines. */
#ifndef AMDGPU_PLUGIN_TOOLS_CHECK_H
#define AMDGPU_PLUGIN_TOOLS_CHECK_H

#include <stdbool.h>

#include "amdgpu_plugin_topology.h"
#include "criu/options.h"
#include "tool.h"

struct check {
	const struct tool_request *request;
	struct options options;
	struct topology topology;
	/* Something forbids a dump. */
	bool refused;
};

/* Prints a line for what is right. */
void check_say_ok(const struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* What is missing goes to standard error. */
void check_refuse(struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* check_machine.c: kernel, driver and GPUs. @ret_has_gpu: whether the machine has an AMD GPU. */
void check_machine(struct check *check, bool *ret_has_gpu);
/* check_criu.c: CRIU, and whether it will load the plugin. */
void check_criu(struct check *check);
/* check_room.c: the directory for a dump. */
void check_room(struct check *check);

#endif
