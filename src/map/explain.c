// SPDX-License-Identifier: GPL-2.0-only
/* Logs the answer of map_decide(). Searches again only to find which saved GPUs are in conflict. */
#include "map/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "map/gpu_rules.h"
#include "map/map.h"
#include "map/map_input.h"
#include "map/search.h"

/* A longer search is not repeated for a better explanation. */
#define CHEAP_SEARCH 1000

/* Cut off if it is too long. */
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
static struct text list_gpus(const struct link_graph *graph, uint64_t gpus)
{
	struct text text = { 0 };

	set_for_each (i, gpus)
		add(&text, "%s0x%04x", text.length ? " " : "", graph->gpus[i]->gpu_id);
	return text;
}

/* "0x70b3 (0000:05:00.0, renderD128)": names that the option device-map takes. */
static struct text describe(const struct topology_node *gpu)
{
	char slot[PCI_SLOT_TEXT] = "";
	struct text text = { 0 };

	if (!gpu->location_unknown)
		(void)pci_slot_print((struct pci_slot){ gpu->domain, gpu->location_id }, slot);
	add(&text, "0x%04x (%s%srenderD%u)", gpu->gpu_id, slot, *slot ? ", " : "",
	    gpu->drm_render_minor);
	return text;
}

/* A set of saved GPUs that has no assignment, but has one without any of its members. It shows the
 * user the few GPUs that matter. */
static uint64_t conflict_set(const struct map_input *in, unsigned int rules, uint64_t attempts)
{
	struct search_problem problem = search_problem_of(in, rules);
	uint64_t all = problem.wanted;

	if (attempts > CHEAP_SEARCH)
		return all;
	set_for_each (i, all) {
		struct search_result result = { 0 };

		problem.wanted &= ~set_of(i);
		if (search_any(&problem, &result) != -ESRCH)
			problem.wanted |= set_of(i);
	}
	return problem.wanted;
}

/* The first mismatch of the GPUs, and what relaxes it: two columns of the table. */
static struct text describe_cell(const struct map_input *in, size_t saved, size_t local)
{
	struct text text = { 0 };
	struct difference d;

	if (!gpu_rules_compare(in, saved, local, &d))
		add(&text, "fits |");
	else
		add(&text, "%s: %" PRIu64 " saved, %" PRIu64 " present | %s", d.property, d.saved,
		    d.local, *d.relaxed_by ? d.relaxed_by : "nothing");
	return text;
}

static bool same_cell(const struct map_input *in, size_t saved_a, size_t saved_b, size_t local_a,
		      size_t local_b)
{
	return !strcmp(describe_cell(in, saved_a, local_a).bytes,
		       describe_cell(in, saved_b, local_b).bytes);
}

static bool same_row(const struct map_input *in, size_t saved_a, size_t saved_b)
{
	for (size_t i = 0; i < in->local.num_gpus; i++) {
		if (!same_cell(in, saved_a, saved_b, i, i))
			return false;
	}
	return true;
}

/* Logs the rows of saved GPUs @alike, which all compare like @saved. Local GPUs with the same
 * mismatch share a row. */
static void log_rows(const struct map_input *in, size_t saved, uint64_t alike)
{
	struct text names = list_gpus(&in->saved, alike);
	uint64_t rest = set_of_first(in->local.num_gpus);

	set_for_each (i, rest) {
		struct text cell = describe_cell(in, saved, i), present;
		uint64_t group = 0;

		set_for_each (j, rest) {
			if (same_cell(in, saved, saved, i, j))
				group |= set_of(j);
		}
		rest &= ~group;
		present = list_gpus(&in->local, group);
		log_warn("map: | %s | %s | %s |", names.bytes, present.bytes, cell.bytes);
	}
}

static void log_table(const struct map_input *in)
{
	uint64_t rest = set_of_first(in->saved.num_gpus);

	log_warn("map: | saved GPU | present GPU | mismatch | relaxed by |");
	set_for_each (i, rest) {
		uint64_t alike = 0;

		set_for_each (j, rest) {
			if (same_row(in, i, j))
				alike |= set_of(j);
		}
		rest &= ~alike;
		log_rows(in, i, alike);
	}
}

static void log_gpus_of(const char *side, const struct link_graph *graph)
{
	for (size_t i = 0; i < graph->num_gpus; i++) {
		struct text text = describe(graph->gpus[i]);
		struct text peers = list_gpus(graph, graph->xgmi[i]);
		int cpu = graph->numa_groups.of[i];

		if (cpu != NO_GROUP)
			add(&text, ", at CPU node %u%s", graph->numa_cpu[cpu]->node_id,
			    graph->xgmi_to_cpu[i] ? " by XGMI" : "");
		if (peers.length)
			add(&text, ", linked by XGMI to %s", peers.bytes);
		log_warn("map: %s: %s", side, text.bytes);
	}
}

static void log_gpus(const struct map_input *in)
{
	log_gpus_of("saved GPUs", &in->saved);
	log_gpus_of("present GPUs", &in->local);
}

static const char *device_map_hint(const struct map_input *in)
{
	return in->options->device_map ? "; the device-map allows no other mapping" : "";
}

static int explain_count(const struct map_input *in)
{
	static const char may_be_unused[] =
		"; a process needs all GPUs again that it saw, also unused ones, so start a job with the GPUs that it uses only (device cgroup, podman --device)";
	const struct topology *local = in->local.topology;
	size_t missing = in->saved.num_gpus - in->local.num_gpus;
	struct text closed = { 0 };

	/* The table shows which GPUs would fit. */
	if (in->local.num_gpus)
		log_table(in);
	for (size_t i = 0; i < local->num_nodes; i++) {
		if (local->nodes[i].gpu_id && local->nodes[i].unreachable)
			add(&closed, "%s renderD%u", closed.length ? "" : " (cannot open:",
			    local->nodes[i].drm_render_minor);
	}
	return log_error(
		-ENODEV,
		"map: the image has %zu GPUs, but the task can use %zu; needed: %zu more, in this machine, in the device cgroup, and with a render node that the task can open%s%s%s",
		in->saved.num_gpus, in->local.num_gpus, missing, closed.bytes,
		closed.length ? ")" : "", in->saved.num_gpus > 1 ? may_be_unused : "");
}

static int explain_device_map(const struct map_input *in, const struct gpu_map *map)
{
	if (map->device_map_error == DEVICE_MAP_UNKNOWN ||
	    map->device_map_error == DEVICE_MAP_NOT_PRESENT ||
	    map->device_map_error == DEVICE_MAP_AMBIGUOUS)
		log_gpus(in);
	return log_error(-ENODEV, "map: device-map: %s", map->problem);
}

/* The local GPU to name beside a saved GPU that none fits. */
static size_t find_nearest(const struct map_input *in, size_t saved)
{
	for (size_t i = 0; i < in->local.num_gpus; i++) {
		if (gpu_rules_can_force(in, saved, i))
			return i;
	}
	return gpu_rules_nearest(in, saved);
}

static int explain_no_candidate(const struct map_input *in)
{
	struct difference d;
	size_t saved = 0, local;

	log_table(in);
	while (in->candidates[saved])
		saved++;
	local = find_nearest(in, saved);
	(void)gpu_rules_compare(in, saved, local, &d);
	return log_error(-ENODEV,
			 "map: no present GPU fits saved GPU 0x%04x; needed: one with %s %s%" PRIu64
			 "; the nearest, 0x%04x, has %" PRIu64 "%s%s%s",
			 in->saved.gpus[saved]->gpu_id, d.property,
			 d.at_least ? "of at least " : "", d.saved, in->local.gpus[local]->gpu_id,
			 d.local, *d.relaxed_by ? " (" : "", d.relaxed_by,
			 *d.relaxed_by ? " relaxes this)" : "");
}

static int explain_fitting(const struct map_input *in)
{
	uint64_t conflict = conflict_set(in, 0, 0), fitting = 0;
	struct text names = list_gpus(&in->saved, conflict), present;

	log_table(in);
	set_for_each (i, conflict)
		fitting |= in->candidates[i];
	present = list_gpus(&in->local, fitting);
	return log_error(
		-ENODEV,
		"map: saved GPUs %s only fit present GPUs %s; needed: one more GPU like these%s",
		names.bytes, present.bytes, device_map_hint(in));
}

/* No mapping keeps @rules. Lists saved GPUs that are in conflict, and logs what the user needs to
 * see why. */
static struct text list_conflict(const struct gpu_map *map, unsigned int rules, size_t *ret_count)
{
	const struct map_input *in = map->input;
	uint64_t conflict = conflict_set(in, rules, map->attempts);

	log_table(in);
	log_gpus(in);
	*ret_count = set_count(conflict);
	return list_gpus(&in->saved, conflict);
}

static int explain_sharing(const struct gpu_map *map)
{
	size_t count;
	struct text names = list_conflict(map, 0, &count);

	return log_error(
		-ENODEV,
		"map: saved GPUs %s share buffers, and no mapping keeps them partitions of one PCI device, or on different PCI devices, as they were; needed: %zu GPUs that fit and have this relation%s",
		names.bytes, count, device_map_hint(map->input));
}

static int explain_links(const struct gpu_map *map)
{
	size_t count;
	struct text names = list_conflict(map, SEARCH_LINKS, &count);

	return log_error(
		-ENODEV,
		"map: no mapping keeps the XGMI links; needed: %zu GPUs that fit and have the XGMI links of saved GPUs %s (KFD_XGMI_CHECK=0 relaxes this)%s",
		count, names.bytes, device_map_hint(map->input));
}

static int explain_numa(const struct gpu_map *map)
{
	unsigned int links = map->input->options->check_xgmi ? SEARCH_LINKS : 0;
	size_t count;
	struct text names = list_conflict(map, links | SEARCH_TOGETHER, &count);

	return log_error(
		-ENODEV,
		"map: no mapping keeps the CPU nodes; needed: %zu GPUs that fit and share CPU nodes as saved GPUs %s do (KFD_NUMA_CHECK=0 relaxes this)%s",
		count, names.bytes, device_map_hint(map->input));
}

static int explain_malformed(const struct map_input *in, const struct gpu_map *map)
{
	const char *side = links_find_repeated(&in->saved) ? "of the image" : "of this machine";

	return log_error(
		-EINVAL,
		"map: two GPUs %s have gpu_id 0x%04x, so the plugin cannot tell them apart", side,
		map->gpu_id);
}

/* Logs the first two GPUs that have lost their link. */
static void log_lost_link(const struct map_input *in)
{
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		size_t to = in->local_of[i];

		set_for_each (peer, in->saved.xgmi[i]) {
			size_t peer_to = in->local_of[peer];

			if (set_has(in->local.xgmi[to], peer_to))
				continue;
			log_warn(
				"map: saved GPUs 0x%04x and 0x%04x were linked by XGMI, and present GPUs 0x%04x and 0x%04x are not, which KFD_XGMI_CHECK=0 allows: copies between them take longer, or fail",
				in->saved.gpus[i]->gpu_id, in->saved.gpus[peer]->gpu_id,
				in->local.gpus[to]->gpu_id, in->local.gpus[peer_to]->gpu_id);
			return;
		}
	}
}

/* Logs the first two GPUs of different CPU nodes that now share a CPU node. */
static void log_shared_cpu_node(const struct map_input *in)
{
	const struct gpu_groups *old = &in->saved.numa_groups, *new = &in->local.numa_groups;

	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		int new_group = new->of[in->local_of[i]];

		for (size_t j = 0; old->of[i] != NO_GROUP && j < i; j++) {
			if (old->of[j] == NO_GROUP || old->of[j] == old->of[i] ||
			    new->of[in->local_of[j]] != new_group)
				continue;
			log_warn(
				"map: saved GPUs 0x%04x and 0x%04x had different CPU nodes and now share CPU node %u: copies may take longer",
				in->saved.gpus[j]->gpu_id, in->saved.gpus[i]->gpu_id,
				in->local.numa_cpu[new_group]->node_id);
			return;
		}
	}
}

static const char *describe_choice(const struct map_input *in, size_t saved)
{
	if (in->pinned[saved])
		return "by device-map";
	return set_has(in->same_device[saved], in->local_of[saved]) ? "the same device" : "another";
}

/* Logs the first property in which the GPUs differ. */
static void log_forced(const struct map_input *in, size_t saved)
{
	const size_t local = in->local_of[saved];
	struct difference d;

	if (gpu_rules_compare(in, saved, local, &d))
		log_warn(
			"map: present GPU 0x%04x is the card of saved GPU 0x%04x, but %s differs: %" PRIu64
			" saved, %" PRIu64 " present; used anyway, because AMDGPU_FORCE is set",
			in->local.gpus[local]->gpu_id, in->saved.gpus[saved]->gpu_id, d.property,
			d.saved, d.local);
}

static int log_mapping(const struct map_input *in, const struct gpu_map *map)
{
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		struct text from = describe(in->saved.gpus[i]);
		struct text to = describe(in->local.gpus[in->local_of[i]]);

		log_info("map: saved GPU %s -> %s, %s", from.bytes, to.bytes,
			 describe_choice(in, i));
		log_forced(in, i);
	}
	if (map->scope != SCOPE_TREE && topology_count_gpus(&in->tree->saved) > in->saved.num_gpus)
		log_info(
			"map: the GPUs of all processes have no common mapping here, so this process is mapped alone");
	if (map->outcome == MAP_MAPPED_WARNING) {
		log_lost_link(in);
		if (in->options->check_numa)
			log_shared_cpu_node(in);
	}
	return 0;
}

int explain_map(const struct gpu_map *map)
{
	const struct map_input *in = map->input;

	switch (map->reason) {
	case REASON_NONE:
		return log_mapping(in, map);
	case REASON_MALFORMED:
		return explain_malformed(in, map);
	case REASON_TOO_MANY:
		return log_error(
			-ENODEV,
			"map: the image or this machine has more than %d GPUs; hide the others with the device cgroup",
			GPU_SET_MAX);
	case REASON_COUNT:
		return explain_count(in);
	case REASON_DEVICE_MAP:
		return explain_device_map(in, map);
	case REASON_NO_CANDIDATE:
		return explain_no_candidate(in);
	case REASON_COUNT_FITTING:
		return explain_fitting(in);
	case REASON_SHARING:
		return explain_sharing(map);
	case REASON_LINKS:
		return explain_links(map);
	case REASON_NUMA:
		return explain_numa(map);
	case REASON_UNDECIDED:
		break;
	}
	return log_error(
		-ENODEV,
		"map: the search found no mapping in %d attempts; needed: a device-map that pairs saved GPUs with present GPUs",
		SEARCH_ATTEMPTS_MAX);
}
