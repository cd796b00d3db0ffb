// SPDX-License-Identifier: GPL-2.0-only
#include "ih.h"

#include <string.h>

#include "gpu.h"

#define ENTRY_BYTES   32u
#define SPACE_IS_GART 4u /* MC_SPACE: the ring is at an address of VMID 0, not of the bus */

static const struct space gart = { .hub = HUB_MM };

/* IH_VMID_LUT_INDEX selects one of several tables. They lie one behind the other here. */
static uint32_t pasid_register(const struct space *space)
{
	uint32_t table = space->hub == HUB_GFX ? REG(OSSSYS, mmIH_VMID_0_LUT)
					       : REG(OSSSYS, mmIH_VMID_0_LUT_MM);

	return table + (space->instance << ASIC_INSTANCE_SHIFT) + space->vmid;
}

void ih_set_pasid(struct gpu *gpu, unsigned int xcc, unsigned int vmid, uint16_t pasid)
{
	const struct space gfx = { HUB_GFX, vmid, xcc }, mm = { HUB_MM, vmid, gpu_aid(xcc) };

	gpu->regs[pasid_register(&gfx)] = pasid;
	gpu->regs[pasid_register(&mm)] = pasid;
}

uint16_t ih_pasid_of(const struct gpu *gpu, const struct space *space)
{
	return gpu->regs[pasid_register(space)];
}

/* Where the interrupt comes from: of each four numbers one is the AID's, and two are of its XCCs.
 */
static uint32_t node_of(const struct gpu *gpu, const struct space *space)
{
	if (gpu->asic->xccs == 1)
		return 0;
	if (space->hub == HUB_MM)
		return 4 * space->instance;
	return 4 * gpu_aid(space->instance) + 1 + space->instance % 2;
}

static uint64_t read_address(const struct gpu *gpu, uint32_t low, uint32_t high)
{
	return gpu->regs[low] | (uint64_t)gpu->regs[high] << 32;
}

static int write_memory(struct gpu *gpu, uint64_t address, const void *data, uint32_t size_bytes)
{
	uint32_t control = gpu->regs[REG(OSSSYS, mmIH_RB_CNTL)];
	void *at;

	if (FIELD(control, IH_RB_CNTL, MC_SPACE) == SPACE_IS_GART)
		return memory_write(gpu, &gart, address, data, size_bytes);
	at = guest_at(&gpu->guest, address, size_bytes);
	if (at)
		memcpy(at, data, size_bytes);
	return at ? 0 : -1;
}

static void lose(struct gpu *gpu, const struct ih_entry *entry, const char *why)
{
	report_violation(&gpu->report, "interrupt lost: client %#x, source %u: %s", entry->client,
			 entry->source, why);
}

/* Appends to the ring, and says why it cannot. */
static const char *append(struct gpu *gpu, const uint32_t *dwords)
{
	uint32_t control = gpu->regs[REG(OSSSYS, mmIH_RB_CNTL)];
	uint32_t size = 4u << FIELD(control, IH_RB_CNTL, RB_SIZE);
	uint32_t wptr = gpu->regs[REG(OSSSYS, mmIH_RB_WPTR)] & (size - 1), next;
	uint64_t base = read_address(gpu, REG(OSSSYS, mmIH_RB_BASE), REG(OSSSYS, mmIH_RB_BASE_HI));
	uint64_t copy = read_address(gpu, REG(OSSSYS, mmIH_RB_WPTR_ADDR_LO),
				     REG(OSSSYS, mmIH_RB_WPTR_ADDR_HI));

	if (!FIELD(control, IH_RB_CNTL, RB_ENABLE))
		return "the ring is disabled";
	next = (wptr + ENTRY_BYTES) & (size - 1);
	if (next == (gpu->regs[REG(OSSSYS, mmIH_RB_RPTR)] & (size - 1)))
		return "the ring is full";
	if (write_memory(gpu, (base << 8) + wptr, dwords, ENTRY_BYTES))
		return "the ring is not in the guest's memory";
	gpu->regs[REG(OSSSYS, mmIH_RB_WPTR)] = next;
	if (write_memory(gpu, copy, &next, sizeof(next)))
		return "the copy of the write pointer is not in the guest's memory";
	if (!FIELD(control, IH_RB_CNTL, ENABLE_INTR))
		return "the driver has disabled them";
	return NULL;
}

bool ih_take_doorbell(struct gpu *gpu, uint32_t doorbell, uint64_t value)
{
	uint32_t control = gpu->regs[REG(OSSSYS, mmIH_DOORBELL_RPTR)];

	if (!FIELD(control, IH_DOORBELL_RPTR, ENABLE) ||
	    FIELD(control, IH_DOORBELL_RPTR, OFFSET) != doorbell)
		return false;
	gpu->regs[REG(OSSSYS, mmIH_RB_RPTR)] = (uint32_t)value;
	return true;
}

void ih_post(struct gpu *gpu, const struct ih_entry *entry)
{
	uint64_t now = gpu_clock();
	uint32_t is_mm = entry->space.hub == HUB_MM;
	uint32_t dwords[ENTRY_BYTES / 4] = {
		entry->client | entry->source << 8 | entry->ring << 16 | entry->space.vmid << 24 |
			is_mm << 31,
		(uint32_t)now,
		now >> 32 & 0xffff,
		(entry->space.vmid ? ih_pasid_of(gpu, &entry->space) : 0) |
			node_of(gpu, &entry->space) << 16,
		entry->data[0],
		entry->data[1],
		entry->data[2],
		entry->data[3],
	};
	const char *why = append(gpu, dwords);

	gpu->counters.interrupts++;
	report_log(&gpu->report, REPORT_PACKETS,
		   "interrupt: client %#x source %u ring %#x vmid %u node and pasid %#x data %#x",
		   entry->client, entry->source, entry->ring, entry->space.vmid, dwords[3],
		   entry->data[0]);
	if (why)
		lose(gpu, entry, why);
	else if (gpu->interrupt(gpu->interrupt_arg) < 0)
		lose(gpu, entry, "MSI is disabled");
}
