// SPDX-License-Identifier: GPL-2.0-only
/* Restores where the task sees more GPUs than its image has: the devices of RESTORE, and refusals.
 * The image has the GPU of machine "one", the restore runs on "eight". The task is this process. */
#include "fake_kernel.h"

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/plugin_abi.h"
#include "image/image.h"

extern struct criu_plugin_desc CR_PLUGIN_DESC;

#define GPUS      8
#define LOWEST    300
#define PRIV_SIZE (8 + 8 + 64)
#define SVM_SIZE  (24 + 8 * (4 + 1))

static int begin(void **state)
{
	int ret = fake_kernel_begin(state);

	kernel.machine = "eight";
	criu_stub.unused_fd = LOWEST;
	(void)add_process(getpid());
	return ret;
}

/* Private data of one GPU, no BOs, an event and, with @svm, an SVM range. */
static void set_priv_data(CriuKfd *image, bool svm)
{
	uint8_t *bytes = calloc(PRIV_SIZE + SVM_SIZE, 1);

	assert_non_null(bytes);
	bytes[0] = 1;
	memset(bytes + 8, 0x55, 8);
	bytes[16] = 1;
	bytes[PRIV_SIZE] = 2;
	image->priv_data.data = bytes;
	image->priv_data.len = svm ? PRIV_SIZE + SVM_SIZE : PRIV_SIZE;
	image->num_of_objects = svm ? 2 : 1;
}

static void write_image(bool svm, uint32_t user_id, size_t cut)
{
	struct topology topology;
	CriuKfd *image = malloc(sizeof(*image));

	assert_non_null(image);
	assert_int_equal(topology_read("test/data/machines/one", &topology), 0);
	criu_kfd__init(image);
	image->pid = (uint32_t)getpid();
	image->num_of_gpus = image->num_of_cpus = 1;
	image->device_entries = calloc(topology.num_nodes, sizeof(*image->device_entries));
	for (size_t i = 0; i < topology.num_nodes; i++)
		image->device_entries[image->n_device_entries++] =
			device_entry_new(&topology, &topology.nodes[i]);
	image->device_entries[1]->gpu_id = user_id;
	topology_done(&topology);
	set_priv_data(image, svm);
	image->priv_data.len -= cut;
	assert_int_equal(image_write_kfd(5, image), 0);
	criu_kfd__free_unpacked(image, NULL);
}

static int run_restore(void)
{
	int (*hook)(int id) = NULL;
	int fd;

	memcpy(&hook, &CR_PLUGIN_DESC.hooks[HOOK_RESTORE_EXT_FILE], sizeof(hook));
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
	fd = hook(5);
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, fd < 0 ? fd : 0);
	return fd;
}

static void assert_refused(const char *why)
{
	assert_true(run_restore() < 0);
	assert_int_equal(kernel.processes[0].calls[KFD_RESTORE], 0);
	assert_logged("Error (amdgpu_plugin): ", why, "renderD");
}

static void extra_gpus_get_their_own_buckets(void **state)
{
	uint32_t mapped;
	int fd;

	(void)state;
	write_image(false, 0xbeef, 0);
	fd = run_restore();
	assert_true(fd >= 0);
	assert_int_equal(kernel.restored.num_devices, GPUS);
	assert_int_equal(kernel.restored.priv_data_size, PRIV_SIZE + 8 * (GPUS - 1));
	assert_int_equal(kernel.restored_devices[0].user_gpu_id, 0xbeef);
	mapped = kernel.restored_devices[0].actual_gpu_id;
	for (size_t i = 1; i < GPUS; i++) {
		const struct kfd_device_bucket *device = &kernel.restored_devices[i];

		assert_int_equal(device->user_gpu_id, device->actual_gpu_id);
		assert_int_not_equal(device->actual_gpu_id, mapped);
		assert_true((int)device->drm_fd >= LOWEST);
		for (size_t j = 1; j < i; j++)
			assert_int_not_equal(device->actual_gpu_id,
					     kernel.restored_devices[j].actual_gpu_id);
	}
	(void)close(fd);
}

/* The process knows its GPU by the id of an extra GPU. */
static void an_extra_gpu_gets_no_id_that_the_process_knows(void **state)
{
	struct topology topology;
	int fd;

	(void)state;
	/* Its first queue could reach the extra GPU. */
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	assert_int_equal(topology_read("test/data/machines/eight", &topology), 0);
	for (size_t i = 0; i < topology.num_nodes; i++) {
		uint32_t known = topology.nodes[i].gpu_id;

		if (!known)
			continue;
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		write_image(false, known, 0);
		fd = run_restore();
		assert_true(fd >= 0);
		assert_int_equal(kernel.restored.num_devices, GPUS);
		for (size_t j = 0; j < GPUS; j++) {
			assert_int_not_equal(kernel.restored_devices[j].user_gpu_id, 0);
			for (size_t k = 0; k < j; k++)
				assert_int_not_equal(kernel.restored_devices[j].user_gpu_id,
						     kernel.restored_devices[k].user_gpu_id);
		}
		(void)close(fd);
	}
	topology_done(&topology);
}

static void extra_gpus_beside_svm_ranges_are_refused(void **state)
{
	(void)state;
	write_image(true, 0xbeef, 0);
	assert_refused("device cgroup");
	assert_logged("Error (amdgpu_plugin): ", "SVM");
}

static void extra_gpus_beside_unknown_private_data_are_refused(void **state)
{
	(void)state;
	write_image(false, 0xbeef, 1);
	assert_refused("device cgroup");
	assert_logged("Error (amdgpu_plugin): ", "unknown layout");
}

static void svm_ranges_without_extra_gpus_are_restored(void **state)
{
	int fd;

	(void)state;
	kernel.machine = "one";
	write_image(true, 0xbeef, 0);
	fd = run_restore();
	assert_true(fd >= 0);
	assert_int_equal(kernel.restored.num_devices, 1);
	assert_int_equal(kernel.restored.priv_data_size, PRIV_SIZE + SVM_SIZE);
	(void)close(fd);
}

static void gpus_without_a_render_node_are_not_used(void **state)
{
	(void)state;
	kernel.hides_render_nodes = true;
	write_image(false, 0xbeef, 0);
	assert_refused("(cannot open: renderD");
	assert_int_equal(unit_count_lines("is not used: cannot open renderD"), GPUS);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, fake_kernel_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(extra_gpus_get_their_own_buckets),
		TEST(an_extra_gpu_gets_no_id_that_the_process_knows),
		TEST(extra_gpus_beside_svm_ranges_are_refused),
		TEST(extra_gpus_beside_unknown_private_data_are_refused),
		TEST(svm_ranges_without_extra_gpus_are_restored),
		TEST(gpus_without_a_render_node_are_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
