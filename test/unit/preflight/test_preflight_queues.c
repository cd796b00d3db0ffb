// SPDX-License-Identifier: GPL-2.0-only
/* Refusals of queues, and what the dump asks the kernel about compute queues. */
#include "preflight_task.h"

#define EIGHT_XCCS "s/^num_xcc .*/num_xcc 8/"
#define PARTITION  GFX("90402") ";s/^location_id [1-9].*/location_id 25344/"

static const struct {
	const char *what, *gpus;
	struct fake_queue queue;
	const char *words, *remedy;
} bad_queues[] = {
	{ "one XCC", EIGHT_XCCS, { GPU_B, COMPUTE, 3, 4096, MQD }, "3 of type 0 on GPU", "CPX" },
	{ "all but one", EIGHT_XCCS, { GPU_B, COMPUTE, 3, 4096, 7 * MQD }, "XCC", "6.18" },
	{ "gfx11", GFX("110000"), { GPU_B, SDMA, 0, 0, 512 }, "gfx11", "destroy its" },
	{ "gfx11.5", GFX("110500"), { GPU_B, COMPUTE, 0, 4096, MQD }, "gfx11 or newer", "its" },
	{ "no place for waves", "", { GPU_B, COMPUTE, 0, 0, MQD }, "waves", "cwsr_enable" },
	{ "a partition", PARTITION, { GPU_B, COMPUTE, 3, 4096, MQD }, "is on a partition", "SPX" },
	{ "of the future", "", { GPU_B, 6, 7, 4096, MQD }, "queue 7 of type 6", "newer plugin" },
	/* The kernel's own queue, which debuggers use. */
	{ "HIQ", "", { GPU_B, 2, 7, 4096, MQD }, "queue 7 of type 2", "newer plugin" },
};

TEST(queues_that_would_not_run_again_are_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_queues); i++) {
		struct fake_process *process;

		print_message("case %s\n", bad_queues[i].what);
		change_gpus("eight", "*", bad_queues[i].gpus);
		process = make_process_with(bad_queues[i].queue);
		assert_refused(process, bad_queues[i].words, bad_queues[i].remedy);
		assert_force_dumps(process, bad_queues[i].words);
	}
}

TEST(queues_that_a_kernel_saves_whole_are_not)
{
	static const struct {
		const char *gpus;
		struct fake_queue queue;
	} cases[] = {
		{ EIGHT_XCCS, { GPU_B, COMPUTE, 0, 4096, 8 * MQD } },
		/* Copy engines have no XCC. */
		{ EIGHT_XCCS, { GPU_B, SDMA, 0, 0, 512 } },
		{ EIGHT_XCCS, { GPU_B, SDMA_XGMI, 0, 0, 512 } },
		/* Older kernels do not report the number of XCCs. */
		{ "/^num_xcc/d", { 0xbeef, COMPUTE, 0, 4096, MQD } },
		{ GFX("100302"), { GPU_B, COMPUTE, 0, 4096, MQD } },
		{ "/^gfx_target_version/d", { GPU_B, COMPUTE, 0, 4096, MQD } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static const uint32_t record_sizes[] = { 80, 272, 296, 104 };
		struct fake_process *process;

		print_message("case %zu\n", i);
		change_gpus("eight", "*", cases[i].gpus);
		process = make_process_with(cases[i].queue);
		for (size_t j = 0; j < ARRAY_SIZE(record_sizes); j++) {

			kernel.bo_record_size = record_sizes[j];
			unit_forget_lines();
			dump_process(process);
			assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
		}
	}
}

TEST(other_generations_have_no_control_stack_in_the_kernel)
{
	static const char *const versions[] = { GFX("80003"), GFX("100100") };

	kernel.mqd_stack = CTL_STACK + 1;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct fake_process *process;

		change_gpus("eight", "*", versions[i]);
		process = make_process_with((struct fake_queue){ GPU_B, COMPUTE, 5, 4096, MQD });
		dump_process(process);
	}
}

/* If the plugin does not learn what the kernel can rebuild, it warns, and the dump goes on. */
TEST(a_question_that_the_kernel_does_not_answer_is_a_warning)
{
	static const int errors[][2] = { { EINVAL, EINVAL }, { EINVAL, ENOMEM }, { ENOMEM, 0 },
					 { EBUSY, 0 },       { EPERM, 0 },       { ENOTTY, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct fake_process *process =
			make_process_with((struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD });
		_cleanup_close_ int fd = open_kfd_of(process);

		print_message("case %zu\n", i);
		kernel.trial_errno = errors[i][0];
		kernel.empty_trial_errno = errors[i][1];
		unit_forget_lines();
		begin_dump(fd, 5);
		assert_logged("Warn  (amdgpu_plugin): ", "cannot try", "queue 3");
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 1);
		end_dump(0);
	}
}

/* The copy has all GPUs that CRIU sees, and one BO for each buffer of the queue or one alone. It
 * never has an SDMA queue of a GPU with one XCC, as such a queue holds an engine that other
 * processes may use. */
TEST(the_kernel_is_asked_once_and_with_one_queue)
{
	struct fake_process *process =
		make_process_with((struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD });
	struct fake_process *other;
	_cleanup_close_ int fd = open_kfd_of(process), other_fd = -1;

	fake_kernel_share();
	process->queues[process->num_queues++] = (struct fake_queue){ GPU_B, SDMA, 4, 0, 512 };
	other = move_to_other_task(add_process(tracee));
	add_device(other, GPU_B, GPU_B);
	other->num_objects = 1;
	other->queues[other->num_queues++] = (struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD };
	add_bo(other, GPU_B, KFD_BO_VRAM, 0x900000, 0x1000, 0x200000000);
	other_fd = open_kfd_of(other);
	begin_dump(fd, 5);
	assert_int_equal(kernel.trials, 1);
	assert_int_equal(kernel.trial.num_devices, 8);
	assert_int_equal(kernel.trial.num_bos, 1);
	assert_int_equal(kernel.trial.num_objects, 1);
	assert_int_equal(kernel.trial.priv_data_size,
			 8 + 8 * 8 + kernel.bo_record_size + QUEUE_RECORD + CTL_STACK + MQD);
	assert_int_equal(dump_file(other_fd, 6), 0);
	assert_int_equal(kernel.trials, 1);
	end_dump(0);
}

/* Gives GPU A, and not GPU B, another property. */
#define EDIT_GPU_A(edit) ":a;N;$!ba;/drm_render_minor 128\\n/s/" edit "/"

/* One answer does for all queues that no kernel treats differently. */
TEST(the_kernel_is_asked_for_each_kind_of_queue)
{
	static const struct {
		const char *gpus;
		struct fake_queue other;
		unsigned int trials;
	} cases[] = {
		{ "", { 0xbeef, COMPUTE, 4, 4096, MQD }, 1 },
		{ EDIT_GPU_A("gfx_target_version [0-9]*/gfx_target_version 100302"),
		  { 0xbeef, COMPUTE, 4, 4096, MQD },
		  2 },
		{ EDIT_GPU_A("num_xcc [0-9]*/num_xcc 2"),
		  { 0xbeef, COMPUTE, 4, 4096, 2 * MQD },
		  2 },
		{ EDIT_GPU_A("num_xcc [0-9]*/num_xcc 2"), { 0xbeef, SDMA, 4, 0, 1024 }, 2 },
	};

	fake_kernel_share();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process;

		print_message("case %zu\n", i);
		kernel.trials = 0;
		change_gpus("eight", "*", cases[i].gpus);
		process = make_process_with((struct fake_queue){ GPU_B, COMPUTE, 3, 4096, MQD });
		process->queues[process->num_queues++] = cases[i].other;
		dump_process(process);
		assert_int_equal(kernel.trials, cases[i].trials);
	}
}

/* The kernel is asked for what a restore gives it, and the image has it. */
TEST(a_queue_of_eight_xccs_at_rest_states_one_mqd)
{
	static const struct {
		struct fake_queue queue;
		uint32_t state;
	} cases[] = { { { GPU_B, COMPUTE, 3, 4096, 8 * MQD }, MQD + 8 * 4096 },
		      { { GPU_B, SDMA, 3, 0, 8 * 512 }, 512 } };

	change_gpus("eight", "*", EIGHT_XCCS);
	kernel.mqd_stack = 8 * 4096;
	kernel.at_rest = true;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process = make_process_with(cases[i].queue);
		_cleanup_kfd_ CriuKfd *kfd = NULL;

		print_message("case %zu\n", i);
		dump_process(process);
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
		assert_int_equal(kernel.trial.priv_data_size,
				 8 + 8 * 8 + kernel.bo_record_size + QUEUE_RECORD + cases[i].state);
		assert_int_equal(image_read_kfd(5, &kfd), 0);
		assert_int_equal(kfd->priv_data.len, private_size(process) - CTL_STACK -
							     cases[i].queue.mqd_size +
							     cases[i].state);
	}
	kernel.at_rest = false;
}

TEST(queues_that_the_kernel_may_crash_on_are_not_tried)
{
	static const struct {
		const char *gpus;
		struct fake_queue queue;
	} cases[] = {
		{ GFX("110000"), { GPU_B, COMPUTE, 3, 4096, MQD } },
		{ PARTITION, { GPU_B, COMPUTE, 3, 4096, MQD } },
		{ "", { GPU_B, SDMA, 3, 0, 512 } },
	};

	fake_kernel_share();
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process;

		change_gpus("eight", "*", cases[i].gpus);
		process = make_process_with(cases[i].queue);
		dump_process(process);
		assert_int_equal(kernel.trials, 0);
	}
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
}

TEST(many_bad_queues_are_one_line)
{
	struct fake_process *process =
		make_process_with((struct fake_queue){ GPU_B, 6, 0, 0, MQD });

	for (uint32_t i = 1; i < 3; i++)
		process->queues[process->num_queues++] =
			(struct fake_queue){ 0xbeef, 6, i, 0, MQD };
	assert_refused(process, "queue 0 of type 6 on GPU 0xdfd4 (like 2 more)", "newer");
	assert_force_dumps(process, "(like 2 more)");
}
