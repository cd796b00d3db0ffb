// SPDX-License-Identifier: GPL-2.0-only
/* Files other than /dev/kfd at a dump: render nodes, dma-bufs, mappings, and what
 * belongs to other drivers. */
#include "dump_tree.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "wire.h"

/* Mappings of /dev/zero appear as mappings of this render node. */
static unsigned int mapped_minor;

int stat(const char *path, struct stat *stat)
{
	int ret = fstatat(AT_FDCWD, path, stat, 0);

	if (!ret && S_ISCHR(stat->st_mode) && stat->st_rdev == makedev(1, 5))
		stat->st_rdev = makedev(226, mapped_minor);
	return ret;
}

TEST(a_render_node_without_objects_is_saved)
{
	_cleanup_close_ int fd = open_render(133, O_RDWR);
	CriuRenderNode *node;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;

	dump_one(fd, 7);
	assert_int_equal(unit_criu()->notes, 1);
	assert_int_equal(image_read_render(7, &node), 0);
	assert_int_equal(node->gpu_id, 32693);
	assert_int_equal(node->drm_render_minor, 133);
	assert_int_equal(node->device->gpu_id, 32693);
	assert_false(node->has_compute_pid);
	criu_render_node__free_unpacked(node, NULL);
	bytes = unit_read("amdgpu-renderD-7.img", &size);
	assert_true(wire_has_up_to(bytes + 8, size - 8, 4));
}

TEST(a_failed_dump_leaves_no_image_of_a_render_node)
{
	_cleanup_close_ int fd = open_render(133, O_RDWR);

	start_dump();
	name_task(tracee);
	assert_int_equal(dump_file(fd, 7), 0);
	assert_true(unit_exists("amdgpu-renderD-7.img"));
	end_dump(-1);
	assert_false(unit_exists("amdgpu-renderD-7.img"));
}

TEST(a_render_node_with_objects_of_its_own_fails_the_dump)
{
	_cleanup_close_ int fd = open_render(128, O_RDWR);

	kernel.gem_objects = 1;
	start_dump();
	assert_fails(dump_file(fd, 7));
	assert_logged("Error (amdgpu_plugin): ", "renderD128", "GEM objects");
	assert_false(unit_exists("amdgpu-renderD-7.img"));
	end_dump(-1);
}

/* A viewer without KFD. All refusals come before the first image. */
TEST(objects_of_a_task_without_kfd_fail_the_dump_at_its_first_file)
{
	int fd = open_render(128, O_RDWR);
	struct member owner, viewer = { .pid = start_task(&fd, 1) };

	join_tree(&owner, make_process(), 1);
	for (unsigned int objects = 2; objects--;) {
		kernel.gem_objects = objects;
		start_dump();
		name_task(owner.pid);
		name_task(viewer.pid);
		assert_int_equal(dump_file(owner.fds[0], 5) == 0, !objects);
		assert_int_equal(owner.process->paused, 1);
		end_dump(objects ? -1 : 0);
		assert_int_equal(unit_exists("amdgpu-kfd-5.img"), !objects);
		assert_int_equal(unit_count_lines("kfd 5: ") == 0, objects);
	}
	assert_logged("Error (amdgpu_plugin): process ", ": descriptor ",
		      ": renderD128 has GEM objects");
	leave_tree(&owner);
	leave_tree(&viewer);
	(void)close(fd);
}

TEST(render_nodes_of_other_drivers_are_left_to_others)
{
	static const char *const drivers[] = {
		"i915", "radeon", "nouveau", "amdgpu2", "amdgp", ""
	};
	_cleanup_close_ int fd = open_render(128, O_RDWR);

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		kernel.driver = drivers[i];
		start_dump();
		assert_int_equal(dump_file(fd, 7), -ENOTSUP);
		assert_int_equal(show_vma(fd), -ENOTSUP);
		end_dump(0);
	}
	assert_int_equal(unit_criu()->notes, 0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

TEST(mappings_of_our_devices_are_ours)
{
	int files[] = { open_render(128, O_RDWR), open_render(128, O_PATH),
			open_device("kfd-0", O_RDWR) };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		start_dump();
		assert_int_equal(show_vma(files[i]), 0);
		end_dump(0);
		/* CRIU does not see what the GPU writes between two pre-dumps. */
		assert_int_equal(CR_PLUGIN_DESC.init(STAGE_PRE_DUMP), 0);
		assert_fails(show_vma(files[i]));
		CR_PLUGIN_DESC.exit(STAGE_PRE_DUMP, -1);
		(void)close(files[i]);
	}
	assert_int_equal(unit_criu()->notes, ARRAY_SIZE(files));
}

/* A file or mapping that tells the plugin that the dump has an AMD GPU. */
static int show_kfd(int kfd, int render)
{
	(void)render;
	return dump_file(kfd, 5);
}

static int show_render(int kfd, int render)
{
	(void)kfd;
	return dump_file(render, 6);
}

static int show_mapping(int kfd, int render)
{
	(void)kfd;
	return show_vma(render);
}

static int (*const shows[])(int kfd, int render) = { show_kfd, show_render, show_mapping };

/* This host has as few hooks as CRIU 3.17.1, which ends the plugin before such a dump ends. */
TEST(a_lazy_dump_is_refused_before_anything_is_paused)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int fd = -1;

	criu_stub.is_lazy = true;
	assert_dump_fails(process, "it is lazy");
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);

	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	fd = open_kfd_of(process);
	start_dump();
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	assert_int_equal(dump_file(fd, 5), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "it is lazy", "AMDGPU_FORCE");
	end_dump(0);
}

/* CRIU makes the link before it loads the plugin. A GPU's writes to a process's memory make no
 * page dirty, so CRIU would take such pages from the images of the dump before. */
TEST(an_incremental_dump_is_refused_before_anything_is_paused)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int kfd = open_kfd_of(process), render = open_render(128, O_RDWR);

	assert_int_equal(symlink("../1", unit_path("parent")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(shows); i++) {
		unit_forget_lines();
		start_dump();
		assert_fails(shows[i](kfd, render));
		assert_logged("Error (amdgpu_plugin): ", "incremental", "--prev-images-dir",
			      "AMDGPU_FORCE=1");
		assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
		end_dump(-1);
	}
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	unit_forget_lines();
	start_dump();
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(shows); i++)
		assert_int_equal(shows[i](kfd, render), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "incremental", "AMDGPU_FORCE");
	assert_int_equal(unit_count_lines("incremental"), 1);
	end_dump(0);
}

/* The address in the job. */
static uint64_t mapped_at;

/* Makes a job that has mapped a page of a render node at @offset. */
static struct fake_process *make_process_that_maps(unsigned int render_minor, off_t offset)
{
	int zero = openat(AT_FDCWD, "/dev/zero", O_RDWR | O_CLOEXEC);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, zero, offset);
	struct fake_process *process;

	assert_true(page != MAP_FAILED);
	mapped_at = (uintptr_t)page;
	(void)close(zero);
	mapped_minor = render_minor;
	(void)kill(tracee, SIGKILL);
	(void)waitpid(tracee, NULL, 0);
	assert_int_equal(start_tracee(), 0);
	(void)munmap(page, 4096);
	forget_processes();
	process = make_process();
	add_bo(process, GPU_B, KFD_BO_GTT, 0x800000, 0x3000, 0x10000000);
	return process;
}

/* CRIU shows no file of it, so nothing would be saved. */
TEST(who_maps_a_gpu_without_having_kfd_fails_the_dump)
{
	static const struct {
		unsigned int render_minor;
		bool has_kfd;
		bool fails;
	} cases[] = {
		{ 129, false, true },
		{ 129, true, false },
		/* Not a GPU of AMD. */
		{ 200, false, false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_close_ int render = open_render(128, O_RDWR);
		int kfd = cases[i].has_kfd ? open_device("kfd-0", O_RDWR) : -1;

		print_message("case %zu\n", i);
		(void)make_process_that_maps(cases[i].render_minor, 0x10000000);
		start_dump();
		if (cases[i].fails) {
			assert_fails(show_vma(render));
			assert_logged("Error (amdgpu_plugin): ", "/dev/kfd open");
		} else {
			assert_int_equal(show_vma(render), 0);
		}
		end_dump(cases[i].fails ? -1 : 0);
		if (kfd >= 0)
			(void)close(kfd);
	}
}

static void assert_dumps(struct fake_process *process)
{
	_cleanup_kfd_ CriuKfd *kfd = NULL;

	dump_process(process);
	assert_int_equal(image_read_kfd(5, &kfd), 0);
	assert_int_equal(kfd->num_of_mappings, 1);
}

/* Mappings that the kernel cannot make again. */
TEST(mappings_that_could_not_come_back_fail_the_dump)
{
	static const struct {
		unsigned int render_minor;
		off_t offset;
		const char *words;
	} cases[] = {
		{ 129, 0x10001000, "BO 0x800000, begins inside" },
		{ 129, 0x10003000, "maps no BO" },
		{ 129, 0xffff000, "maps no BO" },
		{ 128, 0x10000000, "maps no BO" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		assert_dump_fails(make_process_that_maps(cases[i].render_minor, cases[i].offset),
				  cases[i].words);
	}
}

/* Both BOs fit the mapping. A restore would choose by the address. */
TEST(a_mapping_where_another_gpu_has_a_bo_fails_the_dump)
{
	struct fake_process *process = make_process_that_maps(129, 0x10000000);

	add_bo(process, 0xbeef, KFD_BO_VRAM, mapped_at, 0x1000, 0x20000000);
	assert_dumps(process);
	process = make_process_that_maps(129, 0x10000000);
	add_bo(process, 0xbeef, KFD_BO_VRAM, mapped_at, 0x1000, 0x10000000);
	assert_dump_fails(process, "another GPU");
	/* At the address of its own GPU the mapping is not ambiguous. */
	process = make_process_that_maps(129, 0x10000000);
	process->bos[process->num_bos - 1].addr = mapped_at;
	add_bo(process, 0xbeef, KFD_BO_VRAM, mapped_at + 0x100000, 0x1000, 0x10000000);
	assert_dumps(process);
}

TEST(a_dmabuf_of_no_bo_fails_the_dump)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int fd = open_device("dmabuf-1", O_RDWR), kfd = -1;

	kfd = open_kfd_of(process);
	for (unsigned int kfd_first = 0; kfd_first < 2; kfd_first++) {
		unit_forget_lines();
		start_dump();
		if (kfd_first)
			assert_int_equal(dump_file(kfd, 5), 0);
		assert_fails(dump_file(fd, 7));
		assert_logged("Error (amdgpu_plugin): file 7", "not that of a BO");
		end_dump(-1);
		assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
		assert_false(unit_exists("amdgpu-kfd-5.img"));
	}
	/* On a machine without an AMD GPU the dma-buf belongs to another driver. */
	kernel.machine = NULL;
	unit_forget_lines();
	start_dump();
	assert_int_equal(dump_file(fd, 7), -ENOTSUP);
	end_dump(0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

TEST(without_a_driver_nothing_is_ours)
{
	_cleanup_close_ int fd = open_device("kfd-0", O_RDWR);

	kernel.machine = NULL;
	start_dump();
	assert_int_equal(dump_file(fd, 7), -ENOTSUP);
	end_dump(0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}
