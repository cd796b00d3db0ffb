// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock ROCr that uses all GPUs, and tells whether a dump and a restore have preserved
 * what it has there. README.md has its options, signals and log lines. */
#include "options.h"
#include "rocr_gpu.h"
#include "rocr_report.h"
#include "serve.h"

struct client {
	struct rocr_work work;
	struct rocr rocr;
	struct rocr_gpu gpus[ROCR_MAX_GPUS];
};

static bool for_each_gpu(struct client *client, bool (*call)(struct rocr_gpu *gpu))
{
	for (unsigned int i = 0; i < client->rocr.num_gpus; i++)
		if (!call(&client->gpus[i]))
			return false;
	return true;
}

static bool set_up(void *arg)
{
	struct client *client = arg;

	if (!rocr_open(&client->rocr))
		return false;
	for (unsigned int i = 0; i < client->rocr.num_gpus; i++)
		if (!rocr_gpu_open(&client->gpus[i], &client->rocr, i, &client->work))
			return false;
	return true;
}

static bool begin(void *arg)
{
	return for_each_gpu(arg, rocr_gpu_begin);
}

static bool verify(void *arg)
{
	return for_each_gpu(arg, rocr_gpu_verify);
}

static bool tear_down(void *arg)
{
	return for_each_gpu(arg, rocr_gpu_close) && rocr_good(hsa_shut_down(), "shut down");
}

int main(int argc, char **argv)
{
	static struct client client;
	const char *log = NULL;
	const struct choice choices[] = {
		{ "--log", .text = &log, .is_needed = true },
		{ "--kernels", .text = &client.work.code_object },
		{ "--vmem", .flag = &client.work.vmem },
		{ 0 },
	};

	(void)argc;
	if (!options_parse(argv, choices))
		return 2;
	return serve(&(struct serve){ rocr_report_init(log), &client, set_up, begin, verify,
				      tear_down });
}
