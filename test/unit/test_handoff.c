// SPDX-License-Identifier: GPL-2.0-only
/* Contents handoff_task from tasks, which are processes of their own here too, to the main process,
 * which is this one: every byte, and what comes of either end that does not do its part. */
#include "content_set.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "restore/handoff.h"
#include "restore/message.h"

#define TASKS_MAX 4

/* As many threads may start as this says; negative: any number. */
static atomic_int threads_left;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
		   void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");

	if (!threads_left)
		return EAGAIN;
	threads_left -= threads_left > 0;
	return real(thread, attributes, function, argument);
}

/* Each call fails as long as this says so. */
static atomic_bool cannot_unshare;

int unshare(int flags)
{
	if (!cannot_unshare)
		return (int)syscall(SYS_unshare, flags);
	errno = EPERM;
	return -1;
}

/* Reads of images wait until this thread waits for another. */
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
	threads_left = -1;
	cannot_unshare = false;
	memset(&hold, 0, sizeof(hold));
	return fake_gpu_begin(state);
}

static const uint64_t sizes[] = { 3 * PAGE, MIB, PAGE, MIB / 4 + PAGE, 0 };

/* A task with one GPU, whose image is whole. */
static struct set *make_task_set(uint32_t number)
{
	struct set *set = make_set(sizes);

	set->job.gpu_id += number;
	set->job.render_minor += number % 2;
	write_image(set);
	return set;
}

static void add_checksums(struct set *set)
{
	struct set *filled = make_set(sizes);

	fill(filled);
	assert_int_equal(content_save(&filled->job, 1, &settings), 0);
	for (size_t i = 0; i < set->num_bos; i++)
		set->bos[i].checksum = filled->bos[i].checksum;
	set->job.has_checksums = true;
	free_set(filled);
}

/* In a process of its own, as a task does: the status is what the hand-over returned. */
static pid_t fork_task(const struct handoff *handoff, const struct content_job *jobs,
		       size_t num_jobs)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(-handoff_send(handoff, jobs, num_jobs));
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static struct handoff *new_parallel(void)
{
	struct handoff *handoff;

	assert_int_equal(handoff_new(&settings, &handoff), 0);
	return handoff;
}

static void a_task_s_contents_are_filled_in(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *set = make_task_set(0);
	pid_t pid;

	(void)state;
	add_checksums(set);
	pid = fork_task(handoff, &set->job, 1);
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), 0);
	assert_true(bos_are_filled(set));
	assert_logged("GPU 0x0100: loaded 4 BOs");
	handoff_free(handoff);
	free_set(set);
}

static void a_tree_of_tasks_is_served_at_once(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *sets[TASKS_MAX][2];
	pid_t pids[TASKS_MAX];

	(void)state;
	assert_int_equal(handoff_listen(handoff), 0);
	for (uint32_t i = 0; i < TASKS_MAX; i++) {
		struct content_job jobs[2];

		for (uint32_t gpu_index = 0; gpu_index < 2; gpu_index++) {
			sets[i][gpu_index] = make_task_set(2 * i + gpu_index);
			jobs[gpu_index] = sets[i][gpu_index]->job;
		}
		pids[i] = fork_task(handoff, jobs, 2);
	}
	for (unsigned int i = 0; i < TASKS_MAX; i++)
		assert_int_equal(wait_for(pids[i]), 0);
	/* In whatever order they are asked for. */
	for (unsigned int i = TASKS_MAX; i-- > 0;)
		assert_int_equal(handoff_finish(handoff, pids[i]), 0);
	for (unsigned int i = 0; i < 2 * TASKS_MAX; i++) {
		assert_true(bos_are_filled(sets[i / 2][i % 2]));
		free_set(sets[i / 2][i % 2]);
	}
	handoff_free(handoff);
}

/* More than fit in a message, or in the limit of descriptors that this process has. */
static void many_bos_are_handed_over(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *set = calloc(1, sizeof(*set));
	struct rlimit limit, after;
	pid_t pid;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned int i = 0; i < 600; i++)
		add(set, PAGE);
	make_image(set, 0);
	write_image(set);
	after = limit;
	after.rlim_cur = 700;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &after), 0);
	pid = fork_task(handoff, &set->job, 1);
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), 0);
	assert_true(bos_are_filled(set));
	handoff_free(handoff);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_int_equal(after.rlim_cur, 700);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	free_set(set);
}

static void namespaces_are_not_in_the_way(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *set = make_task_set(0);
	pid_t pid;

	(void)state;
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
	handoff_free(handoff);
	free_set(set);
}

static void wrong_contents_are_found_before_the_task_runs(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *set = make_task_set(0);
	pid_t pid;

	(void)state;
	add_checksums(set);
	set->bos[1].checksum++;
	pid = fork_task(handoff, &set->job, 1);
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), -EBADMSG);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "BO 1 of 4");
	handoff_free(handoff);
	free_set(set);
}

static void a_task_that_handed_over_nothing_is_an_error(void **state)
{
	struct handoff *handoff = new_parallel();

	(void)state;
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(handoff_finish(handoff, getpid()), -EPROTO);
	assert_logged("Error (amdgpu_plugin): ", "did not arrive");
	handoff_free(handoff);
}

/* What a task sends beside the rules; it ends where the list does. */
struct sent {
	enum message_kind kind;
	size_t length;
	size_t num_fds;
	uint32_t spoil_magic;
	uint16_t spoil_version;
	uint32_t spoil_length;
	uint64_t num_bos;
	uint8_t streamed;
	uint8_t has_images;
	/* Of the first BO. */
	uint64_t size;
};

/* As many as the kernel passes at once. */
#define FDS_MAX 253

/* message_send() makes good headers: this one is spoilt afterwards. */
static int send_spoilt(int to, struct message *message, const struct sent *sent, int fd)
{
	int pair[2], fds[FDS_MAX], ret;
	ssize_t size;

	for (size_t i = 0; i < sent->num_fds; i++)
		fds[i] = fd;
	message->job.num_bos = sent->num_bos;
	message->job.has_image = sent->has_images ? sent->has_images : 1;
	message->job.streamed = sent->streamed;
	if (sent->kind == MESSAGE_BOS)
		message->bos[0].size = sent->size;
	if (!sent->spoil_magic && !sent->spoil_version && !sent->spoil_length)
		return message_send(to, message, sent->kind, sent->length, fds, sent->num_fds);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return -errno;
	ret = message_send(pair[0], message, sent->kind, sent->length, NULL, 0);
	size = ret < 0 ? ret : recv(pair[1], message, sizeof(*message), 0);
	message->header.magic ^= sent->spoil_magic;
	message->header.version ^= sent->spoil_version;
	message->header.length += sent->spoil_length;
	return size < 0 || send(to, message, (size_t)size, MSG_NOSIGNAL) < 0 ? -EIO : 0;
}

static pid_t fork_liar(const struct sent *list)
{
	pid_t pid = fork();
	static struct message message;
	int pair[2], fd, listen_sock;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	/* The store's ids are the numbers of its copies; the listen_sock was put there last. */
	listen_sock = fdstore_get(unit_last_stored());
	fd = memfd_create("any", MFD_CLOEXEC);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    message_send(listen_sock, &message, MESSAGE_HELLO, 0, &pair[1], 1) < 0)
		_exit(1);
	(void)close(pair[1]);
	for (; list->kind; list++) {
		if (send_spoilt(pair[0], &message, list, fd) < 0)
			break;
	}
	_exit(0);
}

#define JOB(bos)                                                                         \
	{                                                                                \
		.kind = MESSAGE_JOB, .length = sizeof(struct message_job), .num_fds = 1, \
		.num_bos = (bos)                                                         \
	}
#define BOS(count)                                                                  \
	{                                                                           \
		.kind = MESSAGE_BOS, .length = (count) * sizeof(struct message_bo), \
		.num_fds = (count)                                                  \
	}
#define BOS_OF(count, first)                                                        \
	{                                                                           \
		.kind = MESSAGE_BOS, .length = (count) * sizeof(struct message_bo), \
		.num_fds = (count), .size = (first)                                 \
	}
#define END                         \
	{                           \
		.kind = MESSAGE_END \
	}

static const struct {
	const char *name;
	int ret;
	struct sent list[5];
} lies[] = {
	{ "ends after hello", -ENODATA, { { 0 } } },
	{ "ends after a job", -ENODATA, { JOB(3) } },
	{ "ends among its BOs", -ENODATA, { JOB(300), BOS(250) } },
	{ "ends without saying so", -ENODATA, { JOB(2), BOS(2) } },
	{ "more BOs than announced", -EPROTO, { JOB(2), BOS(3), END } },
	{ "BOs without descriptors",
	  -EPROTO,
	  { JOB(2), { .kind = MESSAGE_BOS, .length = 2 * sizeof(struct message_bo) }, END } },
	{ "no BOs", -EPROTO, { JOB(2), BOS(0), END } },
	{ "an end among BOs", -EPROTO, { JOB(2), BOS(1), END } },
	{ "BOs without a job", -EPROTO, { BOS(2), END } },
	{ "BOs beyond measure", -EPROTO, { JOB(1ull << 60), END } },
	{ "BOs that never come", -ENODATA, { JOB(1 << 26) } },
	{ "no whole page", -EPROTO, { JOB(1), BOS_OF(1, PAGE + 1), END } },
	{ "more than a file", -EPROTO, { JOB(1), BOS_OF(1, 1ull << 63), END } },
	{ "more than a file together",
	  -EPROTO,
	  { JOB(2), BOS_OF(1, 1ull << 62), BOS_OF(1, 1ull << 62), END } },
	{ "a stream",
	  -EPROTO,
	  { { .kind = MESSAGE_JOB,
	      .length = sizeof(struct message_job),
	      .num_fds = 1,
	      .num_bos = 1,
	      .streamed = 1 },
	    BOS_OF(1, PAGE),
	    END } },
	{ "more descriptors than there is room for",
	  -EPROTO,
	  { { .kind = MESSAGE_END, .num_fds = FDS_MAX } } },
	{ "a job that is too short",
	  -EPROTO,
	  { { .kind = MESSAGE_JOB, .length = 8, .num_fds = 1 }, END } },
	{ "a job with two images",
	  -EPROTO,
	  { { .kind = MESSAGE_JOB, .length = sizeof(struct message_job), .num_fds = 2 }, END } },
	{ "a job with two images that says so",
	  -EPROTO,
	  { { .kind = MESSAGE_JOB,
	      .length = sizeof(struct message_job),
	      .num_fds = 2,
	      .num_bos = 1,
	      .has_images = 2 },
	    BOS_OF(1, PAGE),
	    END } },
	{ "another kind", -EPROTO, { { .kind = 77 }, END } },
	{ "another magic", -EPROTO, { { .kind = MESSAGE_END, .spoil_magic = 1 } } },
	{ "another version", -EPROTO, { { .kind = MESSAGE_END, .spoil_version = 1 } } },
	{ "another length", -EPROTO, { { .kind = MESSAGE_END, .spoil_length = 1 } } },
};

static void what_a_task_sends_beside_the_rules_fails_it_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct handoff *handoff = new_parallel();
		struct set *set = make_task_set(0);
		pid_t liar, honest;

		print_message("case %s\n", lies[i].name);
		unit_forget_lines();
		liar = fork_liar(lies[i].list);
		honest = fork_task(handoff, &set->job, 1);
		assert_int_equal(handoff_listen(handoff), 0);
		assert_int_equal(wait_for(liar), 0);
		assert_int_equal(wait_for(honest), 0);
		assert_int_equal(handoff_finish(handoff, liar), lies[i].ret);
		assert_logged("Error (amdgpu_plugin): ", "did not arrive");
		assert_int_equal(handoff_finish(handoff, honest), 0);
		assert_true(bos_are_filled(set));
		handoff_free(handoff);
		free_set(set);
	}
}

/* What comes to the gate and is no hello, or a second one, which could be meant to be
 * taken for the first. */
static pid_t fork_intruder(const struct handoff *handoff, const struct content_job *jobs)
{
	static struct message message;
	pid_t pid = fork();
	int listen_sock, fds[2];

	assert_true(pid >= 0);
	if (pid)
		return pid;
	listen_sock = fdstore_get(unit_last_stored());
	fds[0] = fds[1] = memfd_create("any", MFD_CLOEXEC);
	if (send(listen_sock, "garbage", 7, 0) != 7 || send(listen_sock, "", 0, 0) != 0 ||
	    message_send(listen_sock, &message, MESSAGE_END, 0, NULL, 0) ||
	    message_send(listen_sock, &message, MESSAGE_HELLO, 0, NULL, 0) ||
	    message_send(listen_sock, &message, MESSAGE_HELLO, 0, fds, 2) ||
	    handoff_send(handoff, jobs, 1) ||
	    message_send(listen_sock, &message, MESSAGE_HELLO, 0, fds, 1))
		_exit(1);
	_exit(0);
}

static void what_is_no_hello_ends_nothing(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *sets[2] = { make_task_set(0), make_task_set(1) };
	pid_t intruder = fork_intruder(handoff, &sets[0]->job), honest;

	(void)state;
	assert_int_equal(wait_for(intruder), 0);
	honest = fork_task(handoff, &sets[1]->job, 1);
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(honest), 0);
	assert_int_equal(handoff_finish(handoff, honest), 0);
	/* Its first hello is the one that counts. */
	assert_int_equal(handoff_finish(handoff, intruder), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(bos_are_filled(sets[i]));
		free_set(sets[i]);
	}
	handoff_free(handoff);
}

/* It fails, however much it has to say, and does not wait for ever. */
static void expect_nobody_hears(struct handoff *handoff)
{
	struct set *set = calloc(1, sizeof(*set));
	pid_t early, late;

	for (unsigned int i = 0; i < 500; i++)
		add(set, PAGE);
	make_image(set, 0);
	write_image(set);
	early = fork_task(handoff, &set->job, 1);
	threads_left = 0;
	assert_int_equal(handoff_listen(handoff), -EAGAIN);
	/* Who was quick enough to send all into nothing will miss its contents later. */
	(void)wait_for(early);
	late = fork_task(handoff, &set->job, 1);
	assert_true(wait_for(late) < 0);
	assert_true(handoff_finish(handoff, early) < 0);
	handoff_free(handoff);
	free_set(set);
}

static void a_task_that_nobody_hears_is_told(void **state)
{
	(void)state;
	expect_nobody_hears(new_parallel());
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

/* In a process of its own, which may lose its root that way: the result of entering. */
static int enter_while_listening(bool loads)
{
	struct handoff *handoff = new_parallel();
	struct set *set = make_task_set(0);
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
	handoff_free(handoff);
	free_set(set);
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

static void mount_namespaces_can_be_entered_while_contents_are_loaded(void **state)
{
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(enter_mount_namespace());
	/* Only root may enter any. */
	if (wait_for(pid) < 0)
		skip();
	expect_entered(false);
	expect_entered(true);
}

static void a_listener_that_would_share_the_root_does_not_listen(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *set = make_task_set(0);
	pid_t task;

	(void)state;
	cannot_unshare = true;
	assert_int_equal(handoff_listen(handoff), -EPERM);
	task = fork_task(handoff, &set->job, 1);
	assert_true(wait_for(task) < 0);
	assert_true(handoff_finish(handoff, task) < 0);
	handoff_free(handoff);
	free_set(set);
}

/* As CRIU's helpers have it, which are forked with all that it has open. */
static void a_copy_of_the_gate_keeps_nobody_waiting(void **state)
{
	struct handoff *handoff = new_parallel();
	pid_t helper = unit_start_sleeper();

	(void)state;
	expect_nobody_hears(handoff);
	unit_end_sleeper(helper);
}

static void a_worker_that_cannot_start_fails_its_task(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *set = make_task_set(0);
	pid_t pid;

	(void)state;
	pid = fork_task(handoff, &set->job, 1);
	threads_left = 1;
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), -EAGAIN);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "thread");
	handoff_free(handoff);
	free_set(set);
}

/* A restore that fails for another reason: nobody asks for the contents. */
static void what_nobody_asks_for_is_given_up(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *sets[2] = { make_task_set(0), make_task_set(1) };

	(void)state;
	assert_int_equal(handoff_listen(handoff), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(wait_for(fork_task(handoff, &sets[i]->job, 1)), 0);
	unit_forget_lines();
	handoff_free(handoff);
	assert_int_equal(unit_count_lines(""), 0);
	for (unsigned int i = 0; i < 2; i++)
		free_set(sets[i]);
	handoff = new_parallel();
	handoff_free(handoff);
	handoff_free(NULL);
}

/* As many as are served at once, and one more. */
#define GPUS 9

/* Each reads its image page by page; the last one waits until there is room for it. */
static void start_more_than_there_is_room_for(struct handoff *handoff, struct set *sets[GPUS])
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

static void whoever_has_room_ends_as_early_as_who_waits_for_it(void **state)
{
	struct content_settings small = settings;
	struct handoff *handoff;
	struct set *sets[GPUS];

	(void)state;
	small.staging_bytes = PAGE;
	assert_int_equal(handoff_new(&small, &handoff), 0);
	start_more_than_there_is_room_for(handoff, sets);
	handoff_free(handoff);
	/* No more than what each was at. */
	assert_int_equal(hold.reads, GPUS - 1);
	for (unsigned int i = 0; i < GPUS; i++)
		free_set(sets[i]);
}

static void signals_stay_as_they_were(void **state)
{
	struct handoff *handoff = new_parallel();
	struct set *set = make_task_set(0);
	struct sigaction child_before, child_after;
	sigset_t before = { 0 }, after = { 0 };
	pid_t pid;

	(void)state;
	assert_int_equal(sigaction(SIGCHLD, NULL, &child_before), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	pid = fork_task(handoff, &set->job, 1);
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(handoff_finish(handoff, pid), 0);
	handoff_free(handoff);
	assert_int_equal(sigaction(SIGCHLD, NULL, &child_after), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_ptr_equal(child_before.sa_handler, child_after.sa_handler);
	free_set(set);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, fake_gpu_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_task_s_contents_are_filled_in),
		TEST(a_tree_of_tasks_is_served_at_once),
		TEST(many_bos_are_handed_over),
		TEST(namespaces_are_not_in_the_way),
		TEST(wrong_contents_are_found_before_the_task_runs),
		TEST(a_task_that_handed_over_nothing_is_an_error),
		TEST(what_a_task_sends_beside_the_rules_fails_it_alone),
		TEST(what_is_no_hello_ends_nothing),
		TEST(a_task_that_nobody_hears_is_told),
		TEST(mount_namespaces_can_be_entered_while_contents_are_loaded),
		TEST(a_listener_that_would_share_the_root_does_not_listen),
		TEST(a_copy_of_the_gate_keeps_nobody_waiting),
		TEST(a_worker_that_cannot_start_fails_its_task),
		TEST(what_nobody_asks_for_is_given_up),
		TEST(whoever_has_room_ends_as_early_as_who_waits_for_it),
		TEST(signals_stay_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
