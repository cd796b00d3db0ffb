// SPDX-License-Identifier: GPL-2.0-only
/* Tries all assignments and keeps the one that the rules prefer. The code follows docs/mapping.md
 * rule by rule and does without optimisation. */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

#define TIERS 4

struct side {
	const struct topology *topology;
	const struct topology_node *gpus[64];
	size_t count;
};

struct oracle {
	struct side source;
	struct side destination;
	const struct map_options *options;
	size_t chosen[64];
	/* Whether some assignment keeps the rules for one GPU, and those for links. */
	bool fits;
	bool links;
	/* By tier, 0 apart, 1 together, 2 and 3 the same without the links: the number of GPUs on
	 * the same device, and of GPUs that keep their gpu_id; -1: no assignment. */
	int same[TIERS];
	int ids[TIERS];
	/* The GPUs of each PCI device stay together, and all keep their number there. */
	bool together[TIERS];
	bool numbers[TIERS];
	size_t best[TIERS][64];
};

static struct side side_of(const struct topology *topology)
{
	struct side side = { .topology = topology };

	/* The topology is sorted by node_id. */
	for (size_t i = 0; i < topology->num_nodes; i++) {
		if (topology->nodes[i].gpu_id)
			side.gpus[side.count++] = &topology->nodes[i];
	}
	return side;
}

/* Returns the name of the first property that differs, and the number of such properties. */
static const char *compare(const struct topology_node *s, const struct topology_node *d,
			   const struct map_options *o, size_t *ret_count)
{
	const char *first = NULL;

	*ret_count = 0;
#define DIFFERS(name, condition)                       \
	do {                                           \
		if (condition) {                       \
			first = first ? first : #name; \
			++*ret_count;                  \
		}                                      \
	} while (0)
#define EQUAL(name)        DIFFERS(name, s->name != d->name)
#define EQUAL_STATED(name) DIFFERS(name, s->name && d->name && s->name != d->name)
#define ENOUGH(on, name)   DIFFERS(name, (on) && s->name > d->name)
	EQUAL(vendor_id);
	EQUAL(device_id);
	EQUAL(simd_count);
	EQUAL(max_waves_per_simd);
	EQUAL(lds_size_in_kb);
	EQUAL(wave_front_size);
	EQUAL(array_count);
	EQUAL(simd_arrays_per_engine);
	EQUAL(cu_per_simd_array);
	EQUAL(simd_per_cu);
	EQUAL(max_slots_scratch_cu);
	EQUAL(num_sdma_engines);
	EQUAL(num_sdma_xgmi_engines);
	EQUAL(num_sdma_queues_per_engine);
	EQUAL(num_cp_queues);
	EQUAL_STATED(gfx_target_version);
	EQUAL_STATED(num_xcc);
	EQUAL_STATED(cwsr_size);
	EQUAL_STATED(ctl_stack_size);
	/* Bits 0-14, 19-28. */
	DIFFERS(capability, o->check_capability && ((s->capability ^ d->capability) & 0x1ff87fff));
	ENOUGH(o->check_vram_size, vram_size);
	ENOUGH(o->check_num_gws, num_gws);
	ENOUGH(o->check_caches, caches_count);
	ENOUGH(o->check_fw_version, fw_version);
	ENOUGH(o->check_sdma_fw, sdma_fw_version);
	DIFFERS(vram_public, s->vram_public && !d->vram_public);
	return first;
}

static bool fits(const struct oracle *o, size_t s, size_t d)
{
	size_t count;

	return !compare(o->source.gpus[s], o->destination.gpus[d], o->options, &count);
}

static bool lists_xgmi(const struct topology_node *from, const struct topology_node *to)
{
	for (size_t i = 0; i < from->num_links; i++) {
		if (from->links[i].type == 11 && from->links[i].node_to == to->node_id)
			return true;
	}
	return false;
}

static bool is_pair(const struct side *side, size_t a, size_t b)
{
	return lists_xgmi(side->gpus[a], side->gpus[b]) || lists_xgmi(side->gpus[b], side->gpus[a]);
}

static const struct topology_link *cpu_link(const struct side *side, size_t gpu)
{
	const struct topology_node *node = side->gpus[gpu];
	const struct topology_link *best = NULL;

	for (size_t i = 0; i < node->num_links; i++) {
		const struct topology_link *link = &node->links[i];
		bool is_cpu = false;

		for (size_t j = 0; j < side->topology->num_nodes; j++) {
			const struct topology_node *to = &side->topology->nodes[j];

			is_cpu |=
				to->node_id == link->node_to && !to->gpu_id && to->cpu_cores_count;
		}
		if (!is_cpu || (link->type != 2 && link->type != 11))
			continue;
		if (!best || link->weight < best->weight ||
		    (link->weight == best->weight && link->node_to < best->node_to))
			best = link;
	}
	return best;
}

static size_t count_unique_id(const struct side *side, uint64_t unique_id)
{
	size_t count = 0;

	for (size_t i = 0; i < side->count; i++)
		count += side->gpus[i]->unique_id == unique_id;
	return count;
}

static bool same_device(const struct oracle *o, size_t s, size_t d)
{
	const struct topology_node *a = o->source.gpus[s], *b = o->destination.gpus[d];

	if (a->domain == b->domain && a->location_id == b->location_id &&
	    a->actual_gpu_id == b->actual_gpu_id)
		return true;
	return a->unique_id && a->unique_id == b->unique_id &&
	       count_unique_id(&o->source, a->unique_id) == 1 &&
	       count_unique_id(&o->destination, a->unique_id) == 1;
}

static bool keeps_links(const struct oracle *o)
{
	for (size_t i = 0; i < o->source.count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (is_pair(&o->source, i, j) &&
			    !is_pair(&o->destination, o->chosen[i], o->chosen[j]))
				return false;
		}
	}
	return true;
}

static bool is_one_device(const struct topology_node *a, const struct topology_node *b)
{
	if (!a->location_id || !b->location_id)
		return !a->location_id && !b->location_id &&
		       a->drm_render_minor == b->drm_render_minor;
	return a->domain == b->domain && (a->location_id & ~7u) == (b->location_id & ~7u);
}

static bool keeps_devices(const struct oracle *o)
{
	for (size_t i = 0; i < o->source.count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (is_one_device(o->source.gpus[i], o->source.gpus[j]) &&
			    !is_one_device(o->destination.gpus[o->chosen[i]],
					   o->destination.gpus[o->chosen[j]]))
				return false;
		}
	}
	return true;
}

/* The random GPUs all have 3 bits for the number of a partition. */
static bool keeps_numbers(const struct oracle *o)
{
	for (size_t i = 0; i < o->source.count; i++) {
		if ((o->source.gpus[i]->location_id ^
		     o->destination.gpus[o->chosen[i]]->location_id) &
		    7)
			return false;
	}
	return true;
}

/* 0: all apart; 1: some together; 2: the rule for CPU nodes is broken. */
static int tier(const struct oracle *o)
{
	int worst = 0;

	if (!o->options->check_numa)
		return 0;
	for (size_t i = 0; i < o->source.count; i++) {
		const struct topology_link *from = cpu_link(&o->source, i);
		const struct topology_link *to = cpu_link(&o->destination, o->chosen[i]);

		if (!from)
			continue;
		if (!to || (from->type == 11 && to->type != 11))
			return 2;
		for (size_t j = 0; j < i; j++) {
			const struct topology_link *from_j = cpu_link(&o->source, j);
			const struct topology_link *to_j = cpu_link(&o->destination, o->chosen[j]);
			bool together = to_j && to->node_to == to_j->node_to;

			if (!from_j)
				continue;
			if (from->node_to == from_j->node_to && !together)
				return 2;
			if (from->node_to != from_j->node_to && together)
				worst = 1;
		}
	}
	return worst;
}

/* Assignments come in ascending order: of several equal ones the first is the best. */
static void rate_assignment(struct oracle *o)
{
	int same = 0, ids = 0, found = tier(o);
	bool linked = keeps_links(o), together, numbers;

	o->fits = true;
	if (!linked && o->options->check_xgmi)
		return;
	o->links = true;
	if (found > 1)
		return;
	found += linked ? 0 : 2;
	for (size_t i = 0; i < o->source.count; i++) {
		same += same_device(o, i, o->chosen[i]);
		ids += o->source.gpus[i]->gpu_id == o->destination.gpus[o->chosen[i]]->gpu_id;
	}
	together = keeps_devices(o);
	numbers = keeps_numbers(o);
	if (same != o->same[found]           ? same < o->same[found]
	    : ids != o->ids[found]           ? ids < o->ids[found]
	    : together != o->together[found] ? together < o->together[found]
					     : numbers <= o->numbers[found])
		return;
	o->same[found] = same;
	o->ids[found] = ids;
	o->together[found] = together;
	o->numbers[found] = numbers;
	memcpy(o->best[found], o->chosen, sizeof(o->chosen));
}

static void try_all(struct oracle *o, size_t s, uint64_t taken)
{
	if (s == o->source.count) {
		rate_assignment(o);
		return;
	}
	for (size_t d = 0; d < o->destination.count; d++) {
		if (taken >> d & 1 || !fits(o, s, d))
			continue;
		o->chosen[s] = d;
		try_all(o, s + 1, taken | 1ULL << d);
	}
}

static const struct topology_node *repeated(const struct side *side)
{
	for (size_t i = 0; i < side->count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (side->gpus[i]->gpu_id == side->gpus[j]->gpu_id)
				return side->gpus[i];
		}
	}
	return NULL;
}

static bool refuse_single(const struct oracle *o, struct oracle_answer *answer)
{
	for (size_t i = 0; i < o->source.count; i++) {
		const char *property = NULL;
		size_t fewest = SIZE_MAX;

		for (size_t j = 0; j < o->destination.count; j++) {
			size_t count;
			const char *first = compare(o->source.gpus[i], o->destination.gpus[j],
						    o->options, &count);

			if (count < fewest) {
				fewest = count;
				property = first;
			}
		}
		if (!fewest)
			continue;
		(void)snprintf(answer->words, sizeof(answer->words), "no-candidate:%s %x", property,
			       o->source.gpus[i]->gpu_id);
		return true;
	}
	return false;
}

static void answer_tier(const struct oracle *o, int number, struct oracle_answer *answer)
{
	answer->outcome = number ? "mapped-warning" : "mapped";
	answer->num_gpus = o->source.count;
	for (size_t i = 0; i < o->source.count; i++) {
		answer->source[i] = o->source.gpus[i];
		answer->destination[i] = o->destination.gpus[o->best[number][i]];
	}
}

void oracle_ask(const struct topology *source, const struct topology *destination,
		const struct map_options *options, struct oracle_answer *ret_answer)
{
	struct oracle o = { .options = options };
	const struct topology_node *twice;
	int best = 0;

	o.source = side_of(source);
	o.destination = side_of(destination);
	*ret_answer = (struct oracle_answer){ .outcome = "refused" };
	twice = repeated(&o.source);
	if (!twice)
		twice = repeated(&o.destination);
	if (twice) {
		ret_answer->outcome = "malformed";
		(void)snprintf(ret_answer->words, sizeof(ret_answer->words), "malformed %x",
			       twice->gpu_id);
		return;
	}
	if (o.source.count > o.destination.count) {
		(void)strcpy(ret_answer->words, "count");
		return;
	}
	if (refuse_single(&o, ret_answer))
		return;
	for (int i = 0; i < TIERS; i++)
		o.same[i] = o.ids[i] = -1;
	try_all(&o, 0, 0);
	while (best < TIERS && o.same[best] < 0)
		best++;
	if (best < TIERS)
		answer_tier(&o, best, ret_answer);
	else
		(void)strcpy(ret_answer->words, o.links ? "numa" : o.fits ? "links" : "count");
}
