// SPDX-License-Identifier: GPL-2.0-only
/* The device numbers of render nodes, and how their GPU maps a GEM handle. test_restore_render.c
 * opens render nodes. */
#include "host.h"

#include <amdgpu_drm.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "kernel/render_node.h"

UNIT_TEST(render_nodes_are_recognised_by_their_numbers)
{
	static const struct {
		unsigned int major;
		unsigned int minor;
		bool is_render_node;
	} cases[] = {
		{ 226, 128, true },
		{ 226, 191, true },
		/* On machines with more than 64 devices. */
		{ 226, 256, true },
		{ 226, 0xfffff, true },
		/* A primary node, a control node, and other devices. */
		{ 226, 0, false },
		{ 226, 127, false },
		{ 225, 128, false },
		{ 1, 3, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t number = 42;

		print_message("case %u:%u\n", cases[i].major, cases[i].minor);
		assert_int_equal(
			render_node_is_device(makedev(cases[i].major, cases[i].minor), &number),
			cases[i].is_render_node);
		assert_int_equal(number, cases[i].is_render_node ? cases[i].minor : 42);
	}
}

static struct drm_amdgpu_gem_va mapped;

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	(void)fd;
	assert_true(request == DRM_IOCTL_AMDGPU_GEM_VA);
	va_start(arguments, request);
	mapped = *va_arg(arguments, struct drm_amdgpu_gem_va *);
	va_end(arguments);
	return 0;
}

/* The page tables must be complete when the queues start. */
UNIT_TEST(no_mapping_waits_for_a_submission)
{
	const struct render_mapping mapping = {
		.flags = AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_MTYPE_UC,
	};

	assert_int_equal(render_node_gem_map(-1, 1, &mapping), 0);
	assert_int_equal(mapped.flags, AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_MTYPE_UC);
}
