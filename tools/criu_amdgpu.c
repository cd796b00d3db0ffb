// SPDX-License-Identifier: GPL-2.0-only
/* The command line. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "host.h"
#include "tool.h"

/* The Makefile says which. */
#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION "(unknown version)"
#endif

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

#define OPTION_HELP    'h'
#define OPTION_VERSION 'V'

#define FIELD(name) offsetof(struct tool_request, name)
/* Takes no argument and has no field. */
#define NO_FIELD SIZE_MAX

static const struct tool_option {
	char letter;
	const char *name;
	/* A word for it in the help. NULL: the option has none, and its field is a bool. */
	const char *argument;
	const char *help;
	/* In struct tool_request. */
	size_t field;
} tool_options[] = {
	{ 'D', "images-dir", "DIR", "check, selftest: the directory for a dump", FIELD(dir) },
	{ 'L', "libdir", "DIR", "check, selftest: the directory of CRIU's plugins", FIELD(libdir) },
	{ 't', "topology", "TREE", "fit: a copy of /sys/class/kfd/kfd/topology of another machine",
	  FIELD(topology) },
	{ 'j', "json", NULL, "show, selftest: print JSON", FIELD(json) },
	{ 'q', "quiet", NULL, "check, verify, fit: print only errors", FIELD(quiet) },
	{ 'g', "gpu", "GPU", "selftest: only this GPU, by its number or gpu_id", FIELD(gpu) },
	{ 's', "size", "SIZE", "selftest: so much VRAM more on each GPU", FIELD(size) },
	{ 'l', "limit", "SECONDS", "selftest: give up a step after this time", FIELD(limit) },
	{ 'r', "report", "FILE", "selftest: write a report for a bug report", FIELD(report) },
	{ 'k', "keep", NULL, "selftest: keep images and logs", FIELD(keep) },
	{ 'Q', "quick", NULL, "selftest: small buffers, and one trip", FIELD(quick) },
	{ 'f', "force", NULL, "selftest: also if other processes use the GPU", FIELD(force) },
	{ OPTION_HELP, "help", NULL, "print this help", NO_FIELD },
	{ OPTION_VERSION, "version", NULL, "print the version", NO_FIELD },
};

#define OPTIONS ARRAY_SIZE(tool_options)

static void print_help(void)
{
	printf("Usage: criu-amdgpu COMMAND [OPTION...] [PID | CONTAINER | DIR | ARCHIVE]\n"
	       "Reads the images that criu dump and the amdgpu plugin have written to DIR, or that\n"
	       "a container runtime has put in ARCHIVE, checks whether a dump is possible, and tries\n"
	       "dumps and restores.\n\n"
	       "Commands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].purpose);
	printf("\nOptions:\n");
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct tool_option *option = &tool_options[i];
		const char *argument = option->argument ? option->argument : "";

		printf("  -%c, --%s %-*s%s\n", option->letter, option->name,
		       14 - (int)strlen(option->name), argument, option->help);
	}
	printf("\nExit status: 0 yes, 1 no (a dump is refused, an image is damaged, no mapping exists),\n"
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
	given += strspn(given, command->options);
	for (size_t i = 0; i < OPTIONS; i++) {
		if (tool_options[i].letter == *given)
			return tool_options[i].name;
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
	return command->needs_argument ? host_open_images(path) : host_open_directory(path);
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

static void set_option(struct tool_request *request, const struct tool_option *option)
{
	char *field = (char *)request + option->field;

	if (option->argument)
		*(const char **)field = optarg;
	else
		*(bool *)field = true;
}

/* For getopt_long(): the table is in both of its forms. */
static void list_options(char letters[2 * OPTIONS + 1], struct option list[OPTIONS + 1])
{
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct tool_option *option = &tool_options[i];
		int argument = option->argument ? required_argument : no_argument;

		*letters++ = option->letter;
		if (option->argument)
			*letters++ = ':';
		list[i] = (struct option){ option->name, argument, NULL, option->letter };
	}
	*letters = '\0';
	list[OPTIONS] = (struct option){ 0 };
}

/* Also lists the letters of the options that are given, each once. False: the program ends with
 * *@ret_status. */
static bool read_options(int argc, char **argv, struct tool_request *request,
			 char given[OPTIONS + 1], int *ret_status)
{
	char letters[2 * OPTIONS + 1];
	struct option list[OPTIONS + 1];
	int letter, index;

	list_options(letters, list);
	*ret_status = TOOL_YES;
	while ((letter = getopt_long(argc, argv, letters, list, NULL)) >= 0) {
		switch (letter) {
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
		for (index = 0; tool_options[index].letter != letter;)
			index++;
		if (!strchr(given, letter))
			given[strlen(given)] = (char)letter;
		set_option(request, &tool_options[index]);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct tool_request request = { 0 };
	char given[OPTIONS + 1] = "";
	const struct command *command;
	int ret;

	if (!read_options(argc, argv, &request, given, &ret))
		return ret;
	command = find_command(argv[optind]);
	if (!command)
		return complain("there is no command ", argv[optind] ? argv[optind] : "given", "");
	ret = check_arguments(command, argc - optind - 1, given);
	if (ret != TOOL_YES)
		return ret;
	if (command->run == check_run)
		request.pid = argv[optind + 1];
	else if (command->run != selftest_command)
		request.dir = argv[optind + 1];
	return run(command, &request);
}
