/* SPDX-License-Identifier: GPL-2.0-only */
/* The messages between a restored task and CRIU's main process; handoff.h has the protocol. These
 * functions log nothing. */
#ifndef AMDGPU_PLUGIN_RESTORE_HANDOFF_MESSAGE_H
#define AMDGPU_PLUGIN_RESTORE_HANDOFF_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "content/content.h"

/* The kernel passes at most 253 descriptors with a message (SCM_MAX_FD in net/scm.h). */
#define MESSAGE_FDS_MAX 250

enum message_kind {
	MESSAGE_JOB,
	MESSAGE_BOS,
	MESSAGE_END,
};

/* Pointers and descriptors in it are those of the sender. */
struct message {
	uint64_t kind;
	union {
		/* One GPU of the task, whose image comes as descriptor, if it has one. */
		struct content_job job;
		/* BOs of that GPU. The dma-buf of each is the descriptor with the same index. */
		struct content_bo bos[MESSAGE_FDS_MAX];
	};
};

/* What the kernel passes beside the bytes of a message. */
struct message_extra {
	int fds[MESSAGE_FDS_MAX];
	size_t num_fds;
	/* The sender. Valid if the socket has SO_PASSCRED, else 0. */
	pid_t sender;
};

/* Sends a message whose fields, other than its kind, the caller has set. A message of BOs has one
 * for each descriptor. The descriptors stay the caller's. */
int handoff_message_send(int socket, struct message *message, enum message_kind kind,
			 const int *fds, size_t num_fds);
/* Waits for a message. On success the descriptors in @ret_extra are the caller's. -ENODATA: the
 * socket was shut down. -EMFILE: this process may not have that many descriptors, so there are
 * none, but the sender is known. */
int handoff_message_receive(int socket, struct message *message, struct message_extra *ret_extra);
void handoff_message_close_fds(const struct message_extra *extra);

#endif
