/* SPDX-License-Identifier: GPL-2.0-only */
/* Decoding of instructions, shared by its files. */
#ifndef SIM_GCN_DECODE_H
#define SIM_GCN_DECODE_H

#include "gcn.h"

/* Takes what the row says. -EINVAL: there is no such code. */
int sim_gcn_take_row(struct sim_gcn_inst *inst, enum sim_gcn_format table, u32 code);
/* Whether the generation has @width registers from @operand on. */
bool sim_gcn_is_operand(u32 operand, u32 width, bool vector, bool destination);
int sim_gcn_check_operands(const struct sim_gcn_inst *inst, bool vector);
/* Takes the constant of 32 bits that may follow an instruction of 32 bits. */
int sim_gcn_take_literal(struct sim_gcn_inst *inst, u32 available);

/* Vector instructions in 32 bits, which an extension or a constant may follow, or in 64. */
int sim_gcn_decode_short(struct sim_gcn_inst *inst, u32 available);
int sim_gcn_decode_long(struct sim_gcn_inst *inst);

#endif
