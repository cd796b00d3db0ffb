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

static int set_speed(struct gpu *gpu, const char *argument, struct answer *answer)
{
	add(answer, "ok");
	return parse_number(argument, 10, &gpu->copy_bytes_per_s);
}

static int set_hang(struct gpu *gpu, const char *argument, struct answer *answer)
{
	if (strcmp(argument, "on") && strcmp(argument, "off"))
		return -EINVAL;
	gpu->hangs = strcmp(argument, "on") == 0;
	gpu->expects_reset |= gpu->hangs;
	add(answer, "ok");
	return 0;
}

static int inject_fault(struct gpu *gpu, const char *argument, struct answer *answer)
{
	uint64_t doorbell;
	int ret = parse_number(argument, 0, &doorbell);

	add(answer, "ok");
	return ret < 0 ? ret : queues_inject_fault(gpu, (uint32_t)doorbell);
}

static int tell_counters(struct gpu *gpu, const char *argument, struct answer *answer)
{
	const struct gpu_counters *counters = &gpu->counters;
	unsigned int i;

	(void)argument;
	for (i = 0; i < SDMA_ENGINES; i++)
		add(answer,
		    "sdma%u.packets=%" PRIu64 " sdma%u.copies=%" PRIu64 " sdma%u.bytes=%" PRIu64
		    " ",
		    i, gpu->sdma[i].packets, i, gpu->sdma[i].copies, i, gpu->sdma[i].copied_bytes);
	add(answer,
	    "pm4.packets=%" PRIu64 " aql.packets=%" PRIu64 " dispatches=%" PRIu64
	    " interrupts=%" PRIu64 " faults=%" PRIu64 " resets=%" PRIu64 " violations=%u",
	    counters->pm4_packets, counters->aql_packets, counters->dispatches,
	    counters->interrupts, counters->faults, counters->resets, gpu->report.num_violations);
	return 0;
}

static int tell_violations(struct gpu *gpu, const char *argument, struct answer *answer)
{
	const struct report *report = &gpu->report;
	unsigned int i;

	(void)argument;
	add(answer, "%u", report->num_violations);
	for (i = 0; i < report->num_violations && i < REPORT_KEPT; i++)
		add(answer, "%s%s", i ? "; " : ": ", report->kept[i]);
	return 0;
}

static const char *state_of(const struct queue *queue)
{
	if (queue->is_faulted)
		return "faulted";
	return queue->rptr == queue->wptr ? "idle" : "busy";
}

static int tell_queues(struct gpu *gpu, const char *argument, struct answer *answer)
{
	static const char *const kinds[] = {
		[QUEUE_SDMA] = "sdma", [QUEUE_PM4] = "pm4", [QUEUE_AQL] = "aql"
	};
	unsigned int i, count = 0;

	(void)argument;
	for (i = 0; i < QUEUE_MAX; i++) {
		const struct queue *queue = &gpu->queues[i];

		if (!queue->active || !queue->is_user)
			continue;
		add(answer,
		    "%s%s,pasid=%u,vmid=%u,doorbell=%#x,read=%#" PRIx64 ",written=%#" PRIx64 ",%s",
		    count++ ? " " : "", kinds[queue->kind],
		    gpu->regs[REG(OSSSYS, mmIH_VMID_0_LUT) + queue->space.vmid], queue->space.vmid,
		    queue->doorbell, queue->rptr, queue->wptr, state_of(queue));
	}
	if (!count)
		add(answer, "none");
	return 0;
}

static const struct {
	const char *name;
	bool has_argument;
	int (*run)(struct gpu *gpu, const char *argument, struct answer *answer);
} commands[] = {
	{ "speed", true, set_speed },
	{ "hang", true, set_hang },
	{ "fault", true, inject_fault },
	{ "counters", false, tell_counters },
	{ "violations", false, tell_violations },
	{ "queues", false, tell_queues },
};

void control_command(struct gpu *gpu, char *line, char *text)
{
	struct answer answer = { text, 0 };
	char *argument = strchr(line, ' ');
	int ret = -EINVAL;
	size_t i;

	if (argument)
		*argument++ = '\0';
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, line) == 0 && commands[i].has_argument == !!argument)
			ret = commands[i].run(gpu, argument, &answer);
	if (ret < 0) {
		answer.length = 0;
		add(&answer, ret == -ENOENT ? "error: no such queue is mapped"
					    : "error: no such command, or a wrong argument");
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

static void serve_lines(struct control_client *client, struct gpu *gpu)
{
	char answer[CONTROL_ANSWER], *end;
	size_t used;

	while ((end = memchr(client->line, '\n', client->length))) {
		*end = '\0';
		used = end + 1 - client->line;
		control_command(gpu, client->line, answer);
		if (send(client->fd, answer, strlen(answer), MSG_NOSIGNAL) < 0) {
			hang_up(client);
			return;
		}
		client->length -= used;
		memmove(client->line, client->line + used, client->length);
	}
}

static void serve_client(struct control_client *client, struct gpu *gpu)
{
	ssize_t n = read(client->fd, client->line + client->length,
			 sizeof(client->line) - client->length);

	if (n <= 0) {
		hang_up(client);
		return;
	}
	client->length += n;
	serve_lines(client, gpu);
	if (client->length == sizeof(client->line))
		hang_up(client);
}

void control_serve(struct control *control, const struct pollfd *fds, struct gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < CONTROL_CLIENTS; i++)
		if (fds[i].fd >= 0 && fds[i].revents)
			serve_client(&control->clients[i], gpu);
	if (control->listen_fd >= 0 && fds[CONTROL_CLIENTS].revents)
		accept_client(control);
}
