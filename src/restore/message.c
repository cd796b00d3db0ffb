// SPDX-License-Identifier: GPL-2.0-only
/* Framing of messages between a restored task and CRIU's main process: what goes in comes out whole
 * or not at all. What they say is the parallel unit's business. */
#include "restore/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAGIC   0x70614744
#define MESSAGE_VERSION 1

/* What the control data of a message has room for. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

void message_close_fds(const int *fds, size_t num_fds)
{
	for (size_t i = 0; i < num_fds; i++)
		(void)close(fds[i]);
}

int message_send(int socket, struct message *message, enum message_kind kind, size_t length,
		 const int *fds, size_t num_fds)
{
	union control control;
	struct iovec bytes = { message, sizeof(message->header) + length };
	struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };
	ssize_t sent;

	message->header = (struct message_header){ MESSAGE_MAGIC, MESSAGE_VERSION, (uint16_t)kind,
						   (uint32_t)length, (uint32_t)num_fds };
	if (num_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		/* what lies between header, descriptors and end included */
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

static int check_message(const struct message *message, size_t size, size_t num_fds,
			 const struct msghdr *header)
{
	const struct message_header *own = &message->header;

	/* Fewer descriptors than were sent: this process may not have as many. */
	if (header->msg_flags & MSG_CTRUNC)
		return -EMFILE;
	if (header->msg_flags & MSG_TRUNC || size < sizeof(*own) || own->magic != MESSAGE_MAGIC ||
	    own->version != MESSAGE_VERSION || own->length != size - sizeof(*own) ||
	    own->num_fds != num_fds)
		return -EPROTO;
	return 0;
}

/* Takes as many as there is room for, and closes the rest, which no message of ours has. */
static size_t take_fds(const struct cmsghdr *part, int fds[static MESSAGE_FDS_MAX])
{
	size_t num_fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < num_fds; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
		if (i < MESSAGE_FDS_MAX)
			fds[i] = fd;
		else
			(void)close(fd);
	}
	return num_fds < MESSAGE_FDS_MAX ? num_fds : MESSAGE_FDS_MAX;
}

static size_t take_control(struct msghdr *header, int fds[static MESSAGE_FDS_MAX], pid_t *ret_pid)
{
	size_t num_fds = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		if (part->cmsg_level != SOL_SOCKET)
			continue;
		if (part->cmsg_type == SCM_RIGHTS)
			num_fds = take_fds(part, fds);
		if (part->cmsg_type == SCM_CREDENTIALS) {
			struct ucred sender;

			memcpy(&sender, CMSG_DATA(part), sizeof(sender));
			*ret_pid = sender.pid;
		}
	}
	return num_fds;
}

int message_receive(int socket, struct message *message, int fds[static MESSAGE_FDS_MAX],
		    pid_t *ret_pid)
{
	union control control;
	struct iovec bytes = { message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	size_t num_fds;
	ssize_t size;
	int ret;

	do {
		size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	} while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	/* Else it is empty, but may come with descriptors, or from somebody. */
	if (!size && !header.msg_controllen)
		return -ENODATA;
	num_fds = take_control(&header, fds, ret_pid);
	ret = check_message(message, (size_t)size, num_fds, &header);
	if (ret < 0)
		message_close_fds(fds, num_fds);
	return ret;
}
