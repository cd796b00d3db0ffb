// SPDX-License-Identifier: GPL-2.0-only
/* Applies those rules of preflight.c that need no CHECKPOINT, without pausing a process. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dump.h"
#include "dump/gpu_watch.h"
#include "foresee.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/kfd_queue.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "pause/kfd_files.h"
#include "preflight/kfd_process.h"
#include "preflight/preflight.h"
#include "survey.h"

/* The rules that show before the dump, at least in part. Those of the dump as a whole do, too. */
static const bool shows_early[] = {
	[DUMP_CWSR_IS_OFF] = true,
	[DUMP_HAS_NO_KFD_FILE] = true,
	[DUMP_FILE_OF_OTHER_PROCESS] = true,
	[DUMP_LACKS_VM] = true,
	[DUMP_HAS_NO_BO] = true,
	[DUMP_HAS_CONTEXTS] = true,
	[DUMP_HIGH_PRECISION] = true,
	[DUMP_QUEUE_TYPE] = true,
	[DUMP_QUEUE_XCCS] = true,
	[DUMP_QUEUE_STACK] = true,
	[DUMP_QUEUE_PARTITION] = true,
	[DUMP_QUEUE_GENERATION] = true,
	[DUMP_BO_GENERATION] = true,
	[DUMP_HAS_DMABUF] = true,
};

#define RELEASE(major, minor, patch) (((major)*1000u + (minor)) * 1000u + (patch))

/* The Linux release whose driver this is; 0: the driver is not that of the kernel, or unknown. Only
 * a warning may depend on it. */
static unsigned int find_release(void)
{
	unsigned int major = 0, minor = 0, patch = 0;
	struct utsname name;

	if (uname(&name) < 0 || !access(DRIVER_VERSION, F_OK))
		return 0;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel's numbers */
	(void)sscanf(name.release, "%u.%u.%u", &major, &minor, &patch);
	return RELEASE(major, minor, patch);
}

/* RESTORE needs the area for waves in a BO (kfd_queue_acquire_buffers() in kfd_queue.c, called by
 * kfd_criu_restore_queue()). Without SVM it always is in one. */
static bool refuses_queues(void)
{
	unsigned int release = find_release();

	return release >= RELEASE(6, 12, 111) && release <= RELEASE(6, 12, 117) && kfd_has_svm();
}

struct machine {
	const struct topology *topology;
	/* 0: not known. */
	uint32_t kfd_minor;
};

static struct machine machine_of(const struct topology *topology)
{
	struct machine machine = { .topology = topology };

	(void)kfd_check_version(&machine.kfd_minor);
	return machine;
}

/* CHECKPOINT saves the first XCC of a queue: checkpoint_mqd_v9_4_3() in kfd_mqd_manager_v9.c is
 * newer. */
static bool loses_xccs(const struct machine *machine, const struct topology_node *gpu)
{
	unsigned int release = find_release();

	(void)machine;
	return gpu->num_xcc > 1 && release && release < RELEASE(6, 18, 0);
}

/* mqd_manager_init_v9() in kfd_mqd_manager_v9.c of 7.2.12 and 7.3-rc7 takes the size of the control
 * stack of another node. */
static bool loses_stacks(const struct machine *machine, const struct topology_node *gpu)
{
	unsigned int release = find_release();

	(void)machine;
	return gpu->gfx_target_version >= TOPOLOGY_GFX9 &&
	       gpu->gfx_target_version < TOPOLOGY_GFX10 && release >= RELEASE(7, 2, 0) &&
	       release < RELEASE(7, 4, 0);
}

static bool may_overrun(const struct machine *machine, const struct topology_node *gpu)
{
	return kfd_queue_gpu_may_overrun(machine->topology, gpu, machine->kfd_minor);
}

/* Rules of compute queues that depend on what the kernel saves. */
static const struct {
	enum dump_rule name;
	bool (*breaks)(const struct machine *machine, const struct topology_node *gpu);
} compute_rules[] = {
	{ DUMP_QUEUE_XCCS, loses_xccs },
	{ DUMP_QUEUE_STACK, loses_stacks },
	{ DUMP_QUEUE_PARTITION, may_overrun },
};

static void session_done(struct dump_session *session)
{
	/* The topology is borrowed. */
	session->topology = (struct topology){ 0 };
	gpu_watch_end(session);
}

static int foresee_resets(struct dump_session *session)
{
	int ret = gpu_watch_start_all(session);

	return ret < 0 ? ret : gpu_watch_check_idle(session);
}

static void warn_of_gpu(const struct machine *machine, const struct topology_node *gpu)
{
	if (!gpu->gpu_id)
		return;
	if (gpu->gfx_target_version >= TOPOLOGY_GFX12)
		preflight_warn_of(DUMP_BO_GENERATION, "GPU 0x%04x: a BO", gpu->gpu_id);
	if (gpu->gfx_target_version >= TOPOLOGY_GFX11)
		preflight_warn_of(DUMP_QUEUE_GENERATION, "GPU 0x%04x: a queue", gpu->gpu_id);
	for (size_t i = 0; i < ARRAY_SIZE(compute_rules); i++) {
		if (compute_rules[i].breaks(machine, gpu))
			preflight_warn_of(compute_rules[i].name, "GPU 0x%04x: a compute queue",
					  gpu->gpu_id);
	}
}

int foresee_machine(const struct options *options, const struct topology *topology)
{
	_cleanup_(session_done) struct dump_session session = { .options = options,
								.topology = *topology,
								.has_topology = true };
	int ret = 0, failed;

	if (!kfd_queue_driver_saves_waves())
		ret = preflight_refuse(&session, DUMP_CWSR_IS_OFF, "a process");
	failed = foresee_resets(&session);
	return ret < 0 ? ret : failed;
}

static bool is_reachable(const struct topology_node *node)
{
	_cleanup_close_ int fd = -1;

	return node->gpu_id && !render_node_open(node->drm_render_minor, 0, &fd);
}

void foresee_warn(const struct topology *topology)
{
	const struct machine machine = machine_of(topology);
	bool can_list = true;

	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *node = &topology->nodes[i];

		warn_of_gpu(&machine, node);
		can_list &= !is_reachable(node) || render_node_gem_can_list(node->drm_render_minor);
	}
	if (!can_list)
		preflight_warn_of(DUMP_BO_UNLISTED, "a BO");
	if (refuses_queues())
		preflight_warn_of(DUMP_QUEUE_REFUSED, "a compute queue");
	if (preflight_process_ask_without_bos() == -EINVAL)
		preflight_warn_of(DUMP_HAS_NO_BO, "a process");
}

int foresee_images(const struct options *options)
{
	const struct dump_session session = { .options = options };

	return preflight_check_dump(&session);
}

/* A process of which survey.c has made a survey. */
struct subject {
	const struct dump_session *session;
	const struct topology *topology;
	const struct survey *survey;
	pid_t pid;
};

static int check_kfd_file(const struct subject *subject)
{
	pid_t pid = subject->pid, found = 0;
	const struct pid_list tasks = { .pids = &pid, .count = 1 };
	int ret = kfd_files_find_mapper(&tasks, subject->topology, &found);

	if (ret < 0)
		return log_error(ret, "process %d: cannot list its mappings", pid);
	return found ? preflight_refuse(subject->session, DUMP_HAS_NO_KFD_FILE, "process %d:", pid)
		     : 0;
}

static bool has_mappings(const struct survey *survey)
{
	for (size_t i = 0; i < survey->num_gpus; i++) {
		if (survey->gpus[i].num_mapped)
			return true;
	}
	return false;
}

/* A process that has inherited the file is no KFD process. CRIU opens the file in the process with
 * the lowest pid, so this shows only if the owner has ended or closed it; see pause.c. Sysfs lacks
 * the processes of another pid namespace, but a process that maps GPU memory has made it: no child
 * inherits the mappings of libhsakmt. */
static int check_owner(const struct subject *subject)
{
	const struct survey *survey = subject->survey;

	if (!survey->has_kfd || survey->is_in_sysfs || has_mappings(survey))
		return 0;
	preflight_warn_of(DUMP_FILE_OF_OTHER_PROCESS, "process %d:", subject->pid);
	return 0;
}

static int check_contexts(const struct subject *subject)
{
	int ret = kfd_process_has_contexts(subject->pid);

	if (ret < 0)
		return log_error(ret, "process %d: cannot list its KFD contexts", subject->pid);
	return ret ? preflight_refuse(subject->session, DUMP_HAS_CONTEXTS,
				      "process %d:", subject->pid)
		   : 0;
}

static int check_vms(const struct subject *subject)
{
	size_t visible = subject->survey->num_visible, vms = 0;
	int ret;

	if (!subject->survey->has_kfd || !survey_estimate(subject->survey))
		return 0;
	ret = kfd_process_count_vms(subject->pid, subject->topology, &vms);
	if (ret < 0)
		return log_error(ret, "process %d: cannot list its render nodes", subject->pid);
	return vms < visible ? preflight_refuse(subject->session, DUMP_LACKS_VM,
						"process %d, %zu GPUs, %zu opened:", subject->pid,
						visible, vms)
			     : 0;
}

static int check_precision(const struct subject *subject)
{
	bool has_gfx950 = false;
	int ret;

	for (size_t i = 0; i < subject->survey->num_gpus; i++)
		has_gfx950 |= subject->survey->gpus[i].node->gfx_target_version == TOPOLOGY_GFX950;
	if (!has_gfx950)
		return 0;
	ret = kfd_process_was_started_with(subject->pid, "HSA_HIGH_PRECISION_MODE");
	if (ret < 0)
		return log_error(ret, "process %d: cannot read its environment", subject->pid);
	return ret ? preflight_refuse(subject->session, DUMP_HIGH_PRECISION,
				      "process %d:", subject->pid)
		   : 0;
}

static int check_queue(const struct subject *subject, const struct survey_queue *queue)
{
	const struct topology_node *gpu = topology_find_gpu(subject->topology, queue->gpu_id);
	enum dump_rule rule;

	if (queue->type != KFD_PRIV_QUEUE_COMPUTE && queue->type != KFD_PRIV_QUEUE_SDMA &&
	    queue->type != KFD_PRIV_QUEUE_SDMA_XGMI)
		rule = DUMP_QUEUE_TYPE;
	else if (gpu && gpu->gfx_target_version >= TOPOLOGY_GFX11)
		rule = DUMP_QUEUE_GENERATION;
	else
		return 0;
	return preflight_refuse(subject->session, rule,
				"process %d: queue %u of type %u on GPU 0x%04x", subject->pid,
				queue->id, queue->type, queue->gpu_id);
}

/* The first compute queue on a GPU for which @breaks is true; on any GPU if it is NULL. */
static const struct survey_queue *
find_compute_queue(const struct subject *subject, const struct machine *machine,
		   bool (*breaks)(const struct machine *machine, const struct topology_node *gpu))
{
	for (size_t i = 0; i < subject->survey->num_queues; i++) {
		const struct survey_queue *queue = &subject->survey->queues[i];
		const struct topology_node *gpu =
			topology_find_gpu(subject->topology, queue->gpu_id);

		if (queue->type == KFD_PRIV_QUEUE_COMPUTE &&
		    (!breaks || (gpu && breaks(machine, gpu))))
			return queue;
	}
	return NULL;
}

static void warn_of_queues(const struct subject *subject)
{
	const struct survey_queue *queue = find_compute_queue(subject, NULL, NULL);
	struct machine machine;

	if (!queue)
		return;
	if (refuses_queues())
		preflight_warn_of(DUMP_QUEUE_REFUSED, "process %d: queue %u", subject->pid,
				  queue->id);
	machine = machine_of(subject->topology);
	for (size_t i = 0; i < ARRAY_SIZE(compute_rules); i++) {
		queue = find_compute_queue(subject, &machine, compute_rules[i].breaks);
		if (queue)
			preflight_warn_of(compute_rules[i].name, "process %d: queue %u",
					  subject->pid, queue->id);
	}
}

static int check_queues(const struct subject *subject)
{
	const struct survey *survey = subject->survey;
	int ret = 0;

	for (size_t i = 0; !ret && i < survey->num_queues; i++)
		ret = check_queue(subject, &survey->queues[i]);
	if (!ret)
		warn_of_queues(subject);
	return ret;
}

static int check_contents(const struct subject *subject)
{
	for (size_t i = 0; i < subject->survey->num_gpus; i++) {
		const struct survey_gpu *gpu = &subject->survey->gpus[i];

		if (gpu->node->gfx_target_version >= TOPOLOGY_GFX12 &&
		    (gpu->vram_bytes || gpu->num_mapped))
			return preflight_refuse(subject->session, DUMP_BO_GENERATION,
						"process %d: a BO of GPU 0x%04x", subject->pid,
						gpu->node->gpu_id);
	}
	return 0;
}

static int check_bos(const struct subject *subject)
{
	if (subject->survey->has_kfd && !survey_estimate(subject->survey) &&
	    preflight_process_ask_without_bos() == -EINVAL)
		preflight_warn_of(DUMP_HAS_NO_BO, "process %d:", subject->pid);
	return 0;
}

/* Up to Linux 6.12 at least, the driver stops the queues of a process for 100 ms when a copy of a
 * file with their VM is closed: amdgpu_flush() waits for KFD's eviction fence. Linux 7.2 does not,
 * which lists the handles. */
static bool stops_queues(const struct subject *subject, int number, uint32_t minor)
{
	return subject->survey->has_kfd && !render_node_gem_can_list(minor) &&
	       kfd_process_has_vm_in(subject->pid, number);
}

static int check_render_file(const struct subject *subject, int number, uint32_t minor)
{
	_cleanup_free_ struct render_gem *gems = NULL;
	_cleanup_close_ int fd = -1;
	uint32_t count = 0;
	size_t listed;
	int ret;

	if (stops_queues(subject, number, minor))
		return 0;
	ret = proc_get_fd(subject->pid, number, &fd);
	if (!ret)
		ret = render_node_gem_count(fd, &count);
	/* The dump reports what the driver does not answer. */
	if (ret < 0 || !count)
		return 0;
	if (render_node_gem_list(fd, &gems, &listed) < 0)
		return preflight_refuse(subject->session, DUMP_HAS_GEM_OBJECTS,
					"process %d: file %d, renderD%u", subject->pid, number,
					minor);
	/* They may be those of KFD's BOs. */
	preflight_warn_of(DUMP_HAS_GEM_OBJECTS, "process %d: file %d, renderD%u", subject->pid,
			  number, minor);
	return 0;
}

static int check_dmabuf(const struct subject *subject, int number)
{
	_cleanup_close_ int fd = -1;

	if (proc_get_fd(subject->pid, number, &fd) < 0 || kfd_is_dmabuf(fd) <= 0)
		return 0;
	preflight_warn_of(DUMP_HAS_DMABUF, "process %d: file %d", subject->pid, number);
	return 0;
}

static int check_file(const struct subject *subject, int number)
{
	struct stat stat;
	uint32_t minor;
	int ret = proc_stat_fd(subject->pid, number, &stat);

	if (ret <= 0)
		return 0;
	/* A dma-buf has no file type. */
	if (!(stat.st_mode & S_IFMT))
		return check_dmabuf(subject, number);
	if (S_ISCHR(stat.st_mode) && render_node_is_device(stat.st_rdev, &minor) &&
	    topology_find_minor(subject->topology, minor))
		return check_render_file(subject, number, minor);
	return 0;
}

static int check_files(const struct subject *subject)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int number;
	int ret = proc_open_fds(subject->pid, &stream), broken = 0;

	if (ret <= 0)
		return ret;
	ret = 0;
	while (!ret && proc_next_fd(stream, &number, &ret)) {
		int failed = check_file(subject, number);

		broken = broken ? broken : failed;
	}
	return ret ? ret : broken;
}

int foresee_process(const struct options *options, const struct topology *topology,
		    const struct survey *survey)
{
	static int (*const checks[])(const struct subject *subject) = {
		check_kfd_file, check_owner,    check_contexts, check_vms,   check_precision,
		check_queues,   check_contents, check_bos,      check_files,
	};
	const struct dump_session session = { .options = options };
	const struct subject subject = { &session, topology, survey, survey->pid };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		int failed = checks[i](&subject);

		ret = ret ? ret : failed;
	}
	return ret;
}

static bool is_late(size_t index)
{
	return preflight_get_text(index)->group != PREFLIGHT_DUMP &&
	       (index >= ARRAY_SIZE(shows_early) || !shows_early[index]);
}

bool foresee_name_late(size_t index, char *text, size_t size)
{
	static const char *const objects[] = {
		[PREFLIGHT_DUMP] = "the dump",          [PREFLIGHT_PROCESS] = "a process",
		[PREFLIGHT_QUEUE] = "a queue",          [PREFLIGHT_BO] = "a BO",
		[PREFLIGHT_FILE] = "a file or mapping",
	};

	const struct preflight_text *rule;

	for (size_t i = 0; (rule = preflight_get_text(i)); i++) {
		if (!is_late(i) || index--)
			continue;
		(void)snprintf(text, size, "%s %s", objects[rule->group], rule->what);
		return true;
	}
	return false;
}
