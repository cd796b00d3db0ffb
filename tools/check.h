/* SPDX-License-Identifier: GPL-2.0-only */
/* The command check, and its parts, a file each. A part prints one line for each thing that it
 * examines. */
#ifndef AMDGPU_PLUGIN_TOOLS_CHECK_H
#define AMDGPU_PLUGIN_TOOLS_CHECK_H

#include <limits.h>
#include <stdbool.h>

#include "amdgpu_plugin_topology.h"
#include "criu/options.h"
#include "kernel/proc.h"
#include "tool.h"

struct check {
	const struct tool_request *request;
	struct options options;
	struct topology topology;
	/* The file of the plugin that CRIU will load, after check_criu(). */
	char plugin[PATH_MAX];
	/* Those for plugins of CRIU, after check_criu(). */
	unsigned int hooks;
	/* Something forbids a dump. */
	bool refused;
	/* Print only what forbids a dump. */
	bool quiet;
	/* About the bytes of contents of a dump, or 0 if they are not known. */
	uint64_t contents;
	/* About the most of one GPU of a process, which are one file. */
	uint64_t largest;
};

/* check.c: prints a line for what is right. */
void check_say_ok(const struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* What is missing goes to standard error. */
void check_refuse(struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* check_machine.c: kernel and driver, and without a process all GPUs. @ret_has_gpu: whether the
 * machine has an AMD GPU. */
void check_machine(struct check *check, bool *ret_has_gpu);
/* Whether the contents of the GPU can be copied. */
void check_machine_gpu(struct check *check, const struct topology_node *gpu);

/* check_criu.c: CRIU, and whether it will load the plugin. */
void check_criu(struct check *check);
/* Finds a program in PATH. Returns false if PATH does not have it. */
bool check_find_program(const char *name, char path[PATH_MAX]);

/* check_process.c: the process of the request and its descendants. TOOL_TROUBLE: there is no such
 * process. Free the list with pid_list_done(), also then. */
int check_find_process(struct check *check, struct pid_list *ret_tree);
/* Examines them. @ret_has_gpu: whether one uses a GPU. */
int check_process(struct check *check, const struct pid_list *tree, bool *ret_has_gpu);

/* check_rights.c: the rights of a CRIU that the user of this program starts. */
/* Whether the capabilities of CRIU's file are enough for KFD. */
bool check_may_checkpoint(void);
/* Refuses if Yama forbids CRIU to attach to a job. */
void check_attach(struct check *check);
/* Warns of a process that CRIU cannot restore. */
void check_rights(const struct pid_list *tree);

/* check_room.c: the directory for a dump. */
void check_room(struct check *check);

#endif
