// SPDX-License-Identifier: GPL-2.0-only
/* Applies those rules of preflight.c that need no CHECKPOINT, without pausing a process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dump.h"
#include "dump/gpu_watch.h"
#include "preflight/preflight.h"

/* Only AMD's out-of-tree driver has a version. */
#define DRIVER_VERSION "/sys/module/amdgpu/version"

/* gfx_target_version, see preflight.c. */
#define GFX11 110000u
#define GFX12 120000u

/* Linux releases whose RESTORE needs the area for waves in a BO (kfd_queue_acquire_buffers() in
 * kfd_queue.c, called by kfd_criu_restore_queue()). */
static bool has_release_that_refuses_queues(void)
{
	unsigned int major = 0, minor = 0, patch = 0;
	struct utsname name;

	if (uname(&name) < 0 || !access(DRIVER_VERSION, F_OK))
		return false;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel's numbers */
	return sscanf(name.release, "%u.%u.%u", &major, &minor, &patch) == 3 && major == 6 &&
	       minor == 12 && patch >= 111 && patch <= 117;
}

static void session_done(struct dump_session *session)
{
	/* The topology is borrowed. */
	session->topology = (struct topology){ 0 };
	gpu_watch_end(session);
}

static int foresee_resets(struct dump_session *session)
{
	int ret = gpu_watch_start(session);

	return ret < 0 ? ret : gpu_watch_check_idle(session);
}

static void warn_of_gpu(const struct topology_node *gpu)
{
	if (gpu->gfx_target_version >= GFX12)
		preflight_warn_of(DUMP_BO_GENERATION, "GPU 0x%04x: a BO", gpu->gpu_id);
	if (gpu->gfx_target_version >= GFX11)
		preflight_warn_of(DUMP_QUEUE_GENERATION, "GPU 0x%04x: a queue", gpu->gpu_id);
}

int foresee_machine(const struct options *options, const struct topology *topology)
{
	_cleanup_(session_done) struct dump_session session = { .options = options,
								.topology = *topology,
								.has_topology = true };
	int ret = 0, failed;

	if (!preflight_driver_saves_waves())
		ret = preflight_refuse(&session, DUMP_CWSR_IS_OFF, "a process");
	failed = foresee_resets(&session);
	for (size_t i = 0; i < topology->num_nodes; i++)
		warn_of_gpu(&topology->nodes[i]);
	if (has_release_that_refuses_queues())
		preflight_warn_of(DUMP_QUEUE_REFUSED, "a compute queue");
	if (preflight_process_ask_without_bos() == -EINVAL)
		preflight_warn_of(DUMP_HAS_NO_BO, "a process");
	return ret < 0 ? ret : failed;
}

int foresee_images(const struct options *options)
{
	const struct dump_session session = { .options = options };

	return preflight_check_dump(&session);
}
