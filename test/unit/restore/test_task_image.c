// SPDX-License-Identifier: GPL-2.0-only
/* The GPUs of several tasks of a container whose /dev lacks nodes. The tasks map one after the
 * other, and each makes the nodes of its own GPUs. */
#include "machines.h"

#include "devices/node.h"
#include "kernel/render_node.h"
#include "memory/restore_shared.h"
#include "restore/task_image.h"
#include "session/restore_session.h"

#define CARDS       4
#define FIRST       128
#define MINOR(card) (FIRST + (card))

/* The machine, and which render nodes the /dev of the container has. */
static size_t num_cards;
static bool present[CARDS];

int __wrap_topology_read(const char *path, struct topology *ret_topology);
int __wrap_topology_read(const char *path, struct topology *ret_topology)
{
	(void)path;
	add_cpu(ret_topology, 0);
	for (uint32_t i = 0; i < num_cards; i++) {
		add_gpu(ret_topology, 1 + i, 0x20 + i, 0);
		ret_topology->nodes[1 + i].drm_render_minor = MINOR(i);
	}
	return 0;
}

bool __wrap_node_can_make_render(const struct machine_dev *machine, uint32_t minor);
bool __wrap_node_can_make_render(const struct machine_dev *machine, uint32_t minor)
{
	(void)machine;
	return !present[minor - FIRST];
}

int __wrap_node_make_render(const struct machine_dev *machine, uint32_t minor);
int __wrap_node_make_render(const struct machine_dev *machine, uint32_t minor)
{
	(void)machine;
	present[minor - FIRST] = true;
	return 0;
}

int __wrap_render_node_open(uint32_t minor, int lowest_fd, int *ret_fd);
int __wrap_render_node_open(uint32_t minor, int lowest_fd, int *ret_fd)
{
	(void)lowest_fd;
	if (!present[minor - FIRST])
		return -ENOENT;
	*ret_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return 0;
}

/* A job whose processes have one GPU each. */
static struct job {
	struct options options;
	struct restore_session session;
	struct topology saved[CARDS];
	size_t num_tasks;
} job;

/* The first process had card number @first, the next one the next card. */
static void begin_job(size_t tasks, uint32_t first)
{
	memset(&job, 0, sizeof(job));
	memset(present, 0, sizeof(present));
	num_cards = CARDS;
	job.num_tasks = tasks;
	job.options.map = all_checks;
	job.session.options = &job.options;
	assert_int_equal(restore_shared_new(&job.session.shared), 0);
	for (uint32_t i = 0; i < tasks; i++) {
		add_cpu(&job.saved[i], 0);
		add_gpu(&job.saved[i], 1 + first + i, 0x20 + first + i, 0);
		assert_int_equal(map_tree_add(&job.session.tree, &job.saved[i]), 0);
	}
	map_tree_sort(&job.session.tree);
	job.session.tree.claims = job.session.shared->claims;
	job.session.tree_is_read = true;
}

static void end_job(void)
{
	for (size_t i = 0; i < job.num_tasks; i++)
		topology_done(&job.saved[i]);
	map_tree_done(&job.session.tree);
	restore_shared_free(job.session.shared);
}

/* The number of the card that replaces the GPU of this process. */
static uint32_t map_task(size_t index)
{
	_cleanup_(topology_done) struct topology local = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };

	assert_int_equal(
		task_image_map_gpus(&job.session, "kfd 1", &job.saved[index], &local, &map), 0);
	assert_true(present[map.local[1]->drm_render_minor - FIRST]);
	return map.local[1]->drm_render_minor - FIRST;
}

static void expect_cards(const uint32_t *cards)
{
	for (size_t i = 0; i < job.num_tasks; i++)
		assert_int_equal(map_task(i), cards[i]);
	end_job();
}

#define EXPECT_CARDS(...) expect_cards((const uint32_t[]){ __VA_ARGS__ })

UNIT_TEST(each_process_gets_a_gpu_of_its_own_in_an_empty_dev)
{
	begin_job(3, 0);
	EXPECT_CARDS(0, 1, 2);
	assert_int_equal(unit_count_lines("in another process"), 0);
	assert_int_equal(unit_count_lines("is mapped alone"), 0);
}

UNIT_TEST(a_node_that_is_there_does_not_attract_all_processes)
{
	begin_job(3, 0);
	present[3] = true;
	EXPECT_CARDS(0, 1, 2);
}

/* With the node that the first process makes, there are enough for all. */
UNIT_TEST(nodes_of_earlier_tasks_do_not_change_the_mapping)
{
	begin_job(2, 2);
	present[0] = true;
	EXPECT_CARDS(2, 3);
}

/* As a runtime gives them to the container. */
UNIT_TEST(nodes_that_are_there_come_first)
{
	begin_job(2, 0);
	present[2] = present[3] = true;
	EXPECT_CARDS(2, 3);
}

UNIT_TEST(processes_share_a_gpu_if_there_are_too_few)
{
	begin_job(3, 0);
	num_cards = 2;
	EXPECT_CARDS(0, 1, 0);
	assert_logged("Warn  (amdgpu_plugin): map: GPU 0x0020", "in another process");
}

/* Another job, which was restored before, has the first card. */
UNIT_TEST(a_card_in_use_comes_last)
{
	begin_job(1, CARDS);
	memset(present, true, sizeof(present));
	job.session.used_gpus = (struct gpu_use){ .ids = (uint32_t[]){ 0x20 }, .count = 1 };
	EXPECT_CARDS(1);
}
