// SPDX-License-Identifier: GPL-2.0-only
/* Makes a context on GPUs, and asks it for resets. Counts memory errors of these GPUs. */
#include "dump/gpu_watch.h"

#include <amdgpu_drm.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "kernel/memory_errors.h"
#include "kernel/render_node.h"
#include "pause/kfd_files.h"
#include "preflight/preflight.h"

/* Logs nothing. */
static int add_watch(struct dump_session *session, const struct topology_node *gpu)
{
	union drm_amdgpu_ctx context = { .in.op = AMDGPU_CTX_OP_ALLOC_CTX };
	struct dumped_watch watch = { .gpu = gpu };
	_cleanup_close_ int fd = -1;
	int ret = render_node_open(gpu->drm_render_minor, HOST_LOWEST_FD, &fd);

	if (!ret)
		ret = xioctl(fd, DRM_IOCTL_AMDGPU_CTX, &context);
	if (ret < 0)
		return ret;
	watch.fd = fd;
	watch.context = context.out.alloc.ctx_id;
	(void)memory_errors_count(topology_pci_device(gpu), &watch.memory_errors);
	ret = array_append(&session->watches, &session->num_watches, sizeof(watch), &watch);
	if (!ret)
		(void)take_fd(&fd);
	return ret;
}

int gpu_watch_start(struct dump_session *session)
{
	const struct topology *topology = &session->topology;
	_cleanup_free_ bool *open = calloc(topology->num_nodes + 1, sizeof(*open));
	int ret = open ? kfd_files_find_gpus(&session->tasks, topology, open) : -ENOMEM;

	if (ret < 0)
		return log_error(ret, "dump: cannot find the GPUs of its processes");
	for (size_t i = 0; i < topology->num_nodes; i++) {
		ret = open[i] ? add_watch(session, &topology->nodes[i]) : 0;
		if (ret < 0)
			return log_error(ret, "GPU 0x%04x: cannot watch it for resets",
					 topology->nodes[i].gpu_id);
	}
	return 0;
}

int gpu_watch_start_all(struct dump_session *session)
{
	for (size_t i = 0; i < session->topology.num_nodes; i++) {
		const struct topology_node *gpu = &session->topology.nodes[i];
		int ret = gpu->gpu_id ? add_watch(session, gpu) : 0;

		if (ret == -ENOMEM)
			return log_error(ret, "GPUs: cannot watch them for resets");
	}
	return 0;
}

static int query(const struct dumped_watch *watch, uint32_t *ret_flags)
{
	union drm_amdgpu_ctx context = { .in.op = AMDGPU_CTX_OP_QUERY_STATE2,
					 .in.ctx_id = watch->context };
	int ret = xioctl(watch->fd, DRM_IOCTL_AMDGPU_CTX, &context);

	if (ret < 0)
		return log_error(ret, "GPU 0x%04x: cannot find out whether it was reset",
				 watch->gpu->gpu_id);
	*ret_flags = (uint32_t)context.out.state.flags;
	return 0;
}

static int check_idle(const struct dump_session *session, const struct dumped_watch *watch)
{
	uint32_t flags = 0;
	int ret = query(watch, &flags);

	if (ret < 0 || !(flags & RENDER_NODE_IN_RESET))
		return ret;
	return preflight_refuse(session, DUMP_GPU_IS_IN_RESET, "GPU 0x%04x:", watch->gpu->gpu_id);
}

int gpu_watch_check_idle(const struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_watches; i++)
		ret = check_idle(session, &session->watches[i]);
	return ret;
}

static bool is_dumped(const struct dump_session *session, const struct topology_node *gpu)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id != DUMP_NO_ID &&
		    dump_find_gpu(&session->processes[i], gpu))
			return true;
	}
	return false;
}

static int check_watch(const struct dumped_watch *watch, int id)
{
	uint32_t flags = 0;
	int ret = query(watch, &flags);

	if (ret < 0 || !(flags & RENDER_NODE_SPOILED))
		return ret;
	return log_error(
		-EIO,
		"kfd %d: GPU 0x%04x was reset during the dump (flags 0x%x), so the saved contents may be wrong",
		id, watch->gpu->gpu_id, flags);
}

int gpu_watch_check(const struct dump_session *session, const struct dumped_process *process)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_watches; i++) {
		if (dump_find_gpu(process, session->watches[i].gpu))
			ret = check_watch(&session->watches[i], process->id);
	}
	return ret;
}

/* Returns 1 if it cannot be told whether the GPU had errors. */
static int check_memory(const struct dumped_watch *watch)
{
	uint64_t count = 0;

	if (memory_errors_count_new(topology_pci_device(watch->gpu), &watch->memory_errors,
				    &count) < 0)
		return 1;
	if (!count)
		return 0;
	return log_error(-EIO,
			 "GPU 0x%04x: lost memory during the dump (uncorrectable errors: %" PRIu64
			 "), so the saved contents may be wrong",
			 watch->gpu->gpu_id, count);
}

int gpu_watch_check_memory(const struct dump_session *session)
{
	const struct dumped_watch *uncounted = NULL;

	for (size_t i = 0; i < session->num_watches; i++) {
		const struct dumped_watch *watch = &session->watches[i];
		int ret = is_dumped(session, watch->gpu) ? check_memory(watch) : 0;

		if (ret < 0)
			return ret;
		if (ret)
			uncounted = watch;
	}
	if (uncounted)
		log_warn(
			"GPU 0x%04x: the driver does not count its memory errors, so errors during the dump go unnoticed",
			uncounted->gpu->gpu_id);
	return 0;
}

/* The driver frees the context with its file. */
void gpu_watch_end(struct dump_session *session)
{
	for (size_t i = 0; i < session->num_watches; i++)
		fd_close(&session->watches[i].fd);
	free(session->watches);
	session->watches = NULL;
	session->num_watches = 0;
}
