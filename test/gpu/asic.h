/* SPDX-License-Identifier: GPL-2.0-only */
/* Registers of the MI210 (Aldebaran, gfx90a), by the names that amdgpu gives them. The headers are
 * those of the kernel's source package. A register is the number of its dword in the register
 * space, as in the driver. */
#ifndef TEST_GPU_ASIC_H
#define TEST_GPU_ASIC_H

#define __maybe_unused __attribute__((unused))
#include <aldebaran_ip_offset.h>
#include <asic_reg/gc/gc_9_0_offset.h>
#include <asic_reg/gc/gc_9_0_sh_mask.h>
#include <asic_reg/mmhub/mmhub_1_7_offset.h>
#include <asic_reg/mp/mp_13_0_2_offset.h>
#include <asic_reg/nbio/nbio_7_4_offset.h>
#include <asic_reg/oss/osssys_4_2_0_offset.h>
#include <asic_reg/oss/osssys_4_2_0_sh_mask.h>
#include <asic_reg/sdma/sdma_4_4_0_offset.h>
#include <asic_reg/sdma/sdma_4_4_0_sh_mask.h>

#define ASIC_JOIN_(a, b) a##b
#define ASIC_JOIN(a, b)  ASIC_JOIN_(a, b)
/* REG(GC, mmCP_HQD_ACTIVE): the first part names the block that the register belongs to. */
#define REG(block, name) (ASIC_JOIN(block##_BASE__INST0_SEG, name##_BASE_IDX) + name)
/* FIELD(value, CP_HQD_PQ_CONTROL, QUEUE_SIZE) */
#define FIELD(value, reg, field) (((value)&reg##__##field##_MASK) >> reg##__##field##__SHIFT)

#define ASIC_DEVICE_ID 0x740fu
#define ASIC_VENDOR_ID 0x1002u
/* Where video memory begins in the GPU's own address space. The driver reads it from a register. */
#define ASIC_FB_BASE 0x8000000000ull
#define ASIC_VMIDS   16u
/* Hundreds of MHz: KFD tells user space the rate in the VBIOS, rounded to 100 MHz. */
#define ASIC_CLOCK_HZ 100000000ull

#endif
