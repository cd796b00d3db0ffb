// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock whisper.cpp, which writes down what it hears. At a dump a thread is in the
 * middle of its texts. README.md has its options, signals and log lines. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "options.h"
#include "serve.h"

/* The functions of whisper.cpp that the client calls. The signatures are those of its header, with
 * the context as a pointer to void. */
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
	void (*load_backends)(void); /* of ggml, which whisper.cpp needs */
};

#define RATE    16000u
#define SAMPLES (RATE * 5 / 4)
#define TOKENS  400u /* of a text; a model has room for 448 */
#define BEGUN   20u  /* tokens after which a new thread allocates no more memory */

/* The tokens of a text, and how likely each token would be next. */
struct text {
	int32_t tokens[TOKENS];
	float *logits;
};

struct client {
	struct report report;
	struct whisper whisper;
	const char *model;
	void *context;
	uint32_t num_texts;
	size_t logits_size;
	struct text *expected, *now;
	float samples[SAMPLES];
	pthread_t writer;
	bool written;           /* without an error */
	atomic_bool done;       /* the writer has ended */
	atomic_uint num_tokens; /* that the writer has written */
};

/* A tone that rises, from another pitch for each text. */
static void make_sound(struct client *client, uint32_t number)
{
	double phase = 0;

	for (uint32_t i = 0; i < SAMPLES; i++) {
		phase += 2 * M_PI * (200 + 150 * number + i / 20.0) / RATE;
		client->samples[i] = (float)(0.5 * sin(phase));
	}
}

static bool hear(struct client *client, uint32_t number)
{
	make_sound(client, number);
	return GOOD(client, whisper.pcm_to_mel(client->context, client->samples, SAMPLES, 1)) &&
	       GOOD(client, whisper.encode(client->context, 0, 1));
}

static int32_t most_likely(const float *logits, size_t count)
{
	size_t i, best = 0;

	for (i = 1; i < count; i++)
		best = logits[i] > logits[best] ? i : best;
	return (int32_t)best;
}

/* Each token follows from the sound and from all tokens before it. */
static bool write_text(struct client *client, struct text *text)
{
	text->tokens[0] = 1;
	for (uint32_t i = 0; i < TOKENS; i++) {
		const float *logits;

		if (!GOOD(client, whisper.decode(client->context, &text->tokens[i], 1, (int)i, 1)))
			return false;
		logits = client->whisper.get_logits(client->context);
		memcpy(text->logits, logits, client->logits_size);
		client->num_tokens++;
		if (i + 1 < TOKENS)
			text->tokens[i + 1] =
				most_likely(logits, client->logits_size / sizeof(*logits));
	}
	return true;
}

static bool write_texts(struct client *client, struct text *texts)
{
	for (uint32_t i = 0; i < client->num_texts; i++)
		if (!hear(client, i) || !write_text(client, &texts[i]))
			return false;
	return true;
}

static bool allocate(struct client *client, struct text **ret_texts)
{
	struct text *texts = calloc(client->num_texts, sizeof(*texts));

	for (uint32_t i = 0; texts && i < client->num_texts; i++) {
		texts[i].logits = malloc(client->logits_size);
		if (!texts[i].logits)
			return report_fail(&client->report, false, "no memory");
	}
	*ret_texts = texts;
	return texts || report_fail(&client->report, false, "no memory");
}

/* A text that repeats itself would not show that something is lost. */
static bool has_varied_tokens(struct client *client, const struct text *text)
{
	uint32_t i, k, count = 0;

	for (i = 0; i < TOKENS; i++) {
		for (k = 0; k < i && text->tokens[k] != text->tokens[i];)
			k++;
		count += k == i;
	}
	return count > TOKENS / 8 ||
	       report_fail(&client->report, false, "only %u tokens are different", count);
}

/* Also writes the texts that all others must equal. */
static bool set_up(void *arg)
{
	struct client *client = arg;
#define WHISPER_NAME(type, name, parameters) "whisper_" #name,
	static const char *const files[] = { "libwhisper.so.1", NULL }, *const names[] = {
		WHISPER_FUNCTIONS(WHISPER_NAME) "ggml_backend_load_all", NULL
	};
#undef WHISPER_NAME

	if (!library_open(&client->report, files, names, &client->whisper))
		return false;
	client->whisper.load_backends();
	client->context = client->whisper.init_from_file(client->model);
	if (!client->context)
		return report_fail(&client->report, false, "cannot load %s", client->model);
	client->logits_size = (size_t)client->whisper.n_vocab(client->context) * sizeof(float);
	if (!allocate(client, &client->expected) || !allocate(client, &client->now) ||
	    !write_texts(client, client->expected))
		return false;
	for (uint32_t i = 0; i < client->num_texts; i++)
		if (!has_varied_tokens(client, &client->expected[i]))
			return false;
	return true;
}

static void *run_writer(void *arg)
{
	struct client *client = arg;

	client->written = write_texts(client, client->now);
	client->done = true;
	return NULL;
}

/* Returns when the texts have begun. HIP allocates memory for a thread at its first calls, and
 * mappings before the dump are compared with those after the restore. */
static bool begin(void *arg)
{
	struct client *client = arg;

	client->done = false;
	client->num_tokens = 0;
	if (!library_good(&client->report,
			  pthread_create(&client->writer, NULL, run_writer, client), "a thread"))
		return false;
	while (client->num_tokens < BEGUN && !client->done)
		(void)usleep(10000);
	return true;
}

static bool verify(void *arg)
{
	struct client *client = arg;
	uint32_t i;

	if (client->done)
		return report_fail(&client->report, false, "the texts had ended before");
	if (!library_good(&client->report, pthread_join(client->writer, NULL),
			  "the end of a thread") ||
	    !client->written)
		return false;
	for (i = 0; i < client->num_texts; i++)
		if (memcmp(client->now[i].tokens, client->expected[i].tokens,
			   sizeof(client->now[i].tokens)) != 0 ||
		    memcmp(client->now[i].logits, client->expected[i].logits,
			   client->logits_size) != 0)
			return report_fail(&client->report, false, "text %u has another end", i);
	return true;
}

static bool tear_down(void *arg)
{
	struct client *client = arg;

	client->whisper.free(client->context);
	return true;
}

int main(int argc, char **argv)
{
	static struct client client;
	const struct choice choices[] = {
		{ "--log", .text = &client.report.path, .is_needed = true },
		{ "--model", .text = &client.model, .is_needed = true },
		{ "--texts", .number = &client.num_texts, .is_needed = true },
		{ 0 },
	};

	(void)argc;
	if (!options_parse(argv, choices))
		return 2;
	report_init(&client.report, client.report.path);
	return serve(&(struct serve){ &client.report, &client, set_up, begin, verify, tear_down });
}
