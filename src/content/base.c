// SPDX-License-Identifier: GPL-2.0-only
/* Packs the sums of a pages file with the size and the times of that file. Reads those of all pages
 * files of the base into one hash table, which does not change afterwards, so lookups need no lock.
 * Shares a chunk by FICLONERANGE. It looks first where the file of the same name has it, or behind
 * the chunk that was found last. */
#include "content/base.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/xxh3.h"
#include "image/image.h"
#include "image/image_dir.h"

/* A terabyte of contents needs 64 MiB of sums. */
#define SUMS_SIZE_MAX (1u << 30)

#define MAGIC   0x736d757375706761ULL /* "agpusums" */
#define VERSION 1

/* Words of eight bytes, little-endian. The sums follow, and the XXH3 of all that. */
struct header {
	uint64_t magic, version, chunk;
	struct base_stamp stamp;
	uint64_t count;
};

struct base_file {
	int fd;
	char name[IMAGE_NAME_SIZE];
	struct base_sums sums;
};

/* An entry of the table of all sums; no file: it is empty. */
struct slot {
	uint32_t file;
	uint32_t chunk;
};

#define NO_FILE UINT32_MAX

struct base {
	struct base_file *files;
	size_t num_files;
	size_t flaws[BASE_FLAWS];
	/* Chunks with a sum, of all files. */
	size_t num_sums;
	/* A power of two, at least twice the number of chunks, so that a lookup ends soon. */
	struct slot *slots;
	size_t num_slots;
};

struct base_sum base_sum_chunk(const void *chunk)
{
	XXH128_hash_t hash = XXH3_128bits(chunk, BASE_CHUNK);

	return (struct base_sum){ { hash.low64, hash.high64 } };
}

static int read_stamp(int fd, struct base_stamp *ret_stamp)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return -EINVAL;
	*ret_stamp = (struct base_stamp){
		(uint64_t)stat.st_size,
		stat.st_ino,
		(uint64_t)stat.st_mtim.tv_sec,
		(uint64_t)stat.st_mtim.tv_nsec,
	};
	return 0;
}

static void swap_words(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = htole64(words[i]);
}

static bool is_empty(const struct base_sum *sum)
{
	return !sum->words[0] && !sum->words[1];
}

static bool is_same(const struct base_sum *one, const struct base_sum *other)
{
	return one->words[0] == other->words[0] && one->words[1] == other->words[1];
}

/* The slot with this sum, or the empty one where it belongs. */
static struct slot *find_slot(const struct base *base, const struct base_sum *sum)
{
	for (size_t i = sum->words[0];; i++) {
		struct slot *slot = &base->slots[i & (base->num_slots - 1)];

		if (slot->file == NO_FILE ||
		    is_same(&base->files[slot->file].sums.list[slot->chunk], sum))
			return slot;
	}
}

static void add_sums(struct base *base, uint32_t file)
{
	const struct base_sums *sums = &base->files[file].sums;

	for (uint32_t i = 0; i < sums->count; i++) {
		if (is_empty(&sums->list[i]))
			continue;
		*find_slot(base, &sums->list[i]) = (struct slot){ file, i };
		base->num_sums++;
	}
}

static int make_table(struct base *base)
{
	size_t chunks = 0;

	for (size_t i = 0; i < base->num_files; i++)
		chunks += base->files[i].sums.count;
	base->num_slots = 2;
	while (base->num_slots < 2 * chunks)
		base->num_slots *= 2;
	base->slots = malloc(base->num_slots * sizeof(*base->slots));
	if (!base->slots)
		return -ENOMEM;
	memset(base->slots, 0xff, base->num_slots * sizeof(*base->slots));
	for (size_t i = 0; i < base->num_files; i++)
		add_sums(base, (uint32_t)i);
	return 0;
}

/* Whether the file has so many bytes as its header says, unchanged. */
static bool is_whole(const char *bytes, size_t size, struct header *ret_header)
{
	const size_t frame = sizeof(*ret_header) + sizeof(uint64_t);
	uint64_t check;

	if (size < frame)
		return false;
	memcpy(&check, bytes + size - sizeof(check), sizeof(check));
	memcpy(ret_header, bytes, sizeof(*ret_header));
	swap_words((uint64_t *)ret_header, sizeof(*ret_header) / sizeof(uint64_t));
	return le64toh(check) == XXH3_64bits(bytes, size - sizeof(check)) &&
	       ret_header->magic == MAGIC && ret_header->version == VERSION &&
	       ret_header->chunk == BASE_CHUNK &&
	       ret_header->count == ret_header->stamp.file_size / BASE_CHUNK &&
	       ret_header->count == (size - frame) / sizeof(struct base_sum) &&
	       (size - frame) % sizeof(struct base_sum) == 0;
}

static int unpack_sums(const void *bytes, size_t size, struct base_sums *ret_sums)
{
	struct header header;
	struct base_sum *list;

	if (!is_whole(bytes, size, &header))
		return -EBADMSG;
	list = calloc(header.count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	memcpy(list, (const char *)bytes + sizeof(header), header.count * sizeof(*list));
	swap_words(list->words, 2 * header.count);
	*ret_sums = (struct base_sums){ header.stamp, list, header.count };
	return 0;
}

/* After the eight bytes of length, which must be right. */
static int read_sums(int directory, const char *name, struct base_sums *ret_sums)
{
	_cleanup_close_ int fd = fd_open_at(directory, name, O_RDONLY | O_NONBLOCK);
	_cleanup_free_ char *bytes = NULL;
	struct stat stat;
	uint64_t length, header;

	if (fd < 0 || fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode) ||
	    stat.st_size < IMAGE_HEADER_SIZE || stat.st_size > SUMS_SIZE_MAX)
		return -EBADMSG;
	length = (uint64_t)stat.st_size - IMAGE_HEADER_SIZE;
	bytes = malloc(length + 1);
	if (!bytes)
		return -ENOMEM;
	if (pread_full(fd, &header, sizeof(header), 0) < 0 || le64toh(header) != length ||
	    pread_full(fd, bytes, length, sizeof(header)) < 0)
		return -EBADMSG;
	return unpack_sums(bytes, length, ret_sums);
}

static bool is_unchanged(const struct base_file *file)
{
	struct base_stamp now;

	return !read_stamp(file->fd, &now) && !memcmp(&now, &file->sums.stamp, sizeof(now));
}

/* A lease to read is refused while the file is open for writing. It is not kept: its end would be a
 * signal. Without leases, there is the time of the last change. NFS refuses one if the server has
 * not delegated the file, too. */
static bool is_being_written(int fd)
{
	struct statfs stat;

	if (fstatfs(fd, &stat) < 0 || stat.f_type == NFS_SUPER_MAGIC)
		return false;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

static int find_flaw(const struct base_file *file)
{
	if (file->fd < 0)
		return BASE_MISSING;
	if (!is_unchanged(file))
		return BASE_CHANGED;
	return is_being_written(file->fd) ? BASE_BEING_WRITTEN : BASE_FLAWS;
}

static void close_file(struct base_file *file)
{
	fd_close(&file->fd);
	free(file->sums.list);
}

static int add_file(struct base *base, int directory, const struct image_name *image,
		    const char *sums_name)
{
	struct base_file file = { .fd = -1 };
	int ret = read_sums(directory, sums_name, &file.sums), flaw = BASE_DAMAGED;

	if (ret == -ENOMEM)
		return ret;
	(void)snprintf(file.name, sizeof(file.name), IMAGE_PAGES_NAME, image->id, image->gpu_id);
	if (!ret) {
		file.fd = fd_open_at(directory, file.name, O_RDONLY | O_NONBLOCK);
		flaw = find_flaw(&file);
	}
	if (flaw != BASE_FLAWS) {
		base->flaws[flaw]++;
		close_file(&file);
		return 0;
	}
	ret = array_append(&base->files, &base->num_files, sizeof(file), &file);
	if (ret < 0)
		close_file(&file);
	return ret;
}

static int add_files(struct base *base, int directory)
{
	int error, ret = 0;
	_cleanup_closedir_ DIR *stream = dir_open_at(directory, ".", &error);
	struct dirent *entry;

	while (stream && !ret && (entry = next_entry(stream, &error))) {
		struct image_name image;

		if (image_dir_parse_name(entry->d_name, &image) && image.kind == IMAGE_SUMS)
			ret = add_file(base, directory, &image, entry->d_name);
	}
	return ret < 0 ? ret : error;
}

int base_open(int directory, struct base **ret_base)
{
	struct base *base = calloc(1, sizeof(*base));
	int ret = base ? 0 : -ENOMEM;

	if (!ret && directory >= 0)
		ret = add_files(base, directory);
	if (!ret)
		ret = make_table(base);
	if (ret < 0) {
		base_free(base);
		return ret;
	}
	*ret_base = base;
	return 0;
}

void base_free(struct base *base)
{
	if (!base)
		return;
	for (size_t i = 0; i < base->num_files; i++)
		close_file(&base->files[i]);
	free(base->files);
	free(base->slots);
	free(base);
}

uint64_t base_size(const struct base *base)
{
	return (uint64_t)base->num_sums * BASE_CHUNK;
}

size_t base_count_flaws(const struct base *base, enum base_flaw flaw)
{
	return base->flaws[flaw];
}

static bool is_at(const struct base *base, const struct base_sum *sum,
		  const struct base_place *place)
{
	for (size_t i = 0; i < base->num_files; i++) {
		const struct base_file *file = &base->files[i];

		if (file->fd == place->fd)
			return place->offset / BASE_CHUNK < file->sums.count &&
			       is_same(&file->sums.list[place->offset / BASE_CHUNK], sum);
	}
	return false;
}

/* Where a chunk with this sum is. Prefers @wanted; its fd may be -1 if there is no such place. */
static bool find(const struct base *base, const struct base_sum *sum,
		 const struct base_place *wanted, struct base_place *ret_place)
{
	const struct slot *slot = find_slot(base, sum);

	if (slot->file == NO_FILE)
		return false;
	*ret_place = (struct base_place){
		.fd = base->files[slot->file].fd,
		.offset = (uint64_t)slot->chunk * BASE_CHUNK,
	};
	if ((ret_place->fd != wanted->fd || ret_place->offset != wanted->offset) &&
	    is_at(base, sum, wanted))
		*ret_place = *wanted;
	return true;
}

bool base_is_unchanged(const struct base *base)
{
	for (size_t i = 0; i < base->num_files; i++) {
		if (!is_unchanged(&base->files[i]))
			return false;
	}
	return true;
}

static struct base_place find_file(const struct base *base, const char *name)
{
	for (size_t i = 0; i < base->num_files; i++) {
		if (!strcmp(base->files[i].name, name))
			return (struct base_place){ base->files[i].fd, 0 };
	}
	return (struct base_place){ -1, 0 };
}

int base_chunks_init(struct base_chunks *chunks, const struct base *base, const char *name,
		     uint64_t size)
{
	const size_t count = size / BASE_CHUNK;
	struct base_sum *list = calloc(count + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	*chunks = (struct base_chunks){
		.base = base,
		.same = find_file(base, name),
		.sums = { .list = list, .count = count },
	};
	return 0;
}

void base_chunks_done(struct base_chunks *chunks)
{
	free(chunks->sums.list);
	*chunks = (struct base_chunks){ 0 };
}

bool base_look_for_chunk(struct base_chunks *chunks, const void *chunk, uint64_t offset,
			 struct base_place *place)
{
	struct base_place wanted = *place;
	struct base_sum *sum = &chunks->sums.list[offset / BASE_CHUNK];

	*sum = base_sum_chunk(chunk);
	if (__atomic_load_n(&chunks->error, __ATOMIC_RELAXED))
		return false;
	if (wanted.fd >= 0)
		wanted.offset += BASE_CHUNK;
	else
		wanted = (struct base_place){ chunks->same.fd, offset };
	return find(chunks->base, sum, &wanted, place);
}

int base_share_chunks(struct base_chunks *chunks, int fd, uint64_t offset, uint64_t size,
		      const struct base_place *place)
{
	struct file_clone_range range = {
		.src_fd = place->fd,
		.src_offset = place->offset,
		.src_length = size,
		.dest_offset = offset,
	};
	int ret = xioctl(fd, FICLONERANGE, &range);

	if (!ret)
		(void)__atomic_fetch_add(&chunks->shared_bytes, size, __ATOMIC_RELAXED);
	else if (ret != -ENOSPC)
		__atomic_store_n(&chunks->error, -ret, __ATOMIC_RELAXED);
	return ret;
}

int base_pack_sums(struct base_chunks *chunks, int fd, void **ret_bytes, size_t *ret_size)
{
	const struct base_sums *sums = &chunks->sums;
	struct header header = { MAGIC, VERSION, BASE_CHUNK, .count = sums->count };
	const size_t list_size = sums->count * sizeof(*sums->list);
	const size_t size = sizeof(header) + list_size + sizeof(uint64_t);
	int ret = read_stamp(fd, &header.stamp);
	char *bytes = ret < 0 ? NULL : malloc(size);
	uint64_t check;

	if (!bytes)
		return ret < 0 ? ret : -ENOMEM;
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), sums->list, list_size);
	swap_words((uint64_t *)bytes, (size - sizeof(check)) / sizeof(uint64_t));
	check = htole64(XXH3_64bits(bytes, size - sizeof(check)));
	memcpy(bytes + size - sizeof(check), &check, sizeof(check));
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}
