// SPDX-License-Identifier: GPL-2.0-only
/* Applies those rules of preflight.c that need no CHECKPOINT, without pausing a process. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/gpu_watch.h"
#include "foresee.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "pause/kfd_files.h"
#include "pause/pause.h"
#include "preflight/bo_index.h"
#include "preflight/gem_list.h"
#include "preflight/preflight.h"
#include "preflight/preflight_process.h"
#include "session/dump_session.h"
#include "sharing/dmabufs.h"
#include "survey.h"

/* The Linux release whose driver this is, or 0 if the driver is not that of the kernel. Only
 * a warning may depend on it. */
static unsigned int find_release(void)
{
	unsigned int major = 0, minor = 0, patch = 0;
	struct utsname name;

	if (uname(&name) < 0 || !access(DRIVER_VERSION, F_OK))
		return 0;
	(void)sscanf(name.release, "%u.%u.%u", &major, &minor, &patch);
	return PREFLIGHT_RELEASE(major, minor, patch);
}

static void warn_of(const struct options *options, enum dump_rule rule, const char *object)
{
	if (preflight_get_range(rule)->waits && options->drain_s)
		log_warn("%s: a dump waits until its kernels have ended, up to %" PRIu64
			 " s (AMDGPU_DRAIN), because this kernel does not restore running waves",
			 object, options->drain_s);
	else
		preflight_warn_of(rule, "%s", object);
}

/* Whether this kernel's compute queues on the GPU break the rule. */
static bool breaks(const struct topology_node *gpu, enum dump_rule rule)
{
	const struct preflight_range *range = preflight_get_range(rule);
	unsigned int release = find_release();

	return range && release >= range->first && release < range->end && range->concerns(gpu);
}

static int first_error(int ret, int other)
{
	return ret ? ret : other;
}

int foresee_machine(const struct options *options, const struct topology *topology)
{
	struct dump_session session = { .options = options, .topology = *topology };
	int ret = preflight_check_driver(&session), failed = gpu_watch_start_all(&session);

	ret = first_error(ret, failed ? failed : gpu_watch_check_idle(&session));
	gpu_watch_end(&session);
	return ret;
}

static bool is_reachable(const struct topology_node *node)
{
	_cleanup_close_ int fd = -1;

	return node->gpu_id && !render_node_open(node->drm_render_minor, 0, &fd);
}

static void warn_of_gpu(const struct dump_session *session, const struct topology_node *gpu)
{
	char object[64];

	preflight_warn_of_gpu(session, gpu);
	(void)snprintf(object, sizeof(object), "GPU 0x%04x: a compute queue", gpu->gpu_id);
	for (enum dump_rule rule = 0; rule < DUMP_RULES; rule++) {
		if (breaks(gpu, rule))
			warn_of(session->options, rule, object);
	}
}

void foresee_warn(const struct options *options, const struct topology *topology)
{
	struct dump_session session = { .options = options, .topology = *topology };
	bool can_list = true;

	(void)kfd_check_version(&session.kfd_minor);
	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *node = &topology->nodes[i];

		if (node->gpu_id)
			warn_of_gpu(&session, node);
		can_list &= !is_reachable(node) || render_node_gem_can_list(node->drm_render_minor);
	}
	if (!can_list)
		preflight_warn_of(DUMP_BO_UNLISTED, "a BO");
	if (preflight_process_ask_without_bos() == -EINVAL)
		preflight_warn_of(DUMP_HAS_NO_BO, "a process");
}

enum foresee_queue foresee_compute_queue(const struct topology_node *gpu)
{
	enum foresee_queue queue = FORESEE_QUEUE_WITH_WAVES;

	if (gpu->gfx_target_version >= TOPOLOGY_GFX11)
		return FORESEE_QUEUE_NONE;
	for (enum dump_rule rule = 0; rule < DUMP_RULES; rule++) {
		if (!breaks(gpu, rule))
			continue;
		if (!preflight_get_range(rule)->waits)
			return FORESEE_QUEUE_NONE;
		queue = FORESEE_QUEUE_AT_REST;
	}
	return queue;
}

int foresee_images(const struct options *options)
{
	const struct dump_session session = { .options = options };

	return preflight_check_dump(&session);
}

/* What a dump knows of the process before CHECKPOINT. */
static int fill_process(struct dumped_process *process, const struct survey *survey)
{
	struct kfd_state *state = &process->state;

	(void)snprintf(process->name, sizeof(process->name), "process %d", process->pid);
	state->devices =
		calloc(survey->num_gpus + survey->num_visible + 1, sizeof(*state->devices));
	if (!state->devices)
		return -ENOMEM;
	for (size_t i = 0; i < survey->num_gpus; i++) {
		const struct survey_gpu *gpu = &survey->gpus[i];
		const uint32_t id = gpu->node->gpu_id;

		if (survey->is_in_sysfs ? gpu->is_visible : gpu->num_mapped)
			state->devices[state->num_devices++] =
				(struct kfd_device_bucket){ .user_gpu_id = id,
							    .actual_gpu_id = id };
	}
	if (survey->is_in_sysfs)
		state->num_devices = (uint32_t)survey->num_visible;
	/* The number is not known, and CHECKPOINT of a process without BOs looks at no VM. */
	state->num_bos = survey->has_kfd && survey_estimate(survey, NULL);
	return 0;
}

static int foresee_process(const struct dumped_process *process, const struct survey *survey)
{
	if (survey->has_kfd && !process->state.num_bos &&
	    preflight_process_ask_without_bos() == -EINVAL)
		preflight_warn_of(DUMP_HAS_NO_BO, "%s:", process->name);
	return preflight_process_check_early(process);
}

static void warn_of_queue(const struct dumped_process *process, const struct survey *survey,
			  enum dump_rule rule)
{
	char object[64];

	for (size_t i = 0; i < survey->num_queues; i++) {
		const struct survey_queue *queue = &survey->queues[i];
		const struct topology_node *gpu =
			topology_find_gpu(&process->session->topology, queue->gpu_id);

		if (queue->type == KFD_PRIV_QUEUE_COMPUTE && gpu && breaks(gpu, rule)) {
			(void)snprintf(object, sizeof(object), "%s: queue %u", process->name,
				       queue->id);
			warn_of(process->session->options, rule, object);
			return;
		}
	}
}

static int check_queues(const struct dumped_process *process, const struct survey *survey)
{
	_cleanup_free_ struct kfd_priv_queue *queues =
		calloc(survey->num_queues + 1, sizeof(*queues));
	size_t count = 0;

	if (!queues)
		return -ENOMEM;
	for (size_t i = 0; i < survey->num_queues; i++) {
		const struct survey_queue *queue = &survey->queues[i];

		if (bo_index_gpu_of(process, queue->gpu_id))
			queues[count++] = (struct kfd_priv_queue){ .id = queue->id,
								   .type = queue->type,
								   .gpu_id = queue->gpu_id };
	}
	for (enum dump_rule rule = 0; rule < DUMP_RULES; rule++)
		warn_of_queue(process, survey, rule);
	return preflight_check_queues_early(process, queues, count);
}

static int check_contents(const struct dumped_process *process, const struct survey *survey)
{
	for (size_t i = 0; i < survey->num_gpus; i++) {
		const struct survey_gpu *gpu = &survey->gpus[i];

		if (preflight_lacks_copy_packets(gpu->node) && (gpu->vram_bytes || gpu->num_mapped))
			return preflight_refuse(process->session, DUMP_BO_GENERATION,
						"%s: a BO of GPU 0x%04x", process->name,
						gpu->node->gpu_id);
	}
	return 0;
}

/* If the kernel lists objects, they may be those of KFD's BOs. Otherwise the files that are looked
 * at are no compute files, and any object is refused. */
static int check_render_file(const struct dumped_process *process, const struct gem_file *file)
{
	char name[80];

	(void)snprintf(name, sizeof(name), "%s: descriptor %d: renderD%u", process->name,
		       file->number, file->gpu->drm_render_minor);
	if (!file->num_handles)
		return 0;
	if (!render_node_gem_can_list(file->gpu->drm_render_minor))
		return preflight_refuse(process->session, DUMP_HAS_GEM_OBJECTS, "%s", name);
	preflight_warn_of(DUMP_HAS_GEM_OBJECTS, "%s", name);
	return 0;
}

static int check_render_files(const struct dumped_process *process, const struct survey *survey)
{
	const struct topology *topology = &process->session->topology;
	_cleanup_(gem_list_files_done) struct gem_files files = { 0 };
	int ret = survey->has_kfd ? gem_list_read_running(process->pid, topology, &files)
				  : gem_list_read(process->pid, topology, &files);

	/* The process may have freed a handle or ended meanwhile. */
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	for (size_t i = 0; !ret && i < files.count; i++)
		ret = check_render_file(process, &files.list[i]);
	return ret;
}

static int check_survey(struct dump_session *session, const struct survey *survey)
{
	static int (*const checks[])(const struct dumped_process *process,
				     const struct survey *survey) = {
		foresee_process,
		check_queues,
		check_contents,
		check_render_files,
	};
	struct dumped_process process = { .session = session, .pid = survey->pid };
	int ret = fill_process(&process, survey);

	for (size_t i = 0; ret != -ENOMEM && i < ARRAY_SIZE(checks); i++)
		ret = first_error(ret, checks[i](&process, survey));
	free(process.state.devices);
	return ret;
}

/* The file of the process: of several that it has, the one that CRIU opens in it. A process that
 * maps GPU memory has a KFD process: no child inherits the mappings of libhsakmt. Sysfs has no
 * processes of another pid namespace. */
static struct dumped_file *find_own_file(const struct dump_session *session,
					 const struct survey *survey, pid_t vpid)
{
	struct dumped_file *own = NULL;

	if (!survey->is_in_sysfs && !survey->maps_gpu)
		return NULL;
	for (size_t i = 0; i < session->num_files; i++) {
		struct dumped_file *file = &session->files[i];

		if ((!own || file->reopen_vpid == vpid) && kfd_files_has(survey->pid, file->fd) > 0)
			own = file;
	}
	return own;
}

/* Sets fd to -1 in the files that have an owner. */
static int check_own_file(struct dump_session *session, const struct survey *survey)
{
	struct dumped_process process = { .session = session };
	struct dumped_file *file;

	if (proc_vpid(survey->pid, &process.vpid) < 0)
		return 0;
	file = find_own_file(session, survey, process.vpid);
	if (!file)
		return 0;
	process.reopen_vpid = file->reopen_vpid;
	fd_close(&file->fd);
	return preflight_process_check_reopen(&process);
}

static int check_kfd_files(struct dump_session *session, const struct survey *surveys, size_t count)
{
	int ret = kfd_files_find(session, 0);

	if (ret == -EPERM || ret == -ENOSYS) {
		log_warn(
			"processes: cannot compare their files of /dev/kfd: %s; run this command as root, and allow pidfd_getfd and kcmp to CRIU",
			strerror(-ret));
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		ret = first_error(ret, check_own_file(session, &surveys[i]));
	for (size_t i = 0; i < session->num_files; i++) {
		if (session->files[i].fd >= 0)
			preflight_warn_of(DUMP_FILE_OF_OTHER_PROCESS,
					  "process %d:", session->files[i].pid);
	}
	return ret;
}

/* Only CHECKPOINT tells which dma-bufs are those of BOs. */
static int check_dmabufs(const struct dump_session *session)
{
	_cleanup_(dmabufs_done) struct dmabuf_files files = { 0 };
	int ret = dmabufs_list(&session->tasks, &files);

	for (size_t i = 0; !ret && i < files.count; i++) {
		const struct dmabuf_file *file = &files.list[i];
		_cleanup_close_ int fd = -1;

		if (i && file[-1].inode == file->inode && file[-1].device == file->device)
			continue;
		if (!proc_get_fd(file->pid, file->number, &fd) && kfd_is_dmabuf(fd) > 0)
			preflight_warn_of(DUMP_HAS_DMABUF, "process %d: descriptor %d", file->pid,
					  file->number);
	}
	return ret;
}

static int check_machine(struct dump_session *session)
{
	int ret = preflight_check_driver(session), failed = gpu_watch_start(session);

	return first_error(ret, failed ? failed : gpu_watch_check_idle(session));
}

int foresee_tree(const struct options *options, const struct topology *topology,
		 const struct pid_list *tasks, const struct survey *surveys, size_t count)
{
	/* All but the watches and the files is borrowed. */
	struct dump_session session = { .options = options,
					.topology = *topology,
					.tasks = *tasks };
	int ret;

	(void)kfd_check_version(&session.kfd_minor);
	ret = check_machine(&session);
	ret = first_error(ret, kfd_files_check_mappers(&session));
	ret = first_error(ret, check_kfd_files(&session, surveys, count));
	ret = first_error(ret, check_dmabufs(&session));
	for (size_t i = 0; i < count; i++)
		ret = first_error(ret, check_survey(&session, &surveys[i]));
	pause_close_files(&session);
	gpu_watch_end(&session);
	return ret;
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
		if (preflight_shows_early(i) || index--)
			continue;
		(void)snprintf(text, size, "%s %s", objects[rule->group], rule->what);
		return true;
	}
	return false;
}
