// SPDX-License-Identifier: GPL-2.0-only
/* The dump of KFD processes and render nodes, from the hooks down to the calls of the kernel: who is paused, for how
 * long, what is in the images, and what is left behind when something fails. */
#include "fake_kernel.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include "amdgpu_plugin_image.h"
#include "amdgpu_plugin_util.h"
#include "criu_plugin_abi.h"
#include "wire.h"

extern struct criu_plugin_desc CR_PLUGIN_DESC;

#define GPU_A 1997
#define GPU_B 57300

static pid_t tracee;

/* The process that is dumped must be one that this thread traces. */
static int begin(void **state)
{
	tracee = fork();
	if (!tracee) {
		for (;;)
			(void)pause();
	}
	if (ptrace(PTRACE_SEIZE, tracee, 0, 0) < 0)
		return -1;
	return fake_kernel_begin(state);
}

static int end(void **state)
{
	(void)kill(tracee, SIGKILL);
	(void)waitpid(tracee, NULL, 0);
	return fake_kernel_end(state);
}

static void start_dump(void)
{
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_DUMP), 0);
}

static int dump_file(int fd, int id)
{
	int (*hook)(int, int) = CR_PLUGIN_DESC.hooks[HOOK_DUMP_EXT_FILE];

	return hook(fd, id);
}

static int finish_dump(int result)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_DUMP_FINISH];

	return hook(result);
}

static void end_dump(int result)
{
	CR_PLUGIN_DESC.exit(STAGE_DUMP, result);
}

/* A process that computes on two GPUs, the first of which it knows by another id; no BO with contents. */
static struct fake_process *make_process(void)
{
	struct fake_process *process = add_process(tracee);

	add_device(process, 0xbeef, GPU_A);
	add_device(process, GPU_B, GPU_B);
	add_bo(process, 0xbeef, KFD_BO_DOORBELL, 0x1000, 0x2000, 3ULL << 62 | (uint64_t)GPU_A << 46);
	add_bo(process, GPU_B, KFD_BO_USERPTR | 1u << 31, 0x700000, 0x123000, 0);
	process->num_objects = 3;
	return process;
}

static void a_process_is_paused_until_the_dump_is_finished(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	assert_int_equal(process->paused, 1);
	assert_int_equal(unit_criu()->notes, 1);
	assert_string_equal(unit_criu()->name, "amdgpu_plugin");
	assert_int_equal(finish_dump(0), 0);
	assert_int_equal(process->paused, 0);
	/* Again with an error, as newer hosts do when what comes after fails. */
	assert_int_equal(finish_dump(-1), 0);
	end_dump(0);
	assert_int_equal(process->calls[KFD_UNPAUSE], 1);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 1);
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	(void)close(fd);
}

static void without_dump_finish_the_process_is_unpaused_at_exit(void **state)
{
	static const int results[] = { 0, -1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		struct fake_process *process;
		int fd;

		memset(kernel.processes, 0, sizeof(kernel.processes));
		process = make_process();
		fd = open_kfd_of(process);
		start_dump();
		assert_int_equal(dump_file(fd, 5), 0);
		end_dump(results[i]);
		assert_int_equal(process->paused, 0);
		assert_int_equal(process->calls[KFD_UNPAUSE], 1);
		/* What is left of a dump that failed must not look like one. */
		assert_int_equal(unit_exists("amdgpu-kfd-5.img"), results[i] == 0);
		(void)close(fd);
		free(process->bos);
		process->bos = NULL;
	}
}

static void the_image_holds_what_the_kernel_said(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);
	CriuKfd *kfd;

	(void)state;
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	(void)close(fd);
	assert_int_equal(image_read_kfd(5, &kfd), 0);
	assert_int_equal(kfd->pid, tracee);
	assert_int_equal(kfd->num_of_gpus, 2);
	assert_int_equal(kfd->num_of_cpus, 2);
	assert_int_equal(kfd->n_device_entries, 4);
	assert_int_equal(kfd->device_entries[0]->gpu_id, 0);
	assert_int_equal(kfd->device_entries[1]->gpu_id, 0);
	/* The process's own name of the GPU, the machine's beside it. */
	assert_int_equal(kfd->device_entries[2]->gpu_id, 0xbeef);
	assert_int_equal(kfd->device_entries[2]->actual_gpu_id, GPU_A);
	assert_int_equal(kfd->device_entries[2]->drm_render_minor, 128);
	assert_int_equal(kfd->device_entries[3]->gpu_id, GPU_B);
	assert_int_equal(kfd->device_entries[3]->drm_render_minor, 129);
	assert_int_equal(kfd->num_of_bos, 2);
	assert_int_equal(kfd->bo_entries[0]->addr, 0x1000);
	assert_int_equal(kfd->bo_entries[0]->offset, 3ULL << 62 | (uint64_t)GPU_A << 46);
	assert_int_equal(kfd->bo_entries[0]->gpu_id, 0xbeef);
	assert_int_equal(kfd->bo_entries[1]->size, 0x123000);
	assert_int_equal(kfd->bo_entries[1]->alloc_flags, KFD_BO_USERPTR | 1u << 31);
	assert_int_equal(kfd->bo_entries[1]->handle, 0xffffffff);
	assert_int_equal(kfd->num_of_objects, 3);
	assert_int_equal(kfd->priv_data.len, PRIVATE_SIZE);
	assert_int_equal(kfd->priv_data.data[PRIVATE_SIZE - 1], 0x5a);
	assert_int_equal(kfd->num_of_mappings, 0);
	criu_kfd__free_unpacked(kfd, NULL);
}

/* All that other programs insist on, by field number. */
static void other_programs_can_read_the_image(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);
	const uint8_t *at = NULL;
	uint64_t value = 0;
	uint8_t *bytes;
	size_t size;

	(void)state;
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	(void)close(fd);
	bytes = unit_read("amdgpu-kfd-5.img", &size);
	assert_true(size > 8);
	assert_true(wire_has_up_to(bytes + 8, size - 8, 10));
	for (size_t i = 0; i < 4; i++) {
		assert_true(wire_find(bytes + 8, size - 8, 4, i, &value, &at));
		assert_true(wire_has_up_to(at, value, 31));
	}
	for (size_t i = 0; i < 2; i++) {
		assert_true(wire_find(bytes + 8, size - 8, 6, i, &value, &at));
		assert_true(wire_has_up_to(at, value, 6));
	}
	free(bytes);
}

static void every_gpu_has_a_pages_file_also_without_contents(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);
	uint8_t *bytes;
	size_t size;

	(void)state;
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	(void)close(fd);
	bytes = unit_read("amdgpu-pages-5-beef.img", &size);
	assert_int_equal(size, 8);
	assert_memory_equal(bytes, "\0\0\0\0\0\0\0", 8);
	free(bytes);
	assert_true(unit_exists("amdgpu-pages-5-dfd4.img"));
}

static void more_files_of_a_process_do_not_pause_it_again(void **state)
{
	struct fake_process *process = make_process();
	int first = open_kfd_of(process), second = open_kfd_of(process), third = open_kfd_of(process);
	CriuKfd *kfd;

	(void)state;
	start_dump();
	assert_int_equal(dump_file(first, 5), 0);
	assert_int_equal(dump_file(second, 6), 0);
	assert_int_equal(dump_file(third, 7), 0);
	assert_int_equal(process->paused, 1);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 1);
	assert_int_equal(process->calls[KFD_UNPAUSE], 1);
	assert_int_equal(image_read_kfd(6, &kfd), 0);
	assert_int_equal(kfd->num_of_gpus, 0);
	criu_kfd__free_unpacked(kfd, NULL);
	assert_true(unit_exists("amdgpu-kfd-7.img"));
	(void)close(first);
	(void)close(second);
	(void)close(third);
}

static void two_processes_are_each_paused_and_unpaused_once(void **state)
{
	struct fake_process *one = make_process(), *two = make_process();
	int first = open_kfd_of(one), second = open_kfd_of(two);

	(void)state;
	start_dump();
	assert_int_equal(dump_file(first, 5), 0);
	assert_int_equal(dump_file(second, 6), 0);
	assert_int_equal(one->paused + two->paused, 2);
	end_dump(0);
	assert_int_equal(one->paused + two->paused, 0);
	assert_int_equal(one->calls[KFD_UNPAUSE], 1);
	assert_int_equal(two->calls[KFD_UNPAUSE], 1);
	(void)close(first);
	(void)close(second);
}

static void a_process_that_cannot_be_unpaused_does_not_keep_others_paused(void **state)
{
	struct fake_process *one = make_process(), *two = make_process();
	int first = open_kfd_of(one), second = open_kfd_of(two);

	(void)state;
	start_dump();
	assert_int_equal(dump_file(first, 5), 0);
	assert_int_equal(dump_file(second, 6), 0);
	kernel.fail_op = KFD_UNPAUSE;
	kernel.fail_errno = ENOMEM;
	kernel.fail_count = 1;
	assert_int_equal(finish_dump(0), -ENOMEM);
	assert_logged("Error: ", "kfd 5", "unpause");
	assert_int_equal(two->paused, 0);
	end_dump(-1);
	(void)close(first);
	(void)close(second);
}

/* "A failed UNPAUSE leaves the flag set": it may be asked again. */
static void an_unpause_that_the_gpu_missed_is_repeated(void **state)
{
	static const int errors[] = { EIO, ETIME };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct fake_process *process = make_process();
		int fd = open_kfd_of(process);

		start_dump();
		assert_int_equal(dump_file(fd, 5), 0);
		kernel.fail_op = KFD_UNPAUSE;
		kernel.fail_errno = errors[i];
		kernel.fail_count = 1;
		assert_int_equal(finish_dump(0), 0);
		assert_int_equal(process->paused, 0);
		end_dump(0);
		(void)close(fd);
	}
}

/* What fails, and how: the dump must fail with one line that has these words, no process stay paused, no main image be
 * there, nothing be left open. */
static void assert_dump_fails(struct fake_process *process, const char *words)
{
	int fd = open_kfd_of(process);

	unit_forget_lines();
	start_dump();
	assert_fails(dump_file(fd, 5));
	assert_logged("Error: ", words);
	assert_int_equal(unit_count_lines("Error: "), 1);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	end_dump(-1);
	assert_int_equal(process->paused, 0);
	assert_int_equal(process->calls[KFD_UNPAUSE], process->calls[KFD_PROCESS_INFO]);
	(void)close(fd);
}

static void a_kernel_that_refuses_leaves_the_process_running(void **state)
{
	static const struct {
		enum kfd_criu_op op;
		int error;
	} cases[] = {
		{ KFD_PROCESS_INFO, EBADF },   { KFD_PROCESS_INFO, EACCES },
		{ KFD_PROCESS_INFO, EIO },     { KFD_CHECKPOINT, EOPNOTSUPP },
		{ KFD_CHECKPOINT, EMFILE },
		{ KFD_CHECKPOINT, ENOMEM },    { KFD_CHECKPOINT, ESRCH },
		{ KFD_CHECKPOINT, ENODEV },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process;

		print_message("case operation %d, errno %d\n", cases[i].op, cases[i].error);
		free(kernel.processes[0].bos);
		memset(kernel.processes, 0, sizeof(kernel.processes));
		process = make_process();
		kernel.fail_op = cases[i].op;
		kernel.fail_errno = cases[i].error;
		kernel.fail_count = 1;
		assert_dump_fails(process, "kfd 5");
		assert_logged("Error: ", strerror(cases[i].error));
	}
}

/* As the kernel sees it when the process has changed between two calls. */
static void counts_that_keep_changing_fail_the_dump(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	kernel.fail_op = KFD_CHECKPOINT;
	kernel.fail_errno = EINVAL;
	kernel.fail_count = 2;
	assert_dump_fails(process, "changing");
}

static void counts_that_change_once_are_asked_again(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	start_dump();
	kernel.fail_op = KFD_CHECKPOINT;
	kernel.fail_errno = EINVAL;
	kernel.fail_count = 1;
	assert_int_equal(dump_file(fd, 5), 0);
	assert_int_equal(process->paused, 1);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 2);
	assert_int_equal(finish_dump(0), 0);
	assert_int_equal(process->paused, 0);
	end_dump(0);
	(void)close(fd);
}

static void bos_that_could_not_come_back_fail_the_dump_by_index(void **state)
{
	static const struct kfd_bo_bucket cases[] = {
		/* Of a GPU that is not the process's. */
		{ .gpu_id = 0x4444, .alloc_flags = KFD_BO_DOORBELL, .size = 4096 },
		/* Of no kind, of two, of one from the future. */
		{ .gpu_id = GPU_B, .alloc_flags = 0, .size = 4096 },
		{ .gpu_id = GPU_B, .alloc_flags = 3, .addr = 4096, .size = 4096 },
		{ .gpu_id = GPU_B, .alloc_flags = 0x20, .size = 4096 },
		/* Mapped by a render node, not by KFD. */
		{ .gpu_id = GPU_B, .alloc_flags = KFD_BO_VRAM, .size = 4096 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process;

		print_message("case %zu\n", i);
		free(kernel.processes[0].bos);
		memset(kernel.processes, 0, sizeof(kernel.processes));
		process = make_process();
		*add_bo(process, 0, 0, 0, 0, 0) = cases[i];
		assert_dump_fails(process, "BO 2");
	}
}

static void a_gpu_that_the_topology_lacks_fails_the_dump(void **state)
{
	struct fake_process *process = make_process();

	(void)state;
	kernel.machine = "one";
	assert_dump_fails(process, "0xdfd4");
}

static void a_copy_engine_that_cannot_be_opened_fails_the_dump(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000000);
	start_dump();
	assert_true(dump_file(fd, 5) < 0);
	assert_logged("Error: ", "GPU 0xdfd4", "copy engine");
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	end_dump(-1);
	assert_int_equal(process->paused, 0);
	(void)close(fd);
}

/* Also after the engine could not be had: descriptors of thousands of BOs are above the limit of most. */
static void descriptors_of_many_bos_find_room_and_are_closed(void **state)
{
	struct fake_process *process = make_process();
	struct rlimit before, after;
	int fd = open_kfd_of(process);
	size_t open_before, open_after;

	(void)state;
	for (uint64_t i = 0; i < 3000; i++)
		add_bo(process, GPU_B, KFD_BO_VRAM, (i + 1) << 20, 0x1000, 0x100000000 + (i << 12));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, before.rlim_max }), 0);
	start_dump();
	open_before = unit_count_fds();
	assert_true(dump_file(fd, 5) < 0);
	/* One more: the file of the paused process. */
	open_after = unit_count_fds();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	end_dump(-1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(process->calls[KFD_CHECKPOINT], 1);
	assert_int_equal(open_after, open_before + 1);
	assert_int_equal(after.rlim_cur, 1024);
	(void)close(fd);
}

static void a_full_disk_fails_the_dump(void **state)
{
	static const uint64_t room[] = { 0, 4, 8, 20, 500 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(room); i++) {
		struct fake_process *process;
		int fd, ret;

		print_message("case %zu\n", i);
		free(kernel.processes[0].bos);
		memset(kernel.processes, 0, sizeof(kernel.processes));
		process = make_process();
		fd = open_kfd_of(process);
		start_dump();
		unit_limit_files(room[i]);
		ret = dump_file(fd, 5);
		unit_unlimit_files();
		assert_int_equal(ret, -EFBIG);
		assert_logged("Error: ", "image amdgpu-");
		assert_false(unit_exists("amdgpu-kfd-5.img"));
		end_dump(-1);
		assert_int_equal(process->paused, 0);
		(void)close(fd);
	}
}

static void an_old_driver_is_refused_before_anything_is_paused(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	kernel.kfd_minor = 7;
	start_dump();
	assert_fails(dump_file(fd, 5));
	assert_logged("Error: ", "1.7", "1.8");
	end_dump(-1);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
	kernel.kfd_minor = 8;
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	(void)close(fd);
}

static void an_inventory_that_fails_is_found_before_anything_is_paused(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	unit_criu()->note_result = -1;
	start_dump();
	assert_true(dump_file(fd, 5) < 0);
	assert_logged("Error: ", "inventory");
	end_dump(-1);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
	(void)close(fd);
}

static void a_process_that_sees_no_gpu_is_saved_as_a_plain_open(void **state)
{
	struct fake_process *process = add_process(tracee);
	int fd = open_kfd_of(process);
	CriuKfd *kfd;

	(void)state;
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	assert_int_equal(process->paused, 0);
	assert_int_equal(image_read_kfd(5, &kfd), 0);
	assert_int_equal(kfd->num_of_gpus, 0);
	criu_kfd__free_unpacked(kfd, NULL);
	(void)close(fd);
}

static void a_process_without_bos_can_be_dumped(void **state)
{
	struct fake_process *process = add_process(tracee);
	int fd = open_kfd_of(process);

	(void)state;
	add_device(process, GPU_A, GPU_A);
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	(void)close(fd);
}

static void images_of_an_older_dump_go_first(void **state)
{
	struct fake_process *process = make_process();
	int fd = open_kfd_of(process);

	(void)state;
	unit_print("amdgpu-kfd-9.img", "old");
	unit_print("amdgpu-renderD-8.img", "old");
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	end_dump(0);
	assert_false(unit_exists("amdgpu-kfd-9.img"));
	assert_false(unit_exists("amdgpu-renderD-8.img"));
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	(void)close(fd);
}

static void a_render_node_without_objects_is_saved(void **state)
{
	int fd = open_render(133, O_RDWR);
	CriuRenderNode *node;
	uint8_t *bytes;
	size_t size;

	(void)state;
	start_dump();
	assert_int_equal(dump_file(fd, 7), 0);
	end_dump(0);
	assert_int_equal(unit_criu()->notes, 1);
	assert_int_equal(image_read_render(7, &node), 0);
	assert_int_equal(node->gpu_id, 32693);
	assert_int_equal(node->drm_render_minor, 133);
	assert_int_equal(node->device->gpu_id, 32693);
	assert_false(node->has_compute_pid);
	criu_render_node__free_unpacked(node, NULL);
	bytes = unit_read("amdgpu-renderD-7.img", &size);
	assert_true(wire_has_up_to(bytes + 8, size - 8, 4));
	free(bytes);
	(void)close(fd);
}

static void a_render_node_with_objects_of_its_own_fails_the_dump(void **state)
{
	int fd = open_render(128, O_RDWR);

	(void)state;
	kernel.gem_objects = 1;
	start_dump();
	assert_fails(dump_file(fd, 7));
	assert_logged("Error: ", "renderD128", "GEM objects");
	assert_false(unit_exists("amdgpu-renderD-7.img"));
	end_dump(-1);
	(void)close(fd);
}

static void render_nodes_of_other_drivers_are_left_to_others(void **state)
{
	static const char *const drivers[] = { "i915", "nouveau", "amdgpu2", "amdgp", "" };
	int (*handle_vma)(int, const struct stat *) = CR_PLUGIN_DESC.hooks[HOOK_HANDLE_DEVICE_VMA];
	int fd = open_render(128, O_RDWR);
	struct stat stat;

	(void)state;
	assert_int_equal(fstat(fd, &stat), 0);
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		kernel.driver = drivers[i];
		start_dump();
		assert_int_equal(dump_file(fd, 7), -ENOTSUP);
		assert_int_equal(handle_vma(fd, &stat), -ENOTSUP);
		end_dump(0);
	}
	assert_int_equal(unit_criu()->notes, 0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	(void)close(fd);
}

static void mappings_of_our_devices_are_ours(void **state)
{
	int (*handle_vma)(int, const struct stat *) = CR_PLUGIN_DESC.hooks[HOOK_HANDLE_DEVICE_VMA];
	int files[] = { open_render(128, O_RDWR), open_render(128, O_PATH),
			open_device("kfd-0", O_RDWR) };
	struct stat stat;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		assert_int_equal(fstat(files[i], &stat), 0);
		start_dump();
		assert_int_equal(handle_vma(files[i], &stat), 0);
		end_dump(0);
		/* What the GPU writes between two pre-dumps is not seen by CRIU. */
		assert_int_equal(CR_PLUGIN_DESC.init(STAGE_PRE_DUMP), 0);
		assert_fails(handle_vma(files[i], &stat));
		CR_PLUGIN_DESC.exit(STAGE_PRE_DUMP, -1);
		(void)close(files[i]);
	}
	assert_int_equal(unit_criu()->notes, ARRAY_SIZE(files));
}

static void a_dmabuf_of_a_gpu_fails_the_dump_in_words(void **state)
{
	int fd = open_device("dmabuf-1", O_RDWR);

	(void)state;
	start_dump();
	assert_fails(dump_file(fd, 7));
	assert_logged("Error: ", "file 7", "dma-buf");
	end_dump(-1);
	/* Of whoever it is where there is no AMD GPU: not ours. */
	kernel.machine = NULL;
	unit_forget_lines();
	start_dump();
	assert_int_equal(dump_file(fd, 7), -ENOTSUP);
	end_dump(0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	(void)close(fd);
}

static void without_a_driver_nothing_is_ours(void **state)
{
	int fd = open_device("kfd-0", O_RDWR);

	(void)state;
	kernel.machine = NULL;
	start_dump();
	assert_int_equal(dump_file(fd, 7), -ENOTSUP);
	end_dump(0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	(void)close(fd);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_is_paused_until_the_dump_is_finished),
		TEST(without_dump_finish_the_process_is_unpaused_at_exit),
		TEST(the_image_holds_what_the_kernel_said),
		TEST(other_programs_can_read_the_image),
		TEST(every_gpu_has_a_pages_file_also_without_contents),
		TEST(more_files_of_a_process_do_not_pause_it_again),
		TEST(two_processes_are_each_paused_and_unpaused_once),
		TEST(a_process_that_cannot_be_unpaused_does_not_keep_others_paused),
		TEST(an_unpause_that_the_gpu_missed_is_repeated),
		TEST(a_kernel_that_refuses_leaves_the_process_running),
		TEST(counts_that_keep_changing_fail_the_dump),
		TEST(counts_that_change_once_are_asked_again),
		TEST(bos_that_could_not_come_back_fail_the_dump_by_index),
		TEST(a_gpu_that_the_topology_lacks_fails_the_dump),
		TEST(a_copy_engine_that_cannot_be_opened_fails_the_dump),
		TEST(descriptors_of_many_bos_find_room_and_are_closed),
		TEST(a_full_disk_fails_the_dump),
		TEST(an_old_driver_is_refused_before_anything_is_paused),
		TEST(an_inventory_that_fails_is_found_before_anything_is_paused),
		TEST(a_process_that_sees_no_gpu_is_saved_as_a_plain_open),
		TEST(a_process_without_bos_can_be_dumped),
		TEST(images_of_an_older_dump_go_first),
		TEST(a_render_node_without_objects_is_saved),
		TEST(a_render_node_with_objects_of_its_own_fails_the_dump),
		TEST(render_nodes_of_other_drivers_are_left_to_others),
		TEST(mappings_of_our_devices_are_ours),
		TEST(a_dmabuf_of_a_gpu_fails_the_dump_in_words),
		TEST(without_a_driver_nothing_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
