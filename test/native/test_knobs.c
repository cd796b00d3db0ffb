// SPDX-License-Identifier: GPL-2.0-only
/* Tests the simulator's knobs: each knob changes the behaviour that a KFD client sees, and
 * resetting it restores the default. Also tests which memory outside buffers a user queue can
 * reach. */
#include <amdgpu_drm.h>
#include <errno.h>
#include <linux/kfd_ioctl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw_kfd.h"
#include "sim_test.h"

#define PAGE 4096u
#define MIB  (1u << 20)

static struct raw_process process;

static int begin_client(void **state)
{
	return begin(state) ? -1 : raw_open_acquired(&process);
}

static int end_client(void **state)
{
	for (int i = 0; i < process.gpus; i++)
		(void)close(process.render[i]);
	(void)close(process.kfd);
	return end(state);
}

#define TEST(name) TEST_WITH(name, begin_client, end_client)

/* Both hand out less than 64 GiB. */
TEST(limits_of_memory_are_kept)
{
	uint32_t id = process.gpu[0].gpu_id;
	struct raw_bo bo;

	assert_int_equal(raw_alloc(&process, id, RAW_GTT, (64ull << 30) + MIB, NULL, &bo), -ENOMEM);
	assert_int_equal(raw_alloc(&process, id, RAW_VRAM, 64ull << 30, NULL, &bo), -ENOMEM);
}

/* The queue stops after a violation. */
static void assert_stands_still(struct raw_queue *queue)
{
	raw_queue_ring(queue);
	while (!sim_number("violations", NULL))
		(void)usleep(1000);
	assert_int_equal(sim_number("violations", NULL), 1);
	assert_int_equal(raw_queue_rests(queue), 0);
	assert_true(*queue->read != queue->written);
	sim_write("violations", "0");
}

/* An SVM range that the GPU may access, without memory behind it. */
static char *make_range(void)
{
	struct kfd_ioctl_svm_attribute access = { KFD_IOCTL_SVM_ATTR_ACCESS,
						  process.gpu[0].gpu_id };
	char *memory =
		mmap(NULL, MIB + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	assert_int_equal(munmap(memory + MIB, PAGE), 0);
	memset(memory, 0x21, MIB);
	assert_int_equal(raw_svm(&process, memory, MIB, KFD_IOCTL_SVM_OP_SET_ATTR, &access, 1), 0);
	return memory;
}

/* Reads a byte that the engine has written. The queue's read pointer follows the write, but
 * ThreadSanitizer does not know this order. */
static __attribute__((no_sanitize_thread)) char written(const char *byte)
{
	return *byte;
}

TEST(a_queue_reaches_an_svm_range_and_nothing_beside_it)
{
	struct raw_queue queue;
	struct raw_bo vram;
	char *memory = make_range();

	assert_int_equal(raw_create_queue(&process, 0, &queue), 0);
	assert_int_equal(raw_alloc_mapped(&process, 0, RAW_VRAM, MIB, &vram), 0);
	memset(vram.address, 0x37, MIB);
	raw_queue_copy(&queue, memory, vram.address, MIB / 2);
	raw_queue_copy(&queue, vram.address + MIB / 2, memory + MIB / 2, MIB / 2);
	raw_queue_ring(&queue);
	assert_int_equal(raw_queue_wait(&queue), 0);
	assert_int_equal(written(vram.address + MIB / 2 - 1), 0x21);
	assert_int_equal(written(memory + MIB / 2 - 1), 0x21);
	assert_int_equal(written(memory + MIB / 2), 0x37);
	assert_int_equal(written(memory + MIB - 1), 0x37);
	raw_queue_copy(&queue, memory + MIB - 16, vram.address, 17);
	assert_stands_still(&queue);
	(void)munmap(memory, MIB);
}

/* The rest of the range stays mapped. */
TEST(a_queue_does_not_reach_what_the_process_has_unmapped)
{
	struct raw_queue queue;
	char *memory = make_range();

	assert_int_equal(raw_create_queue(&process, 0, &queue), 0);
	assert_int_equal(munmap(memory + 2 * PAGE, PAGE), 0);
	memset(memory + 3 * PAGE, 0x42, 2 * PAGE);
	raw_queue_copy(&queue, memory + 3 * PAGE, memory, 2 * PAGE);
	raw_queue_ring(&queue);
	assert_int_equal(raw_queue_wait(&queue), 0);
	assert_int_equal(written(memory + 2 * PAGE - 1), 0x42);
	raw_queue_copy(&queue, memory, memory + 2 * PAGE, 4);
	assert_stands_still(&queue);
	(void)munmap(memory, MIB);
}

/* Whether QUERY_STATE2 of the context reports an uncorrectable memory error. */
static bool says_memory_error(uint32_t context)
{
	union drm_amdgpu_ctx query = { .in.op = AMDGPU_CTX_OP_QUERY_STATE2, .in.ctx_id = context };

	assert_int_equal(ioctl(process.render[0], DRM_IOCTL_AMDGPU_CTX, &query), 0);
	return query.out.state.flags & AMDGPU_CTX_QUERY2_FLAGS_RAS_UE;
}

static uint32_t new_context(void)
{
	union drm_amdgpu_ctx context = { .in.op = AMDGPU_CTX_OP_ALLOC_CTX };

	assert_int_equal(ioctl(process.render[0], DRM_IOCTL_AMDGPU_CTX, &context), 0);
	return context.out.alloc.ctx_id;
}

/* The number in a file of device/ras, or -1 without such a file. */
static long count_errors(const char *name)
{
	char path[128];
	long count = -1;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/0000:63:00.0/ras/%s", name);
	file = fopen(path, "re");
	if (!file)
		return -1;
	assert_int_equal(fscanf(file, "ue: %ld\nce: 0\n", &count), 1);
	(void)fclose(file);
	return count;
}

/* Each context reports each old error once, as soon as the driver has counted it. */
TEST(old_memory_errors_are_reported_to_new_contexts)
{
	uint32_t first, second;

	sim_write("memory_errors", "2");
	first = new_context();
	assert_false(says_memory_error(first));
	assert_true(says_memory_error(first));
	assert_false(says_memory_error(first));
	second = new_context();
	assert_true(says_memory_error(second));
	assert_false(says_memory_error(second));
	assert_int_equal(count_errors("umc_err_count"), 2);
	assert_int_equal(count_errors("gfx_err_count"), 0);
	sim_write("memory_errors", "-1");
	assert_int_equal(count_errors("umc_err_count"), -1);
	assert_false(says_memory_error(new_context()));
	sim_write("memory_errors", "0");
	assert_int_equal(count_errors("umc_err_count"), 0);
}
