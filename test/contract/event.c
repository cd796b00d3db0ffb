/* SPDX-License-Identifier: GPL-2.0-only */
/* KFD events: ids, and the page of their slots. */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "contract.h"
#include "raw_kfd.h"

#define PAGE_BYTES 32768

static int event_create(struct raw_process *process, uint32_t type, uint64_t page, uint32_t *ret_id)
{
	struct kfd_ioctl_create_event_args args = {
		.event_type = type,
		.event_page_offset = page,
	};
	int ret = raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_EVENT, &args);

	if (ret == 0)
		*ret_id = args.event_id;
	return ret;
}

RULE(event_ids_start_at_1_and_the_page_is_given_once)
{
	struct raw_process process;
	struct raw_bo page, small;
	uint32_t id;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, PAGE_BYTES, &page), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, 16384, &small), 0);
	if (!KERNEL(unchecked_handles)) {
		EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, small.handle, &id), -EINVAL);
		EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, small.handle + 77, &id),
		       -EINVAL);
	}
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, page.handle, &id), 0);
	EXPECT(id, 1);
	EXPECT(((uint64_t *)page.address)[4095], -1ll);
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, page.handle, &id), -EINVAL);
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, &id), 0);
	EXPECT(id, 2);
	EXPECT(event_create(&process, KFD_IOC_EVENT_HW_EXCEPTION, 0, &id), 0);
	EXPECT_TRUE(id >= 0x40000000);
	EXPECT(raw_unmap(&process, &page, process.gpu[0].gpu_id), 0);
	EXPECT(raw_free(&process, &page), -EPERM);
}

RULE(event_page_is_made_by_the_kernel_or_has_to_be_given)
{
	bool makes = KERNEL(event_page);
	struct raw_bo view = { .size = RAW_DOORBELL_BYTES, .mmap_offset = 2ull << 62 };
	struct raw_process process;
	uint32_t id;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(event_create(&process, KFD_IOC_EVENT_SIGNAL, 0, &id), makes ? 0 : -ENOMEM);
	view.address = mmap(NULL, view.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(raw_mmap(process.kfd, &view), makes ? 0 : -EINVAL);
}
