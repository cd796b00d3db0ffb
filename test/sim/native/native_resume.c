// SPDX-License-Identifier: GPL-2.0-only
/* RESUME of another process, the one call of the driver that acts on a different process. Each KFD
 * process answers on a socket whose name is its pid. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "native.h"

#define CRIU_OP 0xc0384b22u

/* An abstract name leaves no file behind. */
static socklen_t name_of(pid_t pid, struct sockaddr_un *ret_name)
{
	*ret_name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(ret_name->sun_path + 1, sizeof(ret_name->sun_path) - 1,
					    "amdgpu_sim.%d", pid));
}

static s32 resume_here(struct native *native)
{
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_RESUME, .pid = (u32)native->pid };
	struct sim_process *process = sim_os_process_find(args.pid);
	s32 ret;

	if (!process)
		return -ESRCH;
	ret = (s32)sim_kfd_ioctl(process, CRIU_OP, (u64)(uintptr_t)&args);
	sim_os_process_put(process);
	return ret;
}

/* Uses datagrams: a thread that waits in accept() would hold a descriptor number that the program
 * wants. */
static void serve(void *arg)
{
	struct native *native = arg;

	for (;;) {
		struct sockaddr_un from;
		socklen_t length = sizeof(from);
		s32 ret;

		if (recvfrom(native->resume_socket, &ret, sizeof(ret), 0, (struct sockaddr *)&from,
			     &length) != sizeof(ret))
			continue;
		ret = resume_here(native);
		(void)sendto(native->resume_socket, &ret, sizeof(ret), 0, (struct sockaddr *)&from,
			     length);
	}
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), kept;

	if (fd < 0)
		return -errno;
	kept = native_fd_keep(fd);
	(void)NATIVE_REAL(close)(fd);
	return kept;
}

/* Without a socket, no other process can resume this one. */
void native_resume_init(struct native *native)
{
	native->resume_socket = new_socket();
}

/* Before this call the socket has no name, so requests are refused: no KFD process exists. */
void native_resume_serve(struct native *native)
{
	struct sockaddr_un name;
	socklen_t length = name_of(native->pid, &name);

	if (native->resume_socket >= 0 &&
	    bind(native->resume_socket, (struct sockaddr *)&name, length) == 0)
		native_threads_start(serve, native, "amdgpu_sim rsm");
}

/* The kernel does not report that a datagram will never come. The pidfd @process shows that the
 * other process died before its answer. */
static bool is_answered(int fd, int process)
{
	struct pollfd either[] = { { .fd = fd, .events = POLLIN },
				   { .fd = process, .events = POLLIN } };

	while (poll(either, 2, -1) < 0 && errno == EINTR)
		;
	return either[0].revents & POLLIN;
}

/* The kernel gives the asking socket a name for the answer. */
static int ask(int fd, int process, pid_t pid)
{
	struct sockaddr_un name, own = { .sun_family = AF_UNIX };
	socklen_t length = name_of(pid, &name);
	s32 answer = 0;

	if (bind(fd, (struct sockaddr *)&own, sizeof(own.sun_family)) < 0 ||
	    connect(fd, (struct sockaddr *)&name, length) < 0)
		return -ESRCH;
	if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer) ||
	    !is_answered(fd, process) || recv(fd, &answer, sizeof(answer), 0) != sizeof(answer))
		return -ESRCH;
	return answer;
}

int native_resume_elsewhere(struct native *native, pid_t pid)
{
	int fd, process, ret;

	ret = sim_fault(&native->sim.faults, "kfd", "CRIU_RESUME");
	if (ret < 0)
		return ret;
	process = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		return -ESRCH;
	fd = new_socket();
	ret = fd < 0 ? fd : ask(fd, process, pid);
	if (fd >= 0)
		(void)NATIVE_REAL(close)(fd);
	(void)NATIVE_REAL(close)(process);
	return ret;
}
