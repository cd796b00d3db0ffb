// SPDX-License-Identifier: GPL-2.0-only
/* The command line. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "check.h"
#include "fit.h"
#include "host.h"
#include "selftest.h"
#include "show.h"
#include "tool.h"
#include "verify.h"

/* The Makefile says which. */
#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION "(unknown version)"
#endif

enum {
	OPTION_TOPOLOGY = 't',
	OPTION_QUIET = 'q',
	OPTION_JSON = 'j',
	OPTION_IMAGES_DIR = 'D',
	OPTION_LIBDIR = 'L',
	OPTION_GPU = 'g',
	OPTION_SIZE = 's',
	OPTION_LIMIT = 'l',
	OPTION_REPORT = 'r',
	OPTION_KEEP = 'k',
	OPTION_QUICK = 'Q',
	OPTION_FORCE = 'f',
	OPTION_HELP = 'h',
	OPTION_VERSION = 'V',
};

static const struct command {
	const char *name;
	int (*run)(const struct tool_request *request);
	/* A command takes at most one argument. */
	bool needs_argument;
	/* What the argument is, for messages. */
	const char *argument;
	/* The options that it has, by their letters. */
	const char *options;
	const char *purpose;
} commands[] = {
	{ "check", check_run, false, "one process or container", "qDL",
	  "whether this machine, or a process or container, can be dumped" },
	{ "show", show_run, true, "one directory or archive", "j", "what the images hold" },
	{ "verify", verify_run, true, "one directory or archive", "q",
	  "whether the images are whole, by their checksums" },
	{ "fit", fit_run, true, "one directory or archive", "qt",
	  "whether the images would restore on the GPUs of a machine" },
	{ "selftest", selftest_command, false, "no argument", "DLgslrkQfj",
	  "whether jobs of its own come back on this machine" },
};

static const struct option options[] = {
	{ "topology", required_argument, NULL, OPTION_TOPOLOGY },
	{ "quiet", no_argument, NULL, OPTION_QUIET },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "images-dir", required_argument, NULL, OPTION_IMAGES_DIR },
	{ "libdir", required_argument, NULL, OPTION_LIBDIR },
	{ "gpu", required_argument, NULL, OPTION_GPU },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "report", required_argument, NULL, OPTION_REPORT },
	{ "keep", no_argument, NULL, OPTION_KEEP },
	{ "quick", no_argument, NULL, OPTION_QUICK },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ 0 },
};

static void print_help(void)
{
	printf("Usage: criu-amdgpu COMMAND [OPTION...] [PID | CONTAINER | DIR | ARCHIVE]\n"
	       "Reads the images that criu dump and the amdgpu plugin have written to DIR, or that\n"
	       "a container runtime has put in ARCHIVE, checks whether a dump is possible, and tries\n"
	       "dumps and restores.\n\n"
	       "Commands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].purpose);
	printf("\nOptions:\n"
	       "  -D, --images-dir DIR check, selftest: the directory for a dump\n"
	       "  -L, --libdir DIR     check, selftest: the directory of CRIU's plugins\n"
	       "  -t, --topology TREE  fit: a copy of /sys/class/kfd/kfd/topology of another machine\n"
	       "  -j, --json           show, selftest: print JSON\n"
	       "  -q, --quiet          check, verify, fit: print only errors\n"
	       "  -g, --gpu GPU        selftest: only this GPU, by its number or gpu_id\n"
	       "  -s, --size SIZE      selftest: so much VRAM more on each GPU\n"
	       "  -l, --limit SECONDS  selftest: give up a step after this time\n"
	       "  -r, --report FILE    selftest: write a report for a bug report\n"
	       "  -k, --keep           selftest: keep images and logs\n"
	       "  -Q, --quick          selftest: small buffers, and one trip\n"
	       "  -f, --force          selftest: also if other processes use the GPU\n"
	       "  -h, --help           print this help\n"
	       "  -V, --version        print the version\n\n"
	       "Exit status: 0 yes, 1 no (a dump is refused, an image is damaged, no mapping exists),\n"
	       "2 trouble, 3 there is no AMD GPU.\n");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static int complain(const char *subject, const char *problem, const char *detail)
{
	(void)fprintf(stderr, "criu-amdgpu: %s%s%s; try criu-amdgpu --help\n", subject, problem,
		      detail);
	return TOOL_TROUBLE;
}

/* The first of the options @given that the command does not have, or NULL. */
static const char *find_foreign_option(const struct command *command, const char *given)
{
	for (; *given; given++) {
		for (size_t i = 0; !strchr(command->options, *given) && options[i].name; i++) {
			if (options[i].val == *given)
				return options[i].name;
		}
	}
	return NULL;
}

static int check_arguments(const struct command *command, int count, const char *given)
{
	const char *foreign = find_foreign_option(command, given);

	if (foreign)
		return complain(command->name, " has no option --", foreign);
	if (!count && command->needs_argument)
		return complain(command->name, " needs ", command->argument);
	if (count > (command->run != selftest_command))
		return complain(command->name, " takes ", command->argument);
	return TOOL_YES;
}

/* An archive is for reading only. */
static int open_images(const struct command *command, const char *path)
{
	if (!path)
		return 0;
	return command->run == check_run || command->run == selftest_command
		       ? host_open_directory(path)
		       : host_open_images(path);
}

static int run(const struct command *command, const struct tool_request *request)
{
	int ret = open_images(command, request->dir);

	if (ret < 0)
		return TOOL_TROUBLE;
	ret = command->run(request);
	host_close_images();
	if (fflush(stdout) || ferror(stdout)) {
		(void)fprintf(stderr, "criu-amdgpu: cannot write the output: %s\n",
			      strerror(errno));
		return TOOL_TROUBLE;
	}
	return ret;
}

static void set_option(struct tool_request *request, int option)
{
	switch (option) {
	case OPTION_TOPOLOGY:
		request->topology = optarg;
		break;
	case OPTION_QUIET:
		request->quiet = true;
		break;
	case OPTION_JSON:
		request->json = true;
		break;
	case OPTION_IMAGES_DIR:
		request->dir = optarg;
		break;
	case OPTION_LIBDIR:
		request->libdir = optarg;
		break;
	case OPTION_GPU:
		request->gpu = optarg;
		break;
	case OPTION_SIZE:
		request->size = optarg;
		break;
	case OPTION_LIMIT:
		request->limit = optarg;
		break;
	case OPTION_REPORT:
		request->report = optarg;
		break;
	case OPTION_KEEP:
		request->keep = true;
		break;
	case OPTION_QUICK:
		request->quick = true;
		break;
	case OPTION_FORCE:
		request->force = true;
		break;
	default:
		break;
	}
}

/* The letters of the options that are given, each once. */
struct given {
	char letters[64];
};

/* False: the program ends with *@ret_status. */
static bool read_options(int argc, char **argv, struct tool_request *request, struct given *given,
			 int *ret_status)
{
	int option;

	*ret_status = TOOL_YES;
	while ((option = getopt_long(argc, argv, "t:qjD:L:g:s:l:r:kQfhV", options, NULL)) >= 0) {
		switch (option) {
		case OPTION_HELP:
			print_help();
			return false;
		case OPTION_VERSION:
			printf("criu-amdgpu %s\n", PLUGIN_VERSION);
			return false;
		case '?':
			*ret_status = TOOL_TROUBLE;
			return false;
		default:
			break;
		}
		if (!strchr(given->letters, option))
			given->letters[strlen(given->letters)] = (char)option;
		set_option(request, option);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct tool_request request = { 0 };
	struct given given = { 0 };
	const struct command *command;
	int ret;

	if (!read_options(argc, argv, &request, &given, &ret))
		return ret;
	command = find_command(argv[optind]);
	if (!command)
		return complain("there is no command ", argv[optind] ? argv[optind] : "given", "");
	ret = check_arguments(command, argc - optind - 1, given.letters);
	if (ret != TOOL_YES)
		return ret;
	if (command->run == check_run)
		request.pid = argv[optind + 1];
	else if (command->run != selftest_command)
		request.dir = argv[optind + 1];
	return run(command, &request);
}
