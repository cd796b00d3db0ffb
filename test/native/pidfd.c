// SPDX-License-Identifier: GPL-2.0-only
/* pidfd_open() for programs under a valgrind that lacks this call. As a preloaded library, this
 * file asks a helper program, which runs outside valgrind. Built with HELPER, this file is the
 * helper. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The helper's file is beside this library. */
#define HELPER_NAME "pidfd-helper"

/* The message that travels with a descriptor between library and helper. */
struct parcel {
	int error;
	struct iovec bytes;
	char control[CMSG_SPACE(sizeof(int))];
};

static struct msghdr message_of(struct parcel *parcel)
{
	parcel->bytes = (struct iovec){ &parcel->error, sizeof(parcel->error) };
	return (struct msghdr){ .msg_iov = &parcel->bytes,
				.msg_iovlen = 1,
				.msg_control = parcel->control,
				.msg_controllen = sizeof(parcel->control) };
}

#ifdef HELPER

/* The helper's standard input is the socket. */
int main(int argc, char **argv)
{
	int fd = argc == 2 ? (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0) : -1;
	struct parcel parcel = { .error = fd < 0 ? errno : 0 };
	struct msghdr message = message_of(&parcel);
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (fd < 0)
		message.msg_controllen = 0;
	return sendmsg(STDIN_FILENO, &message, 0) < 0;
}

#else

long syscall(long number, ...) __attribute__((visibility("default")));

static void __attribute__((noreturn)) run_helper(int socket, pid_t pid)
{
	char path[4096], number[16];
	Dl_info self;

	if (!dladdr((void *)syscall, &self) || dup2(socket, STDIN_FILENO) < 0)
		_exit(1);
	(void)snprintf(path, sizeof(path), "%.*s" HELPER_NAME,
		       (int)(strrchr(self.dli_fname, '/') + 1 - self.dli_fname), self.dli_fname);
	(void)snprintf(number, sizeof(number), "%d", pid);
	(void)unsetenv("LD_PRELOAD");
	(void)execl(path, path, number, NULL);
	_exit(1);
}

static int receive(int socket)
{
	struct parcel parcel = { 0 };
	struct msghdr message = message_of(&parcel);
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(parcel.error))
		return -ENOSYS;
	if (parcel.error)
		return -parcel.error;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int ask(pid_t pid)
{
	int ends[2], ret;
	pid_t helper;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	helper = fork();
	if (helper == 0)
		run_helper(ends[1], pid);
	(void)close(ends[1]);
	ret = helper < 0 ? -errno : receive(ends[0]);
	(void)close(ends[0]);
	if (helper > 0)
		(void)waitpid(helper, NULL, 0);
	return ret;
}

long syscall(long number, ...)
{
	long (*real)(long number, ...) =
		(long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	long arguments[6];
	va_list list;
	int ret;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_pidfd_open)
		return real(number, arguments[0], arguments[1], arguments[2], arguments[3],
			    arguments[4], arguments[5]);
	ret = ask((pid_t)arguments[0]);
	errno = ret < 0 ? -ret : errno;
	return ret < 0 ? -1 : ret;
}

#endif
