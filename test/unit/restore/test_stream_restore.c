// SPDX-License-Identifier: GPL-2.0-only
/* Tests restores from a stream, which serves each image once and cannot be searched: render nodes
 * and /dev/kfd in any order, contents, and streams that end too early. */
#include "restore_task.h"
#include "streamed.h"

/* Writes the image as a dump does. @compute_pid 0: none. @owner: the process and its KFD image. */
static void write_render(int id, uint32_t compute_pid, const KfdOwner *owner)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	KfdOwner *owners[] = { (KfdOwner *)owner };

	node.gpu_id = OLD_ID;
	node.has_drm_render_minor = true;
	node.drm_render_minor = 128;
	node.device = image->device_entries[1];
	node.has_compute_pid = compute_pid != 0;
	node.compute_pid = compute_pid;
	node.n_owners = owner != NULL;
	node.owners = owners;
	assert_int_equal(image_write_render(id, &node), 0);
}

static KfdOwner owner_of(int pid, uint32_t kfd_id, bool elsewhere)
{
	KfdOwner owner = KFD_OWNER__INIT;

	owner.pid = (uint32_t)pid;
	owner.kfd_id = kfd_id;
	owner.has_computes_elsewhere = true;
	owner.computes_elsewhere = elsewhere;
	return owner;
}

static void start_over(void)
{
	forget_image();
	make_image();
	memset(kernel.processes[0].calls, 0, sizeof(kernel.processes[0].calls));
	start_streaming(true);
}

static bool is_of_the_restore(int fd)
{
	return same_open(fd, (int)kernel.restored_devices[0].drm_fd);
}

TEST(render_nodes_and_kfd_come_in_any_order)
{
	static const int orders[][3] = { { 5, 6, 7 }, { 5, 7, 6 }, { 6, 5, 7 },
					 { 6, 7, 5 }, { 7, 5, 6 }, { 7, 6, 5 } };
	KfdOwner compute = owner_of(getpid(), 5, false), other = owner_of(getpid(), 5, true);

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		int fds[8];

		start_over();
		write_image(5);
		write_render(6, (uint32_t)getpid(), &compute);
		write_render(7, 0, &other);
		turn_stream();
		start_restore();
		for (unsigned int j = 0; j < 3; j++)
			fds[orders[i][j]] = restore_file(orders[i][j]);
		assert_true(fds[5] >= 0);
		assert_int_equal(calls(KFD_RESTORE), 1);
		assert_int_equal(device_of(fds[6], "renderD-"), 130);
		assert_int_equal(device_of(fds[7], "renderD-"), 130);
		assert_true(is_of_the_restore(fds[6]));
		assert_false(same_open(fds[7], fds[6]));
		for (int id = 5; id <= 7; id++)
			(void)close(fds[id]);
		assert_int_equal(resume(getpid()), 0);
		end_restore(0);
		stop_streaming();
	}
}

/* The restore cannot look up later images, so it keeps the compute file for them. */
TEST(a_task_without_mappings_has_only_its_own_files)
{
	KfdOwner compute = owner_of(getpid(), 5, false);

	for (unsigned int kfd_first = 0; kfd_first < 2; kfd_first++) {
		int fds[2];

		start_over();
		image->num_of_mappings = 0;
		write_image(5);
		write_render(6, (uint32_t)getpid(), &compute);
		turn_stream();
		start_restore();
		fds[0] = restore_file(kfd_first ? 5 : 6);
		fds[1] = restore_file(kfd_first ? 6 : 5);
		if (kfd_first)
			assert_true(is_of_the_restore(fds[1]));
		(void)close(fds[0]);
		(void)close(fds[1]);
		for (int fd = 0; fd < 1024; fd++)
			assert_true(device_of(fd, "kfd-") < 0 && device_of(fd, "renderD-") < 0);
		end_restore(0);
		stop_streaming();
	}
}

/* The dump could not tell whether it is the compute file. Programs have one file per GPU. */
TEST(a_render_node_of_unknown_vm_is_the_compute_file)
{
	KfdOwner unknown = owner_of(getpid(), 5, false);
	_cleanup_close_ int render = -1, kfd = -1;

	start_over();
	write_image(5);
	write_render(6, 0, &unknown);
	turn_stream();
	start_restore();
	render = restore_file(6);
	kfd = restore_file(5);
	assert_true(is_of_the_restore(render));
	end_restore(0);
}

/* An image of another program may be streamed too, with /dev/kfd first. */
TEST(a_foreign_image_is_restored_after_kfd)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	int render, kfd;

	for (unsigned int kfd_first = 0; kfd_first < 2; kfd_first++) {
		start_over();
		write_image(5);
		node.gpu_id = USER_ID;
		assert_int_equal(image_write_render(6, &node), 0);
		turn_stream();
		start_restore();
		kfd = kfd_first ? restore_file(5) : -1;
		render = restore_file(6);
		if (kfd_first)
			assert_true(is_of_the_restore(render));
		else
			assert_logged("Error (amdgpu_plugin): ", "render node 6", "stream");
		assert_int_equal(render >= 0, kfd_first);
		if (kfd_first)
			(void)close(render);
		if (kfd_first)
			(void)close(kfd);
		end_restore(0);
		stop_streaming();
	}
}

/* The state of another process must stay in the stream for the task of that process. */
TEST(a_render_node_of_another_process_reads_no_state)
{
	KfdOwner others = owner_of(getpid() + 1, 5, false);
	_cleanup_kfd_ CriuKfd *state_image = NULL;
	_cleanup_close_ int fd = -1;

	start_over();
	write_image(5);
	write_render(6, 0, &others);
	turn_stream();
	start_restore();
	fd = restore_file(6);
	assert_int_equal(device_of(fd, "renderD-"), 130);
	assert_int_equal(image_read_kfd(5, &state_image), 0);
	end_restore(0);
}

TEST(a_state_that_is_missing_in_the_stream_is_an_error)
{
	KfdOwner owner = owner_of(getpid(), 5, false);

	start_over();
	write_render(6, 0, &owner);
	turn_stream();
	start_restore();
	assert_fails(restore_file(6));
	assert_logged("Error (amdgpu_plugin): ", "kfd 5");
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	end_restore(-1);
}

TEST(a_second_open_of_kfd_is_a_plain_one)
{
	CriuKfd plain = CRIU_KFD__INIT;
	_cleanup_close_ int kfd = -1, second = -1;

	start_over();
	write_image(5);
	assert_int_equal(image_write_kfd(4, &plain), 0);
	turn_stream();
	start_restore();
	second = restore_file(4);
	kfd = restore_file(5);
	assert_int_equal(calls(KFD_RESTORE), 1);
	assert_true(second >= 0 && kfd >= 0);
	end_restore(0);
}

TEST(two_states_of_one_process_are_refused)
{
	_cleanup_close_ int kfd = -1;

	start_over();
	write_image(5);
	write_image(4);
	turn_stream();
	start_restore();
	kfd = restore_file(5);
	assert_true(kfd >= 0);
	assert_fails(restore_file(4));
	assert_logged("Error (amdgpu_plugin): ", "kfd 4", "kfd 5");
	end_restore(-1);
}

/* Writes a pages file: the length @bytes, then @there bytes of words that count up. */
static void stream_pages(const char *name, uint64_t bytes, uint64_t there)
{
	_cleanup_free_ uint64_t *words = malloc(8 + there + 8);

	assert_non_null(words);
	words[0] = bytes;
	for (uint64_t i = 1; i <= there / 8; i++)
		words[i] = i;
	write_streamed(name, words, 8 + there);
}

TEST(contents_that_are_too_short_or_too_long_fail_the_restore)
{
	static const uint64_t lengths[] = { 0, 8, 0x3ff8, 0x3fff, 0x4001 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		start_over();
		add_image_bo(KFD_BO_VRAM, 0x800000, 0x4000, 0x100000000);
		write_image(5);
		turn_stream();
		stream_pages("amdgpu-pages-5-beef.img", 0x4000, lengths[i]);
		unit_forget_lines();
		start_restore();
		assert_fails(restore_file(5));
		assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
		/* The task must not run. */
		assert_fails(resume(getpid()));
		assert_int_equal(calls(KFD_RESUME), 0);
		end_restore(-1);
		stop_streaming();
	}
}
