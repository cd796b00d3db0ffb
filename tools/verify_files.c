// SPDX-License-Identifier: GPL-2.0-only
/* Compares CRIU's list of files with the images of the plugin. An image of which no other image
 * tells, such as that of a render node, is noticed to be missing in this way only. */
#include "verify_files.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "host.h"
#include "image_archive.h"
#include "images.h"

/* criu/include/magic.h: the file begins with the first word since CRIU 2.0, and then has the
 * second. */
#define IMG_COMMON_MAGIC 0x54564319u
#define FILES_MAGIC      0x56303138u
/* More than any list of files: CRIU itself reads it whole. */
#define FILES_MAX (256u << 20)
/* enum fd_types in CRIU's fdinfo.proto: a file that a plugin has saved. */
#define TYPE_EXTERNAL 16

static bool has_image(const struct tool_images *images, uint32_t id)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		if ((uint32_t)images->kfds[i].id == id)
			return true;
	}
	for (size_t i = 0; i < images->num_renders; i++) {
		if ((uint32_t)images->renders[i].id == id)
			return true;
	}
	for (size_t i = 0; i < images->num_dmabufs; i++) {
		if ((uint32_t)images->dmabufs[i].id == id)
			return true;
	}
	return false;
}

static int damaged(void)
{
	return log_error(-EINVAL, "images: " FILES_NAME " is no list of files");
}

static int check_entry(const struct tool_images *images, const uint8_t *bytes, size_t size)
{
	CriuFileEntry *entry = criu_file_entry__unpack(NULL, size, bytes);
	bool is_missing;
	uint32_t id;

	if (!entry)
		return damaged();
	id = entry->id;
	is_missing = entry->type == TYPE_EXTERNAL && !has_image(images, id);
	criu_file_entry__free_unpacked(entry, NULL);
	return is_missing ? log_error(-ENOENT,
				      "images: file %" PRIu32
				      ", which CRIU saved by a plugin, has no image",
				      id)
			  : 0;
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return le32toh(word);
}

/* Two magic words, and then entries with their size before them (pb_write_one() in CRIU's
 * protobuf.c). */
static int check_entries(const struct tool_images *images, const uint8_t *bytes, size_t size)
{
	const size_t word = sizeof(uint32_t);
	size_t at = 2 * word;
	int ret = 0;

	if (size < at || word_at(bytes) != IMG_COMMON_MAGIC || word_at(bytes + word) != FILES_MAGIC)
		return damaged();
	while (!ret && at < size) {
		uint32_t length = size - at < word ? UINT32_MAX : word_at(bytes + at);

		if (length > size - at - word)
			return damaged();
		ret = check_entry(images, bytes + at + word, length);
		at += word + length;
	}
	return ret;
}

int verify_files(const struct tool_images *images, bool quiet)
{
	_cleanup_close_ int fd = host_open_file(FILES_NAME);
	_cleanup_free_ uint8_t *bytes = NULL;
	struct stat stat;
	int ret;

	if (fd == -ENOENT) {
		if (!quiet)
			log_warn(
				"the images have no " FILES_NAME
				" of CRIU, so a missing image of a render node or of a dma-buf would not be found");
		return 0;
	}
	if (fd < 0 || fstat(fd, &stat) < 0)
		return log_error(fd < 0 ? fd : -errno, "images: cannot open " FILES_NAME);
	if (!S_ISREG(stat.st_mode) || stat.st_size > FILES_MAX)
		return damaged();
	bytes = malloc((size_t)stat.st_size + 1);
	ret = bytes ? pread_full(fd, bytes, (size_t)stat.st_size, 0) : -ENOMEM;
	if (ret < 0)
		return log_error(ret, "images: cannot read " FILES_NAME);
	return check_entries(images, bytes, (size_t)stat.st_size);
}
