// SPDX-License-Identifier: GPL-2.0-only
/* One table: a column for each kernel, a row for each knob in which kernels differ. The comment at
 * a row names the source of its values, relative to drivers/gpu/drm/amd in the kernel's tree. */
#include "sim.h"

/* It names each value, so a row with a value too few or too many does not compile. */
#define COLUMNS(a, b, c, d, e, f, g, h, i, j, k, l) \
	{                                           \
		a, b, c, d, e, f, g, h, i, j, k, l  \
	}

/* "default" is Linux 6.18 without GEM_LIST_HANDLES, plus the behaviour of older kernels that the
 * plugin does not support yet. The columns are Linux 6.1.176, 6.5, 6.8, 6.12.107, 6.12.117 (the
 * same from 6.12.111 on), 6.18.16, 7.2.13, 7.3.4, and AMD's out-of-tree driver: its release
 * 6.12.12, a later one that restores all XCCs, and 7.1. Of the last two, single files were read. No
 * source of 6.5 was read: where a comment does not tell of it, it is like 6.8. */
static const char *const names[] = COLUMNS("default", "6.1", "6.5", "6.8", "6.12", "6.12.111",
					   "6.18", "7.2", "7.3", "dkms-6.12", "dkms", "dkms-7.1");

struct row {
	const char *knob;
	s64 values[ARRAY_SIZE(names)];
};

#define ROW(knob, ...)                      \
	{                                   \
#knob, COLUMNS(__VA_ARGS__) \
	}

/* clang-format off */
static const struct row rows[] = {
	/*                     default 6.1 6.5  6.8 6.12 .111 6.18  7.2  7.3 dkms-6.12 dkms dkms-7.1 */

	/* include/uapi/linux/kfd_ioctl.h: KFD_IOCTL_MINOR_VERSION; the out-of-tree driver answers
	 * like the mainline kernel of its time, and some files of 7.1 say 22. 6.5: by the list of versions in this file of 6.12 */
	ROW(kfd_minor,              18,  11,  14,  15,  17,  17,  18,  23,  23,       17,  18,       23),

	/* amdkfd/kfd_priv.h: sizeof(struct kfd_criu_bo_priv_data), which depends on
	 * MAX_GPU_INSTANCE: 16 in 6.1, 64 from 6.5 on; the out-of-tree driver appends fields of IPC */
	ROW(bo_record_size,        272,  80, 272, 272, 272, 272, 272, 272, 272,      296, 296,      296),

	/* amdkfd/kfd_mqd_manager_v9.c: checkpoint_mqd_v9_4_3() is in 6.18, 7.2 and 7.3, and in later
	 * releases of the out-of-tree driver; not in 6.12 and its release 6.12.12 */
	ROW(one_xcc,                 0,   1,   1,   1,   1,   1,   0,   0,   0,        1,   0,        0),

	/* amdkfd/kfd_process_queue_manager.c, kfd_criu_restore_queue(): 7.2.12 and 7.3.4 compare the
	 * size of the MQD with mqd_size_from_queue_type(), which is that of one XCC, and so does 7.1
	 * of the out-of-tree driver. Its older releases and 6.18.16 have no such check. 6.1.192 and
	 * 6.12.117 have it, too, and save one XCC */
	ROW(one_mqd,                 0,   0,   0,   0,   0,   1,   0,   1,   1,        0,   0,        1),

	/* The same file, set_queue_properties_from_criu(): 7.2.12 divides the size of the control
	 * stacks by the XCCs of the whole device, 7.3.4 by those of the partition. 6.18 is like
	 * 7.2. The out-of-tree driver: 6.12.12 does not divide, 7.1 is like 7.3 */
	ROW(xcc_divisor,             1,   0,   0,   0,   0,   0,   1,   1,   0,        0,   1,        0),

	/* amdkfd/kfd_mqd_manager_v9.c, mqd_manager_init_v9(): 7.2.12 and 7.3.4 ask for the GPU's
	 * control stack before the GPU has its id, and get the answer for a CPU node, 0. 6.12 asks
	 * at each CHECKPOINT, 6.1 takes the size from the MQD. 6.18 has not been read. The
	 * out-of-tree driver takes it from the MQD, and 7.1 is like 7.2 */
	ROW(no_ctl_stack,            0,   0,   0,   0,   0,   0,   0,   1,   1,        0,   0,        1),

	/* amdkfd/kfd_process_queue_manager.c: kfd_criu_restore_queue() calls
	 * kfd_queue_acquire_buffers() in 6.12.117, not in 6.12.107, 7.2 and 7.3 */
	ROW(acquire_queue_buffers,   0,   0,   0,   0,   0,   1,   0,   0,   0,        0,   0,        0),

	/* amdkfd/kfd_chardev.c: kfd_ioctl_create_queue() calls it in 6.12 and 7.x, not in 6.1. 6.8 has not
	 * been read */
	ROW(check_queue_buffers,     1,   0,   0,   0,   1,   1,   1,   1,   1,        1,   1,        1),

	/* amdkfd/kfd_flat_memory.c, kfd_init_apertures_v9(): SVM_USER_BASE in 6.1, and at least
	 * AMDGPU_VA_RESERVED_BOTTOM in 6.12 and 7.x. 6.8 has not been read */
	ROW(gpuvm_first_page,       16,   4,  16,  16,  16,  16,  16,  16,  16,       16,  16,       16),

	/* amdgpu/amdgpu_ctx.c, amdgpu_ctx_query2(), has RESET_IN_PROGRESS, and amdgpu/amdgpu_kms.c
	 * GPUVM_FAULT, in 6.12 and 7.2, not in 6.1. The values of 6.8 and of the out-of-tree driver
	 * follow from their DRM version, which 6.5 does not reach */
	ROW(fault_queries,           1,   0,   0,   1,   1,   1,   1,   1,   1,        1,   1,        1),

	/* amdgpu/amdgpu_gem.c: amdgpu_gem_list_handles_ioctl() is in 6.18, 7.2 and 7.3, and in
	 * later releases of the out-of-tree driver */
	ROW(list_handles,            0,   0,   0,   0,   0,   0,   1,   1,   1,        0,   1,        1),

	/* amdgpu/amdgpu_gem.c, amdgpu_gem_list_handles_ioctl(): pages in 6.18, bytes in 7.2 and 7.3.4 */
	ROW(list_alignment_bytes,    0,   0,   0,   0,   0,   0,   0,   1,   1,        0,   0,        0),

	/* include/uapi/linux/kfd_ioctl.h, AMDKFD_COMMAND_END: AVAILABLE_MEMORY is the last of 6.1, so
	 * EXPORT_DMABUF is not there; DBG_TRAP of 6.12, PROFILER of 7.2, 7.3, and 7.1 of the
	 * out-of-tree driver */
	ROW(last_ioctl,           0x26, 0x23, 0x26, 0x26, 0x26, 0x26, 0x26, 0x28, 0x28,     0x26, 0x26, 0x28),

	/* amdkfd/kfd_process.c, kfd_procfs_show() and kfd_process_device_init_vm(): in 6.12 a process
	 * has a PASID, which the VMs that it acquires get; in 7.3 each file keeps its own. The change
	 * came with 6.15, and is in the out-of-tree driver. 6.1 is taken to be like 6.12 */
	ROW(process_pasid,           1,   1,   1,   1,   1,   1,   0,   0,   0,        0,   0,        0),

	/* amdkfd/kfd_chardev.c, criu_process_info(): 6.12.117 and 7.3.4 evict once; 6.1, 6.12.107 and
	 * 7.2.13 evict at each call */
	ROW(pause_nests,             1,   1,   1,   1,   1,   0,   1,   1,   0,        1,   1,        1),

	/* amdkfd/kfd_chardev.c, criu_restore(): 6.1.176, 6.12 and 7.x take no BOs; 6.8 and
	 * 6.12.12 of the out-of-tree driver are older than that change */
	ROW(bos_required,            0,   0,   1,   1,   0,   0,   0,   0,   0,        1,   0,        0),

	/* amdkfd/kfd_chardev.c, get_process_num_bos(): 6.1 leaves out a BO whose address is 0 */
	ROW(addressless_bos,         1,   0,   1,   1,   1,   1,   1,   1,   1,        1,   1,        1),

	/* amdgpu/amdgpu_amdkfd.c: amdgpu_amdkfd_drm_client_create() is in 6.12, 7.2 and 7.3, not in
	 * 6.1; it came with 6.8 */
	ROW(kfd_client,              1,   0,   0,   1,   1,   1,   1,   1,   1,        1,   1,        1),

	/* include/uapi/linux/kfd_ioctl.h: from 1.15 on the driver keeps mappings of GEM_VA on a compute
	 * VM valid, so 6.5 does not. The out-of-tree driver: by its release */
	ROW(compute_gem_va,          1,   0,   0,   1,   1,   1,   1,   1,   1,        1,   1,        1),

	/* amdkfd/kfd_chardev.c, kfd_mmap(): kfd_process_device_data_by_id() in 7.3 and in 7.1 of the
	 * out-of-tree driver, kfd_device_by_id() up to 7.2 */
	ROW(mmap_user_ids,           0,   0,   0,   0,   0,   0,   0,   0,   1,        0,   0,        1),

	/* amdgpu/amdgpu_dma_buf.c, amdgpu_dma_buf_map(): 7.2 and 7.3 do not map VRAM for DMA that the
	 * GPU reaches by XGMI, and import_obj_create() wants to; 6.12 maps it. 6.18, and 7.1 of the
	 * out-of-tree driver, have not been read */
	ROW(hive_imports,            1,   1,   1,   1,   1,   1,   1,   0,   0,        1,   1,        1),

	/* amdkfd/kfd_events.c, allocate_event_notification_slot(), and kfd_mmap(): 7.3, and 7.1 of the
	 * out-of-tree driver, do not make or map a page for events; up to 7.2 it does */
	ROW(kernel_event_page,       1,   1,   1,   1,   1,   1,   1,   1,   0,        1,   1,        0),

	/* amdkfd/kfd_events.c, kfd_criu_restore_event(): EINVAL for a type that it does not know in
	 * 6.1.176, 6.12.117, 7.2, 7.3, and 7.1 of the out-of-tree driver; 6.12.107 leaves the event
	 * out. 6.8, 6.18.16 and older out-of-tree drivers are older than that change */
	ROW(event_types,             0,   1,   0,   0,   0,   1,   0,   1,   1,        0,   0,        1),

	/* 0: amdkfd/kfd_mqd_manager_v11.c of 6.1 has no checkpoint_mqd(). 2: init_user_queue() in
	 * amdkfd/kfd_process_queue_manager.c of 6.12.107 reads through a wptr_bo that RESTORE did
	 * not set; 6.18.16 does too, and 6.8 probably. 3: 6.12.117 acquires it. 1: 7.2 and 7.3
	 * answer EINVAL. The out-of-tree driver is like 6.12.107, and from 7.1 on like 7.2. No kernel can save queues of gfx12. */
	ROW(gfx11_queues,            1,   0,   2,   2,   2,   3,   2,   1,   1,        2,   2,        1),
	/* amdgpu/amdgpu_amdkfd_gpuvm.c: amdgpu_amdkfd_bo_mapped_to_dev() compares devices in 6.1,
	 * and reads through the VM of each GPU from 6.12 on; 6.8 has not been read */
	ROW(unacquired_oops,         1,   0,   1,   1,   1,   1,   1,   1,   1,        1,   1,        1),

	/* amdkfd/kfd_device_queue_manager.c: restore_process_queues_cpsch() reads through the VM of each
	 * GPU in 6.1. The change "prepare per-process debug enable and disable", which came with
	 * KFD 1.13 (6.5), leaves out GPUs without one */
	ROW(unpause_oops,            0,   1,   0,   0,   0,   0,   0,   0,   0,        0,   0,        0),

	/* amdkfd/kfd_ipc.c: only the out-of-tree driver has share handles */
	ROW(ipc_handles,             0,   0,   0,   0,   0,   0,   0,   0,   0,        1,   1,        1),

	/* amdgpu/amdgpu_amdkfd_gpuvm.c, import_obj_create() of the out-of-tree driver */
	ROW(maker_flags,             0,   0,   0,   0,   0,   0,   0,   0,   0,        1,   1,        1),

	/* amdkfd/kfd_process.c, kfd_process_device_translate_handle(), and amdkfd/kfd_events.c,
	 * kfd_event_page_set(), of the out-of-tree driver; 7.1 checks them */
	ROW(unchecked_handles,       0,   0,   0,   0,   0,   0,   0,   0,   0,        1,   1,        0),

	/* amdkfd/kfd_process.c, kfd_process_device_create_obj_handle() of the out-of-tree driver */
	ROW(unchecked_ids,           0,   0,   0,   0,   0,   0,   0,   0,   0,        1,   1,        1),

	/* amdkfd/kfd_process.c: kfd_process_evict_queues() of the out-of-tree driver drops every EIO */
	ROW(reset_hidden,            0,   0,   0,   0,   0,   0,   0,   0,   0,        1,   1,        1),

	/* amdkfd/kfd_chardev.c, kfd_ioctl(): numbers between KFD's and those of the out-of-tree driver
	 * have empty entries in the table of 6.12.12; later releases check them */
	ROW(unknown_invalid,         0,   0,   0,   0,   0,   0,   0,   0,   0,        1,   0,        0),
};
/* clang-format on */

static int find_kernel(const char *name, u32 *ret_index)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	return -EINVAL;
}

int sim_kernel_set(struct sim *sim, const char *name)
{
	u32 kernel, i;
	int ret;

	ret = find_kernel(name, &kernel);
	for (i = 0; ret == 0 && i < ARRAY_SIZE(rows); i++)
		ret = sim_knob_set(sim, rows[i].knob, rows[i].values[kernel]);
	return ret;
}
