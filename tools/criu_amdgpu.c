// SPDX-License-Identifier: GPL-2.0-only
/* The command line. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "tool.h"

static const struct command {
	const char *name;
	int (*run)(const struct tool_request *request);
	const char *purpose;
} commands[] = {
	{ "show", show_run, "what the images hold" },
	{ "verify", verify_run, "whether the images are whole, by their checksums" },
	{ "fit", fit_run, "whether the images would restore on the GPUs of a machine" },
};

enum {
	OPTION_TOPOLOGY = 't',
	OPTION_QUIET = 'q',
	OPTION_JSON = 'j',
	OPTION_HELP = 'h',
};

static const struct option options[] = {
	{ "topology", required_argument, NULL, OPTION_TOPOLOGY },
	{ "quiet", no_argument, NULL, OPTION_QUIET },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

static void print_help(void)
{
	printf("Usage: criu-amdgpu COMMAND [OPTION...] DIR\n"
	       "Reads the images that criu dump and the amdgpu plugin have written to DIR.\n\n"
	       "Commands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].purpose);
	printf("\nOptions:\n"
	       "  -t, --topology TREE  fit: a copy of /sys/class/kfd/kfd/topology of another machine\n"
	       "  -j, --json           show: print JSON\n"
	       "  -q, --quiet          verify, fit: print only errors\n"
	       "  -h, --help           print this help\n\n"
	       "Exit status: 0 yes, 1 no (contents differ, no mapping exists), 2 trouble.\n");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static int complain(const char *what, const char *which)
{
	(void)fprintf(stderr, "criu-amdgpu: %s%s; try criu-amdgpu --help\n", what, which);
	return TOOL_TROUBLE;
}

static int run(const struct command *command, const struct tool_request *request)
{
	int ret = host_open_images(request->dir);

	if (ret < 0) {
		(void)fprintf(stderr, "criu-amdgpu: cannot open directory %s: %s\n", request->dir,
			      strerror(-ret));
		return TOOL_TROUBLE;
	}
	ret = command->run(request);
	if (fflush(stdout) || ferror(stdout)) {
		(void)fprintf(stderr, "criu-amdgpu: cannot write the output: %s\n",
			      strerror(errno));
		return TOOL_TROUBLE;
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct tool_request request = { 0 };
	const struct command *command;
	int option;

	while ((option = getopt_long(argc, argv, "t:qjh", options, NULL)) >= 0) {
		switch (option) {
		case OPTION_TOPOLOGY:
			request.topology = optarg;
			break;
		case OPTION_QUIET:
			request.quiet = true;
			break;
		case OPTION_JSON:
			request.json = true;
			break;
		case OPTION_HELP:
			print_help();
			return TOOL_YES;
		default:
			return TOOL_TROUBLE;
		}
	}
	command = find_command(argv[optind]);
	if (!command)
		return complain("there is no command ", argv[optind] ? argv[optind] : "given");
	if (argc - optind != 2)
		return complain(command->name,
				argc - optind < 2 ? " needs a directory" : " takes one directory");
	if (request.topology && command->run != fit_run)
		return complain(command->name, " has no option --topology");
	if (request.json && command->run != show_run)
		return complain(command->name, " has no option --json");
	request.dir = argv[optind + 1];
	return run(command, &request);
}
