// SPDX-License-Identifier: GPL-2.0-only
/* A task of a streamed restore waits for a process that is no task: no image tells so. */
#include "host.h"

#include <errno.h>

#include "kernel/proc.h"
#include "memory/imports.h"
#include "memory/objects.h"

#define OWNER 200

bool __wrap_proc_is_missing(pid_t pid);
bool __wrap_host_is_streaming(void);
int __wrap_proc_awaits_others(pid_t pid, uint64_t *ret_sleeps);

static unsigned int looks;
/* The look at which the owner ends, and the sleeps that it counts in each; 0: it does not sleep. */
static unsigned int last_look;
static const uint64_t *sleeps;

bool __wrap_proc_is_missing(pid_t pid)
{
	assert_int_equal(pid, OWNER);
	return ++looks == last_look;
}

int __wrap_proc_awaits_others(pid_t pid, uint64_t *ret_sleeps)
{
	assert_int_equal(pid, OWNER);
	*ret_sleeps = sleeps[looks - 1];
	return sleeps[looks - 1] != 0;
}

bool __wrap_host_is_streaming(void)
{
	return true;
}

static void assert_await_fails(int error)
{
	struct awaited_object awaited = { .number = 1, .owner = OWNER, .name = "kfd 5" };
	struct restore_session session = { 0 };
	struct object object;

	looks = 0;
	assert_int_equal(objects_new(&session.objects), 0);
	assert_int_equal(imports_await(&session, &awaited, &object), error);
	assert_logged("Error (amdgpu_plugin): kfd 5: ",
		      "process 200, which shares it, does not come back");
	assert_int_equal(unit_count_errors(), 1);
	objects_free(session.objects);
}

static void an_owner_that_no_task_is_fails_the_restore_of_a_stream(void **state)
{
	static const uint64_t busy[] = { 0, 0 };

	(void)state;
	last_look = 2;
	sleeps = busy;
	assert_await_fails(-ESRCH);
	assert_int_equal(looks, 2);
}

/* It has tried all its files, and sleeps until other tasks are ready. */
static void an_owner_that_only_sleeps_fails_the_restore_of_a_stream(void **state)
{
	static const uint64_t idle[] = { 7, 0, 7, 8, 8, 8, 8 };

	(void)state;
	last_look = 0;
	sleeps = idle;
	assert_await_fails(-ENOENT);
	assert_int_equal(looks, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(an_owner_that_no_task_is_fails_the_restore_of_a_stream),
		UNIT_TEST(an_owner_that_only_sleeps_fails_the_restore_of_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
