/* SPDX-License-Identifier: GPL-2.0-only */
/* Floating point for the expressions in gcn_ops.h, computed by the processor. Both follow IEEE 754:
 * values are rounded to the nearest, and denormals are kept. Approximations of the GPU
 * (reciprocals, roots, powers, logarithms) are as exact here as the processor's. */
#ifndef SIM_GCN_FLOATS_H
#define SIM_GCN_FLOATS_H

#include <math.h>

#include "sim_env.h"

static inline float f32(u64 bits)
{
	u32 low = (u32)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

static inline double f64(u64 bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline u64 of32(float value)
{
	u32 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline u64 of64(double value)
{
	u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* The value of a half, which a float holds exactly. */
static inline float f16(u64 bits)
{
	u32 low = (u32)bits, word = (low & 0x7fff) << 13;
	float value = f32(word) * 0x1p112f;

	word = (u32)of32(value) | ((low & 0x7c00) == 0x7c00 ? 0x7f800000 : 0);
	return f32(word | (low & 0x8000) << 16);
}

/* Rounds to the nearest half once: an addend whose last bit is the half's last bit does it. Small
 * halves count units of 2^-24, which a larger addend moves to the lowest bits. Without branches the
 * compiler can do it for several lanes at once. */
static inline u64 of16(double value)
{
	u64 sign = of64(value) >> 48 & 0x8000, normal, small, finite;
	double size = fabs(value), addend, rounded;

	addend = f64((of64(size < 0x1p-14 ? 0x1p-14 : size) & 0x7ffull << 52) + (42ull << 52));
	rounded = (size + addend) - addend;
	small = of64(rounded * 0x1p24 + 0x1p52) & 0x7ff;
	normal = (of64(rounded) >> 42) - ((1023 - 15) << 10);
	finite = sign | (rounded < 0x1p-14 ? small : normal);
	finite = size < 65520.0 ? finite : sign | 0x7c00;
	return isnan(value) ? 0x7e00 : finite;
}

/* Codes of comparisons, bits 2:0: true where less, equal, greater; with bit 3 the opposite of
 * 15 - code. */
static inline bool compares(u32 code, double a, double b)
{
	u32 test = code & 8 ? 7 - (code & 7) : code & 7;
	bool result = (test & 1 && a < b) || (test & 2 && a == b) || (test & 4 && a > b);

	return code & 8 ? !result : result;
}

/* Conversions to integers round towards zero. A value out of range becomes the nearest one in
 * range, and NaN becomes 0. */
static inline u32 to_u32(double value)
{
	if (!(value > 0))
		return 0;
	return value >= 4294967295.0 ? 0xffffffff : (u32)value;
}

static inline u32 to_s32(double value)
{
	if (isnan(value))
		return 0;
	if (value <= -2147483648.0)
		return 0x80000000;
	return value >= 2147483647.0 ? 0x7fffffff : (u32)(s32)value;
}

static inline u32 to_u16(float value)
{
	if (!(value > 0))
		return 0;
	return value >= 65535.0f ? 0xffff : (u32)value;
}

static inline u32 to_s16(float value)
{
	if (isnan(value))
		return 0;
	if (value <= -32768.0f)
		return 0x8000;
	return value >= 32767.0f ? 0x7fff : (u32)(s32)value & 0xffff;
}

/* Two floats of 32 bits, or two of 16 bits. */
static inline u64 pair32(float low, float high)
{
	return of32(low) | of32(high) << 32;
}

static inline u64 pair16(double low, double high)
{
	return of16(low) | of16(high) << 16;
}

/* The sum of two products of halves and of @c, rounded after each step. */
static inline u64 dot16(u64 a, u64 b, float c)
{
	return of32(fmaf(f16(a >> 16), f16(b >> 16), fmaf(f16(a), f16(b), c)));
}

/* Less than 1, also for the least negative numbers. */
static inline float fract(float value)
{
	return isfinite(value) ? fminf(value - floorf(value), 0x1.fffffep-1f) : value - value;
}

static inline double fract64(double value)
{
	return isfinite(value) ? fmin(value - floor(value), 0x1.fffffffffffffp-1) : value - value;
}

/* Denormals count as zero where this generation cannot take them (v_mac_f32 and v_mad_f32). */
static inline float normal(float value)
{
	return fabsf(value) < 0x1p-126f ? copysignf(0.0f, value) : value;
}

static inline u64 mac(float a, float b, float c)
{
	float product = normal(normal(a) * normal(b));

	return of32(normal(product + normal(c)));
}

/* A number wins against NaN, and -0 is less than 0. */
static inline double smaller(double a, double b)
{
	return a < b || isnan(b) || (a == b && signbit(a)) ? a : b;
}

static inline double larger(double a, double b)
{
	return a > b || isnan(b) || (a == b && signbit(b)) ? a : b;
}

/* The one of three between the others. */
static inline double middle_float(double a, double b, double c)
{
	return larger(smaller(a, b), smaller(larger(a, b), c));
}

/* The classes of v_cmp_class: a bit for each, in the order of the manual. */
static inline u32 class_of(bool negative, bool quiet, int kind)
{
	switch (kind) {
	case FP_NAN:
		return quiet ? 2 : 1;
	case FP_INFINITE:
		return negative ? 1u << 2 : 1u << 9;
	case FP_NORMAL:
		return negative ? 1u << 3 : 1u << 8;
	case FP_SUBNORMAL:
		return negative ? 1u << 4 : 1u << 7;
	default:
		return negative ? 1u << 5 : 1u << 6;
	}
}

static inline u32 class16(u64 bits)
{
	u32 exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
	int kind = exponent ? FP_NORMAL : fraction ? FP_SUBNORMAL : FP_ZERO;

	if (exponent == 0x1f)
		kind = fraction ? FP_NAN : FP_INFINITE;
	return class_of(bits >> 15 & 1, fraction >> 9, kind);
}

static inline u32 class32(u64 bits)
{
	return class_of(bits >> 31 & 1, bits >> 22 & 1, fpclassify(f32(bits)));
}

static inline u32 class64(u64 bits)
{
	return class_of(bits >> 63, bits >> 51 & 1, fpclassify(f64(bits)));
}

/* v_frexp: 0, infinities and NaN have the exponent 0. */
static inline u32 exponent_of(double value)
{
	int exponent = 0;

	if (isfinite(value))
		(void)frexp(value, &exponent);
	return (u32)exponent;
}

static inline double fraction_of(double value)
{
	int exponent;

	return isfinite(value) ? frexp(value, &exponent) : value;
}

#endif
