// SPDX-License-Identifier: GPL-2.0-only
/* Sends and receives the messages of a handoff with their descriptors: whole or not at all. What a
 * message means is decided in handoff.c. */
#include "restore/handoff_message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

int handoff_message_send(int socket, struct message *message, enum message_kind kind,
			 const int *fds, size_t num_fds)
{
	union control control;
	struct iovec bytes = { message, offsetof(struct message, job) };
	struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };
	ssize_t sent;

	message->kind = kind;
	if (kind == MESSAGE_JOB)
		bytes.iov_len += sizeof(message->job);
	if (kind == MESSAGE_BOS)
		bytes.iov_len += num_fds * sizeof(*message->bos);
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

/* A message has at most one part of either type. */
static void take_control(struct msghdr *header, struct message_extra *extra)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
			extra->num_fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(extra->fds, CMSG_DATA(part), extra->num_fds * sizeof(int));
		}
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
			struct ucred sender;

			memcpy(&sender, CMSG_DATA(part), sizeof(sender));
			extra->sender = sender.pid;
		}
	}
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

	ret_extra->num_fds = 0;
	ret_extra->sender = 0;
	do {
		size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	} while (size < 0 && errno == EINTR);
	if (size <= 0)
		return size ? -errno : -ENODATA;
	take_control(&header, ret_extra);
	/* The kernel installed fewer descriptors than came: this process may not have more. */
	if (!(header.msg_flags & MSG_CTRUNC))
		return 0;
	handoff_message_close_fds(ret_extra);
	ret_extra->num_fds = 0;
	return -EMFILE;
}
