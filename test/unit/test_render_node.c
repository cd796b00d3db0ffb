// SPDX-License-Identifier: GPL-2.0-only
/* Which device numbers are render nodes'. What a name may lead to is tried
 * where nodes are opened. */
#include "host.h"

#include <sys/sysmacros.h>

#include "amdgpu_plugin_util.h"
#include "kernel/render_node.h"

static void numbers_tell_render_nodes(void **state)
{
	static const struct {
		unsigned int major;
		unsigned int minor;
		bool is_one;
	} cases[] = {
		{ 226, 128, true },
		{ 226, 191, true },
		/* In machines of more than 64 devices. */
		{ 226, 256, true },
		{ 226, 0xfffff, true },
		/* A primary node, a control node, and somebody else's. */
		{ 226, 0, false },
		{ 226, 127, false },
		{ 225, 128, false },
		{ 1, 3, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t number = 42;

		print_message("case %u:%u\n", cases[i].major, cases[i].minor);
		assert_int_equal(
			render_node_is_device(makedev(cases[i].major, cases[i].minor), &number),
			cases[i].is_one);
		assert_int_equal(number, cases[i].is_one ? cases[i].minor : 42);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { UNIT_TEST(numbers_tell_render_nodes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
