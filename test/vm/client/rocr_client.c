// SPDX-License-Identifier: GPL-2.0-only
/* A program on stock ROCr that uses all GPUs, and tells whether a dump and a restore have preserved
 * what it has there. README.md has its options, signals and log lines. */
#include <getopt.h>
#include <stdio.h>

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

static const char *parse(int argc, char **argv, struct client *client)
{
	static const struct option options[] = {
		{ "log", required_argument, NULL, 'l' },
		{ "kernels", required_argument, NULL, 'k' },
		{ "vmem", no_argument, NULL, 'v' },
		{ 0 },
	};
	const char *log = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			log = optarg;
		else if (option == 'k')
			client->work.code_object = optarg;
		else if (option == 'v')
			client->work.vmem = true;
		else
			return NULL;
	}
	return optind == argc ? log : NULL;
}

int main(int argc, char **argv)
{
	static struct client client;
	const char *log = parse(argc, argv, &client);

	if (!log) {
		(void)fprintf(stderr,
			      "usage: rocr_client --log FILE [--kernels CODE_OBJECT] [--vmem]\n");
		return 2;
	}
	return serve(&(struct serve){ rocr_report_init(log), &client, set_up, begin, verify,
				      tear_down });
}
