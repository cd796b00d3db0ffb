// SPDX-License-Identifier: GPL-2.0-only
/* Floating point of the interpreter of GPU code against the processor: halves, divisions in the
 * steps that LLVM makes of them, and the classes of numbers. */
#include "gcn_division.h"
#include "gcn_machine.h"
#include "gcn_trig.h"

static bool is_same_float(float a, float b)
{
	return of32(a) == of32(b) || (isnan(a) && isnan(b));
}

static bool is_same_double(double a, double b)
{
	return of64(a) == of64(b) || (isnan(a) && isnan(b));
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

/* As LLVM divides v2 by v3 if denormals are kept, and v[2:3] by v[4:5]. */
static const u32 division_of_floats[] = {
	0xd1e00004, 0x040a0703, /* v_div_scale_f32 v4, s[0:1], v3, v3, v2 */
	0x7e0a4504,             /* v_rcp_f32_e32 v5, v4 */
	0xd1e06a06, 0x040a0702, /* v_div_scale_f32 v6, vcc, v2, v3, v2 */
	0xd1cb0007, 0x23ca0b04, /* v_fma_f32 v7, -v4, v5, 1.0 */
	0x760a0b07,             /* v_fmac_f32_e32 v5, v7, v5 */
	0x0a0e0b06,             /* v_mul_f32_e32 v7, v6, v5 */
	0xd1cb0008, 0x241a0f04, /* v_fma_f32 v8, -v4, v7, v6 */
	0x760e0b08,             /* v_fmac_f32_e32 v7, v8, v5 */
	0xd1cb0004, 0x241a0f04, /* v_fma_f32 v4, -v4, v7, v6 */
	0xd1e20004, 0x041e0b04, /* v_div_fmas_f32 v4, v4, v5, v7 */
	0xd1de0002, 0x040a0704, /* v_div_fixup_f32 v2, v4, v3, v2 */
	0xbf810000,             /* s_endpgm */
};
static const u32 division_of_doubles[] = {
	0xd1e10006, 0x040a0904, /* v_div_scale_f64 v[6:7], s[0:1], v[4:5], v[4:5], v[2:3] */
	0x7e104b06,             /* v_rcp_f64_e32 v[8:9], v[6:7] */
	0xd1e16a0a, 0x040a0902, /* v_div_scale_f64 v[10:11], vcc, v[2:3], v[4:5], v[2:3] */
	0xd1cc000c, 0x23ca1106, /* v_fma_f64 v[12:13], -v[6:7], v[8:9], 1.0 */
	0x08101908,             /* v_fmac_f64_e32 v[8:9], v[8:9], v[12:13] */
	0xd1cc000c, 0x23ca1106, /* v_fma_f64 v[12:13], -v[6:7], v[8:9], 1.0 */
	0x08101908,             /* v_fmac_f64_e32 v[8:9], v[8:9], v[12:13] */
	0xd281000c, 0x0002110a, /* v_mul_f64 v[12:13], v[10:11], v[8:9] */
	0xd1cc0006, 0x242a1906, /* v_fma_f64 v[6:7], -v[6:7], v[12:13], v[10:11] */
	0xd1e30006, 0x04321106, /* v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[12:13] */
	0xd1df0002, 0x040a0906, /* v_div_fixup_f64 v[2:3], v[6:7], v[4:5], v[2:3] */
	0xbf810000,             /* s_endpgm */
};

/* Code that divides. Numbers have @width dwords. */
struct code {
	const u32 *words;
	u32 bytes, width;
};
static const struct code divides_floats = { division_of_floats, sizeof(division_of_floats), 1 };
static const struct code divides_doubles = { division_of_doubles, sizeof(division_of_doubles), 2 };

/* Divides in all lanes of a wave. */
static void divide(const struct code *code, const u64 *n, const u64 *d, u64 *quotients)
{
	struct sim_gcn_wave *wave = &machine.group.waves[0];
	u32 lane, i;

	machine.dispatch = (struct sim_gcn_dispatch){ .num_waves = 1, .begun = true };
	memset(wave, 0, sizeof(*wave));
	wave->pc = va(CODE);
	sim_gcn_set_pair(wave, SIM_GCN_EXEC, ~0ull);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		for (i = 0; i < code->width; i++) {
			wave->v[2 + i][lane] = (u32)(n[lane] >> 32 * i);
			wave->v[2 + code->width + i][lane] = (u32)(d[lane] >> 32 * i);
		}
	memcpy(at(CODE), code->words, code->bytes);
	memset(machine.group.code, 0, SIM_GCN_CACHED_INSTRUCTIONS * sizeof(*machine.group.code));
	if (sim_gcn_run(&machine.dispatch, &machine.group, &machine.env, 100) != 1)
		fail_msg("%s", machine.complaint);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		quotients[lane] =
			wave->v[2][lane] | (code->width > 1 ? (u64)wave->v[3][lane] << 32 : 0);
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

/* The same of 64 bits. */
static u64 some_double(void)
{
	static const u64 edges[] = {
		0, 1ull << 63,         0x7ffull << 52,     0xfffull << 52,     0x7ff8ull << 48,
		1, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x3ff0000000000000
	};
	u64 bits = random_number();

	switch (random_number() % 4) {
	case 0:
		return edges[random_number() % ARRAY_SIZE(edges)];
	case 1:
		return 0x3fe0000000000000 + bits % (1ull << 54);
	default:
		return isnan(f64(bits)) ? bits | 1ull << 51 : bits;
	}
}

#define FLOAT_TEST(name) TEST_WITH(name, set_up_machine, tear_down_machine)

FLOAT_TEST(divides_floats_as_the_processor)
{
	u64 n[SIM_GCN_LANES], d[SIM_GCN_LANES], got[SIM_GCN_LANES];
	u32 round, i;

	for (round = 0; round < 20000; round++) {
		for (i = 0; i < SIM_GCN_LANES; i++)
			n[i] = some_float(), d[i] = some_float();
		divide(&divides_floats, n, d, got);
		for (i = 0; i < SIM_GCN_LANES; i++) {
			float want = f32(n[i]) / f32(d[i]);

			/* the steps round a denormal twice */
			if (is_denormal(&of_floats, want) ? fabsf(f32(got[i]) - want) > 0x1p-149f
							  : !is_same_float(f32(got[i]), want))
				fail_msg("0x%08llx / 0x%08llx is not 0x%08llx", n[i], d[i], got[i]);
		}
	}
}

FLOAT_TEST(divides_doubles_as_the_processor)
{
	u64 n[SIM_GCN_LANES], d[SIM_GCN_LANES], got[SIM_GCN_LANES];
	u32 round, i;

	for (round = 0; round < 20000; round++) {
		for (i = 0; i < SIM_GCN_LANES; i++)
			n[i] = some_double(), d[i] = some_double();
		divide(&divides_doubles, n, d, got);
		for (i = 0; i < SIM_GCN_LANES; i++) {
			double want = f64(n[i]) / f64(d[i]);

			if (is_denormal(&of_doubles, want) ? fabs(f64(got[i]) - want) > 0x1p-1074
							   : !is_same_double(f64(got[i]), want))
				fail_msg("0x%016llx / 0x%016llx is not 0x%016llx", n[i], d[i],
					 got[i]);
		}
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

PLAIN_TEST(leaves_a_fraction_less_than_one)
{
	u32 round;

	for (round = 0; round < 100000; round++) {
		double value = f64(some_double());
		double got = f64(compute(SIM_GCN_v_fract_f64, of64(value), 0, 0));

		if (isnan(value) || isinf(value))
			assert_true(isnan(got));
		else if (got != value - floor(value))
			assert_true(value < 0 && value > -0x1p-53 && got == 0x1.fffffffffffffp-1);
	}
}

/* The product of two doubles, without whole turns of four quarters. */
static long double quarters(double a, double b)
{
	int exponent_a, exponent_b, exponent;
	unsigned __int128 product = (u64)(frexp(a, &exponent_a) * 0x1p53);

	product *= (u64)(frexp(b, &exponent_b) * 0x1p53);
	exponent = exponent_a + exponent_b - 106;
	if (exponent >= 2)
		return 0;
	if (exponent > -126)
		product &= ((unsigned __int128)1 << (2 - exponent)) - 1;
	return ldexpl((long double)product, exponent);
}

/* As LLVM's library finds the angle of a large number: three parts have enough bits. */
PLAIN_TEST(finds_angles_as_the_processor)
{
	u32 round, part;

	for (round = 0; round < 100000; round++) {
		u64 bits = (random_number() & ((1ull << 52) - 1)) |
			   (1054 + random_number() % (2047 - 1054)) << 52;
		double value = f64(bits), scaled = bits >> 52 < 1968 ? value : value * 0x1p-128;
		long double angle = 0;

		for (part = 0; part < 3; part++)
			angle += quarters(f64(compute(SIM_GCN_v_trig_preop_f64, bits, part, 0)),
					  scaled);
		angle *= acosl(0);
		if (fabsl(sinl(angle) - (long double)sin(value)) > 0x1p-50L ||
		    fabsl(cosl(angle) - (long double)cos(value)) > 0x1p-50L)
			fail_msg("the angle of %a is not %La", value, angle);
	}
	assert_true(f64(compute(SIM_GCN_v_trig_preop_f64, 0, 0, 0)) == 0x1.45f306dc9c882p-1);
	assert_true(f64(compute(SIM_GCN_v_trig_preop_f64, 0, 31, 0)) == 0);
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
