// SPDX-License-Identifier: GPL-2.0-only
#include "criu_stub.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Longer lines are cut. */
#define LINE_SIZE 4096

struct criu_stub criu_stub = { .image_dir = -1, .unused_fd = 100, .log_level = 4, .store = -1 };

/* CRIU's options begin with what it does with the tasks of a dump that succeeds. */
__attribute__((visibility("default"))) int opts;

/* The processes that have the store share this, too. */
struct criu_stub_ids {
	pthread_mutex_t lock;
	int count;
};

void print_on_level(unsigned int level, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;

	if (level > criu_stub.log_level)
		return;
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (criu_stub.print)
		criu_stub.print(level, line);
	else
		(void)fputs(line, stderr);
}

int criu_get_image_dir(void)
{
	return criu_stub.image_dir;
}

int find_unused_fd_pid(pid_t pid)
{
	(void)pid;
	return criu_stub.unused_fd;
}

/* Room for many descriptors (fdstore_init() in CRIU's fdstore.c). The kernel doubles the value. */
static void make_room(int socket)
{
	const int size = INT_MAX / 2;

	(void)setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	(void)setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
}

/* As CRIU's fdstore.c does: a socket that is connected to itself keeps the descriptors, each in a
 * message of one byte. No message is taken out. */
static int connect_to_itself(int socket)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address);

	/* The kernel chooses a name. */
	if (bind(socket, (struct sockaddr *)&address, sizeof(sa_family_t)) < 0 ||
	    getsockname(socket, (struct sockaddr *)&address, &size) < 0)
		return -1;
	return connect(socket, (struct sockaddr *)&address, size);
}

int criu_stub_open_store(void)
{
	pthread_mutexattr_t attributes;
	int fd;

	if (criu_stub.store >= 0)
		return 0;
	criu_stub.ids = mmap(NULL, sizeof(*criu_stub.ids), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (criu_stub.ids == MAP_FAILED || fd < 0 || connect_to_itself(fd) < 0)
		return -1;
	make_room(fd);
	(void)pthread_mutexattr_init(&attributes);
	(void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	(void)pthread_mutex_init(&criu_stub.ids->lock, &attributes);
	criu_stub.store = criu_stub_keep_fd(fd);
	return criu_stub.store < 0 ? -1 : 0;
}

/* A process that is killed must not keep the others waiting. */
static void lock(void)
{
	if (pthread_mutex_lock(&criu_stub.ids->lock) == EOWNERDEAD)
		(void)pthread_mutex_consistent(&criu_stub.ids->lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&criu_stub.ids->lock);
}

union fd_message {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static struct msghdr describe(union fd_message *control, struct iovec *byte)
{
	return (struct msghdr){ .msg_iov = byte,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(*control) };
}

int fdstore_add(int fd)
{
	union fd_message control = { .header = { CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec byte = { "", 1 };
	struct msghdr message = describe(&control, &byte);
	int id = -1;

	if (criu_stub_open_store() < 0)
		return -1;
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	lock();
	if (sendmsg(criu_stub.store, &message, 0) == 1)
		id = criu_stub.ids->count++;
	unlock();
	return id;
}

int fdstore_get(int id)
{
	union fd_message control = { 0 };
	char got;
	struct iovec byte = { &got, 1 };
	struct msghdr message = describe(&control, &byte);
	int fd = -1;

	if (id < 0 || id >= criu_stub_count_stored())
		return -1;
	lock();
	if (!setsockopt(criu_stub.store, SOL_SOCKET, SO_PEEK_OFF, &id, sizeof(id)) &&
	    recvmsg(criu_stub.store, &message, MSG_PEEK) == 1)
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	unlock();
	return fd;
}

int criu_stub_count_stored(void)
{
	int count = 0;

	if (criu_stub.store < 0)
		return 0;
	lock();
	count = criu_stub.ids->count;
	unlock();
	return count;
}

int img_streamer_open(const char *name, int flags)
{
	return criu_stub.open_streamed ? criu_stub.open_streamed(name, flags) : -1;
}

/* As in CRIU 3.17.1: without lazy pages there is nothing to do. With them the function asks the
 * descriptor store, which only a restore has. */
int lazy_pages_setup_zombie(int pid)
{
	(void)pid;
	return criu_stub.is_lazy && !criu_stub_count_stored() ? -1 : 0;
}

int criu_stub_keep_fd(int fd)
{
	int kept = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, criu_stub.lowest_fd);

	if (fd >= 0)
		(void)close(fd);
	return kept;
}

void criu_stub_close_stored(void)
{
	if (criu_stub.store < 0)
		return;
	(void)close(criu_stub.store);
	(void)munmap(criu_stub.ids, sizeof(*criu_stub.ids));
	criu_stub.store = -1;
}
