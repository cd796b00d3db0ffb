// SPDX-License-Identifier: GPL-2.0-only
/* Reads the versions of the kernel and of its driver, and the driver's parameters. */
#include "dump/this_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "image/image_validate.h"
#include "kernel/amdgpu_module.h"
#include "session/dump_session.h"

static int set_text(const char *text, char **field)
{
	/* A restore would refuse the image. */
	if (!image_validate_text(text))
		return 0;
	*field = strdup(text);
	return *field ? 0 : -ENOMEM;
}

static int set_module_text(const char *name, char **field)
{
	char text[SAVED_ON_TEXT];

	return amdgpu_module_text(name, text, sizeof(text)) ? set_text(text, field) : 0;
}

static int set_texts(SavedOn *saved)
{
	struct utsname system;
	int ret = set_text(PLUGIN_VERSION, &saved->plugin);

	if (!ret && !uname(&system))
		ret = set_text(system.release, &saved->kernel);
	if (!ret)
		ret = set_module_text("version", &saved->driver_version);
	return ret ? ret : set_module_text("srcversion", &saved->driver_source);
}

static void set_parameters(SavedOn *saved)
{
#define READ(name) saved->has_##name = amdgpu_module_parameter(#name, &saved->name);
	SAVED_ON_PARAMETERS(READ)
#undef READ
}

int this_machine_describe(const struct dump_session *session, SavedOn **ret_saved)
{
	SavedOn *saved = malloc(sizeof(*saved));

	if (!saved)
		return -ENOMEM;
	saved_on__init(saved);
	*ret_saved = saved;
	saved->has_time = true;
	saved->time = (uint64_t)time(NULL);
	saved->has_kfd_minor = true;
	saved->kfd_minor = session->kfd_minor;
	saved->has_drained_ms = session->totals.drained_s > 0;
	saved->drained_ms = (uint32_t)(session->totals.drained_s * 1000);
	set_parameters(saved);
	return set_texts(saved);
}
