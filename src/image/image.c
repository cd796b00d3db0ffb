// SPDX-License-Identifier: GPL-2.0-only
/* Reads and writes images: files in CRIU's image directory, or streams if CRIU streams its own
 * images. image_validate_kfd() and image_validate_render() check what the messages say. */
#include "image/image.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/unpack.h"
#include "kernel/kfd.h"

/* The first buffer for a message. The buffer doubles while more bytes arrive. */
#define MESSAGE_STEP (64u << 10)
/* A million BOs and their private data need a third of it. Without a limit, a sparse file could
 * fill all memory. */
#define MESSAGE_MAX (1ULL << 30)

/* The last field of a message: two bytes of tag, and the checksum of all bytes before the field. */
#define SUM_SIZE       8
#define SUM_FIELD_SIZE (2 + SUM_SIZE)

/* The images that hold a message. */
static const struct message_type {
	const char *name;
	const ProtobufCMessageDescriptor *descriptor;
	/* Offsets of the checksum field and of its presence flag in the unpacked message. */
	size_t has_sum;
	size_t sum;
} message_types[] = {
	[IMAGE_KFD] = { IMAGE_KFD_NAME, &criu_kfd__descriptor, offsetof(CriuKfd, has_xxh3),
			offsetof(CriuKfd, xxh3) },
	[IMAGE_RENDER] = { IMAGE_RENDER_NAME, &criu_render_node__descriptor,
			   offsetof(CriuRenderNode, has_xxh3), offsetof(CriuRenderNode, xxh3) },
	[IMAGE_DMABUF] = { IMAGE_DMABUF_NAME, &criu_dmabuf_node__descriptor,
			   offsetof(CriuDmabufNode, has_xxh3), offsetof(CriuDmabufNode, xxh3) },
};

bool image_is_streamed(void)
{
	return host_is_streaming();
}

/* Returns the descriptor, or -errno. */
static int create(const char *name)
{
	int fd;

	if (image_is_streamed()) {
		fd = host_create_streamed(name);
		return fd < 0 ? log_error(fd, "image %s: the image streamer does not accept it",
					  name)
			      : fd;
	}
	/* An old file may have another link, another owner, or more readers. */
	(void)unlinkat(host_image_dir(), name, 0);
	fd = fd_open_at(host_image_dir(), name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
	return fd < 0 ? log_error(fd, "image %s: cannot create", name) : fd;
}

static void remove_file(const char *name)
{
	if (!image_is_streamed())
		(void)unlinkat(host_image_dir(), name, 0);
}

static int write_header(int fd, uint64_t size)
{
	uint64_t header = htole64(size);

	return write_full(fd, &header, sizeof(header));
}

static int close_written(int *fd)
{
	return close(take_fd(fd)) < 0 ? -errno : 0;
}

static int report_written(const char *name, int ret)
{
	return ret < 0 ? log_error(ret, "image %s: cannot write", name) : 0;
}

/* A failed write leaves no file. */
static int write_framed(const char *name, const void *bytes, size_t size)
{
	_cleanup_close_ int fd = create(name);
	int ret;

	if (fd < 0)
		return fd;
	ret = write_header(fd, size);
	if (!ret)
		ret = write_full(fd, bytes, size);
	/* The job may end after the dump, so errors that only the device reports must show before.
	 */
	if (!ret && !image_is_streamed())
		ret = fd_sync(fd);
	if (!ret)
		ret = close_written(&fd);
	if (ret < 0)
		remove_file(name);
	return report_written(name, ret);
}

/* A packed copy of @message with its checksum, which is the last field. */
static int pack(const struct message_type *type, const ProtobufCMessage *message,
		uint8_t **ret_bytes, size_t *ret_size)
{
	_cleanup_free_ ProtobufCMessage *copy = malloc(type->descriptor->sizeof_message);
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t sum;
	size_t size;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, message, type->descriptor->sizeof_message);
	*(protobuf_c_boolean *)((char *)copy + type->has_sum) = true;
	size = protobuf_c_message_get_packed_size(copy);
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	(void)protobuf_c_message_pack(copy, bytes);
	sum = htole64(XXH3_64bits(bytes, size - SUM_FIELD_SIZE));
	memcpy(bytes + size - SUM_SIZE, &sum, sizeof(sum));
	*ret_bytes = take_ptr(&bytes);
	*ret_size = size;
	return 0;
}

static int write_message(enum image_kind kind, int id, const ProtobufCMessage *message)
{
	const struct message_type *type = &message_types[kind];
	_cleanup_free_ uint8_t *bytes = NULL;
	char name[IMAGE_NAME_SIZE];
	size_t size;
	int ret;

	(void)snprintf(name, sizeof(name), type->name, id);
	ret = pack(type, message, &bytes, &size);
	if (ret < 0)
		return log_error(ret, "image %s: cannot pack", name);
	return write_framed(name, bytes, size);
}

/* Follows links, as CRIU does for its own images: orchestrators fill a directory with links to
 * images on other volumes. O_NONBLOCK: an open() of a pipe with that name must not block.
 * *@ret_size: the bytes after the header. Returns the descriptor, or -errno. */
static int open_file(const char *name, uint64_t *ret_size)
{
	_cleanup_close_ int fd = fd_open_at(host_image_dir(), name, O_RDONLY | O_NONBLOCK);
	struct stat stat;

	if (fd == -ENOENT)
		return fd;
	if (fd < 0 || fstat(fd, &stat) < 0)
		return log_error(fd < 0 ? fd : -errno, "image %s: cannot open", name);
	if (!S_ISREG(stat.st_mode))
		return log_error(-EINVAL, "image %s: not a regular file", name);
	if (stat.st_size < IMAGE_HEADER_SIZE)
		return log_error(-EIO,
				 "image %s: damaged: %" PRIu64 " bytes are less than a header",
				 name, (uint64_t)stat.st_size);
	*ret_size = (uint64_t)stat.st_size - IMAGE_HEADER_SIZE;
	return take_fd(&fd);
}

static int open_stream(const char *name)
{
	int fd = host_open_streamed(name);

	if (fd >= 0 || fd == -ENOENT)
		return fd;
	return log_error(fd, "image %s: the image streamer does not serve it", name);
}

/* Opens an image after its header, which says *@ret_size bytes. check_end() must confirm the length
 * of a stream. */
static int open_framed(const char *name, int *ret_fd, uint64_t *ret_size)
{
	uint64_t header, size = 0;
	_cleanup_close_ int fd = image_is_streamed() ? open_stream(name) : open_file(name, &size);
	int ret;

	if (fd < 0)
		return fd;
	ret = read_full(fd, &header, sizeof(header));
	if (ret < 0)
		return log_error(ret, "image %s: cannot read its header", name);
	header = le64toh(header);
	if (!image_is_streamed() && header != size)
		return log_error(-EIO,
				 "image %s: damaged: the header says %" PRIu64
				 " bytes, but the file has %" PRIu64,
				 name, header, size);
	*ret_fd = take_fd(&fd);
	*ret_size = header;
	return 0;
}

static int check_end(const char *name, int fd)
{
	char more;
	int ret = read_full(fd, &more, sizeof(more));

	if (ret == -EIO)
		return 0;
	return log_error(ret < 0 ? ret : -EIO,
			 "image %s: damaged: it has more bytes than its header says", name);
}

/* The header of a stream may be wrong, so the buffer grows with the bytes that arrive. */
static int read_growing(int fd, uint64_t size, uint8_t **ret_bytes)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t room = 0, done = 0;

	do {
		uint8_t *grown;
		int ret;

		room = room ? 2 * room : MESSAGE_STEP;
		if (room > size)
			room = size;
		grown = realloc(bytes, room ? room : 1);
		if (!grown)
			return -ENOMEM;
		bytes = grown;
		ret = read_full(fd, bytes + done, room - done);
		if (ret < 0)
			return ret;
		done = room;
	} while (done < size);
	*ret_bytes = take_ptr(&bytes);
	return 0;
}

/* All bytes of the image after its length. */
static int read_framed(const char *name, uint8_t **ret_bytes, uint64_t *ret_size)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_close_ int fd = -1;
	uint64_t size;
	int ret;

	ret = open_framed(name, &fd, &size);
	if (ret < 0)
		return ret;
	if (size > MESSAGE_MAX)
		return log_error(-EIO,
				 "image %s: damaged: its header says %" PRIu64
				 " bytes, more than any message",
				 name, size);
	ret = read_growing(fd, size, &bytes);
	if (ret < 0)
		return log_error(ret,
				 "image %s: cannot read the %" PRIu64 " bytes that its header says",
				 name, size);
	ret = check_end(name, fd);
	if (ret < 0)
		return ret;
	*ret_bytes = take_ptr(&bytes);
	*ret_size = size;
	return 0;
}

/* Images of other programs have no checksum, and none of this plugin's fields. */
static int check_missing_sum(const char *name, const ProtobufCMessage *message)
{
	return unpack_has_own_fields(message)
		       ? log_error(-EIO, "image %s: damaged: its checksum is missing", name)
		       : 0;
}

static int check_sum(const char *name, const struct message_type *type,
		     const ProtobufCMessage *message, const uint8_t *bytes, uint64_t size)
{
	const char *fields = (const char *)message;
	uint64_t saved = *(const uint64_t *)(fields + type->sum);
	uint64_t found = XXH3_64bits(bytes, size < SUM_FIELD_SIZE ? 0 : size - SUM_FIELD_SIZE);

	if (!*(const protobuf_c_boolean *)(fields + type->has_sum))
		return check_missing_sum(name, message);
	if (saved == found)
		return 0;
	return log_error(-EIO,
			 "image %s: damaged: its checksum is %016" PRIx64
			 ", and at the dump it was %016" PRIx64,
			 name, found, saved);
}

/* An image without a GPU is for a plain open of /dev/kfd, and must have no state. */
static int check_kfd(const char *name, const CriuKfd *kfd)
{
	if (kfd->num_of_gpus || !(kfd->n_device_entries || kfd->n_bo_entries || kfd->num_of_bos ||
				  kfd->num_of_objects || kfd->priv_data.len))
		return 0;
	return log_error(-EINVAL, "image %s: damaged: it has state, but no GPU", name);
}

static int read_message(enum image_kind kind, int id, ProtobufCMessage **ret_message)
{
	const struct message_type *type = &message_types[kind];
	_cleanup_free_ uint8_t *bytes = NULL;
	char name[IMAGE_NAME_SIZE];
	ProtobufCMessage *message = NULL;
	uint64_t size = 0;
	int ret;

	(void)snprintf(name, sizeof(name), type->name, id);
	ret = read_framed(name, &bytes, &size);
	if (ret < 0)
		return ret;
	ret = unpack_message(name, type->descriptor, bytes, size, &message);
	if (ret < 0)
		return ret;
	ret = check_sum(name, type, message, bytes, size);
	if (!ret && kind == IMAGE_KFD)
		ret = check_kfd(name, (const CriuKfd *)message);
	if (ret < 0)
		protobuf_c_message_free_unpacked(message, NULL);
	else
		*ret_message = message;
	return ret;
}

int image_write_kfd(int id, const CriuKfd *kfd)
{
	return write_message(IMAGE_KFD, id, &kfd->base);
}

int image_write_render(int id, const CriuRenderNode *node)
{
	return write_message(IMAGE_RENDER, id, &node->base);
}

int image_write_dmabuf(int id, const CriuDmabufNode *dmabuf)
{
	return write_message(IMAGE_DMABUF, id, &dmabuf->base);
}

int image_read_kfd(int id, CriuKfd **ret_kfd)
{
	return read_message(IMAGE_KFD, id, (ProtobufCMessage **)ret_kfd);
}

int image_read_render(int id, CriuRenderNode **ret_node)
{
	return read_message(IMAGE_RENDER, id, (ProtobufCMessage **)ret_node);
}

/* A streamer cannot be asked for its images and serves each once, so this tries one after the
 * other. */
int image_read(int id, struct state_image *ret_image)
{
	struct state_image image = { 0 };
	int ret = -ENOENT;

	for (enum image_kind kind = IMAGE_KFD; ret == -ENOENT && kind <= IMAGE_DMABUF; kind++) {
		ret = read_message(kind, id, &image.message);
		if (!ret)
			image.kind = kind;
	}
	if (ret < 0 && ret != -ENOENT)
		return ret;
	*ret_image = image;
	return 0;
}

void image_done(struct state_image *image)
{
	protobuf_c_message_free_unpacked(image->message, NULL);
	*image = (struct state_image){ 0 };
}

void image_remove_kfd(int id)
{
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), IMAGE_KFD_NAME, id);
	remove_file(name);
}

int image_create_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char name[IMAGE_NAME_SIZE];
	int ret = 0;

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, gpu_id);
	fd = create(name);
	if (fd >= 0 && !size)
		ret = write_header(fd, size);
	if (fd < 0 || ret < 0)
		return fd < 0 ? fd : report_written(name, ret);
	*ret_fd = take_fd(&fd);
	return 0;
}

int image_find_room(struct image_room *ret_room)
{
	struct rlimit limit;
	struct statvfs stat;

	*ret_room = (struct image_room){ UINT64_MAX, UINT64_MAX };
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		ret_room->file_bytes = limit.rlim_cur;
	if (fstatvfs(host_image_dir(), &stat) < 0)
		return -errno;
	/* Some file systems report 0 blocks. Only root may use the blocks that are reserved. */
	if (stat.f_blocks)
		ret_room->bytes =
			(uint64_t)(geteuid() ? stat.f_bavail : stat.f_bfree) * stat.f_frsize;
	return 0;
}

int image_check_room(uint64_t size, uint64_t largest)
{
	struct image_room room;

	/* The plugin does not know where a stream goes. */
	if (image_is_streamed())
		return 0;
	(void)image_find_room(&room);
	if (room.bytes < size)
		return log_error(-ENOSPC,
				 "images: the contents of the BOs need %" PRIu64
				 " MiB, but only %" PRIu64 " MiB are free",
				 size >> 20, room.bytes >> 20);
	if (room.file_bytes < largest || room.file_bytes - largest < IMAGE_HEADER_SIZE)
		return log_error(-EFBIG,
				 "images: the contents of a GPU need a file of %" PRIu64
				 " MiB, but CRIU may only write files of %" PRIu64
				 " MiB; raise its limit (ulimit -f, LimitFSIZE)",
				 largest >> 20, room.file_bytes >> 20);
	return 0;
}

int image_write_sums(int id, uint32_t gpu_id, const void *bytes, size_t size)
{
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), IMAGE_SUMS_NAME, id, gpu_id);
	return write_framed(name, bytes, size);
}

int image_open_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char name[IMAGE_NAME_SIZE];
	uint64_t found;
	int ret;

	if (!size) {
		*ret_fd = -1;
		return 0;
	}
	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, gpu_id);
	ret = open_framed(name, &fd, &found);
	if (ret == -ENOENT)
		return log_error(ret, "image %s: cannot open", name);
	if (ret < 0)
		return ret;
	if (found != size)
		return log_error(-EINVAL,
				 "image %s: damaged: it has %" PRIu64
				 " bytes of contents, but the BOs have %" PRIu64,
				 name, found, size);
	*ret_fd = take_fd(&fd);
	return 0;
}

int image_close_pages(int id, uint32_t gpu_id, int *fd)
{
	char name[IMAGE_NAME_SIZE];

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, gpu_id);
	return report_written(name, close_written(fd));
}

int image_end_pages(int id, uint32_t gpu_id, int *fd)
{
	char name[IMAGE_NAME_SIZE];
	int ret = 0;

	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, id, gpu_id);
	if (*fd >= 0 && image_is_streamed())
		ret = check_end(name, *fd);
	fd_close(fd);
	return ret;
}

uint64_t image_contents_size(const CriuKfd *kfd, uint32_t gpu_id)
{
	uint64_t size = 0;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (bo->gpu_id == gpu_id && bo->alloc_flags & KFD_BO_WITH_CONTENTS &&
		    !bo->has_owner_pid)
			size += bo->size;
	}
	return size;
}

const KfdDeviceEntry *image_find_device(const CriuKfd *kfd, uint32_t gpu_id)
{
	for (size_t i = 0; gpu_id && i < kfd->n_device_entries; i++) {
		if (kfd->device_entries[i]->gpu_id == gpu_id)
			return kfd->device_entries[i];
	}
	return NULL;
}
