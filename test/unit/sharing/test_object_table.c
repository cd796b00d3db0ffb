// SPDX-License-Identifier: GPL-2.0-only
/* Which shared BO a handle names. */
#include "host.h"

#include "sharing/object_rules.h"
#include "sharing/object_table.h"
#include "sharing/shared_bos.h"

#define BO(p, dev, off, ino, obj)                                                                 \
	{                                                                                         \
		.process = (p), .device = (dev), .offset = (off), .inode = (ino), .object = (obj) \
	}

/* An owner and two importers, one of them on another device; the second object of an offset on
 * another device; a BO that nothing shares, and one that cannot be restored. */
static struct shared_bo list[] = {
	BO(0, 1, 0x1000, 11, 1), BO(1, 1, 0x1000, 11, 1), BO(2, 2, 0x7000, 11, 1),
	BO(2, 2, 0x1000, 12, 2), BO(3, 1, 0x2000, 13, 0), BO(3, 1, 0x3000, 14, 3),
};

static const struct {
	struct shared_handle handle;
	int index; /* -1: none */
} cases[] = {
	{ { .device = 1, .key = 0x1000 }, 0 },      { { .device = 2, .key = 0x1000 }, 3 },
	{ { .device = 2, .key = 0x7000 }, 2 },      { { .device = 1, .key = 0x7000 }, -1 },
	{ { .device = 1, .key = 0x1001 }, -1 },     { { .device = 1, .key = 0x2000 }, -1 },
	{ { .device = 1, .key = 0x3000 }, -1 },     { { .is_import = true, .key = 11 }, 0 },
	{ { .is_import = true, .key = 12 }, 3 },    { { .is_import = true, .key = 13 }, -1 },
	{ { .is_import = true, .key = 14 }, -1 },   { { .is_import = true, .key = 0x1000 }, -1 },
	{ { .device = 3, .key = UINT64_MAX }, -1 }, { { .is_import = true, .key = 0 }, -1 },
};

UNIT_TEST(a_handle_names_the_first_bo_of_its_object)
{
	struct shared_bos shared = { .list = list, .count = ARRAY_SIZE(list) };

	list[5].problem = "its sizes differ";
	assert_null(object_table_find(&shared, &cases[0].handle));
	assert_int_equal(object_table_make(&shared), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		assert_ptr_equal(object_table_find(&shared, &cases[i].handle),
				 cases[i].index < 0 ? NULL : &list[cases[i].index]);
	}
	object_table_done(&shared);
	assert_null(object_table_find(&shared, &cases[0].handle));
}
