// SPDX-License-Identifier: GPL-2.0-only
/* Undoes a dump whose CRIU has died. What a dump is, and when it is over, is
 * the dump unit's business. */
#include "dump/dump_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/guard.h"
#include "criu/host.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"

/* Between two questions whether another tracer has let go. */
#define ASK_AGAIN_NS 100000000

/* What is left to be done for a job whose CRIU has died. */
struct rescue {
	struct dump_session *session;
	/* All that CRIU traced, 0: done with. Which of them are processes of KFD only the driver
	 * knows. In memory that rounds share. */
	pid_t *pids;
	size_t num_pids;
	/* The same for the files of the session, behind it. */
	bool *unpaused;
	bool streamed;
};

static bool is_refused(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 && errno == EPERM;
}

/* A debugger has it, or the next dump. Asked again, since it may have been let go of meanwhile;
 * what nobody traces and is refused all the same has ended. */
static bool is_of_another(pid_t pid)
{
	return is_refused(pid) && (proc_is_traced(pid) || (is_refused(pid) && proc_is_traced(pid)));
}

/* Only a tracer may unpause; it need not stop its tracee, and lets it go by ending. Whether some
 * are left that have to be asked again. */
static bool seize(struct rescue *rescue)
{
	bool waiting = false;

	for (size_t i = 0; i < rescue->num_pids; i++) {
		pid_t *pid = &rescue->pids[i];

		if (*pid && is_of_another(*pid))
			waiting = true;
		else
			*pid = 0;
	}
	return waiting;
}

/* Whether anything is left to do. */
static bool unpause_orphans(struct rescue *rescue)
{
	bool waiting = seize(rescue), left = false;

	for (size_t i = 0; i < rescue->session->num_files; i++) {
		if (rescue->unpaused[i])
			continue;
		rescue->unpaused[i] = kfd_unpause(rescue->session->files[i].fd) != -EBADF;
		left |= !rescue->unpaused[i];
	}
	return waiting && left;
}

/* By a process of its own, which lets go of all when it ends: they must not stay traced
 * for as long as it takes until another tracer lets go of one, as nobody here lets them
 * run on after a signal. */
static bool run_round(struct rescue *rescue)
{
	int status = 1;
	pid_t pid;

	/* Whoever has started CRIU may have had it ignored, and then nobody could be waited for. */
	(void)signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid < 0)
		return unpause_orphans(rescue);
	if (!pid)
		_exit(unpause_orphans(rescue) ? 1 : 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status != 0;
}

static void watch_dump(void *argument, int criu)
{
	struct rescue *rescue = argument;
	bool left;

	guard_await_criu(criu);
	left = run_round(rescue);
	if (!rescue->streamed)
		(void)image_dir_remove_state();
	while (left) {
		(void)nanosleep(&(const struct timespec){ .tv_nsec = ASK_AGAIN_NS }, NULL);
		left = run_round(rescue);
	}
}

static size_t shared_size(const struct rescue *rescue)
{
	return rescue->num_pids * sizeof(*rescue->pids) +
	       rescue->session->num_files * sizeof(*rescue->unpaused);
}

static int share(struct rescue *rescue, const struct pid_list *tracees)
{
	void *memory;

	rescue->num_pids = tracees->count;
	memory = mmap(NULL, shared_size(rescue), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	rescue->pids = memory;
	for (size_t i = 0; i < rescue->num_pids; i++)
		rescue->pids[i] = tracees->pids[i];
	rescue->unpaused = (bool *)(rescue->pids + rescue->num_pids);
	return 0;
}

int dump_guard_start(struct dump_session *session)
{
	struct rescue rescue = { .session = session, .streamed = image_is_streamed() };
	_cleanup_free_ int *fds = calloc(session->num_files + 1, sizeof(*fds));
	_cleanup_(pid_list_done) struct pid_list tracees = { 0 };
	const struct guard_duty duty = { watch_dump, &rescue, fds, session->num_files + 1 };
	struct guard old = session->guard;
	int ret;

	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < session->num_files; i++)
		fds[i] = session->files[i].fd;
	fds[session->num_files] = host_image_dir();
	ret = proc_list_tracees(&tracees);
	if (!ret)
		ret = share(&rescue, &tracees);
	if (ret < 0)
		return ret;
	ret = guard_start(&duty, &session->guard);
	(void)munmap(rescue.pids, shared_size(&rescue));
	if (!ret)
		guard_end(&old);
	return ret;
}

void dump_guard_end(struct dump_session *session)
{
	guard_end(&session->guard);
}
