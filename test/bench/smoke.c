// SPDX-License-Identifier: GPL-2.0-only
/* Checks that the benchmark moves real bytes, from BOs to images and back, with the reference
 * method and with the plugin, through files and through pipes. */
#include "smoke.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/options.h"
#include "methods.h"
#include "staging.h"
#include "subject.h"

#define JOBS_MAX   8
#define BLOCK_SIZE (1u << 20)

static const struct {
	const char *name, *words;
} cases[] = {
	{ "one large BO", "1x96M" },
	{ "half of it zero", "1x48M,1x4K:G,zero=50" },
	{ "P1-issue2663", "P1-issue2663,scale=1/16" },
	{ "P2-train", "P2-train,scale=1/128" },
	{ "P4-serve", "P4-serve,scale=1/512" },
	{ "P7-small", "1500x4K-64K" },
	{ "BOs of 4 KiB", "4000x4K" },
	{ "two GPUs", "1x20M,500x4K,6x4K:G,gpus=2" },
	{ "eight GPUs", "3x3M,40x4K-64K,gpus=8" },
};

struct smoke {
	const char *directory;
	const char *name;
	struct subject subject;
	struct content_settings settings;
	unsigned int passed, failed;
};

static void check(struct smoke *smoke, int ret, const char *what)
{
	if (ret >= 0) {
		smoke->passed++;
		return;
	}
	smoke->failed++;
	printf("FAILED: %s: %s: %s\n", smoke->name, what, strerror(-ret));
}

static void path_of(const struct smoke *smoke, const char *whose, size_t job, char *ret_path,
		    size_t size)
{
	(void)snprintf(ret_path, size, "%s/%s-%zu.img", smoke->directory, whose, job);
}

static int open_images(struct smoke *smoke, const char *whose, int flags)
{
	char path[4096];

	for (size_t i = 0; i < smoke->subject.num_jobs; i++) {
		struct content_job *job = &smoke->subject.jobs[i];

		path_of(smoke, whose, i, path, sizeof(path));
		job->image_fd = open(path, flags | O_CLOEXEC, 0600);
		job->streamed = false;
		if (job->image_fd < 0)
			return -errno;
	}
	return 0;
}

static void close_images(struct smoke *smoke)
{
	for (size_t i = 0; i < smoke->subject.num_jobs; i++)
		fd_close(&smoke->subject.jobs[i].image_fd);
}

/* Saves to images named after @whose. */
static int save(struct smoke *smoke, const char *whose, bool ours)
{
	struct subject *subject = &smoke->subject;
	int ret = open_images(smoke, whose, O_RDWR | O_CREAT | O_TRUNC);

	if (!ret && ours)
		ret = content_save(subject->jobs, subject->num_jobs, &smoke->settings);
	else if (!ret)
		ret = reference_run(subject->jobs, subject->num_jobs, true);
	close_images(smoke);
	return ret;
}

/* Loads over other bytes than the saved ones. */
static int load(struct smoke *smoke, const char *whose, bool ours)
{
	struct subject *subject = &smoke->subject;
	int ret = subject_scribble(subject);

	if (!ret)
		ret = open_images(smoke, whose, O_RDONLY);
	if (!ret && ours)
		ret = content_load(subject->jobs, subject->num_jobs, &smoke->settings);
	else if (!ret)
		ret = reference_run(subject->jobs, subject->num_jobs, false);
	close_images(smoke);
	return ret ? ret : subject_verify(subject);
}

/* Copies bytes between a pipe and an image. */
struct carrier {
	pthread_t thread;
	int from, to;
	int ret;
};

static void *carry(void *argument)
{
	struct carrier *carrier = argument;
	char *block = malloc(BLOCK_SIZE);
	ssize_t got = 1;

	while (!carrier->ret && (got = read(carrier->from, block, BLOCK_SIZE)) > 0)
		carrier->ret = write_full(carrier->to, block, (size_t)got);
	carrier->ret = carrier->ret ? carrier->ret : got < 0 ? -errno : 0;
	free(block);
	(void)close(carrier->from);
	(void)close(carrier->to);
	return NULL;
}

/* Replaces the image of @job by a pipe, with the image at its other end. */
static int begin_carrying(struct content_job *job, bool saving, struct carrier *carrier)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* the reader of a stream has already read the length */
	if (!saving)
		(void)lseek(job->image_fd, sizeof(uint64_t), SEEK_SET);
	*carrier = (struct carrier){ .from = saving ? ends[0] : job->image_fd,
				     .to = saving ? job->image_fd : ends[1] };
	job->image_fd = ends[saving];
	job->streamed = true;
	return -pthread_create(&carrier->thread, NULL, carry, carrier);
}

/* The other end sees the end when a pipe is closed. */
static int end_carrying(struct smoke *smoke, struct carrier *carriers, size_t started)
{
	int ret = 0;

	close_images(smoke);
	for (size_t i = 0; i < started; i++) {
		(void)pthread_join(carriers[i].thread, NULL);
		ret = ret ? ret : carriers[i].ret;
	}
	return ret;
}

/* The plugin, through pipes. */
static int stream(struct smoke *smoke, const char *whose, bool saving)
{
	struct subject *subject = &smoke->subject;
	struct carrier carriers[JOBS_MAX];
	size_t started = 0;
	int ret, carried;

	ret = saving ? 0 : subject_scribble(subject);
	if (!ret)
		ret = open_images(smoke, whose, saving ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY);
	while (!ret && started < subject->num_jobs) {
		ret = begin_carrying(&subject->jobs[started], saving, &carriers[started]);
		started += !ret;
	}
	if (!ret)
		ret = (saving ? content_save : content_load)(subject->jobs, subject->num_jobs,
							     &smoke->settings);
	carried = end_carrying(smoke, carriers, started);
	if (!ret)
		ret = carried;
	return ret || saving ? ret : subject_verify(subject);
}

static int compare_files(const char *one, const char *other)
{
	_cleanup_fclose_ FILE *a = fopen(one, "re"), *b = fopen(other, "re");
	_cleanup_free_ char *blocks = malloc(2 * BLOCK_SIZE);
	size_t left, right;

	if (!a || !b || !blocks)
		return -ENOENT;
	do {
		left = fread(blocks, 1, BLOCK_SIZE, a);
		right = fread(blocks + BLOCK_SIZE, 1, BLOCK_SIZE, b);
		if (left != right || memcmp(blocks, blocks + BLOCK_SIZE, left))
			return -EBADMSG;
	} while (left);
	return 0;
}

static int compare_images(const struct smoke *smoke, const char *one, const char *other)
{
	char paths[2][4096];
	int ret = 0;

	for (size_t i = 0; !ret && i < smoke->subject.num_jobs; i++) {
		path_of(smoke, one, i, paths[0], sizeof(paths[0]));
		path_of(smoke, other, i, paths[1], sizeof(paths[1]));
		ret = compare_files(paths[0], paths[1]);
	}
	return ret;
}

static void remove_images(const struct smoke *smoke)
{
	static const char *const whose[] = { "reference", "ours", "streamed" };
	char path[4096];

	for (size_t i = 0; i < ARRAY_SIZE(whose); i++) {
		for (size_t job = 0; job < smoke->subject.num_jobs; job++) {
			path_of(smoke, whose[i], job, path, sizeof(path));
			(void)unlink(path);
		}
	}
}

static void move_everything(struct smoke *smoke)
{
	check(smoke, save(smoke, "reference", false), "saved by the reference");
	check(smoke, save(smoke, "ours", true), "saved by the plugin");
	check(smoke, compare_images(smoke, "reference", "ours"), "the two images are the same");
	check(smoke, stream(smoke, "streamed", true), "streamed by the plugin");
	check(smoke, compare_images(smoke, "reference", "streamed"), "the stream is the same");
	check(smoke, load(smoke, "ours", true), "loaded by the plugin, every byte");
	check(smoke, load(smoke, "reference", false), "loaded by the reference, every byte");
	check(smoke, stream(smoke, "reference", false), "loaded from a stream, every byte");
	remove_images(smoke);
}

/* The complaints of the simulator at the end. */
static void check_simulator(struct smoke *smoke)
{
	char violations[4096] = "";

	check(smoke, simulator_write("process_exit", "1"), "the process's buffers are gone");
	check(smoke, simulator_read("violations", violations, sizeof(violations)), "violations");
	check(smoke, atoi(violations) ? -EIO : 0, "no rule of the driver was broken");
	if (atoi(violations))
		printf("%s", violations);
}

static void run_case(struct smoke *smoke, const char *words)
{
	int ret = subject_make(words, 0, &smoke->subject);

	check(smoke, ret, "buffers");
	if (!ret)
		move_everything(smoke);
	subject_done(&smoke->subject);
	check_simulator(smoke);
}

/* In a process of its own, with its own simulator and address space. */
static void run_apart(struct smoke *smoke, const char *words)
{
	int status = 0;
	pid_t child;

	(void)fflush(stdout);
	child = fork();
	if (!child) {
		run_case(smoke, words);
		(void)fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		check(smoke, -ECHILD, "ended as a program should");
}

int smoke(const char *directory)
{
	_cleanup_(options_done) struct options options = { 0 };
	unsigned int failed;
	struct smoke *smoke;

	smoke = mmap(NULL, sizeof(*smoke), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (smoke == MAP_FAILED || options_read_with_file("/dev/null", &options) < 0)
		return 1;
	smoke->directory = directory;
	smoke->settings = options.content;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		smoke->name = cases[i].name;
		run_apart(smoke, cases[i].words);
	}
	failed = smoke->failed;
	printf("%u passed, %u failed\n", smoke->passed, failed);
	(void)munmap(smoke, sizeof(*smoke));
	return failed != 0;
}
