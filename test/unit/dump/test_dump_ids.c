// SPDX-License-Identifier: GPL-2.0-only
/* What images of render nodes say of their GPU, also of processes that have moved: CRIU's own
 * plugin finds the GPU by the ids. And of their process: one file is that of the compute VM. */
#include "dump_tree.h"
#include "streamed.h"

/* A process that knows GPU_A and GPU_B by these ids. */
static struct fake_process *make_moved(pid_t pid, uint32_t id_a, uint32_t id_b)
{
	struct fake_process *process = add_process(pid);

	add_device(process, id_a, GPU_A);
	add_device(process, id_b, GPU_B);
	return process;
}

/* The caller frees it. A stream has each image once. */
static CriuRenderNode *read_render(int id, uint32_t gpu_id, uint32_t actual_gpu_id)
{
	CriuRenderNode *node;

	assert_int_equal(image_read_render(id, &node), 0);
	assert_int_equal(node->gpu_id, gpu_id);
	/* A restore without KFD state compares these with the ids in a device-map. */
	assert_int_equal(node->device->gpu_id, gpu_id);
	assert_int_equal(node->device->actual_gpu_id, actual_gpu_id);
	return node;
}

static void assert_render(int id, uint32_t gpu_id, uint32_t actual_gpu_id)
{
	criu_render_node__free_unpacked(read_render(id, gpu_id, actual_gpu_id), NULL);
}

/* The ids that the process knows, for moves between machines. */
static const struct {
	const char *name;
	uint32_t id_a, id_b;
} moves[] = {
	{ "never moved", GPU_A, GPU_B },
	{ "moved once", 0xbeef, 0xcafe },
	/* CRIU's plugin would take these for ids of the machine, and restore other GPUs. */
	{ "moved twice, back to the same GPUs in another order", GPU_B, GPU_A },
};

/* Only files that can be mapped can be the compute file. */
struct files {
	int kfd, compute, other, of_no_bo;
};

/* A streamed image is written once, and a restore cannot search a stream. So the image waits until
 * the plugin knows all its fields. */
static void dump_files(const struct files *files, bool kfd_first, bool streamed)
{
	start_dump();
	if (kfd_first)
		assert_int_equal(dump_file(files->kfd, 8), 0);
	assert_int_equal(dump_file(files->other, 6), 0);
	assert_int_equal(dump_file(files->compute, 7), 0);
	assert_int_equal(dump_file(files->of_no_bo, 9), 0);
	if (!kfd_first)
		assert_int_equal(dump_file(files->kfd, 8), 0);
	assert_false(streamed && is_streamed("amdgpu-renderD-6.img"));
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
}

/* The compute file is the one through which a BO can be mapped, which O_PATH does not allow. Of a
 * GPU without a BO, a dump cannot tell whether the process computes through its file. */
static void assert_owned_render(int id, uint32_t gpu_id, uint32_t actual_gpu_id, bool streamed)
{
	CriuRenderNode *node = read_render(id, gpu_id, actual_gpu_id);

	assert_int_equal(node->compute_pid, id == 7 ? tracee : 0);
	if (streamed) {
		assert_int_equal(node->n_owners, 1);
		assert_int_equal(node->owners[0]->pid, tracee);
		assert_int_equal(node->owners[0]->kfd_id, 8);
		assert_int_equal(node->owners[0]->computes_elsewhere, id == 6);
	}
	criu_render_node__free_unpacked(node, NULL);
}

TEST(render_images_name_their_gpu_and_their_process)
{
	kernel.shares_render_files = true;
	for (size_t i = 0; i < 4 * ARRAY_SIZE(moves); i++) {
		bool kfd_first = i & 1, streamed = i & 2;
		uint32_t id_a = moves[i / 4].id_a, id_b = moves[i / 4].id_b;
		struct fake_process *process = make_moved(tracee, id_a, id_b);
		struct files files = {
			.kfd = open_kfd_of(process),
			.compute = open_render(129, O_RDWR),
			.other = open_render(129, O_PATH),
			.of_no_bo = open_render(128, O_RDWR),
		};

		/* This BO identifies the compute file of GPU_B. */
		add_bo(process, id_b, KFD_BO_GTT, 0x800000, 0x1000, 0x10000000);
		print_message("case %s, KFD first %d, streamed %d\n", moves[i / 4].name, kfd_first,
			      streamed);
		if (streamed)
			start_streaming(true);
		dump_files(&files, kfd_first, streamed);
		if (streamed)
			turn_stream();
		assert_owned_render(6, id_b, GPU_B, streamed);
		assert_owned_render(7, id_b, GPU_B, streamed);
		assert_owned_render(9, id_a, GPU_A, streamed);
		if (streamed)
			stop_streaming();
		(void)close(files.kfd);
		(void)close(files.compute);
		(void)close(files.other);
		(void)close(files.of_no_bo);
		forget_processes();
	}
}

/* The same as for processes without KFD state. */
TEST(a_gpu_that_no_kfd_process_sees_has_the_id_of_the_machine)
{
	struct fake_process *process = add_process(tracee);
	_cleanup_close_ int kfd = open_kfd_of(process), render = open_render(129, O_RDWR);

	add_device(process, GPU_B, GPU_A);
	begin_dump(render, 6);
	assert_int_equal(dump_file(kfd, 8), 0);
	assert_int_equal(dump_file(render, 7), 0);
	end_dump(0);
	assert_render(6, GPU_B, GPU_B);
	assert_render(7, GPU_B, GPU_B);
}

/* A restored process, and its child, which has opened /dev/kfd on this machine, know the GPU by
 * different ids. CRIU restores a file in the process that has it; if several have it, in the one
 * with the lowest pid. */
static const struct {
	const char *name;
	bool has[2];
	/* The index of the process whose id is right; 2: the id of the machine; 3: that of the
	 * process with the lowest pid. */
	unsigned int expected;
} holders[] = {
	{ "the first has it", { true, false }, 0 },
	{ "the second has it", { false, true }, 1 },
	{ "both have it", { true, true }, 3 },
	{ "neither has it", { false, false }, 2 },
};

/* Shows the render node before, between or after the files of /dev/kfd. */
static void show_in_order(int render, const int *kfds, size_t position)
{
	start_dump();
	for (size_t i = 0; i <= 2; i++) {
		if (i == position)
			assert_int_equal(dump_file(render, 9), 0);
		if (i < 2)
			assert_int_equal(dump_file(kfds[i], 5 + (int)i), 0);
	}
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
}

TEST(of_several_ids_that_of_the_holder_counts)
{
	for (size_t i = 0; i < 6 * ARRAY_SIZE(holders); i++) {
		size_t position = i % 3, row = i / 6;
		bool streamed = i / 3 % 2;
		int render = open_render(128, O_RDWR), kfds[2];
		uint32_t ids[] = { 0xbeef, 0xcafe, GPU_A, 0 };
		pid_t pids[2];

		print_message("case %s, at %zu, streamed %d\n", holders[row].name, position,
			      streamed);
		for (size_t j = 0; j < 2; j++)
			pids[j] = start_task(&render, holders[row].has[j]);
		ids[3] = ids[pids[1] < pids[0]];
		for (size_t j = 0; j < 2; j++)
			kfds[j] = open_kfd_of(make_moved(pids[j], ids[j], GPU_B));
		if (streamed)
			start_streaming(true);
		show_in_order(render, kfds, position);
		if (streamed)
			turn_stream();
		assert_render(9, ids[holders[row].expected], GPU_A);
		if (streamed)
			stop_streaming();
		for (size_t j = 0; j < 2; j++) {
			(void)close(kfds[j]);
			unit_end_sleeper(pids[j]);
		}
		forget_processes();
		(void)close(render);
	}
}
