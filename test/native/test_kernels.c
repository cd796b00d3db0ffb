// SPDX-License-Identifier: GPL-2.0-only
/* The kernels that the simulated driver can behave like, and the state that it saves and restores,
 * through raw ioctls. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../vm/client/accept_raw.h"
#include "sim_test.h"

#define PAGE 4096u

static int begin_default(void **state)
{
	sim_write("kernel", "default");
	return begin(state);
}

#define BO_RECORD 296u

/* A process with one BO, as CHECKPOINT saves it. */
struct saved {
	struct kfd_criu_device_bucket device;
	struct kfd_criu_bo_bucket bos[4];
	uint8_t priv[4096];
	struct kfd_ioctl_criu_args args;
};

static struct saved save_process(void)
{
	struct kfd_ioctl_criu_args unpause = { .op = KFD_CRIU_OP_UNPAUSE };
	struct raw_process process;
	struct raw_bo bo;
	struct saved saved = { .args = { .op = KFD_CRIU_OP_PROCESS_INFO } };

	assert_int_equal(raw_open_acquired(&process), 0);
	assert_int_equal(raw_alloc_mapped(&process, 0, RAW_VRAM, PAGE, &bo), 0);
	assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_CRIU_OP, &saved.args), 0);
	assert_int_equal(saved.args.num_bos, 1);
	assert_int_equal(saved.args.priv_data_size, 8 + 8 + BO_RECORD);
	saved.args.op = KFD_CRIU_OP_CHECKPOINT;
	saved.args.devices = (uintptr_t)&saved.device;
	saved.args.bos = (uintptr_t)saved.bos;
	saved.args.priv_data = (uintptr_t)saved.priv;
	assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_CRIU_OP, &saved.args), 0);
	assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_CRIU_OP, &unpause), 0);
	(void)close((int)saved.bos[0].dmabuf_fd);
	assert_int_equal(munmap(bo.address, bo.size), 0);
	(void)close(process.render[0]);
	(void)close(process.kfd);
	sim_write("process_exit", "1");
	return saved;
}

/* In a process that has nothing yet. */
static int restore_process(struct saved saved)
{
	struct raw_process process;
	int ret;

	assert_int_equal(raw_open(&process), 0);
	assert_int_equal(raw_open_render(&process.gpu[0], &process.render[0]), 0);
	saved.args.op = KFD_CRIU_OP_RESTORE;
	saved.args.devices = (uintptr_t)&saved.device;
	saved.args.bos = (uintptr_t)saved.bos;
	saved.args.priv_data = (uintptr_t)saved.priv;
	saved.device.drm_fd = (uint32_t)process.render[0];
	ret = raw_ioctl(process.kfd, AMDKFD_IOC_CRIU_OP, &saved.args);
	if (!ret)
		(void)close((int)saved.bos[0].dmabuf_fd);
	(void)close(process.render[0]);
	(void)close(process.kfd);
	sim_write("process_exit", "1");
	return ret;
}

/* As AMD's out-of-tree driver would take it for the state of another shared BO. */
static void a_changed_opaque_word_of_a_bo_is_refused(void **state)
{
	struct saved saved, changed;

	(void)state;
	sim_write("bo_record_size", "296");
	saved = save_process();
	assert_int_equal(restore_process(saved), 0);
	assert_int_equal(sim_number("violations", NULL), 0);
	for (uint32_t at = 268; at < BO_RECORD; at += 4) {
		changed = saved;
		changed.priv[8 + 8 + at] ^= 0x80;
		assert_int_equal(restore_process(changed), -EINVAL);
		assert_int_equal(sim_number("violations", NULL), (at - 268) / 4 + 1);
	}
	sim_write("violations", "0");
	sim_write("kernel", "default");
}

static void bo_records_have_a_size_that_drivers_can_have(void **state)
{
	static const char *const sizes[] = { "0", "72", "100", "276", "-8", "4104" };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(amdgpu_sim_write("bo_record_size", sizes[i]), -EINVAL);
	assert_int_equal(sim_number("bo_record_size", NULL), 272);
}

static const char *const kernels[] = { "default", "6.1", "6.8", "6.12", "6.12.111",
				       "6.18",    "7.2", "7.3", "dkms" };

static void each_kernel_has_its_version(void **state)
{
	static const long minors[] = { 18, 11, 15, 17, 17, 18, 23, 23, 18 };
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		sim_write("kernel", kernels[i]);
		assert_true(amdgpu_sim_read("kernel", name, sizeof(name)) > 0);
		name[strcspn(name, "\n")] = '\0';
		assert_string_equal(name, kernels[i]);
		assert_int_equal(sim_number("kfd_minor", NULL), minors[i]);
	}
}

static void an_unknown_kernel_is_refused_and_changes_nothing(void **state)
{
	static const char *const unknown[] = { "", "6", "6.1 ", "6.11", "7.3.4", "DKMS", "18" };

	(void)state;
	sim_write("kernel", "6.1");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_int_equal(amdgpu_sim_write("kernel", unknown[i]), -EINVAL);
	assert_int_equal(sim_number("kfd_minor", NULL), 11);
	assert_int_equal(sim_number("bo_record_size", NULL), 80);
}

static void a_knob_changes_one_behaviour_of_a_kernel(void **state)
{
	(void)state;
	sim_write("kernel", "dkms");
	sim_write("bo_record_size", "304");
	assert_int_equal(sim_number("bo_record_size", NULL), 304);
	assert_int_equal(sim_number("list_handles", NULL), 0);
	sim_write("kernel", "dkms");
	assert_int_equal(sim_number("bo_record_size", NULL), 296);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_default, end)
	const struct CMUnitTest tests[] = {
		TEST(a_changed_opaque_word_of_a_bo_is_refused),
		TEST(bo_records_have_a_size_that_drivers_can_have),
		TEST(each_kernel_has_its_version),
		TEST(an_unknown_kernel_is_refused_and_changes_nothing),
		TEST(a_knob_changes_one_behaviour_of_a_kernel),
	};

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
