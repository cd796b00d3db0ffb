// SPDX-License-Identifier: GPL-2.0-only
/* Single vector instructions of the interpreter of GPU code: which parts of registers, which halves
 * and which lanes they take, and what they leave of their destination. llvm-mc has made the words.
 */
#include "gcn_floats.h"
#include "gcn_machine.h"

#define REGISTERS 16u
#define SGPRS     8u /* those that the instructions write are above */

/* Registers before the instruction. */
static u32 v[REGISTERS][SIM_GCN_LANES], s[SGPRS];

static struct sim_gcn_wave *wave(void)
{
	return &machine.group.waves[0];
}

static void prepare(u64 exec)
{
	u32 i, lane;

	machine.dispatch = (struct sim_gcn_dispatch){ .num_waves = 1, .begun = true };
	memset(wave(), 0, sizeof(*wave()));
	wave()->pc = va(CODE);
	sim_gcn_set_pair(wave(), SIM_GCN_EXEC, exec);
	for (i = 0; i < SGPRS; i++)
		wave()->s[i] = s[i] = (u32)random_number();
	/* halves and floats of all sizes, but few of them NaN */
	for (i = 0; i < REGISTERS; i++)
		for (lane = 0; lane < SIM_GCN_LANES; lane++)
			wave()->v[i][lane] = v[i][lane] = (u32)random_number() & 0xbfffbfff;
}

static void run(const u32 *words, u32 count)
{
	static const u32 end = 0xbf810000; /* s_endpgm */

	memcpy(at(CODE), words, 4 * count);
	memcpy(at(CODE + 4 * count), &end, 4);
	memset(machine.group.code, 0, SIM_GCN_CACHED_INSTRUCTIONS * sizeof(*machine.group.code));
	if (sim_gcn_run(&machine.dispatch, &machine.group, &machine.env, 10) != 1)
		fail_msg("%s", machine.complaint);
}

static float half(u32 reg, u32 lane, u32 part)
{
	return f16(v[reg][lane] >> 16 * part);
}

static float single(u32 reg, u32 lane)
{
	return f32(v[reg][lane]);
}

static double twice(u32 reg, u32 lane)
{
	return f64(v[reg][lane] | (u64)v[reg + 1][lane] << 32);
}

static s32 word(u32 reg, u32 lane, u32 part)
{
	return (int16_t)(v[reg][lane] >> 16 * part);
}

static s32 signed_byte_1(u32 reg, u32 lane)
{
	return (int8_t)(v[reg][lane] >> 8);
}

/* What the instruction gives in a lane. */
struct row {
	const char *text;
	u32 words[2];
	u64 (*want)(u32 lane);
};

#define WANT(name, expression)     \
	static u64 name(u32 lane)  \
	{                          \
		return expression; \
	}

WANT(pk_fma_f32, pair32(fmaf(single(5, lane), -single(6, lane), single(8, lane)),
			fmaf(single(4, lane), single(7, lane), -single(9, lane))))
WANT(pk_add_one, pair32(single(4, lane) + 1, single(5, lane) + 1))
WANT(pk_mov, v[5][lane] | (u64)v[6][lane] << 32)
WANT(pk_mov_four, 4 | (u64)v[5][lane] << 32)
WANT(pk_shift_left, (v[4][lane] << 4 & 0xfff0) | (v[4][lane] >> 16 << 20))
WANT(pk_shift_right,
     (v[5][lane] & 0xffff) >> (v[4][lane] & 15) | v[5][lane] >> 16 >> (v[4][lane] >> 16 & 15) << 16)
WANT(pk_fma_f16, pair16(fma(-half(4, lane, 0), half(5, lane, 1), half(6, lane, 0)),
			fma(half(4, lane, 0), half(5, lane, 0), half(6, lane, 1))))
WANT(mix, of32(fmaf(half(4, lane, 0), -single(5, lane), fabsf(half(6, lane, 1)))))
WANT(mixlo, of16(single(4, lane) * single(5, lane)) | (v[2][lane] & 0xffff0000))
WANT(mixhi,
     of16(fmaf(single(4, lane), half(5, lane, 0), single(6, lane))) << 16 | (v[2][lane] & 0xffff))
WANT(high_word, s[4] & v[5][lane] >> 16)
WANT(second_byte, (to_s32(single(4, lane)) & 0xff) << 8 | (v[2][lane] & 0xffff00ff))
WANT(signed_byte, (u32)((s32)v[4][lane] >> 24))
WANT(high_half, of32(-fabsf(half(4, lane, 1))))
WANT(clamped, of32(fminf(fmaxf(single(4, lane), 0), 1)))
WANT(least_signed,
     word(4, lane, 1) < signed_byte_1(5, lane) ? v[4][lane] >> 16 : signed_byte_1(5, lane) & 0xffff)
WANT(most_signed, v[word(4, lane, 1) > word(5, lane, 0) ? 4 : 5][lane] >>
				  (word(4, lane, 1) > word(5, lane, 0) ? 16 : 0) &
			  0xffff)
WANT(least_to_high_word, min(v[4][lane] >> 24, v[5][lane] >> 16) << 16 | (v[2][lane] & 0xffff))
WANT(most_unsigned, max(v[4][lane] >> 16, v[5][lane] & 0xffff))
WANT(product_of_words, 0x1234 * v[5][lane] & 0xffff)
WANT(not_below_zero, v[4][lane] > v[5][lane] ? v[4][lane] - v[5][lane] : 0)
WANT(fma_f16, of16(fma(half(4, lane, 0), half(5, lane, 0), -half(6, lane, 0))))
WANT(mad_u16, (v[4][lane] * v[5][lane] + v[6][lane]) & 0xffff)
WANT(fmac_f64, of64(fma(twice(4, lane), -twice(6, lane), twice(2, lane))))
WANT(fmac_minus_twenty, of64(fma(-20, twice(4, lane), twice(2, lane))))

static const struct row rows[] = {
	{ "v_pk_fma_f32 with halves and signs", { 0xd3b04c02, 0x54220d04 }, pk_fma_f32 },
	{ "v_pk_add_f32 with 1.0", { 0xd3b24002, 0x0801e504 }, pk_add_one },
	{ "v_pk_mov_b32", { 0xd3b34802, 0x18020d04 }, pk_mov },
	{ "v_pk_mov_b32 of a constant", { 0xd3b35002, 0x18020884 }, pk_mov_four },
	{ "v_fmac_f64 with a sign", { 0xd1040002, 0x40020d04 }, fmac_f64 },
	{ "v_fmac_f64 with a literal", { 0x080408ff, 0xc0340000 }, fmac_minus_twenty },
	{ "v_pk_lshlrev_b16 by a constant", { 0xd3844002, 0x10020884 }, pk_shift_left },
	{ "v_pk_lshrrev_b16", { 0xd3854002, 0x18020b04 }, pk_shift_right },
	{ "v_pk_fma_f16 with halves and a sign", { 0xd38e5002, 0x241a0b04 }, pk_fma_f16 },
	{ "v_fma_mix_f32", { 0xd3a06402, 0x4c1a0b04 }, mix },
	{ "v_fma_mixlo_f16", { 0xd3a10002, 0x02020b04 }, mixlo },
	{ "v_fma_mixhi_f16", { 0xd3a20002, 0x141a0b04 }, mixhi },
	{ "v_and_b32_sdwa of a word", { 0x26040af9, 0x05860604 }, high_word },
	{ "v_cvt_i32_f32_sdwa to a byte", { 0x7e0410f9, 0x00061104 }, second_byte },
	{ "v_mov_b32_sdwa with a sign", { 0x7e0402f9, 0x000b0c04 }, signed_byte },
	{ "v_cvt_f32_f16_sdwa of a word", { 0x7e0416f9, 0x00350604 }, high_half },
	{ "v_max_f32 with clamp", { 0xd10b8002, 0x00020904 }, clamped },
	{ "v_min_i16_sdwa with a signed byte", { 0x64040af9, 0x09050604 }, least_signed },
	{ "v_max_i16_sdwa", { 0x60040af9, 0x04050604 }, most_signed },
	{ "v_min_u16_sdwa to a word", { 0x62040af9, 0x05031504 }, least_to_high_word },
	{ "v_max_u16_sdwa", { 0x5e040af9, 0x04050604 }, most_unsigned },
	{ "v_mul_lo_u16 with a literal", { 0x52040aff, 0x00001234 }, product_of_words },
	{ "v_sub_u32 with clamp", { 0xd1358002, 0x00020b04 }, not_below_zero },
	{ "v_fma_f16 with a sign", { 0xd2060002, 0x841a0b04 }, fma_f16 },
	{ "v_mad_legacy_u16", { 0xd1eb0002, 0x041a0b04 }, mad_u16 },
};

static bool is_near(u64 got, u64 want)
{
	return got == want || (isnan(f32(got)) && isnan(f32(want)));
}

#define VECTOR_TEST(name) TEST_WITH(name, set_up_machine, tear_down_machine)

VECTOR_TEST(take_parts_and_halves)
{
	const u64 exec = 0xfffffffefffffff7;
	u32 i, lane, round;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		for (round = 0; round < 100; round++) {
			bool wide = i < 6;

			prepare(exec);
			run(rows[i].words, 2);
			for (lane = 0; lane < SIM_GCN_LANES; lane++) {
				bool is_on = exec >> lane & 1;
				u64 want = is_on ? rows[i].want(lane)
						 : v[2][lane] | (u64)v[3][lane] << 32;

				if (!is_near(wave()->v[2][lane], (u32)want) ||
				    !is_near(wave()->v[3][lane],
					     wide || !is_on ? want >> 32 : v[3][lane]))
					fail_msg("%s, lane %u", rows[i].text, lane);
			}
		}
}

VECTOR_TEST(compare_parts)
{
	static const u32 words[] = { 0x7d940af9, 0x01008804 }; /* bytes 0 and 1, to s[8:9] */
	u64 want = 0;
	u32 lane;

	prepare(~0ull);
	for (lane = 0; lane < SIM_GCN_LANES; lane += 3)
		wave()->v[4][lane] = v[4][lane] = (v[4][lane] & ~0xffu) | (v[5][lane] >> 8 & 0xff);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		want |= (u64)((v[4][lane] & 0xff) == (v[5][lane] >> 8 & 0xff)) << lane;
	run(words, 2);
	assert_true(sim_gcn_pair(wave(), 8) == want);
	assert_true((want & 0x9249249249249249ull) == 0x9249249249249249ull);
}

/* Of all codes of 32 bits, with equal values in each third lane. */
VECTOR_TEST(compare_words_of_all_lanes)
{
	u32 code, lane;

	for (code = 0xc0; code < 0xd0; code++) {
		const u32 word = 0x7c000b04 | code << 17; /* v_cmp vcc, v4, v5 */
		u64 want = 0;

		prepare(~0ull);
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {
			if (lane % 3 == 0)
				wave()->v[5][lane] = v[5][lane] = v[4][lane];
			want |= (u64)sim_gcn_compare(code, v[4][lane], v[5][lane]) << lane;
		}
		run(&word, 1);
		if (sim_gcn_pair(wave(), SIM_GCN_VCC) != want)
			fail_msg("code 0x%x", code);
	}
}

/* The lane that gives its v4 to the v2 of a lane, -1 if the lane gets 0, or -2 if it keeps its own.
 */
#define FROM(name, expression)     \
	static s32 name(s32 lane)  \
	{                          \
		return expression; \
	}

FROM(shl3, lane % 16 < 13 ? lane + 3 : -1)
FROM(shr1, lane % 16 ? lane - 1 : -2)
FROM(ror4, lane / 16 * 16 + (lane + 12) % 16)
FROM(quad, lane / 4 * 4 + (lane % 4 < 2 ? lane % 4 + 2 : 0))
FROM(mirror, lane / 16 % 2 ? -2 : lane / 16 * 16 + 15 - lane % 16)
FROM(half_mirror, lane / 4 % 2 ? lane / 8 * 8 + 7 - lane % 8 : -2)
FROM(next, lane < 63 ? lane + 1 : -1)
FROM(rotated, (lane + 63) % 64)
FROM(last_of_row, lane / 16 % 2 ? lane / 16 * 16 - 1 : -2)
FROM(last_of_half, lane >= 32 ? 31 : -2)

static const struct {
	const char *text;
	u32 word;
	s32 (*from)(s32 lane);
} moves[] = {
	{ "row_shl:3 bound_ctrl:1", 0xff090304, shl3 },
	{ "row_shr:1", 0xff011104, shr1 },
	{ "row_ror:4", 0xff012404, ror4 },
	{ "quad_perm:[2,3,0,0]", 0xff000e04, quad },
	{ "row_mirror row_mask:0x5", 0x5f014004, mirror },
	{ "row_half_mirror bank_mask:0xa", 0xfa014104, half_mirror },
	{ "wave_shl:1 bound_ctrl:1", 0xff093004, next },
	{ "wave_ror:1", 0xff013c04, rotated },
	{ "row_bcast:15 row_mask:0xa", 0xaf014204, last_of_row },
	{ "row_bcast:31 row_mask:0xc", 0xcf014304, last_of_half },
};

VECTOR_TEST(move_between_lanes)
{
	u32 i, lane;

	for (i = 0; i < ARRAY_SIZE(moves); i++) {
		const u32 words[] = { 0x7e0402fa, moves[i].word };

		prepare(~0ull);
		run(words, 2);
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {
			s32 from = moves[i].from((s32)lane);
			u32 want = from < 0 ? (from == -1 ? 0 : v[2][lane]) : v[4][from];

			if (wave()->v[2][lane] != want)
				fail_msg("%s, lane %u", moves[i].text, lane);
		}
	}
}

/* A disabled lane gives nothing: the lane that reads it gets 0, or keeps what it has. */
VECTOR_TEST(take_nothing_from_disabled_lanes)
{
	static const u32 zero[] = { 0x7e0402fa, 0xff090304 }, kept[] = { 0x7e0402fa, 0xff011104 };

	prepare(~(1ull << 5));
	run(zero, 2);
	assert_int_equal(wave()->v[2][2], 0);
	assert_int_equal(wave()->v[2][5], v[2][5]);
	prepare(~(1ull << 5));
	run(kept, 2);
	assert_int_equal(wave()->v[2][6], v[2][6]);
	assert_int_equal(wave()->v[2][7], v[4][6]);
}

VECTOR_TEST(permute_lanes)
{
	static const u32 take[] = { 0xd87e0008,
				    0x02000504 }; /* ds_bpermute_b32 v2, v4, v5 offset:8 */
	static const u32 give[] = { 0xd87c0000, 0x02000504 }; /* ds_permute_b32 v2, v4, v5 */
	u32 lane;

	prepare(~(1ull << 9));
	run(take, 2);
	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		u32 from = (v[4][lane] + 8) / 4 % 64, want = from == 9 ? 0 : v[5][from];

		assert_int_equal(wave()->v[2][lane], lane == 9 ? v[2][9] : want);
	}
	prepare(~0ull);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		wave()->v[4][lane] = 4 * ((lane * 5 + 3) % 64);
	run(give, 2);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		assert_int_equal(wave()->v[2][(lane * 5 + 3) % 64], v[5][lane]);
}

VECTOR_TEST(load_and_store_halves)
{
	static const u32 store[] = { 0xdc6c8000,
				     0x007f0604 }; /* global_store_short_d16_hi v[4:5], v6 */
	static const u32 high[] = { 0xdc948000,
				    0x027f0004 }; /* global_load_short_d16_hi v2, v[4:5] */
	static const u32 low[] = { 0xdc808000, 0x027f0004 }; /* global_load_ubyte_d16 v2, v[4:5] */
	const u32 *const words[] = { store, high, low };
	const uint16_t *halves = at(DATA);
	u32 i, lane;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		prepare(~0ull);
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {
			wave()->v[4][lane] = (u32)va(DATA + 2 * lane);
			wave()->v[5][lane] = (u32)(va(DATA) >> 32);
		}
		run(words[i], 2);
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {
			u32 wants[] = { v[2][lane], (u32)halves[lane] << 16, halves[lane] & 0xff };

			assert_int_equal(wave()->v[2][lane], wants[i]);
			if (i == 0)
				assert_int_equal(halves[lane], v[6][lane] >> 16);
		}
	}
}

VECTOR_TEST(swap_registers)
{
	static const u32 swap[] = { 0x7e04a304 }; /* v_swap_b32 v2, v4 */
	u32 lane;

	prepare(~(1ull << 9));
	run(swap, 1);
	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		assert_int_equal(wave()->v[2][lane], v[lane == 9 ? 2 : 4][lane]);
		assert_int_equal(wave()->v[4][lane], v[lane == 9 ? 4 : 2][lane]);
	}
}

VECTOR_TEST(keep_the_larger_number_in_lds)
{
	static const u32 words[] = { 0xd88c0010, 0x00000604 }; /* ds_max_i64 v4, v[6:7] offset:16 */
	s64 before[SIM_GCN_LANES], *cells;
	u32 lane;

	prepare(~0ull);
	cells = (s64 *)(machine.group.lds + 16);
	machine.dispatch.lds_bytes = 16 + sizeof(before);
	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		wave()->v[4][lane] = 8 * lane;
		cells[lane] = before[lane] = (s64)random_number();
	}
	run(words, 2);
	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		s64 value = (s64)(v[6][lane] | (u64)v[7][lane] << 32);

		assert_true(cells[lane] == max(value, before[lane]));
	}
}

/* All waves are at the same place of the chip. */
VECTOR_TEST(read_their_place_on_the_chip)
{
	static const u32 words[] = { 0xb889f804, /* s_getreg_b32 s9, hwreg(HW_REG_HW_ID) */
				     0xbf830000 /* s_wakeup */ };

	prepare(~0ull);
	wave()->s[9] = 1;
	run(words, 2);
	assert_int_equal(wave()->s[9], 0);
}

/* Flat addresses reach LDS and private memory by apertures. */
VECTOR_TEST(reach_lds_and_private_memory_by_flat_addresses)
{
	static const u32 load[] = { 0xdc500000, 0x02000004 }; /* flat_load_dword v2, v[4:5] */
	const u32 *cells = at(DATA);
	u32 lane;

	prepare(~0ull);
	machine.dispatch.lds_bytes = 128;
	machine.dispatch.scratch.shared_base = 0x10000;
	machine.dispatch.scratch.private_base = 0x20000;
	sim_gcn_set_pair(wave(), SIM_GCN_FLAT_SCRATCH, va(DATA));
	for (lane = 0; lane < SIM_GCN_LANES; lane++) {
		wave()->v[4][lane] = lane < 32 ? 4 * lane : 8;
		wave()->v[5][lane] = lane < 32 ? 0x10000 : 0x20000;
	}
	for (lane = 0; lane < 32; lane++)
		memcpy(machine.group.lds + 4 * lane, &v[7][lane], 4);
	run(load, 2);
	for (lane = 0; lane < SIM_GCN_LANES; lane++)
		assert_int_equal(wave()->v[2][lane], lane < 32 ? v[7][lane] : cells[2 * 64 + lane]);
}

/* What a lane finds behind the end of a plain buffer is 0, dword by dword, and a store there is
 * lost. */
VECTOR_TEST(end_where_their_buffer_ends)
{
	/* buffer_load_dwordx4 v[0:3], v4, s[8:11], s12 offen offset:8, and the store */
	static const u32 load[] = { 0xe05c1008, 0x0c020004 }, store[] = { 0xe07c1008, 0x0c020004 };
	const u32 size = 16 * 60 + 8, begin = 16;
	u32 before[4 * SIM_GCN_LANES + 8], lane, i;
	u32 *cells = at(DATA);

	for (i = 0; i < 2; i++) {
		prepare(~0ull);
		sim_gcn_set_pair(wave(), 8, va(DATA));
		wave()->s[10] = size;
		wave()->s[11] = 0x00020000;
		wave()->s[12] = begin;
		for (lane = 0; lane < SIM_GCN_LANES; lane++)
			wave()->v[4][lane] = v[4][lane] = 16 * lane;
		memcpy(before, cells, sizeof(before));
		run(i ? store : load, 2);
		for (lane = 0; lane < 4 * SIM_GCN_LANES; lane++) {
			u32 offset = begin + 8 + 4 * lane, value = before[offset / 4];
			bool inside = offset + 4 <= size;

			if (i)
				assert_int_equal(cells[offset / 4],
						 inside ? v[lane % 4][lane / 4] : value);
			else
				assert_int_equal(wave()->v[lane % 4][lane / 4], inside ? value : 0);
		}
	}
}

/* Elements that a lane has of the operand that begins at @reg. */
static double float_at(u32 reg, u32 lane, u32 i)
{
	return single(reg + i, lane);
}

static double half_at(u32 reg, u32 lane, u32 i)
{
	return half(reg + i / 2, lane, i % 2);
}

static double bfloat_at(u32 reg, u32 lane, u32 i)
{
	return f32((u64)(v[reg + i / 2][lane] >> 16 * (i % 2)) << 16);
}

static double byte_at(u32 reg, u32 lane, u32 i)
{
	return (int8_t)(v[reg][lane] >> 8 * i);
}

/* Matrix instructions with v[4:5] and v[6:7], with v[8:...] added, to v[64:...]: of all numbers of
 * rows and blocks, and of all kinds. A block has the lanes in groups of so many. */
static const struct matrix {
	const char *text;
	u32 word, side, blocks, elements;
	double (*element)(u32 reg, u32 lane, u32 i);
} matrices[] = {
	{ "v_mfma_f32_32x32x1f32", 0xd3c00040, 32, 2, 1, float_at },
	{ "v_mfma_f32_16x16x1f32", 0xd3c10040, 16, 4, 1, float_at },
	{ "v_mfma_f32_4x4x1f32", 0xd3c20040, 4, 16, 1, float_at },
	{ "v_mfma_f32_32x32x2f32", 0xd3c40040, 32, 1, 1, float_at },
	{ "v_mfma_f32_16x16x4f32", 0xd3c50040, 16, 1, 1, float_at },
	{ "v_mfma_f32_32x32x4f16", 0xd3c80040, 32, 2, 4, half_at },
	{ "v_mfma_f32_4x4x4f16", 0xd3ca0040, 4, 16, 4, half_at },
	{ "v_mfma_f32_32x32x8f16", 0xd3cc0040, 32, 1, 4, half_at },
	{ "v_mfma_f32_16x16x16f16", 0xd3cd0040, 16, 1, 4, half_at },
	{ "v_mfma_i32_16x16x4i8", 0xd3d10040, 16, 4, 4, byte_at },
	{ "v_mfma_i32_32x32x8i8", 0xd3d40040, 32, 1, 4, byte_at },
	{ "v_mfma_i32_16x16x16i8", 0xd3d50040, 16, 1, 4, byte_at },
	{ "v_mfma_f32_16x16x4bf16_1k", 0xd3e40040, 16, 4, 4, bfloat_at },
	{ "v_mfma_f32_16x16x16bf16_1k", 0xd3e70040, 16, 1, 4, bfloat_at },
};

static double multiplied(const struct matrix *m, u32 block, u32 row, u32 column)
{
	u32 lanes = SIM_GCN_LANES / m->blocks, lane, i;
	double sum = 0;

	for (lane = block * lanes; lane < (block + 1) * lanes; lane += m->side)
		for (i = 0; i < m->elements; i++)
			sum += m->element(4, lane + row, i) * m->element(6, lane + column, i);
	return sum;
}

/* The block and row of register @r in a lane, as AMD's matrix instruction calculator gives them. */
static void place(const struct matrix *m, u32 r, u32 lane, u32 *ret_block, u32 *ret_row)
{
	*ret_block = m->side == 32 ? r / 16 : m->side == 16 ? r / 4 : lane / 4;
	*ret_row = m->side == 32   ? 8 * (r / 4 % 4) + 4 * (lane / 32) + r % 4
		   : m->side == 16 ? 4 * (lane / 16) + r % 4
				   : r;
}

static void check_matrix(const struct matrix *m)
{
	u32 r, lane, block, row;

	for (r = 0; r < m->side * m->side * m->blocks / SIM_GCN_LANES; r++)
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {
			u32 got = wave()->v[64 + r][lane], old = lane * 32 + r;
			double want;

			place(m, r, lane, &block, &row);
			want = multiplied(m, block, row, lane % m->side);
			if (m->element == byte_at ? got != (u32)(s32)want + (u32)of32((float)old)
						  : !(fabs(f32(got) - want - old) < 1e-2))
				fail_msg("%s: lane %u, register %u", m->text, lane, r);
		}
}

VECTOR_TEST(multiply_matrices)
{
	u32 i, r, lane;

	for (i = 0; i < ARRAY_SIZE(matrices); i++) {
		const u32 words[] = { matrices[i].word, 0x04220d04 };

		prepare(0xff); /* EXEC does not matter */
		for (lane = 0; lane < SIM_GCN_LANES; lane++) {
			/* as halves and as bfloats not far from 1 */
			for (r = 4; r < 8; r++)
				wave()->v[r][lane] = v[r][lane] =
					(v[r][lane] & 0x80ff80ff) | 0x3f003f00;
			for (r = 0; r < 32; r++)
				wave()->v[8 + r][lane] = (u32)of32((float)(lane * 32 + r));
		}
		run(words, 2);
		check_matrix(&matrices[i]);
	}
}

VECTOR_TEST(move_to_accumulation_registers_and_back)
{
	static const u32 words[] = { 0xd3d94003, 0x18000104,   /* v_accvgpr_write_b32 a3, v4 */
				     0x7e0aa503,               /* v_accvgpr_mov_b32 a5, a3 */
				     0xd3d84002, 0x18000105 }; /* v_accvgpr_read_b32 v2, a5 */

	prepare(~0ull);
	run(words, 5);
	assert_memory_equal(wave()->v[SIM_GCN_VGPRS + 3], v[4], sizeof(v[4]));
	assert_memory_equal(wave()->v[2], v[4], sizeof(v[4]));
}
