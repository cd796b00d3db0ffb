// SPDX-License-Identifier: GPL-2.0-only
/* bench: measures one case, the plugin and what it is compared with by turns, and prints one line of values. The matrix
 * of cases, the table and the plot are made by test/bench/run. Wants the simulator preloaded. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_options.h"
#include "amdgpu_plugin_util.h"
#include "host.h"
#include "methods.h"
#include "places.h"
#include "smoke.h"
#include "staging.h"
#include "subject.h"

#define ROUNDS_MAX 32
#define MIB	   (1u << 20)

enum method {
	REFERENCE,
	OURS,
	COPY,
	STORAGE,
	METHODS,
};

struct bench {
	const char *name, *words, *storage, *engine;
	struct places places;
	uint64_t most_bytes, latency_us;
	unsigned int gpus, rounds;
	bool save, half_zero, checksum;
	int way;
	struct subject subject;
	struct content_settings settings;
	double gbps;
	double wall[METHODS][ROUNDS_MAX];
	/* Of ours. */
	double cpu[ROUNDS_MAX];
	uint64_t staging_bytes;
	long peak_kib;
};

static double cpu_seconds(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* "VmRSS:" or "VmHWM:", in KiB. */
static long memory_kib(const char *what)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, what, strlen(what)))
			kib = strtol(line + strlen(what), NULL, 10);
	}
	if (file)
		(void)fclose(file);
	return kib;
}

static void forget_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "we");

	if (!file)
		return;
	(void)fputs("5", file);
	(void)fclose(file);
}

static int run_method(struct bench *bench, enum method method, bool save)
{
	struct content_job *jobs = bench->subject.jobs;
	size_t num_jobs = bench->subject.num_jobs;

	switch (method) {
	case REFERENCE:
		return reference_run(jobs, num_jobs, save);
	case OURS:
		return save ? content_save(jobs, num_jobs, &bench->settings) :
			      content_load(jobs, num_jobs, &bench->settings);
	case COPY:
		return copy_alone_run(jobs, num_jobs, save);
	default:
		return storage_alone_run(jobs, num_jobs, save, bench->half_zero,
					 &storage_ways[bench->way]);
	}
}

/* What a stream gives was never saved. */
static void expect_checksums(struct bench *bench)
{
	for (size_t i = 0; i < bench->subject.num_jobs; i++)
		bench->subject.jobs[i].has_checksums &= bench->places.directory && !bench->save;
}

static int measure(struct bench *bench, enum method method, bool save, double *ret_wall,
		   double *ret_cpu)
{
	struct content_job *jobs = bench->subject.jobs;
	size_t num_jobs = bench->subject.num_jobs;
	double begin, cpu;
	int ret = 0, closed;

	/* the engine alone needs no files */
	if (method != COPY)
		ret = places_open(&bench->places, jobs, num_jobs, save);
	if (ret < 0)
		return ret;
	staging_begin(bench->half_zero);
	begin = now_seconds();
	cpu = cpu_seconds();
	ret = run_method(bench, method, save);
	closed = method == COPY ? 0 : places_close(&bench->places, jobs, num_jobs);
	*ret_wall = now_seconds() - begin;
	*ret_cpu = cpu_seconds() - cpu;
	return ret ? ret : closed;
}

/* One of the rounds. */
static int measure_round(struct bench *bench, enum method method, unsigned int round)
{
	double wall = 0, cpu = 0;
	long before;
	int ret;

	forget_peak();
	before = memory_kib("VmRSS:");
	ret = measure(bench, method, bench->save, &wall, &cpu);
	bench->wall[method][round] = wall;
	if (bench->save && method != COPY)
		places_remove(&bench->places, bench->subject.num_jobs);
	if (ret < 0 || method != OURS)
		return ret;
	bench->cpu[round] = cpu;
	bench->staging_bytes = staging_peak() / bench->subject.num_jobs;
	if (memory_kib("VmHWM:") - before > bench->peak_kib)
		bench->peak_kib = memory_kib("VmHWM:") - before;
	return 0;
}

static int set_knob(const char *knob, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return simulator_write(knob, text);
}

/* Which way storage is fastest, by trying each twice. */
static int choose_way(struct bench *bench, double *ret_wall)
{
	double wall, cpu, best = 1e9;
	int ret = 0, chosen = 0, first = bench->way < 0 ? 0 : bench->way;
	int end = bench->way < 0 ? (int)num_storage_ways : first + 1;

	for (int round = 0; round < 2; round++) {
		for (bench->way = first; !ret && bench->way < end; bench->way++) {
			ret = measure(bench, STORAGE, bench->save, &wall, &cpu);
			if (bench->save)
				places_remove(&bench->places, bench->subject.num_jobs);
			if (wall < best) {
				best = wall;
				chosen = bench->way;
			}
		}
	}
	bench->way = chosen;
	*ret_wall = best;
	return ret;
}

static int set_engine(struct bench *bench, double storage_s)
{
	uint64_t per_gpu = bench->subject.bytes / bench->subject.num_jobs;

	bench->gbps = strcmp(bench->engine, "match") ? strtod(bench->engine, NULL) :
						       (double)per_gpu / storage_s / 1e9;
	return set_knob("engine_bytes_per_s", (uint64_t)(bench->gbps * 1e9));
}

/* One run of ours that is not measured: it tells the slots, and makes the image that is then restored. */
static int warm_up(struct bench *bench)
{
	double wall, cpu;
	int ret = measure(bench, OURS, true, &wall, &cpu);

	if (bench->save)
		places_remove(&bench->places, bench->subject.num_jobs);
	expect_checksums(bench);
	return ret;
}

static int measure_all(struct bench *bench)
{
	double storage_s = 0;
	int ret = set_knob("skip_copies", 1);

	if (!ret)
		ret = set_knob("engine_latency_us", bench->latency_us);
	if (!ret)
		ret = warm_up(bench);
	if (!ret && (bench->way < 0 || !strcmp(bench->engine, "match")))
		ret = choose_way(bench, &storage_s);
	if (!ret)
		ret = set_engine(bench, storage_s);
	for (unsigned int round = 0; !ret && round < bench->rounds; round++) {
		for (int method = 0; !ret && method < METHODS; method++)
			ret = measure_round(bench, (enum method)method, round);
	}
	places_remove(&bench->places, bench->subject.num_jobs);
	return ret;
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Also sorts. */
static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* From the fastest to the slowest round, in percent of the median. */
static double spread(double *values, unsigned int count)
{
	double middle = median(values, count);

	return (values[count - 1] - values[0]) / middle * 100;
}

/* The columns of the CSV file, and then what else the table has. */
static void print_line(struct bench *bench)
{
	double s[METHODS], limit;

	for (int i = 0; i < METHODS; i++)
		s[i] = median(bench->wall[i], bench->rounds);
	limit = s[COPY] > s[STORAGE] ? s[COPY] : s[STORAGE];
	printf("%s,%u,%s,%s,%.2f,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f,%llu,%.4f", bench->name,
	       bench->gpus, bench->save ? "dump" : "restore", bench->storage, bench->gbps,
	       s[REFERENCE], s[OURS], s[COPY], s[STORAGE], s[REFERENCE] / s[OURS], limit / s[OURS],
	       (unsigned long long)bench->staging_bytes >> 10,
	       median(bench->cpu, bench->rounds) / ((double)bench->subject.bytes / 1e9));
	for (int i = 0; i < METHODS; i++)
		printf(",%.0f", spread(bench->wall[i], bench->rounds));
	printf(",%.2f,%ld,%d\n", (double)bench->subject.bytes / 1e9,
	       bench->peak_kib / (long)bench->subject.num_jobs, bench->way);
}

static int usage(void)
{
	(void)fprintf(
		stderr,
		"bench [OPTION]... NAME WORDS\n"
		"  -d dump|restore  -s tmpfs|disk|stream  -D DIRECTORY  -g GPUS  -e GB/S|match\n"
		"  -m MIB  at most, by scaling sizes   -n ROUNDS  -l MICROSECONDS of engine latency\n"
		"  -z  half of the bytes are zero      -c  no checksums\n"
		"  -w WAY  of storage alone, if it is known which is the best\n"
		"bench -S DIRECTORY  moves bytes and compares them; no times\n"
		"  WORDS: see test/native/workload.h\n");
	return 2;
}

static int parse(int argc, char **argv, struct bench *bench)
{
	int option;

	while ((option = getopt(argc, argv, "d:s:D:g:e:m:n:l:zcw:")) >= 0) {
		switch (option) {
		case 'd':
			bench->save = !strcmp(optarg, "dump");
			break;
		case 's':
			bench->storage = optarg;
			break;
		case 'D':
			bench->places.directory = optarg;
			break;
		case 'g':
			bench->gpus = (unsigned int)atoi(optarg);
			break;
		case 'e':
			bench->engine = optarg;
			break;
		case 'm':
			bench->most_bytes = strtoull(optarg, NULL, 10) * MIB;
			break;
		case 'n':
			bench->rounds = (unsigned int)atoi(optarg);
			break;
		case 'l':
			bench->latency_us = strtoull(optarg, NULL, 10);
			break;
		case 'z':
			bench->half_zero = true;
			break;
		case 'c':
			bench->checksum = false;
			break;
		case 'w':
			bench->way = atoi(optarg);
			break;
		default:
			return -EINVAL;
		}
	}
	if (argc - optind != 2 || !bench->rounds || bench->rounds > ROUNDS_MAX || !bench->gpus)
		return -EINVAL;
	bench->name = argv[optind];
	bench->words = argv[optind + 1];
	if (!strcmp(bench->storage, "stream"))
		bench->places.directory = NULL;
	return 0;
}

static int run(struct bench *bench)
{
	_cleanup_(options_done) struct options options = { 0 };
	char words[1024];
	int ret;

	ret = options_read_with_file("/dev/null", &options);
	if (ret < 0)
		return ret;
	bench->settings = options.content;
	bench->settings.checksum &= bench->checksum;
	(void)snprintf(words, sizeof(words), "%s,gpus=%u,verify=0,map=0", bench->words, bench->gpus);
	ret = subject_make(words, bench->most_bytes, &bench->subject);
	if (!ret)
		ret = measure_all(bench);
	if (!ret)
		print_line(bench);
	subject_done(&bench->subject);
	return ret;
}

int main(int argc, char **argv)
{
	struct bench bench = {
		.storage = "tmpfs",
		.engine = "8",
		.places.directory = "/dev/shm",
		.gpus = 1,
		.rounds = 3,
		.latency_us = 50,
		.save = true,
		.checksum = true,
		.way = -1,
	};

	host_log_up_to(1);
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && !strcmp(argv[1], "-S"))
		return smoke(argv[2]);
	if (parse(argc, argv, &bench) < 0)
		return usage();
	return run(&bench) < 0;
}
