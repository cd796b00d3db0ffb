// SPDX-License-Identifier: GPL-2.0-only
/* The restore of a KFD process, from the hooks down to the kernel calls: the arguments of RESTORE,
 * the descriptors for CRIU, and the resume. */
#include "restore_task.h"

#include <sched.h>
#include <sys/syscall.h>

/* A process may close /dev/kfd and keep its mappings. */
OLD_HOST_TEST(an_old_criu_gets_a_descriptor_if_the_task_has_none)
{
	uint64_t offset;
	int fd, mapped;

	assert_null(host.table);
	make_image();
	fd = restore_image(5);
	(void)close(fd);
	assert_int_equal(update_mapping("/dev/kfd", 0x4000, OLD_DOORBELL, &offset, &mapped), 1);
	assert_int_equal(device_of(mapped, "kfd-"), 0);
	(void)close(mapped);
	end_restore(0);
}

/* CRIU's plugin saves the nodes in the order in which sysfs lists them, which may be any. */
TEST(nodes_of_an_image_may_be_in_any_order)
{
	make_image();
	for (unsigned int i = 0; i < 2; i++) {
		KfdDeviceEntry *first = image->device_entries[0];
		_cleanup_close_ int fd = -1;

		assert_int_equal(first->gpu_id, i ? USER_ID : 0);
		write_image(5);
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		start_restore();
		fd = restore_file(5);
		assert_true(fd >= 0);
		assert_int_equal(kernel.restored.num_devices, 1);
		assert_int_equal(kernel.restored_devices[0].user_gpu_id, USER_ID);
		assert_int_equal(kernel.restored_devices[0].actual_gpu_id, NEW_ID);
		end_restore(0);
		image->device_entries[0] = image->device_entries[1];
		image->device_entries[1] = first;
	}
}

TEST(descriptors_of_the_plugin_have_high_numbers_and_close_on_exec)
{
	_cleanup_close_ int fd = -1;

	make_image();
	image->num_of_mappings = 5;
	fd = restore_image(5);
	for (int number = 0; number < 1024; number++) {
		int flags = fcntl(number, F_GETFD);

		if (flags < 0 ||
		    (device_of(number, "kfd-") < 0 && device_of(number, "renderD-") < 0))
			continue;
		assert_in_range(number, LOWEST, 1024);
		assert_true(number == fd || flags & FD_CLOEXEC);
	}
	end_restore(0);
}

TEST(a_second_file_of_the_process_is_a_plain_open)
{
	CriuKfd plain = CRIU_KFD__INIT;

	for (unsigned int plain_first = 0; plain_first < 2; plain_first++) {
		int fds[2];

		forget_image();
		make_image();
		write_image(5);
		assert_int_equal(image_write_kfd(4, &plain), 0);
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		start_restore();
		for (unsigned int i = 0; i < 2; i++) {
			fds[i] = restore_file(i == plain_first ? 5 : 4);
			assert_true(fds[i] >= 0);
		}
		assert_int_equal(calls(KFD_RESTORE), 1);
		(void)close(fds[0]);
		(void)close(fds[1]);
		end_restore(0);
	}
}

/* As fork(), but the child is the first process of a PID namespace. */
static pid_t fork_into_namespace(void)
{
	return (pid_t)syscall(SYS_clone, (unsigned long)CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL,
			      0UL);
}

/* 0: the restored task, of vpid 1, has contents, and the next id in its namespace is 2. */
static int restore_in_namespace(void)
{
	int fd;
	pid_t next;

	kernel.processes[0].pid = getpid();
	fd = restore_file(5);
	next = fork();
	if (!next)
		_exit(0);
	return fd >= 0 && unit_exists("bo-800000") && next == 2 ? 0 : 1;
}

/* CRIU may need any id for the threads of the other tasks. */
TEST(loading_takes_no_id_of_a_new_pid_namespace)
{
	pid_t task;

	make_image();
	image->pid = 1;
	add_image_bo(KFD_BO_VRAM, 0x800000, 0x3000, 0x100000000);
	write_image(5);
	write_pages("amdgpu-pages-5-beef.img", 0x3000);
	start_restore();
	task = fork_into_namespace();
	assert_true(task >= 0);
	if (!task)
		_exit(restore_in_namespace());
	assert_int_equal(unit_wait(task), 0);
	end_restore(0);
}

TEST(a_kernel_that_maps_by_the_known_id_gets_that_offset)
{
	uint64_t offset;
	_cleanup_close_ int fd = -1, mapped = -1;

	make_image();
	image->num_of_mappings = 2;
	write_image(5);
	kernel.maps_known_ids = true;
	start_restore();
	fd = restore_file(5);
	assert_true(fd >= 0);
	assert_int_equal(update_mapping("/dev/kfd", 0x4000,
					kfd_mmap_offset_of(OLD_DOORBELL, USER_ID), &offset,
					&mapped),
			 1);
	assert_true(offset == kfd_mmap_offset_of(OLD_DOORBELL + MOVED, USER_ID));
	(void)close(mapped);
	/* Doorbells without a BO, as those of an APU. */
	assert_int_equal(update_mapping("/dev/kfd", 0x6000, OLD_DOORBELL, &offset, &mapped), 1);
	assert_true(offset == kfd_mmap_offset_of(OLD_DOORBELL, USER_ID));
	end_restore(0);
}

/* Both processes see one GPU. Alone, each would get the GPU with the lowest node. */
TEST(the_gpus_of_all_images_are_mapped_together)
{
	KfdDeviceEntry *saved;
	int fd;

	kernel.machine = "eight-other";
	make_image();
	saved = image->device_entries[1];
	saved->node_id = 3;
	write_image(5);
	image->pid++;
	saved->node_id = 2;
	saved->gpu_id = saved->actual_gpu_id = 0x777;
	write_image(7);
	start_restore();
	fd = restore_file(5);
	assert_true(fd >= 0);
	assert_logged("map: saved GPU 0xbeef ", "-> 0x23d5 ");
	end_restore(-1);
	(void)close(fd);
}
