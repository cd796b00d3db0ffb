// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock HIP and rocFFT, which compiles its kernels when it makes a plan. At a dump it
 * is in the middle of a row of transforms, each of what the one before has left. README.md has its
 * options, signals and log lines. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"
#include "library.h"
#include "options.h"
#include "serve.h"

/* The functions of rocFFT that the client calls. The signatures are those of its header, with plans
 * and their parts as pointers to void. */
#define FFT_IN_PLACE 0
#define FFT_FORWARD  0
#define FFT_SINGLE   0

#define FFT_FUNCTIONS(X)                                                               \
	X(setup, (void))                                                               \
	X(cleanup, (void))                                                             \
	X(plan_description_create, (void **ret_description))                           \
	X(plan_description_set_scale_factor, (void *description, double factor))       \
	X(plan_description_destroy, (void *description))                               \
	X(plan_create,                                                                 \
	  (void **ret_plan, int placement, int type, int precision, size_t dimensions, \
	   const size_t *lengths, size_t transforms, void *description))               \
	X(plan_get_work_buffer_size, (void *plan, size_t *ret_size))                   \
	X(plan_destroy, (void *plan))                                                  \
	X(execution_info_create, (void **ret_info))                                    \
	X(execution_info_set_stream, (void *info, void *stream))                       \
	X(execution_info_destroy, (void *info))                                        \
	X(execute, (void *plan, void **from, void **to, void *info))

struct fft {
	FFT_FUNCTIONS(LIBRARY_MEMBER)
};

#define POINTS  1024u
#define VECTORS 128u
#define SCALE   (1.0 / 32) /* the root of 1 / POINTS keeps the size of the numbers */
#define BYTES   (POINTS * VECTORS * sizeof(struct point))

struct point {
	float re, im;
};

struct client {
	struct report report;
	struct hip hip;
	struct fft fft;
	uint32_t transforms; /* of a row */
	void *stream, *done; /* done: an event behind the row */
	void *plan, *info, *points;
	struct point *first, *expected,
		*now; /* at the start of a row, at its end, and as read back */
};

static bool make_plan(struct client *client)
{
	size_t points = POINTS, work = 0;
	void *description;

	if (!GOOD(client, fft.setup()) ||
	    !GOOD(client, fft.plan_description_create(&description)) ||
	    !GOOD(client, fft.plan_description_set_scale_factor(description, SCALE)) ||
	    !GOOD(client, fft.plan_create(&client->plan, FFT_IN_PLACE, FFT_FORWARD, FFT_SINGLE, 1,
					  &points, VECTORS, description)) ||
	    !GOOD(client, fft.plan_description_destroy(description)) ||
	    !GOOD(client, fft.plan_get_work_buffer_size(client->plan, &work)) ||
	    !GOOD(client, fft.execution_info_create(&client->info)) ||
	    !GOOD(client, fft.execution_info_set_stream(client->info, client->stream)))
		return false;
	return !work || report_fail(&client->report, false, "the plan wants %zu bytes", work);
}

static bool queue_transforms(struct client *client, uint32_t transforms)
{
	if (!GOOD(client, hip.Memcpy(client->points, client->first, BYTES, HIP_TO_DEVICE)))
		return false;
	for (uint32_t i = 0; i < transforms; i++)
		if (!GOOD(client, fft.execute(client->plan, &client->points, NULL, client->info)))
			return false;
	return true;
}

static bool read_points(struct client *client, struct point *to)
{
	return GOOD(client, hip.StreamSynchronize(client->stream)) &&
	       GOOD(client, hip.Memcpy(to, client->points, BYTES, HIP_TO_HOST));
}

/* The transform of the last vector by its definition. */
static bool compare_with_definition(struct client *client, const struct point *got)
{
	const struct point *from = client->first + (VECTORS - 1) * POINTS;
	double cosines[POINTS];
	uint32_t i, k;

	for (i = 0; i < POINTS; i++)
		cosines[i] = cos(2 * M_PI * i / POINTS);
	got += (VECTORS - 1) * POINTS;
	for (k = 0; k < POINTS; k++) {
		double re = 0, im = 0;

		for (i = 0; i < POINTS; i++) {
			double c = cosines[i * k % POINTS];
			double s = cosines[(i * k + POINTS / 4) % POINTS]; /* - sin */

			re += from[i].re * c - from[i].im * s;
			im += from[i].re * s + from[i].im * c;
		}
		if (fabs(re * SCALE - got[k].re) > 0.01 || fabs(im * SCALE - got[k].im) > 0.01)
			return report_fail(&client->report, false, "point %u: %g %g, not %g %g", k,
					   (double)got[k].re, (double)got[k].im, re * SCALE,
					   im * SCALE);
	}
	return true;
}

static bool allocate(struct client *client)
{
	struct point **points[] = { &client->first, &client->expected, &client->now };

	for (uint32_t i = 0; i < 3; i++) {
		*points[i] = malloc(BYTES);
		if (!*points[i])
			return report_fail(&client->report, false, "no memory");
	}
	for (uint32_t i = 0; i < POINTS * VECTORS; i++) {
		client->first[i].re = (float)(i * 2654435761u >> 24) / 16;
		client->first[i].im = (float)(i * 40503u % 251) / 16;
	}
	return GOOD(client, hip.SetDevice(0)) && GOOD(client, hip.StreamCreate(&client->stream)) &&
	       GOOD(client, hip.EventCreate(&client->done)) &&
	       GOOD(client, hip.Malloc(&client->points, BYTES));
}

/* Also runs a row without interruption, whose end is that of all rows. */
static bool set_up(void *arg)
{
	struct client *client = arg;
#define FFT_NAME(name, parameters) "rocfft_" #name,
	static const char *const files[] = { "librocfft.so.0", NULL }, *const names[] = {
		FFT_FUNCTIONS(FFT_NAME) NULL
	};
#undef FFT_NAME

	return hip_open(&client->report, &client->hip) &&
	       library_open(&client->report, files, names, &client->fft) && allocate(client) &&
	       make_plan(client) && queue_transforms(client, 1) &&
	       read_points(client, client->now) && compare_with_definition(client, client->now) &&
	       queue_transforms(client, client->transforms) &&
	       read_points(client, client->expected);
}

static bool begin(void *arg)
{
	struct client *client = arg;

	return queue_transforms(client, client->transforms) &&
	       GOOD(client, hip.EventRecord(client->done, client->stream));
}

static bool verify(void *arg)
{
	struct client *client = arg;

	if (client->hip.EventQuery(client->done) != HIP_NOT_READY)
		return report_fail(&client->report, false, "the row had ended before");
	if (!read_points(client, client->now))
		return false;
	return memcmp(client->now, client->expected, BYTES) == 0 ||
	       report_fail(&client->report, false, "the row has another end");
}

static bool tear_down(void *arg)
{
	struct client *client = arg;

	return GOOD(client, fft.execution_info_destroy(client->info)) &&
	       GOOD(client, fft.plan_destroy(client->plan)) && GOOD(client, fft.cleanup()) &&
	       GOOD(client, hip.Free(client->points)) &&
	       GOOD(client, hip.EventDestroy(client->done)) &&
	       GOOD(client, hip.StreamDestroy(client->stream));
}

int main(int argc, char **argv)
{
	static struct client client;
	const struct choice choices[] = {
		{ "--log", .text = &client.report.path, .is_needed = true },
		{ "--transforms", .number = &client.transforms, .is_needed = true },
		{ 0 },
	};

	(void)argc;
	if (!options_parse(argv, choices))
		return 2;
	report_init(&client.report, client.report.path);
	return serve(&(struct serve){ &client.report, &client, set_up, begin, verify, tear_down });
}
