// SPDX-License-Identifier: GPL-2.0-only
/* A faulty task sends messages to CRIU's main process. For each message the input has the kind, the
 * number of descriptors, flags (enum how), and the bytes after the header. */
#include "fuzz.h"

#include "fake_gpu.h"

#include <sys/socket.h>

#include "fill/handoff.h"
#include "fill/handoff_message.h"

#define MAGIC     0x70614744
#define FDS_MAX   253
#define FILE_SIZE (16u << 10)
#define MESSAGES  64

enum how {
	WITHOUT_HEADER = 1,
	TO_LISTEN_SOCK = 2,
};

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

static void send_bytes(int socket, const void *bytes, size_t size, int fd, size_t num_fds)
{
	union control control = { 0 };
	struct iovec part = { (void *)bytes, size };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	int *fds = (int *)CMSG_DATA(&control.align);

	for (size_t i = 0; i < num_fds; i++)
		fds[i] = fd;
	if (num_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		control.align =
			(struct cmsghdr){ CMSG_LEN(num_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	}
	/* The main process may have closed its end. */
	(void)!sendmsg(socket, &header, MSG_NOSIGNAL);
}

static void send_one(struct fuzz_input *input, const int sockets[2], int fd)
{
	uint16_t kind = (uint16_t)fuzz_take_number(input, 1);
	size_t num_fds = fuzz_take_number(input, 1) % (FDS_MAX + 1), size;
	uint64_t how = fuzz_take_number(input, 1);
	const uint8_t *bytes = fuzz_take_bytes(input, fuzz_take_number(input, 2), &size);
	struct message_header header = { MAGIC, 1, kind, size };
	uint8_t *whole = malloc(sizeof(header) + size);
	size_t at = how & WITHOUT_HEADER ? 0 : sizeof(header);

	promise(whole);
	memcpy(whole, &header, at);
	if (size)
		memcpy(whole + at, bytes, size);
	send_bytes(sockets[how & TO_LISTEN_SOCK ? 1 : 0], whole, at + size, fd, num_fds);
	free(whole);
}

/* A file that serves both as a BO and as an image. */
static int make_file(void)
{
	uint64_t length = 4096;
	int fd;

	unit_write("file", &length, sizeof(length));
	fd = openat(criu_stub.image_dir, "file", O_RDWR | O_CLOEXEC);
	promise(fd >= 0 && ftruncate(fd, FILE_SIZE) == 0);
	return fd;
}

static void act_as_task(struct fuzz_input *input)
{
	struct message *hello = calloc(1, sizeof(*hello));
	int listen_sock = fdstore_get(unit_last_stored()), fd = make_file(), pair[2];

	promise(hello && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	(void)handoff_message_send(listen_sock, hello, MESSAGE_HELLO, 0, &pair[1], 1);
	(void)close(pair[1]);
	for (unsigned int i = 0; input->size && i < MESSAGES; i++)
		send_one(input, (int[]){ pair[0], listen_sock }, fd);
	(void)close(pair[0]);
	(void)close(listen_sock);
	(void)close(fd);
	free(hello);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct content_settings settings = { .staging_bytes = 8192,
						   .copy_timeout_s = 5,
						   .checksum = true };
	struct fuzz_input input = { bytes, size };
	struct handoff *handoff;
	int ret;

	promise(fake_gpu_begin(NULL) == 0);
	promise(handoff_new(&settings, &handoff) == 0);
	promise(handoff_listen(handoff) == 0);
	act_as_task(&input);
	ret = handoff_finish(handoff, getpid());
	promise(unit_count_errors() == (ret < 0));
	handoff_free(handoff);
	promise(fake_gpu_end(NULL) == 0);
	return 0;
}
