// SPDX-License-Identifier: GPL-2.0-only
/* Verifies every byte of the buffers that this process has in the simulator. */
#include "client.h"
#include "client_vmem.h"
#include "simulator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time limit for all tasks to arrive, long enough for a busy machine. */
#define MEETING_MS 30000

/* The current places of buffers, from the simulator's list, sorted by address. */
struct place {
	uint64_t address, size, handle;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	/* those without an address */
	return left->handle < right->handle ? -1 : left->handle > right->handle;
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
			return client_complain(-EINVAL, "kfd_bos");
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
	char *text = NULL;
	int ret = simulator_read_all("kfd_bos", &text);

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

/* Tasks write their messages to each other behind this offset. */
static uint64_t pattern_end(const struct workload *workload, size_t index)
{
	return workload->bos[index].size -
	       (workload_is_shared(workload, index) ? WORKLOAD_SLOTS : 0);
}

/* Reads from a buffer of KFD; without a handle, from where one GPU maps @address. */
static int peek(uint64_t handle, uint64_t address, uint64_t offset, void *data, size_t size)
{
	int (*by_handle)(uint64_t handle, uint64_t offset, void *data, size_t size) =
		simulator_find("amdgpu_sim_peek");
	int (*by_address)(uint64_t address, void *data, size_t size) =
		simulator_find("amdgpu_sim_peek_va");
	int ret;

	if (handle)
		return by_handle(handle, offset, data, size);
	ret = by_address(address + offset, data, size);
	return ret == 1 ? 0 : ret < 0 ? ret : -EFAULT;
}

static int poke(uint64_t handle, uint64_t address, uint64_t offset, const void *data, size_t size)
{
	int (*by_handle)(uint64_t handle, uint64_t offset, const void *data, size_t size) =
		simulator_find("amdgpu_sim_poke");
	int (*by_address)(uint64_t address, const void *data, size_t size) =
		simulator_find("amdgpu_sim_poke_va");

	return handle ? by_handle(handle, offset, data, size)
		      : by_address(address + offset, data, size);
}

/* Compares the buffer as the GPU sees it. */
static int verify_memory(const struct workload *workload, size_t index, const struct place *place,
			 void *memory)
{
	uint64_t end = pattern_end(workload, index);
	int ret = 0;

	for (uint64_t at = 0; !ret && at < end; at += CLIENT_PART) {
		uint64_t size = end - at < CLIENT_PART ? end - at : CLIENT_PART, good;

		ret = peek(place->handle, place->address, at, memory, size);
		if (ret < 0)
			return client_complain(ret, "cannot read a buffer");
		good = workload_check(workload, index, at, memory, size);
		if (good != size)
			ret = report_wrong(workload, index, at + good, "as the GPU sees it");
	}
	return ret;
}

/* Compares the buffer as the CPU sees it, except the part that was never written: reading that part
 * would allocate memory. */
static int verify_mapping(const struct workload *workload, size_t index, uint64_t address)
{
	const struct workload_bo *bo = &workload->bos[index];
	uint64_t end = pattern_end(workload, index), size = bo->written < end ? bo->written : end;
	uint64_t good = workload_check(workload, index, 0, (void *)(uintptr_t)address, size);

	return good == size ? 0 : report_wrong(workload, index, good, "where it is mapped");
}

static int verify_bo(const struct workload *workload, size_t index, const struct place *place)
{
	const struct workload_bo *bo = &workload->bos[index];
	void *memory;
	int ret;

	if (place->size != bo->size)
		return client_complain(-EIO, "a buffer has another size");
	memory = malloc(CLIENT_PART);
	ret = memory ? verify_memory(workload, index, place, memory) : -ENOMEM;
	free(memory);
	return !ret && bo->mapped ? verify_mapping(workload, index, place->address) : ret;
}

/* Both lists are sorted by address. */
static int verify_all(const struct workload *workload, const struct place *places,
		      size_t num_places)
{
	uint64_t address = workload_first_address(workload);
	size_t at = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < workload->num_bos; i++) {
		if (!workload_is_buffer(&workload->bos[i]) || !workload_keeps(workload, i)) {
			address = workload_next_address(address, &workload->bos[i]);
			continue;
		}
		if (workload->bos[i].kind == 'N') {
			ret = client_vmem_verify(workload, i, address);
			address = workload_next_address(address, &workload->bos[i]);
			continue;
		}
		while (at < num_places && places[at].address < address)
			at++;
		if (at == num_places || places[at].address != address)
			return client_complain(-EIO, "a buffer is missing");
		if (workload_has_pattern(workload, i))
			ret = verify_bo(workload, i, &places[at]);
		if (!ret && workload->bos[i].kind == 'B')
			ret = client_vmem_verify(workload, i, address);
		address = workload_next_address(address, &workload->bos[i]);
	}
	return ret;
}

static const struct place *find_place(const struct place *places, size_t num_places,
				      uint64_t address)
{
	for (size_t i = 0; i < num_places; i++) {
		if (places[i].address == address)
			return &places[i];
	}
	return NULL;
}

static struct workload owner_of(const struct workload *workload, uint32_t owner)
{
	struct workload other = *workload;

	other.seed -= other.task;
	return workload_of_task(&other, owner);
}

/* A shared buffer as this process maps it. */
struct share {
	struct workload owner;
	size_t index;
	bool imported;
	struct place place;
};

/* A process that imports host memory as ROCr does has no handle of KFD. */
static int find_share(const struct workload *workload, const struct place *places,
		      size_t num_places, struct share *share)
{
	const uint64_t address = workload_import_address(&share->owner, share->index);
	const struct place *place = find_place(
		places, num_places, address + (share->imported ? 0 : WORKLOAD_IMPORT_DISTANCE));

	if (place && !(share->imported && workload->host))
		share->place = *place;
	else if (!place && share->imported && workload->host)
		share->place = (struct place){ .address = address,
					       .size = share->owner.bos[share->index].size };
	else
		return client_complain(-EIO,
				       "a shared buffer is missing, or there is one too many");
	return 0;
}

/* Calls @visit for each shared buffer of the process, both imported and its own. */
static int for_each_share(const struct workload *workload, const struct place *places,
			  size_t num_places,
			  int (*visit)(const struct workload *workload, const struct share *share))
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < 2 * workload->tasks * workload->shared; i++) {
		struct share share = { .index = i / 2 % workload->shared, .imported = i % 2 };
		uint32_t owner = i / 2 / workload->shared;

		if (share.imported
			    ? !workload_imports(workload, owner)
			    : owner != workload->task || !workload_keeps(workload, share.index))
			continue;
		share.owner = owner_of(workload, owner);
		ret = find_share(workload, places, num_places, &share);
		if (!ret)
			ret = visit(workload, &share);
	}
	return ret;
}

static int verify_share(const struct workload *workload, const struct share *share)
{
	struct workload_bo bos[64];
	struct workload owner = share->owner;

	/* only imports of host memory are mapped for the CPU */
	if (!share->imported || share->index >= 64)
		return 0;
	memcpy(bos, owner.bos, (share->index + 1) * sizeof(*bos));
	bos[share->index].mapped = workload->host;
	owner.bos = bos;
	return verify_bo(&owner, share->index, &share->place);
}

/* One slot for each task, or for each of the two handles of a single task. */
static uint32_t slot_of(const struct workload *workload, const struct share *share)
{
	return workload->tasks == 1 ? share->imported : workload->task;
}

static uint64_t word_of(const struct share *share, uint32_t slot)
{
	return workload_slot_word(share->owner.task, share->index, slot);
}

static uint64_t slot_offset(const struct share *share, uint32_t slot)
{
	return share->owner.bos[share->index].size - WORKLOAD_SLOTS + slot * sizeof(uint64_t);
}

/* The slot as the CPU sees it; NULL: the process has no mapping of the import. */
static volatile uint64_t *mapped_slot(const struct workload *workload, const struct share *share,
				      uint32_t slot)
{
	const uint64_t address = workload_import_address(&share->owner, share->index);

	return workload->cpu && share->imported
		       ? (volatile uint64_t *)(uintptr_t)(address + slot_offset(share, slot))
		       : NULL;
}

static int write_slot(const struct workload *workload, const struct share *share)
{
	uint32_t slot = slot_of(workload, share);
	uint64_t word = word_of(share, slot);

	if (mapped_slot(workload, share, slot)) {
		*mapped_slot(workload, share, slot) = word;
		return 0;
	}
	return poke(share->place.handle, share->place.address, slot_offset(share, slot), &word,
		    sizeof(word));
}

/* Each task that shares a buffer writes to it through its own handle. */
static int await_slots(const struct workload *workload, const struct share *share)
{
	uint32_t slots = workload->tasks == 1 ? 2 : workload->tasks;

	for (uint32_t slot = 0; slot < slots; slot++) {
		uint64_t word = 0;

		if (workload->gone && slot == share->owner.task)
			continue;
		for (int i = 0; word != word_of(share, slot); i++) {
			int ret = peek(share->place.handle, share->place.address,
				       slot_offset(share, slot), &word, sizeof(word));

			if (ret < 0)
				return client_complain(ret, "cannot read a shared buffer");
			if (mapped_slot(workload, share, slot) &&
			    *mapped_slot(workload, share, slot) != word)
				word = 0;
			if (i == MEETING_MS)
				return client_complain(-ETIME,
						       "what another process has written to a "
						       "shared buffer is not there");
			if (word != word_of(share, slot))
				(void)usleep(1000);
		}
	}
	return 0;
}

int client_meet(const struct workload *workload)
{
	struct place *places = NULL;
	size_t count = 0;
	int ret = find_places(&places, &count);

	if (!ret)
		ret = for_each_share(workload, places, count, write_slot);
	if (!ret)
		ret = for_each_share(workload, places, count, await_slots);
	free(places);
	return ret;
}

int client_see_imports(const struct workload *workload)
{
	struct place *places = NULL;
	size_t count = 0;
	int ret = find_places(&places, &count);

	if (!ret)
		ret = for_each_share(workload, places, count, verify_share);
	free(places);
	return ret;
}

static uint32_t count_imports(const struct workload *workload)
{
	uint32_t count = 0;

	for (uint32_t owner = 0; owner < workload->tasks && !workload->host; owner++)
		count += workload_imports(workload, owner) ? workload->shared : 0;
	return count;
}

int client_verify(const struct workload *workload)
{
	struct place *places = NULL;
	size_t count = 0, expected = count_imports(workload);
	int ret = find_places(&places, &count);

	for (size_t i = 0; i < workload->num_bos; i++)
		expected += workload_is_buffer(&workload->bos[i]) && workload_keeps(workload, i);
	if (!ret && count != expected)
		ret = client_complain(-EIO, "there are more buffers, or fewer, than there were");
	if (!ret)
		ret = verify_all(workload, places, count);
	if (!ret)
		ret = for_each_share(workload, places, count, verify_share);
	free(places);
	return ret;
}

/* The simulator's lists of buffers, and of GEM handles and their mappings. */
static const char *const lists[] = { "kfd_bos", "gem_handles" };

static FILE *open_list(const struct workload *workload, const char *directory, const char *list,
		       const char *mode)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s-%u.txt", directory, list, workload->task);
	return fopen(path, mode);
}

static int save_list(const struct workload *workload, const char *directory, const char *list)
{
	FILE *file = open_list(workload, directory, list, "we");
	char *text = NULL;
	int ret = file ? simulator_read_all(list, &text) : -errno;

	if (ret > 0 && fwrite(text, (size_t)ret, 1, file) != 1)
		ret = -EIO;
	free(text);
	if (file && fclose(file))
		ret = -EIO;
	return ret < 0 ? client_complain(ret, "cannot save a list of the simulator") : 0;
}

static int compare_list(const struct workload *workload, const char *directory, const char *list)
{
	FILE *file = open_list(workload, directory, list, "re");
	char *text = NULL, *was = NULL;
	int ret = file ? simulator_read_all(list, &text) : -errno;

	if (ret >= 0)
		was = calloc((size_t)ret + 2, 1);
	if (ret >= 0 && (!was || fread(was, 1, (size_t)ret + 1, file) != (size_t)ret ||
			 strcmp(was, text) != 0)) {
		(void)fprintf(stderr, "client: now:\n%sbefore:\n%s\n", text, was ? was : "");
		ret = client_complain(-EIO, "a buffer, a GEM handle or a mapping is another one");
	}
	free(text);
	free(was);
	if (file)
		(void)fclose(file);
	return ret < 0 ? ret : 0;
}

int client_save_list(const struct workload *workload, const char *directory)
{
	int ret = save_list(workload, directory, lists[0]);

	return ret ? ret : save_list(workload, directory, lists[1]);
}

int client_compare_list(const struct workload *workload, const char *directory)
{
	int ret = compare_list(workload, directory, lists[0]);

	return ret ? ret : compare_list(workload, directory, lists[1]);
}
