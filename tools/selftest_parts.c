// SPDX-License-Identifier: GPL-2.0-only
/* Chooses what is tried on which GPU, and says what is not tried. selftest_trip.c tries it. */
#include "selftest_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "foresee.h"
#include "selftest_criu.h"
#include "selftest_trip.h"
#include "text.h"

#define GFX90A 90010u
/* Since 4.0 CRIU stops the queues before it saves memory of files. */
#define HOOKS_OF_EARLY_PAUSE 12

static bool is_chosen(const struct selftest *selftest, unsigned int index,
		      const struct topology_node *gpu)
{
	const char *choice = selftest->request->gpu;
	char *end;
	unsigned long number;

	if (!choice)
		return true;
	number = strtoul(choice, &end, 0);
	return end != choice && !*end && (number == gpu->gpu_id || number == index);
}

const struct topology_node *selftest_parts_next_gpu(const struct selftest *selftest, size_t *node,
						    unsigned int *index)
{
	const struct topology *topology = &selftest->check.topology;

	while (*node < topology->num_nodes) {
		const struct topology_node *gpu = &topology->nodes[(*node)++];

		if (gpu->gpu_id && is_chosen(selftest, (*index)++, gpu))
			return gpu;
	}
	return NULL;
}

static void say_gpu(struct selftest *selftest, const struct topology_node *gpu)
{
	char gfx[16], vram[16], size[16], key[16];

	(void)snprintf(key, sizeof(key), "GPU 0x%04x", gpu->gpu_id);
	selftest_report_say(&selftest->report, key,
			    "%s, %s, firmware %u of compute and %u of SDMA, %s more VRAM",
			    text_gfx(gpu->gfx_target_version, gfx), text_size(gpu->vram_size, vram),
			    gpu->fw_version, gpu->sdma_fw_version,
			    text_size(selftest->bytes, size));
}

static void skip(struct selftest *selftest, const struct topology_node *gpu, const char *what)
{
	selftest_report_skip(&selftest->report, "GPU 0x%04x: %s", gpu->gpu_id, what);
}

/* Chooses what the job of a GPU has, and says what it has not. */
static bool choose_part(struct selftest *selftest, const struct topology_node *gpu,
			struct selftest_part *part)
{
	enum foresee_queue queue = foresee_compute_queue(gpu);

	if (gpu->gfx_target_version >= TOPOLOGY_GFX11) {
		skip(selftest, gpu, "no known kernel restores queues of gfx11 or newer");
		return false;
	}
	part->files = selftest->check.hooks >= HOOKS_OF_EARLY_PAUSE;
	if (!part->files)
		skip(selftest, gpu,
		     "user memory of memfds and unlinked files, which needs CRIU 4.0");
	part->packets = queue != FORESEE_QUEUE_NONE;
	part->kernel = queue == FORESEE_QUEUE_WITH_WAVES && gpu->gfx_target_version == GFX90A;
	if (!part->packets)
		skip(selftest, gpu, "a compute queue, because this kernel does not restore it");
	else if (queue == FORESEE_QUEUE_AT_REST)
		skip(selftest, gpu,
		     "a running kernel, because this driver does not restore waves: queues tested with packets only");
	else if (!part->kernel)
		skip(selftest, gpu,
		     "a running kernel, because there is no kernel for this GPU: queues tested with packets only");
	return true;
}

/* What follows after the GPUs one by one. */
struct together {
	/* One process on all of them has what each of them restores. */
	struct selftest_part all;
	unsigned int usable, unusable;
	/* The first usable one. */
	const struct topology_node *first;
	char label[16], number[16];
};

static void note_usable(struct together *together, const struct topology_node *gpu,
			const struct selftest_part *part)
{
	if (!together->usable++) {
		together->first = gpu;
		(void)snprintf(together->label, sizeof(together->label), "%s", part->label);
		(void)snprintf(together->number, sizeof(together->number), "%s", part->gpus);
	}
	together->all.files = part->files;
	together->all.packets &= part->packets;
	together->all.kernel &= part->kernel;
}

static int try_gpu(struct selftest *selftest, const struct topology_node *gpu, unsigned int index,
		   struct together *together)
{
	struct selftest_part part = together->all;
	char label[16], number[16];

	(void)snprintf(label, sizeof(label), "GPU 0x%04x", gpu->gpu_id);
	(void)snprintf(number, sizeof(number), "%u", index);
	part.label = label;
	part.gpus = number;
	say_gpu(selftest, gpu);
	if (!choose_part(selftest, gpu, &part)) {
		together->unusable++;
		return 0;
	}
	note_usable(together, gpu, &part);
	return selftest_trip_run(selftest, &part);
}

static int try_all(struct selftest *selftest, const struct together *together)
{
	char cause[48] = "--gpu asks for one only";

	if (topology_count_gpus(&selftest->check.topology) < 2)
		return 0;
	if (!selftest->request->gpu && !together->unusable)
		return selftest_trip_run(selftest, &together->all);
	if (!selftest->request->gpu)
		(void)snprintf(cause, sizeof(cause), "%u of them cannot be tried",
			       together->unusable);
	selftest_report_skip(
		&selftest->report,
		"all GPUs: a job on all of them, and buffers that two of them share, because %s",
		cause);
	return 0;
}

static int try_shared(struct selftest *selftest, const struct together *together)
{
	struct selftest_part part = {
		.label = together->label,
		.gpus = together->number,
		.name = "two processes that share buffers",
		.key = "share",
		.shares = true,
		.trips = together->all.trips,
	};
	int ret = together->usable ? selftest_trip_run(selftest, &part) : 0;

	if (ret || together->usable < 2 || together->unusable)
		return ret;
	part.label = "two GPUs";
	part.gpus = together->all.gpus;
	return selftest_trip_run(selftest, &part);
}

/* Why no move can be tried, whatever the other GPUs are, or NULL. */
static const char *forbid_move(const struct selftest *selftest, const struct together *together)
{
	if (selftest->request->gpu)
		return "--gpu asks for this one only";
	return together->usable + together->unusable < 2 ? "this machine has one GPU" : NULL;
}

/* The job of the first GPU comes back on another GPU of its kind. */
static int try_move(struct selftest *selftest, const struct together *together)
{
	const char *forbidden = forbid_move(selftest, together);
	char name[40], cause[SELFTEST_MOVE_CAUSE];
	struct selftest_part part = together->all;
	struct selftest_move move;

	if (!together->usable)
		return 0;
	if (forbidden)
		(void)snprintf(cause, sizeof(cause), "%s", forbidden);
	if (forbidden || selftest_move_begin(selftest, together->first, &move, cause) < 0) {
		selftest_report_skip(&selftest->report, "%s: a restore on another GPU, because %s",
				     together->label, cause);
		return 0;
	}
	(void)snprintf(name, sizeof(name), "job restored on GPU 0x%04x", move.to->gpu_id);
	part.label = together->label;
	part.gpus = "all"; /* that it sees */
	part.name = name;
	part.key = "move";
	part.move = &move;
	part.trips = 1;
	part.dumps = 0;
	return selftest_trip_run(selftest, &part);
}

/* What is not tried on any GPU. */
static void skip_manners(struct selftest *selftest)
{
	if (!check_find_program(SELFTEST_STREAMER, selftest->streamer))
		*selftest->streamer = '\0';
	if (selftest->request->quick)
		selftest_report_skip(
			&selftest->report,
			"dumps that leave the job running, dump-memory and --stream, because of --quick");
	else if (!*selftest->streamer)
		selftest_report_skip(&selftest->report,
				     "--stream, because " SELFTEST_STREAMER " is not in PATH");
}

int selftest_parts_run(struct selftest *selftest)
{
	const bool quick = selftest->request->quick;
	struct together together = { .all = { .label = "all GPUs",
					      .gpus = "all",
					      .name = "job",
					      .key = "job",
					      .packets = true,
					      .kernel = true,
					      .trips = quick ? 1 : 2,
					      .dumps = quick ? 0 : 3 } };
	int ret;

	skip_manners(selftest);
	SELFTEST_FOR_EACH_GPU (selftest, gpu, index) {
		ret = try_gpu(selftest, gpu, index - 1, &together);
		if (ret)
			return ret;
	}
	ret = try_all(selftest, &together);
	if (!ret)
		ret = try_shared(selftest, &together);
	return ret ? ret : try_move(selftest, &together);
}
