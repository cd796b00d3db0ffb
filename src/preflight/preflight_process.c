// SPDX-License-Identifier: GPL-2.0-only
/* Finds processes that break a rule of a process as a whole. preflight.c has the rules. */
#include "preflight/preflight_process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "kernel/unnamed_files.h"
#include "preflight/bo_index.h"
#include "preflight/kfd_process.h"
#include "preflight/preflight.h"

/* DEFAULT_GHOST_LIMIT in CRIU's cr_options.h. */
#define GHOST_LIMIT (1 << 20)

/* A child that takes longer hangs in the kernel. */
#define TIMEOUT_S 5

/* The first KFD whose restore_process_queues_cpsch() leaves out GPUs without a VM (Linux 6.5). */
#define KFD_MINOR_LEAVES_OUT 13

/* UNPAUSE reads through the VM of each GPU that the process sees. */
static bool unpause_needs_vms(const struct dump_session *session)
{
	return session->kfd_minor && session->kfd_minor < KFD_MINOR_LEAVES_OUT;
}

static int check_vms(const struct dumped_process *process)
{
	const uint32_t gpus = process->state.num_devices;
	const bool needs_vms = unpause_needs_vms(process->session);
	struct kfd_vms vms;
	size_t count;
	int ret = kfd_process_count_vms(process->pid, &process->session->topology, &vms);

	if (ret < 0)
		return log_error(ret, "process %d: cannot list its render nodes", process->pid);
	if (needs_vms && gpus && !vms.certain)
		return preflight_refuse(process->session, DUMP_WITHOUT_ANY_VM,
					"process %d:", process->pid);
	count = needs_vms ? vms.certain : vms.likely;
	return count < gpus ? preflight_refuse(process->session, DUMP_GPU_WITHOUT_VM,
					       "process %d, %u GPUs, %zu opened:", process->pid,
					       gpus, count)
			    : 0;
}

/* CHECKPOINT asks of each BO in which VMs it is mapped, and Linux after 6.1 takes it for granted
 * that the process has given KFD a VM of each GPU (criu_checkpoint_bos() in kfd_chardev.c). */
static bool checkpoint_needs_vms(const struct dumped_process *process)
{
	return process->state.num_bos && !unpause_needs_vms(process->session);
}

/* The number of BOs may be a guess. */
static int check_vms_early(const struct dumped_process *process)
{
	return checkpoint_needs_vms(process) || unpause_needs_vms(process->session)
		       ? check_vms(process)
		       : 0;
}

static bool has_file(const struct dump_session *session, pid_t pid)
{
	for (size_t i = 0; i < session->num_files; i++) {
		if (session->files[i].pid == pid)
			return true;
	}
	return false;
}

static int check_task(struct dump_session *session, pid_t pid)
{
	struct dumped_process process = { .session = session, .pid = pid };
	struct kfd_sysfs sysfs = { 0 };
	int ret = kfd_process_read_sysfs(pid, &sysfs);

	if (ret < 0 && ret != -ENOENT)
		return log_error(ret, "process %d: cannot count its GPUs", pid);
	/* A process that sysfs does not know may see any number of GPUs. */
	process.state.num_devices = ret ? has_file(session, pid) : (uint32_t)sysfs.num_gpus;
	process.state.num_bos = sysfs.has_vram;
	return check_vms_early(&process);
}

int preflight_process_check_before_pause(struct dump_session *session)
{
	int ret = 0;

	/* preflight_process_check() warns, once. */
	if (session->options->force && !unpause_needs_vms(session))
		return 0;
	for (size_t i = 0; !ret && i < session->tasks.count; i++)
		ret = check_task(session, session->tasks.pids[i]);
	return ret;
}

static int try_without_bos(void *unused)
{
	(void)unused;
	return kfd_try_restore_without_bos();
}

/* Old kernels do not even look at the private data. */
int preflight_process_ask_without_bos(void)
{
	int answer = 0, ret = child_run(try_without_bos, NULL, TIMEOUT_S, &answer);

	return ret < 0 ? ret : answer;
}

int preflight_process_refuse_without_bos(const struct dump_session *session, pid_t pid)
{
	int ret = preflight_process_ask_without_bos();

	if (ret == -EINVAL)
		return preflight_refuse(session, DUMP_HAS_NO_BO, "process %d:", pid);
	if (ret != -EFAULT)
		log_warn(
			"process %d: cannot try whether this kernel can rebuild a process without BOs: %s; try a restore before you rely on the dump",
			pid, strerror(-ret));
	return 0;
}

static int check_contexts(const struct dumped_process *process)
{
	struct kfd_sysfs sysfs = { 0 };
	int ret = kfd_process_read_sysfs(process->pid, &sysfs);

	/* Without the directory, pause_tree() still finds contexts that have an open file. */
	if (ret < 0 && ret != -ENOENT)
		return log_error(ret, "process %d: cannot list its KFD contexts", process->pid);
	return sysfs.has_contexts ? preflight_refuse(process->session, DUMP_HAS_CONTEXTS,
						     "process %d:", process->pid)
				  : 0;
}

int preflight_process_check(const struct dumped_process *process)
{
	int ret = check_contexts(process);

	if (!ret && !process->state.num_bos)
		ret = preflight_process_refuse_without_bos(process->session, process->pid);
	if (!ret && checkpoint_needs_vms(process))
		ret = check_vms(process);
	return ret;
}

/* CRIU opens a file that several tasks have in the task with the lowest vpid, but the kernel
 * rebuilds GPU state only in the process that owns it. */
int preflight_process_check_reopen(const struct dumped_process *process)
{
	if (process->reopen_vpid == process->vpid)
		return 0;
	return preflight_refuse(process->session, DUMP_FILE_OF_OTHER_PROCESS,
				"/dev/kfd of process %d: process %d", process->vpid,
				process->reopen_vpid);
}

static bool has_gfx950(const struct dumped_process *process)
{
	bool found = false;

	for (uint32_t i = 0; i < process->state.num_devices; i++) {
		const struct topology_node *gpu =
			bo_index_gpu_of(process, process->state.devices[i].user_gpu_id);

		found |= gpu && gpu->gfx_target_version == TOPOLOGY_GFX950;
	}
	return found;
}

/* ROCr turns the variable into a flag of SET_MEMORY_POLICY (Linux 6.18), which no state has. */
int preflight_process_check_precision(const struct dumped_process *process)
{
	int ret;

	if (!has_gfx950(process))
		return 0;
	ret = kfd_process_was_started_with(process->pid, "HSA_HIGH_PRECISION_MODE");
	if (ret < 0)
		return log_error(ret, "process %d: cannot read its environment", process->pid);
	return ret ? preflight_refuse(process->session, DUMP_HIGH_PRECISION,
				      "process %d:", process->pid)
		   : 0;
}

int preflight_process_check_early(const struct dumped_process *process)
{
	int (*const checks[])(const struct dumped_process *) = {
		check_contexts,
		check_vms_early,
		preflight_process_check_precision,
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		int broken = checks[i](process);

		ret = ret ? ret : broken;
	}
	return ret;
}

void preflight_process_warn_of_ghost(const struct dumped_process *process)
{
	uint64_t bytes;

	if (!unnamed_files_largest(process->pid, &bytes) && bytes > GHOST_LIMIT)
		log_warn(
			"%s: maps an unlinked file of %" PRIu64
			" bytes, which CRIU saves only with a --ghost-limit that is not less, for example 64M",
			process->name, bytes);
}

int preflight_process_check_copies(const struct dumped_process *process)
{
	_cleanup_free_ struct proc_range *ranges = NULL;
	struct proc_range found;
	size_t count = 0;
	int ret;

	if (!process->session->stopped_late)
		return 0;
	ret = kfd_priv_list_memory(&process->priv, process->state.bos, &ranges, &count);
	/* DUMP_UNKNOWN_LAYOUT, by force. */
	if (ret == -EINVAL || ret == -ENOTUNIQ)
		return 0;
	if (!ret && count)
		ret = unnamed_files_find(process->pid, ranges, count, &found);
	if (ret < 0)
		return log_error(ret, "%s: cannot find out which files its GPUs may write",
				 process->name);
	return ret ? preflight_refuse(process->session, DUMP_MEMORY_COPIED,
				      "%s, memory at 0x%" PRIx64 "-0x%" PRIx64 ":", process->name,
				      found.start, found.end)
		   : 0;
}

/* A restore finds the BO of a mapping by its address first, because programs map BOs where the GPU
 * has them. So a mapping at another address must not be where another GPU has a BO that fits. On
 * one PCI device such a BO is the mapped object itself, of which the process has several BOs. */
static bool is_ambiguous(const struct dumped_process *process, const struct proc_mapping *mapping,
			 const struct bo_index_entry *mapped)
{
	size_t count;
	const struct bo_index_entry *const *there =
		bo_index_find_address(&process->bo_index, mapping->start, &count);

	for (size_t i = 0; mapped->addr != mapping->start && i < count; i++) {
		if (mapping->offset - there[i]->offset < there[i]->size &&
		    there[i]->device != mapped->device)
			return true;
	}
	return false;
}

int preflight_process_check_mapping(const struct dumped_process *process,
				    const struct proc_mapping *mapping)
{
	const struct topology_node *gpu =
		render_node_find_gpu(&process->session->topology, mapping->device);
	const struct bo_index_entry *bo;
	enum dump_rule broken;
	char name[32] = "";

	if (!gpu)
		return 0;
	bo = bo_index_find_offset(&process->bo_index, topology_pci_device(gpu), mapping->offset);
	if (!bo)
		broken = DUMP_MAPPING_WITHOUT_BO;
	else if (mapping->offset != bo->offset)
		broken = DUMP_MAPPING_INSIDE_BO;
	else if (is_ambiguous(process, mapping, bo))
		broken = DUMP_MAPPING_AMBIGUOUS;
	else
		return 0;
	if (bo)
		(void)snprintf(name, sizeof(name), ", BO 0x%" PRIx64 ",",
			       process->state.bos[bo->index].addr);
	return preflight_refuse(
		process->session, broken, "%s: mapping 0x%" PRIx64 "-0x%" PRIx64 " of renderD%u%s",
		process->name, mapping->start, mapping->end, gpu->drm_render_minor, name);
}

void preflight_process_warn_of_unused(const struct topology *topology,
				      const struct preflight_gpu *uses)
{
	uint32_t first = 0;
	size_t count = 0;
	bool uses_some = false;
	char more[40] = "";

	for (size_t i = 0; i < topology->num_nodes; i++) {
		uses_some |= uses[i].is_used;
		if (uses[i].is_seen && !uses[i].is_used && !count++)
			first = topology->nodes[i].gpu_id;
	}
	if (!count || !uses_some)
		return;
	if (count > 1)
		(void)snprintf(more, sizeof(more), " (like %zu more)", count - 1);
	log_warn(
		"GPU 0x%04x%s: the job sees it and does not use it, but needs it again at each restore; start the job with the GPUs that it uses only (device cgroup, podman --device)",
		first, more);
}

/* The element of the GPU that the process knows as @user_gpu_id. */
static struct preflight_gpu *use_of(const struct dumped_process *process,
				    struct preflight_gpu *uses, uint32_t user_gpu_id)
{
	return &uses[bo_index_gpu_of(process, user_gpu_id) - process->session->topology.nodes];
}

static void note_queues(const struct dumped_process *process, struct preflight_gpu *uses)
{
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t count = 0;

	/* By force, the layout may be unknown. */
	if (kfd_priv_list_queues(&process->priv, &queues, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		use_of(process, uses, queues[i].gpu_id)->is_used = true;
}

static void note_process(const struct dumped_process *process, struct preflight_gpu *uses)
{
	const struct kfd_state *state = &process->state;

	for (uint32_t i = 0; i < state->num_devices; i++)
		use_of(process, uses, state->devices[i].user_gpu_id)->is_seen = true;
	for (uint32_t i = 0; i < state->num_bos; i++) {
		if (!(state->bos[i].alloc_flags & KFD_BO_MMIO_REMAP))
			use_of(process, uses, state->bos[i].gpu_id)->is_used = true;
	}
	note_queues(process, uses);
}

int preflight_process_check_unused(const struct dump_session *session)
{
	_cleanup_free_ struct preflight_gpu *uses =
		calloc(session->topology.num_nodes + 1, sizeof(*uses));

	if (!uses)
		return log_error(-ENOMEM, "dump: cannot list the GPUs that it uses");
	for (size_t i = 0; i < session->num_processes; i++)
		note_process(&session->processes[i], uses);
	preflight_process_warn_of_unused(&session->topology, uses);
	return 0;
}
