// SPDX-License-Identifier: GPL-2.0-only
/* Matrix instructions: a wave multiplies a matrix of 16 rows with one of 16 columns and adds a
 * third. Lane l has part of row l % 16 of the first and of column l % 16 of the second: the
 * elements of quarter l / 16. It has rows 4 * (l / 16) to 4 * (l / 16) + 3 of column l % 16 of the
 * third and of the result. EXEC disables no lane of these. */
#include "gcn_floats.h"
#include "gcn_ints.h"

#define SIDE      16u
#define QUARTERS  4u
#define MOST_DEEP 16u

/* Integers are exact in them, too: each product has 15 bits. */
struct matrices {
	float a[SIDE][MOST_DEEP], b[MOST_DEEP][SIDE];
	u32 sum[SIDE][SIDE];
};

/* Element @i of the operand in a lane. */
static float element(enum sim_gcn_op op, const u32 *const *registers, u32 lane, u32 i)
{
	u32 half = registers[i / 2 % 2][lane] >> 16 * (i % 2);

	switch (op) {
	case SIM_GCN_v_mfma_f32_16x16x16f16:
		return f16(half);
	case SIM_GCN_v_mfma_f32_16x16x16bf16_1k:
		return f32((u64)half << 16);
	case SIM_GCN_v_mfma_i32_16x16x16i8:
		return (float)(int8_t)(registers[0][lane] >> 8 * i);
	default:
		return f32(registers[0][lane]);
	}
}

static void take(struct matrices *m, const struct sim_gcn_wave *wave,
		 const struct sim_gcn_inst *inst, u32 elements)
{
	const u32 *const a[] = { wave->v[inst->src[0] - SIM_GCN_VGPR0],
				 wave->v[inst->src[0] - SIM_GCN_VGPR0 + 1] };
	const u32 *const b[] = { wave->v[inst->src[1] - SIM_GCN_VGPR0],
				 wave->v[inst->src[1] - SIM_GCN_VGPR0 + 1] };
	u32 lane, i;

	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		for (i = 0; i < elements; i++) {
			u32 k = lane / SIDE * elements + i;

			m->a[lane % SIDE][k] = element(inst->op, a, lane, i);
			m->b[k][lane % SIDE] = element(inst->op, b, lane, i);
		}
}

static void multiply_floats(struct matrices *m, u32 depth)
{
	u32 row, column, k;

	for (row = 0; row < SIDE; row++)
		for (k = 0; k < depth; k++)
			for (column = 0; column < SIDE; column++)
				m->sum[row][column] = (u32)of32(fmaf(m->a[row][k], m->b[k][column],
								     f32(m->sum[row][column])));
}

static void multiply_integers(struct matrices *m, u32 depth)
{
	u32 row, column, k;

	for (row = 0; row < SIDE; row++)
		for (k = 0; k < depth; k++)
			for (column = 0; column < SIDE; column++)
				m->sum[row][column] += (u32)(s32)(m->a[row][k] * m->b[k][column]);
}

void sim_gcn_matrix(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u32 elements = inst->op == SIM_GCN_v_mfma_f32_16x16x4f32 ? 1 : 4, lane, i;
	u32 added = inst->src[2], first = inst->dst - SIM_GCN_VGPR0;
	struct matrices m;

	take(&m, wave, inst, elements);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		for (i = 0; i < 4; i++)
			m.sum[lane / SIDE * 4 + i][lane % SIDE] =
				added >= SIM_GCN_VGPR0 ? wave->v[added - SIM_GCN_VGPR0 + i][lane]
						       : (u32)sim_gcn_constant(inst, added, 1);
	if (inst->op == SIM_GCN_v_mfma_i32_16x16x16i8)
		multiply_integers(&m, QUARTERS * elements);
	else
		multiply_floats(&m, QUARTERS * elements);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		for (i = 0; i < 4; i++)
			wave->v[first + i][lane] = m.sum[lane / SIDE * 4 + i][lane % SIDE];
}
