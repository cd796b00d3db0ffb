// SPDX-License-Identifier: GPL-2.0-only
/* A restore beside the job that was dumped, whose buffers the driver would give to the restored job
 * by their share handles. */
#include "host.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "image_of_one.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"
#include "restore/originals.h"

#define GPU      0xbeef
#define NEVER    0
#define MAX_NAPS 1000
/* The records of the process, of one GPU and of one BO. */
#define PRIV_SIZE (8 + 8 + KFD_PRIV_BO_SIZE_SHARED)

/* Waits of the plugin, and the wait after which the driver has freed the memory of process @pid. */
static struct {
	unsigned int naps, frees_at;
	pid_t pid;
} time_passes;

DIR *opendir(const char *path)
{
	DIR *(*real)(const char *) = NULL;

	*(void **)&real = dlsym(RTLD_NEXT, "opendir");
	return real(strcmp(path, PROC_KFD) ? path : unit_path("proc"));
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	assert_true(pause->tv_nsec > 0);
	if (++time_passes.naps == time_passes.frees_at)
		assert_int_equal(rmdir(unit_path("proc/%d", time_passes.pid)), 0);
	return 0;
}

/* The image of process @pid with one BO; @handle: a word of its share handle. */
static void write_image(int id, pid_t pid, uint32_t handle)
{
	CriuKfd *kfd = new_image_of_one(GPU);
	KfdBoEntry *bo = malloc(sizeof(*bo));

	assert_non_null(bo);
	kfd_bo_entry__init(bo);
	bo->gpu_id = GPU;
	bo->alloc_flags = KFD_BO_VRAM;
	bo->addr = 0x10000;
	bo->size = 0x4000;
	kfd->bo_entries = malloc(sizeof(bo));
	kfd->bo_entries[kfd->n_bo_entries++] = bo;
	kfd->num_of_bos = 1;
	kfd->pid = (uint32_t)pid;
	kfd->num_of_objects = 0;
	kfd->priv_data.data = calloc(1, PRIV_SIZE);
	kfd->priv_data.len = PRIV_SIZE;
	kfd->priv_data.data[0] = 1;
	memcpy(kfd->priv_data.data + PRIV_SIZE - 16, &handle, sizeof(handle));
	assert_int_equal(image_write_kfd(id, kfd), 0);
	criu_kfd__free_unpacked(kfd, NULL);
}

static void use_gpu(pid_t pid)
{
	(void)mkdir(unit_path("proc"), 0700);
	assert_int_equal(mkdir(unit_path("proc/%d", pid), 0700), 0);
}

static int await(bool force, unsigned int frees_at, pid_t pid)
{
	const struct options options = { .force = force };
	const struct restore_session session = { .options = &options };

	time_passes.naps = 0;
	time_passes.frees_at = frees_at;
	time_passes.pid = pid;
	return originals_await(&session);
}

static void a_restore_beside_the_original_is_refused(void **state)
{
	pid_t pid = unit_start_sleeper();

	(void)state;
	use_gpu(pid);
	write_image(5, pid, 77);
	write_image(7, pid + 1, 0);
	assert_int_equal(await(false, NEVER, pid), -EBUSY);
	assert_int_equal(time_passes.naps, MAX_NAPS);
	assert_logged("Error (amdgpu_plugin): ", "may have the share handles of the images",
		      "end it first");
	assert_int_equal(unit_count_errors(), 1);
	assert_int_equal(await(true, NEVER, pid), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "may have the share handles");
	unit_end_sleeper(pid);
}

static pid_t ended_process(void)
{
	pid_t pid = unit_start_sleeper();

	unit_end_sleeper(pid);
	return pid;
}

/* The driver frees its memory later. */
static void a_restore_waits_for_the_end_of_a_killed_original(void **state)
{
	pid_t pid = ended_process();

	(void)state;
	use_gpu(pid);
	write_image(5, 9, 77);
	assert_int_equal(await(false, 7, pid), 0);
	assert_int_equal(time_passes.naps, 7);
	assert_int_equal(unit_count_errors(), 0);
}

static void other_processes_and_images_without_handles_do_not_matter(void **state)
{
	pid_t pid = unit_start_sleeper();

	(void)state;
	/* no process uses a GPU, or this kernel does not list them */
	write_image(5, pid, 77);
	assert_int_equal(await(false, NEVER, pid), 0);
	use_gpu(pid);
	write_image(5, pid + 1, 77);
	assert_int_equal(await(false, NEVER, pid), 0);
	write_image(5, pid, 0);
	assert_int_equal(await(false, NEVER, pid), 0);
	assert_int_equal(time_passes.naps, 0);
	unit_end_sleeper(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_restore_beside_the_original_is_refused),
		UNIT_TEST(a_restore_waits_for_the_end_of_a_killed_original),
		UNIT_TEST(other_processes_and_images_without_handles_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
