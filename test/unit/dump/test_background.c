// SPDX-License-Identifier: GPL-2.0-only
/* Contents that are saved while CRIU goes on with its dump. No copy begins before the plugin waits
 * for it, so these tests decide what comes first without a clock. */
#include "dump_tree.h"

#include <linux/kcmp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/statvfs.h>

#include "session/dump_session.h"

#define BO_SIZE 0x300000u

/* Of a CRIU that calls DUMP_FINISH. */
extern char cr_plugin_ctl[];
__attribute__((visibility("default"))) char cr_plugin_ctl[16 * (HOOK_MAX + 1)];

static struct {
	pthread_mutex_t lock;
	pthread_cond_t released;
	/* No copy begins, until this thread waits for contents. Under the lock. */
	bool held;
	/* Or until this thread joins a thread. */
	bool ends_in_join;
	bool unshare_fails;
	/* Free bytes of the file system; 0: as many as there are. */
	uint64_t room;
	/* A limit of processes leaves little room. */
	bool threads_are_few;
	/* A signal that a process gets before its contents are saved; 0: none. */
	int signal;
	pid_t receiver;
} test;

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *end);
int __real_pthread_join(pthread_t thread, void **ret_result);
int __real_sem_wait(sem_t *limit);
int __real_unshare(int flags);
int __real_fstatvfs(int fd, struct statvfs *stat);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *end);
int __wrap_pthread_join(pthread_t thread, void **ret_result);
int __wrap_sem_wait(sem_t *limit);
int __wrap_unshare(int flags);
int __wrap_fstatvfs(int fd, struct statvfs *stat);
bool __wrap_cgroup_room_has_threads(void);

static void set_held(bool held)
{
	(void)pthread_mutex_lock(&test.lock);
	test.held = held;
	(void)pthread_cond_broadcast(&test.released);
	(void)pthread_mutex_unlock(&test.lock);
}

static void hold_gpu(void)
{
	set_held(true);
}

static void release_gpu(bool now)
{
	if (now && gettid() == getpid())
		set_held(false);
}

/* The thread of a GPU waits until few enough others are copied. */
int __wrap_sem_wait(sem_t *limit)
{
	(void)pthread_mutex_lock(&test.lock);
	while (test.held)
		(void)pthread_cond_wait(&test.released, &test.lock);
	(void)pthread_mutex_unlock(&test.lock);
	return __real_sem_wait(limit);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *end)
{
	release_gpu(true);
	return __real_pthread_cond_timedwait(cond, mutex, end);
}

int __wrap_pthread_join(pthread_t thread, void **ret_result)
{
	release_gpu(test.ends_in_join);
	return __real_pthread_join(thread, ret_result);
}

int __wrap_unshare(int flags)
{
	if (!test.unshare_fails)
		return __real_unshare(flags);
	errno = EPERM;
	return -1;
}

int __wrap_fstatvfs(int fd, struct statvfs *stat)
{
	int ret = __real_fstatvfs(fd, stat);

	if (test.signal)
		(void)kill(test.receiver, test.signal);
	if (!ret && test.room)
		stat->f_bfree = test.room / stat->f_frsize;
	return ret;
}

bool __wrap_cgroup_room_has_threads(void)
{
	return !test.threads_are_few;
}

static int begin_held(void **state)
{
	memset(&test, 0, sizeof(test));
	(void)pthread_mutex_init(&test.lock, NULL);
	(void)pthread_cond_init(&test.released, NULL);
	(void)unsetenv("AMDGPU_PARALLEL_DUMP");
	return begin(state);
}

/* A test that fails leaves a dump. */
static int end_held(void **state)
{
	release_gpu(true);
	end_dump(-1);
	return end_tree(state);
}

static struct fake_process *make_full_process(void)
{
	struct fake_process *process = make_process();

	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, BO_SIZE, 0x100000000);
	gpu.wants_all_paused = true;
	return process;
}

/* Whether the images of process @id are complete: their contents have checksums. */
static bool is_complete(int id)
{
	bool complete = false;
	_cleanup_kfd_ CriuKfd *kfd = NULL;

	if (!unit_exists(unit_path("amdgpu-kfd-%d.img", id) + strlen(unit_directory()) + 1))
		return false;
	assert_int_equal(image_read_kfd(id, &kfd), 0);
	for (size_t i = 0; i < kfd->n_device_entries; i++) {
		if (kfd->device_entries[i]->gpu_id == GPU_B)
			complete = kfd->device_entries[i]->has_contents_checksum;
	}
	return complete;
}

#define HELD(name) TEST_WITH(name, begin_held, end_held)

/* Another plugin may keep CRIU from calling DUMP_DEVICES_LATE of this one. */
HELD(without_that_hook_criu_waits_at_the_end)
{
	struct fake_process *process = make_full_process();
	_cleanup_close_ int fd = open_kfd_of(process);

	begin_dump(fd, 5);
	assert_int_equal(finish_dump(0), 0);
	assert_true(is_complete(5));
	assert_int_equal(process->paused, 0);
	end_dump(0);
}

/* CRIU fails before the end, and then calls DUMP_FINISH with its error, or not at all. */
HELD(a_dump_that_fails_meanwhile_saves_no_more)
{
	for (unsigned int with_finish = 0; with_finish < 2; with_finish++) {
		struct fake_process *process = make_full_process();
		_cleanup_close_ int fd = open_kfd_of(process);

		gpu.submissions = 0;
		hold_gpu();
		start_dump();
		test.ends_in_join = false;
		assert_int_equal(dump_file(fd, 5), 0);
		test.ends_in_join = true;
		if (with_finish) {
			assert_int_equal(finish_dump(-1), 0);
			assert_false(test.held);
		}
		end_dump(-1);
		assert_int_equal(gpu.objects, 0);
		assert_int_equal(gpu.submissions, 0);
		assert_int_equal(process->paused, 0);
		assert_int_equal(process->calls[KFD_UNPAUSE], 1);
		assert_int_equal(unit_count_errors(), 0);
		assert_false(unit_exists("amdgpu-kfd-5.img"));
		forget_processes();
	}
}

/* CRIU fails with images that are complete, and then calls DUMP_FINISH with its error, or not at
 * all. */
HELD(a_dump_that_fails_later_has_no_state)
{
	for (unsigned int with_finish = 0; with_finish < 2; with_finish++) {
		struct fake_process *process = make_full_process();
		_cleanup_close_ int fd = open_kfd_of(process);

		begin_dump(fd, 5);
		assert_int_equal(complete_dump(), 0);
		assert_true(is_complete(5));
		if (with_finish)
			assert_int_equal(finish_dump(-1), 0);
		end_dump(-1);
		assert_int_equal(process->paused, 0);
		assert_int_equal(process->calls[KFD_UNPAUSE], 1);
		assert_false(unit_exists("amdgpu-kfd-5.img"));
		assert_int_equal(unit_count_errors(), 0);
		forget_processes();
	}
}

static unsigned int count_threads(bool sharing_root)
{
	DIR *stream = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned int count = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || tid == getpid())
			continue;
		count += !sharing_root || syscall(SYS_kcmp, getpid(), tid, KCMP_FS, 0, 0) == 0;
	}
	(void)closedir(stream);
	return count;
}

/* CRIU enters mount namespaces meanwhile. */
HELD(no_thread_shares_the_root_of_criu)
{
	struct fake_process *process = make_full_process();
	/* A sanitizer may have a thread. */
	unsigned int before = count_threads(true), all = count_threads(false);
	_cleanup_close_ int fd = open_kfd_of(process);

	if (syscall(SYS_kcmp, getpid(), getpid(), KCMP_FS, 0, 0) != 0)
		skip();
	hold_gpu();
	begin_dump(fd, 5);
	assert_true(count_threads(false) > all);
	assert_int_equal(count_threads(true), before);
	assert_int_equal(complete_dump(), 0);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	assert_true(is_complete(5));
}

/* The dump of a process with contents is complete when CRIU has shown its file. */
static void assert_criu_waits(void)
{
	_cleanup_close_ int fd = open_kfd_of(make_full_process());

	begin_dump(fd, 5);
	assert_true(is_complete(5));
	assert_int_equal(complete_dump(), 0);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	forget_processes();
}

HELD(criu_waits_if_a_thread_cannot_leave_its_root)
{
	test.unshare_fails = true;
	assert_criu_waits();
	assert_logged("Warn  (amdgpu_plugin): ", "CRIU waits", strerror(EPERM));
}

/* CRIU may need the room for processes of its own. */
HELD(criu_waits_where_a_limit_of_processes_leaves_little_room)
{
	test.threads_are_few = true;
	assert_criu_waits();
}

/* With AMDGPU_FORCE=1, processes may have dma-bufs of one object. */
HELD(criu_waits_if_the_user_wants_that)
{
	static const char *const settings[][2] = { { "AMDGPU_PARALLEL_DUMP", "0" },
						   { "AMDGPU_FORCE", "1" } };

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		print_message("case %s\n", settings[i][0]);
		assert_int_equal(setenv(settings[i][0], settings[i][1], 1), 0);
		assert_criu_waits();
		(void)unsetenv(settings[i][0]);
		assert_int_equal(unit_count_lines("CRIU waits"), 0);
	}
}

static void make_tree(void)
{
	for (size_t i = 0; i < 2; i++) {
		struct fake_process *process = make_process();

		add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000 + (i << 24), BO_SIZE,
		       0x100000000 + (i << 24));
		join_tree(&members[i], process, 1);
	}
	gpu.wants_all_paused = true;
}

HELD(processes_are_saved_side_by_side)
{
	make_tree();
	hold_gpu();
	begin_dump(members[0].fds[0], 5);
	assert_int_equal(dump_file(members[1].fds[0], 6), 0);
	assert_true(test.held);
	assert_false(is_complete(5) || is_complete(6));
	assert_int_equal(complete_dump(), 0);
	assert_int_equal(finish_dump(0), 0);
	end_dump(0);
	for (size_t i = 0; i < 2; i++) {
		assert_true(is_complete(5 + (int)i));
		assert_int_equal(members[i].process->calls[KFD_UNPAUSE], 1);
	}
}

/* The first process fails, and the contents of the second, which wait, are given up. */
HELD(one_failure_ends_all)
{
	make_tree();
	gpu.fail_at = 1;
	gpu.fail_errno = EACCES;
	begin_dump(members[0].fds[0], 5);
	assert_int_equal(dump_file(members[1].fds[0], 6), 0);
	assert_fails(complete_dump());
	end_dump(-1);
	assert_int_equal(unit_count_errors(), 1);
	for (size_t i = 0; i < 2; i++) {
		assert_false(is_complete(5 + (int)i));
		assert_int_equal(members[i].process->paused, 0);
	}
}

/* The room is enough for each process, and not for both. */
HELD(room_is_counted_for_all_that_are_saved)
{
	make_tree();
	test.room = BO_SIZE + BO_SIZE / 2;
	hold_gpu();
	begin_dump(members[0].fds[0], 5);
	assert_int_equal(dump_file(members[1].fds[0], 6), -ENOSPC);
	assert_logged("Error (amdgpu_plugin): ", "6 MiB", "4 MiB");
	test.ends_in_join = true;
	assert_int_equal(finish_dump(-1), 0);
	end_dump(-1);
}

/* A member that blocks all signals, as CRIU's parasite does, so that they stay pending. */
static void join_blocked(struct member *member, struct fake_process *process)
{
	sigset_t all, none;

	(void)sigfillset(&all);
	assert_int_equal(sigprocmask(SIG_BLOCK, &all, &none), 0);
	join_tree(member, process, 1);
	assert_int_equal(sigprocmask(SIG_SETMASK, &none, NULL), 0);
}

/* CRIU has saved the signals of the task by then, and saves its timers later. */
HELD(a_signal_that_criu_misses_is_told)
{
	static const struct {
		int before, meanwhile;
		bool told;
	} cases[] = {
		{ 0, SIGALRM, true },
		{ SIGUSR1, SIGALRM, true },
		{ SIGALRM, SIGALRM, false },
		/* It has no handler, so nothing is lost. */
		{ 0, SIGCHLD, false },
		{ 0, 0, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process = make_full_process();
		struct member member;

		print_message("case %zu\n", i);
		unit_forget_lines();
		join_blocked(&member, process);
		if (cases[i].before)
			assert_int_equal(kill(member.pid, cases[i].before), 0);
		test.receiver = member.pid;
		test.signal = cases[i].meanwhile;
		begin_dump(member.fds[0], 5);
		end_dump(-1);
		assert_int_equal(
			unit_logged("Warn  (amdgpu_plugin): ", "got signal 14 (Alarm", NULL),
			cases[i].told);
		assert_int_equal(unit_count_lines("got signal"), cases[i].told);
		leave_tree(&member);
		forget_processes();
	}
}
