// SPDX-License-Identifier: GPL-2.0-only
/* CHECKPOINT_DEVICES of CRIU 4.0 and newer: all tasks stand, and CRIU has saved nothing of them. */
#include "dump_tree.h"

#include <dirent.h>

static bool no_descriptor;

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);

DIR *__wrap_opendir(const char *path)
{
	errno = EMFILE;
	return no_descriptor ? NULL : __real_opendir(path);
}

static int checkpoint_devices(pid_t pid)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_CHECKPOINT_DEVICES];

	return hook(pid);
}

TREE(the_first_call_stops_all_queues_and_takes_the_snapshot)
{
	for (size_t i = 0; i < 2; i++)
		join_tree(&members[i], make_process(), 1);
	start_dump();
	for (size_t i = 0; i < 2; i++)
		name_task(members[i].pid);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(checkpoint_devices(members[i].pid), -ENOTSUP);
		assert_int_equal(members[0].process->paused, 1);
		assert_int_equal(members[1].process->paused, 1);
	}
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(dump_file(members[i].fds[0], 5 + (int)i), 0);
	end_dump(0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(members[i].process->calls[KFD_PROCESS_INFO], 1);
		assert_int_equal(members[i].process->calls[KFD_CHECKPOINT], 1);
		assert_int_equal(members[i].process->calls[KFD_UNPAUSE], 1);
	}
	assert_true(unit_exists("amdgpu-kfd-6.img"));
}

/* CRIU 4.0 ends itself if the freezing takes too long. */
TREE(under_an_alarm_the_snapshot_waits_for_the_first_file)
{
	join_tree(&members[0], make_process(), 1);
	start_dump();
	name_task(members[0].pid);
	(void)alarm(600);
	assert_int_equal(checkpoint_devices(members[0].pid), -ENOTSUP);
	(void)alarm(0);
	assert_int_equal(members[0].process->paused, 1);
	assert_int_equal(members[0].process->calls[KFD_CHECKPOINT], 0);
	assert_int_equal(dump_file(members[0].fds[0], 5), 0);
	assert_int_equal(members[0].process->calls[KFD_CHECKPOINT], 1);
	end_dump(0);
	assert_int_equal(members[0].process->calls[KFD_PROCESS_INFO], 1);
}

/* They would be restored. */
TREE(no_older_images_stay_if_the_files_of_the_tasks_cannot_be_listed)
{
	join_tree(&members[0], make_process(), 1);
	unit_write("amdgpu-kfd-9.img", "old", 3);
	start_dump();
	name_task(members[0].pid);
	no_descriptor = true;
	assert_fails(checkpoint_devices(members[0].pid));
	no_descriptor = false;
	end_dump(-1);
	assert_false(unit_exists("amdgpu-kfd-9.img"));
}

/* Objects of graphics, for example. */
TEST(a_refusal_comes_before_criu_saves_anything)
{
	int fd = open_render(128, O_RDWR);
	struct member owner, viewer = { .pid = start_task(&fd, 1) };

	join_tree(&owner, make_process(), 1);
	kernel.gem_objects = 1;
	start_dump();
	name_task(owner.pid);
	name_task(viewer.pid);
	assert_fails(checkpoint_devices(owner.pid));
	assert_logged("Error (amdgpu_plugin): process ", ": renderD128 has GEM objects");
	end_dump(-1);
	assert_int_equal(owner.process->paused, 0);
	assert_int_equal(owner.process->calls[KFD_UNPAUSE], 1);
	leave_tree(&owner);
	leave_tree(&viewer);
	(void)close(fd);
}

TEST(a_job_without_a_gpu_is_left_alone)
{
	const pid_t pid = start_task(NULL, 0);

	start_dump();
	name_task(pid);
	assert_int_equal(checkpoint_devices(pid), -ENOTSUP);
	end_dump(0);
	assert_int_equal(unit_criu()->notes, 0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	unit_end_sleeper(pid);
}

/* CRIU 4.0 calls the hook in a pre-dump, too, which would never start the queues again. */
TREE(a_pre_dump_stops_nothing)
{
	join_tree(&members[0], make_process(), 1);
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_PRE_DUMP), 0);
	name_task(members[0].pid);
	assert_int_equal(checkpoint_devices(members[0].pid), -ENOTSUP);
	CR_PLUGIN_DESC.exit(STAGE_PRE_DUMP, 0);
	assert_int_equal(members[0].process->calls[KFD_PROCESS_INFO], 0);
}

/* Another plugin may answer PAUSE_DEVICES, which names the tasks. */
TEST(without_the_names_of_tasks_the_first_file_stops_the_queues)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int fd = open_kfd_of(process);

	start_dump();
	assert_int_equal(checkpoint_devices(tracee), -ENOTSUP);
	assert_int_equal(process->paused, 0);
	assert_int_equal(dump_file(fd, 5), 0);
	assert_int_equal(process->paused, 1);
	end_dump(0);
}
