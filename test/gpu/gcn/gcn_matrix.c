// SPDX-License-Identifier: GPL-2.0-only
/* Matrix instructions: a wave multiplies matrices of some rows with those of as many columns, and
 * adds others. There are one or several blocks of three matrices. Lane l has part of row l % side
 * of a first matrix and of column l % side of a second one. Either the lanes l / side share out the
 * elements of one block, or each has those of a block of its own. The third matrix and the result
 * have groups of four rows in four registers. EXEC disables no lane of these. */
#include "gcn_floats.h"
#include "gcn_ints.h"

#define MOST_ELEMENTS 4u    /* of a lane */
#define MOST_SUMS     2048u /* two blocks of 32 rows and 32 columns */
#define GROUP         4u

struct shape {
	u32 side, blocks, elements, depth;
	enum matrix_kind kind;
};

/* Integers are exact in them, too: each product has 15 bits. */
struct matrices {
	struct shape shape;
	float a[SIM_GCN_LANES * MOST_ELEMENTS], b[SIM_GCN_LANES * MOST_ELEMENTS];
	u32 sum[MOST_SUMS];
};

static struct shape shape_of(enum sim_gcn_op op)
{
	struct sim_gcn_alu none = { .lane = 0 };
	u32 value = (u32)sim_gcn_compute(op, &none);
	struct shape shape = { value & 0xff, value >> 8 & 0xff, .kind = value >> 16 };

	shape.elements = shape.kind == MATRIX_FLOATS ? 1 : MOST_ELEMENTS;
	shape.depth = shape.elements * SIM_GCN_LANES / shape.side / shape.blocks;
	return shape;
}

/* Element @i of the operand in a lane. */
static float element(enum matrix_kind kind, const u32 *const *registers, u32 lane, u32 i)
{
	u32 half = registers[i / 2 % 2][lane] >> 16 * (i % 2);

	switch (kind) {
	case MATRIX_HALVES:
		return f16(half);
	case MATRIX_BFLOATS:
		return f32((u64)half << 16);
	case MATRIX_BYTES:
		return (float)(int8_t)(registers[0][lane] >> 8 * i);
	default:
		return f32(registers[0][lane]);
	}
}

static void take(struct matrices *m, const struct sim_gcn_wave *wave,
		 const struct sim_gcn_inst *inst)
{
	const u32 *const a[] = { wave->v[inst->src[0] - SIM_GCN_VGPR0],
				 wave->v[inst->src[0] - SIM_GCN_VGPR0 + 1] };
	const u32 *const b[] = { wave->v[inst->src[1] - SIM_GCN_VGPR0],
				 wave->v[inst->src[1] - SIM_GCN_VGPR0 + 1] };
	const struct shape *s = &m->shape;
	u32 lane, i, parts = SIM_GCN_LANES / s->side / s->blocks;

	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		for (i = 0; i < s->elements; i++) {
			u32 block = lane / s->side / parts, at = lane % s->side;
			u32 k = lane / s->side % parts * s->elements + i;

			m->a[(block * s->side + at) * s->depth + k] = element(s->kind, a, lane, i);
			m->b[(block * s->depth + k) * s->side + at] = element(s->kind, b, lane, i);
		}
}

/* One row of the first matrix, which is @a, with one of the second: of 4, 16 or 32 columns. */
static inline void add_row(u32 *sum, float a, const float *b, u32 side, bool is_integer)
{
	u32 column;

	for (column = 0; column < side; column++)
		sum[column] = is_integer ? sum[column] + (u32)(s32)(a * b[column])
					 : (u32)of32(fmaf(a, b[column], f32(sum[column])));
}

static void multiply(struct matrices *m)
{
	const struct shape *s = &m->shape;
	bool is_integer = s->kind == MATRIX_BYTES;
	u32 row, k;

	for (row = 0; row < s->blocks * s->side; row++)
		for (k = 0; k < s->depth; k++)
			add_row(m->sum + row * s->side, m->a[row * s->depth + k],
				m->b + (row / s->side * s->depth + k) * s->side, s->side,
				is_integer);
}

/* The place of a sum in register @i of a lane. Blocks of 4 rows lie side by side in the lanes, and
 * larger ones one behind the other in the registers. */
static u32 *sum_at(struct matrices *m, u32 i, u32 lane)
{
	u32 side = m->shape.side, registers = side * side / SIM_GCN_LANES;
	u32 block = side > GROUP ? i / registers : lane / side, row = i;

	if (side > GROUP)
		row = (i % registers / GROUP * (SIM_GCN_LANES / side) + lane / side) * GROUP +
		      i % GROUP;
	return &m->sum[(block * side + row) * side + lane % side];
}

void sim_gcn_matrix(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u32 added = inst->src[2], first = inst->dst - SIM_GCN_VGPR0, lane, i;
	struct matrices m;

	m.shape = shape_of(inst->op);
	take(&m, wave, inst);
	for (i = 0; i < inst->width[0]; i++)
		for (lane = 0; lane < SIM_GCN_LANES; lane++)
			*sum_at(&m, i, lane) = added >= SIM_GCN_VGPR0
						       ? wave->v[added - SIM_GCN_VGPR0 + i][lane]
						       : (u32)sim_gcn_constant(inst, added, 1);
	multiply(&m);
	for (i = 0; i < inst->width[0]; i++)
		for (lane = 0; lane < SIM_GCN_LANES; lane++)
			wave->v[first + i][lane] = *sum_at(&m, i, lane);
}
