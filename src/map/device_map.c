// SPDX-License-Identifier: GPL-2.0-only
/* Reads the option device-map and holds it against the rules, so far as its pairs alone can break
 * them. What else follows from it is for the search to find out. */
#include "map/device_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS      ", \t\n;"
#define NAME_MAX_LENGTH 63

struct name {
	bool is_id;
	bool is_minor;
	bool is_unique_id;
	bool is_slot;
	uint64_t id;
	uint64_t minor;
	uint32_t domain;
	uint32_t location;
};

void device_map_describe(const struct topology_node *gpu, char *text, size_t size)
{
	char slot[32] = "";

	if (!gpu->location_unknown)
		(void)snprintf(slot, sizeof(slot), "%04x:%02x:%02x.%x, ", gpu->domain,
			       gpu->location_id >> 8, gpu->location_id >> 3 & 0x1f,
			       gpu->location_id & 7);
	(void)snprintf(text, size, "0x%04x (%srenderD%u)", gpu->gpu_id, slot,
		       gpu->drm_render_minor);
}

static bool parse_number(const char *text, int base, uint64_t *ret_number)
{
	const char *digits = base == 10 ? "0123456789" : "0123456789abcdefABCDEF";
	size_t length = strspn(text, digits);

	if (!length || length > 16 || text[length])
		return false;
	*ret_number = strtoull(text, NULL, base);
	return true;
}

/* [domain:]bus:device.function, as lspci prints it. */
static bool parse_slot(const char *text, struct name *name)
{
	unsigned int domain = 0, bus, device, function;
	int end = -1;

	/* NOLINTNEXTLINE(cert-err34-c): numbers of four digits at most */
	if (sscanf(text, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4) {
		domain = 0;
		/* NOLINTNEXTLINE(cert-err34-c): the same */
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3)
			return false;
	}
	if (end < 0 || text[end] || device > 0x1f || function > 7)
		return false;
	name->domain = domain;
	name->location = bus << 8 | device << 3 | function;
	return true;
}

/* A bare number may be a gpu_id in hex as well as a render minor: both are looked for. */
static bool parse_name(const char *text, struct name *ret_name)
{
	struct name name = { 0 };
	const char *minor = strstr(text, "renderD");
	const char *hex = text;

	if (minor && (minor == text || !strncmp(text, "/dev/dri/renderD", 16))) {
		name.is_minor = parse_number(minor + 7, 10, &name.minor);
	} else if (strchr(text, ':')) {
		name.is_slot = parse_slot(text, &name);
	} else if (!strncmp(text, "GPU-", 4)) {
		name.is_unique_id = parse_number(text + 4, 16, &name.id);
	} else {
		if (!strncmp(text, "0x", 2) || !strncmp(text, "0X", 2))
			hex = text + 2;
		else
			name.is_minor = parse_number(text, 10, &name.minor);
		if (parse_number(hex, 16, &name.id)) {
			name.is_id = name.id <= UINT16_MAX;
			name.is_unique_id = !name.is_id;
		}
	}
	*ret_name = name;
	return name.is_id || name.is_minor || name.is_slot || name.is_unique_id;
}

static bool is_named(const struct topology_node *gpu, const struct name *name)
{
	return (name->is_id && gpu->gpu_id == name->id) ||
	       (name->is_minor && gpu->drm_render_minor == name->minor) ||
	       (name->is_unique_id && gpu->unique_id == name->id && name->id) ||
	       (name->is_slot && !gpu->location_unknown && gpu->domain == name->domain &&
		gpu->location_id == name->location);
}

static struct gpu_set find_named(const struct link_graph *machine, const struct name *name)
{
	struct gpu_set found = { 0 };

	for (size_t i = 0; i < machine->num_gpus; i++) {
		if (is_named(machine->gpus[i], name))
			set_add(&found, i);
	}
	/* Of a process that has moved before, the id that its last machine gave is as good. */
	for (size_t i = 0; i < machine->num_gpus && set_is_empty(&found); i++) {
		if (name->is_id && machine->gpus[i]->actual_gpu_id == name->id)
			set_add(&found, i);
	}
	return found;
}

/* The index of the one GPU that @text names. */
static const char *find_gpu(const struct link_graph *machine, const char *text, const char *kind,
			    struct gpu_map *map, size_t *ret_gpu)
{
	struct gpu_set found;
	struct name name;
	size_t count;

	if (!parse_name(text, &name)) {
		(void)snprintf(map->problem, sizeof(map->problem),
			       "\"%s\" is no gpu_id (0x70b3), PCI address (0000:05:00.0), "
			       "render node (renderD128) or unique_id (GPU-8a1c...)",
			       text);
		return "syntax";
	}
	found = find_named(machine, &name);
	count = set_count(&found);
	*ret_gpu = set_next(&found, 0);
	if (count == 1)
		return NULL;
	(void)snprintf(map->problem, sizeof(map->problem),
		       count ? "\"%s\" names several %s GPUs; name one by 0x and its gpu_id"
			     : "there is no %2$s GPU \"%1$s\"",
		       text, kind);
	return count ? "ambiguous" : "unknown";
}

static const char *note_pair(struct map_case *c, char *pair, struct gpu_map *map)
{
	char *present = strchr(pair, '=');
	const char *wrong;
	size_t saved, local;

	if (!present || present == pair || !present[1] || strlen(pair) > 2UL * NAME_MAX_LENGTH) {
		(void)snprintf(map->problem, sizeof(map->problem), "\"%.*s\" is not SAVED=PRESENT",
			       NAME_MAX_LENGTH, pair);
		return "syntax";
	}
	*present++ = '\0';
	wrong = find_gpu(&c->local, present, "present", map, &local);
	if (wrong)
		return wrong;
	wrong = find_gpu(&c->saved, pair, "saved", map, &saved);
	if (wrong && c->options->device_map_is_for_all && !strcmp(wrong, "unknown"))
		return NULL;
	if (wrong)
		return wrong;
	for (size_t i = 0; i < c->saved.num_gpus; i++) {
		if (c->told[i] == NOT_TOLD || (i != saved && c->told[i] != (int16_t)local) ||
		    (i == saved && c->told[i] == (int16_t)local))
			continue;
		(void)snprintf(map->problem, sizeof(map->problem),
			       "\"%s=%s\": %s is in another pair already", pair, present,
			       i == saved ? pair : present);
		return "twice";
	}
	c->told[saved] = (int16_t)local;
	return NULL;
}

const char *device_map_read(struct map_case *c, struct gpu_map *map)
{
	char *text = strdup(c->options->device_map), *rest = text, *pair;
	const char *wrong = NULL;

	if (!text) {
		(void)snprintf(map->problem, sizeof(map->problem), "no memory");
		return "memory";
	}
	while (!wrong && (pair = strsep(&rest, SEPARATORS))) {
		if (*pair)
			wrong = note_pair(c, pair, map);
	}
	free(text);
	return wrong;
}

static const char *check_gpu(const struct map_case *c, size_t saved, struct gpu_map *map)
{
	const struct topology_node *from = c->saved.gpus[saved];
	const struct topology_node *to = c->local.gpus[c->told[saved]];
	struct difference d;

	if (gpu_rules_compare(from, to, c->options, &d)) {
		(void)snprintf(map->problem, sizeof(map->problem),
			       "0x%04x=0x%04x: %s is %" PRIu64 " there, %" PRIu64 " here%s%s%s",
			       from->gpu_id, to->gpu_id, d.property, d.saved, d.local,
			       d.variable ? " (" : "", d.variable ? d.variable : "",
			       d.variable ? "=0 relaxes)" : "");
		return d.property;
	}
	if (c->options->check_numa &&
	    !links_cpu_link_serves(&c->saved, saved, &c->local, (size_t)c->told[saved])) {
		(void)snprintf(map->problem, sizeof(map->problem),
			       "0x%04x=0x%04x: the link to the CPU is not of the kind that it was "
			       "(KFD_NUMA_CHECK=0 relaxes)",
			       from->gpu_id, to->gpu_id);
		return "numa";
	}
	return NULL;
}

static const char *check_pair(const struct map_case *c, size_t a, size_t b, struct gpu_map *map)
{
	size_t to_a = (size_t)c->told[a], to_b = (size_t)c->told[b];

	if (set_has(&c->saved.xgmi[a], b) && !set_has(&c->local.xgmi[to_a], to_b)) {
		(void)snprintf(map->problem, sizeof(map->problem),
			       "saved GPUs 0x%04x and 0x%04x are linked by XGMI, 0x%04x and 0x%04x "
			       "here are not",
			       c->saved.gpus[a]->gpu_id, c->saved.gpus[b]->gpu_id,
			       c->local.gpus[to_a]->gpu_id, c->local.gpus[to_b]->gpu_id);
		return "links";
	}
	if (c->options->check_numa && c->saved.regions.of[a] != NO_BLOCK &&
	    c->saved.regions.of[a] == c->saved.regions.of[b] &&
	    c->local.regions.of[to_a] != c->local.regions.of[to_b]) {
		(void)snprintf(
			map->problem, sizeof(map->problem),
			"saved GPUs 0x%04x and 0x%04x share a CPU node, 0x%04x and 0x%04x here "
			"do not (KFD_NUMA_CHECK=0 relaxes)",
			c->saved.gpus[a]->gpu_id, c->saved.gpus[b]->gpu_id,
			c->local.gpus[to_a]->gpu_id, c->local.gpus[to_b]->gpu_id);
		return "numa";
	}
	return NULL;
}

const char *device_map_check(const struct map_case *c, struct gpu_map *map)
{
	const char *rule = NULL;

	for (size_t i = 0; !rule && i < c->saved.num_gpus; i++) {
		if (c->told[i] != NOT_TOLD)
			rule = check_gpu(c, i, map);
		for (size_t j = 0; !rule && c->told[i] != NOT_TOLD && j < i; j++) {
			if (c->told[j] != NOT_TOLD)
				rule = check_pair(c, j, i, map);
		}
	}
	return rule;
}
