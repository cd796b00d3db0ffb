/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU's plugin interface, from criu/criu-plugin.h of CRIU 4.3: hook numbers, stages and the
 * descriptor. It is restated because no distribution ships a header with all hooks, and because the
 * array of the descriptor must have room for the hooks of the newest CRIU. */
#ifndef AMDGPU_PLUGIN_CRIU_PLUGIN_ABI_H
#define AMDGPU_PLUGIN_CRIU_PLUGIN_ABI_H

#define CRIU_PLUGIN_VERSION_0_2 ((0u << 16) + (2u << 8) + 0u)

enum criu_plugin_hook {
	HOOK_DUMP_EXT_FILE = 2,
	HOOK_RESTORE_EXT_FILE = 3,
	HOOK_HANDLE_DEVICE_VMA = 7,
	HOOK_UPDATE_VMA_MAP = 8,
	HOOK_RESUME_DEVICES_LATE = 9,
	HOOK_PAUSE_DEVICES = 10,
	HOOK_CHECKPOINT_DEVICES = 11,
	HOOK_POST_FORKING = 12,
	HOOK_RESTORE_INIT = 13,
	HOOK_DUMP_DEVICES_LATE = 14,
	HOOK_UPDATE_INETSK = 15,
	HOOK_DUMP_FINISH = 16,
	HOOK_MAX,
};

/* Every CRIU that loads plugins of version 0.2 has at least the hooks up to RESUME_DEVICES_LATE. */
#define HOOKS_OF_OLDEST_HOST (HOOK_RESUME_DEVICES_LATE + 1)

enum criu_plugin_stage {
	STAGE_DUMP = 0,
	STAGE_PRE_DUMP = 1,
	STAGE_RESTORE = 2,
};

struct criu_plugin_desc {
	const char *name;
	int (*init)(int stage);
	void (*exit)(int stage, int ret);
	unsigned int version;
	unsigned int max_hooks;
	void *hooks[HOOK_MAX];
};

/* The plugin's name in CRIU's log, in its inventory and in its options. */
#define PLUGIN_NAME "amdgpu_plugin"

#endif
