/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_one_vm LOG: a process that has given KFD the VM of the first GPU only, and has a BO there.
 * Its queue never rests. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "raw_kfd.h"
#include "report.h"
#include "serve.h"

struct one_vm {
	struct report report;
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo words;
	uint64_t value;
};

static int start(void *arg)
{
	struct one_vm *it = arg;
	struct raw_process *process = &it->process;
	int ret = raw_open(process);

	if (ret == 0)
		ret = raw_open_render(&process->gpu[0], &process->render[0]);
	if (ret == 0)
		ret = raw_acquire(process, process->gpu[0].gpu_id, process->render[0]);
	if (ret == 0)
		ret = raw_alloc_mapped(process, 0, RAW_GTT, 4096, &it->words);
	return ret ? ret : raw_create_queue(process, 0, &it->queue);
}

/* The engine copies a word, which the CPU has not written before. */
static int copy(struct one_vm *it)
{
	volatile uint64_t *words = (volatile uint64_t *)(void *)it->words.address;
	int ret;

	words[0] = ++it->value;
	raw_queue_copy(&it->queue, it->words.address, it->words.address + 64, 8);
	raw_queue_ring(&it->queue);
	ret = raw_queue_wait(&it->queue);
	return ret == 0 && words[8] != it->value ? -1 : ret;
}

/* Until SIGTERM. */
static int run(void *arg, const sigset_t *signals)
{
	struct one_vm *it = arg;
	const struct timespec pause = { .tv_nsec = 5000000 };
	int signal = 0, ret = 0;

	while (ret == 0 && signal != SIGTERM) {
		signal = sigtimedwait(signals, NULL, &pause);
		ret = copy(it);
		if (signal == SIGUSR1 && ret == 0)
			report_line(&it->report, "verified");
	}
	return ret < 0 ? report_fail(&it->report, ret, "the queue is wrong") : 0;
}

int main(int argc, char **argv)
{
	static struct one_vm it;

	if (argc != 2)
		return 2;
	report_init(&it.report, argv[1]);
	return serve_running(&it.report, &it, start, run);
}
