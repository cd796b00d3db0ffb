// SPDX-License-Identifier: GPL-2.0-only
/* A program that loads the built plugin as CRIU does, and says what it finds in it. test_plugin.c
 * compiles it once for each kind of host (TABLE_SIZE, HAS_INVENTORY) and checks what it says. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "criu/plugin_abi.h"
#include "criu_stub.h"

#ifdef TABLE_SIZE
char cr_plugin_ctl[TABLE_SIZE];
#endif

#ifdef HAS_INVENTORY
int add_inventory_plugin(const char *name)
{
	return !name;
}

bool check_and_remove_inventory_plugin(const char *name, size_t length)
{
	printf("claimed %.*s\n", (int)length, name);
	return true;
}
#endif

/* A host with the second argument leaves it uninitialised; one without has garbage there. */
static const char *retry_argument(void *hook)
{
	bool (*probe)(int id, bool *retry) = NULL;
	bool retry = true;

	memcpy(&probe, &hook, sizeof(hook));
	(void)probe(0x7fffffff, &retry);
	return retry ? "left alone" : "written";
}

int main(int count, char **arguments)
{
	struct criu_plugin_desc *description;
	void *plugin = dlopen(arguments[count - 1], RTLD_LAZY);

	/* No image is ever found: it is no directory. */
	criu_stub.image_dir = 0;
	criu_stub.log_level = 0;
	if (!plugin) {
		printf("%s\n", dlerror());
		return 1;
	}
	description = dlsym(plugin, "CR_PLUGIN_DESC");
	if (!description)
		return 1;
	printf("name %s\n", description->name);
	printf("version 0x%x\n", description->version);
	printf("hooks %u\n", description->max_hooks);
	printf("init %d\n", description->init(STAGE_RESTORE));
	printf("retry argument %s\n", retry_argument(description->hooks[HOOK_RESTORE_EXT_FILE]));
	description->exit(STAGE_RESTORE, 0);
	return 0;
}
