// SPDX-License-Identifier: GPL-2.0-only
/* bench: measures one case. Runs the plugin and the methods for comparison in turn, and prints one
 * line of values. test/bench/run makes the matrix of cases, the table and the plot. The simulator
 * must be preloaded, unless the GPU of this machine is the copy engine. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "bench.h"
#include "content/pool.h"
#include "criu/options.h"
#include "criu_stub.h"
#include "methods.h"
#include "proof.h"
#include "simulator.h"
#include "staging.h"
#include "usage.h"

/* Other processes may use so much of the processors during a round. Otherwise another round is
 * measured while patience lasts. */
#define OTHERS_MAX_PERCENT 25
#define LOOK_US            300000
/* There is no CUDA device. */
#define EXIT_SKIPPED 77

/* The trials of each storage method before the rounds. */
#define TRIES 2

static int run_method(struct bench *bench, enum method method, bool save)
{
	struct content_job *jobs = bench->subject.jobs;
	size_t num_jobs = bench->subject.num_jobs;

	switch (method) {
	case REFERENCE:
		return reference_run(jobs, num_jobs, save);
	case OURS:
		return save ? content_save(jobs, num_jobs, &bench->settings)
			    : content_load(jobs, num_jobs, &bench->settings);
	case COPY:
		return copy_alone_run(jobs, num_jobs, save);
	default:
		return storage_alone_run(jobs, num_jobs, save, bench->half_zero,
					 &storage_ways[bench->way]);
	}
}

/* The bytes of a stream were never saved. */
static void expect_checksums(struct bench *bench)
{
	for (size_t i = 0; i < bench->subject.num_jobs; i++)
		if (!bench->places.directory || bench->save)
			bench->subject.jobs[i].has_checksums = false;
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
	cpu = usage_cpu_seconds();
	ret = run_method(bench, method, save);
	closed = method == COPY ? 0 : places_close(&bench->places, jobs, num_jobs);
	*ret_wall = now_seconds() - begin;
	*ret_cpu = usage_cpu_seconds() - cpu;
	return ret ? ret : closed;
}

static int measure_storage(struct bench *bench, unsigned int way, double *ret_wall)
{
	double cpu;
	int ret;

	bench->way = way;
	ret = measure(bench, STORAGE, bench->save, ret_wall, &cpu);
	if (bench->save)
		places_remove(&bench->places, bench->subject.num_jobs);
	return ret;
}

static unsigned int fastest(const double *walls, unsigned int other_than)
{
	unsigned int best = num_storage_ways;

	for (unsigned int way = 0; way < num_storage_ways; way++) {
		if (way != other_than && (best == num_storage_ways || walls[way] < walls[best]))
			best = way;
	}
	return best;
}

/* Finds the fastest methods of storage, by trying each a few times. */
static int choose_ways(struct bench *bench)
{
	double walls[STORAGE_WAYS_MAX], wall;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < TRIES * num_storage_ways; i++) {
		unsigned int way = i % num_storage_ways;

		ret = measure_storage(bench, way, &wall);
		if (i < num_storage_ways || wall < walls[way])
			walls[way] = wall;
	}
	bench->ways[0] = fastest(walls, num_storage_ways);
	bench->ways[1] = fastest(walls, bench->ways[0]);
	return ret;
}

/* The better of the two, because other processes may have disturbed the choice. */
static int measure_best_storage(struct bench *bench, double *ret_wall)
{
	double wall, best = 0;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < BEST_WAYS; i++) {
		ret = measure_storage(bench, bench->ways[i], &wall);
		if (!i || wall < best)
			best = wall;
	}
	*ret_wall = best;
	return ret;
}

/* Fills the part of @round that this method measures. */
static int measure_method(struct bench *bench, enum method method, struct round *round)
{
	double cpu = 0;
	long before;
	int ret;

	if (method == STORAGE)
		return measure_best_storage(bench, &round->wall[STORAGE]);
	usage_forget_peak();
	before = usage_memory_kib("VmRSS:");
	ret = measure(bench, method, bench->save, &round->wall[method], &cpu);
	if (bench->save && method != COPY)
		places_remove(&bench->places, bench->subject.num_jobs);
	if (ret < 0 || method != OURS)
		return ret;
	round->cpu = cpu;
	bench->staging_bytes = staging_peak() / bench->subject.num_jobs;
	if (usage_memory_kib("VmHWM:") - before > bench->peak_kib)
		bench->peak_kib = usage_memory_kib("VmHWM:") - before;
	return 0;
}

static int set_knob(const struct bench *bench, const char *knob, uint64_t value)
{
	char text[32];

	if (bench->real)
		return 0;
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return simulator_write(knob, text);
}

static int set_engine(struct bench *bench, double storage_s)
{
	uint64_t per_gpu = bench->subject.bytes / bench->subject.num_jobs;

	if (bench->cuda || bench->real)
		return 0;
	bench->gbps = strcmp(bench->engine, "match") ? strtod(bench->engine, NULL)
						     : (double)per_gpu / storage_s / 1e9;
	return set_knob(bench, "engine_bytes_per_s", (uint64_t)(bench->gbps * 1e9));
}

/* One run of the plugin that is not measured: it finds the slots, and makes the image that is then
 * restored. */
static int warm_up(struct bench *bench)
{
	double wall, cpu;
	int ret = measure(bench, OURS, true, &wall, &cpu);

	if (bench->save)
		places_remove(&bench->places, bench->subject.num_jobs);
	expect_checksums(bench);
	return ret;
}

/* In turn, so that other processes disturb all methods alike. */
static int measure_round(struct bench *bench, struct round *round)
{
	double machine = usage_machine_seconds(), own = usage_cpu_seconds(), begin = now_seconds(),
	       there_was;
	int ret = 0;

	for (int method = 0; !ret && method < METHODS; method++)
		ret = measure_method(bench, (enum method)method, round);
	there_was = (now_seconds() - begin) * (double)sysconf(_SC_NPROCESSORS_ONLN);
	round->others =
		(usage_machine_seconds() - machine - usage_cpu_seconds() + own) / there_was * 100;
	return ret;
}

static int compare_others(const void *a, const void *b)
{
	const struct round *left = a, *right = b;

	return (left->others > right->others) - (left->others < right->others);
}

/* Waits until other processes leave the processors idle for a moment, while patience lasts. */
static void await_quiet(double *patience_s)
{
	double begin = now_seconds(), others = 100;

	while (others >= OTHERS_MAX_PERCENT && now_seconds() - begin < *patience_s) {
		double machine = usage_machine_seconds(), from = now_seconds();

		(void)usleep(LOOK_US);
		others = (usage_machine_seconds() - machine) / (now_seconds() - from) /
			 (double)sysconf(_SC_NPROCESSORS_ONLN) * 100;
	}
	*patience_s -= now_seconds() - begin;
}

static bool may_repeat(const struct bench *bench, unsigned int quiet, unsigned int count)
{
	return quiet < bench->rounds && count < bench->rounds * ROUNDS_FACTOR &&
	       bench->patience_s > 0;
}

/* Measures rounds. The least disturbed ones are at the start of the array in the end, and count. */
static int measure_rounds(struct bench *bench)
{
	unsigned int count = 0, quiet = 0;
	int ret = 0;

	while (!ret && (count < bench->rounds || may_repeat(bench, quiet, count))) {
		struct round *round = &bench->measured[count++];
		double begin;

		await_quiet(&bench->patience_s);
		begin = now_seconds();
		ret = measure_round(bench, round);
		if (count > bench->rounds)
			bench->patience_s -= now_seconds() - begin;
		quiet += round->others < OTHERS_MAX_PERCENT;
	}
	qsort(bench->measured, count, sizeof(bench->measured[0]), compare_others);
	return ret;
}

/* Measures each round by @compare, which puts the plugin in two ways in the places of the reference
 * and of the plugin. */
static int measure_comparison(struct bench *bench,
			      int (*compare)(struct bench *bench, struct round *round))
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < bench->rounds; i++) {
		await_quiet(&bench->patience_s);
		ret = compare(bench, &bench->measured[i]);
	}
	return ret;
}

/* The cost of checksums: the plugin with them and without. */
static int compare_checksums(struct bench *bench, struct round *round)
{
	int ret;

	bench->settings.checksum = true;
	ret = measure_method(bench, OURS, round);
	round->wall[REFERENCE] = round->wall[OURS];
	bench->settings.checksum = false;
	return ret ? ret : measure_method(bench, OURS, round);
}

/* A dump with memory for all contents. All is copied long before all is written: that time takes
 * the place of storage alone. */
static int measure_kept(struct bench *bench, struct round *round)
{
	struct content_job *job = bench->subject.jobs;
	const uint64_t contents = content_size(job->bos, job->num_bos) / bench->subject.repeats;
	/* Parts have unused ends. */
	const struct pool_share share = { job->render_minor, contents / 32 * 33 + (32u << 20) };
	struct pool *pool = NULL;
	double begin = now_seconds(), wall, cpu;
	int ret = pool_new(&share, 1, 0, &pool);

	job->pool = pool;
	if (!ret)
		ret = pool_start(pool);
	if (!ret)
		ret = measure(bench, OURS, true, &wall, &cpu);
	round->wall[OURS] = now_seconds() - begin;
	round->wall[STORAGE] = (double)(job->copied_us - job->begin_us) / 1e6;
	job->pool = NULL;
	pool_free(pool);
	places_remove(&bench->places, bench->subject.num_jobs);
	return ret;
}

/* What dump-memory costs and gains: a dump without it, the copies alone, and a dump with it. */
static int compare_kept(struct bench *bench, struct round *round)
{
	int ret = measure_method(bench, OURS, round);

	round->wall[REFERENCE] = round->wall[OURS];
	if (!ret)
		ret = measure_method(bench, COPY, round);
	return ret ? ret : measure_kept(bench, round);
}

/* The reads of a restore alone, in the memory that its slots have, by as many threads as there are
 * processors, or twice as many. The better of the two, in the place of storage alone. */
static int measure_reads(struct bench *bench, double *ret_wall)
{
	size_t processors = usable_processors(), num_jobs = bench->subject.num_jobs;
	unsigned int threads = (unsigned int)clamp(processors / num_jobs, 1, processors), slots;
	uint64_t slot_size;
	double begin, wall;
	int ret = 0;

	staging_slots(&slots, &slot_size);
	for (unsigned int i = 0; !ret && i < 2; i++, threads *= 2) {
		ret = places_open(&bench->places, bench->subject.jobs, num_jobs, false);
		begin = now_seconds();
		if (!ret)
			ret = reads_alone_run(bench->subject.jobs, num_jobs, threads,
					      slots * slot_size / threads);
		wall = now_seconds() - begin;
		if (!ret)
			ret = places_close(&bench->places, bench->subject.jobs, num_jobs);
		if (!i || wall < *ret_wall)
			*ret_wall = wall;
	}
	return ret;
}

/* A restore, its copies alone, and its reads alone. */
static int compare_reads(struct bench *bench, struct round *round)
{
	int ret = measure_method(bench, OURS, round);

	if (!ret)
		ret = measure_method(bench, COPY, round);
	return ret ? ret : measure_reads(bench, &round->wall[STORAGE]);
}

/* Of a real engine, what is measured also moves the right bytes. Then no BO is zero: a dump would
 * skip such contents. BOs that stand in a job several times would have the bytes of the last. */
static int prove(struct bench *bench)
{
	if (bench->subject.repeats > 1)
		return bench->proof_only ? -EMFILE : 0;
	if (!bench->cuda && !bench->real && !bench->proof_only)
		return 0;
	return proof_run(&bench->places, bench->subject.jobs, bench->subject.num_jobs,
			 &bench->settings, bench->cuda);
}

/* -EIO after the lines of the simulator, if the proof has broken a rule of the driver or has left a
 * buffer behind. */
static int check_simulator(void)
{
	char violations[4096] = "";
	int ret = simulator_write("process_exit", "1");

	if (ret >= 0)
		ret = simulator_read("violations", violations, sizeof(violations));
	if (ret < 0)
		return ret;
	if (!atoi(violations))
		return 0;
	printf("%s", violations);
	return -EIO;
}

/* Whether the case has no reference and no storage alone. */
static bool compares(const struct bench *bench)
{
	return bench->checksums_only || bench->kept_only || bench->reads_only;
}

static int measure_all(struct bench *bench)
{
	double storage_s = 0;
	int ret = set_knob(bench, "skip_copies", !bench->cuda && !bench->proof_only);

	if (!ret)
		ret = set_knob(bench, "engine_latency_us", bench->cuda ? 0 : bench->latency_us);
	if (!ret)
		ret = prove(bench);
	if (ret || bench->proof_only)
		return ret;
	ret = warm_up(bench);
	if (!ret && !compares(bench) && !bench->ways_known)
		ret = choose_ways(bench);
	if (!ret && !strcmp(bench->engine, "match"))
		ret = measure_best_storage(bench, &storage_s);
	if (!ret)
		ret = set_engine(bench, storage_s);
	if (!ret)
		ret = bench->checksums_only ? measure_comparison(bench, compare_checksums)
		      : bench->kept_only    ? measure_comparison(bench, compare_kept)
		      : bench->reads_only   ? measure_comparison(bench, compare_reads)
					    : measure_rounds(bench);
	places_remove(&bench->places, bench->subject.num_jobs);
	return ret;
}

static int compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

struct values {
	double median;
	/* The range from the smallest to the largest value, in percent of the median. */
	double spread;
};

/* For the double at @offset in each round. */
static struct values sum_up(const struct bench *bench, size_t offset)
{
	unsigned int count = bench->rounds;
	double values[ROUNDS_MAX];
	struct values sum;

	for (unsigned int i = 0; i < count; i++)
		values[i] = *(const double *)((const char *)&bench->measured[i] + offset);
	qsort(values, count, sizeof(*values), compare);
	sum.median = (values[count / 2] + values[(count - 1) / 2]) / 2;
	sum.spread = (values[count - 1] - values[0]) / sum.median * 100;
	return sum;
}

static void sum_up_methods(const struct bench *bench, struct values *ret_values)
{
	for (size_t i = 0; i < METHODS; i++)
		ret_values[i] = sum_up(bench, offsetof(struct round, wall) + i * sizeof(double));
}

/* The columns of the CSV file, and then the other columns of the table. */
static void print_line(const struct bench *bench)
{
	double cpu = sum_up(bench, offsetof(struct round, cpu)).median;
	double gigabytes = (double)bench->subject.bytes / 1e9, gbps = bench->gbps, limit;
	struct values s[METHODS];

	sum_up_methods(bench, s);
	if (bench->real)
		gbps = gigabytes / s[COPY].median;
	limit = s[COPY].median > s[STORAGE].median ? s[COPY].median : s[STORAGE].median;
	printf("%s,%u,%s,%s,%.2f,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f,%llu,%.4f", bench->name, bench->gpus,
	       bench->save ? "dump" : "restore", bench->storage, gbps, s[REFERENCE].median,
	       s[OURS].median, s[COPY].median, s[STORAGE].median,
	       s[REFERENCE].median / s[OURS].median, limit / s[OURS].median,
	       (unsigned long long)bench->staging_bytes >> 10, cpu / gigabytes);
	printf(",%.0f,%.0f,%.0f,%.0f,%.2f,%ld,%.0f,%u:%u\n", s[REFERENCE].spread, s[OURS].spread,
	       s[COPY].spread, s[STORAGE].spread, gigabytes,
	       bench->peak_kib / (long)bench->subject.num_jobs,
	       bench->measured[bench->rounds - 1].others, bench->ways[0], bench->ways[1]);
}

static void print_checksums(const struct bench *bench)
{
	struct values with = sum_up(bench, offsetof(struct round, wall[REFERENCE]));
	struct values without = sum_up(bench, offsetof(struct round, wall[OURS]));

	printf("%s %s %s at %.0f GB/s: %.3f s with checksums (spread %.0f %%), %.3f s without"
	       " (%.0f %%): %+.1f %%\n",
	       bench->name, bench->save ? "dump" : "restore", bench->storage, bench->gbps,
	       with.median, with.spread, without.median, without.spread,
	       (with.median / without.median - 1) * 100);
}

static void print_kept(const struct bench *bench)
{
	struct values s[METHODS];

	sum_up_methods(bench, s);
	printf("%s dump %s, %.2f GB kept: copied after %.3f s (spread %.0f %%), %.2f of the copy"
	       " alone (%.0f %%); dump %.3f s (%.0f %%), without memory %.3f s (%.0f %%)\n",
	       bench->name, bench->storage, (double)bench->subject.bytes / 1e9, s[STORAGE].median,
	       s[STORAGE].spread, s[STORAGE].median / s[COPY].median, s[COPY].spread,
	       s[OURS].median, s[OURS].spread, s[REFERENCE].median, s[REFERENCE].spread);
}

static void print_reads(const struct bench *bench)
{
	double cpu = sum_up(bench, offsetof(struct round, cpu)).median;
	double gigabytes = (double)bench->subject.bytes / 1e9;
	struct values s[METHODS];

	sum_up_methods(bench, s);
	printf("%s restore %s, %u GPUs, %.2f GB: %.3f s (spread %.0f %%), %.2f s of processors per GB;"
	       " copies alone %.3f s (%.0f %%); reads and checksums alone %.3f s (%.0f %%), %.2f of"
	       " the restore\n",
	       bench->name, bench->storage, bench->gpus, gigabytes, s[OURS].median, s[OURS].spread,
	       cpu / gigabytes, s[COPY].median, s[COPY].spread, s[STORAGE].median,
	       s[STORAGE].spread, s[STORAGE].median / s[OURS].median);
}

static int run(struct bench *bench)
{
	_cleanup_(options_done) struct options options = { 0 };
	char words[1024];
	int ret;

	if (bench->cuda && proof_start_cuda() < 0)
		return EXIT_SKIPPED;
	ret = options_read_with_file("/dev/null", &options);
	if (ret < 0)
		return ret;
	bench->settings = options.content;
	(void)snprintf(words, sizeof(words), "%s,gpus=%u,verify=0,map=0", bench->words,
		       bench->gpus);
	ret = subject_make(words, bench->most_bytes, &bench->subject);
	if (!ret)
		ret = measure_all(bench);
	if (!ret && !bench->proof_only)
		(bench->checksums_only ? print_checksums
		 : bench->kept_only    ? print_kept
		 : bench->reads_only   ? print_reads
				       : print_line)(bench);
	subject_done(&bench->subject);
	if (!ret && bench->proof_only) {
		ret = check_simulator();
		puts(ret < 0 ? "not proved" : "proved");
	}
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
	};
	int ret;

	criu_stub.log_level = 1;
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && !strcmp(argv[1], "-H")) {
		printf("%.6f\n", sums_alone_run((unsigned int)usable_processors()));
		return 0;
	}
	if (choices_parse(argc, argv, &bench) < 0)
		return 2;
	ret = run(&bench);
	return ret < 0 ? 1 : ret;
}
