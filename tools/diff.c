// SPDX-License-Identifier: GPL-2.0-only
/* Compares two image directories of one job: its processes, their BOs, and the bytes of these. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "contents.h"
#include "criu/log.h"
#include "tool.h"

#define PIECE (1u << 20)

/* One of the two directories. */
struct side {
	const char *dir;
	struct tool_images images;
	/* Of the process that is compared. */
	const struct tool_kfd *kfd;
	struct contents contents;
	/* All pieces of the contents, in the order of compare_keys(). */
	struct key *keys;
};

/* By which a BO is found on the other side. */
struct key {
	uint32_t gpu_id;
	uint64_t addr;
	uint64_t size;
	const struct contents_piece *piece;
};

struct counts {
	size_t same, differing, only_a, only_b;
	uint64_t bytes, differing_bytes;
};

static int read_side(struct side *side, const char *dir)
{
	int ret = host_open_images(dir);

	side->dir = dir;
	if (ret < 0)
		return log_error(ret, "cannot open directory %s", dir);
	host_name_images(dir);
	ret = images_read(&side->images);
	host_name_images(NULL);
	return ret;
}

static void side_done(struct side *side)
{
	images_done(&side->images);
}

static const KfdBoEntry *entry_of(const struct side *side, const struct contents_piece *piece)
{
	return side->kfd->message->bo_entries[piece->index];
}

static int compare_keys(const void *left, const void *right)
{
	const struct key *a = left, *b = right;

	if (a->gpu_id != b->gpu_id)
		return a->gpu_id < b->gpu_id ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

static struct key key_of(const KfdBoEntry *bo, const struct contents_piece *piece)
{
	return (struct key){ bo->gpu_id, bo->addr, bo->size, piece };
}

static int list_keys(struct side *side)
{
	side->keys = calloc(side->contents.count + 1, sizeof(*side->keys));
	if (!side->keys)
		return log_error(-ENOMEM, "kfd %d: cannot list its BOs", side->kfd->id);
	for (size_t i = 0; i < side->contents.count; i++) {
		const struct contents_piece *piece = &side->contents.pieces[i];

		side->keys[i] = key_of(entry_of(side, piece), piece);
	}
	qsort(side->keys, side->contents.count, sizeof(*side->keys), compare_keys);
	return 0;
}

static int open_contents(struct side *side)
{
	int ret = host_open_images(side->dir);

	if (ret < 0)
		return log_error(ret, "cannot open directory %s", side->dir);
	host_name_images(side->dir);
	ret = contents_open(side->kfd, &side->contents);
	host_name_images(NULL);
	return ret ? ret : list_keys(side);
}

static void close_contents(struct side *side)
{
	contents_close(&side->contents);
	free(side->keys);
	side->keys = NULL;
}

/* Addresses on the GPU do not change between dumps. */
static const struct contents_piece *find_piece(const struct side *side, const KfdBoEntry *bo)
{
	const struct key key = key_of(bo, NULL), *found;

	found = bsearch(&key, side->keys, side->contents.count, sizeof(key), compare_keys);
	return found ? found->piece : NULL;
}

static uint64_t count_bytes(const uint8_t *a, const uint8_t *b, size_t size)
{
	uint64_t count = 0;

	if (!memcmp(a, b, size))
		return 0;
	for (size_t i = 0; i < size; i++)
		count += a[i] != b[i];
	return count;
}

/* The bytes that differ in two BOs of one size. */
static int compare_bytes(const struct contents_piece *a, const struct contents_piece *b,
			 uint64_t *ret_count)
{
	_cleanup_free_ uint8_t *memory = malloc(2 * (size_t)PIECE);
	int ret = memory ? 0 : -ENOMEM;

	*ret_count = 0;
	for (uint64_t at = 0; !ret && at < a->size;) {
		size_t size = a->size - at < PIECE ? (size_t)(a->size - at) : PIECE;

		ret = pread_full(a->job->image_fd, memory, size, a->offset + at);
		if (!ret)
			ret = pread_full(b->job->image_fd, memory + PIECE, size, b->offset + at);
		if (!ret)
			*ret_count += count_bytes(memory, memory + PIECE, size);
		at += size;
	}
	return ret;
}

static int compare_bo(const struct side *a, const struct contents_piece *piece,
		      const struct contents_piece *other, struct counts *counts)
{
	const KfdBoEntry *bo = entry_of(a, piece);
	uint64_t differing = 0;
	int ret = compare_bytes(piece, other, &differing);

	if (ret < 0)
		return log_error(ret, "process %" PRIu32 ": cannot compare its BO at VA 0x%" PRIx64,
				 a->kfd->message->pid, bo->addr);
	counts->bytes += piece->size;
	counts->differing_bytes += differing;
	counts->same += !differing;
	counts->differing += differing != 0;
	if (differing)
		printf("  BO at VA 0x%" PRIx64 " on GPU 0x%04" PRIx32 ": %" PRIu64 " of %" PRIu64
		       " bytes differ\n",
		       bo->addr, bo->gpu_id, differing, bo->size);
	return 0;
}

static void print_lone(const KfdBoEntry *bo, const char *where)
{
	printf("  BO at VA 0x%" PRIx64 " on GPU 0x%04" PRIx32 ", %" PRIu64 " bytes: only in %s\n",
	       bo->addr, bo->gpu_id, bo->size, where);
}

static int compare_bos(const struct side *a, const struct side *b, struct counts *counts)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < a->contents.count; i++) {
		const struct contents_piece *piece = &a->contents.pieces[i], *other;

		other = find_piece(b, entry_of(a, piece));
		if (other) {
			ret = compare_bo(a, piece, other, counts);
			continue;
		}
		counts->only_a++;
		print_lone(entry_of(a, piece), a->dir);
	}
	for (size_t i = 0; !ret && i < b->contents.count; i++) {
		const KfdBoEntry *bo = entry_of(b, &b->contents.pieces[i]);

		if (find_piece(a, bo))
			continue;
		counts->only_b++;
		print_lone(bo, b->dir);
	}
	return ret;
}

/* The counts of the messages, each with its name. */
static bool compare_messages(const CriuKfd *a, const CriuKfd *b)
{
	const struct {
		const char *name;
		size_t a, b;
	} facts[] = {
		{ "GPUs", a->num_of_gpus, b->num_of_gpus },
		{ "BOs", a->n_bo_entries, b->n_bo_entries },
		{ "queues, events and SVM ranges", a->num_of_objects, b->num_of_objects },
	};
	bool differ = false;

	for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
		if (facts[i].a == facts[i].b)
			continue;
		differ = true;
		printf("  %zu and %zu %s\n", facts[i].a, facts[i].b, facts[i].name);
	}
	return differ;
}

/* TOOL_YES: the process is the same. */
static int compare_process(struct side *a, struct side *b)
{
	struct counts counts = { 0 };
	char differing[16], all[16];
	bool differ;
	int ret;

	printf("process %" PRIu32 ":\n", a->kfd->message->pid);
	differ = compare_messages(a->kfd->message, b->kfd->message);
	ret = open_contents(a);
	if (!ret)
		ret = open_contents(b);
	if (!ret)
		ret = compare_bos(a, b, &counts);
	close_contents(a);
	close_contents(b);
	if (ret < 0)
		return TOOL_TROUBLE;
	printf("  %zu BOs are the same, %zu differ, %zu and %zu are in one only: %s of %s\n",
	       counts.same, counts.differing, counts.only_a, counts.only_b,
	       text_size(counts.differing_bytes, differing), text_size(counts.bytes, all));
	return differ || counts.differing || counts.only_a || counts.only_b ? TOOL_NO : TOOL_YES;
}

static int compare_sides(struct side *a, struct side *b)
{
	int status = TOOL_YES;

	for (size_t i = 0; i < a->images.num_kfds && status != TOOL_TROUBLE; i++) {
		int ret = TOOL_NO;

		a->kfd = &a->images.kfds[i];
		b->kfd = images_find_process(&b->images, a->kfd->message->pid);
		if (!a->kfd->message->num_of_gpus)
			continue;
		if (b->kfd)
			ret = compare_process(a, b);
		else
			printf("process %" PRIu32 ": only in %s\n", a->kfd->message->pid, a->dir);
		status = ret != TOOL_YES ? ret : status;
	}
	for (size_t i = 0; i < b->images.num_kfds && status != TOOL_TROUBLE; i++) {
		const CriuKfd *kfd = b->images.kfds[i].message;

		if (!kfd->num_of_gpus || images_find_process(&a->images, kfd->pid))
			continue;
		printf("process %" PRIu32 ": only in %s\n", kfd->pid, b->dir);
		status = TOOL_NO;
	}
	return status;
}

int diff_run(const struct tool_request *request)
{
	_cleanup_(side_done) struct side a = { 0 }, b = { 0 };

	if (read_side(&a, request->dir) < 0 || read_side(&b, request->other) < 0)
		return TOOL_TROUBLE;
	return compare_sides(&a, &b);
}
