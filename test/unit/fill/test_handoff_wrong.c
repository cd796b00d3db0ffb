// SPDX-License-Identifier: GPL-2.0-only
/* Tests wrong messages of tasks: CRIU's main process fails the faulty task, and serves the others.
 */
#include "fake_gpu.h"

#include "handoff_task.h"

#include <sys/socket.h>

#include "fill/handoff_message.h"

/* A wrong message. A list of messages ends with kind 0, where the task exits. */
struct sent {
	enum message_kind kind;
	size_t length;
	size_t num_fds;
	uint32_t spoil_magic;
	uint16_t spoil_version;
	uint32_t spoil_length;
	uint64_t num_bos;
	uint8_t streamed;
	/* The size of the first BO. */
	uint64_t size;
};

/* The kernel passes so many descriptors with a message. */
#define FDS_MAX 253

/* handoff_message_send() makes a valid header, so a detour over another pair spoils it. */
static int send_spoilt(int to, struct message *message, const struct sent *sent, int fd)
{
	int pair[2], fds[FDS_MAX], ret;
	ssize_t size;

	for (size_t i = 0; i < sent->num_fds; i++)
		fds[i] = fd;
	message->job.num_bos = sent->num_bos;
	message->job.streamed = sent->streamed;
	if (sent->kind == MESSAGE_BOS)
		message->bos[0].size = sent->size;
	if (!sent->spoil_magic && !sent->spoil_version && !sent->spoil_length)
		return handoff_message_send(to, message, sent->kind, sent->length, fds,
					    sent->num_fds);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return -errno;
	ret = handoff_message_send(pair[0], message, sent->kind, sent->length, NULL, 0);
	size = ret < 0 ? ret : recv(pair[1], message, sizeof(*message), 0);
	message->header.magic ^= sent->spoil_magic;
	message->header.version ^= sent->spoil_version;
	message->header.length += sent->spoil_length;
	return size < 0 || send(to, message, (size_t)size, MSG_NOSIGNAL) < 0 ? -EIO : 0;
}

static pid_t fork_faulty_task(const struct sent *list)
{
	pid_t pid = fork();
	static struct message message;
	int pair[2], fd, listen_sock;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	/* handoff_new() has stored the tasks' end of the common pair last. */
	listen_sock = fdstore_get(unit_last_stored());
	fd = memfd_create("any", MFD_CLOEXEC);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    handoff_message_send(listen_sock, &message, MESSAGE_HELLO, 0, &pair[1], 1) < 0)
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
} wrong_lists[] = {
	{ "ends after hello", -ENODATA, { { 0 } } },
	{ "ends after a job", -ENODATA, { JOB(3) } },
	{ "ends among its BOs", -ENODATA, { JOB(300), BOS(250) } },
	{ "ends without END", -ENODATA, { JOB(2), BOS(2) } },
	{ "more BOs than announced", -EPROTO, { JOB(2), BOS(3), END } },
	{ "BOs without descriptors",
	  -EPROTO,
	  { JOB(2), { .kind = MESSAGE_BOS, .length = 2 * sizeof(struct message_bo) }, END } },
	{ "no BOs", -EPROTO, { JOB(2), BOS(0), END } },
	{ "an end among BOs", -EPROTO, { JOB(2), BOS(1), END } },
	{ "BOs without a job", -EPROTO, { BOS(2), END } },
	{ "too many BOs", -EPROTO, { JOB(1ull << 60), END } },
	{ "BOs that never arrive", -ENODATA, { JOB(1 << 26) } },
	{ "a size that is no multiple of a page", -EPROTO, { JOB(1), BOS_OF(1, PAGE + 1), END } },
	{ "a BO larger than a file", -EPROTO, { JOB(1), BOS_OF(1, 1ull << 63), END } },
	{ "BOs that together are larger than a file",
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
	{ "more descriptors than a message may have",
	  -EPROTO,
	  { { .kind = MESSAGE_END, .num_fds = FDS_MAX } } },
	{ "a job that is too short",
	  -EPROTO,
	  { { .kind = MESSAGE_JOB, .length = 8, .num_fds = 1 }, END } },
	{ "a job with two images",
	  -EPROTO,
	  { { .kind = MESSAGE_JOB, .length = sizeof(struct message_job), .num_fds = 2 }, END } },
	{ "a job with two images and a BO",
	  -EPROTO,
	  { { .kind = MESSAGE_JOB,
	      .length = sizeof(struct message_job),
	      .num_fds = 2,
	      .num_bos = 1 },
	    BOS_OF(1, PAGE),
	    END } },
	{ "another kind", -EPROTO, { { .kind = 77 }, END } },
	{ "another magic", -EPROTO, { { .kind = MESSAGE_END, .spoil_magic = 1 } } },
	{ "another version", -EPROTO, { { .kind = MESSAGE_END, .spoil_version = 1 } } },
	{ "another length", -EPROTO, { { .kind = MESSAGE_END, .spoil_length = 1 } } },
};

static void a_task_that_sends_wrong_messages_fails_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong_lists); i++) {
		struct handoff *handoff = new_handoff();
		struct set *set = make_task_set(0);
		pid_t faulty, honest;

		print_message("case %s\n", wrong_lists[i].name);
		unit_forget_lines();
		faulty = fork_faulty_task(wrong_lists[i].list);
		honest = fork_task(handoff, &set->job, 1);
		assert_int_equal(handoff_listen(handoff), 0);
		assert_int_equal(wait_for(faulty), 0);
		assert_int_equal(wait_for(honest), 0);
		assert_int_equal(handoff_finish(handoff, faulty), wrong_lists[i].ret);
		assert_logged("Error (amdgpu_plugin): ", "did not arrive");
		assert_int_equal(handoff_finish(handoff, honest), 0);
		assert_true(bos_are_filled(set));
		handoff_free(handoff);
		free_set(set);
	}
}

/* Sends wrong messages over the common pair, hands its contents over, and sends a second HELLO. */
static pid_t fork_wrong_sender(const struct handoff *handoff, const struct content_job *jobs)
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
	    handoff_message_send(listen_sock, &message, MESSAGE_END, 0, NULL, 0) ||
	    handoff_message_send(listen_sock, &message, MESSAGE_HELLO, 0, NULL, 0) ||
	    handoff_message_send(listen_sock, &message, MESSAGE_HELLO, 0, fds, 2) ||
	    handoff_send(handoff, jobs, 1) ||
	    handoff_message_send(listen_sock, &message, MESSAGE_HELLO, 0, fds, 1))
		_exit(1);
	_exit(0);
}

static void wrong_messages_over_the_common_pair_are_ignored(void **state)
{
	struct handoff *handoff = new_handoff();
	struct set *sets[2] = { make_task_set(0), make_task_set(1) };
	pid_t wrong_sender = fork_wrong_sender(handoff, &sets[0]->job), honest;

	(void)state;
	assert_int_equal(wait_for(wrong_sender), 0);
	honest = fork_task(handoff, &sets[1]->job, 1);
	assert_int_equal(handoff_listen(handoff), 0);
	assert_int_equal(wait_for(honest), 0);
	assert_int_equal(handoff_finish(handoff, honest), 0);
	/* The first HELLO of a task counts. */
	assert_int_equal(handoff_finish(handoff, wrong_sender), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(bos_are_filled(sets[i]));
		free_set(sets[i]);
	}
	handoff_free(handoff);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fake_gpu_begin, fake_gpu_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_task_that_sends_wrong_messages_fails_alone),
		TEST(wrong_messages_over_the_common_pair_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
