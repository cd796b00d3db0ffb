// SPDX-License-Identifier: GPL-2.0-only
/* Stands in for CRIU and, under the name selftest-job, for the job of the selftest. It has what
 * criu-amdgpu looks for in CRIU. A dump writes down the command of the job and kills it; a restore
 * starts it again with the same pid.
 *
 * MISTAKE in the environment: STEP-HOW. STEP is start, dump, restore or verify. HOW is "fails",
 * "hangs", "dies" (of the job), "leaks" (a descriptor), "leaves" (the job running), "lies"
 * (restore: no process) or "unable" (start of processes that share buffers: the driver has no
 * dma-bufs). A step that hangs makes the file REACHED first. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOOKS 17
#define WORDS 16
/* A descriptor that a restored job closes when it is as it was. */
#define READY "READY_FD"

struct list_head {
	void *next, *prev;
};
struct list_head cr_plugin_ctl[HOOKS + 1];
#define FUNCTION(name)   \
	void name(void); \
	void name(void)  \
	{                \
	}
FUNCTION(print_on_level)
FUNCTION(criu_get_image_dir)
FUNCTION(find_unused_fd_pid)
FUNCTION(fdstore_add)
FUNCTION(fdstore_get)
FUNCTION(img_streamer_open)

static bool must(const char *mistake)
{
	const char *wanted = getenv("MISTAKE");

	return wanted && strcmp(wanted, mistake) == 0;
}

static void hang(void)
{
	const char *path = getenv("REACHED");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		close(fd);
	for (;;)
		pause();
}

/* The argument behind an option. */
static const char *option(char **argv, const char *name)
{
	for (; *argv; argv++) {
		if (strcmp(*argv, name) == 0)
			return argv[1] ? argv[1] : "";
	}
	return NULL;
}

/* --- the job ---------------------------------------------------------------------------------- */

static void say(const char *log, const char *text)
{
	FILE *file = fopen(log, "ae");

	if (!file)
		return;
	(void)fprintf(file, "client %d: %s\n", getpid(), text);
	(void)fclose(file);
}

static void verify(const char *log)
{
	if (must("verify-hangs"))
		hang();
	if (must("verify-dies"))
		_exit(1);
	if (must("verify-fails")) {
		say(log, "FAILED: buffer 3 differs at 0x10");
		return;
	}
	say(log, "compared 7 bytes");
	say(log, "verified");
}

static int job(char **argv)
{
	const char *log = option(argv, "--log");
	sigset_t signals;
	int number;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGUSR1);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	if (must("start-hangs"))
		hang();
	if (must("start-fails"))
		say(log, "FAILED: cannot open the GPUs");
	if (must("start-unable") && option(argv, "--share"))
		say(log, "unable: this driver shares no memory");
	say(log, "engine alone: 7 MiB/s");
	say(log, "ready");
	/* Tells the restore that it may end. */
	if (getenv(READY))
		(void)close(atoi(getenv(READY)));
	while (sigwait(&signals, &number) == 0 && number == SIGUSR1)
		verify(log);
	say(log, "finished ok");
	return 0;
}

/* --- CRIU ------------------------------------------------------------------------------------- */

static int complain(const char *dir, const char *log)
{
	char path[4096];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, log);
	file = fopen(path, "we");
	if (!file)
		return 1;
	(void)fputs("(00.1) Error (amdgpu_plugin): kfd 7: cannot save BO 12\n", file);
	(void)fclose(file);
	return 1;
}

static void summarize(const char *dir, const char *log, const char *what, bool streams)
{
	const char *memory = getenv("AMDGPU_DUMP_MEMORY");
	char path[4096];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, log);
	file = fopen(path, "we");
	if (!file)
		return;
	(void)fprintf(file,
		      "(00.2) amdgpu_plugin: %s: 1 processes, 6.0 MiB of contents in 1 s%s%s%s\n",
		      what, memory ? ", dump-memory " : "", memory ? memory : "",
		      streams ? ", streamed" : "");
	(void)fclose(file);
}

static FILE *image(const char *dir, const char *mode)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/task.img", dir);
	return fopen(path, mode);
}

static int dump(char **argv, const char *dir)
{
	const char *pid = option(argv, "-t");
	FILE *to = image(dir, "we"), *from;
	char path[64];
	int c;

	(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	from = fopen(path, "re");
	if (!to || !from)
		return 1;
	(void)fprintf(to, "%s", pid);
	(void)fputc('\0', to);
	while ((c = fgetc(from)) != EOF)
		(void)fputc(c, to);
	(void)fclose(from);
	(void)fclose(to);
	if (option(argv, "-R") || must("dump-leaves"))
		return 0;
	return kill(atoi(pid), SIGKILL) < 0;
}

static void run_again(char *const words[])
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	if (must("restore-leaks"))
		(void)open("/dev/null", O_RDONLY);
	(void)execv(words[0], words);
	_exit(1);
}

static int restore(const char *dir)
{
	static char text[4096];
	FILE *from = image(dir, "re");
	char *words[WORDS + 1] = { NULL };
	size_t size = from ? fread(text, 1, sizeof(text) - 1, from) : 0;
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid_size = 1 };
	pid_t wanted = atoi(text);
	int count = 0, ready[2];
	char number[16];
	long pid;

	for (char *at = text + strlen(text) + 1; at < text + size && count < WORDS;
	     at += strlen(at) + 1)
		words[count++] = at;
	if (must("restore-lies"))
		return 0;
	args.set_tid = (unsigned long)&wanted;
	if (pipe(ready) < 0)
		return 1;
	(void)fcntl(ready[0], F_SETFD, FD_CLOEXEC);
	(void)snprintf(number, sizeof(number), "%d", ready[1]);
	(void)setenv(READY, number, 1);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		run_again(words);
	(void)close(ready[1]);
	/* Nothing comes, but the end. */
	return pid < 0 || read(ready[0], number, 1) != 0;
}

static int criu(char **argv)
{
	const char *dir = option(argv, "-D"), *log = option(argv, "-o");

	if (strcmp(argv[1], "--version") == 0)
		return puts("Version: 4.3") == EOF;
	summarize(dir, log, argv[1], option(argv, "--stream"));
	if (strcmp(argv[1], "dump") == 0) {
		if (must("dump-hangs"))
			hang();
		return must("dump-fails") ? complain(dir, log) : dump(argv, dir);
	}
	if (must("restore-hangs"))
		hang();
	return must("restore-fails") ? complain(dir, log) : restore(dir);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');

	if (argc < 2)
		return 2;
	return name && strcmp(name, "/selftest-job") == 0 ? job(argv) : criu(argv);
}
