// SPDX-License-Identifier: GPL-2.0-only
/* Lines of CRIU's log, and the first error of several processes. */
#include "host.h"

#include <sys/mman.h>

#include "criu/log.h"

static struct log_first *share(void)
{
	struct log_first *first = mmap(NULL, sizeof(*first), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(first != MAP_FAILED);
	log_keep_first(first);
	return first;
}

static void unshare_first(struct log_first *first)
{
	log_keep_first(NULL);
	assert_int_equal(munmap(first, sizeof(*first)), 0);
}

static void fail_in_a_child(const char *object)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		(void)log_error(-EBUSY, "%s: cannot", object);
		_exit(0);
	}
	assert_int_equal(unit_wait(pid), 0);
}

UNIT_TEST(the_first_error_of_all_processes_is_kept)
{
	struct log_first *first = share();

	log_warn("no error");
	fail_in_a_child("one");
	fail_in_a_child("two");
	(void)log_error(0, "three");
	assert_string_equal(log_first_error(), "one: cannot: Device or resource busy");
	unshare_first(first);
}

UNIT_TEST(nothing_is_kept_without_an_error)
{
	struct log_first *first;

	(void)log_error(0, "before");
	assert_null(log_first_error());
	first = share();
	log_warn("no error");
	assert_null(log_first_error());
	unshare_first(first);
}

/* A long object never hides the cause. */
UNIT_TEST(the_cause_ends_a_long_line)
{
	char object[2 * LOG_LINE_SIZE];

	memset(object, 'o', sizeof(object) - 1);
	object[sizeof(object) - 1] = '\0';
	assert_int_equal(log_error(-ENOSPC, "%s", object), -ENOSPC);
	assert_int_equal(unit_count_lines("oo: No space left on device"), 1);
}
