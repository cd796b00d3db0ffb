// SPDX-License-Identifier: GPL-2.0-only
/* Floating point of the interpreter of GPU code against the processor: halves, divisions in the
 * steps that LLVM makes of them, and the classes of numbers. */
#include "gcn_floats.h"
#include "gcn_machine.h"

static bool is_same_float(float a, float b)
{
	return of32(a) == of32(b) || (isnan(a) && isnan(b));
}

static u64 compute(enum sim_gcn_op op, u64 a, u64 b, u64 c)
{
	struct sim_gcn_alu alu = { .src = { a, b, c } };

	return sim_gcn_compute(op, &alu);
}

static u32 bits_of_half(_Float16 half)
{
	uint16_t bits;

	memcpy(&bits, &half, sizeof(bits));
	return bits;
}

PLAIN_TEST(knows_each_half)
{
	u32 bits;

	for (bits = 0; bits < 0x10000; bits++) {
		uint16_t word = (uint16_t)bits;
		_Float16 half;

		memcpy(&half, &word, sizeof(half));
		if (!is_same_float(f16(bits), (float)half))
			fail_msg("the half 0x%04x", bits);
	}
}

/* Most values are near the middle between two halves, where the last bit decides. */
PLAIN_TEST(rounds_to_halves_as_the_processor)
{
	u32 round;

	for (round = 0; round < 1000000; round++) {
		double step = ldexp(1, (int)(random_number() % 45) - 36);
		double value = (double)(random_number() % 8192) * step / 2;

		value += round % 3 * step * 0x1p-20 - step * 0x1p-20;
		value = round & 1 ? -value : value;
		if (of16(value) != bits_of_half((_Float16)value))
			fail_msg("%a is not 0x%04llx", value, of16(value));
	}
	assert_int_equal(of16(65519.996), 0x7bff);
	assert_int_equal(of16(65520), 0x7c00);
	assert_int_equal(of16(-INFINITY), 0xfc00);
	assert_int_equal(of16(NAN), 0x7e00);
}

/* As LLVM divides if denormals are kept. */
static u64 divide(u64 n, u64 d)
{
	struct sim_gcn_alu scale_d = { .src = { d, d, n } }, scale_n = { .src = { n, d, n } }, fmas;
	u64 den = sim_gcn_compute(SIM_GCN_v_div_scale_f32, &scale_d), negative = den ^ 0x80000000;
	u64 num = sim_gcn_compute(SIM_GCN_v_div_scale_f32, &scale_n);
	u64 rcp = compute(SIM_GCN_v_rcp_f32, den, 0, 0), error, quotient;

	error = compute(SIM_GCN_v_fma_f32, negative, rcp, of32(1));
	rcp = compute(SIM_GCN_v_fma_f32, error, rcp, rcp);
	quotient = compute(SIM_GCN_v_mul_f32, num, rcp, 0);
	error = compute(SIM_GCN_v_fma_f32, negative, quotient, num);
	quotient = compute(SIM_GCN_v_fma_f32, error, rcp, quotient);
	error = compute(SIM_GCN_v_fma_f32, negative, quotient, num);
	fmas = (struct sim_gcn_alu){ .src = { error, rcp, quotient }, .carry = scale_n.carry };
	return compute(SIM_GCN_v_div_fixup_f32, sim_gcn_compute(SIM_GCN_v_div_fmas_f32, &fmas), d,
		       n);
}

/* Any bits but those of signalling NaN, or numbers around 1, or edges. */
static u64 some_float(void)
{
	u64 bits;

	static const u64 edges[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
				     0x00000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x3f800000 };

	switch (random_number() % 4) {
	case 0:
		return edges[random_number() % ARRAY_SIZE(edges)];
	case 1:
		return 0x3f000000 + random_number() % 0x2000000;
	default:
		bits = (u32)random_number();
		return isnan(f32(bits)) ? bits | 0x400000 : bits;
	}
}

PLAIN_TEST(divides_as_the_processor)
{
	u32 round;

	for (round = 0; round < 1000000; round++) {
		u64 n = some_float(), d = some_float();
		float want = f32(n) / f32(d);

		/* the steps round a denormal twice */
		if (is_denormal(want) ? fabsf(f32(divide(n, d)) - want) > 0x1p-149f
				      : !is_same_float(f32(divide(n, d)), want))
			fail_msg("0x%08llx / 0x%08llx is not 0x%08llx", n, d, divide(n, d));
	}
}

PLAIN_TEST(computes_floats_as_the_processor)
{
	u32 round;

	for (round = 0; round < 100000; round++) {
		u64 bits[] = { some_float(), some_float(), some_float() };
		float a = f32(bits[0]), b = f32(bits[1]), c = f32(bits[2]);
		const struct {
			enum sim_gcn_op op;
			float want;
		} rows[] = {
			{ SIM_GCN_v_add_f32, a + b },
			{ SIM_GCN_v_subrev_f32, b - a },
			{ SIM_GCN_v_mul_f32, a * b },
			{ SIM_GCN_v_fma_f32, fmaf(a, b, c) },
			{ SIM_GCN_v_max_f32, fmaxf(a, b) },
			{ SIM_GCN_v_max3_f32, fmaxf(fmaxf(a, b), c) },
			{ SIM_GCN_v_min_f32, fminf(a, b) },
			{ SIM_GCN_v_rndne_f32, nearbyintf(a) },
			{ SIM_GCN_v_trunc_f32, (float)trunc(a) },
			{ SIM_GCN_v_floor_f32, (float)floor(a) },
			{ SIM_GCN_v_sqrt_f32, (float)sqrt(a) },
			{ SIM_GCN_v_ldexp_f32, scalbnf(a, (s32)bits[1] % 300) },
		};
		u32 i;

		for (i = 0; i < ARRAY_SIZE(rows); i++) {
			bool shifts = rows[i].op == SIM_GCN_v_ldexp_f32;
			u64 second = shifts ? (u32)((s32)bits[1] % 300) : bits[1];
			float got = f32(compute(rows[i].op, bits[0], second, bits[2]));

			/* +0 and -0 are the same for the library's fmaxf() */
			if (got != rows[i].want && !is_same_float(got, rows[i].want))
				fail_msg("%s of %a, %a, %a: %a", sim_gcn_rows[rows[i].op].name, a,
					 b, c, got);
		}
	}
}

PLAIN_TEST(computes_halves_as_the_processor)
{
	u32 round;

	for (round = 0; round < 100000; round++) {
		u64 bits[] = { random_number() & 0xffff, random_number() & 0xffff };
		_Float16 a, b;

		memcpy(&a, &bits[0], sizeof(a));
		memcpy(&b, &bits[1], sizeof(b));
		assert_true(is_same_float(f16(compute(SIM_GCN_v_add_f16, bits[0], bits[1], 0)),
					  (float)(_Float16)(a + b)));
		assert_true(is_same_float(f16(compute(SIM_GCN_v_mul_f16, bits[0], bits[1], 0)),
					  (float)(_Float16)(a * b)));
	}
}

PLAIN_TEST(flushes_denormals_only_where_the_gpu_does)
{
	u64 tiny = 0x00400000, half = of32(0.5f), one = of32(1);

	assert_int_equal(compute(SIM_GCN_v_mul_f32, tiny, one, 0), tiny);
	assert_int_equal(compute(SIM_GCN_v_fma_f32, tiny, one, 0), tiny);
	assert_int_equal(compute(SIM_GCN_v_mad_f32, tiny, one, 0), 0);
	assert_int_equal(compute(SIM_GCN_v_mad_f32, 0x00800000, half, 0x80000000), 0);
	assert_int_equal(compute(SIM_GCN_v_exp_f32, of32(-127), 0, 0), 0);
	assert_int_equal(compute(SIM_GCN_v_exp_f32, of32(-126), 0, 0), 0x00800000);
}

PLAIN_TEST(knows_classes)
{
	static const u32 f32_bits[] = {
		0x7f800001, 0x7fc00000, 0xff800000, 0xbf800000, 0x80000001,
		0x80000000, 0,          0x00000001, 0x3f800000, 0x7f800000
	};
	static const u32 f16_bits[] = { 0x7c01, 0x7e00, 0xfc00, 0xbc00, 0x8001,
					0x8000, 0,      0x0001, 0x3c00, 0x7c00 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(f32_bits); i++) {
		assert_int_equal(class32(f32_bits[i]), 1u << i);
		assert_int_equal(class16(f16_bits[i]), 1u << i);
		/* f32() would make a signalling NaN quiet on some processors */
		if (i)
			assert_int_equal(class64(of64(f32(f32_bits[i]))),
					 i == 4 || i == 7 ? (i == 4 ? 1u << 3 : 1u << 8) : 1u << i);
	}
}
