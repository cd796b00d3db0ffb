// SPDX-License-Identifier: GPL-2.0-only
/* What could not come back is refused at the dump with reason and remedy, before a
 * byte is copied, and the process runs on; AMDGPU_FORCE makes a warning of it, but for
 * what nobody could restore. */
#include "dump_task.h"

#include "dump/preflight.h"
#include "image/image.h"

enum {
	COMPUTE = 0,
	SDMA = 1,
	SDMA_XGMI = 4,
	MQD = 2048,
};

/* From here on the machine is one whose GPUs have other properties: @edit is a command
 * of sed's for them. */
static void change_gpus(const char *edit)
{
	static char machine[200];
	char command[1200];

	(void)snprintf(machine, sizeof(machine), "%s", unit_path("machine"));
	(void)snprintf(
		command, sizeof(command),
		"rm -rf %s && cp -r test/data/machines/eight %s && sed -i '%s' %s/nodes/*/properties",
		machine, machine, edit, machine);
	assert_int_equal(system(command), 0);
	kernel.machine = machine;
}

static struct fake_process *make_process_with(struct fake_queue queue)
{
	struct fake_process *process;

	for (size_t i = 0; i < PROCESSES; i++)
		free(kernel.processes[i].bos);
	memset(kernel.processes, 0, sizeof(kernel.processes));
	process = make_process();
	process->queues[process->num_queues++] = queue;
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000000);
	return process;
}

/* With the option the same dump goes through, and says what it has not refused. */
static void assert_force_dumps(struct fake_process *process, const char *words)
{
	int fd = open_kfd_of(process);

	memset(process->calls, 0, sizeof(process->calls));
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	unit_forget_lines();
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	assert_logged("Warn  (amdgpu_plugin): ", words, "AMDGPU_FORCE");
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 1);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 0);
	assert_int_equal(process->paused, 1);
	end_dump(0);
	assert_int_equal(process->paused, 0);
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	(void)close(fd);
}

/* Nothing of the GPU's was opened or copied, and the line tells what helps. */
static void assert_refused(struct fake_process *process, const char *words, const char *remedy)
{
	gpu.calls = 0;
	(void)unlink(unit_path("amdgpu-pages-5-beef.img"));
	assert_dump_fails(process, words);
	assert_logged("Error (amdgpu_plugin): ", words, remedy);
	assert_int_equal(gpu.calls, 0);
	assert_false(unit_exists("amdgpu-pages-5-beef.img"));
}

/* Nor does any force help. */
static void assert_final(struct fake_process *process, const char *words)
{
	memset(process->calls, 0, sizeof(process->calls));
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	assert_dump_fails(process, words);
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	assert_false(unit_logged("AMDGPU_FORCE", NULL));
}

static const struct {
	const char *what, *gpus;
	struct fake_queue queue;
	const char *words, *remedy;
} bad_queues[] = {
	{ "one XCC of eight",
	  "s/^num_xcc .*/num_xcc 8/",
	  { GPU_B, COMPUTE, 3, 4096, MQD },
	  "queue 3 of type 0 on GPU 0xdfd4",
	  "CPX" },
	{ "all but one",
	  "s/^num_xcc .*/num_xcc 8/",
	  { GPU_B, COMPUTE, 3, 4096, 7 * MQD },
	  "XCC",
	  "6.18" },
	{ "gfx11",
	  "s/^gfx_target_version .*/gfx_target_version 110000/",
	  { GPU_B, SDMA, 0, 0, 512 },
	  "gfx11",
	  "destroy its queues" },
	{ "gfx11.5",
	  "s/^gfx_target_version .*/gfx_target_version 110500/",
	  { GPU_B, COMPUTE, 0, 4096, MQD },
	  "gfx11 or newer",
	  "destroy its queues" },
	{ "no place for waves", "", { GPU_B, COMPUTE, 0, 0, MQD }, "waves", "cwsr_enable" },
	{ "a type from the future",
	  "",
	  { GPU_B, 6, 7, 4096, MQD },
	  "queue 7 of type 6",
	  "newer plugin" },
	/* What the kernel makes for debuggers. */
	{ "HIQ", "", { GPU_B, 2, 7, 4096, MQD }, "queue 7 of type 2", "newer plugin" },
};

static void queues_that_would_not_run_again_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_queues); i++) {
		struct fake_process *process;

		print_message("case %s\n", bad_queues[i].what);
		change_gpus(bad_queues[i].gpus);
		process = make_process_with(bad_queues[i].queue);
		assert_refused(process, bad_queues[i].words, bad_queues[i].remedy);
		assert_force_dumps(process, bad_queues[i].words);
	}
}

static void queues_that_a_kernel_saves_whole_are_not(void **state)
{
	static const struct {
		const char *gpus;
		struct fake_queue queue;
	} cases[] = {
		{ "s/^num_xcc .*/num_xcc 8/", { GPU_B, COMPUTE, 0, 4096, 8 * MQD } },
		/* Copy engines have no XCC. */
		{ "s/^num_xcc .*/num_xcc 8/", { GPU_B, SDMA, 0, 0, 512 } },
		{ "s/^num_xcc .*/num_xcc 8/", { GPU_B, SDMA_XGMI, 0, 0, 512 } },
		/* Kernels that do not say how many there are. */
		{ "/^num_xcc/d", { 0xbeef, COMPUTE, 0, 4096, MQD } },
		{ "s/^gfx_target_version .*/gfx_target_version 100302/",
		  { GPU_B, COMPUTE, 0, 4096, MQD } },
		{ "/^gfx_target_version/d", { GPU_B, COMPUTE, 0, 4096, MQD } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static const uint32_t record_sizes[] = { 80, 272, 296, 312 };
		struct fake_process *process;

		print_message("case %zu\n", i);
		change_gpus(cases[i].gpus);
		process = make_process_with(cases[i].queue);
		for (size_t j = 0; j < ARRAY_SIZE(record_sizes); j++) {
			int fd = open_kfd_of(process);

			kernel.bo_record_size = record_sizes[j];
			unit_forget_lines();
			start_dump();
			assert_int_equal(dump_file(fd, 5), 0);
			end_dump(0);
			assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
			(void)close(fd);
		}
	}
}

/* EINVAL for a process with the queue, and not for the same process without. */
static void a_queue_that_this_kernel_cannot_rebuild_is_refused(void **state)
{
	struct fake_process *process =
		make_process_with((struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD });

	(void)state;
	kernel.trial_errno = EINVAL;
	assert_refused(process, "queue 3 of type 0 on GPU 0xdfd4 cannot be rebuilt",
		       "HSA_USE_SVM=0");
	assert_force_dumps(process, "cannot be rebuilt by this kernel");
}

/* The dump goes on, with a warning, if the plugin does not learn what the kernel can. */
static void a_question_that_the_kernel_does_not_answer_is_a_warning(void **state)
{
	static const int errors[][2] = { { EINVAL, EINVAL }, { EINVAL, ENOMEM }, { ENOMEM, 0 },
					 { EBUSY, 0 },       { EPERM, 0 },       { ENOTTY, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct fake_process *process =
			make_process_with((struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD });
		int fd = open_kfd_of(process);

		print_message("case %zu\n", i);
		kernel.trial_errno = errors[i][0];
		kernel.empty_trial_errno = errors[i][1];
		unit_forget_lines();
		start_dump();
		assert_int_equal(dump_file(fd, 5), 0);
		assert_logged("Warn  (amdgpu_plugin): ", "cannot try", "queue 3");
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 1);
		end_dump(0);
		(void)close(fd);
	}
}

/* All GPUs of CRIU, and one BO a buffer of the queue, or one alone. Never with SDMA queues, which
 * hold engines that other processes may use. */
static void the_kernel_is_asked_once_and_with_one_queue(void **state)
{
	struct fake_process *process =
		make_process_with((struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD });
	struct fake_process *other;
	int fd = open_kfd_of(process), other_fd;

	(void)state;
	fake_kernel_share();
	process->queues[process->num_queues++] = (struct fake_queue){ GPU_B, SDMA, 4, 0, 512 };
	other = add_process(tracee);
	add_device(other, GPU_B, GPU_B);
	other->num_objects = 1;
	other->queues[other->num_queues++] = (struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD };
	add_bo(other, GPU_B, KFD_BO_VRAM, 0x900000, 0x1000, 0x200000000);
	other_fd = open_kfd_of(other);
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	assert_int_equal(kernel.trials, 1);
	assert_int_equal(kernel.trial.num_devices, 8);
	assert_int_equal(kernel.trial.num_bos, 1);
	assert_int_equal(kernel.trial.num_objects, 1);
	assert_int_equal(kernel.trial.priv_data_size,
			 8 + 8 * 8 + kernel.bo_record_size + QUEUE_RECORD + CTL_STACK + MQD);
	assert_int_equal(dump_file(other_fd, 6), 0);
	assert_int_equal(kernel.trials, 1);
	end_dump(0);
	(void)close(fd);
	(void)close(other_fd);
}

static void queues_that_the_kernel_may_crash_on_are_not_tried(void **state)
{
	static const struct {
		const char *gpus;
		struct fake_queue queue;
	} cases[] = {
		{ "s/^gfx_target_version .*/gfx_target_version 110000/",
		  { GPU_B, COMPUTE, 3, 4096, MQD } },
		{ "", { GPU_B, SDMA, 3, 0, 512 } },
	};

	(void)state;
	fake_kernel_share();
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process;
		int fd;

		change_gpus(cases[i].gpus);
		process = make_process_with(cases[i].queue);
		fd = open_kfd_of(process);
		start_dump();
		assert_int_equal(dump_file(fd, 5), 0);
		end_dump(0);
		assert_int_equal(kernel.trials, 0);
		(void)close(fd);
	}
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
}

/* Without queues there is nothing that such a GPU could do wrong. */
static void a_process_without_queues_is_dumped_on_any_gpu(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	change_gpus("s/^gfx_target_version .*/gfx_target_version 110000/;s/^num_xcc .*/num_xcc 8/");
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
	(void)close(fd);
}

/* Unless there is nothing to copy. */
static void a_buffer_of_gfx12_is_refused(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	change_gpus("s/^gfx_target_version .*/gfx_target_version 120001/");
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	assert_refused(process, "gfx12", "newer plugin");
	assert_final(process, "gfx12");
}

static void many_bad_queues_are_one_line(void **state)
{
	struct fake_process *process =
		make_process_with((struct fake_queue){ GPU_B, 6, 0, 0, MQD });

	(void)state;
	for (uint32_t i = 1; i < 3; i++)
		process->queues[process->num_queues++] =
			(struct fake_queue){ 0xbeef, 6, i, 0, MQD };
	assert_refused(process, "queue 0 of type 6 on GPU 0xdfd4 (like 2 more)", "newer");
	assert_force_dumps(process, "(like 2 more)");
}

static void private_data_of_an_unknown_layout_is_refused(void **state)
{
	struct fake_process *process =
		make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });

	(void)state;
	kernel.bo_record_size = 276;
	assert_refused(process,
		       "private data (version 1, 1676 bytes for 2 GPUs, 3 BOs and 3 objects) has "
		       "a layout that this plugin does not know",
		       "newer plugin");
	assert_force_dumps(process, "layout");
}

static const struct {
	struct kfd_bo_bucket bo;
	const char *gpus, *words, *remedy;
	bool final;
} bad_bos[] = {
	{ { .addr = 4096, .alloc_flags = 0 }, "", "unknown kind", "newer plugin", true },
	{ { .addr = 4096, .alloc_flags = 3 }, "", "flags 0x3", "newer plugin", true },
	{ { .addr = 4096, .alloc_flags = 0x20 }, "", "flags 0x20", "newer plugin", true },
	{ { .addr = 0, .alloc_flags = KFD_BO_VRAM },
	  "",
	  "virtual memory",
	  "expandable_segments",
	  true },
	{ { .addr = 4096, .alloc_flags = KFD_BO_VRAM | 0x20 },
	  "",
	  "flags 0x21",
	  "newer plugin",
	  false },
	{ { .addr = 4096, .alloc_flags = KFD_BO_GTT | 1u << 22 },
	  "",
	  "flags 0x400002",
	  "newer plugin",
	  false },
	{ { .addr = 4096, .alloc_flags = KFD_BO_GTT | KFD_BO_AQL_QUEUE_MEM },
	  "s/^gfx_target_version .*/gfx_target_version 80003/",
	  "half",
	  "gfx9",
	  true },
};

static void bos_that_would_be_others_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_bos); i++) {
		struct fake_process *process;
		struct kfd_bo_bucket *bo;

		print_message("case %zu\n", i);
		change_gpus(bad_bos[i].gpus);
		process = make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });
		bo = add_bo(process, GPU_B, bad_bos[i].bo.alloc_flags, bad_bos[i].bo.addr, 4096,
			    1 << 20);
		assert_int_equal(bo - process->bos, 3);
		assert_refused(process, "BO 3 of 4096 bytes", bad_bos[i].remedy);
		assert_logged("Error (amdgpu_plugin): ", bad_bos[i].words);
		if (bad_bos[i].final)
			assert_final(process, bad_bos[i].words);
		else
			assert_force_dumps(process, bad_bos[i].words);
	}
}

static void known_flags_are_dumped(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	for (uint32_t bit = 23; bit < 32; bit++)
		add_bo(process, GPU_B, KFD_BO_VRAM | 1u << bit, (uint64_t)bit << 20, 0x1000,
		       0x100000000 + (bit << 12));
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
	(void)close(fd);
}

/* The same object of a GPU: exported and imported again. */
static void a_buffer_that_is_there_twice_is_refused(void **state)
{
	struct fake_process *process = make_process();
	CriuKfd *kfd;

	(void)state;
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x900000, 0x1000, 0x200000);
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	/* On another GPU the same offset is another buffer's. */
	add_bo(process, 0xbeef, KFD_BO_VRAM, 0xa00000, 0x1000, 0x100000);
	assert_int_equal(process->num_bos, 5);
	add_bo(process, GPU_B, KFD_BO_GTT, 0xb00000, 0x1000, 0x300000);
	add_bo(process, GPU_B, KFD_BO_VRAM, 0xc00000, 0x1000, 0x100000);
	assert_refused(process, "shared", "NCCL_P2P_DISABLE");
	assert_false(unit_logged("(like", NULL));
	assert_force_dumps(process, "shared");
	/* And a restore takes it. */
	assert_int_equal(image_read_kfd(5, &kfd), 0);
	assert_int_equal(image_validate_kfd(5, kfd), 0);
	criu_kfd__free_unpacked(kfd, NULL);
}

/* A copy for each would part them. Both run on. */
static void a_buffer_of_two_processes_is_refused(void **state)
{
	struct fake_process *one = make_process(), *two = make_process();
	int first = open_kfd_of(one), second = open_kfd_of(two);

	(void)state;
	add_bo(one, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(two, GPU_B, KFD_BO_VRAM, 0x810000, 0x1000, 0x101000);
	add_bo(two, GPU_B, KFD_BO_VRAM, 0x820000, 0x1000, 0x100000);
	start_dump();
	assert_int_equal(dump_file(first, 5), 0);
	assert_fails(dump_file(second, 6));
	assert_logged("Error (amdgpu_plugin): kfd 6: BO 3", "shared");
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	end_dump(-1);
	assert_int_equal(one->paused + two->paused, 0);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	start_dump();
	assert_int_equal(dump_file(first, 5), 0);
	assert_int_equal(dump_file(second, 6), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "kfd 6: BO 3", "shared");
	end_dump(0);
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	assert_int_equal(one->paused + two->paused, 0);
	(void)close(first);
	(void)close(second);
}

/* Exported by one and imported for another GPU, where it has an offset of its own. The memory of
 * BOs at one address is one file here. */
static void a_buffer_of_two_gpus_is_refused(void **state)
{
	struct fake_process *one = make_process(), *two = make_process();
	int first = open_kfd_of(one), second = open_kfd_of(two);

	(void)state;
	add_bo(one, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(two, 0xbeef, KFD_BO_VRAM, 0x800000, 0x1000, 0x500000);
	start_dump();
	assert_int_equal(dump_file(first, 5), 0);
	assert_fails(dump_file(second, 6));
	assert_logged("Error (amdgpu_plugin): kfd 6: BO 2", "shared");
	end_dump(-1);
	(void)close(first);
	(void)close(second);
}

static void a_buffer_of_two_gpus_of_one_process_is_refused(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(process, 0xbeef, KFD_BO_VRAM, 0x800000, 0x1000, 0x500000);
	assert_refused(process, "BO 3", "NCCL_P2P_DISABLE");
	assert_false(unit_logged("(like", NULL));
}

/* GPUs that are partitions of one PCI device (CPX) have one space of offsets, and a dma-buf each.
 */
static void a_buffer_of_two_partitions_is_refused(void **state)
{
	struct fake_process *one = make_process(), *two = make_process();
	int first = open_kfd_of(one), second = open_kfd_of(two);

	(void)state;
	change_gpus("s/^location_id .*/location_id 25344/");
	add_bo(one, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(two, 0xbeef, KFD_BO_VRAM, 0x900000, 0x1000, 0x100000);
	start_dump();
	assert_int_equal(dump_file(first, 5), 0);
	assert_fails(dump_file(second, 6));
	assert_logged("Error (amdgpu_plugin): kfd 6: BO 2", "shared");
	end_dump(-1);
	(void)close(first);
	(void)close(second);
}

/* A pause would wait for the waves, so it must not come to that. */
static void a_driver_that_saves_no_waves_is_refused_before_the_pause(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	unit_print("parameter-cwsr_enable", "0\n");
	start_dump();
	assert_fails(dump_file(fd, 5));
	assert_logged("Error (amdgpu_plugin): ", "cwsr_enable=1", "AMDGPU_FORCE=1");
	end_dump(-1);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
	assert_force_dumps(process, "waves");
	unit_print("parameter-cwsr_enable", "1\n");
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	(void)close(fd);
}

/* What the driver itself refuses: its reason in words, and no force that helps. */
static void what_the_driver_refuses_is_explained(void **state)
{
	static const struct {
		enum kfd_criu_op op;
		int error;
		const char *words;
	} cases[] = {
		{ KFD_PROCESS_INFO, ENOTTY, "Linux 5.18" },
		{ KFD_PROCESS_INFO, EACCES, "CAP_CHECKPOINT_RESTORE" },
		{ KFD_PROCESS_INFO, EBADF, "not part of this dump" },
		{ KFD_PROCESS_INFO, EOPNOTSUPP, "debuggers" },
		{ KFD_CHECKPOINT, EOPNOTSUPP, "this kind of GPU" },
		{ KFD_CHECKPOINT, EINVAL, "cwsr" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process =
			make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });

		print_message("case %zu\n", i);
		kernel.fail_op = cases[i].op;
		kernel.fail_errno = cases[i].error;
		kernel.fail_count = 2;
		assert_refused(process, cases[i].words, strerror(cases[i].error));
		kernel.fail_count = 2;
		assert_final(process, cases[i].words);
		kernel.fail_count = 0;
	}
}

/* What the driver refuses without a look at the operation, it refuses of the first one. */
static void what_the_driver_always_refuses_is_explained(void **state)
{
	static const struct {
		int error;
		const char *words;
	} cases[] = {
		{ ENOTTY, "Linux 5.18" },
		{ EACCES, "CAP_CHECKPOINT_RESTORE" },
		{ EBADF, "not part of this dump" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process = make_process();

		print_message("case %zu\n", i);
		kernel.refusal = cases[i].error;
		assert_refused(process, cases[i].words, strerror(cases[i].error));
		assert_final(process, cases[i].words);
	}
}

static void an_old_driver_is_refused_with_force_too(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	kernel.kfd_minor = 7;
	assert_refused(process, "1.8", "Linux 5.18");
	assert_final(process, "1.8");
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
}

#define REFUSALS "docs/refusals.md"

static const char *const headings[] = {
	[PREFLIGHT_DUMP] = "## The dump",
	[PREFLIGHT_PROCESS] = "## Processes",
	[PREFLIGHT_QUEUE] = "## Queues",
	[PREFLIGHT_BO] = "## BOs",
	[PREFLIGHT_FILE] = "## Files and mappings",
};

/* The next line of the document, without its end; NULL: there is none. */
static char *next_line(FILE *file, char line[static 1024])
{
	if (!fgets(line, 1024, file))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Skips to the first row of the table below @heading. */
static void find_table(FILE *file, const char *heading)
{
	char line[1024];

	do {
		assert_non_null(next_line(file, line));
	} while (strcmp(line, heading) != 0);
	do {
		assert_non_null(next_line(file, line));
	} while (strncmp(line, "| ---", 5) != 0);
}

static void assert_row(FILE *file, const struct preflight_text *text)
{
	char line[1024], expected[1024];

	(void)snprintf(expected, sizeof(expected), "| %s | %s | %s | %s |", text->what, text->how,
		       text->remedy, text->can_be_forced ? "yes" : "no");
	assert_non_null(next_line(file, line));
	assert_string_equal(line, expected);
}

/* Each rule is one row, in the same order, and no table has a row more. */
static void the_document_has_each_rule(void **state)
{
	FILE *file = fopen(REFUSALS, "re");
	enum preflight_group group = PREFLIGHT_FILE + 1;
	const struct preflight_text *text;
	char line[1024];

	(void)state;
	assert_non_null(file);
	for (size_t i = 0; (text = preflight_get_text(i)); i++) {
		if (text->group != group) {
			assert_true(!i || !*next_line(file, line));
			find_table(file, headings[text->group]);
		}
		group = text->group;
		assert_row(file, text);
	}
	assert_int_equal(group, PREFLIGHT_FILE);
	assert_true(!*next_line(file, line));
	(void)fclose(file);
}

static void several_kfd_contexts_are_refused_before_a_checkpoint(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	unit_print("process/pasid", "0\n");
	unit_print("process/context_4096/pasid", "0\n");
	assert_refused(process, "has several KFD contexts", "use one KFD context");
	assert_int_equal(process->calls[KFD_CHECKPOINT], 0);
	assert_final(process, "has several KFD contexts");
}

static void events_that_restore_does_not_make_are_refused(void **state)
{
	static const struct {
		uint32_t type;
		bool bad;
	} cases[] = {
		{ 0, false }, { 1, true }, { 2, true }, { 3, false }, { 4, true },
		{ 5, false }, { 6, true }, { 7, true }, { 8, false }, { 9, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process =
			make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });
		char words[64];

		(void)snprintf(words, sizeof(words), "event 1 of type %u", cases[i].type);
		print_message("case %s\n", words);
		kernel.event_type = cases[i].type;
		if (cases[i].bad) {
			assert_refused(process, words, "destroy the event");
			assert_force_dumps(process, words);
		} else {
			int fd = open_kfd_of(process);

			start_dump();
			assert_int_equal(dump_file(fd, 5), 0);
			end_dump(0);
			(void)close(fd);
		}
	}
}

static void high_precision_on_gfx950_is_refused(void **state)
{
#define GFX "s/^gfx_target_version .*/gfx_target_version "
	static const struct {
		const char *gpus, *environment;
		bool bad;
	} cases[] = {
		{ GFX "90500/", "A=1%cHSA_HIGH_PRECISION_MODE=1%cB=2%c", true },
		{ GFX "90500/", "HSA_HIGH_PRECISION_MODE=yes%c", true },
		{ GFX "90500/", "A=1%cHSA_HIGH_PRECISION_MODE=0%cB=2%c", false },
		{ GFX "90500/", "XHSA_HIGH_PRECISION_MODE=1%cHSA_HIGH_PRECISION_MODE=%c", false },
		{ GFX "90402/", "HSA_HIGH_PRECISION_MODE=1%c", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process;
		int fd;

		print_message("case %zu\n", i);
		change_gpus(cases[i].gpus);
		unit_print("environ", cases[i].environment, 0, 0, 0);
		process = make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });
		if (cases[i].bad) {
			assert_refused(process, "HSA_HIGH_PRECISION_MODE",
				       "start the process without");
			assert_force_dumps(process, "HSA_HIGH_PRECISION_MODE");
			continue;
		}
		fd = open_kfd_of(process);
		start_dump();
		assert_int_equal(dump_file(fd, 5), 0);
		end_dump(0);
		(void)close(fd);
	}
}

/* The process sees two GPUs, of the render nodes 128 and 129, and has both open. */
static void make_files(unsigned int process_pasid, unsigned int one, unsigned int other)
{
	unit_print("process/pasid", "%u\n", process_pasid);
	unit_print("fdinfo-128", "pos:\t0\ndrm-driver:\tamdgpu\npasid:\t%u\n", one);
	unit_print("fdinfo-129", "pos:\t0\npasid:\t%u\ndrm-driver:\tamdgpu\n", other);
}

/* CHECKPOINT would crash the kernel, so no CHECKPOINT may come before the refusal. */
static void a_gpu_without_a_vm_is_refused_before_a_checkpoint(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	kernel.num_open_renders = 1;
	assert_refused(process, "2 GPUs, 1 opened: sees a GPU whose render node", "device cgroup");
	assert_int_equal(process->calls[KFD_CHECKPOINT], 0);
	assert_force_dumps(process, "render node");
}

static void a_file_with_another_pasid_gives_no_vm(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	kernel.num_open_renders = 2;
	make_files(32769, 32769, 32770);
	assert_refused(process, "render node", "device cgroup");
	assert_int_equal(process->calls[KFD_CHECKPOINT], 0);
}

/* Files of the same node, of other drivers, and a process that has no VM and no BO. */
static void ordinary_processes_have_a_vm_of_each_gpu(void **state)
{
	static const struct {
		unsigned int process, one, other;
	} pasids[] = {
		{ 32769, 32769, 32769 },
		/* Linux 7: each file has its own, and the process has 0. */
		{ 0, 32770, 32771 },
		/* A driver in which the PASID means something else. */
		{ 5, 32770, 32771 },
	};

	(void)state;
	for (size_t i = 0; i <= ARRAY_SIZE(pasids); i++) {
		struct fake_process *process;
		int fd;

		print_message("case %zu\n", i);
		for (size_t j = 0; j < PROCESSES; j++)
			free(kernel.processes[j].bos);
		memset(kernel.processes, 0, sizeof(kernel.processes));
		process = make_process();
		kernel.num_open_renders = 2;
		if (i < ARRAY_SIZE(pasids)) {
			make_files(pasids[i].process, pasids[i].one, pasids[i].other);
		} else {
			process->num_bos = 0;
			kernel.num_open_renders = 0;
		}
		fd = open_kfd_of(process);
		unit_forget_lines();
		start_dump();
		assert_int_equal(dump_file(fd, 5), 0);
		end_dump(0);
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
		(void)close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(queues_that_would_not_run_again_are_refused),
		TEST(queues_that_a_kernel_saves_whole_are_not),
		TEST(a_queue_that_this_kernel_cannot_rebuild_is_refused),
		TEST(a_question_that_the_kernel_does_not_answer_is_a_warning),
		TEST(the_kernel_is_asked_once_and_with_one_queue),
		TEST(queues_that_the_kernel_may_crash_on_are_not_tried),
		TEST(a_process_without_queues_is_dumped_on_any_gpu),
		TEST(a_buffer_of_gfx12_is_refused),
		TEST(many_bad_queues_are_one_line),
		TEST(private_data_of_an_unknown_layout_is_refused),
		TEST(bos_that_would_be_others_are_refused),
		TEST(known_flags_are_dumped),
		TEST(a_buffer_that_is_there_twice_is_refused),
		TEST(a_buffer_of_two_processes_is_refused),
		TEST(a_buffer_of_two_gpus_is_refused),
		TEST(a_buffer_of_two_gpus_of_one_process_is_refused),
		TEST(a_buffer_of_two_partitions_is_refused),
		TEST(a_driver_that_saves_no_waves_is_refused_before_the_pause),
		TEST(what_the_driver_refuses_is_explained),
		TEST(what_the_driver_always_refuses_is_explained),
		TEST(several_kfd_contexts_are_refused_before_a_checkpoint),
		TEST(events_that_restore_does_not_make_are_refused),
		TEST(high_precision_on_gfx950_is_refused),
		TEST(a_gpu_without_a_vm_is_refused_before_a_checkpoint),
		TEST(a_file_with_another_pasid_gives_no_vm),
		TEST(ordinary_processes_have_a_vm_of_each_gpu),
		TEST(an_old_driver_is_refused_with_force_too),
		TEST(the_document_has_each_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
