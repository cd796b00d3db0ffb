// SPDX-License-Identifier: GPL-2.0-only
/* Tests streamed dumps: each image is written once, and complete, in any order of files. */
#include "criu_stub.h"
#include "dump_task.h"
#include "streamed.h"

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
	assert_int_equal(symlink("../1", unit_path("parent")), 0);
	start_streaming(true);
	dump_process(make_process());
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
