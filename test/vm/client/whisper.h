/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions of whisper.cpp that its client calls. The library needs ggml of the same suite, so
 * both are opened at run time. The signatures are those of its header, with the context as a
 * pointer to void. */
#ifndef CLIENT_WHISPER_H
#define CLIENT_WHISPER_H

#include <stdbool.h>
#include <stdint.h>

#define WHISPER_FUNCTIONS(X)                                                                     \
	X(void *, init_from_file, (const char *model))                                           \
	X(int, pcm_to_mel,                                                                       \
	  (void *context, const float *samples, int num_samples, int num_threads))               \
	X(int, encode, (void *context, int offset, int num_threads))                             \
	X(int, decode,                                                                           \
	  (void *context, const int32_t *tokens, int num_tokens, int num_past, int num_threads)) \
	X(float *, get_logits, (void *context))                                                  \
	X(int, n_vocab, (void *context))                                                         \
	X(void, free, (void *context))

struct whisper {
#define WHISPER_MEMBER(type, name, parameters) type(*name) parameters;
	WHISPER_FUNCTIONS(WHISPER_MEMBER)
#undef WHISPER_MEMBER
	void (*load_backends)(void);
};

/* Opens the library, and ggml's with it. NULL: well, else what is missing. */
const char *whisper_open(struct whisper *whisper);

#endif
