/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A streamer of images, as `criu dump --stream` and `criu restore --stream` want one: it listens on
 * a socket in the image directory and keeps the images somewhere else. Each image has a pipe of its
 * own.
 *
 * It is as strict as a streamer may be: captured images are never asked to be read back, an image
 * is served once, and the next request is looked at when the image before has left for its pipe. A
 * reader that leaves an image half read and asks for another one waits forever.
 *
 * The protocol, as CRIU 3.17.1 to 4.3 speak it: a request is four bytes of length (host order)
 * and a protobuf message whose field 1 is the name of the image; at restore the answer is
 * framed likewise, its field 1 says whether there is such an image. Then comes one byte with
 * the pipe's end (SCM_RIGHTS), at restore only if there is one. The connection ends when there
 * will be no more requests. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TOOL "streamer %d "
#include "say.h"

#define IMAGES_MAX 4096
#define NAME_MAX_  128
#define BUFFER     (1 << 20)

#define FIELD_NAME   0x0a /* field 1, bytes */
#define FIELD_EXISTS 0x08 /* field 1, number */

static const char *store;
static unsigned char buffer[BUFFER];

static int accept_criu(const char *dir, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener, criu;

	need(snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, name) <
		     (int)sizeof(address.sun_path),
	     dir);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(listener >= 0, "socket");
	unlink(address.sun_path);
	need(!bind(listener, (struct sockaddr *)&address, sizeof(address)), address.sun_path);
	need(!listen(listener, 1), "listen");
	say("ready");
	criu = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	need(criu >= 0, "accept");
	close(listener);
	/* After all connections, no client needs the file of the socket. */
	unlink(address.sun_path);
	return criu;
}

/* 0: the connection has ended. */
static int read_all(int fd, void *memory, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, (char *)memory + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		need(n >= 0, "read from CRIU");
		if (n == 0 && got == 0)
			return 0;
		errno = EPIPE;
		need(n > 0, "request cut off");
		got += (size_t)n;
	}
	return 1;
}

static int read_request(int criu, char name[NAME_MAX_])
{
	unsigned char message[NAME_MAX_];
	uint32_t size;

	if (!read_all(criu, &size, sizeof(size)))
		return 0;
	errno = EPROTO;
	need(size > 2 && size < sizeof(message), "size of a request");
	need(read_all(criu, message, size), "request");
	errno = EPROTO;
	need(message[0] == FIELD_NAME && message[1] == size - 2, "request");
	memcpy(name, message + 2, size - 2);
	name[size - 2] = '\0';
	need(!strchr(name, '/'), name);
	return 1;
}

static void reply(int criu, int exists)
{
	const unsigned char message[] = { 2, 0, 0, 0, FIELD_EXISTS, (unsigned char)exists };

	need(write(criu, message, sizeof(message)) == sizeof(message), "write to CRIU");
}

static int receive_pipe(int criu)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec vector = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	int fd;

	need(recvmsg(criu, &message, MSG_CMSG_CLOEXEC) == 1, "receive a pipe");
	header = CMSG_FIRSTHDR(&message);
	errno = EPROTO;
	need(header && header->cmsg_type == SCM_RIGHTS, "receive a pipe");
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static const char *stored(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", store, name);
	return path;
}

struct capture {
	int file;
	char name[NAME_MAX_];
};
static struct capture captures[IMAGES_MAX];
static struct pollfd polls[IMAGES_MAX + 1];
static nfds_t num_polls;

static void begin_capture(int criu)
{
	struct capture *capture = &captures[num_polls];

	if (!read_request(criu, capture->name)) {
		polls[0].fd = -1;
		return;
	}
	errno = ENOSPC;
	need(num_polls < IMAGES_MAX, "images");
	capture->file = open(stored(capture->name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	need(capture->file >= 0, capture->name);
	polls[num_polls].fd = receive_pipe(criu);
	polls[num_polls].events = POLLIN;
	num_polls++;
}

/* Returns whether the image goes on. */
static int capture_some(nfds_t i)
{
	ssize_t size = read(polls[i].fd, buffer, sizeof(buffer));

	need(size >= 0, captures[i].name);
	need(write(captures[i].file, buffer, (size_t)size) == size, stored(captures[i].name));
	if (size)
		return 1;
	close(polls[i].fd);
	need(!close(captures[i].file), captures[i].name);
	polls[i].fd = -1;
	return 0;
}

/* All images at once: CRIU has many of them open, and so has the plugin. */
static void capture_all(int criu)
{
	unsigned int open_images = 0;

	polls[0] = (struct pollfd){ criu, POLLIN, 0 };
	num_polls = 1;
	while (polls[0].fd >= 0 || open_images) {
		nfds_t before = num_polls;

		need(poll(polls, num_polls, -1) > 0, "poll");
		for (nfds_t i = 1; i < before; i++) {
			if (polls[i].fd >= 0 && polls[i].revents)
				open_images -= !capture_some(i);
		}
		if (polls[0].fd >= 0 && polls[0].revents)
			begin_capture(criu);
		open_images += (unsigned int)(num_polls - before);
	}
	say("captured %u images", (unsigned int)num_polls - 1);
}

/* Returns whether the image was taken to its end. */
static int pour(int file, int pipe)
{
	ssize_t size;

	while ((size = read(file, buffer, sizeof(buffer))) > 0) {
		for (ssize_t done = 0; done < size;) {
			ssize_t n = write(pipe, buffer + done, (size_t)(size - done));

			if (n < 0 && errno == EPIPE)
				return 0;
			need(n > 0, "write to a pipe");
			done += n;
		}
	}
	need(size == 0, "read an image");
	return 1;
}

static void serve_all(int criu)
{
	unsigned int served = 0;
	char name[NAME_MAX_];

	while (read_request(criu, name)) {
		int file = open(stored(name), O_RDONLY | O_CLOEXEC), pipe;

		need(file >= 0 || errno == ENOENT, name);
		reply(criu, file >= 0);
		if (file < 0)
			continue;
		/* Once and no more. */
		need(!unlink(stored(name)), name);
		pipe = receive_pipe(criu);
		if (!pour(file, pipe))
			say("%s: left before its end", name);
		close(pipe);
		close(file);
		served++;
	}
	say("served %u images", served);
}

int main(int argc, char **argv)
{
	if (argc != 5 || (strcmp(argv[1], "capture") && strcmp(argv[1], "serve"))) {
		fprintf(stderr, "usage: streamer capture|serve IMAGE-DIRECTORY STORE LOG\n");
		return 2;
	}
	store = argv[3];
	log_path = argv[4];
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(argv[1], "capture"))
		capture_all(accept_criu(argv[2], "streamer-capture.sock"));
	else
		serve_all(accept_criu(argv[2], "streamer-serve.sock"));
	return 0;
}
