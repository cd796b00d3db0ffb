// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock HIP and rocFFT, which compiles its kernels when it makes a plan. At a dump it
 * is in the middle of a row of transforms, each of what the one before has left. README.md has its
 * options, signals and log lines. */
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fft.h"
#include "hip.h"
#include "library.h"
#include "serve.h"

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
	struct fft *fft = &client->fft;
	size_t points = POINTS, work = 0;
	void *description;

	if (!library_good(&client->report, fft->setup(), "rocfft_setup") ||
	    !library_good(&client->report, fft->plan_description_create(&description),
			  "a description of a plan") ||
	    !library_good(&client->report,
			  fft->plan_description_set_scale_factor(description, SCALE),
			  "a factor of a plan") ||
	    !library_good(&client->report,
			  fft->plan_create(&client->plan, FFT_IN_PLACE, FFT_FORWARD, FFT_SINGLE, 1,
					   &points, VECTORS, description),
			  "rocfft_plan_create") ||
	    !library_good(&client->report, fft->plan_description_destroy(description),
			  "a description of a plan") ||
	    !library_good(&client->report, fft->plan_get_work_buffer_size(client->plan, &work),
			  "the size of a work buffer") ||
	    !library_good(&client->report, fft->execution_info_create(&client->info),
			  "information of execution") ||
	    !library_good(&client->report,
			  fft->execution_info_set_stream(client->info, client->stream),
			  "the stream of execution"))
		return false;
	return !work || report_fail(&client->report, false, "the plan wants %zu bytes", work);
}

static bool queue_transforms(struct client *client, uint32_t transforms)
{
	uint32_t i;

	if (!library_good(&client->report,
			  client->hip.Memcpy(client->points, client->first, BYTES, HIP_TO_DEVICE),
			  "a copy to VRAM"))
		return false;
	for (i = 0; i < transforms; i++)
		if (!library_good(
			    &client->report,
			    client->fft.execute(client->plan, &client->points, NULL, client->info),
			    "rocfft_execute"))
			return false;
	return true;
}

static bool read_points(struct client *client, struct point *to)
{
	return library_good(&client->report, client->hip.StreamSynchronize(client->stream),
			    "hipStreamSynchronize") &&
	       library_good(&client->report,
			    client->hip.Memcpy(to, client->points, BYTES, HIP_TO_HOST),
			    "a copy from VRAM");
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
	uint32_t i;

	for (i = 0; i < 3; i++) {
		*points[i] = malloc(BYTES);
		if (!*points[i])
			return report_fail(&client->report, false, "no memory");
	}
	for (i = 0; i < POINTS * VECTORS; i++) {
		client->first[i].re = (float)(i * 2654435761u >> 24) / 16;
		client->first[i].im = (float)(i * 40503u % 251) / 16;
	}
	return library_good(&client->report, client->hip.SetDevice(0), "hipSetDevice") &&
	       library_good(&client->report, client->hip.StreamCreate(&client->stream),
			    "hipStreamCreate") &&
	       library_good(&client->report, client->hip.EventCreate(&client->done),
			    "hipEventCreate") &&
	       library_good(&client->report, client->hip.Malloc(&client->points, BYTES),
			    "hipMalloc");
}

/* Also runs a row without interruption, whose end is that of all rows. */
static bool set_up(void *arg)
{
	struct client *client = arg;
	const char *missing = hip_open(&client->hip);

	if (!missing)
		missing = fft_open(&client->fft);
	if (missing)
		return report_fail(&client->report, false, "there is no %s", missing);
	return allocate(client) && make_plan(client) && queue_transforms(client, 1) &&
	       read_points(client, client->now) && compare_with_definition(client, client->now) &&
	       queue_transforms(client, client->transforms) &&
	       read_points(client, client->expected);
}

static bool begin(void *arg)
{
	struct client *client = arg;

	return queue_transforms(client, client->transforms) &&
	       library_good(&client->report, client->hip.EventRecord(client->done, client->stream),
			    "hipEventRecord");
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
	struct fft *fft = &client->fft;
	struct hip *hip = &client->hip;

	return library_good(&client->report, fft->execution_info_destroy(client->info),
			    "information of execution") &&
	       library_good(&client->report, fft->plan_destroy(client->plan),
			    "rocfft_plan_destroy") &&
	       library_good(&client->report, fft->cleanup(), "rocfft_cleanup") &&
	       library_good(&client->report, hip->Free(client->points), "hipFree") &&
	       library_good(&client->report, hip->EventDestroy(client->done), "hipEventDestroy") &&
	       library_good(&client->report, hip->StreamDestroy(client->stream),
			    "hipStreamDestroy");
}

static const char *parse(int argc, char **argv, struct client *client)
{
	static const struct option options[] = {
		{ "log", required_argument, NULL, 'l' },
		{ "transforms", required_argument, NULL, 't' },
		{ 0 },
	};
	const char *log = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			log = optarg;
		else if (option == 't')
			client->transforms = (uint32_t)strtoul(optarg, NULL, 10);
		else
			return NULL;
	}
	return optind == argc && client->transforms ? log : NULL;
}

int main(int argc, char **argv)
{
	static struct client client;
	const char *log = parse(argc, argv, &client);

	if (!log) {
		(void)fprintf(stderr, "usage: fft_client --log FILE --transforms N\n");
		return 2;
	}
	report_init(&client.report, log);
	return serve(&(struct serve){ &client.report, &client, set_up, begin, verify, tear_down });
}
