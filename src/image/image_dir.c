// SPDX-License-Identifier: GPL-2.0-only
/* Lists the image directory, and reads or removes images of the plugin by name. image_read_kfd()
 * and image_read_render() read a single image. */
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

bool image_dir_parse_name(const char *name, struct image_name *ret_name)
{
	static const char *const patterns[] = {
		[IMAGE_KFD] = IMAGE_KFD_NAME,       [IMAGE_RENDER] = IMAGE_RENDER_NAME,
		[IMAGE_DMABUF] = IMAGE_DMABUF_NAME, [IMAGE_PAGES] = IMAGE_PAGES_NAME,
		[IMAGE_SUMS] = IMAGE_SUMS_NAME,
	};

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

/* Calls @match for each image of @kind, until @match returns something other than -ENOENT. Returns
 * that, or -ENOENT. */
static int scan(enum image_kind kind, int (*match)(int id, const char *name, void *argument),
		void *argument)
{
	int fd, error = 0, ret = -ENOENT;
	struct dirent *entry;
	DIR *stream;

	/* Reading a directory moves its position, and CRIU needs the position of its own
	 * descriptor. */
	fd = fd_open_at(host_image_dir(), ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return log_error(fd, "images: cannot list the directory");
	stream = fdopendir(fd);
	if (!stream) {
		(void)close(fd);
		return log_error(-ENOMEM, "images: cannot list the directory");
	}
	while (ret == -ENOENT && (entry = next_entry(stream, &error))) {
		struct image_name image;

		if (image_dir_parse_name(entry->d_name, &image) && image.kind == kind)
			ret = match(image.id, entry->d_name, argument);
	}
	(void)closedir(stream);
	return error < 0 ? log_error(error, "images: cannot list the directory") : ret;
}

struct kfd_search {
	pid_t pid;
	int id;
	CriuKfd *kfd;
};

/* Continues after a match: a second match means that the images are from two dumps. */
static int match_kfd(int id, const char *name, void *argument)
{
	struct kfd_search *search = argument;
	CriuKfd *kfd;
	int ret;

	(void)name;
	ret = image_read_kfd(id, &kfd);
	if (ret < 0)
		return ret;
	if (!kfd->num_of_gpus || (pid_t)kfd->pid != search->pid) {
		criu_kfd__free_unpacked(kfd, NULL);
		return -ENOENT;
	}
	if (search->kfd) {
		criu_kfd__free_unpacked(kfd, NULL);
		return log_error(
			-EINVAL,
			"images: kfd %d and kfd %d both have the state of process %d; use the images of one dump",
			search->id, id, search->pid);
	}
	search->id = id;
	search->kfd = kfd;
	return -ENOENT;
}

int image_dir_find_kfd(pid_t pid, int *ret_id, CriuKfd **ret_kfd)
{
	struct kfd_search search = { .pid = pid };
	int ret = scan(IMAGE_KFD, match_kfd, &search);

	if (ret == -ENOENT && search.kfd) {
		*ret_id = search.id;
		*ret_kfd = search.kfd;
		return 0;
	}
	if (search.kfd)
		criu_kfd__free_unpacked(search.kfd, NULL);
	return ret;
}

struct id_list {
	int *ids;
	size_t count;
};

static int add_id(int id, const char *name, void *argument)
{
	struct id_list *list = argument;

	(void)name;
	if (array_append(&list->ids, &list->count, sizeof(id), &id) < 0)
		return log_error(-ENOMEM, "images: cannot list them");
	return -ENOENT;
}

int image_dir_list(enum image_kind kind, int **ret_ids, size_t *ret_count)
{
	_cleanup_free_ int *ids = NULL;
	struct id_list list = { 0 };
	int ret = scan(kind, add_id, &list);

	ids = list.ids;
	if (ret != -ENOENT)
		return ret;
	if (list.count)
		qsort(ids, list.count, sizeof(*ids), compare_u32);
	*ret_ids = take_ptr(&ids);
	*ret_count = list.count;
	return 0;
}

static int match_any(int id, const char *name, void *argument)
{
	(void)id;
	(void)name;
	(void)argument;
	return 0;
}

bool image_dir_has_any(void)
{
	return !image_is_streamed() &&
	       (scan(IMAGE_KFD, match_any, NULL) == 0 || scan(IMAGE_RENDER, match_any, NULL) == 0);
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

static int remove_match(int id, const char *name, void *argument)
{
	int *ret = argument;

	(void)id;
	if (unlinkat(host_image_dir(), name, 0) < 0 && errno != ENOENT)
		*ret = log_error(-errno,
				 "image %s: cannot remove the image of an older dump; remove it",
				 name);
	return -ENOENT;
}

/* Removes as many as possible. */
static int remove_all(enum image_kind kind)
{
	int stays = 0, ret;

	/* A stream has no older images, and files in the directory belong to another dump. */
	if (image_is_streamed())
		return 0;
	ret = scan(kind, remove_match, &stays);
	return ret == -ENOENT ? stays : ret;
}

int image_dir_remove_state(void)
{
	int kfd = remove_all(IMAGE_KFD), render = remove_all(IMAGE_RENDER);
	int dmabuf = remove_all(IMAGE_DMABUF);

	if (kfd < 0)
		return kfd;
	return render < 0 ? render : dmabuf;
}

int image_dir_remove_old(void)
{
	int state = image_dir_remove_state(), pages = remove_all(IMAGE_PAGES);
	int sums = remove_all(IMAGE_SUMS);

	if (state < 0)
		return state;
	return pages < 0 ? pages : sums;
}

struct render_search {
	pid_t pid;
	uint32_t minor;
	/* Some image of that minor names no process. */
	bool unclaimed;
};

static int match_render(int id, const char *name, void *argument)
{
	struct render_search *search = argument;
	CriuRenderNode *node;
	bool found;
	int ret;

	(void)name;
	ret = image_read_render(id, &node);
	if (ret < 0)
		return ret;
	search->unclaimed |= !node->has_compute_pid && (!node->has_drm_render_minor ||
							node->drm_render_minor == search->minor);
	found = node->has_compute_pid && (pid_t)node->compute_pid == search->pid &&
		node->drm_render_minor == search->minor;
	criu_render_node__free_unpacked(node, NULL);
	return found ? 0 : -ENOENT;
}

int image_dir_find_compute_render(pid_t pid, uint32_t minor)
{
	struct render_search search = { .pid = pid, .minor = minor };

	return scan(IMAGE_RENDER, match_render, &search);
}

int image_dir_expect_render(pid_t pid, uint32_t minor)
{
	struct render_search search = { .pid = pid, .minor = minor };
	int ret = scan(IMAGE_RENDER, match_render, &search);

	return ret == -ENOENT && search.unclaimed ? 0 : ret;
}
