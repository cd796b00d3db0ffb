// SPDX-License-Identifier: GPL-2.0-only
/* Which BO an open dma-buf is, where its inode does not tell, and which numbers of references to a
 * dma-buf the holders that the dump knows can explain. The dma-bufs are files in memory of this
 * process, and each render node tells an offset. */
#include "host.h"

#include <sys/eventfd.h>
#include <sys/mman.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"
#include "kernel/render_node.h"
#include "sharing/dmabufs.h"
#include "sharing/object_rules.h"
#include "sharing/shared_bos.h"

#define SIZE 0x3000u

int __wrap_kfd_is_dmabuf(int fd);
int __wrap_render_node_open(uint32_t minor, int lowest_fd, int *ret_fd);
int __wrap_render_node_gem_read(int fd, int dmabuf_fd, struct render_bo *ret_bo);

/* Two partitions of a PCI device, and another device. */
static struct topology_node nodes[] = {
	{ .gpu_id = 1,
	  .drm_render_minor = 128,
	  .location_id = 0x100,
	  .gfx_target_version = TOPOLOGY_GFX940,
	  .vendor_id = 1 },
	{ .gpu_id = 2,
	  .drm_render_minor = 129,
	  .location_id = 0x101,
	  .gfx_target_version = TOPOLOGY_GFX940,
	  .vendor_id = 1 },
	{ .gpu_id = 3, .drm_render_minor = 130, .location_id = 0x200, .vendor_id = 1 },
};
static const struct topology topology = { nodes, 3 };

static struct {
	/* What the render nodes tell. */
	uint64_t offsets[3];
	int errors[3];
	unsigned int imports[3];
	unsigned int asked;
	uint32_t minor;
	int is_dmabuf;
} test;

static struct shared_bo list[4];
static struct dmabuf_file files[3];
static struct shared_bos shared;
static int dmabuf;

int __wrap_kfd_is_dmabuf(int fd)
{
	(void)fd;
	test.asked++;
	return test.is_dmabuf;
}

int __wrap_render_node_open(uint32_t minor, int lowest_fd, int *ret_fd)
{
	test.minor = minor - 128;
	*ret_fd = fcntl(dmabuf, F_DUPFD_CLOEXEC, lowest_fd);
	return 0;
}

int __wrap_render_node_gem_read(int fd, int dmabuf_fd, struct render_bo *ret_bo)
{
	(void)fd;
	(void)dmabuf_fd;
	test.imports[test.minor]++;
	ret_bo->mmap_offset = test.offsets[test.minor];
	return test.errors[test.minor];
}

static struct stat stat_of(int fd)
{
	struct stat stat;

	assert_int_equal(fstat(fd, &stat), 0);
	return stat;
}

static void add_bo(const struct topology_node *gpu, uint64_t offset, uint64_t size, uint64_t inode)
{
	list[shared.count++] = (struct shared_bo){
		.device = topology_pci_device(gpu),
		.offset = offset,
		.size = size,
		.inode = inode,
		.file_system = (uint64_t)stat_of(dmabuf).st_dev,
		.object = (uint32_t)shared.count + 1,
	};
}

/* A descriptor of the dma-buf. */
static void add_file(void)
{
	const struct stat stat = stat_of(dmabuf);

	files[shared.files.count++] = (struct dmabuf_file){
		.device = stat.st_dev, .inode = stat.st_ino, .pid = getpid(), .number = dmabuf
	};
}

static int begin(void **state)
{
	if (unit_begin(state) < 0)
		return -1;
	memset(&test, 0, sizeof(test));
	test.is_dmabuf = 1;
	dmabuf = memfd_create("dmabuf", MFD_CLOEXEC);
	shared = (struct shared_bos){ .list = list, .files.list = files };
	add_bo(&nodes[2], 0x10000, SIZE, 1);
	add_bo(&nodes[1], 0x10000, SIZE, 2);
	add_bo(&nodes[0], 0x20000, SIZE, 3);
	add_file();
	return ftruncate(dmabuf, SIZE);
}

static int end(void **state)
{
	(void)close(dmabuf);
	return unit_end(state);
}

/* @expected: the index of the BO, or -1. */
static void assert_found(int expected)
{
	const struct stat stat = stat_of(dmabuf);
	const struct bo_name name = dmabufs_name(&shared.files, &stat);

	for (int i = 0; i < (int)shared.count; i++)
		assert_int_equal(list[i].is_open, i == expected);
	assert_int_equal(object_rules_name_objects(&shared), 0);
	assert_ptr_equal(object_rules_find(&shared, &name), expected < 0 ? NULL : &list[expected]);
	free(shared.objects);
}

/* As for a new list of descriptors. */
static int find_again(void)
{
	for (size_t i = 0; i < shared.files.count; i++)
		files[i].is_dmabuf = files[i].has_bo = false;
	return dmabufs_find_bos(&shared, &topology);
}

#define TEST(name) TEST_WITH(name, begin, end)

TEST(the_inode_tells_without_an_import)
{
	list[1].inode = (uint64_t)stat_of(dmabuf).st_ino;
	assert_int_equal(find_again(), 0);
	assert_found(1);
	assert_int_equal(test.asked, 0);
}

/* A file of the first partition knows the BO of the second one. The BO with the same offset on the
 * other device is another one. */
TEST(the_offset_tells_on_the_device_of_the_bo_only)
{
	test.offsets[0] = 0x10000;
	test.offsets[2] = 0x70000;
	add_file();
	assert_int_equal(find_again(), 0);
	assert_found(1);
	assert_int_equal(test.imports[0], 1);
	assert_int_equal(test.imports[1], 0);
	assert_true(files[1].has_bo);
}

/* An import for another device gets an offset that no BO has there. */
TEST(the_other_device_is_tried_next)
{
	test.offsets[0] = 0x70000;
	test.offsets[2] = 0x10000;
	assert_int_equal(find_again(), 0);
	assert_found(0);
}

TEST(a_dmabuf_of_another_bo_or_driver_is_not_found)
{
	test.offsets[0] = test.offsets[2] = 0x70000;
	assert_int_equal(find_again(), 0);
	assert_found(-1);
	assert_int_equal(test.imports[0] + test.imports[2], 2);
	test.is_dmabuf = 0;
	assert_int_equal(find_again(), 0);
	assert_found(-1);
}

TEST(only_gpus_with_a_bo_of_the_size_are_tried)
{
	list[0].size = 2 * SIZE;
	test.offsets[2] = 0x10000;
	assert_int_equal(find_again(), 0);
	assert_found(-1);
	assert_int_equal(test.imports[2], 0);
}

/* GEM_MMAP tells no offset of a BO that the CPU may not map. */
TEST(errors_of_the_kernel)
{
	assert_int_equal(find_again(), 0);
	assert_found(-1);
	assert_logged("amdgpu_plugin: process", "because the CPU may not map it");
	test.offsets[0] = 0x10000;
	test.errors[0] = -EINVAL;
	assert_int_equal(find_again(), 0);
	assert_found(-1);
	test.errors[0] = -ENOMEM;
	assert_int_equal(find_again(), -ENOMEM);
	test.is_dmabuf = -EACCES;
	assert_int_equal(find_again(), -EACCES);
	files[0].number = 65000;
	assert_int_equal(find_again(), 0);
}

/* The two others are the object and KFD's own file of the device. */
PLAIN_TEST(references_are_explained_or_not)
{
	static const struct {
		struct dmabuf_holders holders;
		bool known;
	} cases[] = {
		/* the kernel does not tell, or makes a dma-buf at each export */
		{ { 0, 1, 1, 0, 0, 0 }, true },
		{ { 1, 1, 1, 0, 0, 0 }, true },
		/* a BO that nothing else shares */
		{ { 4, 1, 1, 0, 0, 0 }, true },
		/* a process outside imports it */
		{ { 5, 1, 1, 0, 0, 0 }, false },
		{ { 6, 1, 1, 0, 0, 0 }, false },
		/* an import was freed, and then a process outside imports it */
		{ { 2, 1, 1, 0, 0, 0 }, true },
		{ { 3, 1, 1, 0, 0, 0 }, false },
		/* an owner and two importers, one of them scanned with two descriptors open */
		{ { 8, 3, 3, 0, 0, 0 }, true },
		{ { 9, 3, 3, 0, 0, 0 }, false },
		/* an import on another device has an attachment, an object and KFD's file there */
		{ { 9, 2, 2, 1, 0, 0 }, true },
		{ { 7, 2, 2, 1, 0, 0 }, true },
		{ { 10, 2, 2, 1, 0, 0 }, false },
		{ { 8, 2, 2, 1, 0, 0 }, false },
		/* GPUs that map it through PCIe may have attached it, or not */
		{ { 4, 1, 1, 0, 2, 0 }, true },
		{ { 5, 1, 1, 0, 2, 0 }, true },
		{ { 6, 1, 1, 0, 2, 0 }, true },
		{ { 7, 1, 1, 0, 2, 0 }, false },
		{ { UINT64_MAX, 1, 1, 0, 2, 0 }, false },
		/* a render file has a GEM handle, so the object holds it without KFD's file, too */
		{ { 5, 1, 1, 0, 0, 1 }, true },
		{ { 4, 1, 1, 0, 0, 1 }, true },
		{ { 6, 1, 1, 0, 0, 1 }, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		assert_int_equal(dmabufs_are_known(&cases[i].holders), cases[i].known);
	}
}

/* Linux 6.1 makes a dma-buf at each export, and imports do not hold it. */
PLAIN_TEST(references_count_all_holders_or_not)
{
	const struct dmabuf_holders complete = { 2, 1, 1, 0, 0, 0 }, lacking = { 3, 2, 2, 0, 0, 0 };

	assert_true(dmabufs_are_counted(&complete));
	assert_false(dmabufs_are_counted(&lacking));
}

/* The fdinfo of an eventfd has a field whose name ends like that of dma-bufs. */
PLAIN_TEST(files_that_are_no_dmabufs_have_no_count)
{
	int fds[] = { memfd_create("file", MFD_CLOEXEC), eventfd(7, EFD_CLOEXEC) };
	_cleanup_close_ int fdinfo = fd_open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY);
	uint64_t count = 3;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_true(fds[i] >= 0);
		assert_int_equal(dmabufs_count_references(fdinfo, fds[i], &count), 0);
		assert_int_equal(count, 0);
		(void)close(fds[i]);
	}
	assert_int_equal(dmabufs_count_references(fdinfo, fds[0], &count), -ENOENT);
}
