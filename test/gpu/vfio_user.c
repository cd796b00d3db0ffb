// SPDX-License-Identifier: GPL-2.0-only
#include "vfio_user.h"

#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum command {
	COMMAND_VERSION = 1,
	COMMAND_DMA_MAP,
	COMMAND_DMA_UNMAP,
	COMMAND_DEVICE_GET_INFO,
	COMMAND_DEVICE_GET_REGION_INFO,
	COMMAND_DEVICE_GET_REGION_IO_FDS,
	COMMAND_DEVICE_GET_IRQ_INFO,
	COMMAND_DEVICE_SET_IRQS,
	COMMAND_REGION_READ,
	COMMAND_REGION_WRITE,
	COMMAND_DMA_READ,
	COMMAND_DMA_WRITE,
	COMMAND_DEVICE_RESET,
};

enum { FLAG_TYPE = 0xf, FLAG_REPLY = 1, FLAG_NO_REPLY = 0x10, FLAG_ERROR = 0x20 };

struct header {
	uint16_t id, command;
	uint32_t size_bytes, flags, error;
};

struct version {
	uint16_t major, minor;
};

struct dma_map {
	uint32_t argsz, flags;
	uint64_t offset, address, size_bytes;
};

struct dma_unmap {
	uint32_t argsz, flags;
	uint64_t address, size_bytes;
};

struct region_access {
	uint64_t offset;
	uint32_t region, count;
};

int vfio_user_listen(struct vfio_user *server, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);

	if (length < 0 || (size_t)length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	(void)unlink(path);
	server->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server->listen_fd < 0)
		return -errno;
	if (bind(server->listen_fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(server->listen_fd, 1))
		return -errno;
	return 0;
}

int vfio_user_accept(struct vfio_user *server)
{
	server->fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	return server->fd < 0 ? -errno : 0;
}

static void close_fds(struct vfio_user *server)
{
	unsigned int i;

	for (i = 0; i < server->num_fds; i++)
		if (server->fds[i] >= 0)
			(void)close(server->fds[i]);
	server->num_fds = 0;
}

static int take_fd(struct vfio_user *server)
{
	int fd = server->num_fds ? server->fds[0] : -1;

	if (server->num_fds)
		server->fds[0] = -1;
	return fd;
}

static void close_interrupt(struct vfio_user *server)
{
	if (server->interrupt_fd >= 0)
		(void)close(server->interrupt_fd);
	server->interrupt_fd = -1;
}

void vfio_user_disconnect(struct vfio_user *server)
{
	close_fds(server);
	close_interrupt(server);
	guest_remove(server->guest, 0, ~0ull);
	if (server->fd >= 0)
		(void)close(server->fd);
	server->fd = -1;
}

void vfio_user_close(struct vfio_user *server)
{
	vfio_user_disconnect(server);
	if (server->listen_fd >= 0)
		(void)close(server->listen_fd);
	server->listen_fd = -1;
}

int vfio_user_interrupt(struct vfio_user *server)
{
	uint64_t one = 1;

	if (server->interrupt_fd < 0)
		return -ENOTCONN;
	return write(server->interrupt_fd, &one, sizeof(one)) < 0 ? -errno : 0;
}

static void keep_fds(struct vfio_user *server, struct cmsghdr *control)
{
	size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int), i;
	int fd;

	for (i = 0; i < count; i++) {
		memcpy(&fd, CMSG_DATA(control) + i * sizeof(fd), sizeof(fd));
		if (server->num_fds < VFIO_USER_MAX_FDS)
			server->fds[server->num_fds++] = fd;
		else
			(void)close(fd);
	}
}

static int receive(struct vfio_user *server, void *to, size_t size_bytes)
{
	char control[CMSG_SPACE(sizeof(int) * VFIO_USER_MAX_FDS)];
	size_t done = 0;

	while (done < size_bytes) {
		struct iovec part = { (char *)to + done, size_bytes - done };
		struct msghdr message = { .msg_iov = &part,
					  .msg_iovlen = 1,
					  .msg_control = control,
					  .msg_controllen = sizeof(control) };
		struct cmsghdr *c;
		ssize_t n = recvmsg(server->fd, &message, MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		for (c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
				keep_fds(server, c);
		done += n;
	}
	return 0;
}

static int send_all(int fd, struct msghdr *message)
{
	while (message->msg_iovlen) {
		ssize_t n = sendmsg(fd, message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -EPIPE;
		message->msg_controllen = 0;
		while (message->msg_iovlen && (size_t)n >= message->msg_iov->iov_len) {
			n -= message->msg_iov->iov_len;
			message->msg_iov++;
			message->msg_iovlen--;
		}
		if (message->msg_iovlen) {
			message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + n;
			message->msg_iov->iov_len -= n;
		}
	}
	return 0;
}

/* Answers with @size_bytes of @data and, unless it is -1, the descriptor. */
static int answer_with_fd(struct vfio_user *server, const struct header *request, const void *data,
			  size_t size_bytes, int fd)
{
	struct header header = { request->id, request->command, sizeof(header) + size_bytes,
				 FLAG_REPLY, 0 };
	struct iovec parts[] = { { &header, sizeof(header) }, { (void *)data, size_bytes } };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = size_bytes ? 2 : 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return send_all(server->fd, &message);
}

static int answer(struct vfio_user *server, const struct header *request, const void *data,
		  size_t size_bytes)
{
	return answer_with_fd(server, request, data, size_bytes, -1);
}

static int answer_error(struct vfio_user *server, const struct header *request, int error)
{
	struct header header = { request->id, request->command, sizeof(header),
				 FLAG_REPLY | (error ? FLAG_ERROR : 0), -error };
	struct iovec part = { &header, sizeof(header) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (request->flags & FLAG_NO_REPLY)
		return 0;
	return send_all(server->fd, &message);
}

static int serve_version(struct vfio_user *server, const struct header *request)
{
	static const char capabilities[] =
		"{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":524288}}";
	uint8_t data[sizeof(struct version) + sizeof(capabilities)];

	memcpy(data, server->message, sizeof(struct version));
	memcpy(data + sizeof(struct version), capabilities, sizeof(capabilities));
	return answer(server, request, data, sizeof(data));
}

/* Memory without a descriptor is that of BARs, which this device does not reach by DMA. */
static int map_memory(struct vfio_user *server, const struct dma_map *map)
{
	struct guest_range range = { .address = map->address, .size_bytes = map->size_bytes };
	int ret;

	if (!server->num_fds)
		return 0;
	range.memory = mmap(NULL, map->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			    server->fds[0], map->offset);
	if (range.memory == MAP_FAILED)
		return -errno;
	ret = guest_add(server->guest, &range);
	if (ret < 0)
		(void)munmap(range.memory, range.size_bytes);
	return ret;
}

static int serve_dma_map(struct vfio_user *server, const struct header *request)
{
	struct dma_map map;
	int ret;

	memcpy(&map, server->message, sizeof(map));
	ret = map_memory(server, &map);
	if (ret < 0)
		report_violation(server->report, "vfio-user: cannot map %#llx bytes at %#llx: %s",
				 (unsigned long long)map.size_bytes,
				 (unsigned long long)map.address, strerror(-ret));
	return answer_error(server, request, ret);
}

static int serve_dma_unmap(struct vfio_user *server, const struct header *request)
{
	struct dma_unmap unmap;

	memcpy(&unmap, server->message, sizeof(unmap));
	guest_remove(server->guest, unmap.address, unmap.size_bytes);
	return answer(server, request, &unmap, sizeof(unmap));
}

static int serve_info(struct vfio_user *server, const struct header *request)
{
	struct vfio_device_info info = { .argsz = 16,
					 .flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
					 .num_regions = VFIO_USER_REGIONS,
					 .num_irqs = VFIO_PCI_NUM_IRQS };

	return answer(server, request, &info, info.argsz);
}

static int serve_region_info(struct vfio_user *server, const struct header *request)
{
	const struct vfio_user_region *region;
	struct vfio_region_info info;

	memcpy(&info, server->message, sizeof(info));
	if (info.index >= VFIO_USER_REGIONS)
		return answer_error(server, request, -EINVAL);
	region = &server->regions[info.index];
	info = (struct vfio_region_info){ .argsz = sizeof(info),
					  .index = info.index,
					  .size = region->size_bytes };
	if (region->size_bytes)
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (region->size_bytes && region->fd >= 0)
		info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
	return answer_with_fd(server, request, &info, sizeof(info),
			      region->size_bytes ? region->fd : -1);
}

static int serve_irq_info(struct vfio_user *server, const struct header *request)
{
	struct vfio_irq_info info;

	memcpy(&info, server->message, sizeof(info));
	info.argsz = sizeof(info);
	info.count = info.index == VFIO_PCI_MSI_IRQ_INDEX;
	info.flags = info.count ? VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE : 0;
	return answer(server, request, &info, sizeof(info));
}

static int serve_set_irqs(struct vfio_user *server, const struct header *request)
{
	struct vfio_irq_set set;

	memcpy(&set, server->message, sizeof(set));
	if (set.index == VFIO_PCI_MSI_IRQ_INDEX && set.flags & VFIO_IRQ_SET_ACTION_TRIGGER) {
		close_interrupt(server);
		if (set.count && set.flags & VFIO_IRQ_SET_DATA_EVENTFD)
			server->interrupt_fd = take_fd(server);
	}
	return answer_error(server, request, 0);
}

static bool is_within(const struct vfio_user *server, const struct region_access *access)
{
	const struct vfio_user_region *region;

	if (access->region >= VFIO_USER_REGIONS)
		return false;
	region = &server->regions[access->region];
	return access->count <= region->size_bytes &&
	       access->offset <= region->size_bytes - access->count &&
	       access->count <= VFIO_USER_MAX_MESSAGE - sizeof(*access);
}

static int serve_read(struct vfio_user *server, const struct header *request)
{
	struct region_access access;

	memcpy(&access, server->message, sizeof(access));
	if (!is_within(server, &access))
		return answer_error(server, request, -EINVAL);
	memcpy(server->answer, &access, sizeof(access));
	memset(server->answer + sizeof(access), 0, access.count);
	server->ops->read(server->owner, access.region, access.offset,
			  server->answer + sizeof(access), access.count);
	return answer(server, request, server->answer, sizeof(access) + access.count);
}

static int serve_write(struct vfio_user *server, const struct header *request)
{
	struct region_access access;

	memcpy(&access, server->message, sizeof(access));
	if (!is_within(server, &access) ||
	    access.count > request->size_bytes - sizeof(*request) - sizeof(access))
		return answer_error(server, request, -EINVAL);
	server->ops->write(server->owner, access.region, access.offset,
			   server->message + sizeof(access), access.count);
	if (request->flags & FLAG_NO_REPLY)
		return 0;
	return answer(server, request, &access, sizeof(access));
}

static int serve_reset(struct vfio_user *server, const struct header *request)
{
	server->ops->reset(server->owner);
	return answer_error(server, request, 0);
}

static const struct {
	int (*serve)(struct vfio_user *server, const struct header *request);
	uint32_t least_bytes;
} commands[] = {
	[COMMAND_VERSION] = { serve_version, sizeof(struct version) },
	[COMMAND_DMA_MAP] = { serve_dma_map, sizeof(struct dma_map) },
	[COMMAND_DMA_UNMAP] = { serve_dma_unmap, sizeof(struct dma_unmap) },
	[COMMAND_DEVICE_GET_INFO] = { serve_info, 0 },
	[COMMAND_DEVICE_GET_REGION_INFO] = { serve_region_info, sizeof(struct vfio_region_info) },
	[COMMAND_DEVICE_GET_IRQ_INFO] = { serve_irq_info, sizeof(struct vfio_irq_info) },
	[COMMAND_DEVICE_SET_IRQS] = { serve_set_irqs, sizeof(struct vfio_irq_set) },
	[COMMAND_REGION_READ] = { serve_read, sizeof(struct region_access) },
	[COMMAND_REGION_WRITE] = { serve_write, sizeof(struct region_access) },
	[COMMAND_DEVICE_RESET] = { serve_reset, 0 },
};

static int serve_command(struct vfio_user *server, const struct header *request)
{
	uint32_t command = request->command;

	if (command >= sizeof(commands) / sizeof(commands[0]) || !commands[command].serve) {
		report_violation(server->report, "vfio-user: unknown command %u", command);
		return answer_error(server, request, -EOPNOTSUPP);
	}
	if (request->size_bytes - sizeof(*request) < commands[command].least_bytes) {
		report_violation(server->report, "vfio-user: command %u of %u bytes", command,
				 request->size_bytes);
		return answer_error(server, request, -EINVAL);
	}
	return commands[command].serve(server, request);
}

int vfio_user_serve(struct vfio_user *server)
{
	struct header request;
	int ret;

	ret = receive(server, &request, sizeof(request));
	if (ret < 0)
		return ret;
	if (request.size_bytes < sizeof(request) ||
	    request.size_bytes - sizeof(request) > sizeof(server->message)) {
		report_violation(server->report, "vfio-user: a message of %u bytes",
				 request.size_bytes);
		return -EPROTO;
	}
	ret = receive(server, server->message, request.size_bytes - sizeof(request));
	if (ret == 0 && (request.flags & FLAG_TYPE) != FLAG_REPLY)
		ret = serve_command(server, &request);
	close_fds(server);
	return ret;
}
