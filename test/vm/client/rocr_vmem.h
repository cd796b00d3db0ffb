/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of ROCr's virtual memory API (hsa_amd_vmem_*()) on one GPU: one piece is mapped twice and
 * for the CPU, too, and of another the program has given back the handle. */
#ifndef CLIENT_ROCR_VMEM_H
#define CLIENT_ROCR_VMEM_H

#include "rocr.h"

struct rocr_vmem;

bool rocr_vmem_open(const struct rocr *rocr, unsigned int gpu, struct rocr_vmem **ret_vmem);

/* Gives all pieces new contents. */
bool rocr_vmem_begin(struct rocr_vmem *vmem);

/* Compares all contents by each mapping, writes by one mapping what another must show, and uses a
 * new piece. */
bool rocr_vmem_verify(struct rocr_vmem *vmem);

/* Frees @vmem, too. */
bool rocr_vmem_close(struct rocr_vmem *vmem);

#endif
