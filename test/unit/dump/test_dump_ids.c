// SPDX-License-Identifier: GPL-2.0-only
/* The ids of GPUs in images of render nodes, also of processes that have moved: CRIU's own plugin
 * finds the GPU by them. */
#include "dump_task.h"
#include "streamed.h"

#include <dlfcn.h>
#include <sys/syscall.h>

/* A process that knows GPU_A and GPU_B by these ids. */
static struct fake_process *make_moved(pid_t pid, uint32_t id_a, uint32_t id_b)
{
	struct fake_process *process = add_process(pid);

	add_device(process, id_a, GPU_A);
	add_device(process, id_b, GPU_B);
	return process;
}

static void assert_render(int id, uint32_t gpu_id, uint32_t actual_gpu_id)
{
	CriuRenderNode *node;

	assert_int_equal(image_read_render(id, &node), 0);
	assert_int_equal(node->gpu_id, gpu_id);
	/* A restore without KFD state compares these with the ids in a device-map. */
	assert_int_equal(node->device->gpu_id, gpu_id);
	assert_int_equal(node->device->actual_gpu_id, actual_gpu_id);
	criu_render_node__free_unpacked(node, NULL);
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

static void dump_files(const struct files *files, bool kfd_first)
{
	start_dump();
	if (kfd_first)
		assert_int_equal(dump_file(files->kfd, 8), 0);
	assert_int_equal(dump_file(files->other, 6), 0);
	assert_int_equal(dump_file(files->compute, 7), 0);
	assert_int_equal(dump_file(files->of_no_bo, 9), 0);
	if (!kfd_first)
		assert_int_equal(dump_file(files->kfd, 8), 0);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
}

TEST(render_images_have_the_ids_that_the_process_knows)
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
		dump_files(&files, kfd_first);
		if (streamed)
			turn_stream();
		assert_render(6, id_b, GPU_B);
		assert_render(7, id_b, GPU_B);
		assert_render(9, id_a, GPU_A);
		if (streamed)
			stop_streaming();
		(void)close(files.kfd);
		(void)close(files.compute);
		(void)close(files.other);
		(void)close(files.of_no_bo);
		free(process->bos);
		*process = (struct fake_process){ 0 };
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

/* Starts a traced process that inherits only the file @held of this process; -1: none. */
static pid_t start_holder(int held)
{
	int ready[2];
	char none;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		for (int fd = 3; fd < 1024; fd++) {
			if (fd != held && fd != ready[1])
				(void)close(fd);
		}
		(void)close(ready[1]);
		while (true)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &none, 1), 0);
	(void)close(ready[0]);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL), 0);
	return pid;
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
			pids[j] = start_holder(holders[row].has[j] ? render : -1);
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
		memset(kernel.processes, 0, sizeof(kernel.processes));
		(void)close(render);
	}
}
