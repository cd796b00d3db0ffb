// SPDX-License-Identifier: GPL-2.0-only
/* bench-map DIR [ROUNDS]: processor time and attempts of the mapper for every pair of
 * DIR/pairs.tsv, and for synthetic machines of up to 64 GPUs that are hard to map. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu_stub.h"
#include "map/map.h"
#include "pairs.h"
#include "synthetic.h"

struct worst {
	double seconds;
	double sum;
	uint64_t attempts;
	unsigned int count;
	char name[64];
};

static void note(struct worst *worst, const char *name, double seconds, uint64_t attempts)
{
	worst->count++;
	worst->sum += seconds;
	if (attempts > worst->attempts)
		worst->attempts = attempts;
	if (seconds < worst->seconds)
		return;
	worst->seconds = seconds;
	(void)snprintf(worst->name, sizeof(worst->name), "%s", name);
}

static void print_worst(const char *title, const struct worst *worst)
{
	printf("%-44s %5u runs, mean %8.3f ms, worst %8.3f ms (%s), most attempts %llu\n", title,
	       worst->count, worst->sum * 1e3 / worst->count, worst->seconds * 1e3, worst->name,
	       (unsigned long long)worst->attempts);
}

static void measure_pair(struct pair *pair, void *argument)
{
	struct answer answer;

	pair_answer(pair, &answer);
	printf("%-5s %-15s %8.3f ms %6llu attempts  %s -> %s\n", pair->columns[PAIR_ID],
	       answer.outcome, answer.seconds * 1e3, (unsigned long long)answer.attempts,
	       pair->columns[PAIR_SOURCE], pair->columns[PAIR_DESTINATION]);
	note(argument, pair->columns[PAIR_ID], answer.seconds, answer.attempts);
}

struct shape {
	const char *name;
	size_t num_hives;
	size_t size;
	size_t num_cpus;
	bool striped;
};

static const struct shape shapes[] = {
	{ "64 partitions, one hive, 2 CPU nodes", 1, 64, 2, true },
	{ "64 partitions, one hive, 8 CPU nodes", 1, 64, 8, true },
	{ "64 GPUs in 16 hives of 4, 1 CPU node", 16, 4, 1, false },
	{ "64 GPUs in 16 hives of 4, 8 CPU nodes", 16, 4, 8, false },
	{ "64 GPUs in 16 hives of 4 across 4 CPU nodes", 16, 4, 4, true },
	{ "64 GPUs in 8 hives of 8, 2 CPU nodes", 8, 8, 2, false },
	{ "64 GPUs without XGMI, 8 CPU nodes", 64, 1, 8, false },
	{ "16 GPUs in 4 hives of 4, 2 CPU nodes", 4, 4, 2, false },
	{ "16 GPUs in 4 hives of 4, 1 CPU node", 4, 4, 1, false },
};

/* How the second machine differs from the first. */
static const char *const events[] = {
	"the same machine",
	"renamed",
	"renamed, some newer firmware",
	"renamed, a link lost",
	"renamed, links lost",
	"a third of the GPUs to all of another",
	"some slots the same",
	"GPUs at other CPU nodes",
	"one GPU that fits nowhere",
	"firmware on both sides",
	"moved before, other ids",
	"moved before, some ids and slots the same",
};

static void update_firmware(struct dice *dice, struct topology *topology, uint32_t percent)
{
	for (size_t i = 0; i < topology_count_gpus(topology); i++)
		machine_gpu(topology, i)->fw_version += dice_percent(dice, percent);
}

static void lose_links(struct dice *dice, struct topology *topology, size_t count)
{
	uint32_t gpus = (uint32_t)topology_count_gpus(topology);

	while (count--) {
		uint32_t a = dice_roll(dice, gpus), b = dice_roll(dice, gpus);

		if (a != b)
			machine_lose_link(topology, a, b);
	}
}

static void make_event(struct dice *dice, size_t event, struct topology *from, struct topology *to)
{
	struct topology other;
	uint32_t gpus = (uint32_t)topology_count_gpus(from);

	machine_renamed(dice, from, to);
	switch (event) {
	case 0:
		topology_done(to);
		machine_copy(from, to);
		break;
	case 2:
		update_firmware(dice, to, 50);
		break;
	case 3:
		lose_links(dice, to, 1);
		break;
	case 4:
		lose_links(dice, from, 5);
		lose_links(dice, to, 3);
		break;
	case 5:
		machine_some(dice, from, gpus / 3, &other);
		topology_done(from);
		*from = other;
		break;
	case 6:
		for (uint32_t i = 0; i < gpus / 3; i++)
			machine_gpu(to, dice_roll(dice, gpus))->unique_id =
				machine_gpu(from, dice_roll(dice, gpus))->unique_id;
		break;
	case 7:
		for (uint32_t i = 0; i < 4; i++)
			machine_move_gpu(to, dice_roll(dice, gpus), dice_roll(dice, gpus));
		break;
	case 8:
		/* Each GPU has a candidate. The GPU with the new firmware has only one, which
		 * has no XGMI links. */
		machine_gpu(from, gpus - 1)->fw_version++;
		machine_gpu(to, 0)->fw_version++;
		for (uint32_t i = 1; i < gpus; i++)
			machine_lose_link(to, 0, i);
		break;
	case 9:
		update_firmware(dice, from, 30);
		update_firmware(dice, to, 35);
		break;
	case 10:
		machine_take_ids(dice, to, 100, from);
		break;
	case 11:
		machine_take_ids(dice, to, 50, from);
		for (uint32_t i = 0; i < gpus / 3; i++)
			machine_gpu(to, dice_roll(dice, gpus))->unique_id =
				machine_gpu(from, dice_roll(dice, gpus))->unique_id;
		break;
	default:
		break;
	}
}

static void run_shape(const struct shape *shape, unsigned int rounds)
{
	for (size_t event = 0; event < ARRAY_SIZE(events); event++) {
		struct worst worst = { 0 };
		char name[128];

		for (unsigned int i = 0; i < rounds; i++) {
			struct map_options options = pair_options();
			struct dice dice = { event * 1000 + i };
			struct topology from, to;
			struct gpu_map map;
			double start;

			machine_of_hives(shape->num_hives, shape->size, shape->num_cpus,
					 shape->striped, &from);
			make_event(&dice, event, &from, &to);
			start = pair_seconds();
			if (map_decide(&from, &to, &options, &map) == 0) {
				double seconds = pair_seconds() - start;
				char reason[PAIR_REASON_MAX];

				pair_reason(&map, reason, sizeof(reason));
				note(&worst, *reason ? reason : "mapped", seconds, map.attempts);
				map_done(&map);
			}
			topology_done(&from);
			topology_done(&to);
		}
		(void)snprintf(name, sizeof(name), "  %s", events[event]);
		print_worst(name, &worst);
	}
}

int main(int argc, char **argv)
{
	struct worst worst = { 0 };

	criu_stub.log_level = 0;
	if (argc < 2 || pairs_for_each(argv[1], measure_pair, &worst) <= 0) {
		fprintf(stderr, "usage: bench-map DIR [ROUNDS]\n");
		return 2;
	}
	print_worst("all pairs", &worst);
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		printf("%s\n", shapes[i].name);
		run_shape(&shapes[i], argc > 2 ? (unsigned int)atoi(argv[2]) : 20);
	}
	return 0;
}
