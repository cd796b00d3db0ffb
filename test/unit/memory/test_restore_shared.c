// SPDX-License-Identifier: GPL-2.0-only
/* The table of shared objects: tasks publish, find and await them, and learn that one has failed.
 */
#include "host.h"

#include <sys/wait.h>

#include "image/image.h"
#include "memory/restore_shared.h"

#define OWNER 200

static struct restore_shared *shared;

static int begin(void **state)
{
	return unit_begin(state) || restore_shared_new(&shared) ? -1 : 0;
}

static int end(void **state)
{
	restore_shared_free(shared);
	return unit_end(state);
}

TEST_WITH(an_object_is_published_once, begin, end)
{
	const struct object object = { .store_id = 7, .mmap_offset = 0x5000 };
	struct object found = { 0 };

	assert_int_equal(restore_shared_find(shared, 3, &found), -ENOENT);
	assert_int_equal(restore_shared_publish(shared, 3, &object), 0);
	assert_int_equal(restore_shared_publish(shared, 3, &object), -EEXIST);
	assert_int_equal(restore_shared_find(shared, 3, &found), 0);
	assert_memory_equal(&found, &object, sizeof(object));
	assert_int_equal(restore_shared_find(shared, 2, &found), -ENOENT);
	assert_int_equal(restore_shared_find(shared, 4, &found), -ENOENT);
}

TEST_WITH(numbers_out_of_range_are_no_objects, begin, end)
{
	const struct object object = { 0 };
	struct object found;

	assert_int_equal(restore_shared_publish(shared, 0, &object), -EINVAL);
	assert_int_equal(restore_shared_publish(shared, IMAGE_OBJECTS_MAX + 1, &object), -EINVAL);
	assert_int_equal(restore_shared_find(shared, 0, &found), -ENOENT);
	assert_int_equal(restore_shared_find(shared, IMAGE_OBJECTS_MAX + 1, &found), -ENOENT);
	assert_int_equal(restore_shared_publish(shared, IMAGE_OBJECTS_MAX, &object), 0);
	assert_int_equal(restore_shared_find(shared, IMAGE_OBJECTS_MAX, &found), 0);
}

TEST_WITH(the_first_task_decides_on_the_name_of_an_object, begin, end)
{
	uint32_t handle[] = { 1, 2, 3, 4 }, other[] = { 1, 2, 3, 4 };

	assert_int_equal(restore_shared_name(shared, 3, NAME_OPEN), NAME_OPEN);
	assert_int_equal(restore_shared_name(shared, 3, NAME_FRESH), NAME_FRESH);
	assert_int_equal(restore_shared_name(shared, 3, NAME_SAVED), NAME_FRESH);
	assert_int_equal(restore_shared_name(shared, 3, NAME_OPEN), NAME_FRESH);
	assert_int_equal(restore_shared_name(shared, 4, NAME_SAVED), NAME_SAVED);
	/* no object of several tasks */
	assert_int_equal(restore_shared_name(shared, 0, NAME_SAVED), NAME_SAVED);
	assert_int_equal(restore_shared_name(shared, 0, NAME_FRESH), NAME_FRESH);
	restore_shared_rename(shared, handle);
	restore_shared_rename(shared, other);
	assert_memory_equal(handle, other, sizeof(handle));
	restore_shared_rename(shared, other);
	assert_memory_equal(other, ((uint32_t[]){ 1, 2, 3, 4 }), sizeof(other));
	assert_memory_not_equal(handle, other, sizeof(handle));
}

/* Awaits object 5 in another process, which exits with 0 if it gets it, else with the error.
 * Returns when that process is about to look for the object. */
static pid_t await_in_child(void)
{
	pid_t pid, failed = 0;
	struct object found;
	int ret = -ETIME;
	int begins[2];
	char byte;

	assert_int_equal(pipe(begins), 0);
	pid = fork();
	if (pid) {
		assert_int_equal(read(begins[0], &byte, 1), 1);
		(void)close(begins[0]);
		(void)close(begins[1]);
		return pid;
	}
	if (write(begins[1], "", 1) != 1)
		_exit(3);
	while (ret == -ETIME)
		ret = restore_shared_await(shared, 5, OWNER, &found, &failed);
	if (ret == -ECANCELED && failed != 1234)
		_exit(1);
	_exit(ret < 0 ? -ret : found.store_id == 9 ? 0 : 2);
}

TEST_WITH(another_process_waits_for_an_object, begin, end)
{
	const struct object object = { .store_id = 9 };
	pid_t early = await_in_child();

	assert_int_equal(restore_shared_publish(shared, 5, &object), 0);
	restore_shared_announce(shared, OWNER);
	assert_int_equal(unit_wait(early), 0);
	assert_int_equal(unit_wait(await_in_child()), 0);
	/* A published object is available in spite of a failure. */
	restore_shared_fail(shared, 1234);
	assert_int_equal(unit_wait(await_in_child()), 0);
}

TEST_WITH(nobody_waits_for_a_task_that_has_failed, begin, end)
{
	pid_t early = await_in_child();

	restore_shared_fail(shared, 1234);
	assert_int_equal(unit_wait(early), ECANCELED);
	assert_int_equal(unit_wait(await_in_child()), ECANCELED);
	restore_shared_fail(NULL, 1);
}

TEST_WITH(nobody_waits_for_an_object_that_its_owner_lacks, begin, end)
{
	const struct object object = { .store_id = 7 };
	pid_t early = await_in_child();

	/* another task */
	restore_shared_announce(shared, OWNER + 1);
	assert_int_equal(waitpid(early, NULL, WNOHANG), 0);
	assert_int_equal(restore_shared_publish(shared, 6, &object), 0);
	restore_shared_announce(shared, OWNER);
	assert_int_equal(unit_wait(early), ENODATA);
	assert_int_equal(unit_wait(await_in_child()), ENODATA);
}
