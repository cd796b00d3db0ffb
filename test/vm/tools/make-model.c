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

#include "weights.h"

enum { LAYERS = 2, WIDTH = 128, HEADS = 2, INNER = 256, CONTEXT = 4096 };
/* Tokens: unknown, begin, end, the 256 bytes, and the words. */
enum { FIRST_BYTE = 3, FIRST_WORD = FIRST_BYTE + 256, TOKENS = 512 };
enum { ALIGNMENT = 32, BLOCK = 32 };

/* ggml_type in ggml.h, and gguf_type in gguf.h. */
enum type { F32 = 0, F16 = 1, Q8_0 = 8 };
enum fact { FACT_U32 = 4, FACT_I32 = 5, FACT_F32 = 6, FACT_STRING = 8, FACT_ARRAY = 9 };

static struct tensor {
	char name[32];
	uint64_t row, rows;
	enum type type;
	float range; /* weights are between -range and range; or 1, if there is but one row */
	uint64_t zero_rows; /* the first rows, whose weights are 0 */
} tensors[LAYERS * 9 + 3];
static unsigned int num_tensors;

static void put_string(const char *text)
{
	PUT(uint64_t, strlen(text));
	put(text, strlen(text));
}

static void put_name(const char *name, enum fact type)
{
	put_string(name);
	PUT(uint32_t, type);
}

static void fact_u32(const char *name, uint32_t value)
{
	put_name(name, FACT_U32);
	PUT(uint32_t, value);
}

static void fact_string(const char *name, const char *value)
{
	put_name(name, FACT_STRING);
	put_string(value);
}

/* A fact of each token. */
static void begin_tokens(const char *name, enum fact type)
{
	put_name(name, FACT_ARRAY);
	PUT(uint32_t, type);
	PUT(uint64_t, TOKENS);
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

/* llama_token_type in llama.h: unknown, control, byte, normal. */
static uint32_t token_type(int token)
{
	return !token ? 2 : token < FIRST_BYTE ? 3 : token < FIRST_WORD ? 6 : 1;
}

static void put_vocabulary(void)
{
	fact_string("tokenizer.ggml.model", "llama");
	begin_tokens("tokenizer.ggml.tokens", FACT_STRING);
	for (int i = 0; i < TOKENS; i++)
		put_token(i);
	begin_tokens("tokenizer.ggml.scores", FACT_F32);
	for (int i = 0; i < TOKENS; i++)
		PUT(float, 0);
	begin_tokens("tokenizer.ggml.token_type", FACT_I32);
	for (int i = 0; i < TOKENS; i++)
		PUT(uint32_t, token_type(i));
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
	PUT(float, 1e-5f);
	put_vocabulary();
}
#define FACTS (7 + VOCABULARY_FACTS)

/* With the bytes up to the next tensor. */
static uint64_t weights_size(const struct tensor *t)
{
	const uint64_t count = t->row * t->rows;
	const uint64_t size = t->type == F16   ? 2 * count
			      : t->type == F32 ? 4 * count
					       : count / BLOCK * (2 + BLOCK);

	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void pad(void)
{
	while (ftell(out) % ALIGNMENT)
		put("", 1);
}

/* 32 weights of type Q8_0 are bytes, with a factor before them. */
static void put_block(float range)
{
	int8_t weights[BLOCK];

	for (int i = 0; i < BLOCK; i++)
		weights[i] = (int8_t)(127.f * next_random());
	PUT(_Float16, (_Float16)(range / 127.f));
	put(weights, sizeof(weights));
}

static void put_weights(const struct tensor *t)
{
	for (uint64_t i = 0; i < t->row * t->rows; i += t->type == Q8_0 ? BLOCK : 1) {
		float range = i / t->row < t->zero_rows ? 0 : t->range;

		if (t->type == Q8_0)
			put_block(range);
		else if (t->type == F16)
			PUT(_Float16, (_Float16)(range * next_random()));
		else
			PUT(float, t->rows > 1 ? range * next_random() : 1);
	}
	pad();
}

/* Adds a tensor with a name of two parts. A norm is one row of ones. */
static struct tensor *add(int layer, const char *name, enum type type, uint64_t row, uint64_t rows,
			  float range)
{
	struct tensor *t = &tensors[num_tensors++];

	*t = (struct tensor){
		.type = rows > 1 ? type : F32, .row = row, .rows = rows, .range = range
	};
	if (layer >= 0)
		snprintf(t->name, sizeof(t->name), "blk.%d.%s.weight", layer, name);
	else
		snprintf(t->name, sizeof(t->name), "%s.weight", name);
	return t;
}

/* With these ranges attention is sharp and outweighs the last word. So the text does not repeat
 * itself. */
static void list_tensors(enum type type)
{
	add(-1, "token_embd", type, WIDTH, TOKENS, 0.5f);
	for (int i = 0; i < LAYERS; i++) {
		add(i, "attn_norm", type, WIDTH, 1, 1);
		add(i, "attn_q", type, WIDTH, WIDTH, 0.3f);
		add(i, "attn_k", type, WIDTH, WIDTH, 0.3f);
		add(i, "attn_v", type, WIDTH, WIDTH, 0.3f);
		add(i, "attn_output", type, WIDTH, WIDTH, 0.3f);
		add(i, "ffn_norm", type, WIDTH, 1, 1);
		add(i, "ffn_gate", type, WIDTH, INNER, 0.2f);
		add(i, "ffn_up", type, WIDTH, INNER, 0.2f);
		add(i, "ffn_down", type, INNER, WIDTH, 0.2f);
	}
	add(-1, "output_norm", type, WIDTH, 1, 1);
	/* Only words are ever likely, neither bytes nor the end of the text. */
	add(-1, "output", type, WIDTH, TOKENS, 0.2f)->zero_rows = FIRST_WORD;
}

static void put_model(void)
{
	uint64_t offset = 0;

	put("GGUF", 4);
	PUT(uint32_t, 3);
	PUT(uint64_t, num_tensors);
	PUT(uint64_t, FACTS);
	put_facts();
	for (unsigned int i = 0; i < num_tensors; i++) {
		const struct tensor *t = &tensors[i];

		put_string(t->name);
		PUT(uint32_t, t->rows > 1 ? 2 : 1);
		PUT(uint64_t, t->row);
		if (t->rows > 1)
			PUT(uint64_t, t->rows);
		PUT(uint32_t, t->type);
		PUT(uint64_t, offset);
		offset += weights_size(t);
	}
	pad();
	for (unsigned int i = 0; i < num_tensors; i++)
		put_weights(&tensors[i]);
}

int main(int argc, char **argv)
{
	const char *type = argc == 3 ? argv[1] : "";

	if (strcmp(type, "f16") && strcmp(type, "f32") && strcmp(type, "q8_0")) {
		fprintf(stderr, "usage: make-model f16|f32|q8_0 FILE\n");
		return 2;
	}
	out = fopen(argv[2], "wb");
	if (out) {
		list_tensors(*type == 'q' ? Q8_0 : type[1] == '1' ? F16 : F32);
		put_model();
	}
	if (!out || fclose(out)) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
