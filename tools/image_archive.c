// SPDX-License-Identifier: GPL-2.0-only
/* Reads the archive once for the state images, and again for contents. tar.c reads the members;
 * this file decides which of them are images of the plugin, and of one dump. */
#include "image_archive.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image_dir.h"

/* The most bytes of state images: an archive of few bytes can have gigabytes of zeros. */
#define STATE_MAX (1ull << 30)
/* The most images: more than the files of a job on eight GPUs. */
#define IMAGES_MAX 65536

struct member {
	char name[IMAGE_NAME_SIZE];
	/* IMAGE_NONE: files.img. */
	struct image_name image;
	uint64_t size;
	/* In the store, but for pages files. */
	uint64_t offset;
	/* Of files.img, which other dumps of the archive have, too. NULL for other images. */
	char *directory;
};

struct image_archive {
	const char *name;
	int fd;
	/* A file in memory with the state images, one after the other. */
	int store;
	uint64_t store_size;
	/* By name. */
	struct member *members;
	size_t count;
	/* The directory of the images in the archive, or NULL before the first image. */
	char *directory;
	/* An entry that is an archive by its name, or NULL. */
	char *inner;
	bool has_state;
};

#define SHOWN 96

/* Bytes that a terminal can show, without the first slash: the name may have any. */
static const char *show_path(const char *path, size_t length, char text[static SHOWN])
{
	size_t used = 0;

	while (length && (*path == '/' || !strncmp(path, "./", 2))) {
		path++;
		length--;
	}
	while (length && path[length - 1] == '/')
		length--;
	for (; used < length && used < SHOWN - 1; used++)
		text[used] = (char)(path[used] >= ' ' && path[used] <= '~' ? path[used] : '?');
	text[used] = '\0';
	return used ? text : ".";
}

static bool ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), size = strlen(end);

	return length >= size && !strcmp(path + length - size, end);
}

/* Runtimes put changed files and shared memory beside the images, which tell nothing. */
static bool is_inner_archive(const struct tar_member *entry)
{
	static const char *const ends[] = { ".tar", ".tar.gz", ".tgz", ".tar.zst" };
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		found |= ends_with(entry->path, ends[i]);
	return found && entry->is_file && !ends_with(entry->path, "/rootfs-diff.tar") &&
	       !ends_with(entry->path, "/devshm-checkpoint.tar");
}

/* False: the entry is no image. *@ret_length: of its directory. */
static bool identify(const struct tar_member *entry, struct member *ret_member, size_t *ret_length)
{
	const char *name = strrchr(entry->path, '/') + 1;
	struct member member = { .size = entry->size };

	if (strcmp(name, FILES_NAME) != 0 && !image_dir_parse_name(name, &member.image))
		return false;
	(void)snprintf(member.name, sizeof(member.name), "%s", name);
	*ret_member = member;
	*ret_length = (size_t)(name - entry->path);
	return true;
}

/* The GPU images of one dump are in one directory. CRIU's files.img tells nothing: the archive of a
 * pod has one for each container, and most of them use no GPU. */
static int check_directory(struct image_archive *archive, const struct tar_member *entry,
			   struct member *member, size_t length)
{
	char one[SHOWN], other[SHOWN];

	if (member->image.kind == IMAGE_NONE) {
		member->directory = strndup(entry->path, length);
		return member->directory ? 0
					 : log_error(-ENOMEM, "archive %s: cannot list its images",
						     archive->name);
	}
	if (!archive->directory)
		archive->directory = strndup(entry->path, length);
	if (!archive->directory)
		return log_error(-ENOMEM, "archive %s: cannot list its images", archive->name);
	if (strlen(archive->directory) == length &&
	    !strncmp(archive->directory, entry->path, length))
		return 0;
	return log_error(
		-EOPNOTSUPP,
		"archive %s: has images of AMD GPUs in %s and in %s; unpack it, and name the directory of one dump",
		archive->name, show_path(archive->directory, strlen(archive->directory), one),
		show_path(entry->path, length, other));
}

/* Appends the bytes of an entry to the store. */
static int store(struct image_archive *archive, struct tar_member *entry, struct member *member)
{
	char bytes[32u << 10];

	if (entry->size > STATE_MAX - archive->store_size)
		return log_error(
			-EOPNOTSUPP,
			"archive %s: its images of state have more than 1 GiB; unpack it, and name the directory with the images",
			archive->name);
	if (entry->is_sparse)
		return log_error(
			-EOPNOTSUPP,
			"archive %s: image %s has holes, which only images of contents may have; pack the images again, without --sparse",
			archive->name, member->name);
	member->offset = archive->store_size;
	for (uint64_t left = entry->size, part; left; left -= part) {
		int ret;

		part = left < sizeof(bytes) ? left : sizeof(bytes);
		ret = tar_read(entry, bytes, part);
		if (ret < 0)
			return ret;
		ret = write_full(archive->store, bytes, part);
		if (ret < 0)
			return log_error(ret, "archive %s: cannot copy image %s to memory",
					 archive->name, member->name);
	}
	archive->store_size += entry->size;
	return 0;
}

static int take_member(struct tar_member *entry, void *argument)
{
	struct image_archive *archive = argument;
	struct member member;
	size_t length;
	int ret;

	if (!archive->inner && is_inner_archive(entry)) {
		archive->inner = strdup(entry->path);
		return archive->inner ? 0
				      : log_error(-ENOMEM, "archive %s: cannot list its images",
						  archive->name);
	}
	if (!identify(entry, &member, &length))
		return 0;
	if (!entry->is_file)
		return log_error(-EOPNOTSUPP, "archive %s: image %s is not a regular file",
				 archive->name, member.name);
	if (archive->count == IMAGES_MAX)
		return log_error(-EOPNOTSUPP, "archive %s: has more than %d images", archive->name,
				 IMAGES_MAX);
	ret = check_directory(archive, entry, &member, length);
	if (!ret && member.image.kind != IMAGE_PAGES)
		ret = store(archive, entry, &member);
	if (ret < 0) {
		free(member.directory);
		return ret;
	}
	archive->has_state |= member.image.kind != IMAGE_NONE && member.image.kind != IMAGE_PAGES;
	ret = array_append(&archive->members, &archive->count, sizeof(member), &member);
	if (ret == 0)
		return 0;
	free(member.directory);
	return log_error(ret, "archive %s: cannot list its images", archive->name);
}

/* Removes each files.img that is not beside the GPU images. */
static void drop_other_files(struct image_archive *archive)
{
	size_t count = 0;

	for (size_t i = 0; i < archive->count; i++) {
		struct member *member = &archive->members[i];
		bool keep = !member->directory || !strcmp(member->directory, archive->directory);

		free(member->directory);
		member->directory = NULL;
		if (keep)
			archive->members[count++] = *member;
	}
	archive->count = count;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const struct member *)left)->name, ((const struct member *)right)->name);
}

static int report_inner(const struct image_archive *archive)
{
	char text[SHOWN];

	return log_error(
		-EOPNOTSUPP,
		"archive %s: has no images of AMD GPUs, but another archive, %s; unpack it, and name the one inside",
		archive->name, show_path(archive->inner, strlen(archive->inner), text));
}

static int report_no_images(const struct image_archive *archive)
{
	if (archive->inner)
		return report_inner(archive);
	return log_error(
		-EOPNOTSUPP,
		"archive %s: has no images of AMD GPUs: its job used none, CRIU ran without the plugin, or CRIU wrote them to another directory (images-dir in its configuration)",
		archive->name);
}

static int check_members(struct image_archive *archive)
{
	if (!archive->has_state)
		return report_no_images(archive);
	drop_other_files(archive);
	qsort(archive->members, archive->count, sizeof(*archive->members), compare_names);
	for (size_t i = 1; i < archive->count; i++) {
		if (!compare_names(&archive->members[i - 1], &archive->members[i]))
			return log_error(-EOPNOTSUPP,
					 "archive %s: has image %s twice; export it again",
					 archive->name, archive->members[i].name);
	}
	return 0;
}

int image_archive_read(const char *name, int fd, struct image_archive **ret_archive)
{
	_cleanup_(image_archive_free) struct image_archive *archive = calloc(1, sizeof(*archive));
	int ret;

	if (!archive) {
		(void)close(fd);
		return log_error(-ENOMEM, "archive %s: cannot list its images", name);
	}
	archive->name = name;
	archive->fd = fd;
	archive->store = memfd_create("images", MFD_CLOEXEC);
	if (archive->store < 0)
		return log_error(-errno, "archive %s: cannot copy its images to memory", name);
	ret = tar_walk(name, fd, take_member, archive);
	if (!ret)
		ret = check_members(archive);
	if (ret < 0)
		return ret;
	*ret_archive = take_ptr(&archive);
	return 0;
}

void image_archive_free(struct image_archive **archive)
{
	if (!*archive)
		return;
	fd_close(&(*archive)->fd);
	fd_close(&(*archive)->store);
	for (size_t i = 0; i < (*archive)->count; i++)
		free((*archive)->members[i].directory);
	free((*archive)->members);
	free((*archive)->directory);
	free((*archive)->inner);
	free(*archive);
	*archive = NULL;
}

static const struct member *find(const struct image_archive *archive, const char *name)
{
	struct member key = { 0 };

	(void)snprintf(key.name, sizeof(key.name), "%s", name);
	return bsearch(&key, archive->members, archive->count, sizeof(key), compare_names);
}

int image_archive_open(const struct image_archive *archive, const char *name)
{
	const struct member *member = find(archive, name);
	_cleanup_close_ int fd = -1;
	off_t offset;

	if (!member || member->image.kind == IMAGE_PAGES)
		return -ENOENT;
	fd = memfd_create(member->name, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	offset = (off_t)member->offset;
	for (uint64_t left = member->size; left;) {
		ssize_t count = sendfile(fd, archive->store, &offset, left);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count < 0 ? -errno : -EIO;
		left -= (uint64_t)count;
	}
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : take_fd(&fd);
}

int image_archive_list(const struct image_archive *archive, enum image_kind kind, int **ret_ids,
		       size_t *ret_count)
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;

	for (size_t i = 0; i < archive->count; i++) {
		const struct image_name *image = &archive->members[i].image;

		if (image->kind == kind &&
		    array_append(&ids, &count, sizeof(image->id), &image->id) < 0)
			return log_error(-ENOMEM, "archive %s: cannot list its images",
					 archive->name);
	}
	if (count)
		qsort(ids, count, sizeof(*ids), compare_u32);
	*ret_ids = take_ptr(&ids);
	*ret_count = count;
	return 0;
}

int image_archive_find_pages(const struct image_archive *archive, int id, uint32_t gpu_id,
			     uint64_t *ret_size)
{
	char name[IMAGE_NAME_SIZE];
	const struct member *member;

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, gpu_id);
	member = find(archive, name);
	if (!member)
		return -ENOENT;
	*ret_size = member->size;
	return 0;
}

static int take_pages(struct tar_member *entry, void *argument)
{
	const struct pages_reader *reader = argument;
	struct member member;
	size_t length;

	if (!entry->is_file || !identify(entry, &member, &length) ||
	    member.image.kind != IMAGE_PAGES)
		return 0;
	return reader->take(&member.image, entry, reader->argument);
}

int image_archive_read_pages(const struct image_archive *archive, const struct pages_reader *reader)
{
	return tar_walk(archive->name, archive->fd, take_pages, (void *)reader);
}
