/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * make-model f16|f32|q8_0 FILE: writes a language model for llama.cpp, with random weights that are
 * always the same. It is a transformer of the architecture "llama" with two layers and a vocabulary
 * of 253 words. Its text makes no sense, but each word depends on all words before it.
 *
 * The format is GGUF 3: facts, a table of tensors, and their weights
 * (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, WIDTH = 128, HEADS = 2, INNER = 256, CONTEXT = 4096 };
/* Tokens: unknown, begin, end, the 256 bytes, and the words. */
enum { FIRST_BYTE = 3, FIRST_WORD = FIRST_BYTE + 256, TOKENS = 512 };
enum { ALIGNMENT = 32, BLOCK = 32 };

/* ggml_type in ggml.h, and gguf_type in gguf.h. */
enum type { F32 = 0, F16 = 1, Q8_0 = 8 };
enum fact { FACT_U32 = 4, FACT_I32 = 5, FACT_F32 = 6, FACT_STRING = 8, FACT_ARRAY = 9 };

struct tensor {
	char name[32];
	uint64_t row, rows;
	enum type type;
	float range; /* weights are between -range and range; or 1, if there is but one row */
	uint64_t zero_rows; /* the first rows, whose weights are 0 */
};

static FILE *out;
static uint64_t random_state = 0x9e3779b97f4a7c15;

static void put(const void *data, size_t size)
{
	if (fwrite(data, size, 1, out) != 1) {
		perror("make-model");
		exit(1);
	}
}

static void put_u32(uint32_t value)
{
	put(&value, sizeof(value));
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof(value));
}

static void put_f32(float value)
{
	put(&value, sizeof(value));
}

static void put_half(float value)
{
	_Float16 half = (_Float16)value;

	put(&half, sizeof(half));
}

static void put_string(const char *text)
{
	put_u64(strlen(text));
	put(text, strlen(text));
}

static void put_name(const char *name, enum fact type)
{
	put_string(name);
	put_u32(type);
}

static void fact_u32(const char *name, uint32_t value)
{
	put_name(name, FACT_U32);
	put_u32(value);
}

static void fact_string(const char *name, const char *value)
{
	put_name(name, FACT_STRING);
	put_string(value);
}

static void begin_array(const char *name, enum fact type, uint64_t count)
{
	put_name(name, FACT_ARRAY);
	put_u32(type);
	put_u64(count);
}

/* Evenly distributed between -1 and 1, by xorshift. */
static float next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (float)(int32_t)(random_state >> 32) / 2147483648.f;
}

/* A word has two syllables, and a space before it, which the tokeniser writes as U+2581. */
static void put_token(int token)
{
	static const char *const syllables[] = { "ba", "de", "fi", "go", "ku", "la", "me", "ni",
						 "po", "ru", "sa", "te", "vi", "wo", "zu", "ha" };
	char text[16];
	int word = token - FIRST_WORD;

	if (token < FIRST_BYTE)
		strcpy(text, (const char *[]){ "<unk>", "<s>", "</s>" }[token]);
	else if (word < 0)
		snprintf(text, sizeof(text), "<0x%02X>", (unsigned int)(token - FIRST_BYTE));
	else
		snprintf(text, sizeof(text), "\xe2\x96\x81%s%s", syllables[word / 16],
			 syllables[word % 16]);
	put_string(text);
}

/* llama_token_type in llama.h. */
static uint32_t token_type(int token)
{
	if (token == 0)
		return 2; /* unknown */
	if (token < FIRST_BYTE)
		return 3; /* control */
	return token < FIRST_WORD ? 6 /* byte */ : 1 /* normal */;
}

static void put_vocabulary(void)
{
	int i;

	fact_string("tokenizer.ggml.model", "llama");
	begin_array("tokenizer.ggml.tokens", FACT_STRING, TOKENS);
	for (i = 0; i < TOKENS; i++)
		put_token(i);
	begin_array("tokenizer.ggml.scores", FACT_F32, TOKENS);
	for (i = 0; i < TOKENS; i++)
		put_f32(0);
	begin_array("tokenizer.ggml.token_type", FACT_I32, TOKENS);
	for (i = 0; i < TOKENS; i++)
		put_u32(token_type(i));
	fact_u32("tokenizer.ggml.bos_token_id", 1);
	fact_u32("tokenizer.ggml.eos_token_id", 2);
	fact_u32("tokenizer.ggml.unknown_token_id", 0);
}
#define VOCABULARY_FACTS 7

static void put_facts(void)
{
	fact_string("general.architecture", "llama");
	fact_u32("llama.block_count", LAYERS);
	fact_u32("llama.context_length", CONTEXT);
	fact_u32("llama.embedding_length", WIDTH);
	fact_u32("llama.feed_forward_length", INNER);
	fact_u32("llama.attention.head_count", HEADS);
	put_name("llama.attention.layer_norm_rms_epsilon", FACT_F32);
	put_f32(1e-5f);
	put_vocabulary();
}
#define FACTS (7 + VOCABULARY_FACTS)

static size_t weights_size(const struct tensor *t)
{
	uint64_t count = t->row * t->rows;

	switch (t->type) {
	case F16:
		return 2 * count;
	case Q8_0:
		return count / BLOCK * (2 + BLOCK);
	default:
		return 4 * count;
	}
}

static uint64_t aligned(uint64_t offset)
{
	return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void pad(void)
{
	uint64_t at = (uint64_t)ftell(out);

	for (; at % ALIGNMENT; at++)
		put("", 1);
}

/* 32 weights of type Q8_0 are bytes, with a factor before them. */
static void put_block(float range)
{
	int8_t weights[BLOCK];
	int i;

	for (i = 0; i < BLOCK; i++)
		weights[i] = (int8_t)(127.f * next_random());
	put_half(range / 127.f);
	put(weights, sizeof(weights));
}

static void put_weights(const struct tensor *t)
{
	uint64_t i, count = t->row * t->rows;

	for (i = 0; i < count; i += t->type == Q8_0 ? BLOCK : 1) {
		float range = i / t->row < t->zero_rows ? 0 : t->range;

		if (t->type == Q8_0)
			put_block(range);
		else if (t->type == F16)
			put_half(range * next_random());
		else
			put_f32(t->rows > 1 ? range * next_random() : 1);
	}
	pad();
}

/* Appends a tensor to @list, with a name of two parts. A norm is one row of ones. */
static struct tensor *add(struct tensor *list, int layer, const char *name, uint64_t row,
			  uint64_t rows, float range)
{
	struct tensor *t = list;

	while (t->row)
		t++;
	if (layer >= 0)
		snprintf(t->name, sizeof(t->name), "blk.%d.%s.weight", layer, name);
	else
		snprintf(t->name, sizeof(t->name), "%s.weight", name);
	t->row = row;
	t->rows = rows;
	t->range = range;
	return t;
}

/* With these ranges attention is sharp and outweighs the last word. So the text does not repeat
 * itself. */
static void list_tensors(struct tensor *list, enum type type)
{
	struct tensor *t;
	int i;

	add(list, -1, "token_embd", WIDTH, TOKENS, 0.5f);
	for (i = 0; i < LAYERS; i++) {
		add(list, i, "attn_norm", WIDTH, 1, 1);
		add(list, i, "attn_q", WIDTH, WIDTH, 0.3f);
		add(list, i, "attn_k", WIDTH, WIDTH, 0.3f);
		add(list, i, "attn_v", WIDTH, WIDTH, 0.3f);
		add(list, i, "attn_output", WIDTH, WIDTH, 0.3f);
		add(list, i, "ffn_norm", WIDTH, 1, 1);
		add(list, i, "ffn_gate", WIDTH, INNER, 0.2f);
		add(list, i, "ffn_up", WIDTH, INNER, 0.2f);
		add(list, i, "ffn_down", INNER, WIDTH, 0.2f);
	}
	add(list, -1, "output_norm", WIDTH, 1, 1);
	/* Only words are ever likely, neither bytes nor the end of the text. */
	add(list, -1, "output", WIDTH, TOKENS, 0.2f)->zero_rows = FIRST_WORD;
	for (t = list; t->row; t++)
		t->type = t->rows > 1 ? type : F32;
}

static void put_model(const struct tensor *list)
{
	uint64_t count = 0, offset = 0;
	const struct tensor *t;

	while (list[count].row)
		count++;
	put("GGUF", 4);
	put_u32(3);
	put_u64(count);
	put_u64(FACTS);
	put_facts();
	for (t = list; t->row; t++) {
		put_string(t->name);
		put_u32(t->rows > 1 ? 2 : 1);
		put_u64(t->row);
		if (t->rows > 1)
			put_u64(t->rows);
		put_u32(t->type);
		put_u64(offset);
		offset = aligned(offset + weights_size(t));
	}
	pad();
	for (t = list; t->row; t++)
		put_weights(t);
}

/* The type of that name, or -1 if the name is not known. */
static int find_type(const char *name)
{
	if (!strcmp(name, "f16"))
		return F16;
	if (!strcmp(name, "f32"))
		return F32;
	return strcmp(name, "q8_0") ? -1 : Q8_0;
}

int main(int argc, char **argv)
{
	struct tensor list[LAYERS * 9 + 3 + 1] = { 0 };

	if (argc != 3 || find_type(argv[1]) < 0) {
		fprintf(stderr, "usage: make-model f16|f32|q8_0 FILE\n");
		return 2;
	}
	out = fopen(argv[2], "wb");
	if (!out) {
		perror(argv[2]);
		return 1;
	}
	list_tensors(list, (enum type)find_type(argv[1]));
	put_model(list);
	if (fclose(out)) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
