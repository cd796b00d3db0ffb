// SPDX-License-Identifier: GPL-2.0-only
/* Finds CRIU, and the plugin where that CRIU looks for it. Reads CRIU's program, but does not run
 * it. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "check.h"
#include "criu/plugin_abi.h"
#include "elf.h"

/* Behind the directories of PATH, which often lacks them for ordinary users. */
#define MORE_DIRECTORIES ":/usr/local/sbin:/usr/sbin:/sbin"
#define PLUGIN_FILE      PLUGIN_NAME ".so"
/* The name of an option that only this plugin has: CRIU's own plugin has the same file name. */
#define PLUGIN_MARK "AMDGPU_DEVICE_MAP"
/* CR_PLUGIN_DEFAULT of CRIU's build ends so. */
#define PLUGIN_DIR_END "/criu/"
#define PLUGIN_DIR     "/usr/lib" PLUGIN_DIR_END

/* The functions that every supported CRIU exports, and the plugin calls: src/criu/host.c and
 * src/criu/log.c. */
static const char *const functions[] = {
	"print_on_level", "criu_get_image_dir", "find_unused_fd_pid",
	"fdstore_add",    "fdstore_get",        "img_streamer_open",
};

/* The releases with so many hooks. */
static const char *name_releases(unsigned int hooks)
{
	switch (hooks) {
	case HOOK_PAUSE_DEVICES:
		return "3.17 to 3.19";
	case HOOK_POST_FORKING:
		return "4.0 or 4.1";
	case HOOK_RESTORE_INIT:
		return "4.2";
	case HOOK_MAX:
		return "4.3";
	default:
		return hooks > HOOK_MAX ? "newer than 4.3" : "unknown";
	}
}

bool check_find_program(const char *name, char path[PATH_MAX])
{
	const char *variable = getenv("PATH");
	_cleanup_free_ char *directories = NULL;
	char *rest, *directory;

	if (asprintf(&directories, "%s" MORE_DIRECTORIES, variable ? variable : "") < 0)
		return false;
	for (rest = directories; (directory = strsep(&rest, ":"));) {
		if (*directory && snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX &&
		    !access(path, X_OK))
			return true;
	}
	return false;
}

/* cr_plugin_ctl has one list head for each hook, and one more; see host_count_hooks(). */
static bool check_hooks(struct check *check, const char *path, const struct elf *criu)
{
	uint64_t size = 0, ignored;
	unsigned int hooks;

	if (elf_find_symbol(criu, "cr_plugin_ctl", &size) < 0) {
		check_refuse(check, "CRIU: %s loads no plugins; install a CRIU of 3.17.1 or newer",
			     path);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		if (!elf_find_symbol(criu, functions[i], &ignored))
			continue;
		check_refuse(check, "CRIU: %s lacks the function %s; install CRIU 3.17.1 or newer",
			     path, functions[i]);
		return false;
	}
	hooks = (unsigned int)(size / (2 * sizeof(void *)));
	hooks -= hooks > 0;
	if (hooks < HOOKS_OF_OLDEST_HOST) {
		check_refuse(
			check,
			"CRIU: %s has %u hooks for plugins, and %u are needed; install CRIU 3.17.1 or newer",
			path, hooks, HOOKS_OF_OLDEST_HOST);
		return false;
	}
	check->hooks = hooks;
	check_say_ok(check, "CRIU: %s, release %s (%u hooks)", path, name_releases(hooks), hooks);
	return true;
}

static void load_plugin(struct check *check, const char *path)
{
	void *plugin = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	const struct criu_plugin_desc *descriptor;

	if (!plugin) {
		check_refuse(
			check,
			"plugin: cannot load, so CRIU fails every dump: %s; install the libraries that it needs",
			dlerror());
		return;
	}
	descriptor = dlsym(plugin, "CR_PLUGIN_DESC");
	if (!descriptor || descriptor->version > CRIU_PLUGIN_VERSION_0_2)
		check_refuse(
			check,
			"plugin: %s is no plugin for this CRIU, so CRIU fails every dump; install it again",
			path);
	else
		check_say_ok(check, "plugin: %s loads", path);
}

static void check_plugin(struct check *check, const char *directory)
{
	size_t length = strlen(directory);
	char *path = check->plugin;

	(void)snprintf(path, sizeof(check->plugin), "%s%s%s", directory,
		       length && directory[length - 1] == '/' ? "" : "/", PLUGIN_FILE);
	if (access(path, R_OK) < 0)
		check_refuse(
			check,
			"plugin: cannot read %s, where CRIU looks for it: %s; install the plugin there, or use criu --libdir",
			path, strerror(errno));
	else if (!elf_has(path, PLUGIN_MARK, strlen(PLUGIN_MARK)))
		check_refuse(check,
			     "plugin: %s is another plugin, for example CRIU's own; replace it",
			     path);
	else
		load_plugin(check, path);
}

/* In the order of CRIU. */
static const char *choose_directory(const struct check *check, const struct elf *criu)
{
	const char *directory = check->request->libdir;

	if (!directory)
		directory = getenv("CRIU_LIBS_DIR");
	if (!directory && criu->size)
		directory = elf_find_path(criu, PLUGIN_DIR_END);
	return directory ? directory : PLUGIN_DIR;
}

void check_criu(struct check *check)
{
	_cleanup_(elf_close) struct elf criu = { 0 };
	char path[PATH_MAX];

	if (!check_find_program("criu", path)) {
		check_refuse(check, "CRIU: is not in PATH; install criu");
	} else {
		int ret = elf_open(path, &criu);

		if (ret < 0)
			check_refuse(
				check,
				"CRIU: cannot examine %s: %s; it must be CRIU's program itself",
				path, strerror(-ret));
		else
			(void)check_hooks(check, path, &criu);
	}
	check_plugin(check, choose_directory(check, &criu));
}
