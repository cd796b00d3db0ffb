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
#include "preflight/bo_index.h"
#include "preflight/kfd_process.h"
#include "preflight/preflight.h"
#include "survey.h"

#define RELEASE(major, minor, patch) (((major)*1000u + (minor)) * 1000u + (patch))

/* The Linux release whose driver this is, or 0 if the driver is not that of the kernel. Only
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
	/* Or 0, if unknown. */
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
	if (preflight_lacks_copy_packets(gpu))
		preflight_warn_of(DUMP_BO_GENERATION, "GPU 0x%04x: a BO", gpu->gpu_id);
	if (preflight_lacks_queue_support(gpu))
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
								.topology = *topology };
	int ret = preflight_check_driver(&session), failed = foresee_resets(&session);

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
	/* What a dump knows of the process before CHECKPOINT. */
	struct dumped_process process;
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

static bool is_visible(const struct survey *survey, const struct survey_gpu *gpu)
{
	return survey->is_in_sysfs ? gpu->is_visible : gpu->num_mapped;
}

static int fill_process(struct subject *subject, struct dump_session *session)
{
	const struct survey *survey = subject->survey;
	struct dumped_process *process = &subject->process;
	struct kfd_state *state = &process->state;

	process->session = session;
	process->pid = survey->pid;
	(void)snprintf(process->name, sizeof(process->name), "process %d", survey->pid);
	state->devices =
		calloc(survey->num_gpus + survey->num_visible + 1, sizeof(*state->devices));
	if (!state->devices)
		return -ENOMEM;
	for (size_t i = 0; i < survey->num_gpus; i++) {
		const uint32_t id = survey->gpus[i].node->gpu_id;

		if (is_visible(survey, &survey->gpus[i]))
			state->devices[state->num_devices++] =
				(struct kfd_device_bucket){ .user_gpu_id = id,
							    .actual_gpu_id = id };
	}
	if (survey->is_in_sysfs)
		state->num_devices = (uint32_t)survey->num_visible;
	/* The number is not known, and CHECKPOINT of a process without BOs looks at no VM. */
	state->num_bos = survey->has_kfd && survey_estimate(survey);
	return 0;
}

static int check_process(const struct subject *subject)
{
	return preflight_process_check_early(&subject->process);
}

static int check_queue_rules(const struct subject *subject)
{
	const struct survey *survey = subject->survey;
	_cleanup_free_ struct kfd_priv_queue *queues =
		calloc(survey->num_queues + 1, sizeof(*queues));
	size_t count = 0;

	if (!queues)
		return -ENOMEM;
	for (size_t i = 0; i < survey->num_queues; i++) {
		const struct survey_queue *queue = &survey->queues[i];

		if (bo_index_find_gpu(&subject->process.state, subject->topology, queue->gpu_id))
			queues[count++] = (struct kfd_priv_queue){ .id = queue->id,
								   .type = queue->type,
								   .gpu_id = queue->gpu_id };
	}
	return preflight_check_queues_early(&subject->process, queues, count);
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
	int ret = check_queue_rules(subject);

	if (!ret)
		warn_of_queues(subject);
	return ret;
}

static int check_contents(const struct subject *subject)
{
	for (size_t i = 0; i < subject->survey->num_gpus; i++) {
		const struct survey_gpu *gpu = &subject->survey->gpus[i];

		if (preflight_lacks_copy_packets(gpu->node) && (gpu->vram_bytes || gpu->num_mapped))
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

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	while (!ret && proc_next_fd(stream, &number, &ret)) {
		int failed = check_file(subject, number);

		broken = broken ? broken : failed;
	}
	return ret ? ret : broken;
}

static int check_all(const struct subject *subject)
{
	static int (*const checks[])(const struct subject *subject) = {
		check_kfd_file, check_owner, check_process, check_queues,
		check_contents, check_bos,   check_files,
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		int failed = checks[i](subject);

		ret = ret ? ret : failed;
	}
	return ret;
}

int foresee_process(const struct options *options, const struct topology *topology,
		    const struct survey *survey)
{
	_cleanup_(session_done) struct dump_session session = {
		.options = options,
		.topology = *topology,
		.kfd_minor = survey->has_kfd ? machine_of(topology).kfd_minor : 0,
	};
	struct subject subject = {
		.session = &session, .topology = topology, .survey = survey, .pid = survey->pid
	};
	int ret = fill_process(&subject, &session);

	if (!ret)
		ret = check_all(&subject);
	free(subject.process.state.devices);
	return ret;
}

static bool is_late(size_t index)
{
	return !preflight_shows_early(index);
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
