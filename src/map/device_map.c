// SPDX-License-Identifier: GPL-2.0-only
/* Reads the option device-map and checks its pairs against the rules. Whether the other GPUs find a
 * mapping beside them is for search_best() to find out. */
#include "map/device_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "map/gpu_rules.h"

#define BLANKS          " \t\n"
#define SEPARATORS      BLANKS ",;"
#define NAME_MAX_LENGTH 63

/* What a name in the device-map may mean. A number is 0 if the name does not mean it: no GPU has
 * the gpu_id, the unique_id or the render minor 0. */
struct name {
	uint64_t ids[2];
	uint64_t minor;
	uint64_t unique_ids[2];
	bool is_slot;
	struct pci_slot slot;
};

static bool parse_number(const char *text, int base, uint64_t *ret_number)
{
	const char *digits = base == 10 ? "0123456789" : "0123456789abcdefABCDEF";
	size_t length = strspn(text, digits);

	if (!length || text[length])
		return false;
	errno = 0;
	*ret_number = strtoull(text, NULL, base);
	return !errno;
}

/* A bare number can be a gpu_id or a unique_id, in hexadecimal or in decimal as sysfs prints both,
 * or a render minor: find_named() tries all of them. */
static bool parse_bare(const char *text, struct name *name)
{
	bool has_prefix = !strncasecmp(text, "0x", 2);
	bool is_decimal = !has_prefix && parse_number(text, 10, &name->minor);
	bool is_hex = parse_number(has_prefix ? text + 2 : text, 16, &name->ids[0]);

	name->ids[1] = name->minor;
	memcpy(name->unique_ids, name->ids, sizeof(name->ids));
	return is_hex || is_decimal;
}

static bool parse_name(const char *text, struct name *name)
{
	const char *minor = strstr(text, "renderD");

	*name = (struct name){ 0 };
	if (minor && (minor == text || !strncmp(text, "/dev/dri/renderD", 16)))
		return parse_number(minor + 7, 10, &name->minor);
	if (!strncmp(text, "GPU-", 4))
		return parse_number(text + 4, 16, &name->unique_ids[0]);
	name->is_slot = strchr(text, ':');
	return name->is_slot ? !pci_slot_parse(text, &name->slot) : parse_bare(text, name);
}

static bool is_one_of(uint64_t number, const uint64_t numbers[2])
{
	return number && (number == numbers[0] || number == numbers[1]);
}

static bool is_named(const struct topology_node *gpu, const struct name *name)
{
	return is_one_of(gpu->gpu_id, name->ids) ||
	       (name->minor && gpu->drm_render_minor == name->minor) ||
	       is_one_of(gpu->unique_id, name->unique_ids) ||
	       (name->is_slot && !gpu->location_unknown && gpu->domain == name->slot.domain &&
		gpu->location_id == name->slot.location);
}

static uint64_t find_named(const struct link_graph *graph, const struct name *name)
{
	uint64_t found = 0;

	for (size_t i = 0; i < graph->num_gpus; i++) {
		if (is_named(graph->gpus[i], name))
			found |= set_of(i);
	}
	/* The user may know a process that has moved before by the gpu_id of its last machine. */
	for (size_t i = 0; i < graph->num_gpus && !found; i++) {
		if (is_one_of(graph->gpus[i]->actual_gpu_id, name->ids))
			found |= set_of(i);
	}
	return found;
}

static enum device_map_error __attribute__((format(printf, 3, 4)))
fail(struct gpu_map *map, enum device_map_error error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(map->problem, sizeof(map->problem), format, arguments);
	va_end(arguments);
	map->device_map_error = error;
	return error;
}

/* Finds the one GPU that @text names. Returns @none if @text names no GPU. */
static enum device_map_error find_gpu(const struct link_graph *graph, const char *text,
				      enum device_map_error none, struct gpu_map *map,
				      size_t *ret_gpu)
{
	const char *kind = none == DEVICE_MAP_UNKNOWN ? "saved" : "present";
	struct name name;
	uint64_t found;

	if (!parse_name(text, &name))
		return fail(
			map, DEVICE_MAP_SYNTAX,
			"\"%s\" is no gpu_id (0x70b3), PCI address (0000:05:00.0), render node (renderD128) or unique_id (GPU-8a1c...)",
			text);
	found = find_named(graph, &name);
	if (!found)
		return fail(map, none, "there is no %s GPU \"%s\"", kind, text);
	if (set_count(found) > 1)
		return fail(map, DEVICE_MAP_AMBIGUOUS,
			    "\"%s\" names several %s GPUs; name one by 0x and its gpu_id", text,
			    kind);
	*ret_gpu = set_next(found, 0);
	return DEVICE_MAP_OK;
}

/* Finds a saved GPU whose pair contradicts the pair of @saved and @local, or num_gpus. A repeated
 * pair is no contradiction. */
static size_t find_contradiction(const struct map_input *in, size_t saved, size_t local)
{
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		if (in->pinned[i] && (i == saved) != set_has(in->pinned[i], local))
			return i;
	}
	return in->saved.num_gpus;
}

static enum device_map_error read_pair(struct map_input *in, char *pair, struct gpu_map *map)
{
	char *present = strchr(pair, '=');
	enum device_map_error error;
	size_t saved = 0, local = 0, other;

	if (!present || present == pair || !present[1] || strlen(pair) > 2UL * NAME_MAX_LENGTH)
		return fail(map, DEVICE_MAP_SYNTAX, "\"%.*s\" is not SAVED=PRESENT",
			    NAME_MAX_LENGTH, pair);
	*present++ = '\0';
	error = find_gpu(&in->saved, pair, DEVICE_MAP_UNKNOWN, map, &saved);
	if (error == DEVICE_MAP_UNKNOWN && in->pairs_for_others) {
		map->device_map_error = DEVICE_MAP_OK;
		return DEVICE_MAP_OK;
	}
	if (!error)
		error = find_gpu(&in->local, present, DEVICE_MAP_NOT_PRESENT, map, &local);
	if (error)
		return error;
	other = find_contradiction(in, saved, local);
	if (other < in->saved.num_gpus)
		return fail(map, DEVICE_MAP_TWICE, "\"%s=%s\": %s is in another pair already", pair,
			    present, other == saved ? pair : present);
	in->pinned[saved] = set_of(local);
	return DEVICE_MAP_OK;
}

/* Removes the blanks around each '=', which do not separate pairs. */
static void join_pairs(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		size_t blanks = strspn(from, BLANKS), length = blanks ? blanks : 1;

		if (!blanks || (from[blanks] != '=' && (to == text || to[-1] != '='))) {
			memmove(to, from, length);
			to += length;
		}
		from += length;
	}
	*to = '\0';
}

/* The present GPU to which the saved one is pinned. */
static size_t pin_of(const struct map_input *in, size_t saved)
{
	return (size_t)__builtin_ctzll(in->pinned[saved]);
}

static enum device_map_error check_gpu(const struct map_input *in, size_t saved,
				       struct gpu_map *map)
{
	const size_t local = pin_of(in, saved);
	const struct topology_node *from = in->saved.gpus[saved], *to = in->local.gpus[local];
	struct difference d;

	if (!set_has(in->candidates[saved], local)) {
		(void)gpu_rules_compare(in, saved, local, &d);
		map->property = d.property;
		return fail(map, DEVICE_MAP_PROPERTY,
			    "0x%04x=0x%04x: %s: %" PRIu64 " saved, %" PRIu64 " present%s%s%s",
			    from->gpu_id, to->gpu_id, d.property, d.saved, d.local,
			    *d.relaxed_by ? " (" : "", d.relaxed_by,
			    *d.relaxed_by ? " relaxes this)" : "");
	}
	if (in->options->check_numa && !gpu_rules_cpu_link_serves(in, saved, local))
		return fail(
			map, DEVICE_MAP_NUMA,
			"0x%04x=0x%04x: the present GPU lacks the type of CPU link of the saved GPU (KFD_NUMA_CHECK=0 relaxes this)",
			from->gpu_id, to->gpu_id);
	return DEVICE_MAP_OK;
}

static bool share_group(const struct gpu_groups *groups, size_t a, size_t b)
{
	return groups->of[a] != NO_GROUP && groups->of[a] == groups->of[b];
}

static enum device_map_error check_two(const struct map_input *in, size_t a, size_t b,
				       struct gpu_map *map)
{
	size_t to_a = pin_of(in, a), to_b = pin_of(in, b);
	uint32_t saved_a = in->saved.gpus[a]->gpu_id, saved_b = in->saved.gpus[b]->gpu_id;
	uint32_t local_a = in->local.gpus[to_a]->gpu_id, local_b = in->local.gpus[to_b]->gpu_id;

	if (in->options->check_xgmi && set_has(in->saved.xgmi[a], b) &&
	    !set_has(in->local.xgmi[to_a], to_b))
		return fail(
			map, DEVICE_MAP_LINKS,
			"saved GPUs 0x%04x and 0x%04x are linked by XGMI, but present GPUs 0x%04x and 0x%04x are not (KFD_XGMI_CHECK=0 relaxes this)",
			saved_a, saved_b, local_a, local_b);
	if (in->options->check_numa && share_group(&in->saved.numa_groups, a, b) &&
	    in->local.numa_groups.of[to_a] != in->local.numa_groups.of[to_b])
		return fail(
			map, DEVICE_MAP_NUMA,
			"saved GPUs 0x%04x and 0x%04x share a CPU node, but present GPUs 0x%04x and 0x%04x do not (KFD_NUMA_CHECK=0 relaxes this)",
			saved_a, saved_b, local_a, local_b);
	return DEVICE_MAP_OK;
}

static enum device_map_error check_pinned(const struct map_input *in, size_t saved,
					  struct gpu_map *map)
{
	enum device_map_error error = check_gpu(in, saved, map);

	for (size_t i = 0; !error && i < saved; i++) {
		if (in->pinned[i])
			error = check_two(in, i, saved, map);
	}
	return error;
}

int device_map_read(struct map_input *in, struct gpu_map *map)
{
	_cleanup_free_ char *text = strdup(in->options->device_map);
	char *rest = text, *pair;

	if (!text)
		return -ENOMEM;
	join_pairs(text);
	while ((pair = strsep(&rest, SEPARATORS))) {
		if (*pair && read_pair(in, pair, map))
			return 0;
	}
	for (size_t i = 0; i < in->saved.num_gpus; i++) {
		if (in->pinned[i] && check_pinned(in, i, map))
			return 0;
	}
	return 0;
}
