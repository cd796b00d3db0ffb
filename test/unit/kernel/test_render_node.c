// SPDX-License-Identifier: GPL-2.0-only
/* The device numbers of render nodes. test_restore_render.c opens render nodes. */
#include "host.h"

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
