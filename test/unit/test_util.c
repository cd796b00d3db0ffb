// SPDX-License-Identifier: GPL-2.0-only
/* Numbers, descriptors, arrays, complete reads and writes, and the limit of descriptors. */
#include "host.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

UNIT_TEST(switches_are_0_1_no_and_yes_in_any_case)
{
	static const struct {
		const char *text;
		int ret;
		bool on;
	} cases[] = {
		{ "0", 0, false },        { "1", 0, true },           { "NO", 0, false },
		{ "no", 0, false },       { "No", 0, false },         { "YES", 0, true },
		{ "yes", 0, true },       { "yEs", 0, true },         { "", -EINVAL, false },
		{ " 1", -EINVAL, false }, { "1 ", -EINVAL, false },   { "2", -EINVAL, false },
		{ "01", -EINVAL, false }, { "-1", -EINVAL, false },   { "true", -EINVAL, false },
		{ "on", -EINVAL, false }, { "yes!", -EINVAL, false }, { "n", -EINVAL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool on = !cases[i].on;

		print_message("case \"%s\"\n", cases[i].text);
		assert_int_equal(parse_switch(cases[i].text, &on), cases[i].ret);
		if (!cases[i].ret)
			assert_int_equal(on, cases[i].on);
		else
			assert_int_equal(on, !cases[i].on);
	}
}

static const struct {
	const char *text;
	int ret;
	uint64_t bytes;
} sizes[] = {
	{ "0", 0, 0 },
	{ "1", 0, 1 },
	{ "007", 0, 7 },
	{ "4096", 0, 4096 },
	{ "4K", 0, 4096 },
	{ "32M", 0, 32ULL << 20 },
	{ "3G", 0, 3ULL << 30 },
	{ "0G", 0, 0 },
	{ "4k", 0, 4096 },
	{ "2m", 0, 2 << 20 },
	{ "1KB", 0, 1024 },
	{ "2MiB", 0, 2 << 20 },
	{ "2gib", 0, 2ULL << 30 },
	{ "0x10", 0, 16 },
	{ "0X200000", 0, 2 << 20 },
	{ "0x10k", 0, 16384 },
	{ "0xffffffffffffffff", 0, UINT64_MAX },
	{ "0x10000000000000000", -ERANGE, 0 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "18014398509481983K", 0, UINT64_MAX - 1023 },
	{ "17179869183G", 0, UINT64_MAX - ((1ULL << 30) - 1) },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "18014398509481984K", -ERANGE, 0 },
	{ "17592186044416M", -ERANGE, 0 },
	{ "17179869184G", -ERANGE, 0 },
	{ "99999999999999999999999999", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "K", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "1 K", -EINVAL, 0 },
	{ "1B", -EINVAL, 0 },
	{ "1KK", -EINVAL, 0 },
	{ "1Ki", -EINVAL, 0 },
	{ "1KBB", -EINVAL, 0 },
	{ "1K B", -EINVAL, 0 },
	{ "1T", -EINVAL, 0 },
	{ "1.5G", -EINVAL, 0 },
	{ "0x", -EINVAL, 0 },
	{ "0x-1", -EINVAL, 0 },
	{ "0x 1", -EINVAL, 0 },
	{ "1x0", -EINVAL, 0 },
	{ "10h", -EINVAL, 0 },
	{ "ten", -EINVAL, 0 },
};

UNIT_TEST(sizes_are_numbers_with_k_m_or_g)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t bytes = 42;

		print_message("case \"%s\"\n", sizes[i].text);
		assert_int_equal(parse_size(sizes[i].text, &bytes), sizes[i].ret);
		assert_int_equal(bytes, sizes[i].ret ? 42 : sizes[i].bytes);
	}
}

UNIT_TEST(pci_addresses_are_read_as_they_are_printed)
{
	static const struct {
		struct pci_slot slot;
		const char *text;
	} cases[] = {
		{ { 0, 0 }, "0000:00:00.0" },
		{ { 0, 0x6300 }, "0000:63:00.0" },
		{ { 0xabcd, 0xffff }, "abcd:ff:1f.7" },
		{ { 0x10000, 0x0300 }, "10000:03:00.0" },
		{ { 0xffffffff, 0x05fa }, "ffffffff:05:1f.2" },
	};
	static const char *const wrong[] = {
		"",          "63:00",          "63:00.8",           "63:20.0", "0000:63:00.0 ",
		"63:00.0.1", "1:0000:63:00.0", "100000000:63:00.0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pci_slot slot = { 1, 1 };
		char text[PCI_SLOT_TEXT];

		assert_string_equal(pci_slot_print(cases[i].slot, text), cases[i].text);
		assert_int_equal(pci_slot_parse(text, &slot), 0);
		assert_int_equal(slot.domain, cases[i].slot.domain);
		assert_int_equal(slot.location, cases[i].slot.location);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct pci_slot slot;

		print_message("case \"%s\"\n", wrong[i]);
		assert_int_equal(pci_slot_parse(wrong[i], &slot), -EINVAL);
	}
}

UNIT_TEST(an_address_without_domain_is_of_domain_0)
{
	struct pci_slot slot = { 1, 1 };

	assert_int_equal(pci_slot_parse("63:1f.1", &slot), 0);
	assert_int_equal(slot.domain, 0);
	assert_int_equal(slot.location, 0x63f9);
}

UNIT_TEST(reading_gives_all_bytes_or_an_error)
{
	char buffer[8] = "";
	int fd;

	unit_write("file", "0123456789", 10);
	fd = open(unit_path("file"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread_full(fd, buffer, 4, 3), 0);
	assert_memory_equal(buffer, "3456", 4);
	assert_int_equal(pread_full(fd, buffer, 0, 100), 0);
	assert_int_equal(pread_full(fd, buffer, 4, 7), -EIO);
	assert_int_equal(pread_full(fd, buffer, 1, 10), -EIO);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pread_full(fd, buffer, 1, 0), -EBADF);
}

UNIT_TEST(writing_moves_all_bytes_or_is_an_error)
{
	size_t size;
	_cleanup_free_ uint8_t *bytes = NULL;
	int fd;

	fd = open(unit_path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite_full(fd, "abcd", 4, 2), 0);
	assert_int_equal(pwrite_full(fd, "", 0, 50), 0);
	bytes = unit_read("file", &size);
	assert_int_equal(size, 6);
	assert_memory_equal(bytes, "\0\0abcd", 6);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pwrite_full(fd, "x", 1, 0), -EBADF);
}

UNIT_TEST(a_write_to_a_full_disk_is_an_error)
{
	int fd, ret;

	fd = open(unit_path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	unit_limit_files(2);
	ret = pwrite_full(fd, "abcd", 4, 0);
	unit_unlimit_files();
	(void)close(fd);
	assert_int_equal(ret, -EFBIG);
}

/* Signals that interrupt the next calls. */
static int interruptions;

static bool is_interrupted(void)
{
	if (!interruptions)
		return false;
	interruptions--;
	errno = EINTR;
	return true;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
	return is_interrupted() ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat(int directory, const char *path, int flags, mode_t mode)
{
	return is_interrupted() ? -1 : __real_openat(directory, path, flags, mode);
}

UNIT_TEST(an_open_that_signals_interrupt_is_repeated)
{
	struct stat stat;
	int fd;

	interruptions = 2;
	fd = fd_open(unit_path("made"), O_RDWR | O_CREAT | O_EXCL);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(stat.st_mode & 0777, 0600);
	(void)close(fd);
	interruptions = 2;
	fd = fd_open_at(AT_FDCWD, unit_path("made"), O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	(void)close(fd);
	interruptions = 1;
	assert_int_equal(fd_open(unit_path("missing"), O_RDONLY), -ENOENT);
	interruptions = 1;
	assert_int_equal(fd_open_at(AT_FDCWD, unit_path("missing"), O_RDONLY), -ENOENT);
	assert_int_equal(interruptions, 0);
}

UNIT_TEST(duplicates_are_high_and_do_not_survive_exec)
{
	int fd = open("/dev/null", O_RDONLY);
	int copy = fd_dup_above(fd, 300);

	assert_true(copy >= 300);
	assert_true(fcntl(copy, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	(void)close(copy);
	(void)close(fd);
	assert_int_equal(fd_dup_above(fd, 300), -EBADF);
}

UNIT_TEST(moving_up_closes_the_old_number)
{
	int old = open("/dev/null", O_RDONLY);
	_cleanup_close_ int fd = old;

	assert_int_equal(fd_move_up(&fd, 300), 0);
	assert_true(fd >= 300);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(old, F_GETFD), -1);
}

UNIT_TEST(moving_up_beyond_the_limit_leaves_the_descriptor)
{
	int old = open("/dev/null", O_RDONLY);
	_cleanup_close_ int fd = old;

	assert_true(fd_move_up(&fd, 1 << 30) < 0);
	assert_int_equal(fd, old);
	assert_true(fcntl(fd, F_GETFD) >= 0);
}

struct limit_case {
	const char *what;
	struct rlimit before;
	bool as_user;
	uint64_t highest;
	rlim_t raised;
};

/* Not 0: the step that failed. */
static int raise_and_restore(const struct limit_case *limit)
{
	const int highest = (int)limit->highest;
	const rlim_t hard =
		limit->raised > limit->before.rlim_max ? limit->raised : limit->before.rlim_max;
	struct rlimit old = { 0 }, now;

	if (setrlimit(RLIMIT_NOFILE, &limit->before) < 0)
		return 1;
	if (limit->as_user && geteuid() == 0 && setuid(65534) < 0)
		return 2;
	if (nofile_raise(limit->highest, &old) < 0)
		return 3;
	if (getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_cur != limit->raised ||
	    now.rlim_max != hard)
		return 4;
	if (limit->raised > limit->highest && fcntl(0, F_DUPFD, highest) != highest)
		return 5;
	nofile_restore(&old);
	return getrlimit(RLIMIT_NOFILE, &now) < 0 || memcmp(&now, &limit->before, sizeof(now)) ? 6
											       : 0;
}

/* A child changes its own limit, so that other tests keep theirs. */
static void assert_raised(const struct limit_case *limit)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(raise_and_restore(limit));
	print_message("case %s\n", limit->what);
	assert_int_equal(unit_wait(pid), 0);
}

UNIT_TEST(the_limit_of_descriptors_is_raised_and_restored)
{
	static const struct limit_case cases[] = {
		{ "a low limit", { 64, 4096 }, false, 1000, 1001 },
		{ "a limit that is high enough", { 2048, 4096 }, false, 2047, 2048 },
		{ "a user's, to the hard limit", { 64, 128 }, true, 1000, 128 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_raised(&cases[i]);
}

static int raise_own_hard_limit(void)
{
	const struct rlimit low = { 64, 128 }, high = { 64, 129 };

	if (setrlimit(RLIMIT_NOFILE, &low) < 0 || setrlimit(RLIMIT_NOFILE, &high) < 0)
		return UNIT_REFUSED;
	return 0;
}

UNIT_TEST(root_raises_the_hard_limit)
{
	static const struct limit_case hard = { "root", { 64, 128 }, false, 1000, 1001 };
	pid_t pid = fork();

	if (!pid)
		_exit(raise_own_hard_limit());
	assert_int_equal(unit_wait(pid), 0);
	assert_raised(&hard);
}

UNIT_TEST(an_ioctl_that_fails_gives_its_errno)
{
	int pipes[2], waiting = -1;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "abc", 3), 3);
	assert_int_equal(xioctl(pipes[0], FIONREAD, &waiting), 0);
	assert_int_equal(waiting, 3);
	assert_int_equal(xioctl(pipes[0], TIOCGWINSZ, &waiting), -ENOTTY);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	assert_int_equal(xioctl(pipes[0], FIONREAD, &waiting), -EBADF);
}

UNIT_TEST(taken_descriptors_and_pointers_are_not_cleaned_up)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char *memory = malloc(1);
	int taken_fd = take_fd(&fd);
	char *taken = take_ptr(&memory);

	assert_int_equal(fd, -1);
	assert_null(memory);
	fd_close(&fd);
	cleanup_free(&memory);
	assert_true(fcntl(taken_fd, F_GETFD) >= 0);
	fd_close(&taken_fd);
	assert_int_equal(fcntl(taken_fd, F_GETFD), -1);
	cleanup_free(&taken);
}

UNIT_TEST(closing_keeps_errno_and_leaves_no_descriptor)
{
	int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)close(closed);
	errno = ENOSPC;
	fd_close(&closed);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(closed, -1);
	fd_close(&closed);
	assert_int_equal(errno, ENOSPC);
}

static unsigned int reallocations;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	reallocations++;
	return __real_realloc(memory, size);
}

/* Moving an array for each element would take a time with the square of their number. */
UNIT_TEST(arrays_grow_by_what_is_appended)
{
	_cleanup_free_ uint32_t *numbers = NULL;
	size_t count = 0;

	reallocations = 0;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(array_append(&numbers, &count, sizeof(i), &i), 0);
	assert_int_equal(count, 100);
	assert_int_equal(reallocations, 8);
	assert_int_equal(array_grow(&numbers, 1000, sizeof(*numbers)), 0);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(numbers[i], i);
}

UNIT_TEST(an_array_too_large_for_memory_stays_as_it_was)
{
	static uint32_t number;
	uint32_t *numbers = &number;

	assert_int_equal(array_grow(&numbers, SIZE_MAX / 2, sizeof(number)), -ENOMEM);
	assert_ptr_equal(numbers, &number);
}

static int return_argument(void *argument)
{
	return *(int *)argument;
}

static int count_descriptors(void *argument)
{
	(void)argument;
	for (int fd = 0; fd < 100; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			return -EMFILE;
	}
	return 0;
}

static int __attribute__((noreturn)) wait_forever(void *argument)
{
	(void)argument;
	for (;;)
		(void)pause();
}

static int abort_silently(void *argument)
{
	(void)argument;
	return raise(SIGKILL);
}

UNIT_TEST(a_child_gives_its_result_and_leaves_nothing)
{
	int results[] = { 0, -EINVAL, -ENOTRECOVERABLE }, next = dup(0), ret;

	(void)close(next);
	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		ret = 1;
		assert_int_equal(child_run(return_argument, &results[i], 5, &ret), 0);
		assert_int_equal(ret, results[i]);
	}
	assert_int_equal(child_run(count_descriptors, NULL, 5, &ret), 0);
	assert_int_equal(ret, 0);
	ret = dup(0);
	assert_int_equal(ret, next);
	(void)close(ret);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

UNIT_TEST(a_child_that_dies_or_hangs_is_an_error)
{
	int ret = 1;

	assert_int_equal(child_run(abort_silently, NULL, 5, &ret), -ECHILD);
	assert_int_equal(child_run(wait_forever, NULL, 0, &ret), -ETIME);
	assert_int_equal(ret, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
}

/* Memory that a job shares with its tracer. */
struct traced_job {
	pid_t pid;
	uint32_t is_traced;
};

static int wait_for_tracer(void *argument)
{
	struct traced_job *job = argument;

	__atomic_store_n(&job->pid, (pid_t)syscall(SYS_getpid), __ATOMIC_RELEASE);
	wait_forever(NULL);
}

/* In a process that is no descendant's parent: traces the job, and never looks at its end. */
static void __attribute__((noreturn)) trace(struct traced_job *job)
{
	pid_t pid;

	while (!(pid = __atomic_load_n(&job->pid, __ATOMIC_ACQUIRE)))
		(void)sched_yield();
	__atomic_store_n(&job->is_traced, ptrace(PTRACE_SEIZE, pid, 0, 0) == 0, __ATOMIC_RELEASE);
	(void)pause();
	_exit(0);
}

/* A tracee that was killed stays until its tracer has seen the end, as a job stays that sleeps in
 * the kernel. CRIU would wait for such a child, or take its end for that of a task. */
UNIT_TEST(a_job_that_cannot_be_ended_is_no_child)
{
	struct traced_job *job =
		mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pipe_fds[2], ret = 1;
	pid_t tracer, between;

	assert_int_equal(pipe(pipe_fds), 0);
	between = fork();
	if (!between) {
		tracer = fork();
		if (!tracer)
			trace(job);
		(void)!write(pipe_fds[1], &tracer, sizeof(tracer));
		_exit(0);
	}
	assert_int_equal(read(pipe_fds[0], &tracer, sizeof(tracer)), sizeof(tracer));
	assert_int_equal(waitpid(between, NULL, 0), between);
	assert_int_equal(child_run(wait_for_tracer, job, 2, &ret), -ETIME);
	assert_int_equal(__atomic_load_n(&job->is_traced, __ATOMIC_ACQUIRE), 1);
	/* The job is still there. */
	assert_int_equal(kill(job->pid, 0), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(kill(tracer, SIGKILL), 0);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	(void)munmap(job, sizeof(*job));
}

static int tell_pid_and_wait(void *argument)
{
	__atomic_store_n((pid_t *)argument, (pid_t)syscall(SYS_getpid), __ATOMIC_RELEASE);
	wait_forever(NULL);
}

UNIT_TEST(a_child_dies_with_its_parent)
{
	pid_t *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct pollfd end = { .events = POLLIN };
	pid_t parent = fork();
	int ret;

	if (!parent) {
		(void)child_run(tell_pid_and_wait, child, 600, &ret);
		_exit(0);
	}
	while (!__atomic_load_n(child, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	end.fd = (int)syscall(SYS_pidfd_open, *child, 0);
	assert_true(end.fd >= 0);
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_int_equal(poll(&end, 1, 20000), 1);
	(void)close(end.fd);
	(void)munmap(child, sizeof(*child));
}
