// SPDX-License-Identifier: GPL-2.0-only
/* The nodes of a KFD image, and their order. */
#include "dump_task.h"

#include "content/checksum.h"
#include "content/content.h"

/* A machine without caches and links: node 0 is a GPU, node 1 a CPU, node 2 another GPU. */
static void make_mixed_machine(void)
{
	for (unsigned int i = 0; i < 3; i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "mixed/nodes/%u/gpu_id", i);
		unit_print(path, "%u\n", i == 0 ? GPU_A : i == 1 ? 0 : GPU_B);
		(void)snprintf(path, sizeof(path), "mixed/nodes/%u/properties", i);
		unit_print(path, "cpu_cores_count %u\ndrm_render_minor %u\n", i == 1,
			   i == 1 ? 0 : 128 + i / 2);
		(void)snprintf(path, sizeof(path), "mixed/nodes/%u/mem_banks/0/properties", i);
		unit_print(path, "heap_type 1\nsize_in_bytes 1073741824\n");
	}
}

/* Each GPU has one BO. */
static void assert_sum(const CriuKfd *image, const KfdDeviceEntry *entry)
{
	struct content_bo bo = { 0 };
	struct content_job job = { .bos = &bo, .num_bos = 1 };
	uint64_t sum;

	assert_int_equal(entry->has_contents_checksum, entry->gpu_id != 0);
	if (!entry->gpu_id)
		return;
	for (size_t i = 0; i < image->n_bo_entries; i++) {
		if (image->bo_entries[i]->gpu_id == entry->gpu_id)
			bo.checksum = image->bo_entries[i]->checksum;
	}
	assert_int_equal(checksum_of_job(&job, &sum), 0);
	assert_true(entry->contents_checksum == sum);
}

/* CRIU's own plugin lists nodes in the order of sysfs, and pairs the GPUs of an image with those of
 * a machine in that order. In another order it would move GPUs that could stay, and find no mapping
 * for some machines. */
static void assert_nodes(const char *machine, const uint32_t *node_ids, size_t count)
{
	struct fake_process *process = add_process(tracee);
	_cleanup_kfd_ CriuKfd *image = NULL;

	kernel.machine = machine;
	add_device(process, GPU_B, GPU_A);
	add_device(process, GPU_A, GPU_B);
	/* Each GPU has its own sum of contents. */
	add_bo(process, GPU_A, KFD_BO_GTT, 0x800000, 0x1000, 0x10000000);
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x900000, 0x3000, 0x20000000);
	dump_process(process);
	assert_int_equal(image_read_kfd(5, &image), 0);
	assert_int_equal(image->num_of_gpus, 2);
	assert_int_equal(image->num_of_gpus + image->num_of_cpus, count);
	assert_int_equal(image->n_device_entries, count);
	for (size_t i = 0; i < count; i++) {
		const KfdDeviceEntry *entry = image->device_entries[i];

		assert_int_equal(entry->node_id, node_ids[i]);
		assert_int_equal(entry->gpu_id, entry->actual_gpu_id == GPU_A   ? GPU_B
						: entry->actual_gpu_id == GPU_B ? GPU_A
										: 0);
		assert_sum(image, entry);
	}
}

TEST(nodes_are_saved_as_sysfs_lists_them)
{
	/* Of eight GPUs, the process sees those of nodes 2 and 3. */
	assert_nodes("eight", (const uint32_t[]){ 3, 1, 2, 0 }, 4);
}

TEST(cpu_nodes_are_saved_among_gpus)
{
	char machine[256];

	make_mixed_machine();
	(void)snprintf(machine, sizeof(machine), "%s", unit_path("mixed"));
	assert_nodes(machine, (const uint32_t[]){ 1, 2, 0 }, 3);
}

/* Of the two GPUs of the machine, the process sees one. */
TEST(gpus_that_the_process_does_not_see_are_not_saved)
{
	struct fake_process *process = add_process(tracee);
	char machine[256];
	_cleanup_kfd_ CriuKfd *image = NULL;

	make_mixed_machine();
	(void)snprintf(machine, sizeof(machine), "%s", unit_path("mixed"));
	kernel.machine = machine;
	add_device(process, 0xbeef, GPU_B);
	dump_process(process);
	assert_int_equal(image_read_kfd(5, &image), 0);
	assert_int_equal(image->num_of_gpus, 1);
	assert_int_equal(image->num_of_cpus, 1);
	assert_int_equal(image->n_device_entries, 2);
	assert_int_equal(image->device_entries[0]->gpu_id, 0);
	assert_int_equal(image->device_entries[1]->gpu_id, 0xbeef);
	assert_int_equal(image->device_entries[1]->actual_gpu_id, GPU_B);
}
