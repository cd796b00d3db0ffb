// SPDX-License-Identifier: GPL-2.0-only
/* Tests through raw ioctls that Linux 6.5 makes a dma-buf at each CHECKPOINT and RESTORE, and which
 * object each of them is. This program plays two KFD processes. It needs a machine whose first two
 * GPUs are partitions of one device. */
#include <errno.h>
#include <stdio.h>

#include "sharing.h"

static int begin_old(void **state)
{
	sim_write("kernel", "6.5");
	return begin(state);
}

static int end_old(void **state)
{
	sim_write("kernel", "default");
	return end(state);
}

/* kfd_chardev.c, criu_get_prime_handle(): amdgpu_gem_prime_export() of the object (6.1). */
static void each_checkpoint_makes_a_dmabuf(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM);
	int fd = export(&pair.owner, &bo), again = export(&pair.owner, &bo);
	struct kfd_criu_bo_bucket one = saved(&pair.owner, &bo), other = saved(&pair.owner, &bo);

	(void)state;
	/* the process's entry keeps its own */
	assert_int_equal(inode(fd), inode(again));
	assert_int_not_equal(inode((int)one.dmabuf_fd), inode(fd));
	assert_int_not_equal(inode((int)other.dmabuf_fd), inode(fd));
	assert_int_not_equal(inode((int)one.dmabuf_fd), inode((int)other.dmabuf_fd));
	assert_int_equal(one.offset, other.offset);
	(void)close((int)one.dmabuf_fd);
	(void)close((int)other.dmabuf_fd);
	(void)close(again);
	(void)close(fd);
	release(&pair.owner, &bo);
	close_pair(&pair);
}

/* amdgpu_dma_buf.c, amdgpu_gem_prime_import() (6.1): a file of the same PCI device gets the object
 * itself, with its mmap offset, also from another partition. */
static void a_file_of_the_device_tells_the_offset_of_any_dmabuf(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo before = alloc(&pair.owner, FIRST, RAW_VRAM);
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM);
	int fd = export(&pair.owner, &bo);
	struct kfd_criu_bo_bucket record = saved(&pair.owner, &bo);
	const int *render = pair.importer.render, saved_fd = (int)record.dmabuf_fd;

	(void)state;
	assert_int_equal(mmap_offset(render[FIRST], prime_import(render[FIRST], fd)),
			 record.offset);
	assert_int_equal(mmap_offset(render[PARTITION], prime_import(render[PARTITION], saved_fd)),
			 record.offset);
	assert_int_not_equal(mmap_offset(render[OTHER], prime_import(render[OTHER], fd)),
			     record.offset);
	(void)close(saved_fd);
	(void)close(fd);
	release(&pair.owner, &before);
	release(&pair.owner, &bo);
	close_pair(&pair);
}

/* dma-buf.c, dma_buf_llseek(): only the size can be asked for. */
static void a_dmabuf_has_a_size_and_no_position(void **state)
{
	struct pair pair = open_pair();
	struct raw_bo bo = alloc(&pair.owner, FIRST, RAW_VRAM);
	int fd = export(&pair.owner, &bo);
	const ino_t before = inode(fd);

	(void)state;
	assert_int_equal(lseek(fd, 0, SEEK_END), SIZE);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(lseek(fd, 1, SEEK_SET), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(inode(fd), before);
	(void)close(fd);
	release(&pair.owner, &bo);
	close_pair(&pair);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_old, end_old)
	const struct CMUnitTest tests[] = {
		TEST(each_checkpoint_makes_a_dmabuf),
		TEST(a_file_of_the_device_tells_the_offset_of_any_dmabuf),
		TEST(a_dmabuf_has_a_size_and_no_position),
	};

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
