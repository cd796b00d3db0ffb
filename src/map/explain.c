// SPDX-License-Identifier: GPL-2.0-only
/* Says in CRIU's log what the mapper has decided and why. Decides nothing, but asks the search
 * which GPUs are too many to be placed together. */
#include "map/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "criu/log.h"
#include "map/device_map.h"

#define DESCRIPTION_MAX 64
/* A search that took longer is not repeated for the sake of a better explanation. */
#define CHEAP_SEARCH 1000

/* Text of a bounded length: what does not fit is left out. */
struct text {
	char bytes[800];
	size_t length;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
	size_t room = sizeof(text->bytes) - text->length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->bytes + text->length, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		text->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* "0x70b3 0x59ea" */
static struct text list_gpus(const struct link_graph *machine, const struct gpu_set *gpus)
{
	struct text text = { 0 };

	set_for_each (i, gpus)
		add(&text, "%s0x%04x", text.length ? " " : "", machine->gpus[i]->gpu_id);
	return text;
}

/* The smallest number of wanted GPUs that cannot be placed even without the others: with them gone
 * from view the rest is easy to see. Not the smallest of all, but none of it can be spared. */
static struct gpu_set too_many(const struct map_case *c, enum search_rules rules, uint64_t attempts)
{
	struct search_problem problem = map_case_problem(c, rules);
	struct gpu_set all = problem.wanted;

	if (attempts > CHEAP_SEARCH)
		return all;
	set_for_each (i, &all) {
		struct search_result result = { 0 };

		set_remove(&problem.wanted, i);
		if (search_any(&problem, &result) != -ESRCH)
			set_add(&problem.wanted, i);
	}
	return problem.wanted;
}

/* One cell of the table: why a saved GPU and a local one do not go together. */
static void say_difference(const struct difference *d, struct text *text)
{
	add(text, "%s is %" PRIu64 " there, %" PRIu64 " here", d->property, d->saved, d->local);
	add(text, " | %s%s", d->variable ? d->variable : "nothing", d->variable ? "=0" : "");
}

static bool same_cell(const struct map_case *c, size_t saved_a, size_t local_a, size_t saved_b,
		      size_t local_b)
{
	struct difference a = { 0 }, b = { 0 };

	if (gpu_rules_compare(c->saved.gpus[saved_a], c->local.gpus[local_a], c->options, &a) == 0)
		return gpu_rules_compare(c->saved.gpus[saved_b], c->local.gpus[local_b], c->options,
					 &b) == 0;
	if (gpu_rules_compare(c->saved.gpus[saved_b], c->local.gpus[local_b], c->options, &b) == 0)
		return false;
	return a.property == b.property && a.saved == b.saved && a.local == b.local;
}

static bool same_row(const struct map_case *c, size_t saved_a, size_t saved_b)
{
	for (size_t i = 0; i < c->local.num_gpus; i++) {
		if (!same_cell(c, saved_a, i, saved_b, i))
			return false;
	}
	return true;
}

/* The lines of saved GPUs @alike, which all fare as @saved does: local GPUs that are refused for
 * one reason share a line. */
static void say_rows(const struct map_case *c, size_t saved, const struct gpu_set *alike)
{
	struct gpu_set left = set_of_first(c->local.num_gpus);
	struct text names = list_gpus(&c->saved, alike);

	set_for_each (i, &left) {
		struct gpu_set group = { 0 };
		struct difference difference;
		struct text here, cell = { 0 };

		set_for_each (j, &left) {
			if (same_cell(c, saved, i, saved, j))
				set_add(&group, j);
		}
		left = set_without(&left, &group);
		here = list_gpus(&c->local, &group);
		if (gpu_rules_compare(c->saved.gpus[saved], c->local.gpus[i], c->options,
				      &difference))
			say_difference(&difference, &cell);
		else
			add(&cell, "fits |");
		log_warn("map: | %s | %s | %s |", names.bytes, here.bytes, cell.bytes);
	}
}

static void say_table(const struct map_case *c)
{
	struct gpu_set left = set_of_first(c->saved.num_gpus);

	log_warn(
		"map: | saved GPU | GPU here | what keeps one from standing for the other | relaxed by |");
	set_for_each (i, &left) {
		struct gpu_set alike = { 0 };

		set_for_each (j, &left) {
			if (same_row(c, i, j))
				set_add(&alike, j);
		}
		left = set_without(&left, &alike);
		say_rows(c, i, &alike);
	}
}

/* GPUs that are linked with the same others, and so with each other, share a line. */
static void say_links(const char *where, const struct link_graph *machine)
{
	struct gpu_set left = set_of_first(machine->num_gpus);

	set_for_each (i, &left) {
		struct gpu_set hive = set_of(i);
		struct text names, peers;

		set_add_all(&hive, &machine->xgmi[i]);
		peers = list_gpus(machine, &machine->xgmi[i]);
		set_for_each (j, &machine->xgmi[i]) {
			struct gpu_set others = set_of(j);

			set_add_all(&others, &machine->xgmi[j]);
			if (!set_equal(&others, &hive)) {
				log_warn("map: %s: 0x%04x is linked by XGMI to %s", where,
					 machine->gpus[i]->gpu_id, peers.bytes);
				set_remove(&left, i);
				break;
			}
		}
		if (!set_has(&left, i))
			continue;
		names = list_gpus(machine, &hive);
		left = set_without(&left, &hive);
		log_warn("map: %s: %s %s", where, names.bytes,
			 set_count(&hive) > 1 ? "are all linked by XGMI" : "has no XGMI link");
	}
}

static void say_regions(const char *where, const struct link_graph *machine)
{
	for (size_t i = 0; i < machine->regions.count; i++) {
		struct gpu_set xgmi = { 0 };
		struct text names = list_gpus(machine, &machine->regions.members[i]);

		set_for_each (j, &machine->regions.members[i]) {
			if (machine->xgmi_to_cpu[j])
				set_add(&xgmi, j);
		}
		log_warn("map: %s: at CPU node %u: %s%s", where, machine->region_cpu[i]->node_id,
			 names.bytes, set_is_empty(&xgmi) ? "" : ", by XGMI");
	}
	for (size_t i = 0; i < machine->num_gpus; i++) {
		if (machine->regions.of[i] == NO_BLOCK)
			log_warn("map: %s: 0x%04x has no link to a CPU node", where,
				 machine->gpus[i]->gpu_id);
	}
}

static void say_gpus(const char *where, const struct link_graph *machine)
{
	for (size_t i = 0; i < machine->num_gpus; i++) {
		char text[DESCRIPTION_MAX];

		device_map_describe(machine->gpus[i], text, sizeof(text));
		log_warn("map: %s: %s", where, text);
	}
}

static const char *told_too(const struct map_case *c)
{
	return c->options->device_map ? "; the device-map leaves no other choice" : "";
}

static int explain_count(const struct map_case *c)
{
	const struct topology *local = c->local.topology;
	struct text closed = { 0 };

	/* More GPUs help only if they are like those that fit. */
	if (c->local.num_gpus)
		say_table(c);
	for (size_t i = 0; i < local->num_nodes; i++) {
		if (local->nodes[i].gpu_id && local->nodes[i].unreachable)
			add(&closed, "%s renderD%u", closed.length ? "" : " (cannot open:",
			    local->nodes[i].drm_render_minor);
	}
	return log_error(
		-ENODEV,
		"map: the image has %zu GPUs and the task can use %zu here; needed: %zu more"
		" that it may see and whose render node it can open%s%s",
		c->saved.num_gpus, c->local.num_gpus, c->saved.num_gpus - c->local.num_gpus,
		closed.bytes, closed.length ? ")" : "");
}

static int explain_device_map(const struct map_case *c, const struct gpu_map *map)
{
	if (strcmp(map->words, "device-map:unknown") == 0 ||
	    strcmp(map->words, "device-map:ambiguous") == 0) {
		say_gpus("saved", &c->saved);
		say_gpus("here", &c->local);
	}
	return log_error(-ENODEV, "map: device-map: %s", map->problem);
}

static int explain_no_candidate(const struct map_case *c)
{
	struct difference nearest = { 0 };
	size_t saved = 0, local;

	say_table(c);
	while (!set_is_empty(&c->candidates[saved]))
		saved++;
	local = gpu_rules_nearest(c->saved.gpus[saved], &c->local, c->options, &nearest);
	return log_error(
		-ENODEV,
		"map: no GPU here can stand for saved GPU 0x%04x; needed: one with %s %s%" PRIu64
		", the nearest, 0x%04x, has %" PRIu64 "%s%s%s",
		c->saved.gpus[saved]->gpu_id, nearest.property,
		nearest.at_least ? "of at least " : "", nearest.saved, c->local.gpus[local]->gpu_id,
		nearest.local, nearest.variable ? " (" : "",
		nearest.variable ? nearest.variable : "", nearest.variable ? "=0 relaxes)" : "");
}

static int explain_fitting(const struct map_case *c)
{
	struct gpu_set crowd = too_many(c, SEARCH_ONE_TO_ONE, 0), fitting = { 0 };
	struct text names = list_gpus(&c->saved, &crowd), here;

	say_table(c);
	set_for_each (i, &crowd)
		set_add_all(&fitting, &c->candidates[i]);
	here = list_gpus(&c->local, &fitting);
	return log_error(-ENODEV,
			 "map: saved GPUs %s can only be %s; needed: one more GPU like these%s",
			 names.bytes, here.bytes, told_too(c));
}

static int explain_links(const struct map_case *c, const struct gpu_map *map)
{
	struct gpu_set crowd = too_many(c, SEARCH_LINKS, map->attempts);
	struct text names = list_gpus(&c->saved, &crowd);

	say_table(c);
	say_links("saved", &c->saved);
	say_links("here", &c->local);
	return log_error(
		-ENODEV,
		"map: needed: %zu GPUs that fit and are linked by XGMI as saved GPUs %s are; "
		"nothing relaxes this%s",
		set_count(&crowd), names.bytes, told_too(c));
}

static int explain_numa(const struct map_case *c, const struct gpu_map *map)
{
	struct gpu_set crowd = too_many(c, SEARCH_TOGETHER, map->attempts);
	struct text names = list_gpus(&c->saved, &crowd);

	say_table(c);
	say_regions("saved", &c->saved);
	say_regions("here", &c->local);
	return log_error(
		-ENODEV,
		"map: needed: %zu GPUs that fit and are attached to CPU nodes as saved GPUs %s "
		"are (KFD_NUMA_CHECK=0 relaxes)%s",
		set_count(&crowd), names.bytes, told_too(c));
}

static int explain_malformed(const struct map_case *c)
{
	const struct topology_node *saved = links_find_repeated(&c->saved);
	const struct topology_node *local = links_find_repeated(&c->local);

	return log_error(
		-EINVAL, "map: two GPUs %s have gpu_id 0x%04x: nothing can be mapped by it",
		saved ? "of the image" : "of this machine", saved ? saved->gpu_id : local->gpu_id);
}

static void say_crowding(const struct map_case *c, const struct gpu_map *map)
{
	for (size_t i = 0; i < c->saved.num_gpus; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct topology_node *a = c->saved.gpus[j], *b = c->saved.gpus[i];
			size_t at_a = (size_t)(a - c->saved.topology->nodes);
			size_t at_b = (size_t)(b - c->saved.topology->nodes);
			int from_a = c->saved.regions.of[j], from_b = c->saved.regions.of[i];
			size_t to_a = 0, to_b = 0;

			if (from_a == NO_BLOCK || from_b == NO_BLOCK || from_a == from_b)
				continue;
			while (c->local.gpus[to_a] != map->local[at_a])
				to_a++;
			while (c->local.gpus[to_b] != map->local[at_b])
				to_b++;
			if (c->local.regions.of[to_a] != c->local.regions.of[to_b])
				continue;
			log_warn(
				"map: GPUs of different CPU nodes come together, first 0x%04x and 0x%04x on CPU "
				"node %u: copies may take longer",
				a->gpu_id, b->gpu_id,
				c->local.region_cpu[c->local.regions.of[to_a]]->node_id);
			return;
		}
	}
}

static void say_mapped(const struct map_case *c, const struct gpu_map *map)
{
	for (size_t i = 0; i < c->saved.num_gpus; i++) {
		const struct topology_node *saved = c->saved.gpus[i];
		const struct topology_node *local = map->local[saved - c->saved.topology->nodes];
		char from[DESCRIPTION_MAX], to[DESCRIPTION_MAX];
		const char *why = "another";

		set_for_each (j, &c->same[i]) {
			if (c->local.gpus[j] == local)
				why = "the very same";
		}
		if (c->told[i] != NOT_TOLD)
			why = "as told";
		device_map_describe(saved, from, sizeof(from));
		device_map_describe(local, to, sizeof(to));
		log_info("map: saved GPU %s -> %s, %s", from, to, why);
	}
	if (map->outcome == MAP_MAPPED_WARNING)
		say_crowding(c, map);
}

int map_explain(const struct map_case *c, const struct gpu_map *map)
{
	switch (map->reason) {
	case REASON_NONE:
		say_mapped(c, map);
		return 0;
	case REASON_MALFORMED:
		return explain_malformed(c);
	case REASON_TOO_MANY:
		return log_error(-ENODEV, "map: more than %d GPUs on one side", GPU_SET_MAX);
	case REASON_COUNT:
		return explain_count(c);
	case REASON_DEVICE_MAP:
		return explain_device_map(c, map);
	case REASON_NO_CANDIDATE:
		return explain_no_candidate(c);
	case REASON_COUNT_FITTING:
		return explain_fitting(c);
	case REASON_LINKS:
		return explain_links(c, map);
	case REASON_NUMA:
		return explain_numa(c, map);
	case REASON_UNDECIDED:
		break;
	}
	return log_error(
		-ENODEV,
		"map: undecided after %d attempts; needed: a device-map that says which GPU "
		"stands for which",
		SEARCH_ATTEMPTS_MAX);
}
