/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that a dump refuses, and the checks that it does so: it logs the reason and the remedy,
 * copies nothing, and the process runs on. Included by a test program once. */
#ifndef TEST_UNIT_PREFLIGHT_TASK_H
#define TEST_UNIT_PREFLIGHT_TASK_H

#include "dump_task.h"

enum {
	COMPUTE = 0,
	SDMA = 1,
	SDMA_XGMI = 4,
	MQD = 2048,
};

/* An edit of the GPUs' generation. */
#define GFX(version) "s/^gfx_target_version .*/gfx_target_version " version "/"

static inline struct fake_process *make_process_with(struct fake_queue queue)
{
	struct fake_process *process;

	forget_processes();
	process = make_process();
	process->queues[process->num_queues++] = queue;
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000000);
	return process;
}

/* With AMDGPU_FORCE=1 the same dump succeeds, and a warning has the reason. */
static inline void assert_force_dumps(struct fake_process *process, const char *words)
{
	int fd = open_kfd_of(process);

	memset(process->calls, 0, sizeof(process->calls));
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	unit_forget_lines();
	start_dump();
	assert_int_equal(dump_file(fd, 5), 0);
	assert_logged("Warn  (amdgpu_plugin): ", words, "AMDGPU_FORCE");
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 1);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 0);
	assert_int_equal(process->paused, 1);
	end_dump(0);
	assert_int_equal(process->paused, 0);
	assert_true(unit_exists("amdgpu-kfd-5.img"));
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	(void)close(fd);
}

/* The plugin opened no GPU and copied nothing. The error line has the reason and the remedy. */
static inline void assert_refused(struct fake_process *process, const char *words,
				  const char *remedy)
{
	gpu.calls = 0;
	(void)unlink(unit_path("amdgpu-pages-5-beef.img"));
	assert_dump_fails(process, words);
	assert_logged("Error (amdgpu_plugin): ", words, remedy);
	assert_int_equal(gpu.calls, 0);
	assert_false(unit_exists("amdgpu-pages-5-beef.img"));
}

/* AMDGPU_FORCE=1 does not help. */
static inline void assert_final(struct fake_process *process, const char *words)
{
	memset(process->calls, 0, sizeof(process->calls));
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	assert_dump_fails(process, words);
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	assert_false(unit_logged("AMDGPU_FORCE", NULL));
}

#endif
