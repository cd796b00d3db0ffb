// SPDX-License-Identifier: GPL-2.0-only
/* The decoder of GPU code against LLVM's disassembler: over what clang has made, and, where llvm-mc
 * is installed, over random operands of every row. */
#include "gcn_machine.h"

#define PER_CODE    12u
#define MAX_SAMPLES (PER_CODE * 4096u)
#define ATTEMPTS    20000u

PLAIN_TEST(decodes_what_clang_makes)
{
	FILE *file = fopen(LISTING, "r");
	char line[512], ours[SIM_GCN_TEXT], *text;
	struct sim_gcn_inst inst;
	u32 words[2], count, checked = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!listing_code(line, words, &count, &text))
			continue;
		if (sim_gcn_decode(words, count, &inst) < 0)
			fail_msg("%s is not known", text);
		assert_int_equal(inst.bytes, 4 * count);
		sim_gcn_text(&inst, ours, sizeof(ours));
		assert_string_equal(ours, text);
		checked++;
	}
	(void)fclose(file);
	assert_in_range(checked, 300, 100000);
}

/* LLVM 14 knows the cache instruction without its bits only. */
PLAIN_TEST(knows_bits_of_one_cache_instruction)
{
	const u32 both[] = { 0xe0a0c000, 0 }, other[] = { 0xe0a4c000, 0 },
		  slc[] = { 0xe0a20000, 0 };
	char text[SIM_GCN_TEXT];
	struct sim_gcn_inst inst;

	assert_int_equal(sim_gcn_decode(both, 2, &inst), 0);
	sim_gcn_text(&inst, text, sizeof(text));
	assert_string_equal(text, "buffer_wbl2 glc scc");
	assert_int_equal(sim_gcn_decode(other, 2, &inst), -EINVAL);
	assert_int_equal(sim_gcn_decode(slc, 2, &inst), -EINVAL);
}

PLAIN_TEST(refuses_hardware_registers_that_the_model_has_not)
{
	const u32 mode = 0xb889f801; /* s_getreg_b32 s9, hwreg(HW_REG_MODE) */
	struct sim_gcn_inst inst;

	assert_int_equal(sim_gcn_decode(&mode, 1, &inst), -EINVAL);
}

/* Every code of every encoding, whether there is a row for it or not. */
static const struct {
	u32 base, shift, codes;
} encodings[] = {
	{ 0x80000000, 23, 0x60 },  { 0xb0000000, 23, 0x20 },  { 0xbe800000, 8, 0x100 },
	{ 0xbf000000, 16, 0x80 },  { 0xbf800000, 16, 0x80 },  { 0xc0000000, 18, 0x100 },
	{ 0x00000000, 25, 0x3e },  { 0x7c000000, 17, 0x100 }, { 0x7e000000, 9, 0x100 },
	{ 0xd0000000, 16, 0x400 }, { 0xd8000000, 17, 0x100 }, { 0xdc000000, 18, 0x80 },
	{ 0xe0000000, 18, 0x80 },
};

/* Parts of registers, or values of other lanes. */
static void add_extension(u32 *words)
{
	u32 others = 0x100 | ((u32)random_number() & 0x4f);

	words[0] = (words[0] & ~0x1ffu) | (random_number() & 1 ? 249 : 250);
	/* most numbers are no known permutation */
	if ((words[0] & 0x1ff) == 250 && random_number() & 1)
		words[1] = (words[1] & ~0x1ff00u) | others << 8;
}

static void make_words(u32 encoding, u32 code, u32 *words)
{
	u32 fields = (1u << encodings[encoding].shift) - 1;

	/* the first with all bits that may be operands, then fewer */
	words[0] = (u32)random_number() & (u32)random_number();
	words[1] = (u32)random_number() & (u32)random_number() & (u32)random_number();
	switch (encoding) {
	case 2: /* the destination is above the code */
		words[0] &= 0x007f00ff;
		break;
	case 6:
	case 8:
		words[0] &= encoding == 6 ? fields : 0x01fe01ff;
		break;
	case 7:
		words[0] &= 0x0001ffff;
		break;
	default:
		words[0] &= fields;
	}
	words[0] |= encodings[encoding].base | code << encodings[encoding].shift;
	if (encoding == 8 && !code) /* v_nop has no operands */
		words[0] &= ~0x01fe01ffu;
	if (encoding == 5 && code < 0x20) /* mostly an offset */
		words[0] |= 1u << 17;
	else if (encoding == 5) /* no address */
		words[0] &= 0xfffc1fc0, words[1] = 0;
	if (encoding == 9 && code >= 0x380) /* packed: mostly the usual halves */
		words[0] |= 1u << 14, words[1] |= random_number() & 1 ? 3u << 27 : 0;
	if (encoding == 9 && code >= 0x3c0) /* matrices: of registers */
		words[0] &= ~0x7f00u, words[1] = (words[1] & 0x1fffffff) | 0x20100;
	if (encoding == 9 && (code == 0x3d8 || code == 0x3d9)) /* moves of accumulators */
		words[0] |= 0x4000, words[1] = (words[1] & 0x1ff) | 3u << 27;
	if (encoding >= 6 && encoding <= 8 && random_number() & 1)
		add_extension(words);
	if (encoding == 12 && (code == 0x28 || code == 0x29 || code >= 0x3e)) /* caches */
		words[0] &= ~0x3ffffu, words[1] = 0;
	if (encoding == 11 && random_number() & 1) /* global, without an SGPR */
		words[0] |= 2u << 14, words[1] |= 0x7f0000;
}

/* Does LLVM's line, of which it says nothing for what it does not know, show these bytes? */
static bool is_for(const char *line, const u32 *words, u32 bytes)
{
	char *at = strstr(line, "encoding: [");
	u32 i;

	at = at ? at + strlen("encoding: [") : NULL;
	for (i = 0; at && i < bytes; i++, at++)
		if (strtoul(at, &at, 16) != (words[i / 4] >> 8 * (i % 4) & 0xff))
			return false;
	return at != NULL;
}

static void expect_line(const char *line, const u32 *words, u32 bytes, const char *ours)
{
	char theirs[512];
	u32 i;

	if (!is_for(line, words, bytes))
		fail_msg("%08x %08x: LLVM does not know it, we say %s", words[0], words[1], ours);
	(void)snprintf(theirs, sizeof(theirs), "%s", line + strspn(line, "\t "));
	theirs[strcspn(theirs, ";")] = '\0';
	for (i = 0; theirs[i]; i++)
		if (theirs[i] == '\t')
			theirs[i] = ' ';
	while (i && theirs[i - 1] == ' ')
		theirs[--i] = '\0';
	assert_string_equal(ours, theirs);
}

struct sample {
	u32 words[2], bytes;
	char text[SIM_GCN_TEXT];
};

static void ask(FILE *questions, const struct sample *sample)
{
	u32 i;

	for (i = 0; i < sample->bytes; i++)
		(void)fprintf(questions, "0x%02x ", sample->words[i / 4] >> 8 * (i % 4) & 0xff);
	(void)fprintf(questions, "\n");
}

/* Of one code, what we know among many random operands; *ret_op is what it is. */
static u32 collect_code(u32 encoding, u32 code, struct sample *samples, FILE *questions,
			enum sim_gcn_op *ret_op)
{
	struct sim_gcn_inst inst;
	u32 i, count = 0;

	for (i = 0; i < ATTEMPTS && count < PER_CODE; i++) {
		struct sample *sample = &samples[count];

		make_words(encoding, code, sample->words);
		if (sim_gcn_decode(sample->words, 2, &inst) < 0)
			continue;
		*ret_op = inst.op;
		sample->bytes = inst.bytes;
		sim_gcn_text(&inst, sample->text, sizeof(sample->text));
		ask(questions, sample);
		count++;
	}
	return count;
}

static u32 collect(struct sample *samples, FILE *questions, u32 *ret_ops)
{
	static bool seen[SIM_GCN_OPS];
	u32 encoding, code, count = 0;

	for (encoding = 0; encoding < ARRAY_SIZE(encodings); encoding++)
		for (code = 0; code < encodings[encoding].codes; code++) {
			enum sim_gcn_op op = SIM_GCN_UNKNOWN;

			count += collect_code(encoding, code, samples + count, questions, &op);
			*ret_ops += op && !seen[op];
			seen[op] = true;
		}
	return count;
}

PLAIN_TEST(agrees_with_llvm_on_random_operands)
{
	char questions[] = "/tmp/gcn-questions-XXXXXX", command[256], line[512];
	struct sample *samples;
	FILE *file, *answers;
	u32 count, i, ops = 0;

	if (system("command -v llvm-mc > /dev/null") != 0)
		skip();
	samples = calloc(MAX_SAMPLES, sizeof(*samples));
	file = fdopen(mkstemp(questions), "w");
	assert_non_null(samples);
	assert_non_null(file);
	count = collect(samples, file, &ops);
	(void)fclose(file);
	(void)snprintf(
		command, sizeof(command),
		"llvm-mc -arch=amdgcn -mcpu=gfx90a -disassemble -show-encoding %s 2> /dev/null | "
		"grep encoding:",
		questions);
	answers = popen(command, "r");
	assert_non_null(answers);
	for (i = 0; i < count; i++) {
		assert_non_null(fgets(line, sizeof(line), answers));
		expect_line(line, samples[i].words, samples[i].bytes, samples[i].text);
	}
	(void)pclose(answers);
	(void)unlink(questions);
	free(samples);
	/* all rows, and v_cmp */
	assert_int_equal(ops, SIM_GCN_OPS - 1);
}
