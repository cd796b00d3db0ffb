// SPDX-License-Identifier: GPL-2.0-only
/* Sends and receives the messages of a handoff with their descriptors: whole or not at all. What a
 * message means is decided in handoff.c. */
#include "fill/handoff_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAGIC   0x70614744
#define MESSAGE_VERSION 1

/* Control data: descriptors, and the credentials that the kernel adds. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

void handoff_message_close_fds(const struct message_extra *extra)
{
	for (size_t i = 0; i < extra->num_fds; i++)
		(void)close(extra->fds[i]);
}

int handoff_message_send(int socket, struct message *message, enum message_kind kind, size_t length,
			 const int *fds, size_t num_fds)
{
	union control control;
	struct iovec bytes = { message, sizeof(message->header) + length };
	struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };
	ssize_t sent;

	message->header =
		(struct message_header){ MESSAGE_MAGIC, MESSAGE_VERSION, (uint16_t)kind, length };
	if (num_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		/* The alignment bytes between header, descriptors and end count, too. */
		memset(&control, 0, header.msg_controllen);
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(num_fds * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), fds, num_fds * sizeof(int));
	}
	do {
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static int check_message(const struct message *message, size_t size, const struct msghdr *header)
{
	const struct message_header *own = &message->header;

	/* The kernel installed fewer descriptors than came: this process may not have more. */
	if (header->msg_flags & MSG_CTRUNC)
		return -EMFILE;
	if (header->msg_flags & MSG_TRUNC || size < sizeof(*own) || own->magic != MESSAGE_MAGIC ||
	    own->version != MESSAGE_VERSION || own->length != size - sizeof(*own))
		return -EPROTO;
	return 0;
}

/* Closes the descriptors that exceed MESSAGE_FDS_MAX. -EPROTO: there are such descriptors. */
static int take_fds(const struct cmsghdr *part, struct message_extra *extra)
{
	size_t num_fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < num_fds; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
		if (i < MESSAGE_FDS_MAX)
			extra->fds[extra->num_fds++] = fd;
		else
			(void)close(fd);
	}
	return num_fds <= MESSAGE_FDS_MAX ? 0 : -EPROTO;
}

/* A message has at most one part of either type. */
static int take_control(struct msghdr *header, struct message_extra *extra)
{
	int ret = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		if (part->cmsg_level != SOL_SOCKET)
			continue;
		if (part->cmsg_type == SCM_RIGHTS)
			ret = take_fds(part, extra);
		if (part->cmsg_type == SCM_CREDENTIALS) {
			struct ucred sender;

			memcpy(&sender, CMSG_DATA(part), sizeof(sender));
			extra->sender = sender.pid;
		}
	}
	return ret;
}

int handoff_message_receive(int socket, struct message *message, struct message_extra *ret_extra)
{
	union control control;
	struct iovec bytes = { message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t size;
	int ret;

	ret_extra->num_fds = 0;
	ret_extra->sender = 0;
	do {
		size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	} while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	/* With control data it is an empty message; without, the other end is closed. */
	if (!size && !header.msg_controllen)
		return -ENODATA;
	ret = take_control(&header, ret_extra);
	if (!ret)
		ret = check_message(message, (size_t)size, &header);
	if (ret < 0)
		handoff_message_close_fds(ret_extra);
	return ret;
}
