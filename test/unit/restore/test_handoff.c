// SPDX-License-Identifier: GPL-2.0-only
/* Tasks hand contents to the main process. This program is the main process, and forks the tasks.
 */
#include "fake_gpu.h"

#include "handoff_task.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "criu/host.h"
#include "criu_stub.h"
#include "restore/handoff.h"
#include "restore/handoff_message.h"

#define TASKS_MAX 4

/* pthread_create() fails after so many threads. Negative: it never fails. */
static atomic_int threads_allowed;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
		   void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");

	if (!threads_allowed)
		return EAGAIN;
	threads_allowed -= threads_allowed > 0;
	return real(thread, attributes, function, argument);
}

static atomic_bool unshare_fails;

int unshare(int flags)
{
	if (!unshare_fails)
		return (int)syscall(SYS_unshare, flags);
	errno = EPERM;
	return -1;
}

/* While @on, reads of images wait. pthread_join() by thread @by ends that. */
static struct {
	atomic_bool on;
	atomic_uint reads;
	pthread_t by;
} hold;

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	hold.reads++;
	while (hold.on)
		(void)usleep(1000);
	return syscall(SYS_pread64, fd, bytes, size, offset);
}

int pthread_join(pthread_t thread, void **result)
{
	int (*real)(pthread_t, void **) = dlsym(RTLD_NEXT, "pthread_join");

	if (hold.on && pthread_equal(pthread_self(), hold.by))
		hold.on = false;
	return real(thread, result);
}

static int begin(void **state)
{
	threads_allowed = -1;
	unshare_fails = false;
	memset(&hold, 0, sizeof(hold));
	return fake_gpu_begin(state);
}

static void free_handoff_at(struct handoff **handoff)
{
	handoff_free(*handoff);
}

#define _cleanup_handoff_ _cleanup_(free_handoff_at)

#define TEST(name) TEST_WITH(name, begin, fake_gpu_end)

TEST(a_task_in_other_namespaces_is_served)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	_cleanup_set_ struct set *set = make_task_set(0);
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
			_exit(errno == EPERM ? 0xff : errno);
		_exit(-handoff_send(handoff, &set->job, 1));
	}
	assert_int_equal(handoff_listen(handoff), 0);
	if (wait_for(pid) == -0xff) {
		handoff_free(handoff);
		free_set(set);
		skip();
	}
	assert_int_equal(handoff_finish(handoff, pid), 0);
	assert_true(bos_are_filled(set));
}

TEST(bos_without_a_gpu_fail_the_task)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	struct message message = { 0 };
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(-handoff_message_send(host_fetch_fd(criu_stub_count_stored() - 1), &message,
					    MESSAGE_BOS, NULL, 0));
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), -EPROTO);
}

TEST(a_task_that_sends_nothing_fails)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();

	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(handoff_finish(handoff, getpid()), -EPROTO);
	assert_logged("Error (amdgpu_plugin): ", "did not arrive");
}

/* Sends what a task sends before it dies: a JOB of @num_bos BOs, and @num_sent of the BOs. */
static pid_t fork_dying_task(uint64_t num_bos, size_t num_sent)
{
	static struct message message;
	int socket, fds[MESSAGE_FDS_MAX];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	socket = fdstore_get(unit_last_stored());
	for (size_t i = 0; i < num_sent; i++)
		fds[i] = memfd_create("any", MFD_CLOEXEC);
	message.job.num_bos = num_bos;
	if (handoff_message_send(socket, &message, MESSAGE_JOB, fds, num_sent > 0) < 0)
		_exit(1);
	message.bos[0] = (struct content_bo){ 0 };
	if (num_sent && handoff_message_send(socket, &message, MESSAGE_BOS, fds, num_sent) < 0)
		_exit(1);
	_exit(0);
}

TEST(a_task_that_dies_fails_alone)
{
	static const struct {
		uint64_t num_bos;
		size_t num_sent;
	} cases[] = { { 3, 0 }, { 300, 250 }, { 2, 2 }, { 1u << 26, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_handoff_ struct handoff *handoff = new_handoff();
		_cleanup_set_ struct set *set = make_task_set(0);
		pid_t dying, other;

		print_message("case %zu\n", i);
		unit_forget_lines();
		dying = fork_dying_task(cases[i].num_bos, cases[i].num_sent);
		other = fork_task(handoff, &set->job, 1);
		assert_int_equal(handoff_listen(handoff), 0);
		assert_int_equal(wait_for(dying), 0);
		assert_int_equal(wait_for(other), 0);
		assert_int_equal(handoff_finish(handoff, dying), -ENODATA);
		assert_logged("Error (amdgpu_plugin): ", "did not arrive");
		assert_int_equal(handoff_finish(handoff, other), 0);
		assert_true(bos_are_filled(set));
	}
}

/* Tasks with more messages than a socket holds fail and do not block. */
static void expect_sends_fail(struct handoff *handoff)
{
	_cleanup_set_ struct set *set = new_set(0);
	pid_t early, late;

	for (unsigned int i = 0; i < 500; i++)
		add(set, PAGE);
	make_image(set, 0);
	write_image(set);
	early = fork_task(handoff, &set->job, 1);
	threads_allowed = 0;
	assert_int_equal(handoff_listen(handoff), -EAGAIN);
	/* If the early task sent everything before the socket closed, only handoff_finish() fails.
	 */
	(void)wait_for(early);
	late = fork_task(handoff, &set->job, 1);
	assert_true(wait_for(late) < 0);
	assert_true(handoff_finish(handoff, early) < 0);
	handoff_free(handoff);
}

TEST(tasks_fail_if_the_listener_cannot_start)
{
	expect_sends_fail(new_handoff());
}

/* 0: this process could enter its own mount namespace again, as CRIU enters that of a container.
 * The kernel refuses if another thread shares the root and working directory. */
static int enter_mount_namespace(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return setns(fd, CLONE_NEWNS) < 0 ? errno : 0;
}

/* The result of entering. Runs in a child, as the process may lose its root that way. */
static int enter_while_listening(bool loads)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	_cleanup_set_ struct set *set = make_task_set(0);
	pid_t task;
	int ret;

	hold.on = loads;
	if (handoff_listen(handoff) < 0)
		return EAGAIN;
	task = fork_task(handoff, &set->job, 1);
	while (loads && !hold.reads)
		(void)usleep(1000);
	ret = enter_mount_namespace();
	hold.on = false;
	if (wait_for(task) < 0 || handoff_finish(handoff, task) < 0)
		return EIO;
	return ret;
}

static void expect_entered(bool loads)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(enter_while_listening(loads));
	assert_int_equal(wait_for(pid), 0);
}

TEST(mount_namespaces_can_be_entered_while_contents_are_loaded)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(enter_mount_namespace());
	/* Only root may enter a mount namespace. */
	if (wait_for(pid) < 0)
		skip();
	expect_entered(false);
	expect_entered(true);
}

/* A process in a PID namespace of its own, which ends with this process. Returns its pid here, or a
 * negative number: only root may make such a namespace. */
static pid_t start_pod(void)
{
	pid_t init = -1;
	int line[2];

	assert_int_equal(pipe(line), 0);
	if (!fork()) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (syscall(SYS_unshare, CLONE_NEWPID) == 0)
			init = fork();
		if (!init)
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		else
			(void)!write(line[1], &init, sizeof(init));
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(line[0], &init, sizeof(init)), sizeof(init));
	(void)close(line[0]);
	(void)close(line[1]);
	return init;
}

static ino_t namespace_of_children(void)
{
	struct stat stat = { 0 };

	(void)fstatat(AT_FDCWD, "/proc/self/ns/pid_for_children", &stat, 0);
	return stat.st_ino;
}

/* As CRIU does with the namespace of a pod, in which its tasks are to be. */
static int enter_pod(pid_t init)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", init);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || setns(fd, CLONE_NEWPID) < 0 ? -errno : 0;
}

/* Runs in a child, whose children are in another PID namespace afterwards. */
static int load_in_pod(pid_t init)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	_cleanup_set_ struct set *set = make_task_set(0);
	ino_t entered;
	pid_t task;

	if (enter_pod(init) < 0)
		return ENOENT;
	entered = namespace_of_children();
	if (handoff_listen(handoff) < 0)
		return EAGAIN;
	if (!entered || namespace_of_children() != entered)
		return EXDEV;
	task = fork_task(handoff, &set->job, 1);
	return wait_for(task) < 0 || handoff_finish(handoff, task) < 0 ? EIO : 0;
}

/* For such a process the kernel starts no threads. */
TEST(contents_of_tasks_in_an_entered_pid_namespace_are_loaded)
{
	pid_t init = start_pod(), pid;

	if (init < 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(load_in_pod(init));
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(kill(init, SIGKILL), 0);
}

TEST(a_listener_that_cannot_unshare_its_root_fails)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	_cleanup_set_ struct set *set = make_task_set(0);
	pid_t task;

	unshare_fails = true;
	assert_int_equal(handoff_listen(handoff), -EPERM);
	task = fork_task(handoff, &set->job, 1);
	assert_true(wait_for(task) < 0);
	assert_true(handoff_finish(handoff, task) < 0);
}

/* CRIU's helper processes inherit all of its descriptors. */
TEST(an_inherited_listen_sock_blocks_no_task)
{
	struct handoff *handoff = new_handoff();
	pid_t helper = unit_start_sleeper();

	expect_sends_fail(handoff);
	unit_end_sleeper(helper);
}

TEST(the_main_thread_does_the_work_of_a_worker_that_cannot_start)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	_cleanup_set_ struct set *set = make_task_set(0);
	pid_t pid;

	pid = fork_task(handoff, &set->job, 1);
	threads_allowed = 1;
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "cannot start more threads");
	assert_true(bos_are_filled(set));
}

/* If the restore fails for another reason, CRIU does not resume the tasks. */
TEST(loads_are_cancelled_without_a_line)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	struct set *sets[2] = { make_task_set(0), make_task_set(1) };

	assert_int_equal(handoff_listen(handoff), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(wait_for(fork_task(handoff, &sets[i]->job, 1)), 0);
	unit_forget_lines();
	handoff_free(handoff);
	assert_int_equal(unit_count_lines(""), 0);
	for (unsigned int i = 0; i < 2; i++)
		free_set(sets[i]);
	handoff = new_handoff();
	handoff_free(NULL);
}

/* The main process loads eight GPUs at once; this is one more. */
#define GPUS 9

/* Each worker reads its image page by page. The last worker waits for the pool. */
static void start_more_gpus_than_the_pool_allows(struct handoff *handoff, struct set *sets[GPUS])
{
	struct content_job jobs[GPUS];

	for (uint32_t i = 0; i < GPUS; i++) {
		sets[i] = make_task_set(i);
		jobs[i] = sets[i]->job;
	}
	hold.on = true;
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(fork_task(handoff, jobs, GPUS - 1)), 0);
	while (hold.reads < GPUS - 1)
		(void)usleep(1000);
	assert_int_equal(wait_for(fork_task(handoff, &jobs[GPUS - 1], 1)), 0);
	handoff_stop_listening(handoff);
	hold.by = pthread_self();
}

TEST(cancelled_workers_end_after_their_current_step)
{
	struct content_settings small = settings;
	struct content_totals totals = { 0 };
	_cleanup_handoff_ struct handoff *handoff = NULL;
	struct set *sets[GPUS];

	small.staging_bytes = PAGE;
	assert_int_equal(handoff_new(&small, &totals, &handoff), 0);
	start_more_gpus_than_the_pool_allows(handoff, sets);
	/* Each worker finishes only its current read. */
	assert_int_equal(hold.reads, GPUS - 1);
	for (unsigned int i = 0; i < GPUS; i++)
		free_set(sets[i]);
}

TEST(signal_settings_do_not_change)
{
	_cleanup_handoff_ struct handoff *handoff = new_handoff();
	_cleanup_set_ struct set *set = make_task_set(0);
	struct sigaction child_before, child_after;
	sigset_t before = { 0 }, after = { 0 };
	pid_t pid;

	assert_int_equal(sigaction(SIGCHLD, NULL, &child_before), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	pid = fork_task(handoff, &set->job, 1);
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), 0);
	assert_int_equal(sigaction(SIGCHLD, NULL, &child_after), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_ptr_equal(child_before.sa_handler, child_after.sa_handler);
}
