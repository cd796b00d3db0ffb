// SPDX-License-Identifier: GPL-2.0-only
/* The GPUs that KFD processes use, in a /sys of a child with a mount namespace of its own. */
#include "host.h"

#include <sched.h>
#include <sys/mount.h>

#include "kernel/gpu_use.h"
#include "kernel/proc.h"

static void set_up(bool done)
{
	if (!done)
		_exit(UNIT_REFUSED);
}

static void write_file(const char *path, const char *text)
{
	char command[256];

	(void)snprintf(command, sizeof(command),
		       "mkdir -p $(dirname " PROC_KFD "/%s) && echo %s > " PROC_KFD "/%s", path,
		       text, path);
	set_up(system(command) == 0);
}

static bool uses(const struct gpu_use *use, uint32_t id)
{
	bool found = false;

	for (size_t i = 0; i < use->count; i++)
		found |= use->ids[i] == id;
	return found;
}

static _Noreturn void read_processes(void)
{
	struct gpu_use use;

	set_up(unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/sys", "tmpfs", 0, NULL) == 0);
	if (gpu_use_read(&use) != 0 || use.count)
		_exit(1);
	write_file("100/pasid", "32769");
	write_file("100/vram_111", "0");
	write_file("100/vram_222", "4096");
	write_file("100/queues/0/gpuid", "333");
	write_file("200/vram_444", "8192");
	write_file("200/sdma_555", "17");
	if (gpu_use_read(&use) != 0 || use.count != 3)
		_exit(2);
	_exit(uses(&use, 222) && uses(&use, 333) && uses(&use, 444) ? 0 : 3);
}

UNIT_TEST(a_gpu_with_memory_or_a_queue_is_used)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		read_processes();
	assert_int_equal(unit_wait(pid), 0);
}
