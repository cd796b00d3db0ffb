/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory as the GPU sees it (gmc_v9_0.c, gfxhub_v1_0.c, mmhub_v1_7.c, gfxhub_v1_2.c, mmhub_v1_8.c).
 * Two kinds of hubs translate addresses: that of each XCC for its command processor and shaders,
 * and that of each AID for its copy engines and the interrupt handler. VMID 0 reaches video memory
 * and the GART, the others have page tables. */
#ifndef TEST_GPU_MEMORY_H
#define TEST_GPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;

enum hub { HUB_GFX, HUB_MM };

struct space {
	enum hub hub;
	unsigned int vmid;
	unsigned int instance; /* of the hub: the XCC, or the AID */
};

/* The permission that an access needs: a bit of the page table entry. */
enum access { ACCESS_READ = 1 << 5, ACCESS_WRITE = 1 << 6 };

/* The first failed access since the last memory_take_fault(). */
struct memory_fault {
	bool pending, is_write;
	bool is_denied; /* the page is mapped, but not for this access */
	struct space space;
	uint64_t address;
};

/* A pointer to @address, and how many bytes of the *@length_bytes follow there. NULL: a fault. */
void *memory_at(struct gpu *gpu, const struct space *space, uint64_t address, enum access access,
		uint64_t *length_bytes);

/* 0 or -EFAULT. */
int memory_read(struct gpu *gpu, const struct space *space, uint64_t address, void *data,
		uint64_t size_bytes);
int memory_write(struct gpu *gpu, const struct space *space, uint64_t address, const void *data,
		 uint64_t size_bytes);
int memory_write32(struct gpu *gpu, const struct space *space, uint64_t address, uint32_t value);
int memory_write64(struct gpu *gpu, const struct space *space, uint64_t address, uint64_t value);
int memory_copy(struct gpu *gpu, const struct space *space, uint64_t to, uint64_t from,
		uint64_t size_bytes);
/* Fills with a dword; @to and the size may be odd. */
int memory_fill(struct gpu *gpu, const struct space *space, uint64_t to, uint32_t value,
		uint64_t size_bytes);

/* Tells the driver of the fault as hardware does: registers of the hub and an interrupt. In VMID 0,
 * where only the driver's own rings are, it is a violation, too. */
void memory_report_fault(struct gpu *gpu);

/* The page directory of a VMID in the hubs of an XCC and of its AID, as the scheduler's firmware
 * sets it. */
void memory_set_directory(struct gpu *gpu, unsigned int xcc, unsigned int vmid, uint64_t directory);

/* Whether the register belongs to an invalidation engine; then it is written. */
bool memory_write_register(struct gpu *gpu, uint32_t reg, uint32_t value);
/* The same for reads: whether *@ret_value is the answer. */
bool memory_read_register(const struct gpu *gpu, uint32_t reg, uint32_t *ret_value);

#endif
