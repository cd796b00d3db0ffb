// SPDX-License-Identifier: GPL-2.0-only
/* Which numbers of references to a dma-buf the holders that the dump knows can explain. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "sharing/dmabuf_holders.h"
#include "tests.h"

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
		assert_int_equal(dmabuf_holders_are_known(&cases[i].holders), cases[i].known);
	}
}

/* Linux 6.1 makes a dma-buf at each export, and imports do not hold it. */
PLAIN_TEST(references_count_all_holders_or_not)
{
	const struct dmabuf_holders complete = { 2, 1, 1, 0, 0, 0 }, lacking = { 3, 2, 2, 0, 0, 0 };

	assert_true(dmabuf_holders_are_counted(&complete));
	assert_false(dmabuf_holders_are_counted(&lacking));
}

/* The fdinfo of an eventfd has a field whose name ends like that of dma-bufs. */
PLAIN_TEST(files_that_are_no_dmabufs_have_no_count)
{
	int fds[] = { memfd_create("file", MFD_CLOEXEC), eventfd(7, EFD_CLOEXEC) };
	_cleanup_close_ int fdinfo = dmabuf_holders_open_fdinfo();
	uint64_t count = 3;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_true(fds[i] >= 0);
		assert_int_equal(dmabuf_holders_count(fdinfo, fds[i], &count), 0);
		assert_int_equal(count, 0);
		(void)close(fds[i]);
	}
	assert_int_equal(dmabuf_holders_count(fdinfo, fds[0], &count), -ENOENT);
}
