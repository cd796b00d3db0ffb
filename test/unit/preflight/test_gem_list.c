// SPDX-License-Identifier: GPL-2.0-only
/* The GEM handles of a process, which this process plays: what is listed, what is saved, and what
 * is refused. */
#include "gem_driver.h"

#include "amdgpu_plugin_topology.h"
#include "criu/host.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "preflight/bo_index.h"
#include "preflight/gem_list.h"
#include "preflight/preflight.h"
#include "priv_builder.h"

#define ROUND 0x3000u
#define ADDR  0x7000000ull
#define RW    (AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE)

/* A and B are partitions of one PCI device. */
enum { GPU_A = 0xaa, GPU_B = 0xbb, GPU_C = 0xcc };

static struct topology_node nodes[] = {
	{ .gpu_id = GPU_A,
	  .actual_gpu_id = GPU_A,
	  .drm_render_minor = 128,
	  .location_id = 0x100,
	  .gfx_target_version = TOPOLOGY_GFX940 },
	{ .gpu_id = GPU_B,
	  .actual_gpu_id = GPU_B,
	  .drm_render_minor = 129,
	  .location_id = 0x101,
	  .gfx_target_version = TOPOLOGY_GFX940 },
	{ .gpu_id = GPU_C, .actual_gpu_id = GPU_C, .drm_render_minor = 130, .location_id = 0x200 },
};
static const struct topology machine = { nodes, ARRAY_SIZE(nodes) };

/* BO 0 is object 0, on GPU A; BO 1 is object 1, on GPU C. KFD maps BO 0 on A. */
static struct {
	struct builder builder;
	struct kfd_bo_bucket bos[2];
	struct kfd_state state;
	struct options options;
	struct dump_session session;
	struct dumped_gpu gpus[2];
	struct dumped_process process;
} job;

static struct kfd_device_bucket devices[] = {
	{ .user_gpu_id = GPU_A, .actual_gpu_id = GPU_A },
	{ .user_gpu_id = GPU_C, .actual_gpu_id = GPU_C },
};

static void make_priv(void)
{
	struct builder *b = &job.builder;

	*b = (struct builder){ .priv = { .num_devices = 2, .num_bos = 2 } };
	set(add(b, 8), 0, 1);
	(void)add(b, 8 * 2);
	set(add(b, 272), 12, GPU_A);
	(void)add(b, 272);
}

static void make_state(void)
{
	static const uint32_t gpu_ids[] = { GPU_A, GPU_C };

	for (size_t i = 0; i < ARRAY_SIZE(job.bos); i++)
		job.bos[i] = (struct kfd_bo_bucket){
			.addr = ADDR * (i + 1),
			.size = ROUND,
			.offset = offsets[i],
			.gpu_id = gpu_ids[i],
			.alloc_flags = KFD_BO_VRAM,
			.dmabuf_fd = (uint32_t)driver.dmabufs[i],
		};
	job.state = (struct kfd_state){
		.devices = devices,
		.num_devices = 2,
		.bos = job.bos,
		.num_bos = 2,
		.priv_data = job.builder.bytes,
		.priv_data_size = job.builder.priv.size,
	};
}

static void make_subject(void)
{
	job.session.options = &job.options;
	job.gpus[0] = (struct dumped_gpu){ .render_minor = 128, .user_gpu_id = GPU_A };
	job.gpus[1] = (struct dumped_gpu){ .render_minor = 130, .user_gpu_id = GPU_C };
	job.session.topology = machine;
	job.process = (struct dumped_process){ .session = &job.session,
					       .id = 5,
					       .name = "kfd 5",
					       .gpus = job.gpus,
					       .num_gpus = 2,
					       .state = job.state,
					       .priv = kfd_priv_of_state(&job.state) };
	assert_int_equal(bo_index_init(&job.process), 0);
}

static int begin_job(void **state)
{
	if (unit_begin(state) < 0)
		return -1;
	memset(&driver, 0, sizeof(driver));
	driver.failing_syscall = -1;
	memset(&job, 0, sizeof(job));
	for (size_t i = 0; i < OBJECTS; i++)
		driver.dmabufs[i] = memfd_create("object", MFD_CLOEXEC);
	make_priv();
	make_state();
	make_subject();
	return 0;
}

static int end_job(void **state)
{
	gem_list_saved_done(&job.process.gem);
	gem_list_files_done(&job.process.gem_files);
	bo_index_done(&job.process.bo_index);
	for (size_t i = 0; i < driver.num_files; i++)
		(void)close(driver.files[i].fd);
	for (size_t i = 0; i < OBJECTS; i++)
		(void)close(driver.dmabufs[i]);
	return unit_end(state);
}

static int save(void)
{
	int ret;

	gem_list_saved_done(&job.process.gem);
	gem_list_files_done(&job.process.gem_files);
	ret = gem_list_read(getpid(), &machine, &job.process.gem_files);
	return ret < 0 ? ret : gem_list_save(&job.process);
}

static uint64_t inode_of(unsigned int object)
{
	struct stat stat;

	assert_int_equal(fstat(driver.dmabufs[object], &stat), 0);
	return stat.st_ino;
}

#define TEST(name) TEST_WITH(name, begin_job, end_job)

TEST(each_file_is_listed_once_with_its_handles)
{
	struct file *file = open_render(128);
	_cleanup_close_ int again = dup(file->fd);
	struct gem_files files;

	add_handle(file, 2, 1);
	add_handle(file, 5, 2)->is_import = true;
	add_handle(file, 6, 0)->is_private = true;
	(void)open_render(130);
	(void)open_render(200); /* of no GPU */
	assert_int_equal(gem_list_read(getpid(), &machine, &files), 0);
	assert_int_equal(files.count, 2);
	assert_ptr_equal(files.list[0].gpu, &nodes[0]);
	assert_ptr_equal(files.list[1].gpu, &nodes[2]);
	assert_true(files.list[0].fd >= HOST_LOWEST_FD);
	assert_int_equal(files.list[0].num_handles, 3);
	assert_int_equal(files.list[1].num_handles, 0);
	assert_int_equal(files.list[0].handles[0].handle, 2);
	assert_false(files.list[0].handles[0].is_import);
	assert_int_equal(files.list[0].handles[0].key, offsets[1]);
	assert_int_equal(files.list[0].handles[1].handle, 5);
	assert_true(files.list[0].handles[1].is_import);
	assert_int_equal(files.list[0].handles[1].key, inode_of(2));
	assert_int_equal(files.list[0].handles[2].key, 0);
	gem_list_files_done(&files);
}

TEST(what_the_kernel_does_not_show_is_left_out)
{
	static const struct {
		long failing_syscall;
		int error;
	} cases[] = {
		{ SYS_pidfd_open, ENOSYS },
		{ SYS_pidfd_getfd, EPERM },
		{ SYS_pidfd_getfd, EBADF },
	};

	add_handle(open_render(128), 1, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gem_files files;

		print_message("case %zu\n", i);
		driver.failing_syscall = cases[i].failing_syscall;
		driver.error = cases[i].error;
		assert_int_equal(gem_list_read(getpid(), &machine, &files), 0);
		assert_int_equal(files.count, 0);
		gem_list_files_done(&files);
	}
}

/* Before Linux 6.18. Behind 4096 free numbers, no more are tried. */
TEST(where_the_kernel_lists_no_handles_each_number_is_tried)
{
	static const uint32_t numbers[] = { 1, 4000, 8096, 12193 };
	struct file *file = open_render(128);
	struct gem_files files;

	driver.is_old = true;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		add_handle(file, numbers[i], 0);
	assert_int_equal(gem_list_read(getpid(), &machine, &files), 0);
	assert_int_equal(files.list[0].num_handles, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(files.list[0].handles[i].handle, numbers[i]);
	gem_list_files_done(&files);
	driver.failing = CREATE_INFO;
	driver.error = EACCES;
	assert_int_equal(gem_list_read(getpid(), &machine, &files), -EACCES);
}

TEST(each_error_of_a_list_comes_back)
{
	static const struct {
		enum call failing;
		long failing_syscall;
		int error;
	} cases[] = {
		{ LIST_HANDLES, -1, ENOMEM },       { GEM_MMAP, -1, EINVAL },
		{ GEM_MMAP, -1, ENOENT },           { HANDLE_TO_FD, -1, EMFILE },
		{ NO_CALL, SYS_pidfd_open, ESRCH }, { NO_CALL, SYS_pidfd_getfd, EMFILE },
		{ NO_CALL, SYS_kcmp, ENOSYS },
	};
	struct gem_files files;
	struct file *file = open_render(128);

	add_handle(file, 1, 0);
	add_handle(file, 2, 1)->is_import = true;
	(void)open_render(129);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		driver.failing = cases[i].failing;
		driver.failing_syscall = cases[i].failing_syscall;
		driver.error = cases[i].error;
		assert_int_equal(gem_list_read(getpid(), &machine, &files), -cases[i].error);
	}
	driver.failing_syscall = -1;
	driver.failing = NO_CALL;
	assert_int_equal(gem_list_read(INT32_MAX, &machine, &files), -ESRCH);
}

TEST(handles_are_saved_by_gpu_and_number)
{
	struct file *c = open_render(130), *a = open_render(128);

	add_handle(c, 1, 1);
	add_handle(c, 3, 0)->is_import = true;
	/* KFD maps the BO on C, too, but not the object that the handle names there */
	set(job.builder.bytes + 24, 16, GPU_C);
	add_mapping(&c->handles[1], ADDR, ROUND, 0, RW);
	add_handle(a, 4, 0);
	job.gpus[0] = (struct dumped_gpu){ .render_minor = 130, .user_gpu_id = GPU_C };
	job.gpus[1] = (struct dumped_gpu){ .render_minor = 128, .user_gpu_id = GPU_A };
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.count, 3);
	for (size_t i = 0; i < job.process.gem.count; i++) {
		static const struct gem_saved expected[] = {
			{ .gpu_id = GPU_A, .handle = 4, .bo = 0 },
			{ .gpu_id = GPU_C, .handle = 1, .bo = 1 },
			{ .gpu_id = GPU_C, .handle = 3, .bo = 0, .num_mappings = 1 },
		};

		assert_int_equal(job.process.gem.list[i].gpu_id, expected[i].gpu_id);
		assert_int_equal(job.process.gem.list[i].handle, expected[i].handle);
		assert_int_equal(job.process.gem.list[i].bo, expected[i].bo);
		assert_int_equal(job.process.gem.list[i].mmap_offset, offsets[expected[i].bo]);
		assert_int_equal(job.process.gem.list[i].num_mappings, expected[i].num_mappings);
	}
}

/* Before Linux 6.18, a handle's mappings do not show. ROCr maps no BO at which it notes metadata.
 */
TEST(where_the_kernel_lists_no_mappings_only_bos_with_metadata_are_saved)
{
	static const struct {
		unsigned int object;
		const char *metadata;
		int result;
	} cases[] = {
		{ 0, "mark", 0 },
		{ 0, "", -EOPNOTSUPP },
		/* no BO of the process */
		{ 2, "mark", -EOPNOTSUPP },
	};
	struct file *file = open_render(128);

	driver.is_old = true;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		file->num_handles = 0;
		add_metadata(add_handle(file, 3, cases[i].object), cases[i].metadata);
		assert_int_equal(save(), cases[i].result);
		if (cases[i].result)
			assert_logged("Error (amdgpu_plugin): ",
				      "renderD128, GEM handle 3, which the program may have"
				      " mapped, has GEM objects");
		else
			assert_int_equal(job.process.gem.list[0].bo, 0);
	}
}

/* RESTORE makes those of KFD. */
TEST(only_mappings_of_gem_va_are_saved)
{
	struct file *a = open_render(128);
	struct handle *handle = add_handle(a, 1, 0);

	add_mapping(handle, ADDR, ROUND, 0, RW);
	add_mapping(handle, ADDR + 0x100000, ROUND, 0, RW);
	add_mapping(handle, ADDR, 0x1000, 0, RW);
	add_mapping(handle, ADDR, ROUND, 0x1000, RW);
	/* the address of another object */
	add_mapping(handle, 2 * ADDR, ROUND, 0, RW);
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.list[0].num_mappings, 4);
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(&job.process.gem.list[0].mappings[i], &handle->mappings[i + 1],
				    sizeof(*handle->mappings));
	/* KFD maps the BO on another GPU only */
	set(job.builder.bytes + 24, 12, GPU_C);
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.list[0].num_mappings, 5);
	/* without a record that can be read, KFD is taken to map the BO */
	job.process.priv.layout.is_known = false;
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.list[0].num_mappings, 4);
}

/* shared_bos.c finds them in other processes. */
TEST(objects_that_are_no_bo_of_the_process_are_named)
{
	static const struct handle handles[] = {
		/* begins inside a BO */
		{ .number = 3, .object = 2 },
		{ .number = 4, .object = 2, .is_import = true },
		/* the object of another device has this offset */
		{ .number = 5, .object = 1 },
	};
	struct file *file = open_render(128);

	for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
		struct handle *handle = add_handle(file, handles[i].number, handles[i].object);

		handle->is_import = handles[i].is_import;
		/* KFD has no BO, so the mapping is none of KFD */
		add_mapping(handle, ADDR, ROUND, 0, RW);
	}
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.count, ARRAY_SIZE(handles));
	for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
		const struct gem_saved *saved = &job.process.gem.list[i];

		assert_int_equal(saved->handle, handles[i].number);
		assert_int_equal(saved->bo, IMAGE_NO_BO);
		assert_int_equal(saved->is_import, handles[i].is_import);
		assert_int_equal(saved->key,
				 saved->is_import ? inode_of(2) : offsets[handles[i].object]);
		assert_int_equal(saved->num_mappings, 1);
	}
}

TEST(handles_that_no_restore_could_make_are_refused)
{
	static const struct {
		struct handle handle;
		const char *words;
	} cases[] = {
		{ { .number = 3, .is_private = true }, "renderD128, GEM handle 3," },
		{ { .number = IMAGE_HANDLE_MAX(0) + 1 }, "GEM handle 16385," },
		{ { .number = 4,
		    .mappings = { { ADDR, ROUND, 0, AMDGPU_VM_PAGE_PRT } },
		    .num_mappings = 1 },
		  "GEM handle 4 with a mapping of flags 0x10 at 0x7000000," },
	};
	struct file *file = open_render(128);

	file->num_handles = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		file->handles[0] = cases[i].handle;
		for (unsigned int forced = 0; forced < 2; forced++) {
			job.options.force = forced;
			unit_forget_lines();
			assert_int_equal(save(), -EOPNOTSUPP);
			assert_logged("Error (amdgpu_plugin): ", "kfd 5: ", cases[i].words,
				      "have the process free them");
		}
	}
	file->handles[0] = (struct handle){ .number = IMAGE_HANDLE_MAX(0) };
	assert_int_equal(save(), 0);
	/* with another one below */
	file->handles[0].number = 1;
	add_handle(file, IMAGE_HANDLE_MAX(1), 0);
	assert_int_equal(save(), 0);
}

/* Handles in other files than the compute file are not those of the virtual memory API. */
TEST(only_the_compute_file_has_handles_to_save)
{
	static const struct {
		bool has_bo;
		uint64_t bo_offset;
		/* of the first and the second file of the GPU */
		uint64_t mappable[2];
		size_t saved;
		uint32_t handle;
	} cases[] = {
		{ true, 0x900000, { 0, 0 }, 0, 0 },
		{ true, 0x300000, { 0x300000, 0 }, 1, 1 },
		{ true, 0x300000, { 0, 0x300000 }, 1, 2 },
		/* a file that has a handle of the BO can map it in any case */
		{ true, offsets[0], { offsets[0], offsets[0] }, 0, 0 },
		{ false, 0, { 0, 0 }, 0, 0 },
	};
	struct file *one = open_render(128), *two = open_render(128);

	add_handle(one, 1, 0);
	add_handle(two, 2, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		job.gpus[0].has_bo = cases[i].has_bo;
		job.gpus[0].bo_offset = cases[i].bo_offset;
		one->mappable = cases[i].mappable[0];
		two->mappable = cases[i].mappable[1];
		assert_int_equal(save(), 0);
		assert_int_equal(job.process.gem.count, cases[i].saved);
		assert_int_equal(job.process.gem.count ? job.process.gem.list[0].handle : 0,
				 cases[i].handle);
	}
	/* a file of another GPU, and one without handles, are none */
	two->minor = 130;
	two->handles[0].object = 1;
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.count, 2);
	two->minor = 128;
	two->num_handles = 0;
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.count, 1);
}

/* Objects 0 and 1 are BOs of the process, object 2 is that of another process. */
TEST(objects_without_a_bo_are_found_by_gpu_and_offset)
{
	static const struct {
		uint32_t gpu_id;
		uint64_t offset;
		bool found;
	} cases[] = {
		{ GPU_A, 0x101000, true },  { GPU_C, 0x101000, false }, { GPU_A, 0x100000, false },
		{ GPU_A, 0x200000, false }, { GPU_A, 0x101001, false },
	};
	struct file *one = open_render(128), *other = open_render(130);

	assert_int_equal(save(), 0);
	assert_false(gem_list_has_foreign(&job.process.gem, GPU_A, 0x101000));
	add_handle(one, 1, 0);
	add_handle(one, 2, 2);
	add_handle(other, 1, 1);
	/* the object of another PCI device has another offset in each file */
	add_handle(other, 2, 2)->is_import = true;
	assert_int_equal(save(), 0);
	assert_int_equal(job.process.gem.count, 4);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		assert_int_equal(
			gem_list_has_foreign(&job.process.gem, cases[i].gpu_id, cases[i].offset),
			cases[i].found);
	}
}

TEST(calls_that_fail_for_a_handle_are_named)
{
	add_mapping(add_handle(open_render(128), 7, 0), 2 * ADDR, ROUND, 0, RW);
	driver.error = EFAULT;
	driver.failing = MAPPING_INFO;
	assert_int_equal(save(), -EFAULT);
	assert_logged("Error (amdgpu_plugin): ",
		      "kfd 5: renderD128: cannot list the mappings of GEM handle 7");
	driver.failing = METADATA;
	unit_forget_lines();
	assert_int_equal(save(), -EFAULT);
	assert_logged("Error (amdgpu_plugin): ",
		      "kfd 5: renderD128: cannot read the metadata of GEM handle 7");
	/* the list of handles has asked for the offset first */
	driver.failing = GEM_MMAP;
	driver.good = 1;
	unit_forget_lines();
	assert_int_equal(save(), -EFAULT);
	assert_logged("Error (amdgpu_plugin): ", "of GEM handle 7");
}
