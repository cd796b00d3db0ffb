// SPDX-License-Identifier: GPL-2.0-only
/* Tests streamed dumps: each image is written once, and complete, in any order of files. */
#include "criu_stub.h"
#include "dump_task.h"
#include "streamed.h"

/* Checks what the image says of the process. The read takes the image out of the stream. */
static void assert_render(int id, uint32_t compute_pid, bool elsewhere)
{
	CriuRenderNode *node;

	assert_int_equal(image_read_render(id, &node), 0);
	assert_int_equal(node->compute_pid, compute_pid);
	assert_int_equal(node->n_owners, 1);
	assert_int_equal(node->owners[0]->pid, tracee);
	assert_int_equal(node->owners[0]->kfd_id, 8);
	assert_int_equal(node->owners[0]->computes_elsewhere, elsewhere);
	criu_render_node__free_unpacked(node, NULL);
}

/* The plugin cannot write a stream again, and a restore cannot search it. So the image waits until
 * the plugin knows all its fields. The streamer accepts each name once. */
TEST(render_nodes_name_their_process_in_any_order)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int kfd = open_kfd_of(process);
	_cleanup_close_ int compute = open_render(129, O_RDWR), other = open_render(129, O_PATH);
	_cleanup_close_ int of_no_bo = open_render(128, O_RDWR);

	kernel.shares_render_files = true;
	add_bo(process, GPU_B, KFD_BO_GTT, 0x800000, 0x1000, 0x10000000);
	for (unsigned int kfd_first = 0; kfd_first < 2; kfd_first++) {
		process->calls[KFD_PROCESS_INFO] = 0;
		start_streaming(true);
		start_dump();
		if (kfd_first)
			assert_int_equal(dump_file(kfd, 8), 0);
		assert_int_equal(dump_file(other, 6), 0);
		assert_int_equal(dump_file(compute, 7), 0);
		assert_int_equal(dump_file(of_no_bo, 9), 0);
		if (!kfd_first)
			assert_int_equal(dump_file(kfd, 8), 0);
		assert_false(is_streamed("amdgpu-renderD-6.img"));
		assert_int_equal(finish_dump(0), 0);
		end_dump(0);
		turn_stream();
		assert_render(7, (uint32_t)tracee, false);
		assert_render(6, 0, true);
		/* The dump cannot tell whether the process computes through this file. */
		assert_render(9, 0, false);
		stop_streaming();
	}
}

static int abort_dump(const char *name, int flags)
{
	(void)flags;
	fail_msg("BUG_ON(flags != img_streamer_mode) for %s", name);
	return -1;
}

/* During a dump, CRIU has descriptors of the tasks. A task may have a socket that is connected to a
 * path like the streamer's, and CRIU aborts if it is asked for an image of a stream then. */
TEST(a_socket_of_a_task_is_no_streamer)
{
	_cleanup_close_ int fd = open_kfd_of(make_process());

	start_dump();
	assert_int_equal(streamer_start(unit_directory(), true, fail_of_streamer), 0);
	criu_stub.open_streamed = abort_dump;
	assert_int_equal(dump_file(fd, 8), 0);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	streamer_stop();
	assert_true(unit_exists("amdgpu-kfd-8.img"));
}

/* Hosts without DUMP_FINISH. */
TEST(delayed_images_are_written_at_the_end_of_a_successful_dump)
{
	_cleanup_close_ int fd = open_render(133, O_RDWR);
	CriuRenderNode *node;

	for (int result = -1; result <= 0; result++) {
		start_streaming(true);
		begin_dump(fd, 7);
		assert_false(is_streamed("amdgpu-renderD-7.img"));
		end_dump(result);
		stop_streaming();
		assert_int_equal(is_streamed("amdgpu-renderD-7.img"), !result);
	}
	start_streaming(false);
	assert_int_equal(image_read_render(7, &node), 0);
	assert_int_equal(node->drm_render_minor, 133);
	assert_int_equal(node->device->gpu_id, 32693);
	assert_int_equal(node->n_owners, 0);
	criu_render_node__free_unpacked(node, NULL);
}

/* No task has /dev/kfd open, so no process claims the file. CRIU's post-dump script comes before
 * the end. */
TEST(an_image_waits_for_no_process_if_there_is_none)
{
	_cleanup_close_ int fd = open_render(133, O_RDWR);

	start_streaming(true);
	start_dump();
	name_task(tracee);
	assert_int_equal(dump_file(fd, 7), 0);
	streamer_settle();
	assert_true(is_streamed("amdgpu-renderD-7.img"));
	end_dump(0);
}

/* The plugin reports such an error while the dump can still fail. */
TEST(a_render_node_that_cannot_be_saved_fails_at_once)
{
	_cleanup_close_ int fd = open_render(200, O_RDWR);

	start_streaming(true);
	start_dump();
	assert_fails(dump_file(fd, 7));
	assert_logged("Error (amdgpu_plugin): ", "renderD200");
	end_dump(-1);
}

TEST(a_delayed_image_without_a_streamer_fails_the_dump)
{
	_cleanup_close_ int fd = open_render(133, O_RDWR);

	start_streaming(true);
	begin_dump(fd, 7);
	streamer.deaf = true;
	assert_fails(finish_dump(0));
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-renderD-7.img");
	end_dump(-1);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
}

/* The link in the directory belongs to another dump. */
TEST(a_streamed_dump_is_not_incremental)
{
	_cleanup_close_ int fd = open_kfd_of(make_process());

	assert_int_equal(symlink("../1", unit_path("parent")), 0);
	start_streaming(true);
	dump_one(fd, 8);
}

/* The streamer ends during the dump, and the process continues. */
TEST(a_streamer_that_ends_fails_the_dump)
{
	struct fake_process *process = make_process();

	add_bo(process, 0xbeef, KFD_BO_GTT, 0x800000, 0x40000, 0x10000000);
	start_streaming(true);
	streamer.breaks_after = 0x10000;
	assert_dump_fails(process, "Broken pipe");
}
