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
/* Records that a restore adds for the other GPUs of a machine of eight. */
#define MORE_GPUS (7 * 8)

/* In an MQD: cp_hqd_cntl_stack_size and cp_hqd_pq_control. */
#define STACK_SIZE 700
#define PQ_CONTROL 580

/* Edits of the properties of all GPUs. */
#define EIGHT_XCCS  "s/^num_xcc .*/num_xcc 8/"
#define SMALL_STACK "$actl_stack_size 4096"
#define MI300       "s/^gfx_target_version .*/gfx_target_version 90402/"
#define ONE_DEVICE  "s/^location_id [1-9].*/location_id 25344/"
#define PARTITION   MI300 ";" ONE_DEVICE

struct saved_queue {
	uint32_t type, mqds, stack;
	/* What the MQD states. */
	uint32_t mqd_stack;
	/* Bits that the last MQD has at this offset. */
	uint32_t offset, bits;
};

static const struct saved_queue good = { 0, 1, STACK, STACK, 0, 0 };

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
	/* The handle of the second BO. */
	set_at(data + 8 + 8 + BO_RECORD + 8, 1);
	set_at(record + 64, USER_ID);
	set_at(record + 68, queue->type);
	set_at(record + 76, 3);
	set_at(record + 104, 0x100000);
	set_at(record + 108, queue->stack);
	set_at(record + 112, queue->mqds * MQD);
	for (uint32_t i = 0; i < queue->mqds; i++)
		set_at(record + QUEUE + i * MQD + STACK_SIZE, queue->mqd_stack);
	if (queue->bits)
		set_at(record + QUEUE + (queue->mqds - 1) * MQD + queue->offset, queue->bits);
	make_image();
	free(image->priv_data.data);
	image->priv_data.data = data;
	image->priv_data.len = size;
	image->num_of_objects = 1;
}

/* With BO records of 80 bytes, an object is inside of those that were meant, and fills the data,
 * too.
 */
static void give_second_reading(void)
{
	const size_t offset = 8 + 8 + 2 * 80;
	uint8_t *record = image->priv_data.data + offset;

	set_at(image->priv_data.data + 8 + 8 + 80 + 8, 1);
	set_at(record + 64, USER_ID);
	set_at(record + 108, (uint32_t)(image->priv_data.len - offset - QUEUE - MQD));
	set_at(record + 112, MQD);
}

static int restore_queues(void)
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
	assert_int_equal(restore_queues(), 0);
	assert_int_equal(calls(KFD_RESTORE), 1);
	kernel.processes[0].calls[KFD_RESTORE] = 0;
}

static void assert_refused(const char *words)
{
	assert_fails(restore_queues());
	assert_logged("Error (amdgpu_plugin): kfd 5: queue 3 of type ", words);
	assert_int_equal(calls(KFD_RESTORE), 0);
}

static void with_force(bool on)
{
	assert_int_equal(on ? setenv("AMDGPU_FORCE", "1", 1) : unsetenv("AMDGPU_FORCE"), 0);
}

TEST(queues_with_all_their_state_are_restored)
{
	static const struct saved_queue cases[] = {
		{ 0, 1, STACK, STACK, 0, 0 },
		/* UNORD_DISPATCH, and the size of the ring. */
		{ 0, 1, STACK, STACK, PQ_CONTROL, 1u << 28 | 9 },
		/* A copy engine has no control stack. */
		{ 1, 1, 0, STACK, 0, 0 },
		/* Nor has a queue whose MQD and GPU state none. */
		{ 0, 1, 0, 0, 0, 0 },
	};

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
TEST(a_queue_without_its_control_stack_is_refused)
{
	static const uint32_t stacks[] = { 0, STACK - 4 };

	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		const struct saved_queue queue = { 0, 1, stacks[i], STACK, 0, 0 };

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

/* The MQDs of a queue: cp_hqd_cntl_stack_offset, and cp_hqd_wg_state_offset. */
static void give_waves(uint32_t mqds, uint32_t stack_offset, uint32_t state_offset)
{
	const struct saved_queue queue = { 0, mqds, 0, STACK, 0, 0 };
	uint8_t *mqd;

	give_queue(&queue);
	mqd = image->priv_data.data + QUEUE_OFFSET + QUEUE;
	for (uint32_t i = 0; i < mqds; i++) {
		set_at(mqd + i * MQD + 696, STACK);
		set_at(mqd + i * MQD + 700, STACK);
		set_at(mqd + i * MQD + 704, STACK);
	}
	set_at(mqd + (mqds - 1) * MQD + 696, stack_offset);
	set_at(mqd + (mqds - 1) * MQD + 704, state_offset);
}

TEST(a_queue_without_waves_gets_an_empty_control_stack)
{
	give_waves(1, STACK, STACK);
	assert_restored();
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): kfd 5: queue"), 0);
	assert_int_equal(kernel.restored.priv_data_size, QUEUE_OFFSET + QUEUE + MQD + STACK);
	give_waves(1, STACK - 8, STACK);
	assert_refused("without its control stack");
	give_waves(1, STACK, STACK + 256);
	assert_refused("without its control stack");
}

/* No GPU has that much, so force does not make RESTORE allocate it. */
TEST(an_impossible_control_stack_is_refused)
{
	const struct saved_queue queue = { 0, 1, 0, 0xffffffff, 0, 0 };

	with_force(true);
	give_queue(&queue);
	assert_fails(restore_queues());
	with_force(false);
	assert_logged("Error (amdgpu_plugin): kfd 5: cannot give the state of queue 3",
		      "Invalid argument");
	assert_int_equal(calls(KFD_RESTORE), 0);
}

TEST(a_queue_of_another_gpu_is_refused)
{
	give_queue(&good);
	set_at(image->priv_data.data + QUEUE_OFFSET + 64, USER_ID + 1);
	assert_fails(restore_queues());
	assert_logged("Error (amdgpu_plugin): kfd 5: queue 3 is on GPU", "lacks");
	assert_int_equal(calls(KFD_RESTORE), 0);
}

/* The saved GPU is like those of the machine. */
static void copy_gpu_to_image(void)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	const struct topology_node *present;

	assert_int_equal(topology_read(kernel.machine, &topology), 0);
	present = &topology.nodes[topology.num_nodes - 1];
	image->device_entries[1]->gfx_target_version = present->gfx_target_version;
	image->device_entries[1]->num_xcc = present->num_xcc;
}

#define RIGHTS "rights of the kernel"

static const struct {
	const char *gpus, *cwsr_enable;
	uint32_t kfd_minor;
	struct saved_queue queue;
	const char *words;
	bool can_be_forced;
} harmful[] = {
	{ "", "1\n", 18, { 0, 1, STACK, STACK, PQ_CONTROL, 1u << 30 }, RIGHTS, false },
	{ "", "1\n", 18, { 0, 1, STACK, STACK, PQ_CONTROL, 1u << 31 }, RIGHTS, false },
	{ EIGHT_XCCS, "1\n", 18, { 0, 8, 8 * STACK, STACK, PQ_CONTROL, 1u << 31 }, RIGHTS, false },
	{ "", "1\n", 18, { 1, 1, 0, 0, 0, 1u << 23 }, RIGHTS, false },
	{ SMALL_STACK, "1\n", 18, { 0, 1, STACK + 1, STACK, 0, 0 }, "larger control stack", false },
	{ "", "0\n", 18, { 0, 1, STACK, STACK, 0, 0 }, "cwsr_enable=1", false },
	{ EIGHT_XCCS, "1\n", 17, { 0, 1, STACK, STACK, 0, 0 }, "fewer XCCs", true },
	/* The kernel would read the other seven from its own memory. */
	{ EIGHT_XCCS, "1\n", 18, { 0, 1, STACK, STACK, 0, 0 }, "fewer XCCs", false },
	{ EIGHT_XCCS, "1\n", 23, { 0, 7, STACK, STACK, 0, 0 }, "fewer XCCs", false },
	{ EIGHT_XCCS, "1\n", 17, { 0, 8, 8 * STACK, STACK, 0, 0 }, "restores one XCC", false },
	{ EIGHT_XCCS, "1\n", 17, { 0, 2, 2 * STACK, STACK, 0, 0 }, "restores one XCC", false },
	{ PARTITION, "1\n", 18, { 0, 1, STACK, STACK, 0, 0 }, "on a partition of a GPU", true },
};

TEST(states_that_harm_the_kernel_are_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(harmful); i++) {
		print_message("case %zu\n", i);
		unit_print("parameter-cwsr_enable", "%s", harmful[i].cwsr_enable);
		change_gpus("eight-other", "*", harmful[i].gpus);
		kernel.kfd_minor = harmful[i].kfd_minor;
		give_queue(&harmful[i].queue);
		copy_gpu_to_image();
		assert_refused(harmful[i].words);
		with_force(true);
		give_queue(&harmful[i].queue);
		copy_gpu_to_image();
		if (harmful[i].can_be_forced)
			assert_restored();
		else
			assert_refused(harmful[i].words);
		with_force(false);
		forget_image();
	}
}

/* Such GPUs are no partitions, or their driver makes room for what it copies. */
TEST(other_gpus_of_one_slot_are_not_refused)
{
	static const struct {
		const char *gpus;
		uint32_t kfd_minor;
	} cases[] = { { MI300, 18 }, { ONE_DEVICE, 18 }, { PARTITION, 17 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		change_gpus("eight-other", "*", cases[i].gpus);
		kernel.kfd_minor = cases[i].kfd_minor;
		give_queue(&good);
		copy_gpu_to_image();
		assert_restored();
	}
}

/* An engine has one MQD, so each kernel restores it from the first of any number. */
TEST(copy_queues_may_have_more_or_fewer_mqds)
{
	static const struct {
		uint32_t kfd_minor, mqds;
	} cases[] = { { 17, 8 }, { 18, 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct saved_queue queue = { 1, cases[i].mqds, 0, 0, 0, 0 };

		print_message("case %zu\n", i);
		change_gpus("eight-other", "*", EIGHT_XCCS);
		kernel.kfd_minor = cases[i].kfd_minor;
		give_queue(&queue);
		copy_gpu_to_image();
		assert_restored();
		assert_int_equal(kernel.restored.priv_data_size,
				 MORE_GPUS + QUEUE_OFFSET + QUEUE + 512);
	}
}

/* An older driver would take what follows for the rest of the MQD. */
TEST(a_part_of_an_mqd_is_refused)
{
	static const uint32_t types[] = { 0, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct saved_queue queue = { types[i], 1, 0, 0, 0, 0 };
		uint8_t *record;

		give_queue(&queue);
		record = image->priv_data.data + QUEUE_OFFSET;
		set_at(record + 112, 4);
		set_at(record + 108, MQD - 4);
		assert_refused("of a size that no driver saves");
	}
}

/* The MQD of a later XCC states more. */
TEST(each_mqd_counts)
{
	const struct saved_queue queue = { 0, 8, 8 * STACK, STACK, STACK_SIZE, 2 * STACK };

	change_gpus("eight-other", "*", EIGHT_XCCS);
	give_queue(&queue);
	copy_gpu_to_image();
	assert_refused("without its control stack");
	give_waves(8, STACK - 8, STACK);
	copy_gpu_to_image();
	assert_refused("without its control stack");
}

/* Whatever a record cannot be read as, the driver may read as a queue. */
TEST(a_layout_that_is_not_known_is_refused)
{
	static const struct {
		size_t offset;
		uint32_t value;
	} cases[] = {
		/* Another version, an MQD of no bytes, an object of an unknown type, and no GPU. */
		{ 0, 2 },
		{ QUEUE_OFFSET + 112, 0 },
		{ QUEUE_OFFSET, 7 },
		{ QUEUE_OFFSET + 64, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		give_queue(&good);
		set_at(image->priv_data.data + cases[i].offset, cases[i].value);
		assert_fails(restore_queues());
		assert_logged("Error (amdgpu_plugin): kfd 5: its private data ",
			      "a layout that this plugin does not know",
			      "AMDGPU_FORCE=1 relaxes this");
		assert_int_equal(calls(KFD_RESTORE), 0);
		with_force(true);
		give_queue(&good);
		set_at(image->priv_data.data + cases[i].offset, cases[i].value);
		assert_restored();
		with_force(false);
		assert_logged("Warn  (amdgpu_plugin): kfd 5: its private data ",
			      "AMDGPU_FORCE is set");
	}
}

/* Two sizes of BO records fit, and the queue has another MQD in each. */
TEST(queues_that_can_be_read_in_two_ways_are_refused)
{
	give_queue(&good);
	give_second_reading();
	assert_fails(restore_queues());
	assert_logged("Error (amdgpu_plugin): kfd 5: its private data can be read in two ways");
	assert_int_equal(calls(KFD_RESTORE), 0);
}
