// SPDX-License-Identifier: GPL-2.0-only
/* The interpreter of GPU code: kernels that clang has made give what the processor computes, single
 * instructions do with random operands, slices change nothing, and what is wrong is said. */
#include "gcn_floats.h"
#include "gcn_machine.h"

#define ITEMS 256u
#define A     (DATA + DATA_BYTES)
#define B     (A + DATA_BYTES)
#define C     (B + DATA_BYTES)

static u32 *words_at(u64 offset)
{
	return at(offset);
}

static void set_argument(u32 offset, u64 value)
{
	memcpy(at(ARGUMENTS + offset), &value, 8);
}

/* Runs a kernel of the listing with these arguments, in slices of @steps. */
#define RUN_KERNEL(name, items, group, steps, ...)                     \
	do {                                                           \
		const u64 arguments_[] = { __VA_ARGS__ };              \
                                                                       \
		memcpy(at(ARGUMENTS), arguments_, sizeof(arguments_)); \
		assert_int_equal(begin_kernel(name, items, group), 0); \
		assert_int_equal(run_kernel(steps), 1);                \
	} while (0)

static u64 counted(u64 sum, u32 item, u32 rounds)
{
	u64 round;

	for (round = 0; round < rounds; round++)
		sum = sum * 6364136223846793005ull + round + item;
	return sum;
}

#define MACHINE_TEST(name) TEST_WITH(name, set_up_machine, tear_down_machine)

/* Between two slices all of a dispatch is moved elsewhere, as when waves are saved. */
MACHINE_TEST(counts_in_slices_that_are_moved)
{
	u64 *cells = at(DATA), before[ITEMS];
	u32 i, slices = 0;
	int ret = 0;

	memcpy(before, cells, sizeof(before));
	set_argument(0, va(DATA));
	set_argument(8, 100);
	assert_int_equal(begin_kernel("count", ITEMS, 64), 0);
	for (; ret == 0; slices++) {
		struct sim_gcn_dispatch dispatch = machine.dispatch;
		size_t size = SIM_GCN_MAX_WAVES * sizeof(struct sim_gcn_wave);
		struct sim_gcn_group group;

		assert_int_equal(sim_gcn_group_init(&group, SIM_GCN_MAX_WAVES), 0);
		memcpy(group.waves, machine.group.waves, size);
		memcpy(group.lds, machine.group.lds, SIM_GCN_LDS_BYTES);
		memset(machine.group.waves, 0xd6, size);
		sim_gcn_group_done(&machine.group);
		machine.group = group;
		machine.dispatch = dispatch;
		ret = sim_gcn_run(&machine.dispatch, &machine.group, &machine.env, 50);
	}
	assert_int_equal(ret, 1);
	assert_in_range(slices, 20, 100000);
	for (i = 0; i < ITEMS; i++)
		assert_int_equal(cells[i], counted(before[i], i, 100));
}

/* An atomic that loses against the CPU is made again. */
MACHINE_TEST(counts_beside_others)
{
	u32 i, sum;

	sum = words_at(DATA)[0] + 3;
	for (i = 0; i < 256; i++)
		sum += words_at(A)[i];
	machine.interference = 3;
	RUN_KERNEL("reduce", 256, 256, 1000, va(DATA), va(A), 256);
	assert_int_equal(machine.interference, 0);
	assert_int_equal(words_at(DATA)[0], sum);
}

static u32 uneven_value(u32 id)
{
	u32 i, value = id;

	for (i = 0; i < (id & ~63u); i++)
		value = value * 3 + 1;
	return value;
}

MACHINE_TEST(waits_at_barriers)
{
	u32 i;

	RUN_KERNEL("uneven", 256, 256, 1000, va(DATA));
	for (i = 0; i < 256; i++)
		assert_int_equal(words_at(DATA)[i], uneven_value(255 - i));
}

#define SCRATCH_WAVE 5120u /* bytes of a wave, with which no other wave mixes */

static void give_scratch(u64 address)
{
	machine.dispatch.scratch = (struct sim_gcn_scratch){
		.resource = { (u32)address, (u32)(address >> 32) | 1u << 31, 4 * SCRATCH_WAVE,
			      0x00ea4fac },
		.address = address,
		.bytes = 4 * SCRATCH_WAVE,
		.wave_bytes = SCRATCH_WAVE,
	};
}

static u32 turned(const u32 *in, u32 i, u32 rounds)
{
	u32 part[16], k, index = in[i] & 15;

	for (k = 0; k < 16; k++)
		part[k] = in[(i + k) & 63] + k;
	for (k = 0; k < rounds; k++) {
		part[index] += k * i;
		index = part[(index + 5) & 15] & 15;
	}
	return part[index] + index;
}

MACHINE_TEST(keeps_arrays_in_private_memory)
{
	u32 i;

	give_scratch(va(C));
	/* GLOBAL_ID() is that of groups of 64 */
	RUN_KERNEL("turn", 64, 64, 50, va(DATA), va(A), 30);
	for (i = 0; i < 64; i++)
		assert_int_equal(words_at(DATA)[i], turned(words_at(A), i, 30));
}

MACHINE_TEST(refuses_a_kernel_without_its_private_memory)
{
	give_scratch(va(C));
	machine.dispatch.scratch.wave_bytes = 64 * 64;
	assert_int_equal(begin_kernel("turn", 64, 64), -EINVAL);
	give_scratch(va(C));
	machine.dispatch.scratch.bytes = SCRATCH_WAVE - 1;
	assert_int_equal(begin_kernel("turn", 64, 64), -EINVAL);
	assert_non_null(strstr(machine.complaint, "less private memory than its waves need"));
	set_argument(0, va(DATA));
	set_argument(8, va(A));
	give_scratch(va(C));
	machine.dispatch.scratch.resource[3] = 0x4fac; /* a buffer whose lanes are not swizzled */
	assert_int_equal(begin_kernel("turn", 64, 64), 0);
	assert_int_equal(run_kernel(1000), -EINVAL);
	assert_non_null(strstr(machine.complaint, "its buffer is no private memory"));
}

MACHINE_TEST(hashes)
{
	const u8 *text = at(A);
	u32 i, k;

	RUN_KERNEL("hash", ITEMS, 64, 1000, va(DATA), va(A), 50);
	for (i = 0; i < ITEMS; i++) {
		u32 h = 2166136261u ^ i;

		for (k = 0; k < 50; k++) {
			h = (h ^ text[k]) * 16777619u;
			if (h & 1)
				h = (h << 7 | h >> 25) +
				    (i % 3 == 0 ? 5 : (u32)__builtin_popcount(h));
		}
		assert_int_equal(words_at(DATA)[i], h);
	}
}

/* Divisions of integers are made of floats. */
MACHINE_TEST(divides)
{
	u32 i;

	for (i = 0; i < ITEMS; i++)
		words_at(C)[i] = words_at(C)[i] >> i % 31 | 1;
	RUN_KERNEL("divide", ITEMS, 64, 1000, va(DATA), va(A), va(B), va(C));
	for (i = 0; i < ITEMS; i++) {
		assert_int_equal(words_at(DATA)[i], words_at(B)[i] / words_at(C)[i]);
		assert_int_equal(words_at(A)[i], words_at(B)[i] % words_at(C)[i]);
	}
}

MACHINE_TEST(minds_signs)
{
	const int16_t *s = at(A);
	const int8_t *c = at(B);
	s64 *l = at(C), before[ITEMS];
	u32 i;

	memcpy(before, l, sizeof(before));
	RUN_KERNEL("signs", ITEMS, 64, 1000, va(DATA), va(A), va(B), va(C));
	for (i = 0; i < ITEMS; i++) {
		s64 product = (s64)((u64)(before[i] >> (i & 63)) * (u64)(s64)s[i]);

		assert_int_equal(words_at(DATA)[i], (u32)(s[i] * c[i] - (s[i] >> 3)));
		assert_int_equal(l[i], product < 0 ? -(u64)before[i] : (u64)(before[i] ^ c[i]));
	}
}

MACHINE_TEST(knows_three_dimensions)
{
	u32 x, y, z;

	machine.dispatch.grid[1] = 12, machine.dispatch.grid[2] = 6;
	machine.dispatch.workgroup[1] = 8, machine.dispatch.workgroup[2] = 2;
	RUN_KERNEL("grid", 20, 8, 1000, va(DATA), 20 | 12ull << 32);
	for (z = 0; z < 6; z++)
		for (y = 0; y < 12; y++)
			for (x = 0; x < 20; x++)
				assert_int_equal(words_at(DATA)[(z * 12 + y) * 20 + x],
						 x | y << 8 | z << 16);
}

MACHINE_TEST(names_what_it_does_not_know)
{
	assert_int_equal(begin_kernel("add", 64, 64), 0);
	words_at(CODE)[0] = 0xd3ee0000; /* a matrix instruction */
	assert_int_equal(run_kernel(1000), -EINVAL);
	assert_non_null(strstr(machine.complaint, "d3ee0000"));
	assert_non_null(strstr(machine.complaint, "0x100000000 is not known"));
}

MACHINE_TEST(reports_faults)
{
	set_argument(0, va(DATA));
	set_argument(8, va(A));
	set_argument(16, va(MEMORY_BYTES) - 8);
	set_argument(24, 200);
	assert_int_equal(begin_kernel("add", 64, 64), 0);
	assert_int_equal(run_kernel(1000), -EFAULT);
	/* code that is not there */
	assert_int_equal(begin_kernel("add", 64, 64), 0);
	machine.dispatch.entry = va(MEMORY_BYTES);
	machine.dispatch.begun = false;
	assert_int_equal(run_kernel(1000), -EFAULT);
}

MACHINE_TEST(keeps_to_its_lds)
{
	assert_int_equal(begin_kernel("reduce", 256, 256), 0);
	machine.dispatch.lds_bytes = 512;
	set_argument(0, va(DATA));
	set_argument(8, va(A));
	assert_int_equal(run_kernel(1000), -EFAULT);
	assert_non_null(strstr(machine.complaint, "not in the LDS"));
}

MACHINE_TEST(refuses_what_is_beyond_the_limits)
{
	assert_int_equal(begin_kernel("add", 64, 1025), -EINVAL);
	assert_int_equal(begin_kernel("add", 64, 0), -EINVAL);
	assert_int_equal(begin_kernel("add", 64, 64), 0);
	machine.dispatch.lds_bytes = SIM_GCN_LDS_BYTES + 1;
	assert_int_equal(sim_gcn_begin(&machine.dispatch, &machine.env), -EINVAL);
	assert_int_equal(begin_kernel("reduce", 256, 256), 0);
	machine.dispatch.lds_bytes = 0;
	assert_int_equal(sim_gcn_begin(&machine.dispatch, &machine.env), -EINVAL);
	assert_int_equal(begin_kernel("add", 64, 64), 0);
	machine.dispatch.descriptor[1] = 4; /* private memory */
	assert_int_equal(sim_gcn_begin(&machine.dispatch, &machine.env), -EINVAL);
	assert_non_null(strstr(machine.complaint, "private memory"));
}

/* An endless kernel does not keep its caller. */
MACHINE_TEST(ends_a_slice_of_what_never_ends)
{
	assert_int_equal(begin_kernel("add", 64, 64), 0);
	words_at(CODE)[0] = 0xbf82ffff; /* s_branch to itself */
	assert_int_equal(sim_gcn_run(&machine.dispatch, &machine.group, &machine.env, 5000), 0);
	assert_false(machine.dispatch.done);
}

/* What the processor makes of the same operands: a, b and c, then the carry. */
#define REFERENCE(op, expression)                                         \
	static u64 reference_##op(u64 a, u64 b, u64 c, bool carry)        \
	{                                                                 \
		u32 x = (u32)a, y = (u32)b, z = (u32)c;                   \
		s32 i = (s32)x, j = (s32)y;                               \
                                                                          \
		(void)x, (void)y, (void)z, (void)i, (void)j, (void)carry; \
		return (u64)(expression);                                 \
	}
#define REFERENCES(R)                                                             \
	R(s_add_u32, x + y)                                                       \
	R(s_addc_u32, x + y + carry)                                              \
	R(s_subb_u32, x - y - carry)                                              \
	R(s_min_i32, (u32)(i < j ? i : j))                                        \
	R(s_ashr_i32, (u32)(i >> y % 32))                                         \
	R(s_ashr_i64, (s64)a >> y % 64)                                           \
	R(s_bcnt1_i32_b64, __builtin_popcountll(a))                               \
	R(s_ff1_i32_b64, (u32)__builtin_ffsll((s64)a) - 1)                        \
	R(s_flbit_i32_b32, x ? (u32)__builtin_clz(x) : ~0u)                       \
	R(s_sext_i32_i16, (u32)(int16_t)x)                                        \
	R(s_mul_hi_i32, (u32)((s64)i * j >> 32))                                  \
	R(v_mul_i32_i24, (u32)(((s32)(x << 8) >> 8) * (s64)((s32)(y << 8) >> 8))) \
	R(v_mul_hi_u32, (u32)((unsigned __int128)x * y >> 32))                    \
	R(v_mad_u64_u32, (u64)x *y + c)                                           \
	R(v_subrev_co_u32, y - x)                                                 \
	R(v_addc_co_u32, x + y + carry)                                           \
	R(v_ashrrev_i32, (u32)(j >> x % 32))                                      \
	R(v_ashrrev_i64, (s64)b >> x % 64)                                        \
	R(v_lshrrev_b64, b >> x % 64)                                             \
	R(v_bfe_u32, z % 32 ? x >> y % 32 & (~0u >> (32 - z % 32)) : 0)           \
	R(v_bfi_b32, z ^ (x & (y ^ z)))                                           \
	R(v_alignbit_b32, z % 32 ? x << (32 - z % 32) | y >> z % 32 : y)          \
	R(v_lshl_add_u32, (x << y % 32) + z)                                      \
	R(v_bfrev_b32, __builtin_bswap32(bits_reversed_in_bytes(x)))              \
	R(v_sad_u32, (u32)llabs((s64)x - (s64)y) + z)                             \
	R(v_ashrrev_i16, (u16)((int16_t)y >> x % 16))                             \
	R(v_cndmask_b32, carry ? y : x)

static u32 bits_reversed_in_bytes(u32 x)
{
	x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
	x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
	return (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
}

REFERENCES(REFERENCE)

static const struct {
	enum sim_gcn_op op;
	u64 (*reference)(u64 a, u64 b, u64 c, bool carry);
} references[] = {
#define ROW(op, expression) { SIM_GCN_##op, reference_##op },
	REFERENCES(ROW)
};

static u64 operand(u32 dwords)
{
	static const u64 edges[] = { 0, 1, ~0ull, 0x7fffffff, 0x80000000, 1ull << 63, ~0ull >> 1 };
	u64 value = random_number() & 1 ? random_number() : edges[random_number() % 7];

	return dwords == 1 ? (u32)value : value;
}

PLAIN_TEST(computes_as_the_processor)
{
	u32 i, round;

	for (i = 0; i < ARRAY_SIZE(references); i++) {
		const struct sim_gcn_row *row = &sim_gcn_rows[references[i].op];

		for (round = 0; round < 3000; round++) {
			struct sim_gcn_alu alu = { .carry = random_number() & 1 };
			u64 want, a = operand(row->width[1]), b = operand(row->width[2]),
				  c = operand(row->width[3]);

			alu.src[0] = a, alu.src[1] = b, alu.src[2] = c;
			want = references[i].reference(a, b, c, alu.carry);
			if (sim_gcn_compute(references[i].op, &alu) != want)
				fail_msg("%s of 0x%llx 0x%llx 0x%llx", row->name, a, b, c);
		}
	}
}

static void fill(u32 *registers, u32 count)
{
	while (count--)
		registers[count] = (u32)operand(1);
}

static u64 at_lane(const u32 registers[2][SIM_GCN_LANES], u32 dwords, u32 lane)
{
	if (!dwords)
		return 0;
	return registers[0][lane] | (dwords > 1 ? (u64)registers[1][lane] << 32 : 0);
}

/* The processor does not say which of two NaN it keeps. */
static bool is_same32(u64 a, u64 b)
{
	return (u32)a == (u32)b || (isnan(f32(a)) && isnan(f32(b)));
}

static bool is_same(const struct sim_gcn_row *row, u64 a, u64 b)
{
	if (a == b || !(row->flags & SIM_GCN_FLOAT))
		return a == b;
	if (row->flags & SIM_GCN_PACKED_WIDE)
		return is_same32(a, b) && is_same32(a >> 32, b >> 32);
	return row->width[0] == 2 ? isnan(f64(a)) && isnan(f64(b)) : is_same32(a, b);
}

PLAIN_TEST(computes_all_lanes_as_each_by_itself)
{
	static u32 src[3][2][SIM_GCN_LANES];
	static struct sim_gcn_lanes lanes;
	u32 op, lane, i;

	for (op = 1; op < SIM_GCN_v_cmp; op++) {
		const struct sim_gcn_row *row = &sim_gcn_rows[op];
		u64 carries = random_number();

		if (row->format < SIM_GCN_VOP1 || row->format > SIM_GCN_VOP3)
			continue;
		fill(&src[0][0][0], ARRAY_SIZE(src) * 2 * SIM_GCN_LANES);
		for (i = 0; i < 6; i++)
			lanes.src[i / 2][i % 2] = src[i / 2][i % 2];
		lanes.old = src[2][1];
		lanes.carries = carries;
		sim_gcn_compute_lanes(op, &lanes);
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {
			struct sim_gcn_alu alu = { .carry = carries >> lane & 1,
						   .old = lanes.old[lane],
						   .lane = lane };
			u64 want, accumulated = row->flags & SIM_GCN_ACCUMULATES ? row->width[0]
										 : row->width[3];

			for (i = 0; i < 3; i++)
				alu.src[i] = at_lane(src[i],
						     i < 2 ? row->width[i + 1] : accumulated, lane);
			want = sim_gcn_compute(op, &alu);
			if (row->width[0] &&
			    !is_same(row, at_lane(lanes.result, row->width[0], lane), want))
				fail_msg("%s, lane %u", row->name, lane);
			if (row->flags & SIM_GCN_CARRY_OUT &&
			    (lanes.carries >> lane & 1) != alu.carry)
				fail_msg("%s, the carry of lane %u", row->name, lane);
		}
	}
}

PLAIN_TEST(carries_as_the_processor)
{
	u32 round, sum;

	for (round = 0; round < 3000; round++) {
		u32 a = (u32)operand(1), b = (u32)operand(1);
		struct sim_gcn_alu alu = { .src = { a, b } };

		(void)sim_gcn_compute(SIM_GCN_v_add_co_u32, &alu);
		assert_int_equal(alu.carry, __builtin_add_overflow(a, b, &sum));
		(void)sim_gcn_compute(SIM_GCN_s_add_i32, &alu);
		assert_int_equal(alu.carry, __builtin_add_overflow((s32)a, (s32)b, (s32 *)&sum));
		(void)sim_gcn_compute(SIM_GCN_v_sub_co_u32, &alu);
		assert_int_equal(alu.carry, __builtin_sub_overflow(a, b, &sum));
		/* v_cmp_ge_i32 and v_cmp_lt_u64 */
		assert_int_equal(sim_gcn_compare(0xc6, a, b), (s32)a >= (s32)b);
		assert_int_equal(sim_gcn_compare(0xe9, a * 3ull, b), a * 3ull < b);
		assert_int_equal(sim_gcn_compare(0xe5, ~0ull, b), true);
	}
}
