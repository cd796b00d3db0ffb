// SPDX-License-Identifier: GPL-2.0-only
/* The entry: CRIU's hooks. Each hook finds out whether the file or task concerns an AMD GPU, calls
 * one function, and answers as CRIU expects: -ENOTSUP for everything else. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "criu/after_tasks.h"
#include "criu/host.h"
#include "criu/log.h"
#include "criu/options.h"
#include "criu/plugin_abi.h"
#include "dump/dump.h"
#include "dump/dump_files.h"
#include "dump/writeback.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "kernel/kfd.h"
#include "preflight/preflight.h"
#include "restore/restore.h"
#include "restore/restore_dmabuf.h"
#include "restore/resume.h"
#include "session/dump_session.h"
#include "session/restore_session.h"

static struct session {
	int stage;
	struct options options;
	struct dump_session dump;
	struct restore_session restore;
} session = {
	.dump.options = &session.options,
	.restore.options = &session.options,
};

static int init(int stage)
{
	int ret;

	session.stage = stage;
	host_find_streamer();
	ret = options_read(&session.options);
	if (ret < 0 || stage == STAGE_PRE_DUMP)
		return ret;
	if (stage == STAGE_DUMP) {
		if (!host_has_hook(HOOK_PAUSE_DEVICES))
			writeback_prepare(&session.dump, 0);
		return 0;
	}
	session.restore.needed = host_inventory_take(PLUGIN_NAME);
	ret = restore_init(&session.restore);
	/* After a failure here some hosts do not call exit(). */
	if (ret < 0) {
		restore_done(&session.restore);
		options_done(&session.options);
	}
	return ret;
}

/* With CRIU before 4.3, which has no DUMP_FINISH, this is the last moment at which the tasks are
 * stopped and traced. CRIU does not ask for a result here: it would kill the tasks although their
 * images are incomplete. CRIU 4.0 to 4.2 have run the post-dump script by then. */
static void finish_dump(int result)
{
	int ret = dump_end(&session.dump, result);

	if (ret < 0 && !result) {
		log_warn("dump: failed at its end, so CRIU exits here and lets the job go");
		host_fail_dump();
	}
}

/* podman shows only the last error in CRIU's log. CRIU has logged errors of its own since the one
 * of the task that failed, so that one is repeated as the last. CRIU has stopped its helper for
 * cgroups before it calls RESUME_DEVICES_LATE, and another process may have the helper's pid by
 * now. */
static void repeat_first_error(void)
{
	const char *line = log_first_error();

	if (!line)
		return;
	if (!session.restore.resumed.called)
		host_stop_cgroup_helper();
	(void)log_error(0, "restore failed: %s", line);
}

static int finish_writeback(void)
{
	int ret = writeback_finish(&session.dump);

	dump_done(&session.dump);
	options_done(&session.options);
	return ret;
}

static void finish(int stage, int ret)
{
	if (stage == STAGE_DUMP)
		finish_dump(ret);
	if (stage == STAGE_DUMP && writeback_begin(&session.dump)) {
		if (!after_tasks_run(finish_writeback) && finish_writeback() < 0)
			host_fail_dump();
		return;
	}
	if (stage == STAGE_RESTORE && ret) {
		host_empty_store(host_find_store());
		repeat_first_error();
	}
	if (stage == STAGE_RESTORE && !ret && resume_finish(&session.restore) < 0)
		host_fail_restore();
	dump_done(&session.dump);
	restore_done(&session.restore);
	options_done(&session.options);
}

static int pause_devices(int pid)
{
	int ret = dump_add_task(&session.dump, pid);

	if (session.stage == STAGE_DUMP)
		writeback_prepare(&session.dump, pid);
	/* The plugin does not pause by pid, so CRIU asks the next plugin, too. */
	return ret < 0 ? ret : -ENOTSUP;
}

/* CRIU 4.0 and newer call this for each task, when all tasks stand and none is saved yet: the first
 * call is for all. */
static int checkpoint_devices(int pid)
{
	int ret = session.stage == STAGE_DUMP ? dump_stop(&session.dump) : 0;

	(void)pid;
	return ret < 0 ? host_errno(ret) : -ENOTSUP;
}

/* @answer: 1, 0, or -errno. After -errno the file may be one of an AMD GPU; CRIU does not know the
 * file and fails the dump. */
static bool is_gpu_file(int answer)
{
	session.dump.has_gpu_files |= answer != 0;
	return answer > 0;
}

static int handle_device_vma(int fd, const struct stat *stat)
{
	if (!is_gpu_file(kfd_is_file(stat)) && !is_gpu_file(drm_is_render_node(fd, stat)))
		return -ENOTSUP;
	return host_errno(session.stage == STAGE_PRE_DUMP
				  ? preflight_refuse(&session.dump, DUMP_IS_PRE_DUMP, "pre-dump:")
				  : dump_check_mappings(&session.dump));
}

static int dump_file(int (*dump)(struct dump_session *dump, int fd, int id), int fd, int id)
{
	int ret = dump_look(&session.dump, fd);

	if (!ret)
		ret = dump(&session.dump, fd, id);
	return host_errno(ret < 0 ? ret : dump_end_file(&session.dump));
}

static int dump_ext_file(int fd, int id)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return errno == EBADF
			       ? -ENOTSUP
			       : host_errno(log_error(-errno, "file %d: cannot examine", id));
	if (is_gpu_file(kfd_is_file(&stat)))
		return dump_file(dump_kfd, fd, id);
	if (is_gpu_file(drm_is_render_node(fd, &stat)))
		return dump_file(dump_files_add_render, fd, id);
	if (!(stat.st_mode & S_IFMT) && is_gpu_file(kfd_is_dmabuf(fd)))
		return dump_file(dump_files_add_dmabuf, fd, id);
	return -ENOTSUP;
}

static int restore_ext_file(int id)
{
	_cleanup_(image_done) struct state_image image = { 0 };
	int ret = restore_read_image(&session.restore, id, &image);

	if (ret < 0)
		return host_errno(ret);
	switch (image.kind) {
	case IMAGE_KFD:
		return host_errno(restore_kfd(&session.restore, id, take_ptr(&image.kfd)));
	case IMAGE_RENDER:
		return host_errno(drm_restore(&session.restore, id, image.render));
	case IMAGE_DMABUF:
		return host_errno(restore_dmabuf_open(&session.restore, id, image.dmabuf));
	default:
		image_dir_report_missing(id, session.restore.needed);
		return -ENOTSUP;
	}
}

/* As newer hosts call it; they do not use the second argument. No retry is needed: the task that
 * comes first reads what the others need. */
static int restore_ext_file_retry(int id, bool *retry_needed)
{
	*retry_needed = false;
	return restore_ext_file(id);
}

/* 1: the offset has changed. */
static int update_vma_map(const char *path, const uint64_t addr, const uint64_t old_offset,
			  uint64_t *new_offset, int *plugin_fd)
{
	int ret = restore_update_mapping(&session.restore, path, addr, old_offset, new_offset,
					 plugin_fd);

	return ret < 0 ? ret : 1;
}

static int resume_devices_late(int pid)
{
	return resume_task(&session.restore, pid);
}

static int post_forking(void)
{
	if (!session.restore.handoff)
		return -ENOTSUP;
	resume_listen(&session.restore);
	return 0;
}

static int restore_init_hook(void)
{
	return -ENOTSUP;
}

/* CRIU has saved all tasks. CRIU runs the post-dump script after this hook, and fails the dump
 * before the script if the hook fails. Other plugins have this hook, too, so the answer is
 * -ENOTSUP: some versions of CRIU call no further plugin after a 0, and take that 0 for the result
 * of the steps that follow. */
static int dump_devices_late(int pid)
{
	int ret = dump_complete(&session.dump);

	(void)pid;
	return ret < 0 ? host_errno(ret) : -ENOTSUP;
}

/* CRIU has saved everything else, and the post-dump script has run: starts the queues. CRIU may
 * call this again with an error, when nothing may be paused any more; exit() then learns the final
 * result and removes the images. */
static int dump_finish(int result)
{
	int ret = session.dump.released ? 0 : dump_end(&session.dump, result);

	return !ret && !session.dump.num_processes ? -ENOTSUP : host_errno(ret);
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
		[HOOK_CHECKPOINT_DEVICES] = (void *)checkpoint_devices,
		[HOOK_POST_FORKING] = (void *)post_forking,
		[HOOK_RESTORE_INIT] = (void *)restore_init_hook,
		[HOOK_DUMP_DEVICES_LATE] = (void *)dump_devices_late,
		[HOOK_DUMP_FINISH] = (void *)dump_finish,
	},
};

/* Runs before CRIU looks at the descriptor. A host without DUMP_FINISH is one without the second
 * argument of RESTORE_EXT_FILE. */
static void __attribute__((constructor)) fit_to_host(void)
{
	CR_PLUGIN_DESC.max_hooks = host_count_hooks();
	if (host_has_hook(HOOK_DUMP_FINISH))
		CR_PLUGIN_DESC.hooks[HOOK_RESTORE_EXT_FILE] = (void *)restore_ext_file_retry;
}
