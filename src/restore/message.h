/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages by which a restored task hands its contents to CRIU's main process, with the descriptors
 * that come with them; parallel.h has the protocol. Silent: callers print the error. */
#ifndef AMDGPU_PLUGIN_RESTORE_MESSAGE_H
#define AMDGPU_PLUGIN_RESTORE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel passes at most 253 descriptors with a message (SCM_MAX_FD in net/scm.h). */
#define MESSAGE_FDS_MAX 250

enum message_kind {
	MESSAGE_HELLO,
	MESSAGE_JOB,
	MESSAGE_BOS,
	MESSAGE_END,
};

struct message_header {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	/* Of what follows, in bytes, and how many descriptors come with it. */
	uint32_t length;
	uint32_t num_fds;
};

struct message_job {
	uint32_t gpu_id;
	uint32_t render_minor;
	uint64_t num_bos;
	uint8_t streamed;
	uint8_t has_checksums;
	uint8_t has_image;
	uint8_t padding[5];
};

struct message_bo {
	uint64_t size;
	uint64_t checksum;
};

struct message {
	struct message_header header;
	union {
		struct message_job job;
		struct message_bo bos[MESSAGE_FDS_MAX];
	};
};

/* Sends the header and @length bytes after it, which the caller has set.
 * Descriptors stay the caller's. */
int message_send(int socket, struct message *message, enum message_kind kind, size_t length,
		 const int *fds, size_t num_fds);
/* The next message; its descriptors, as many as its header says, are the caller's. *@ret_pid is set
 * to the sender, as the kernel knows it, where the socket has SO_PASSCRED. -ENODATA: the other end
 * is closed; -EPROTO: not a message; -EMFILE: this process may not have that many descriptors. */
int message_receive(int socket, struct message *message, int fds[static MESSAGE_FDS_MAX],
		    pid_t *ret_pid);
void message_close_fds(const int *fds, size_t num_fds);

#endif
