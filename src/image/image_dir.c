// SPDX-License-Identifier: GPL-2.0-only
/* Lists the image directory, and removes images of the plugin by name. image.c reads them. */
#include "image/image_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"

/* CRIU's link to the previous images (--prev-images-dir). CRIU makes it before it loads plugins. */
#define PARENT_NAME "parent"
/* CRIU's image of a process, by its vpid. */
#define CORE_NAME "core-%d.img"

static const char *const patterns[] = {
	[IMAGE_KFD] = IMAGE_KFD_NAME,       [IMAGE_RENDER] = IMAGE_RENDER_NAME,
	[IMAGE_DMABUF] = IMAGE_DMABUF_NAME, [IMAGE_PAGES] = IMAGE_PAGES_NAME,
	[IMAGE_SUMS] = IMAGE_SUMS_NAME,
};

bool image_dir_parse_name(const char *name, struct image_name *ret_name)
{
	for (size_t kind = IMAGE_KFD; kind < ARRAY_SIZE(patterns); kind++) {
		struct image_name image = { .kind = (enum image_kind)kind };
		char again[IMAGE_NAME_SIZE];

		/* Only names of pages files and of their sums have a GPU. */
		if (sscanf(name, patterns[kind], &image.id, &image.gpu_id) < 1)
			continue;
		(void)snprintf(again, sizeof(again), patterns[kind], image.id, image.gpu_id);
		if (strcmp(again, name) != 0)
			continue;
		*ret_name = image;
		return true;
	}
	return false;
}

/* The images of all kinds, in memory that the caller frees. After an error, those before it. */
static int list_names(struct image_name **ret_names, size_t *ret_count)
{
	/* Reading a directory moves its position, and CRIU needs the position of its own
	 * descriptor. */
	int error, ret = 0;
	_cleanup_closedir_ DIR *stream = dir_open_at(host_image_dir(), ".", &error);
	struct dirent *entry;

	while (stream && !ret && (entry = next_entry(stream, &error))) {
		struct image_name image;

		if (image_dir_parse_name(entry->d_name, &image))
			ret = array_append(ret_names, ret_count, sizeof(image), &image);
	}
	ret = ret < 0 ? ret : error;
	return ret < 0 ? log_error(ret, "images: cannot list the directory") : 0;
}

int image_dir_list(enum image_kind kind, int **ret_ids, size_t *ret_count)
{
	_cleanup_free_ struct image_name *names = NULL;
	_cleanup_free_ int *ids = NULL;
	size_t num_names = 0, count = 0;
	int ret = list_names(&names, &num_names);

	if (ret < 0)
		return ret;
	ids = calloc(num_names + 1, sizeof(*ids));
	if (!ids)
		return log_error(-ENOMEM, "images: cannot list them");
	for (size_t i = 0; i < num_names; i++) {
		if (names[i].kind == kind)
			ids[count++] = names[i].id;
	}
	qsort(ids, count, sizeof(*ids), compare_u32);
	*ret_ids = take_ptr(&ids);
	*ret_count = count;
	return 0;
}

bool image_dir_has_any(void)
{
	_cleanup_free_ struct image_name *names = NULL;
	size_t count = 0;
	bool found = false;

	if (!image_is_streamed())
		(void)list_names(&names, &count);
	for (size_t i = 0; i < count; i++)
		found |= names[i].kind == IMAGE_KFD || names[i].kind == IMAGE_RENDER;
	return found;
}

void image_dir_report_missing(int id, bool expected)
{
	/* A stream cannot be searched for other images. */
	if (image_is_streamed())
		expected |= !host_has_inventory();
	else if (!expected)
		expected = image_dir_has_any();
	if (expected)
		log_warn("file %d: none of the images " IMAGE_KFD_NAME ", " IMAGE_RENDER_NAME
			 " and " IMAGE_DMABUF_NAME " exists",
			 id, id, id, id);
}

bool image_dir_is_in_memory(void)
{
	struct statfs stat;

	return !fstatfs(host_image_dir(), &stat) &&
	       (stat.f_type == TMPFS_MAGIC || stat.f_type == RAMFS_MAGIC);
}

int image_dir_find_parent(void)
{
	struct stat stat;

	/* A stream has no previous images; a link in the directory belongs to another dump. */
	if (image_is_streamed())
		return -ENOENT;
	if (!fstatat(host_image_dir(), PARENT_NAME, &stat, AT_SYMLINK_NOFOLLOW))
		return 0;
	return errno == ENOENT
		       ? -ENOENT
		       : log_error(-errno, "images: cannot look for the link \"" PARENT_NAME "\"");
}

int image_dir_task_time(pid_t vpid, struct timespec *ret_time)
{
	char name[IMAGE_NAME_SIZE];
	struct stat stat;

	(void)snprintf(name, sizeof(name), CORE_NAME, vpid);
	if (fstatat(host_image_dir(), name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret_time = stat.st_ctim;
	return 0;
}

static int remove_image(const struct image_name *image)
{
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), patterns[image->kind], image->id, image->gpu_id);
	return unlinkat(host_image_dir(), name, 0) < 0 && errno != ENOENT
		       ? log_error(-errno,
				   "image %s: cannot remove the image of an older dump; remove it",
				   name)
		       : 0;
}

/* Removes as many as possible. */
static int remove_up_to(enum image_kind last)
{
	_cleanup_free_ struct image_name *names = NULL;
	size_t count = 0;
	int ret;

	/* A stream has no older images, and files in the directory belong to another dump. */
	if (image_is_streamed())
		return 0;
	ret = list_names(&names, &count);
	for (size_t i = 0; i < count; i++) {
		int removed = names[i].kind <= last ? remove_image(&names[i]) : 0;

		ret = ret < 0 ? ret : removed;
	}
	return ret;
}

int image_dir_remove_state(void)
{
	return remove_up_to(IMAGE_DMABUF);
}

int image_dir_remove_old(void)
{
	return remove_up_to(IMAGE_SUMS);
}
