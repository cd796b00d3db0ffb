// SPDX-License-Identifier: GPL-2.0-only
/* The entry: what CRIU sees of the plugin. A hook finds out whether the thing is ours, calls one
 * function, and answers as CRIU expects: -ENOTSUP for everything that is not. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "criu/options.h"
#include "criu/plugin_abi.h"
#include "dump/dump.h"
#include "dump/kfd_files.h"
#include "dump/pause.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "kernel/kfd.h"
#include "restore/fill.h"
#include "restore/mappings.h"
#include "restore/restore.h"
#include "restore/restore_guard.h"
#include "session.h"

static struct session session;

/* Dumps in which a process's memory would be of another moment than its GPUs'. */
static const struct {
	/* 0: this dump is one; -ENOENT: it is not; other errors after a line. */
	int (*find)(void);
	const char *reason;
	const char *remedy;
} torn_dumps[] = {
	/* What a GPU writes to a process's memory makes no page dirty, so that CRIU would take it
	 * from the images of the dump before, as it was then. */
	{ image_dir_find_parent,
	  "is an incremental one, which lacks what a GPU has written to the process's memory since"
	  " the one before",
	  "leave out --prev-images-dir, and remove the link \"parent\" from the image directory" },
	{ host_is_lazy_dump,
	  "is a lazy one, and this CRIU ends the plugin, so that the queues run again, before the"
	  " process's memory has left",
	  "leave out --lazy-pages, or take a newer CRIU" },
};

static int check_moment(const struct session *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(torn_dumps); i++) {
		int ret = torn_dumps[i].find();

		if (ret == -ENOENT)
			continue;
		if (ret < 0)
			return ret;
		if (!s->options.force)
			return log_error(-EOPNOTSUPP,
					 "dump: %s; %s; AMDGPU_FORCE=1 dumps it all the same",
					 torn_dumps[i].reason, torn_dumps[i].remedy);
		log_warn("dump: %s; dumped all the same, as AMDGPU_FORCE says",
			 torn_dumps[i].reason);
	}
	return 0;
}

int session_note(struct session *s)
{
	int ret;

	if (s->noted)
		return 0;
	s->involved = true;
	ret = check_moment(s);
	if (ret < 0)
		return ret;
	ret = host_inventory_add(PLUGIN_NAME);
	if (ret < 0)
		return log_error(ret, "inventory: cannot note the plugin");
	ret = image_dir_remove_old();
	s->noted = !ret;
	return ret;
}

int session_topology(struct session *s, const struct topology **ret_topology)
{
	int ret = s->has_topology ? 0 : topology_read(TOPOLOGY_SYSFS, &s->topology);

	if (ret < 0)
		return log_error(ret, "topology: cannot read %s", TOPOLOGY_SYSFS);
	s->has_topology = true;
	*ret_topology = &s->topology;
	return 0;
}

static int init(int stage)
{
	int ret;

	session = (struct session){ .stage = stage };
	ret = options_read(&session.options);
	if (ret < 0 || stage != STAGE_RESTORE)
		return ret;
	session.needed = host_inventory_take(PLUGIN_NAME);
	ret = restore_init(&session);
	/* After a failure here some hosts do not call exit(). */
	if (ret < 0) {
		restore_done(&session);
		options_done(&session.options);
	}
	return ret;
}

/* What can only be known or done when all files have been shown. */
static int complete_dump(void)
{
	int ret = render_finish(&session);

	return ret < 0 ? ret : pause_check_all_seen(&session);
}

/* Images of a dump that failed go while the guard stands: if CRIU is killed on the way, they go all
 * the same. The job's queues wait for that, but no longer than some files' names take. */
static int release(int ret)
{
	if (ret)
		dump_remove_images(&session);
	session.released = true;
	return pause_undo_all(&session);
}

/* On hosts without DUMP_FINISH this is the last moment at which the tasks are stopped and traced,
 * and too late to fail: of an image that has waited so long and finds no streamer there is a line,
 * and the restore will lack it. On the other hosts there is nothing left to do. */
static void finish(int stage, int ret)
{
	if (stage == STAGE_DUMP) {
		if (!ret)
			ret = complete_dump();
		(void)release(ret);
	}
	/* Too late to fail as well, so nothing may be left that could be taken
	 * for a restored task. */
	if (stage == STAGE_RESTORE && !ret && restore_guard_check_done(session.restore_guard) < 0)
		restore_guard_detach(&session.restore_guard);
	dump_done(&session);
	pid_list_done(&session.tasks);
	restore_done(&session);
	topology_done(&session.topology);
	options_done(&session.options);
}

/* Nothing is paused by pid; it is but told which processes the dump is of. */
static int pause_devices(int pid)
{
	int ret = pid_list_add(&session.tasks, pid);

	if (!ret)
		return -ENOTSUP;
	session.involved = true;
	return log_error(ret, "process %d: cannot note it", pid);
}

/* CRIU asks about the first mapping when it has stopped all tasks. */
static int check_mappings(void)
{
	const struct topology *topology;
	int ret;

	if (session.mappings_are_checked)
		return 0;
	ret = session_topology(&session, &topology);
	if (!ret)
		ret = kfd_files_check_mappings(&session.tasks, topology);
	session.mappings_are_checked = !ret;
	return ret;
}

static int note_device_vma(void)
{
	int ret;

	if (session.stage == STAGE_PRE_DUMP)
		return log_error(-EOPNOTSUPP,
				 "pre-dump: what a GPU writes is not tracked, so memory"
				 " cannot be saved in advance");
	ret = session_note(&session);
	return ret < 0 ? ret : check_mappings();
}

/* @answer: 1, 0, or -errno, with which it may be ours: then CRIU, which does not know
 * it, fails the dump. */
static bool is_ours(int answer)
{
	session.involved |= answer != 0;
	return answer > 0;
}

static int handle_device_vma(int fd, const struct stat *stat)
{
	if (!is_ours(kfd_is_file(stat)) && !is_ours(render_is_file(fd, stat)))
		return -ENOTSUP;
	return host_errno(note_device_vma());
}

static int dump_ext_file(int fd, int id)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return errno == EBADF
			       ? -ENOTSUP
			       : host_errno(log_error(-errno, "file %d: cannot examine", id));
	if (is_ours(kfd_is_file(&stat)))
		return host_errno(dump_kfd(&session, fd, id));
	if (is_ours(render_is_file(fd, &stat)))
		return host_errno(render_dump(&session, fd, id));
	if (!(stat.st_mode & S_IFMT) && kfd_is_dmabuf(fd))
		return host_errno(log_error(-EOPNOTSUPP,
					    "file %d: is a dma-buf of an AMD GPU, which"
					    " cannot be saved yet; have the process close it, or"
					    " turn sharing off (NCCL_P2P_DISABLE=1 and the like)",
					    id));
	return -ENOTSUP;
}

static int restore_kfd_file(int id)
{
	CriuKfd *image;
	int ret = restore_read_kfd(&session, id, &image);

	if (ret < 0)
		return ret;
	ret = restore_kfd(&session, id, image);
	/* -ENOENT would mean that there is no such image. */
	return ret == -ENOENT ? -ENODEV : ret;
}

static int restore_render_file(int id)
{
	CriuRenderNode *image;
	int ret = image_read_render(id, &image);

	if (ret < 0)
		return ret;
	ret = render_restore(&session, id, image);
	criu_render_node__free_unpacked(image, NULL);
	/* As above. */
	return ret == -ENOENT ? -ENODEV : ret;
}

static int restore_ext_file(int id)
{
	int ret = restore_kfd_file(id);

	if (ret == -ENOENT)
		ret = restore_render_file(id);
	if (ret != -ENOENT)
		return host_errno(ret);
	image_dir_report_missing(id, session.needed);
	return -ENOTSUP;
}

/* As newer hosts call it; they leave the second argument as it was. Nothing needs a retry: who
 * comes first reads what the others need. */
static int restore_ext_file_retry(int id, bool *retry_needed)
{
	*retry_needed = false;
	return restore_ext_file(id);
}

/* 1: the offset has changed. After an error CRIU may go on with the old offset, which could be
 * another GPU's here: so the task must not be resumed. */
static int update_vma_map(const char *path, const uint64_t addr, const uint64_t old_offset,
			  uint64_t *new_offset, int *plugin_fd)
{
	int ret =
		mappings_update(&session.task.vmas, path, addr, old_offset, new_offset, plugin_fd);

	if (ret < 0 && ret != -ENOTSUP)
		restore_mark_failed(&session);
	return ret < 0 ? ret : 1;
}

static int resume_devices_late(int pid)
{
	return restore_resume(&session, pid);
}

static int post_forking(void)
{
	if (!session.handoff)
		return -ENOTSUP;
	fill_listen(&session);
	return 0;
}

static int restore_init_hook(void)
{
	return -ENOTSUP;
}

/* Everything else has been saved. May come again with an error, when nothing is paused any more: of
 * what becomes of the images then, exit() is told. */
static int dump_finish(int result)
{
	int ret = 0, released = 0;

	if (!session.released) {
		ret = result ? 0 : complete_dump();
		released = release(result ? result : ret);
	}
	if (!ret && !session.num_processes)
		return -ENOTSUP;
	return host_errno(ret < 0 ? ret : released);
}

extern struct criu_plugin_desc CR_PLUGIN_DESC;
__attribute__((visibility("default"))) struct criu_plugin_desc CR_PLUGIN_DESC = {
	.name = PLUGIN_NAME,
	.init = init,
	.exit = finish,
	.version = CRIU_PLUGIN_VERSION_0_2,
	.max_hooks = HOOK_MAX,
	.hooks = {
		[HOOK_DUMP_EXT_FILE] = (void *)dump_ext_file,
		[HOOK_RESTORE_EXT_FILE] = (void *)restore_ext_file,
		[HOOK_HANDLE_DEVICE_VMA] = (void *)handle_device_vma,
		[HOOK_UPDATE_VMA_MAP] = (void *)update_vma_map,
		[HOOK_RESUME_DEVICES_LATE] = (void *)resume_devices_late,
		[HOOK_PAUSE_DEVICES] = (void *)pause_devices,
		[HOOK_POST_FORKING] = (void *)post_forking,
		[HOOK_RESTORE_INIT] = (void *)restore_init_hook,
		[HOOK_DUMP_FINISH] = (void *)dump_finish,
	},
};

/* Runs before CRIU looks at the descriptor. A host without DUMP_FINISH is one without the second
 * argument of RESTORE_EXT_FILE. */
static void __attribute__((constructor)) fit_to_host(void)
{
	CR_PLUGIN_DESC.max_hooks = host_count_hooks();
	if (CR_PLUGIN_DESC.max_hooks > HOOK_DUMP_FINISH)
		CR_PLUGIN_DESC.hooks[HOOK_RESTORE_EXT_FILE] = (void *)restore_ext_file_retry;
}
