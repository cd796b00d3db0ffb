// SPDX-License-Identifier: GPL-2.0-only
#include "control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpu.h"
#include "ih.h"

struct answer {
	char *text;
	size_t length;
};

static __attribute__((format(printf, 2, 3))) void add(struct answer *answer, const char *format,
						      ...)
{
	size_t room = CONTROL_ANSWER - answer->length;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(answer->text + answer->length, room, format, arguments);
	va_end(arguments);
	if (n > 0)
		answer->length += (size_t)n < room ? (size_t)n : room - 1;
}

static int parse_number(const char *text, int base, uint64_t *ret_value)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, base);
	if (errno || end == text || *end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

/* Each command has a function that does it to the GPUs it is for, and adds to the answer. */

/* Copies that are not complete yet are so now, or a test could not end a copy that takes hours. */
static int set_speed(const struct hive *gpus, const char *argument, struct answer *answer)
{
	uint64_t speed;
	unsigned int i, engine;
	int ret = parse_number(argument, 10, &speed);

	if (ret < 0)
		return ret;
	for (i = 0; i < gpus->num_nodes; i++) {
		gpus->nodes[i]->copy_bytes_per_s = speed;
		for (engine = 0; engine < gpus->nodes[i]->asic->sdma_engines; engine++)
			gpus->nodes[i]->sdma[engine].busy_until_ns = 0;
	}
	add(answer, "ok");
	return 0;
}

static int parse_switch(const char *text, bool *ret_is_on)
{
	*ret_is_on = strcmp(text, "on") == 0;
	return *ret_is_on || strcmp(text, "off") == 0 ? 0 : -EINVAL;
}

static int set_hang(const struct hive *gpus, const char *argument, struct answer *answer)
{
	bool hangs;
	unsigned int i;
	int ret = parse_switch(argument, &hangs);

	if (ret < 0)
		return ret;
	for (i = 0; i < gpus->num_nodes; i++) {
		gpus->nodes[i]->hangs = hangs;
		gpus->nodes[i]->expects_reset |= hangs;
	}
	add(answer, "ok");
	return 0;
}

static int set_links(const struct hive *gpus, const char *argument, struct answer *answer)
{
	bool are_on;
	int ret = parse_switch(argument, &are_on);

	if (ret < 0)
		return ret;
	for (unsigned int i = 0; i < gpus->num_nodes; i++)
		gpu_set_links(gpus->nodes[i], are_on);
	add(answer, "ok");
	return 0;
}

static void add_counters(struct gpu_counters *sum, const struct gpu_counters *counters)
{
	sum->pm4_packets += counters->pm4_packets;
	sum->aql_packets += counters->aql_packets;
	sum->dispatches += counters->dispatches;
	sum->interrupts += counters->interrupts;
	sum->faults += counters->faults;
	sum->resets += counters->resets;
}

static void tell_engine(const struct hive *gpus, unsigned int engine, struct answer *answer)
{
	struct sdma_engine sum = { 0 };
	unsigned int i;

	for (i = 0; i < gpus->num_nodes; i++) {
		const struct sdma_engine *sdma = &gpus->nodes[i]->sdma[engine];

		sum.packets += sdma->packets;
		sum.copies += sdma->copies;
		sum.copied_bytes += sdma->copied_bytes;
	}
	add(answer,
	    "sdma%u.packets=%" PRIu64 " sdma%u.copies=%" PRIu64 " sdma%u.bytes=%" PRIu64 " ",
	    engine, sum.packets, engine, sum.copies, engine, sum.copied_bytes);
}

static int tell_counters(const struct hive *gpus, const char *argument, struct answer *answer)
{
	struct gpu_counters sum = { 0 };
	unsigned int i, violations = 0;

	(void)argument;
	for (i = 0; i < gpus->nodes[0]->asic->sdma_engines; i++)
		tell_engine(gpus, i, answer);
	for (i = 0; i < gpus->num_nodes; i++) {
		add_counters(&sum, &gpus->nodes[i]->counters);
		violations += gpus->nodes[i]->report.num_violations;
	}
	add(answer,
	    "pm4.packets=%" PRIu64 " aql.packets=%" PRIu64 " dispatches=%" PRIu64
	    " interrupts=%" PRIu64 " faults=%" PRIu64 " resets=%" PRIu64 " violations=%u",
	    sum.pm4_packets, sum.aql_packets, sum.dispatches, sum.interrupts, sum.faults,
	    sum.resets, violations);
	return 0;
}

static int tell_violations(const struct hive *gpus, const char *argument, struct answer *answer)
{
	unsigned int i, n, count = 0;
	const char *between = ": ";

	(void)argument;
	for (i = 0; i < gpus->num_nodes; i++)
		count += gpus->nodes[i]->report.num_violations;
	add(answer, "%u", count);
	for (i = 0; i < gpus->num_nodes; i++) {
		const struct report *report = &gpus->nodes[i]->report;

		for (n = 0; n < report->num_violations && n < REPORT_KEPT; n++) {
			add(answer, "%s%s%s", between, report->name, report->kept[n]);
			between = "; ";
		}
	}
	return 0;
}

static int forget_violations(const struct hive *gpus, const char *argument, struct answer *answer)
{
	(void)argument;
	for (unsigned int i = 0; i < gpus->num_nodes; i++)
		report_forget(&gpus->nodes[i]->report);
	add(answer, "ok");
	return 0;
}

static const char *state_of(const struct queue *queue)
{
	if (queue->is_faulted)
		return "faulted";
	return queue->rptr == queue->wptr ? "idle" : "busy";
}

static void tell_queue(const struct gpu *gpu, const struct queue *queue, struct answer *answer)
{
	static const char *const kinds[] = {
		[QUEUE_SDMA] = "sdma", [QUEUE_PM4] = "pm4", [QUEUE_AQL] = "aql"
	};

	add(answer,
	    "%s%s,gpu=%u,pasid=%u,vmid=%u,doorbell=%#x,read=%#" PRIx64 ",written=%#" PRIx64 ",%s",
	    answer->length ? " " : "", kinds[queue->kind], gpu->node,
	    ih_pasid_of(gpu, &queue->space), queue->space.vmid, queue->doorbell, queue->rptr,
	    queue->wptr, state_of(queue));
}

static int tell_queues(const struct hive *gpus, const char *argument, struct answer *answer)
{
	unsigned int i, n;

	(void)argument;
	for (i = 0; i < gpus->num_nodes; i++)
		for (n = 0; n < QUEUE_MAX; n++) {
			const struct queue *queue = &gpus->nodes[i]->queues[n];

			if (queue->active && queue->is_user)
				tell_queue(gpus->nodes[i], queue, answer);
		}
	if (!answer->length)
		add(answer, "none");
	return 0;
}

static const struct {
	const char *name;
	bool has_argument;
	int (*run)(const struct hive *gpus, const char *argument, struct answer *answer);
} commands[] = {
	{ "speed", true, set_speed },           { "hang", true, set_hang },
	{ "links", true, set_links }, /* for the next driver that loads */
	{ "counters", false, tell_counters },   { "violations", false, tell_violations },
	{ "forget", false, forget_violations }, { "queues", false, tell_queues },
};

static int run_command(const struct hive *gpus, char *line, struct answer *answer)
{
	char *argument = strchr(line, ' ');
	size_t i;

	if (argument)
		*argument++ = '\0';
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, line) == 0 && commands[i].has_argument == !!argument)
			return commands[i].run(gpus, argument, answer);
	return -EINVAL;
}

/* "gpu N COMMAND" is for GPU N alone. */
static int run_for_one(const struct hive *hive, char *line, struct answer *answer)
{
	struct hive one = { .num_nodes = 1 };
	char *command = strchr(line, ' ');
	uint64_t node;

	if (!command)
		return -EINVAL;
	*command++ = '\0';
	if (parse_number(line, 10, &node) < 0 || node >= hive->num_nodes)
		return -EINVAL;
	one.nodes[0] = hive->nodes[node];
	return run_command(&one, command, answer);
}

void control_command(const struct hive *hive, char *line, char *text)
{
	struct answer answer = { text, 0 };
	int ret = strncmp(line, "gpu ", 4) ? run_command(hive, line, &answer)
					   : run_for_one(hive, line + 4, &answer);

	if (ret < 0) {
		answer.length = 0;
		add(&answer, "error: no such command, or a wrong argument");
	}
	if (answer.length > CONTROL_ANSWER - 2)
		answer.length = CONTROL_ANSWER - 2;
	text[answer.length] = '\n';
	text[answer.length + 1] = '\0';
}

void control_init(struct control *control)
{
	unsigned int i;

	memset(control, 0, sizeof(*control));
	control->listen_fd = -1;
	for (i = 0; i < CONTROL_CLIENTS; i++)
		control->clients[i].fd = -1;
}

int control_listen(struct control *control, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);

	if (length < 0 || (size_t)length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	(void)unlink(path);
	control->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (control->listen_fd < 0)
		return -errno;
	if (bind(control->listen_fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(control->listen_fd, CONTROL_CLIENTS))
		return -errno;
	return 0;
}

static void hang_up(struct control_client *client)
{
	if (client->fd >= 0)
		(void)close(client->fd);
	client->fd = -1;
	client->length = 0;
}

void control_close(struct control *control)
{
	unsigned int i;

	for (i = 0; i < CONTROL_CLIENTS; i++)
		hang_up(&control->clients[i]);
	if (control->listen_fd >= 0)
		(void)close(control->listen_fd);
	control->listen_fd = -1;
}

void control_prepare(const struct control *control, struct pollfd *fds)
{
	unsigned int i;

	for (i = 0; i < CONTROL_CLIENTS; i++)
		fds[i] = (struct pollfd){ control->clients[i].fd, POLLIN, 0 };
	fds[CONTROL_CLIENTS] = (struct pollfd){ control->listen_fd, POLLIN, 0 };
}

static void accept_client(struct control *control)
{
	int fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	unsigned int i;

	for (i = 0; fd >= 0 && i < CONTROL_CLIENTS; i++)
		if (control->clients[i].fd < 0) {
			control->clients[i].fd = fd;
			return;
		}
	if (fd >= 0)
		(void)close(fd);
}

static void serve_lines(struct control_client *client, const struct hive *hive)
{
	char answer[CONTROL_ANSWER], *end;
	size_t used;

	while ((end = memchr(client->line, '\n', client->length))) {
		*end = '\0';
		used = end + 1 - client->line;
		control_command(hive, client->line, answer);
		if (send(client->fd, answer, strlen(answer), MSG_NOSIGNAL) < 0) {
			hang_up(client);
			return;
		}
		client->length -= used;
		memmove(client->line, client->line + used, client->length);
	}
}

static void serve_client(struct control_client *client, const struct hive *hive)
{
	ssize_t n = read(client->fd, client->line + client->length,
			 sizeof(client->line) - client->length);

	if (n <= 0) {
		hang_up(client);
		return;
	}
	client->length += n;
	serve_lines(client, hive);
	if (client->length == sizeof(client->line))
		hang_up(client);
}

void control_serve(struct control *control, const struct pollfd *fds, const struct hive *hive)
{
	unsigned int i;

	for (i = 0; i < CONTROL_CLIENTS; i++)
		if (fds[i].fd >= 0 && fds[i].revents)
			serve_client(&control->clients[i], hive);
	if (control->listen_fd >= 0 && fds[CONTROL_CLIENTS].revents)
		accept_client(control);
}
