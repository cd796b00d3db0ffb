// SPDX-License-Identifier: GPL-2.0-only
/* Looks at every byte of the buffers that this process has in the simulator. */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (1u << 20)

static int complain(int ret, const char *what)
{
	(void)fprintf(stderr, "client: %s: %s\n", what, strerror(-ret));
	return ret;
}

/* Where buffers are now: the simulator's list, by address. */
struct place {
	uint64_t address, size, handle;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return left->address < right->address ? -1 : left->address > right->address;
}

static int parse_places(char *text, struct place **ret_places, size_t *ret_count)
{
	struct place *places = NULL;
	size_t count = 0;
	char *line;

	while ((line = strsep(&text, "\n")) && *line) {
		struct place place;

		if (!(count & (count + 1)))
			places = realloc(places, (count + 1) * 2 * sizeof(*places));
		if (!places || sscanf(line, "va=%" SCNx64 " size=%" SCNu64 " handle=%" SCNx64,
				      &place.address, &place.size, &place.handle) != 3)
			return complain(-EINVAL, "kfd_bos");
		places[count++] = place;
	}
	if (count)
		qsort(places, count, sizeof(*places), compare_places);
	*ret_places = places;
	*ret_count = count;
	return 0;
}

static int find_places(struct place **ret_places, size_t *ret_count)
{
	char *text;
	int ret = simulator_read("kfd_bos", (char[]){ 0 }, 1);

	if (ret < 0)
		return ret;
	text = malloc((size_t)ret + 1);
	if (!text)
		return -ENOMEM;
	ret = simulator_read("kfd_bos", text, (size_t)ret + 1);
	if (ret >= 0)
		ret = parse_places(text, ret_places, ret_count);
	free(text);
	return ret;
}

static int report_wrong(const struct workload *workload, size_t index, uint64_t byte,
			const char *how)
{
	(void)fprintf(stderr,
		      "client: BO %zu of %" PRIu64 " bytes is wrong at byte %" PRIu64 " (%s)\n",
		      index, workload->bos[index].size, byte, how);
	return -EIO;
}

/* As the GPU sees it. */
static int verify_memory(const struct workload *workload, size_t index, uint64_t handle,
			 void *memory)
{
	int (*peek)(uint64_t handle, uint64_t offset, void *data, size_t size) =
		simulator_find("amdgpu_sim_peek");
	const struct workload_bo *bo = &workload->bos[index];
	int ret = 0;

	for (uint64_t at = 0; !ret && at < bo->size; at += CHUNK) {
		uint64_t size = bo->size - at < CHUNK ? bo->size - at : CHUNK, good;

		ret = peek(handle, at, memory, size);
		if (ret < 0)
			return complain(ret, "cannot read a buffer");
		good = workload_check(workload, index, at, memory, size);
		if (good != size)
			ret = report_wrong(workload, index, at + good, "as the GPU sees it");
	}
	return ret;
}

/* As the CPU sees it, but for the part that was never written: looking at it takes memory. */
static int verify_mapping(const struct workload *workload, size_t index, uint64_t address)
{
	const struct workload_bo *bo = &workload->bos[index];
	uint64_t good = workload_check(workload, index, 0, (void *)(uintptr_t)address, bo->written);

	return good == bo->written ? 0 : report_wrong(workload, index, good, "where it is mapped");
}

static int verify_bo(const struct workload *workload, size_t index, const struct place *place)
{
	const struct workload_bo *bo = &workload->bos[index];
	void *memory;
	int ret;

	if (place->size != bo->size)
		return complain(-EIO, "a buffer has another size");
	memory = malloc(CHUNK);
	ret = memory ? verify_memory(workload, index, place->handle, memory) : -ENOMEM;
	free(memory);
	return !ret && bo->mapped ? verify_mapping(workload, index, place->address) : ret;
}

/* Both in order of addresses. */
static int verify_all(const struct workload *workload, const struct place *places,
		      size_t num_places)
{
	uint64_t address = workload_first_address(workload);
	size_t at = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < workload->num_bos; i++) {
		if (!workload_is_buffer(&workload->bos[i])) {
			address = workload_next_address(address, &workload->bos[i]);
			continue;
		}
		while (at < num_places && places[at].address < address)
			at++;
		if (at == num_places || places[at].address != address)
			return complain(-EIO, "a buffer is missing");
		/* the kernel writes to the page of events */
		if (workload_has_content(&workload->bos[i]) && workload->bos[i].kind != 'E')
			ret = verify_bo(workload, i, &places[at]);
		address = workload_next_address(address, &workload->bos[i]);
	}
	return ret;
}

int client_verify(const struct workload *workload)
{
	struct place *places = NULL;
	size_t count = 0, expected = 0;
	int ret = find_places(&places, &count);

	for (size_t i = 0; i < workload->num_bos; i++)
		expected += workload_is_buffer(&workload->bos[i]);
	if (!ret && count != expected)
		ret = complain(-EIO, "there are more buffers, or fewer, than there were");
	if (!ret)
		ret = verify_all(workload, places, count);
	free(places);
	return ret;
}
