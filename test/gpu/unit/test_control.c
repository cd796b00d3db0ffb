// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include <sys/socket.h>
#include <unistd.h>

#include "control.h"

static const char *ask(const char *text)
{
	static char answer[CONTROL_ANSWER];
	char line[CONTROL_LINE];

	(void)snprintf(line, sizeof(line), "%s", text);
	control_command(&machine.hive, line, answer);
	return answer;
}

static void add_user_queue(struct gpu *gpu, uint32_t doorbell)
{
	struct queue *queue = queue_new(gpu);

	queue->active = true;
	queue->is_user = true;
	queue->space = (struct space){ HUB_MM, 3, 0 };
	queue->doorbell = doorbell;
	queue->size_bytes = 4096;
	gpu->regs[REG(OSSSYS, mmIH_VMID_0_LUT_MM) + 3] = 0x8001;
}

MACHINE_TEST(knobs_are_set)
{
	machine.gpu->sdma[1].busy_until_ns = UINT64_MAX;
	assert_string_equal(ask("speed 1000"), "ok\n");
	assert_int_equal(machine.gpu->copy_bytes_per_s, 1000);
	assert_int_equal(machine.gpu->sdma[1].busy_until_ns, 0);
	assert_string_equal(ask("hang on"), "ok\n");
	assert_true(machine.gpu->hangs);
	assert_string_equal(ask("hang off"), "ok\n");
	assert_false(machine.gpu->hangs);
	assert_true(machine.gpu->expects_reset);
}

MACHINE_TEST(wrong_commands_are_refused)
{
	static const char *const wrong[] = { "",         "spee 1",  "speed",      "speed x",
					     "speed 1 ", "hang",    "hang maybe", "counters now",
					     "links",    "links x", " speed 1" };
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (strncmp(ask(wrong[i]), "error: ", 7))
			fail_msg("accepted: %s", wrong[i]);
	assert_int_equal(machine.gpu->copy_bytes_per_s, 0);
	assert_false(machine.gpu->hangs);
}

MACHINE_TEST(counters_and_violations_are_told)
{
	machine.gpu->sdma[4].copied_bytes = 123;
	report_violation(&machine.gpu->report, "first");
	report_violation(&machine.gpu->report, "second %u", 2);
	assert_non_null(strstr(ask("counters"), "sdma4.bytes=123 "));
	assert_non_null(strstr(ask("counters"), "violations=2\n"));
	assert_string_equal(ask("violations"), "2: first; second 2\n");
	assert_string_equal(ask("forget"), "ok\n");
	assert_string_equal(ask("violations"), "0\n");
}

/* More queues than a line has room for: the answer still ends. */
MACHINE_TEST(a_long_answer_is_cut)
{
	unsigned int i;
	const char *answer;

	for (i = 0; i < QUEUE_MAX - 1; i++)
		add_user_queue(machine.gpu, i);
	answer = ask("queues");
	assert_int_equal(strlen(answer), CONTROL_ANSWER - 1);
	assert_int_equal(answer[CONTROL_ANSWER - 2], '\n');
}

MACHINE_TEST(a_command_is_for_all_gpus_or_for_one)
{
	struct gpu *second = machine_add_gpu();

	assert_string_equal(ask("speed 1000"), "ok\n");
	assert_string_equal(ask("gpu 1 speed 5"), "ok\n");
	assert_int_equal(machine.gpu->copy_bytes_per_s, 1000);
	assert_int_equal(second->copy_bytes_per_s, 5);
	machine.gpu->sdma[2].copies = 3;
	second->sdma[2].copies = 4;
	assert_non_null(strstr(ask("counters"), " sdma2.copies=7 "));
	assert_non_null(strstr(ask("gpu 1 counters"), " sdma2.copies=4 "));
	report_violation(&second->report, "wrong");
	assert_string_equal(ask("violations"), "1: GPU 1: wrong\n");
	assert_string_equal(ask("gpu 0 violations"), "0\n");
	add_user_queue(machine.gpu, 0x500);
	add_user_queue(second, 0x500);
	assert_non_null(strstr(ask("queues"), "idle sdma,gpu=1,"));
	assert_non_null(strstr(ask("gpu 2 counters"), "error: "));
	assert_non_null(strstr(ask("gpu 1"), "error: "));
}

/* The memory of the caller may have any content. */
MACHINE_TEST(each_client_gets_an_answer_for_each_line)
{
	struct pollfd polled[CONTROL_FDS];
	struct control control;
	char answer[64] = "";
	int fds[2];
	unsigned int i;

	memset(&control, 0xa5, sizeof(control));
	control_init(&control);
	for (i = 0; i < CONTROL_CLIENTS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		control.clients[i].fd = fds[0];
		assert_int_equal(write(fds[1], "speed 5\nspee", 12), 12);
		control_prepare(&control, polled);
		assert_int_equal(poll(polled, CONTROL_FDS, 0), 1);
		control_serve(&control, polled, &machine.hive);
		assert_int_equal(read(fds[1], answer, sizeof(answer)), 3);
		assert_int_equal(write(fds[1], "d 6\n", 4), 4);
		control_prepare(&control, polled);
		assert_int_equal(poll(polled, CONTROL_FDS, 0), 1);
		control_serve(&control, polled, &machine.hive);
		assert_int_equal(read(fds[1], answer, sizeof(answer)), 3);
		assert_int_equal(machine.gpu->copy_bytes_per_s, 6);
		(void)close(fds[1]);
		control_prepare(&control, polled);
		assert_int_equal(poll(polled, CONTROL_FDS, 0), 1);
		control_serve(&control, polled, &machine.hive);
		assert_int_equal(control.clients[i].fd, -1);
	}
}
