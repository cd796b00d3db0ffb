// SPDX-License-Identifier: GPL-2.0-only
/* Queues of an image whose hardware state the driver would take as it is: RESTORE never sees them,
 * or, by force, sees them with what they lack. */
#include "restore_task.h"

/* Bytes of records in private data, of an MQD, and of a control stack. */
#define BO_RECORD    272
#define QUEUE        120
#define MQD          2048
#define STACK        4096
#define QUEUE_OFFSET (8 + 8 + 2 * BO_RECORD)

/* In an MQD. */
#define STACK_SIZE 700

struct saved_queue {
	uint32_t gpu_id, type, mqds, stack;
	/* What the MQD states. */
	uint32_t mqd_stack;
};

static const struct saved_queue good = { USER_ID, 0, 1, STACK, STACK };

static void set_at(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* Gives the image of the process one queue. */
static void give_queue(const struct saved_queue *queue)
{
	const size_t size = QUEUE_OFFSET + QUEUE + queue->mqds * MQD + queue->stack;
	uint8_t *data = calloc(1, size), *record = data + QUEUE_OFFSET;

	assert_non_null(data);
	set_at(data, 1);
	set_at(record + 64, queue->gpu_id);
	set_at(record + 68, queue->type);
	set_at(record + 76, 3);
	set_at(record + 104, 0x100000);
	set_at(record + 108, queue->stack);
	set_at(record + 112, queue->mqds * MQD);
	for (uint32_t i = 0; i < queue->mqds; i++)
		set_at(record + QUEUE + i * MQD + STACK_SIZE, queue->mqd_stack);
	make_image();
	free(image->priv_data.data);
	image->priv_data.data = data;
	image->priv_data.len = size;
	image->num_of_objects = 1;
}

static int restore_image(void)
{
	int ret;

	write_image(5);
	unit_forget_lines();
	start_restore();
	ret = restore_file(5);
	end_restore(ret < 0 ? -1 : 0);
	if (ret >= 0)
		(void)close(ret);
	forget_image();
	return ret < 0 ? ret : 0;
}

static void assert_restored(void)
{
	assert_int_equal(restore_image(), 0);
	assert_int_equal(calls(KFD_RESTORE), 1);
	kernel.processes[0].calls[KFD_RESTORE] = 0;
}

static void assert_refused(const char *words)
{
	assert_fails(restore_image());
	assert_logged("Error (amdgpu_plugin): kfd 5: queue 3 of type ", words);
	assert_int_equal(calls(KFD_RESTORE), 0);
}

static void with_force(bool on)
{
	assert_int_equal(on ? setenv("AMDGPU_FORCE", "1", 1) : unsetenv("AMDGPU_FORCE"), 0);
}

static void queues_with_all_their_state_are_restored(void **state)
{
	static const struct saved_queue cases[] = {
		{ USER_ID, 0, 1, STACK, STACK },
		/* A copy engine has no control stack. */
		{ USER_ID, 1, 1, 0, STACK },
		/* Nor has a queue whose MQD and GPU state none. */
		{ USER_ID, 0, 1, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		give_queue(&cases[i]);
		assert_restored();
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): kfd 5: queue"), 0);
		assert_int_equal(kernel.restored.priv_data_size,
				 QUEUE_OFFSET + QUEUE + MQD + cases[i].stack);
	}
}

/* By force RESTORE gets as much control stack as the MQD states. */
static void a_queue_without_its_control_stack_is_refused(void **state)
{
	static const uint32_t stacks[] = { 0, STACK - 4 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		const struct saved_queue queue = { USER_ID, 0, 1, stacks[i], STACK };

		give_queue(&queue);
		assert_refused("without its control stack");
		with_force(true);
		give_queue(&queue);
		assert_restored();
		with_force(false);
		assert_logged("Warn  (amdgpu_plugin): kfd 5: queue 3 of type 0",
			      "without its control stack", "AMDGPU_FORCE");
		assert_int_equal(kernel.restored.priv_data_size,
				 QUEUE_OFFSET + QUEUE + MQD + STACK);
	}
}

/* No GPU has that much, so force does not make RESTORE allocate it. */
static void an_impossible_control_stack_is_refused(void **state)
{
	const struct saved_queue queue = { USER_ID, 0, 1, 0, 0xffffffff };

	(void)state;
	with_force(true);
	give_queue(&queue);
	assert_fails(restore_image());
	with_force(false);
	assert_logged("Error (amdgpu_plugin): kfd 5: cannot give queue 3", "Invalid argument");
	assert_int_equal(calls(KFD_RESTORE), 0);
}

static void a_queue_of_another_gpu_is_refused(void **state)
{
	struct saved_queue queue = good;

	(void)state;
	queue.gpu_id = USER_ID + 1;
	give_queue(&queue);
	assert_fails(restore_image());
	assert_logged("Error (amdgpu_plugin): kfd 5: queue 3 is on GPU", "lacks");
	assert_int_equal(calls(KFD_RESTORE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(queues_with_all_their_state_are_restored),
		TEST(a_queue_without_its_control_stack_is_refused),
		TEST(an_impossible_control_stack_is_refused),
		TEST(a_queue_of_another_gpu_is_refused),
	};

	return cmocka_run_group_tests(tests, make_host, remove_host);
}
