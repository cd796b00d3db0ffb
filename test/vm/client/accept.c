/* SPDX-License-Identifier: GPL-2.0-only */
/* kfd_accept: says of the simulated device whether it keeps the kernel contract, test by test. This
 * file runs the tests, one process each; what they ask is in the other files. */
#include "accept.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIM     "/sys/kernel/debug/amdgpu_sim/"
#define LIMIT_S 120

static const struct accept_group *const groups[] = {
	&accept_kfd_group,  &accept_memory_group, &accept_event_group,   &accept_queue_group,
	&accept_criu_group, &accept_ptrace_group, &accept_restore_group, &accept_ids_group,
	&accept_drm_group,  &accept_cs_group,     &accept_share_group,   &accept_procfs_group,
};

/* Shared by all processes of a test; the first one to complain is heard. */
struct complaint {
	int taken;
	bool skip;
	char text[400];
};

static struct complaint *complaint;

int accept_fail(const char *file, int line, const char *format, ...)
{
	va_list args;
	int len;

	if (__atomic_exchange_n(&complaint->taken, 1, __ATOMIC_ACQ_REL))
		return -1;
	va_start(args, format);
	len = snprintf(complaint->text, sizeof(complaint->text), "%s:%d: ", file, line);
	vsnprintf(complaint->text + len, sizeof(complaint->text) - (size_t)len, format, args);
	va_end(args);
	return -1;
}

int accept_skip(const char *why)
{
	complaint->skip = true;
	snprintf(complaint->text, sizeof(complaint->text), "%s", why);
	return 0;
}

int peer_start(int (*main)(struct peer *peer), struct peer *ret_peer)
{
	struct peer peer;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	peer.pid = fork();
	if (peer.pid < 0)
		return -errno;
	peer.socket = ends[peer.pid == 0];
	close(ends[peer.pid != 0]);
	if (peer.pid == 0)
		_exit(main(&peer) == 0 ? 0 : 1);
	*ret_peer = peer;
	return 0;
}

int peer_send(struct peer *peer, long number)
{
	return send(peer->socket, &number, sizeof(number), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int peer_receive(struct peer *peer, long *ret_number)
{
	ssize_t n;

	do
		n = recv(peer->socket, ret_number, sizeof(*ret_number), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(*ret_number) ? 0 : -EPIPE;
}

int peer_join(struct peer *peer)
{
	int status;

	close(peer->socket);
	while (waitpid(peer->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int sim_write(const char *file, const char *text)
{
	char path[128];
	int fd, ret = 0;

	snprintf(path, sizeof(path), SIM "%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int sim_read_number(const char *file, long *ret_number)
{
	char path[128];
	FILE *stream;
	int n;

	snprintf(path, sizeof(path), SIM "%s", file);
	stream = fopen(path, "re");
	if (!stream)
		return -errno;
	n = fscanf(stream, "%ld", ret_number);
	fclose(stream);
	return n == 1 ? 0 : -EPROTO;
}

static void test_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		accept_fail("test", 0, "killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		accept_fail("test", 0, "failed without saying why");
}

static bool test_run(const struct accept_test *test)
{
	long violations = -1;
	pid_t pid;

	memset(complaint, 0, sizeof(*complaint));
	if (sim_write("violations", "0") < 0)
		accept_fail("violations", 0, "cannot be cleared: is the simulator loaded?");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		alarm(LIMIT_S);
		_exit(test->run() == 0 ? 0 : 1);
	}
	test_wait(pid);
	/* A test that failed may have left a peer behind, which shall not complain in the next. */
	(void)kill(-pid, SIGKILL);

	if (sim_read_number("violations", &violations) < 0)
		accept_fail("violations", 0, "cannot be read");
	if (violations > 0 && !test->violates)
		accept_fail("violations", 0, "%ld, expected none", violations);
	if (violations == 0 && test->violates)
		accept_fail("violations", 0, "none: the device did not notice");
	(void)sim_write("violations", "0");
	return !complaint->taken;
}

static bool group_is_chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return true;
	}
	return argc == 1;
}

int main(int argc, char **argv)
{
	unsigned int passed = 0, failed = 0;

	complaint = mmap(NULL, sizeof(*complaint), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (complaint == MAP_FAILED)
		return 2;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (!group_is_chosen(groups[i]->name, argc, argv))
			continue;
		for (const struct accept_test *test = groups[i]->tests; test->name; test++) {
			bool ok = test_run(test);

			if (ok && complaint->skip) {
				printf("skip %s: %s\n", test->name, complaint->text);
			} else if (ok) {
				printf("ok %s\n", test->name);
				passed++;
			} else {
				printf("not ok %s: %s\n", test->name, complaint->text);
				failed++;
			}
		}
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed == 0 && passed > 0 ? 0 : 1;
}
