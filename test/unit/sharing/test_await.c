// SPDX-License-Identifier: GPL-2.0-only
/* A task of a streamed restore waits for a process that is no task: no image tells so. */
#include "host.h"

#include "kernel/proc.h"
#include "memory/restore_shared.h"
#include "sharing/imports.h"

#define OWNER 200

bool __wrap_proc_is_missing(pid_t pid);
bool __wrap_host_is_streaming(void);

static unsigned int looks;

/* The owner ends after the first look. */
bool __wrap_proc_is_missing(pid_t pid)
{
	assert_int_equal(pid, OWNER);
	return ++looks == 2;
}

bool __wrap_host_is_streaming(void)
{
	return true;
}

UNIT_TEST(an_owner_that_no_task_is_fails_the_restore_of_a_stream)
{
	struct awaited_object awaited = { .number = 1, .owner = OWNER, .name = "kfd 5" };
	struct restore_session session = { 0 };
	struct object object;

	assert_int_equal(restore_shared_new(&session.shared), 0);
	assert_int_equal(imports_await(&session, &awaited, &object), -ESRCH);
	assert_int_equal(looks, 2);
	assert_logged("Error (amdgpu_plugin): kfd 5: ",
		      "process 200, which shares it, was not restored");
	assert_int_equal(unit_count_errors(), 1);
	restore_shared_free(session.shared);
}
