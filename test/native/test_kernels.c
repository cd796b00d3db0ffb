// SPDX-License-Identifier: GPL-2.0-only
/* Tests through raw ioctls what AMD's out-of-tree driver does otherwise than Linux. test/contract
 * has the rules for Linux. */
#include <amdgpu_drm.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_test.h"

#define PAGE 4096u

int tests_begin(void **state)
{
	(void)state;
	return setenv("AMDGPU_SIM_MACHINE", "eight", 1);
}

static int begin_default(void **state)
{
	sim_write("kernel", "default");
	sim_write("hidden", "1,2,3,4,5,6,7");
	return begin(state);
}

#define BO_RECORD 296u

/* @event: the type of the process's event; 0: it has no event. */
static struct saved save_process_with(uint32_t event)
{
	struct kfd_ioctl_create_event_args create = { .event_type = event };
	struct raw_process process;
	struct saved saved;
	struct raw_bo bo;

	assert_int_equal(raw_open_acquired(&process), 0);
	assert_int_equal(raw_alloc_mapped(&process, 0, RAW_VRAM, PAGE, &bo), 0);
	if (event)
		assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_CREATE_EVENT, &create), 0);
	saved = save(&process);
	assert_int_equal(munmap(bo.address, bo.size), 0);
	(void)close(process.render[0]);
	(void)close(process.kfd);
	sim_write("process_exit", "1");
	return saved;
}

static void end_process(const struct raw_process *process)
{
	for (int i = 0; i < process->gpus; i++)
		if (process->render[i] >= 0)
			(void)close(process->render[i]);
	(void)close(process->kfd);
	sim_write("process_exit", "1");
}

static int restore_process(struct saved saved)
{
	struct raw_process process;
	int ret = restore_saved(&saved, &process);

	end_process(&process);
	return ret;
}

#define TEST(name) TEST_WITH(name, begin_default, end)

/* AMD's out-of-tree driver would read these bytes as the state of another shared BO. */
TEST(a_changed_opaque_word_of_a_bo_is_refused)
{
	struct saved saved, changed;

	sim_write("bo_record_size", "296");
	saved = save_process_with(0);
	assert_int_equal(restore_process(saved), 0);
	assert_int_equal(sim_number("violations"), 0);
	for (uint32_t at = 268; at < BO_RECORD; at += 4) {
		changed = saved;
		changed.priv[FIRST_RECORD + at] ^= 0x80;
		assert_int_equal(restore_process(changed), -EINVAL);
		assert_int_equal(sim_number("violations"), (at - 268) / 4 + 1);
	}
	sim_write("violations", "0");
	sim_write("kernel", "default");
}

/* Some headers lack EXPORT_DMABUF. */
struct export
{
	uint64_t handle;
	uint32_t flags, fd;
};
#define EXPORT _IOWR(AMDKFD_IOCTL_BASE, 0x24, struct export)

static uint32_t create_gem(int render)
{
	union drm_amdgpu_gem_create create = {
		.in = { .bo_size = PAGE, .domains = AMDGPU_GEM_DOMAIN_GTT },
	};

	assert_int_equal(raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
	return create.out.handle;
}

static int map_gem(const struct raw_process *process, uint32_t handle)
{
	struct drm_amdgpu_gem_va args = {
		.handle = handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE,
		.va_address = 1ull << 33,
		.map_size = PAGE,
	};
	int ret = raw_ioctl(process->render[0], DRM_IOCTL_AMDGPU_GEM_VA, &args);

	args.operation = AMDGPU_VA_OP_UNMAP;
	return ret ? ret : raw_ioctl(process->render[0], DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

TEST(linux_6_1_does_not_keep_mappings_of_a_compute_vm)
{
	struct raw_process process;
	uint32_t handle;

	assert_int_equal(raw_open(&process), 0);
	assert_int_equal(raw_open_render(&process.gpu[0], &process.render[0]), 0);
	handle = create_gem(process.render[0]);
	sim_write("kernel", "6.1");
	assert_int_equal(map_gem(&process, handle), 0);
	assert_int_equal(raw_acquire(&process, process.gpu[0].gpu_id, process.render[0]), 0);
	assert_int_equal(sim_number("violations"), 0);
	assert_int_equal(map_gem(&process, handle), 0);
	assert_int_equal(sim_number("violations"), 2);
	sim_write("kernel", "6.8");
	assert_int_equal(map_gem(&process, handle), 0);
	assert_int_equal(sim_number("violations"), 2);
	sim_write("violations", "0");
	end_process(&process);
}

/* What crashes AMD's driver is an error of other kernels. */
TEST(handles_that_name_no_buffer_crash_amds_driver)
{
	static const char *const names[] = { "7.2", "dkms-7.1", "dkms-6.12", "dkms" };
	struct raw_process process;
	struct raw_bo bo = { .handle = 77 }, page;

	for (long i = 0; i < 4; i++) {
		struct kfd_ioctl_create_event_args create = { .event_type = KFD_IOC_EVENT_SIGNAL };
		struct export export = { .handle = 0 };
		uint32_t id;

		sim_write("kernel", names[i]);
		assert_int_equal(raw_open_acquired(&process), 0);
		id = process.gpu[0].gpu_id;
		bo.handle = export.handle = create.event_page_offset = (uint64_t)id << 32 | 77;
		assert_int_equal(raw_map(&process, &bo, id), -ENOMEM);
		assert_int_equal(raw_unmap(&process, &bo, id), -ENOMEM);
		assert_int_equal(raw_ioctl(process.kfd, EXPORT, &export), -EINVAL);
		assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_CREATE_EVENT, &create), -EINVAL);
		assert_int_equal(sim_number("violations"), i > 1 ? 4 : 0);
		assert_int_equal(raw_alloc(&process, id, RAW_GTT, 4 * PAGE, NULL, &page), 0);
		create.event_page_offset = page.handle;
		assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_CREATE_EVENT, &create), -EINVAL);
		assert_int_equal(sim_number("violations"), i > 1 ? 5 : 0);
		sim_write("violations", "0");
		(void)munmap(page.address, page.size);
		end_process(&process);
	}
}

/* Other kernels answer with an error, too, and free nothing twice. */
TEST(two_buffers_with_one_number_make_amds_driver_use_freed_memory)
{
	static const char *const names[] = { "7.2", "dkms-6.12", "dkms", "dkms-7.1" };
	struct saved saved = save_process_with(KFD_IOC_EVENT_SIGNAL);

	saved.bos[1] = saved.bos[0];
	memmove(saved.priv + FIRST_RECORD + 272, saved.priv + FIRST_RECORD, 272 + 64);
	saved.args.num_bos = 2;
	saved.args.priv_data_size += 272;
	for (size_t i = 0; i < 4; i++) {
		sim_write("kernel", names[i]);
		sim_write("bo_record_size", "272");
		assert_int_equal(restore_process(saved), -ENOMEM);
		assert_int_equal(sim_number("violations"), i ? 1 : 0);
		sim_write("violations", "0");
	}
}

TEST(amds_driver_does_not_say_that_a_gpu_is_in_reset)
{
	static const char *const names[] = { "7.2", "dkms-6.12", "dkms", "dkms-7.1" };
	struct raw_process process;

	for (size_t i = 0; i < 4; i++) {
		struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_PROCESS_INFO };

		sim_write("kernel", names[i]);
		assert_int_equal(raw_open_acquired(&process), 0);
		sim_write("in_reset", "1");
		assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_CRIU_OP, &args), i ? 0 : -EIO);
		sim_write("in_reset", "0");
		end_process(&process);
	}
}

TEST(an_unknown_ioctl_is_invalid_or_missing)
{
	static const struct {
		const char *kernel;
		int ret;
	} cases[] = { { "7.2", -ENOTTY },
		      { "dkms-6.12", -EINVAL },
		      { "dkms", -ENOTTY },
		      { "dkms-7.1", -ENOTTY } };
	struct raw_process process;

	assert_int_equal(raw_open_acquired(&process), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		sim_write("kernel", cases[i].kernel);
		assert_int_equal(
			raw_ioctl(process.kfd, AMDKFD_IOWR(0x40, uint64_t), &(uint64_t){ 0 }),
			cases[i].ret);
	}
	end_process(&process);
}
