// SPDX-License-Identifier: GPL-2.0-only
/* The list of the memory that GPUs use. Native runs lose some of it. */
#include "host.h"

#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "memory/restore_shared.h"
#include "memory/user_memory.h"

#define BO_RECORD 272

/* Private data with @count userptr BOs of a page each, and a gap after every third. */
static struct kfd_priv make_many(uint32_t count, struct kfd_bo_bucket *bos)
{
	struct kfd_priv priv = {
		.bytes = calloc(1, 16 + (size_t)BO_RECORD * count),
		.size = 16 + (uint64_t)BO_RECORD * count,
		.num_devices = 1,
		.num_bos = count,
	};

	assert_non_null(priv.bytes);
	((uint8_t *)priv.bytes)[0] = 1;
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t address = (1ULL << 32) + (i + i / 3) * 4096ULL;
		uint8_t *record = (uint8_t *)priv.bytes + 16 + (size_t)BO_RECORD * i;

		memcpy(record, &address, sizeof(address));
		record[8] = 1;
		bos[i] = (struct kfd_bo_bucket){ .size = 4096, .alloc_flags = KFD_BO_USERPTR };
	}
	priv.layout = kfd_priv_parse(&priv);
	return priv;
}

static uint32_t note(struct restore_shared *shared, uint32_t count)
{
	struct kfd_bo_bucket *bos = calloc(count, sizeof(*bos));
	const struct kfd_priv priv = make_many(count, bos);
	const struct kfd_state state = { .bos = bos, .num_bos = count };
	struct restore_session session = { .shared = shared };
	uint32_t noted = 0;

	session.task.vpid = 42;
	assert_int_equal(user_memory_note(&session, &priv, &state), 0);
	while (noted < shared->num_ranges && noted < RESTORE_SHARED_RANGES)
		assert_int_equal(shared->ranges[noted++].vpid, 42);
	free((void *)priv.bytes);
	free(bos);
	return noted;
}

/* The table has room for 1,048,576 ranges of all tasks. */
UNIT_TEST(neighbours_are_one_range)
{
	struct restore_shared *shared;

	assert_int_equal(restore_shared_new(&shared), 0);
	assert_int_equal(note(shared, 1), 1);
	restore_shared_free(shared);
	assert_int_equal(restore_shared_new(&shared), 0);
	assert_int_equal(note(shared, 1200000), 400000);
	assert_int_equal(unit_count_lines("Warn"), 0);
	/* Without neighbours, a check that lacks some of the memory is better than no restore. */
	for (uint32_t i = 400000; i < 1 << 20; i++)
		assert_int_equal(
			restore_shared_add_range(shared, 42, (struct proc_range){ 0, 4096 }), 0);
	assert_int_equal(note(shared, 3), 1 << 20);
	assert_int_equal(unit_count_lines("cannot check all memory that its GPUs use"), 1);
	restore_shared_free(shared);
}
