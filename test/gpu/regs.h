/* SPDX-License-Identifier: GPL-2.0-only */
/* The register file. Most registers keep what the driver writes, and mean nothing here; regs.c has
 * those that do, and passes writes on to the engines. */
#ifndef TEST_GPU_REGS_H
#define TEST_GPU_REGS_H

#include <stdint.h>

struct gpu;

/* What firmware and fuses have set before the driver comes. */
void regs_init(struct gpu *gpu);
void regs_halt_engines(struct gpu *gpu);

uint32_t regs_read(struct gpu *gpu, uint32_t reg);
void regs_write(struct gpu *gpu, uint32_t reg, uint32_t value);

#define REGS_NAME_BYTES 80u

/* For the log: a name, with the XCC in front if there are several, or a number. */
const char *regs_name(const struct gpu *gpu, uint32_t reg, char *text);

#endif
