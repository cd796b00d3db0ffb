/* SPDX-License-Identifier: GPL-2.0-only */
/* All state of one emulated GPU. */
#ifndef TEST_GPU_GPU_H
#define TEST_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "asic.h"
#include "guest.h"
#include "hive.h"
#include "hws.h"
#include "memory.h"
#include "pci.h"
#include "queue.h"
#include "report.h"
#include "sdma.h"

#define GPU_REGISTERS (1u << 30) /* all that PCIE_INDEX2 can name */

struct gpu_counters {
	uint64_t pm4_packets, aql_packets, dispatches, interrupts, faults, resets;
};

struct gpu {
	const struct asic *asic;
	struct report report;
	const struct hive *hive; /* NULL: a GPU alone */
	unsigned int node;       /* in the hive */
	bool is_apart;           /* its links are off: the driver sees a GPU alone */
	struct guest guest;
	struct pci pci;
	uint32_t *regs; /* GPU_REGISTERS; memory only where something was written */
	uint8_t *vram;
	uint64_t vram_bytes;
	int vram_fd;
	uint8_t zeros[4096], sink[4096]; /* pages without memory, for reads and for writes */
	uint8_t rom[PCI_ROM_BYTES];
	struct memory_fault fault;
	struct queue queues[QUEUE_MAX];
	struct sdma_engine sdma[ASIC_SDMA_ENGINES];
	struct hws hws[ASIC_XCCS]; /* that of a partition is at its first XCC */
	struct gpu_counters counters;
	/* What the control socket has set. */
	uint64_t copy_bytes_per_s; /* 0: at once */
	bool hangs;                /* the copy engines stand still */
	bool expects_reset;        /* they did: the driver may reset the GPU */
	/* Tells the host of an interrupt. -errno: it takes none. */
	int (*interrupt)(void *arg);
	void *interrupt_arg;
};

/* A GPU with that much video memory, a power of two. 0 or -errno. */
int gpu_new(const struct asic *asic, uint64_t vram_bytes, struct gpu **ret_gpu);
void gpu_free(struct gpu *gpu);
/* As power-on does: registers, queues and configuration space. Video memory keeps its content. */
void gpu_reset(struct gpu *gpu);
/* Links the GPU to its hive, or parts it, for the next driver that loads. */
void gpu_set_links(struct gpu *gpu, bool are_on);
/* The driver's reset of a GPU that hangs: all queues are gone, and the engines halt. */
void gpu_reset_engines(struct gpu *gpu);

/* The AID of an XCC. */
static inline unsigned int gpu_aid(unsigned int xcc)
{
	return xcc / 2;
}

/* Names the XCC of a register, and returns that of XCC 0 in its place. */
uint32_t gpu_local_register(const struct gpu *gpu, uint32_t reg, unsigned int *ret_xcc);
/* The register of XCC @xcc in the place of that of XCC 0. Other registers stay as they are. */
uint32_t gpu_register_of(unsigned int xcc, uint32_t local);

uint64_t gpu_clock(void);  /* ticks of ASIC_CLOCK_HZ */
uint64_t gpu_now_ns(void); /* monotonic */

#endif
