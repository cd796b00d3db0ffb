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
static inline float element(enum matrix_kind kind, const u32 *const *registers, u32 lane, u32 i)
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
	u32 group, at, i, parts = SIM_GCN_LANES / s->side / s->blocks;

	for (group = 0; group < SIM_GCN_LANES / s->side; group++)
		for (i = 0; i < s->elements; i++) {
			u32 block = group / parts, k = group % parts * s->elements + i;
			u32 lane = group * s->side;

			for (at = 0; at < s->side; at++, lane++) {
				m->a[(block * s->side + at) * s->depth + k] =
					element(s->kind, a, lane, i);
				m->b[(block * s->depth + k) * s->side + at] =
					element(s->kind, b, lane, i);
			}
		}
}

/* Adds the products of one element of the first matrix with a row of the second one. */
static inline void add_row(u32 *sum, float a, const float *b, u32 side, bool is_integer)
{
	u32 column;

	for (column = 0; column < side; column++)
		sum[column] = is_integer ? sum[column] + (u32)(s32)(a * b[column])
					 : (u32)of32(fmaf(a, b[column], f32(sum[column])));
}

/* With constants as @side and @is_integer, the compiler makes vector instructions of the rows. */
static inline __attribute__((always_inline)) void multiply_rows(struct matrices *m, u32 side,
								bool is_integer)
{
	u32 depth = m->shape.depth, row, k;

	for (row = 0; row < m->shape.blocks * side; row++)
		for (k = 0; k < depth; k++)
			add_row(m->sum + row * side, m->a[row * depth + k],
				m->b + (row / side * depth + k) * side, side, is_integer);
}

static void multiply(struct matrices *m)
{
	bool is_integer = m->shape.kind == MATRIX_BYTES;

	switch (m->shape.side) {
	case 32:
		is_integer ? multiply_rows(m, 32, true) : multiply_rows(m, 32, false);
		break;
	case 16:
		is_integer ? multiply_rows(m, 16, true) : multiply_rows(m, 16, false);
		break;
	default:
		multiply_rows(m, GROUP, is_integer);
	}
}

/* The sums in register @i of the lanes of a group, which are a part of a row. Blocks of 4 rows lie
 * side by side in the lanes, and larger ones one behind the other in the registers. */
static u32 *sums_at(struct matrices *m, u32 i, u32 group)
{
	u32 side = m->shape.side, registers = side * side / SIM_GCN_LANES;
	u32 block = side > GROUP ? i / registers : group, row = i;

	if (side > GROUP)
		row = (i % registers / GROUP * (SIM_GCN_LANES / side) + group) * GROUP + i % GROUP;
	return &m->sum[(block * side + row) * side];
}

static void take_sums(struct matrices *m, const struct sim_gcn_wave *wave,
		      const struct sim_gcn_inst *inst)
{
	u32 side = m->shape.side, from = inst->src[2], i, group;

	if (from < SIM_GCN_VGPR0)
		for (i = 0; i < MOST_SUMS; i++)
			m->sum[i] = (u32)sim_gcn_constant(inst, from, 1);
	for (i = 0; from >= SIM_GCN_VGPR0 && i < inst->width[0]; i++)
		for (group = 0; group < SIM_GCN_LANES / side; group++)
			memcpy(sums_at(m, i, group),
			       &wave->v[from - SIM_GCN_VGPR0 + i][group * side], side * 4);
}

void sim_gcn_matrix(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst)
{
	u32 first = inst->dst - SIM_GCN_VGPR0, i, group, side;
	struct matrices m;

	m.shape = shape_of(inst->op);
	side = m.shape.side;
	take(&m, wave, inst);
	take_sums(&m, wave, inst);
	multiply(&m);
	for (i = 0; i < inst->width[0]; i++)
		for (group = 0; group < SIM_GCN_LANES / side; group++)
			memcpy(&wave->v[first + i][group * side], sums_at(&m, i, group), side * 4);
}
