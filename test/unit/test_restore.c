// SPDX-License-Identifier: GPL-2.0-only
/* The restore of a KFD process and its render nodes, from the hooks down to the calls of the kernel: what the kernel is
 * given, which descriptors come back, when the task is resumed, and when it must not run. The task is this process. */
#include "fake_kernel.h"

#include <dlfcn.h>

#include "amdgpu_plugin_device.h"
#include "amdgpu_plugin_image.h"
#include "amdgpu_plugin_util.h"
#include "criu_plugin_abi.h"

extern struct criu_plugin_desc CR_PLUGIN_DESC;

/* The machine of the image, as the process knows its GPU; the machine of the restore is "one-other". */
#define USER_ID	     0xbeef
#define OLD_ID	     1997
#define NEW_ID	     44021
#define OLD_DOORBELL (3ULL << 62 | (uint64_t)OLD_ID << 46)

/* What the fake kernel adds to every offset. */
#define MOVED (1ULL << 40)

#define LOWEST 300

/* The table by whose size the plugin tells hosts apart, as CRIU 4.2.1 has it; in a library, since a program's own
 * symbols are not to be seen. Once loaded it stays, so tests of an old host come first. */
static struct {
	char directory[64];
	void *table;
} host;

static int make_host(void **state)
{
	char command[512];

	(void)state;
	(void)strcpy(host.directory, "/tmp/amdgpu-plugin-host-XXXXXX");
	if (!mkdtemp(host.directory))
		return -1;
	(void)snprintf(command, sizeof(command), "echo 'char cr_plugin_ctl[224];' |"
		       " ${CC:-cc} -shared -fPIC -x c -o %s/host.so -", host.directory);
	return system(command);
}

static int remove_host(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", host.directory);
	return system(command);
}

static int begin_on_an_old_host(void **state)
{
	int ret = fake_kernel_begin(state);

	kernel.machine = "one-other";
	unit_criu()->unused_fd = LOWEST;
	(void)add_process(getpid());
	return ret;
}

static int begin(void **state)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/host.so", host.directory);
	if (!host.table)
		host.table = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	return host.table ? begin_on_an_old_host(state) : -1;
}

static CriuKfd *image;

static void add_image_bo(uint32_t flags, uint64_t addr, uint64_t size, uint64_t offset)
{
	KfdBoEntry *bo = malloc(sizeof(*bo));

	assert_non_null(bo);
	kfd_bo_entry__init(bo);
	bo->gpu_id = USER_ID;
	bo->alloc_flags = flags;
	bo->addr = addr;
	bo->size = size;
	bo->offset = offset;
	image->bo_entries = realloc(image->bo_entries,
				    (image->n_bo_entries + 1) * sizeof(*image->bo_entries));
	assert_non_null(image->bo_entries);
	image->bo_entries[image->n_bo_entries++] = bo;
	image->num_of_bos = image->n_bo_entries;
}

/* The image of this process: the CPU node and the GPU of machine "one", a doorbell and a userptr. */
static void make_image(void)
{
	struct topology topology;

	assert_int_equal(topology_read("test/data/machines/one", &topology), 0);
	image = malloc(sizeof(*image));
	assert_non_null(image);
	criu_kfd__init(image);
	image->pid = (uint32_t)getpid();
	image->num_of_gpus = image->num_of_cpus = 1;
	image->device_entries = calloc(topology.num_nodes, sizeof(*image->device_entries));
	for (size_t i = 0; i < topology.num_nodes; i++)
		image->device_entries[image->n_device_entries++] =
			device_entry_new(&topology, &topology.nodes[i]);
	image->device_entries[1]->gpu_id = USER_ID;
	topology_done(&topology);
	add_image_bo(KFD_BO_DOORBELL, 0x4000, 0x2000, OLD_DOORBELL);
	add_image_bo(KFD_BO_USERPTR, 0x700000, 0x5000, 0);
	image->num_of_objects = 2;
	image->priv_data.data = malloc(PRIVATE_SIZE);
	memset(image->priv_data.data, 0x77, PRIVATE_SIZE);
	image->priv_data.len = PRIVATE_SIZE;
	image->has_num_of_mappings = true;
	image->num_of_mappings = 1;
}

static void write_image(int id)
{
	assert_int_equal(image_write_kfd(id, image), 0);
}

static void forget_image(void)
{
	if (image)
		criu_kfd__free_unpacked(image, NULL);
	image = NULL;
}

static int end(void **state)
{
	forget_image();
	return fake_kernel_end(state);
}

static void start_restore(void)
{
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
}

static int restore_file(int id)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_RESTORE_EXT_FILE];

	return hook(id);
}

static int update_mapping(const char *path, uint64_t addr, uint64_t offset, uint64_t *new_offset,
			  int *fd)
{
	int (*hook)(const char *, uint64_t, uint64_t, uint64_t *, int *) =
		CR_PLUGIN_DESC.hooks[HOOK_UPDATE_VMA_MAP];

	return hook(path, addr, offset, new_offset, fd);
}

static int resume(pid_t pid)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_RESUME_DEVICES_LATE];

	return hook(pid);
}

static void end_restore(int result)
{
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, result);
}

static unsigned int calls(enum kfd_criu_op op)
{
	return kernel.processes[0].calls[op];
}

static void a_process_comes_back_on_another_machine(void **state)
{
	uint64_t offset;
	int fd, mapped;

	(void)state;
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	assert_true(fd >= LOWEST);
	assert_true(device_of(fd, "kfd-") == 0);
	/* The process keeps its name of the GPU; the kernel is told the GPU of here and its file. */
	assert_int_equal(kernel.restored.num_devices, 1);
	assert_int_equal(kernel.restored_devices[0].user_gpu_id, USER_ID);
	assert_int_equal(kernel.restored_devices[0].actual_gpu_id, NEW_ID);
	assert_int_equal(device_of((int)kernel.restored_devices[0].drm_fd, "renderD-"), 130);
	assert_int_equal(kernel.restored.num_bos, 2);
	assert_int_equal(kernel.restored.num_objects, 2);
	assert_int_equal(kernel.restored.priv_data_size, PRIVATE_SIZE);

	assert_int_equal(update_mapping("/dev/kfd", 0x4000, OLD_DOORBELL, &offset, &mapped), 1);
	assert_true(offset == OLD_DOORBELL + MOVED);
	assert_int_equal(device_of(mapped, "kfd-"), 0);
	assert_int_equal(resume(getpid()), 0);
	assert_int_equal(calls(KFD_RESUME), 1);
	end_restore(0);
	assert_int_equal(kernel.killed, 0);
	(void)close(mapped);
	(void)close(fd);
}

static void after_the_last_mapping_only_the_task_s_own_files_are_open(void **state)
{
	size_t before = unit_count_fds();
	uint64_t offset;
	int fd, mapped;

	(void)state;
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	assert_true(fd >= 0);
	assert_int_equal(update_mapping("/dev/kfd", 0x4000, OLD_DOORBELL, &offset, &mapped), 1);
	/* As CRIU does once it has mapped. */
	(void)close(mapped);
	assert_int_equal(unit_count_fds(), before + 1);
	(void)close(fd);
	end_restore(0);
}

/* It makes a copy and closes that: so what it is given must not be one more. */
static void an_old_host_is_given_the_task_s_own_descriptor(void **state)
{
	size_t before = unit_count_fds();
	uint64_t offset;
	int fd, mapped;

	(void)state;
	assert_null(host.table);
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	assert_true(fd >= 0);
	assert_int_equal(update_mapping("/dev/kfd", 0x4000, OLD_DOORBELL, &offset, &mapped), 1);
	assert_true(offset == OLD_DOORBELL + MOVED);
	assert_int_equal(mapped, fd);
	assert_int_equal(unit_count_fds(), before + 1);
	(void)close(fd);
	end_restore(0);
}

/* A process may close /dev/kfd and keep what it has mapped. */
static void an_old_host_is_given_a_descriptor_also_if_the_task_has_none(void **state)
{
	uint64_t offset;
	int fd, mapped;

	(void)state;
	assert_null(host.table);
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	(void)close(fd);
	assert_int_equal(update_mapping("/dev/kfd", 0x4000, OLD_DOORBELL, &offset, &mapped), 1);
	assert_int_equal(device_of(mapped, "kfd-"), 0);
	(void)close(mapped);
	end_restore(0);
}

static void descriptors_of_the_plugin_are_out_of_the_way_and_closed_on_exec(void **state)
{
	int fd;

	(void)state;
	make_image();
	image->num_of_mappings = 5;
	write_image(5);
	start_restore();
	fd = restore_file(5);
	for (int number = 0; number < 1024; number++) {
		int flags = fcntl(number, F_GETFD);

		if (flags < 0 || (device_of(number, "kfd-") < 0 && device_of(number, "renderD-") < 0))
			continue;
		assert_in_range(number, LOWEST, 1024);
		assert_true(number == fd || flags & FD_CLOEXEC);
	}
	(void)close(fd);
	end_restore(0);
}

static void a_second_file_of_the_process_is_a_plain_open(void **state)
{
	CriuKfd plain = CRIU_KFD__INIT;

	(void)state;
	for (unsigned int plain_first = 0; plain_first < 2; plain_first++) {
		int fds[2];

		forget_image();
		make_image();
		write_image(5);
		assert_int_equal(image_write_kfd(4, &plain), 0);
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		start_restore();
		for (unsigned int i = 0; i < 2; i++) {
			fds[i] = restore_file(i == plain_first ? 5 : 4);
			assert_true(fds[i] >= 0);
		}
		assert_int_equal(calls(KFD_RESTORE), 1);
		(void)close(fds[0]);
		(void)close(fds[1]);
		end_restore(0);
	}
}

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

/* Descriptors of one open share their position; those of two do not. */
static bool same_open(int a, int b)
{
	return lseek(a, 777, SEEK_SET) == 777 && lseek(b, 0, SEEK_CUR) == 777 &&
	       lseek(a, 0, SEEK_SET) == 0;
}

static void the_compute_vm_s_render_node_is_the_file_of_the_restore_in_either_order(void **state)
{
	(void)state;
	for (unsigned int render_first = 0; render_first < 2; render_first++) {
		int render = -1, kfd;

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
		(void)close(render);
		(void)close(kfd);
		end_restore(0);
	}
}

static void another_open_of_the_render_node_is_another_file(void **state)
{
	int compute, other, kfd;

	(void)state;
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
	(void)close(other);
	(void)close(compute);
	(void)close(kfd);
	end_restore(0);
}

static void a_render_node_of_a_foreign_image_is_taken_for_the_compute_one(void **state)
{
	struct CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	int render, kfd;

	(void)state;
	make_image();
	write_image(5);
	/* Vintage A has the process's id of the GPU, and nothing else. */
	node.gpu_id = USER_ID;
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	render = restore_file(6);
	kfd = restore_file(5);
	assert_true(same_open(render, (int)kernel.restored_devices[0].drm_fd));
	(void)close(render);
	(void)close(kfd);
	end_restore(0);
}

/* A file of its own process: its GPU is mapped by itself. */
static void a_render_node_without_kfd_is_restored_on_the_gpu_that_fits(void **state)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	int fd;

	(void)state;
	make_image();
	node.gpu_id = OLD_ID;
	node.device = image->device_entries[1];
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	fd = restore_file(6);
	assert_int_equal(device_of(fd, "renderD-"), 130);
	(void)close(fd);
	node.device->device_id++;
	assert_int_equal(image_write_render(6, &node), 0);
	assert_int_equal(restore_file(6), -ENODEV);
	assert_logged("device_id");
	end_restore(-1);
}

static void render_images_that_cannot_be_restored_are_refused_in_words(void **state)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	(void)state;
	start_restore();
	/* Of no process with KFD state, and nothing said of the GPU. */
	assert_int_equal(image_write_render(6, &node), 0);
	assert_fails(restore_file(6));
	assert_logged("Error: ", "render node 6");
	node.has_num_of_bos = true;
	node.num_of_bos = 1;
	unit_forget_lines();
	assert_int_equal(image_write_render(6, &node), 0);
	assert_fails(restore_file(6));
	assert_logged("Error: ", "render node 6", "GEM");
	end_restore(-1);
}

static void a_render_node_that_is_not_there_is_an_error(void **state)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	(void)state;
	kernel.hides_render_nodes = true;
	make_image();
	node.device = image->device_entries[1];
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	assert_fails(restore_file(6));
	assert_logged("Error: ", "renderD130");
	end_restore(-1);

	unit_forget_lines();
	write_image(5);
	start_restore();
	assert_fails(restore_file(5));
	assert_logged("Error: ", "renderD130");
	end_restore(-1);
}

/* Damaged or made up, but it parses. */
static void a_render_image_whose_gpu_is_a_cpu_is_refused(void **state)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	(void)state;
	make_image();
	node.device = image->device_entries[0];
	assert_int_equal(image_write_render(6, &node), 0);
	start_restore();
	assert_fails(restore_file(6));
	assert_logged("Error: ", "render node 6");
	end_restore(-1);
}

/* The restore must fail with one error line of @words, and the kernel not be asked to rebuild anything. */
static void assert_refused(const char *words)
{
	write_image(5);
	unit_forget_lines();
	start_restore();
	assert_fails(restore_file(5));
	assert_logged("Error: ", words);
	assert_int_equal(unit_count_lines("Error: "), 1);
	assert_int_equal(calls(KFD_RESTORE), 0);
	assert_int_equal(resume(getpid()), -ENOTSUP);
	end_restore(-1);
}

static void numbers_of_an_image_that_disagree_are_refused(void **state)
{
	(void)state;
	make_image();
	image->num_of_bos++;
	assert_refused("BOs");
	image->num_of_bos = 0;
	assert_refused("BOs");
	image->num_of_bos = image->n_bo_entries;
	image->num_of_gpus = 2;
	assert_refused("GPUs");
	image->num_of_gpus = 1;
	image->bo_entries[1]->gpu_id = 0x4444;
	assert_refused("0x4444");
	image->bo_entries[1]->gpu_id = USER_ID;
	image->bo_entries[1]->alloc_flags = 0x3;
	assert_refused("BO 1");
	image->bo_entries[1]->alloc_flags = KFD_BO_VRAM;
	image->bo_entries[1]->size = 4097;
	assert_refused("BO 1");
	image->bo_entries[1]->size = 0;
	assert_refused("BO 1");
	image->bo_entries[1]->size = 4096;
	image->priv_data.len = 0;
	assert_refused("private data");
}

static void an_image_of_another_process_is_refused(void **state)
{
	(void)state;
	make_image();
	image->pid++;
	assert_refused("process");
}

static void gpus_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	make_image();
	image->device_entries[1]->simd_count++;
	assert_refused("map: ");
}

static void gpus_too_many_to_see_are_refused_in_words(void **state)
{
	(void)state;
	make_image();
	kernel.machine = "eight";
	assert_refused("device cgroup");
}

static void a_machine_without_driver_is_refused(void **state)
{
	(void)state;
	make_image();
	kernel.machine = NULL;
	assert_refused("/dev/kfd");
}

static void an_old_driver_is_refused(void **state)
{
	(void)state;
	make_image();
	kernel.kfd_minor = 7;
	assert_refused("1.8");
}

static void a_second_try_after_a_refusal_is_refused_too(void **state)
{
	(void)state;
	make_image();
	image->device_entries[1]->simd_count++;
	write_image(5);
	start_restore();
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(restore_file(5), -ENODEV);
	assert_int_equal(unit_count_lines("no GPU here can stand"), 3);
	end_restore(-1);
}

static void a_restore_that_the_kernel_refuses_ends_the_task(void **state)
{
	static const int errors[] = { EINVAL, ENOMEM, EPERM, EACCES, ENOSPC };

	(void)state;
	make_image();
	write_image(5);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		kernel.fail_op = KFD_RESTORE;
		kernel.fail_errno = errors[i];
		kernel.fail_count = 1;
		kernel.killed = 0;
		unit_forget_lines();
		start_restore();
		assert_int_equal(restore_file(5), -errors[i]);
		assert_logged("Error: ", "kfd 5");
		/* Whatever the host makes of the hooks' results. */
		assert_true(resume(getpid()) < 0);
		assert_int_equal(kernel.killed, getpid());
		assert_int_equal(calls(KFD_RESUME), 0);
		end_restore(-1);
	}
}

static void contents_that_are_missing_end_the_task(void **state)
{
	(void)state;
	make_image();
	add_image_bo(KFD_BO_VRAM, 0x800000, 0x1000, 0x100000000);
	write_image(5);
	start_restore();
	assert_fails(restore_file(5));
	assert_logged("Error: ", "amdgpu-pages-5-beef.img");
	assert_true(resume(getpid()) < 0);
	assert_int_equal(kernel.killed, getpid());
	assert_int_equal(calls(KFD_RESUME), 0);
	end_restore(-1);
}

static void a_mapping_that_cannot_be_moved_ends_the_task(void **state)
{
	uint64_t offset;
	int fd, mapped;

	(void)state;
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	assert_true(fd >= 0);
	assert_int_equal(update_mapping("/dev/kfd", 0x9000, 3ULL << 62 | 0x4444ULL << 46, &offset, &mapped),
			 -EINVAL);
	assert_true(resume(getpid()) < 0);
	assert_int_equal(kernel.killed, getpid());
	assert_int_equal(calls(KFD_RESUME), 0);
	(void)close(fd);
	end_restore(-1);
}

static void a_task_whose_queues_cannot_be_resumed_is_killed(void **state)
{
	int fd;

	(void)state;
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	kernel.fail_op = KFD_RESUME;
	kernel.fail_errno = EINVAL;
	kernel.fail_count = 1;
	assert_int_equal(resume(getpid()), -EINVAL);
	assert_logged("Error: ", "resume");
	assert_int_equal(kernel.killed, getpid());
	/* Never twice. */
	assert_int_equal(resume(getpid()), -ENOTSUP);
	(void)close(fd);
	end_restore(-1);
}

static void a_pid_that_the_driver_does_not_know_is_no_error(void **state)
{
	int fd;

	(void)state;
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	kernel.fail_op = KFD_RESUME;
	kernel.fail_errno = ESRCH;
	kernel.fail_count = 1;
	assert_int_equal(resume(getpid()), 0);
	assert_int_equal(kernel.killed, 0);
	(void)close(fd);
	end_restore(0);
}

static void a_task_is_resumed_once(void **state)
{
	int fd;

	(void)state;
	make_image();
	write_image(5);
	start_restore();
	fd = restore_file(5);
	assert_int_equal(resume(getpid()), 0);
	assert_int_equal(resume(getpid()), -ENOTSUP);
	assert_int_equal(calls(KFD_RESUME), 1);
	(void)close(fd);
	end_restore(0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
#define OLD_HOST_TEST(function) \
	cmocka_unit_test_setup_teardown(function, begin_on_an_old_host, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OLD_HOST_TEST(an_old_host_is_given_the_task_s_own_descriptor),
		OLD_HOST_TEST(an_old_host_is_given_a_descriptor_also_if_the_task_has_none),
		TEST(a_process_comes_back_on_another_machine),
		TEST(after_the_last_mapping_only_the_task_s_own_files_are_open),
		TEST(descriptors_of_the_plugin_are_out_of_the_way_and_closed_on_exec),
		TEST(a_second_file_of_the_process_is_a_plain_open),
		TEST(the_compute_vm_s_render_node_is_the_file_of_the_restore_in_either_order),
		TEST(another_open_of_the_render_node_is_another_file),
		TEST(a_render_node_of_a_foreign_image_is_taken_for_the_compute_one),
		TEST(a_render_node_without_kfd_is_restored_on_the_gpu_that_fits),
		TEST(render_images_that_cannot_be_restored_are_refused_in_words),
		TEST(a_render_node_that_is_not_there_is_an_error),
		TEST(a_render_image_whose_gpu_is_a_cpu_is_refused),
		TEST(numbers_of_an_image_that_disagree_are_refused),
		TEST(an_image_of_another_process_is_refused),
		TEST(gpus_that_do_not_fit_are_refused),
		TEST(gpus_too_many_to_see_are_refused_in_words),
		TEST(a_machine_without_driver_is_refused),
		TEST(an_old_driver_is_refused),
		TEST(a_second_try_after_a_refusal_is_refused_too),
		TEST(a_restore_that_the_kernel_refuses_ends_the_task),
		TEST(contents_that_are_missing_end_the_task),
		TEST(a_mapping_that_cannot_be_moved_ends_the_task),
		TEST(a_task_whose_queues_cannot_be_resumed_is_killed),
		TEST(a_pid_that_the_driver_does_not_know_is_no_error),
		TEST(a_task_is_resumed_once),
	};

	return cmocka_run_group_tests(tests, make_host, remove_host);
}
