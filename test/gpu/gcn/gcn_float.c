// SPDX-License-Identifier: GPL-2.0-only
/* Floating point for the interpreter of GPU code, computed by the processor. Both follow IEEE 754,
 * with two exceptions: reciprocals are exact here, and denormals are always kept. */
#include <math.h>

#include "gcn.h"

static float to_f32(u64 bits)
{
	u32 low = (u32)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

static double to_f64(u64 bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static u64 from_f32(float value)
{
	u32 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static u64 from_f64(double value)
{
	u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Codes, bits 2:0: true where less, equal, greater; with bit 3 the opposite of 15 - code. */
static bool compare(u32 code, double a, double b)
{
	u32 test = code & 8 ? 7 - (code & 7) : code & 7;
	bool result = (test & 1 && a < b) || (test & 2 && a == b) || (test & 4 && a > b);

	return code & 8 ? !result : result;
}

/* Rounds towards zero. A value out of range becomes the nearest one in range, and NaN becomes 0. */
static u32 to_unsigned(double value)
{
	if (!(value > 0))
		return 0;
	return value >= 4294967295.0 ? 0xffffffff : (u32)value;
}

static u32 to_signed(double value)
{
	if (isnan(value))
		return 0;
	if (value <= -2147483648.0)
		return 0x80000000;
	return value >= 2147483647.0 ? 0x7fffffff : (u32)(s32)value;
}

static int convert(enum sim_gcn_op op, u64 bits, u64 *ret_value)
{
	switch (op) {
	case SIM_GCN_v_cvt_i32_f64:
		*ret_value = to_signed(to_f64(bits));
		return 0;
	case SIM_GCN_v_cvt_i32_f32:
		*ret_value = to_signed(to_f32(bits));
		return 0;
	case SIM_GCN_v_cvt_u32_f64:
		*ret_value = to_unsigned(to_f64(bits));
		return 0;
	case SIM_GCN_v_cvt_u32_f32:
		*ret_value = to_unsigned(to_f32(bits));
		return 0;
	case SIM_GCN_v_cvt_f64_i32:
		*ret_value = from_f64((s32)bits);
		return 0;
	case SIM_GCN_v_cvt_f64_u32:
		*ret_value = from_f64((u32)bits);
		return 0;
	case SIM_GCN_v_cvt_f32_i32:
		*ret_value = from_f32((float)(s32)bits);
		return 0;
	case SIM_GCN_v_cvt_f32_u32:
		*ret_value = from_f32((float)(u32)bits);
		return 0;
	case SIM_GCN_v_cvt_f32_f64:
		*ret_value = from_f32((float)to_f64(bits));
		return 0;
	case SIM_GCN_v_cvt_f64_f32:
		*ret_value = from_f64(to_f32(bits));
		return 0;
	default:
		return -SIM_ENOTSUPP;
	}
}

static int compute32(enum sim_gcn_op op, float a, float b, float c, float *ret_value)
{
	switch (op) {
	case SIM_GCN_v_add_f32:
		*ret_value = a + b;
		return 0;
	case SIM_GCN_v_sub_f32:
		*ret_value = a - b;
		return 0;
	case SIM_GCN_v_subrev_f32:
		*ret_value = b - a;
		return 0;
	case SIM_GCN_v_mul_f32:
		*ret_value = a * b;
		return 0;
	case SIM_GCN_v_min_f32:
		*ret_value = fminf(a, b);
		return 0;
	case SIM_GCN_v_max_f32:
		*ret_value = fmaxf(a, b);
		return 0;
	case SIM_GCN_v_fma_f32:
	case SIM_GCN_v_fmac_f32:
		*ret_value = fmaf(a, b, c);
		return 0;
	case SIM_GCN_v_rcp_f32:
	case SIM_GCN_v_rcp_iflag_f32:
		*ret_value = 1.0f / a;
		return 0;
	default:
		return -SIM_ENOTSUPP;
	}
}

static int compute64(enum sim_gcn_op op, double a, double b, double c, double *ret_value)
{
	switch (op) {
	case SIM_GCN_v_add_f64:
		*ret_value = a + b;
		return 0;
	case SIM_GCN_v_mul_f64:
		*ret_value = a * b;
		return 0;
	case SIM_GCN_v_fma_f64:
		*ret_value = fma(a, b, c);
		return 0;
	default:
		return -SIM_ENOTSUPP;
	}
}

int sim_gcn_float(enum sim_gcn_op op, u32 code, const u64 *src, u64 *ret_value)
{
	float f32;
	double f64;
	int ret;

	if (op == SIM_GCN_v_cmp) {
		*ret_value = code & 0x20 ? compare(code, to_f64(src[0]), to_f64(src[1]))
					 : compare(code, to_f32(src[0]), to_f32(src[1]));
		return 0;
	}
	ret = convert(op, src[0], ret_value);
	if (ret == 0)
		return 0;
	ret = compute32(op, to_f32(src[0]), to_f32(src[1]), to_f32(src[2]), &f32);
	if (ret == 0) {
		*ret_value = from_f32(f32);
		return 0;
	}
	ret = compute64(op, to_f64(src[0]), to_f64(src[1]), to_f64(src[2]), &f64);
	if (ret == 0)
		*ret_value = from_f64(f64);
	return ret;
}
