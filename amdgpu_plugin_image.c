// SPDX-License-Identifier: GPL-2.0-only
/* Images: files in CRIU's image directory, or streams where CRIU streams its own. What is in the
 * messages is the business of others. */
#include "amdgpu_plugin_image.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_util.h"

#define NAME_SIZE   64
#define KFD_NAME    "amdgpu-kfd-%d.img"
#define RENDER_NAME "amdgpu-renderD-%d.img"
#define PAGES_NAME  "amdgpu-pages-%d-%04x.img"
/* CRIU's link to the images of the dump before (--prev-images-dir), made before it loads us. */
#define PARENT_NAME "parent"

/* Memory that the first bytes of a message are read to; more is taken as more comes. */
#define MESSAGE_ROOM (64u << 10)
/* A million BOs and their private data have a third of it; without an end, a file that is one hole
 * would fill all memory. */
#define MESSAGE_MAX (1ULL << 30)

/* Memory that a message may take: so many times its size, and something. A BO of ours takes 49
 * bytes of a message and 184 of memory: 112 for its entry, 8 to point there, 64 while the message
 * is searched; and its private data 272 of both (struct kfd_criu_bo_priv_data in kfd_priv.h). So a
 * message takes 1.4 times its size; 100,000 BOs without private data fit in the something. */
#define MEMORY_TIMES 4
#define MEMORY_PLUS  (24ULL << 20)
/* What malloc() adds to a piece of memory, at most, as long as it is no multiple of pages. */
#define MALLOC_COST 32

bool image_is_streamed(void)
{
	return host_is_streaming();
}

/* Always a new file: an old one may have another name, another owner, or more readers. */
static int create_file(const char *name, int *ret_fd)
{
	int fd;

	(void)unlinkat(host_image_dir(), name, 0);
	fd = openat(host_image_dir(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return log_error(-errno, "image %s: cannot create", name);
	*ret_fd = fd;
	return 0;
}

static int create_stream(const char *name, int *ret_fd)
{
	int fd = host_create_streamed(name);

	if (fd < 0)
		return log_error(fd, "image %s: the streamer does not take it", name);
	*ret_fd = fd;
	return 0;
}

static int create(const char *name, int *ret_fd)
{
	return host_is_streaming() ? create_stream(name, ret_fd) : create_file(name, ret_fd);
}

static int close_written(const char *name, int *fd)
{
	if (close(take_fd(fd)) < 0)
		return log_error(-errno, "image %s: cannot write", name);
	return 0;
}

static int write_part(const char *name, int fd, const void *bytes, size_t size)
{
	int ret = write_full(fd, bytes, size);

	return ret < 0 ? log_error(ret, "image %s: cannot write", name) : 0;
}

static int write_header(const char *name, int fd, uint64_t size)
{
	uint64_t header = htole64(size);

	return write_part(name, fd, &header, sizeof(header));
}

static int write_framed(const char *name, const void *bytes, size_t size)
{
	_cleanup_close_ int fd = -1;
	int ret;

	ret = create(name, &fd);
	if (ret < 0)
		return ret;
	ret = write_header(name, fd, size);
	if (!ret)
		ret = write_part(name, fd, bytes, size);
	return ret < 0 ? ret : close_written(name, &fd);
}

static void remove_file(const char *name)
{
	if (!host_is_streaming())
		(void)unlinkat(host_image_dir(), name, 0);
}

static int write_message(const char *name, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	_cleanup_free_ uint8_t *bytes = malloc(size ? size : 1);
	int ret;

	if (!bytes)
		return log_error(-ENOMEM, "image %s: cannot pack", name);
	(void)protobuf_c_message_pack(message, bytes);
	ret = write_framed(name, bytes, size);
	if (ret < 0)
		remove_file(name);
	return ret;
}

/* O_NONBLOCK: a pipe of that name must not be waited for. */
static int open_file(const char *name, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;

	fd = openat(host_image_dir(), name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return log_error(-errno, "image %s: cannot open", name);
	if (!S_ISREG(ret_stat->st_mode))
		return log_error(-EINVAL, "image %s: is no regular file", name);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int read_header(const char *name, int fd, uint64_t *ret_size)
{
	uint64_t header;
	int ret = read_full(fd, &header, sizeof(header));

	if (ret < 0)
		return log_error(ret, "image %s: cannot read its header", name);
	*ret_size = le64toh(header);
	return 0;
}

/* Checks also that the real length is what the header says. */
static int open_framed_file(const char *name, int *ret_fd, uint64_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	struct stat stat = { 0 };
	uint64_t size = 0;
	int ret;

	ret = open_file(name, &fd, &stat);
	if (ret < 0)
		return ret;
	if (stat.st_size < IMAGE_HEADER_SIZE)
		return log_error(-EIO,
				 "image %s: damaged, it has %" PRIu64 " bytes, less than a header",
				 name, (uint64_t)stat.st_size);
	ret = read_header(name, fd, &size);
	if (ret < 0)
		return ret;
	if (size != (uint64_t)stat.st_size - IMAGE_HEADER_SIZE)
		return log_error(-EIO,
				 "image %s: damaged, its header says %" PRIu64 " bytes and %" PRIu64
				 " are there",
				 name, size, (uint64_t)stat.st_size - IMAGE_HEADER_SIZE);
	*ret_fd = take_fd(&fd);
	*ret_size = size;
	return 0;
}

static int open_framed_stream(const char *name, int *ret_fd, uint64_t *ret_size)
{
	_cleanup_close_ int fd = -1;
	int ret;

	fd = host_open_streamed(name);
	if (fd == -ENOENT)
		return fd;
	if (fd < 0)
		return log_error(fd, "image %s: the streamer does not give it", name);
	ret = read_header(name, fd, ret_size);
	if (ret < 0)
		return ret;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Opens an image at its contents, of which there are *@ret_size bytes; of a stream only the end can
 * tell whether that is true. */
static int open_framed(const char *name, int *ret_fd, uint64_t *ret_size)
{
	return host_is_streaming() ? open_framed_stream(name, ret_fd, ret_size)
				   : open_framed_file(name, ret_fd, ret_size);
}

static int check_end(const char *name, int fd)
{
	char more;
	int ret = read_full(fd, &more, sizeof(more));

	if (ret == -EIO)
		return 0;
	return log_error(ret < 0 ? ret : -EIO,
			 "image %s: damaged, it has more bytes than its header says", name);
}

/* The header of a stream may say anything, so memory grows with what is really there. */
static int read_growing(int fd, uint64_t size, uint8_t **ret_bytes)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t room = 0, done = 0;

	do {
		uint8_t *grown;
		int ret;

		room = room ? 2 * room : MESSAGE_ROOM;
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

struct budget {
	uint64_t left;
	bool exceeded;
	bool failed;
};

static void *take_from_budget(void *budget_, size_t size)
{
	struct budget *budget = budget_;
	void *memory;

	budget->exceeded |= size > budget->left || budget->left - size < MALLOC_COST;
	if (budget->exceeded)
		return NULL;
	budget->left -= size + MALLOC_COST;
	memory = malloc(size);
	budget->failed |= !memory;
	return memory;
}

/* What is given back does not count: in a message of use it is little. */
static void give_back(void *budget, void *memory)
{
	(void)budget;
	free(memory);
}

/* A field that nobody knows takes two bytes of a message, and many times as much of memory. */
static int unpack(const char *name, const ProtobufCMessageDescriptor *descriptor,
		  const uint8_t *bytes, uint64_t size, ProtobufCMessage **ret_message)
{
	const uint64_t room = MEMORY_TIMES * size + MEMORY_PLUS;
	struct budget budget = { .left = room };
	ProtobufCAllocator allocator = { take_from_budget, give_back, &budget };
	ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, size, bytes);

	if (message) {
		*ret_message = message;
		return 0;
	}
	if (budget.exceeded)
		return log_error(-EINVAL,
				 "image %s: damaged, it takes more than %" PRIu64 " MiB of memory",
				 name, room >> 20);
	if (budget.failed)
		return log_error(-ENOMEM, "image %s: cannot unpack", name);
	return log_error(-EINVAL, "image %s: damaged, it does not parse as %s", name,
			 descriptor->name);
}

static int read_message(const char *name, const ProtobufCMessageDescriptor *descriptor,
			ProtobufCMessage **ret_message)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	_cleanup_close_ int fd = -1;
	uint64_t size;
	int ret;

	ret = open_framed(name, &fd, &size);
	if (ret < 0)
		return ret;
	if (size > MESSAGE_MAX)
		return log_error(
			-EIO, "image %s: damaged, it says %" PRIu64 " bytes, more than any message",
			name, size);
	ret = read_growing(fd, size, &bytes);
	if (ret < 0)
		return log_error(ret,
				 "image %s: cannot read the %" PRIu64 " bytes that its header says",
				 name, size);
	ret = check_end(name, fd);
	return ret < 0 ? ret : unpack(name, descriptor, bytes, size, ret_message);
}

int image_write_kfd(int id, const CriuKfd *kfd)
{
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof(name), KFD_NAME, id);
	return write_message(name, &kfd->base);
}

int image_read_kfd(int id, CriuKfd **ret_kfd)
{
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof(name), KFD_NAME, id);
	return read_message(name, &criu_kfd__descriptor, (ProtobufCMessage **)ret_kfd);
}

void image_remove_kfd(int id)
{
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof(name), KFD_NAME, id);
	remove_file(name);
}

/* Whether it is the name of an image of that kind. @ret_id: of which file. */
static bool is_name(const char *pattern, const char *name, int *ret_id)
{
	unsigned int gpu_id = 0;
	char again[NAME_SIZE];

	/* Only the names of contents have a GPU. */
	if (sscanf(name, pattern, ret_id, &gpu_id) < 1)
		return false;
	(void)snprintf(again, sizeof(again), pattern, *ret_id, gpu_id);
	return !strcmp(again, name);
}

/* Asks @match about each file that is called @pattern with an id, until it answers something other
 * than -ENOENT. */
static int scan(const char *pattern, int (*match)(int id, const char *name, void *argument),
		void *argument)
{
	int fd, error = 0, ret = -ENOENT;
	struct dirent *entry;
	DIR *stream;

	/* A descriptor of its own: reading a directory moves the position, and this one is
	 * CRIU's. */
	fd = openat(host_image_dir(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return log_error(-errno, "images: cannot list the directory");
	stream = fdopendir(fd);
	if (!stream) {
		(void)close(fd);
		return log_error(-ENOMEM, "images: cannot list the directory");
	}
	while (ret == -ENOENT && (entry = next_entry(stream, &error))) {
		int id;

		if (is_name(pattern, entry->d_name, &id))
			ret = match(id, entry->d_name, argument);
	}
	(void)closedir(stream);
	return error < 0 ? log_error(error, "images: cannot list the directory") : ret;
}

struct kfd_search {
	pid_t pid;
	int id;
	CriuKfd *kfd;
};

/* Goes on after a match, since a second one would mean that the images are of two dumps. */
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
		return log_error(-EINVAL,
				 "images: kfd %d and kfd %d both have the state of process %d",
				 search->id, id, search->pid);
	}
	search->id = id;
	search->kfd = kfd;
	return -ENOENT;
}

int image_find_kfd(pid_t pid, int *ret_id, CriuKfd **ret_kfd)
{
	struct kfd_search search = { .pid = pid };
	int ret = scan(KFD_NAME, match_kfd, &search);

	if (ret == -ENOENT && search.kfd) {
		*ret_id = search.id;
		*ret_kfd = search.kfd;
		return 0;
	}
	if (search.kfd)
		criu_kfd__free_unpacked(search.kfd, NULL);
	return ret;
}

static int match_any(int id, const char *name, void *argument)
{
	(void)id;
	(void)name;
	(void)argument;
	return 0;
}

bool image_any_is_there(void)
{
	return !host_is_streaming() &&
	       (scan(KFD_NAME, match_any, NULL) == 0 || scan(RENDER_NAME, match_any, NULL) == 0);
}

void image_report_missing(int id, bool expected)
{
	/* Other images cannot be looked for in a stream. */
	if (host_is_streaming())
		expected |= !host_has_inventory();
	else if (!expected)
		expected = image_any_is_there();
	if (expected)
		log_warn("file %d: there is neither image " KFD_NAME " nor image " RENDER_NAME, id,
			 id, id);
}

int image_find_parent(void)
{
	struct stat stat;

	/* A stream has no parent, whatever lies in the directory. */
	if (host_is_streaming())
		return -ENOENT;
	if (!fstatat(host_image_dir(), PARENT_NAME, &stat, AT_SYMLINK_NOFOLLOW))
		return 0;
	return errno == ENOENT ? -ENOENT
			       : log_error(-errno, "images: cannot look for a link to older ones");
}

static int match_removed(int id, const char *name, void *argument)
{
	(void)id;
	(void)argument;
	(void)unlinkat(host_image_dir(), name, 0);
	return -ENOENT;
}

static int remove_all(const char *pattern)
{
	int ret;

	/* A stream has nothing old, and what lies in the directory is another dump's. */
	if (host_is_streaming())
		return 0;
	ret = scan(pattern, match_removed, NULL);
	return ret == -ENOENT ? 0 : ret;
}

int image_remove_main(void)
{
	int ret = remove_all(KFD_NAME);

	return ret < 0 ? ret : remove_all(RENDER_NAME);
}

int image_remove_old(void)
{
	int ret = image_remove_main();

	return ret < 0 ? ret : remove_all(PAGES_NAME);
}

struct render_search {
	pid_t pid;
	uint32_t minor;
	/* Some image of that minor says of no process that it computes there. */
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

int image_find_compute_render(pid_t pid, uint32_t minor)
{
	struct render_search search = { .pid = pid, .minor = minor };

	return scan(RENDER_NAME, match_render, &search);
}

int image_expect_render(pid_t pid, uint32_t minor)
{
	struct render_search search = { .pid = pid, .minor = minor };
	int ret = scan(RENDER_NAME, match_render, &search);

	return ret == -ENOENT && search.unclaimed ? 0 : ret;
}

int image_write_render(int id, const CriuRenderNode *node)
{
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof(name), RENDER_NAME, id);
	return write_message(name, &node->base);
}

int image_read_render(int id, CriuRenderNode **ret_node)
{
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof(name), RENDER_NAME, id);
	return read_message(name, &criu_render_node__descriptor, (ProtobufCMessage **)ret_node);
}

int image_create_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char name[NAME_SIZE];
	int ret;

	(void)snprintf(name, sizeof(name), PAGES_NAME, id, gpu_id);
	ret = create(name, &fd);
	if (!ret && !size)
		ret = write_header(name, fd, size);
	if (ret < 0)
		return ret;
	*ret_fd = take_fd(&fd);
	return 0;
}

int image_check_room(uint64_t size)
{
	struct statvfs stat;
	uint64_t room;

	/* Some file systems do not tell; where a stream ends nobody knows. */
	if (host_is_streaming() || fstatvfs(host_image_dir(), &stat) < 0 || !stat.f_blocks)
		return 0;
	room = (uint64_t)stat.f_bavail * stat.f_frsize;
	if (room >= size)
		return 0;
	return log_error(-ENOSPC,
			 "images: the contents of the BOs take %" PRIu64 " MiB, and %" PRIu64
			 " MiB are free",
			 size >> 20, room >> 20);
}

int image_open_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char name[NAME_SIZE];
	uint64_t found;
	int ret;

	if (!size) {
		*ret_fd = -1;
		return 0;
	}
	(void)snprintf(name, sizeof(name), PAGES_NAME, id, gpu_id);
	ret = open_framed(name, &fd, &found);
	if (ret == -ENOENT)
		return log_error(ret, "image %s: cannot open", name);
	if (ret < 0)
		return ret;
	if (found != size)
		return log_error(-EINVAL,
				 "image %s: damaged, it has %" PRIu64
				 " bytes of contents and the BOs have %" PRIu64,
				 name, found, size);
	*ret_fd = take_fd(&fd);
	return 0;
}

int image_close_pages(int id, uint32_t gpu_id, int *fd)
{
	char name[NAME_SIZE];

	(void)snprintf(name, sizeof(name), PAGES_NAME, id, gpu_id);
	return close_written(name, fd);
}

int image_end_pages(int id, uint32_t gpu_id, int *fd)
{
	char name[NAME_SIZE];
	int ret = 0;

	(void)snprintf(name, sizeof(name), PAGES_NAME, id, gpu_id);
	if (*fd >= 0 && host_is_streaming())
		ret = check_end(name, *fd);
	cleanup_close(fd);
	*fd = -1;
	return ret;
}
