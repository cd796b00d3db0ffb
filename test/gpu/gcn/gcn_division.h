/* SPDX-License-Identifier: GPL-2.0-only */
/* The steps of a division for the expressions in gcn_ops.h: v_div_scale keeps its operands in a
 * range where the approximations are exact, v_div_fmas takes the scale back, v_div_fixup knows the
 * special cases. Numbers of both sizes are computed as doubles, which hold each float exactly. */
#ifndef SIM_GCN_DIVISION_H
#define SIM_GCN_DIVISION_H

#include "gcn_floats.h"

/* What differs between numbers of 32 and of 64 bits. */
struct division {
	u32 bits, fraction; /* of a number, of its fraction */
	s32 scale;          /* the power of two */
	s32 near_largest;   /* difference of exponents from which a quotient may be too large */
	s32 tiny;           /* numerators up to this exponent lose bits in the steps */
	s32 underflow;      /* difference of exponents below which a quotient is 0 */
	double least;       /* the least number that is no denormal */
};

static const struct division of_floats = { 32, 23, 64, 96, 23, -150, 0x1p-126 };
static const struct division of_doubles = { 64, 52, 128, 768, 53, -1075, 0x1p-1022 };

static inline double div_number(const struct division *kind, u64 bits)
{
	return kind->bits == 32 ? f32(bits) : f64(bits);
}

static inline u64 div_bits(const struct division *kind, double value)
{
	return kind->bits == 32 ? of32((float)value) : of64(value);
}

static inline u64 div_sign(const struct division *kind)
{
	return 1ull << (kind->bits - 1);
}

static inline u64 div_infinity(const struct division *kind)
{
	return div_sign(kind) - (1ull << kind->fraction);
}

static inline u64 div_quiet(const struct division *kind)
{
	return 1ull << (kind->fraction - 1);
}

static inline s32 div_exponent(const struct division *kind, u64 bits)
{
	return (s32)((bits & div_infinity(kind)) >> kind->fraction);
}

static inline u64 div_shifted(const struct division *kind, u64 bits, s32 shift)
{
	return div_bits(kind, ldexp(div_number(kind, bits), shift));
}

/* Whether @value, rounded to a number of this size, is a denormal. 0 is no denormal. */
static inline bool is_denormal(const struct division *kind, double value)
{
	double rounded = div_number(kind, div_bits(kind, value));

	return rounded != 0 && fabs(rounded) < kind->least;
}

/* @value is the numerator or the denominator. */
static inline u64 div_scale(const struct division *kind, u64 value, u64 denominator, u64 numerator,
			    bool *ret_scaled)
{
	double d = div_number(kind, denominator), n = div_number(kind, numerator);
	bool tiny_reciprocal = is_denormal(kind, 1 / d), tiny = is_denormal(kind, n / d);
	s32 distance = div_exponent(kind, numerator) - div_exponent(kind, denominator);
	s32 scale = kind->scale;

	*ret_scaled = false;
	if (d == 0 || n == 0)
		return div_infinity(kind) | div_quiet(kind);
	if (distance >= kind->near_largest) {
		*ret_scaled = true;
		return value == denominator ? div_shifted(kind, value, scale) : value;
	}
	if (is_denormal(kind, d))
		return div_shifted(kind, value, scale);
	if (tiny_reciprocal && tiny) {
		*ret_scaled = true;
		return value == denominator ? div_shifted(kind, value, -scale) : value;
	}
	if (tiny_reciprocal)
		return div_shifted(kind, value, -scale);
	if (tiny) {
		*ret_scaled = true;
		return value == numerator ? div_shifted(kind, value, scale) : value;
	}
	return div_exponent(kind, numerator) <= kind->tiny ? div_shifted(kind, value, scale)
							   : value;
}

/* @sum is that of the product and of @quotient. */
static inline u64 div_fmas(const struct division *kind, u64 sum, u64 quotient, bool scaled)
{
	bool is_large = div_exponent(kind, quotient) > div_exponent(kind, div_bits(kind, 1));

	return scaled ? div_shifted(kind, sum, is_large ? kind->scale : -kind->scale) : sum;
}

static inline u64 div_fixup(const struct division *kind, u64 quotient, u64 denominator,
			    u64 numerator)
{
	double d = div_number(kind, denominator), n = div_number(kind, numerator);
	u64 sign = (denominator ^ numerator) & div_sign(kind);

	if (isnan(n) || isnan(d))
		return (isnan(n) ? numerator : denominator) | div_quiet(kind);
	if ((d == 0 && n == 0) || (isinf(d) && isinf(n)))
		return div_sign(kind) | div_infinity(kind) | div_quiet(kind);
	if (d == 0 || isinf(n))
		return sign | div_infinity(kind);
	if (isinf(d) || n == 0 ||
	    div_exponent(kind, numerator) - div_exponent(kind, denominator) < kind->underflow)
		return sign;
	/* the steps make NaN of a quotient that is too large */
	return sign | (isnan(div_number(kind, quotient)) ? div_infinity(kind)
							 : quotient & (div_sign(kind) - 1));
}

static inline u64 div_fmas32(u64 a, u64 b, u64 c, bool scaled)
{
	return div_fmas(&of_floats, of32(fmaf(f32(a), f32(b), f32(c))), c, scaled);
}

static inline u64 div_fmas64(u64 a, u64 b, u64 c, bool scaled)
{
	return div_fmas(&of_doubles, of64(fma(f64(a), f64(b), f64(c))), c, scaled);
}

#endif
