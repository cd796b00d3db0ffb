// SPDX-License-Identifier: GPL-2.0-only
/* The restore of render nodes: one open file per GPU is the file that RESTORE got, the others are
 * separate. */
#include "restore_task.h"

#include "image/image.h"
#include "image/image_dir.h"

static void write_render(int id, uint32_t compute_pid)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	node.gpu_id = OLD_ID;
	node.has_drm_render_minor = true;
	node.drm_render_minor = 128;
	node.has_compute_pid = compute_pid != 0;
	node.compute_pid = compute_pid;
	assert_int_equal(image_write_render(id, &node), 0);
}

TEST(the_compute_file_is_the_file_of_restore_in_either_order)
{
	for (unsigned int render_first = 0; render_first < 2; render_first++) {
		_cleanup_close_ int render = -1, kfd = -1;

		forget_image();
		make_image();
		write_image(5);
		write_render(6, (uint32_t)getpid());
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		start_restore();
		if (render_first)
			render = restore_file(6);
		kfd = restore_file(5);
		if (!render_first)
			render = restore_file(6);
		assert_true(kfd >= 0);
		assert_int_equal(device_of(render, "renderD-"), 130);
		assert_true(same_open(render, (int)kernel.restored_devices[0].drm_fd));
		end_restore(0);
	}
}

/* With and without KFD state in either process. */
TEST(a_render_node_that_another_process_computes_through_is_refused)
{
	make_image();
	write_image(5);
	write_render(6, (uint32_t)getpid() + 1);
	for (unsigned int has_state = 0; has_state < 2; has_state++) {
		int kfd = -1;

		start_restore();
		if (has_state)
			kfd = restore_file(5);
		assert_fails(restore_file(6));
		assert_logged("Error (amdgpu_plugin): ", "computes through it");
		if (kfd >= 0)
			(void)close(kfd);
		end_restore(-1);
	}
}

TEST(another_open_of_a_render_node_is_another_file)
{
	_cleanup_close_ int compute = -1, other = -1, kfd = -1;

	make_image();
	write_image(5);
	write_render(6, (uint32_t)getpid());
	write_render(7, 0);
	start_restore();
	other = restore_file(7);
	compute = restore_file(6);
	kfd = restore_file(5);
	assert_int_equal(device_of(other, "renderD-"), 130);
	assert_false(same_open(other, compute));
	assert_true(same_open(compute, (int)kernel.restored_devices[0].drm_fd));
	end_restore(0);
}

/* Without mappings, no hook runs last. When CRIU has restored the task's files, in any order, the
 * plugin must have none open. */
TEST(a_task_without_mappings_has_only_its_own_files)
{
	/* The render nodes of the task: each says whether it is a compute file, and of which
	 * process. The first @num_before come before /dev/kfd. CRIU opens no file of another
	 * process in this task. */
	enum { NO_MORE, ITS_OWN, NOT_SAID, ANOTHER_S };
	static const struct {
		const char *name;
		int renders[2];
		int num_before;
	} cases[] = {
		{ "no render node", { NO_MORE }, 0 },
		{ "its render node first", { ITS_OWN }, 1 },
		{ "its render node last", { ITS_OWN }, 0 },
		{ "a render node that does not say", { NOT_SAID }, 0 },
		{ "two that do not say", { NOT_SAID, NOT_SAID }, 0 },
		{ "two that do not say, apart", { NOT_SAID, NOT_SAID }, 1 },
		{ "one and another open", { ITS_OWN, NOT_SAID }, 0 },
		{ "one of another process", { ANOTHER_S }, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint32_t pids[] = { 0, (uint32_t)getpid(), 0, (uint32_t)getpid() + 1 };
		size_t before = unit_count_fds();
		int fds[3] = { -1, -1, -1 };

		print_message("case %s\n", cases[i].name);
		forget_image();
		make_image();
		image->num_of_mappings = 0;
		assert_int_equal(image_dir_remove_old(), 0);
		write_image(5);
		for (int j = 0; j < 2 && cases[i].renders[j] != NO_MORE; j++)
			write_render(6 + j, pids[cases[i].renders[j]]);
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		start_restore();
		for (int j = 0; j <= 2; j++) {
			int render = j - (j > cases[i].num_before);
			bool is_kfd = j == cases[i].num_before;

			if (!is_kfd && (cases[i].renders[render] == NO_MORE ||
					cases[i].renders[render] == ANOTHER_S))
				continue;
			fds[j] = restore_file(is_kfd ? 5 : 6 + render);
			assert_true(fds[j] >= 0);
			/* The first is the file that RESTORE got. */
			if (j == 1 && cases[i].num_before == 0)
				assert_int_equal(fds[j], kernel.restored_devices[0].drm_fd);
		}
		for (unsigned int j = 0; j < 3; j++)
			fd_close(&fds[j]);
		assert_int_equal(unit_count_fds(), before);
		end_restore(0);
	}
}

/* An image of CRIU's own plugin does not have the number of mappings. */
TEST(files_stay_open_if_mappings_may_follow)
{
	size_t before = unit_count_fds();
	_cleanup_close_ int kfd = -1;

	make_image();
	image->has_num_of_mappings = false;
	kfd = restore_image(5);
	assert_int_equal(unit_count_fds(), before + 3);
	end_restore(0);
}

/* CRIU's main process has read all images before it forks the tasks. */
TEST(a_task_reads_no_image_of_another_process)
{
	int kfd;

	make_image();
	write_image(5);
	image->pid++;
	write_image(7);
	start_restore();
	unit_print("amdgpu-kfd-7.img", "damaged");
	kfd = restore_file(5);
	assert_true(kfd >= 0);
	(void)close(kfd);
	end_restore(0);
}

/* The unreadable image may name the compute file. */
TEST(a_render_node_beside_an_unreadable_image_is_refused)
{
	make_image();
	write_image(5);
	write_render(6, 0);
	unit_print("amdgpu-renderD-7.img", "damaged");
	start_restore();
	assert_fails(restore_file(6));
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-renderD-7.img");
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	end_restore(-1);
}

TEST(a_render_node_of_a_foreign_image_is_the_compute_file)
{
	struct CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	_cleanup_close_ int render = -1, kfd = -1;

	make_image();
	write_image(5);
	/* Vintage A has the process's id of the GPU, and nothing else. */
	node.gpu_id = USER_ID;
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	render = restore_file(6);
	kfd = restore_file(5);
	assert_true(same_open(render, (int)kernel.restored_devices[0].drm_fd));
	end_restore(0);
}

/* The plugin maps the GPU of such a render node alone. */
TEST(a_render_node_without_kfd_state_is_restored_on_a_fitting_gpu)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	_cleanup_close_ int fd = -1;

	make_image();
	node.gpu_id = OLD_ID;
	node.device = image->device_entries[1];
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	fd = restore_file(6);
	assert_int_equal(device_of(fd, "renderD-"), 130);
	end_restore(0);
	node.device->device_id++;
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	assert_int_equal(restore_file(6), -ENODEV);
	assert_logged("device_id");
	end_restore(-1);
}

TEST(render_images_that_cannot_be_restored_are_refused)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	start_restore();
	/* No KFD state, and no properties of the GPU. */
	assert_int_equal(image_write_render(6, &node), 0);
	assert_fails(restore_file(6));
	assert_logged("Error (amdgpu_plugin): ", "render node 6");
	node.has_num_of_bos = true;
	node.num_of_bos = 1;
	unit_forget_lines();
	assert_int_equal(image_write_render(6, &node), 0);
	assert_fails(restore_file(6));
	assert_logged("Error (amdgpu_plugin): ", "render node 6", "GEM");
	end_restore(-1);
}

TEST(a_missing_render_node_is_an_error)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	kernel.hides_render_nodes = true;
	make_image();
	node.device = image->device_entries[1];
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	assert_fails(restore_file(6));
	assert_logged("Error (amdgpu_plugin): ", "renderD130");
	end_restore(-1);

	unit_forget_lines();
	write_image(5);
	start_restore();
	assert_fails(restore_file(5));
	assert_logged("Error (amdgpu_plugin): ", "renderD130");
	end_restore(-1);
}

/* Such an image is valid protobuf. */
TEST(a_render_image_whose_gpu_is_a_cpu_is_refused)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	make_image();
	node.device = image->device_entries[0];
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	assert_fails(restore_file(6));
	assert_logged("Error (amdgpu_plugin): ", "render node 6");
	end_restore(-1);
}
