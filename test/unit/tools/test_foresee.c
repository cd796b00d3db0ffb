// SPDX-License-Identifier: GPL-2.0-only
/* Refusals that show without pausing a process: the scripted kernel has the process, and no call of
 * a dump is made. test/tool/check.sh has what criu-amdgpu says of it. */
#include "preflight_task.h"

#include <string.h>
#include <sys/utsname.h>

#include "foresee.h"
#include "preflight/preflight.h"

static const char *release = "6.18.0";

int uname(struct utsname *name)
{
	*name = (struct utsname){ .sysname = "Linux" };
	(void)snprintf(name->release, sizeof(name->release), "%s", release);
	return 0;
}

static void warn_on(const char *kernel_release)
{
	struct topology topology;

	release = kernel_release;
	assert_int_equal(topology_read(TOPOLOGY_SYSFS, &topology), 0);
	unit_forget_lines();
	foresee_warn(&topology);
	topology_done(&topology);
}

static void kernels_that_refuse_queues_are_known_by_their_release(void **state)
{
	static const struct {
		const char *release;
		bool refuses;
	} cases[] = {
		{ "6.12.110", false },
		{ "6.12.111-amd64", true },
		{ "6.12.117+deb13-amd64", true },
		{ "6.12.118", false },
		{ "6.11.112", false },
		{ "7.12.112", false },
		{ "6.12", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("%s\n", cases[i].release);
		warn_on(cases[i].release);
		assert_int_equal(unit_count_lines("a compute queue may be refused"),
				 cases[i].refuses);
	}
}

/* A rule of which nothing is said shows late. */
static void late_rules_are_named_with_their_objects(void **state)
{
	static const char *const late[] = { "a queue has no area for its waves",
					    "a BO has an unknown kind",
					    "a mapping maps no BO of KFD",
					    "a process has a layout" };
	static const char *const early[] = { "cannot be paused", "several KFD contexts", "pre-dump",
					     "gfx11", "GEM objects" };
	char all[16384] = "", text[512];

	(void)state;
	for (size_t i = 0; foresee_name_late(i, text, sizeof(text)); i++)
		(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s\n", text);
	for (size_t i = 0; i < ARRAY_SIZE(late); i++)
		assert_non_null(strstr(all, late[i]));
	for (size_t i = 0; i < ARRAY_SIZE(early); i++)
		assert_null(strstr(all, early[i]));
}

static void a_driver_without_waves_is_foreseen(void **state)
{
	const struct options options = { 0 }, force = { .force = true };
	struct topology topology;

	(void)state;
	unit_print("parameter-cwsr_enable", "0\n");
	assert_int_equal(topology_read(TOPOLOGY_SYSFS, &topology), 0);
	assert_int_equal(foresee_machine(&options, &topology), -EOPNOTSUPP);
	assert_true(unit_logged("Error (amdgpu_plugin): a process cannot be paused",
				"cwsr_enable=1", NULL));
	assert_int_equal(foresee_machine(&force, &topology), 0);
	topology_done(&topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			kernels_that_refuse_queues_are_known_by_their_release, begin, end),
		cmocka_unit_test_setup_teardown(late_rules_are_named_with_their_objects, begin,
						end),
		cmocka_unit_test_setup_teardown(a_driver_without_waves_is_foreseen, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
