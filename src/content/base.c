// SPDX-License-Identifier: GPL-2.0-only
/* Reads the sums of all pages files of the directory into one hash table, which does not change
 * afterwards, so lookups need no lock. */
#include "content/base.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "image/image_dir.h"

/* A terabyte of contents needs 64 MiB of sums. */
#define SUMS_SIZE_MAX (1u << 30)

struct base_file {
	int fd;
	char name[IMAGE_NAME_SIZE];
	struct sums sums;
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

static bool is_empty(const struct sums_sum *sum)
{
	return !sum->words[0] && !sum->words[1];
}

static bool is_same(const struct sums_sum *one, const struct sums_sum *other)
{
	return one->words[0] == other->words[0] && one->words[1] == other->words[1];
}

/* The slot with this sum, or the empty one where it belongs. */
static struct slot *find_slot(const struct base *base, const struct sums_sum *sum)
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
	const struct sums *sums = &base->files[file].sums;

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

/* After the eight bytes of length, which must be right. */
static int read_sums(int directory, const char *name, struct sums *ret_sums)
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
	return sums_unpack(bytes, length, ret_sums);
}

static bool is_unchanged(const struct base_file *file)
{
	struct sums now;
	struct stat stat;

	if (fstat(file->fd, &stat) < 0 || !S_ISREG(stat.st_mode))
		return false;
	sums_note_file(&now, &stat);
	return now.file_size == file->sums.file_size && now.inode == file->sums.inode &&
	       now.seconds == file->sums.seconds && now.nanoseconds == file->sums.nanoseconds;
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
	int fd = fd_open_at(directory, ".", O_RDONLY | O_DIRECTORY), error = 0, ret = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!stream) {
		ret = fd < 0 ? fd : -ENOMEM;
		fd_close(&fd);
		return ret;
	}
	while (!ret && (entry = next_entry(stream, &error))) {
		struct image_name image;

		if (image_dir_parse_name(entry->d_name, &image) && image.kind == IMAGE_SUMS)
			ret = add_file(base, directory, &image, entry->d_name);
	}
	(void)closedir(stream);
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
	return (uint64_t)base->num_sums * SUMS_CHUNK;
}

size_t base_count_flaws(const struct base *base, enum base_flaw flaw)
{
	return base->flaws[flaw];
}

static bool is_at(const struct base *base, const struct sums_sum *sum,
		  const struct base_place *place)
{
	for (size_t i = 0; i < base->num_files; i++) {
		const struct base_file *file = &base->files[i];

		if (file->fd == place->fd)
			return place->offset / SUMS_CHUNK < file->sums.count &&
			       is_same(&file->sums.list[place->offset / SUMS_CHUNK], sum);
	}
	return false;
}

bool base_find(const struct base *base, const struct sums_sum *sum, const struct base_place *wanted,
	       struct base_place *ret_place)
{
	const struct slot *slot = find_slot(base, sum);

	if (slot->file == NO_FILE)
		return false;
	*ret_place = (struct base_place){
		.fd = base->files[slot->file].fd,
		.offset = (uint64_t)slot->chunk * SUMS_CHUNK,
	};
	if ((ret_place->fd != wanted->fd || ret_place->offset != wanted->offset) &&
	    is_at(base, sum, wanted))
		*ret_place = *wanted;
	return true;
}

struct base_place base_find_file(const struct base *base, const char *name)
{
	for (size_t i = 0; i < base->num_files; i++) {
		if (!strcmp(base->files[i].name, name))
			return (struct base_place){ base->files[i].fd, 0 };
	}
	return (struct base_place){ -1, 0 };
}

bool base_is_unchanged(const struct base *base)
{
	for (size_t i = 0; i < base->num_files; i++) {
		if (!is_unchanged(&base->files[i]))
			return false;
	}
	return true;
}
