/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * make-whisper FILE: writes a model for whisper.cpp, with random weights that are always the same:
 * one layer that hears, and two that write, with 512 tokens. Its text makes no sense, but each
 * token depends on the sound and on all tokens before it.
 *
 * The format is ggml's of whisper.cpp: numbers of layers and sizes, filters for the sound, a
 * vocabulary, which is empty here, and tensors with a name each (models/convert-pt-to-ggml.py
 * there).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights.h"

enum { HEAR_LAYERS = 1, WRITE_LAYERS = 2, WIDTH = 64, HEADS = 1, INNER = 4 * WIDTH };
enum { HEAR_CONTEXT = 64, WRITE_CONTEXT = 448, TOKENS = 512 };
enum { BANDS = 80, FREQUENCIES = 201 };
/* ggml_type in ggml.h; as the type of a file, 1 is F16, too. */
enum type { F32 = 0, F16 = 1 };

static void put_sizes(void)
{
	static const uint32_t sizes[] = { TOKENS,       HEAR_CONTEXT,  WIDTH, HEADS,
					  HEAR_LAYERS,  WRITE_CONTEXT, WIDTH, HEADS,
					  WRITE_LAYERS, BANDS,         F16 };

	put("lmgg", 4);
	put(sizes, sizeof(sizes));
}

/* Each band has the frequencies around its own. */
static void put_filters(void)
{
	int band, i;

	PUT(uint32_t, BANDS);
	PUT(uint32_t, FREQUENCIES);
	for (band = 0; band < BANDS; band++)
		for (i = 0; i < FREQUENCIES; i++) {
			int distance = abs(2 * i - 5 * band);

			PUT(float, distance < 6 ? (float)(6 - distance) / 300 : 0);
		}
}

struct tensor {
	const char *name; /* without a prefix */
	enum type type;
	uint32_t size[3];  /* 0: no such dimension */
	float base, range; /* weights are around the base */
};

static void put_tensor(const char *prefix, const struct tensor *t)
{
	uint32_t dimensions = t->size[2] ? 3 : t->size[1] ? 2 : 1, count = 1, i;
	char name[80];

	snprintf(name, sizeof(name), "%s%s", prefix, t->name);
	PUT(uint32_t, dimensions);
	PUT(uint32_t, (uint32_t)strlen(name));
	PUT(uint32_t, t->type);
	for (i = 0; i < dimensions; i++) {
		PUT(uint32_t, t->size[i]);
		count *= t->size[i];
	}
	put(name, strlen(name));
	for (i = 0; i < count; i++) {
		float value = t->base + t->range * next_random();

		if (t->type == F16)
			PUT(_Float16, (_Float16)value);
		else
			PUT(float, value);
	}
}

static void put_tensors(const char *prefix, const struct tensor *tensors, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		put_tensor(prefix, &tensors[i]);
}
#define PUT_TENSORS(prefix, tensors) \
	put_tensors(prefix, tensors, sizeof(tensors) / sizeof(*(tensors)))

#define NORM(name)                                     \
	{ name ".weight", F32, { WIDTH }, 1, 0 },      \
	{                                              \
		name ".bias", F32, { WIDTH }, 0, 0.05f \
	}
#define MATRIX(name, from, to, range)                    \
	{ name ".weight", F16, { from, to }, 0, range }, \
	{                                                \
		name ".bias", F32, { to }, 0, 0.05f      \
	}
#define ATTENTION(name)                                                 \
	NORM(name "_ln"), MATRIX(name ".query", WIDTH, WIDTH, 0.4f),    \
		{ name ".key.weight", F16, { WIDTH, WIDTH }, 0, 0.4f }, \
		MATRIX(name ".value", WIDTH, WIDTH, 0.4f), MATRIX(name ".out", WIDTH, WIDTH, 0.4f)
#define INNER_LAYERS \
	NORM("mlp_ln"), MATRIX("mlp.0", WIDTH, INNER, 0.2f), MATRIX("mlp.2", INNER, WIDTH, 0.2f)

static const struct tensor hearing[] = {
	{ "positional_embedding", F32, { WIDTH, HEAR_CONTEXT }, 0, 0.3f },
	{ "conv1.weight", F16, { 3, BANDS, WIDTH }, 0, 0.2f },
	{ "conv1.bias", F32, { 1, WIDTH }, 0, 0.05f },
	{ "conv2.weight", F16, { 3, WIDTH, WIDTH }, 0, 0.2f },
	{ "conv2.bias", F32, { 1, WIDTH }, 0, 0.05f },
	NORM("ln_post"),
};
static const struct tensor hearing_layer[] = { ATTENTION("attn"), INNER_LAYERS };
/* A token's own weight is small, so that a token is seldom the next one again. */
static const struct tensor writing[] = {
	{ "positional_embedding", F32, { WIDTH, WRITE_CONTEXT }, 0, 0.5f },
	{ "token_embedding.weight", F16, { WIDTH, TOKENS }, 0, 0.2f },
	NORM("ln"),
};
static const struct tensor writing_layer[] = { ATTENTION("attn"), ATTENTION("cross_attn"),
					       INNER_LAYERS };

static void put_model(void)
{
	char prefix[32];
	int i;

	put_sizes();
	put_filters();
	PUT(uint32_t, 0); /* words */
	PUT_TENSORS("encoder.", hearing);
	for (i = 0; i < HEAR_LAYERS; i++) {
		snprintf(prefix, sizeof(prefix), "encoder.blocks.%d.", i);
		PUT_TENSORS(prefix, hearing_layer);
	}
	PUT_TENSORS("decoder.", writing);
	for (i = 0; i < WRITE_LAYERS; i++) {
		snprintf(prefix, sizeof(prefix), "decoder.blocks.%d.", i);
		PUT_TENSORS(prefix, writing_layer);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make-whisper FILE\n");
		return 2;
	}
	out = fopen(argv[1], "wb");
	if (!out) {
		perror(argv[1]);
		return 1;
	}
	put_model();
	if (fclose(out)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
