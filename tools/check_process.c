// SPDX-License-Identifier: GPL-2.0-only
/* A process and its descendants, which run on meanwhile. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "check.h"
#include "container.h"
#include "facts.h"
#include "foresee.h"
#include "kernel/proc.h"
#include "other_files.h"
#include "preflight/preflight_process.h"
#include "survey.h"
#include "text.h"

/* The storage and the copy engines that the estimate of the time assumes, in GiB/s. */
#define STORAGE_SPEED 1
#define COPY_SPEED    20

static int read_pid(const char *text, pid_t *ret_pid)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (!*text || *end || pid <= 0 || pid > INT32_MAX)
		return -EINVAL;
	*ret_pid = (pid_t)pid;
	return 0;
}

/* "(python3)"; "" if the process has ended. */
static const char *read_name(pid_t pid, char text[static 32])
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64], name[24] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = stream_open(path);
	text[0] = '\0';
	if (file && fgets(name, sizeof(name), file)) {
		name[strcspn(name, "\n")] = '\0';
		text_make_printable(name);
		(void)snprintf(text, 32, " (%s)", name);
	}
	return text;
}

static void print_gpu(const struct survey *survey, const struct survey_gpu *gpu)
{
	char vram[16] = "unknown", mapped[16], node[24];

	(void)snprintf(node, sizeof(node), "renderD%" PRIu32, gpu->node->drm_render_minor);
	if (survey->is_in_sysfs)
		(void)text_size(gpu->vram_bytes, vram);
	printf("  0x%04" PRIx32 "   %-10s %12s %12s %8zu\n", gpu->node->gpu_id, node, vram,
	       text_size(gpu->mapped_bytes, mapped), gpu->num_mapped);
}

static void print_survey(const struct survey *survey)
{
	char name[32];

	printf("process %d%s: %s\n", survey->pid, read_name(survey->pid, name),
	       survey->has_kfd ? "has /dev/kfd open" : "has /dev/kfd not open");
	printf("  %-8s %-10s %12s %12s %8s\n", "GPU", "node", "VRAM in use", "mapped", "mappings");
	for (size_t i = 0; i < survey->num_gpus; i++)
		print_gpu(survey, &survey->gpus[i]);
	for (size_t i = 0; i < survey->num_queues; i++)
		printf("  queue %" PRIu32 ": %s on GPU 0x%04" PRIx32 "\n", survey->queues[i].id,
		       facts_queue_type(survey->queues[i].type), survey->queues[i].gpu_id);
}

static bool uses_gpu(const struct survey *survey)
{
	return survey->has_kfd || survey->is_in_sysfs || survey->num_gpus;
}

/* The processes that use a GPU. */
struct surveys {
	struct survey *list;
	size_t count;
};

static void surveys_done(struct surveys *surveys)
{
	for (size_t i = 0; i < surveys->count; i++)
		survey_done(&surveys->list[i]);
	free(surveys->list);
}

/* A process that has ended meanwhile is no error. */
static int examine(struct check *check, pid_t pid, struct surveys *surveys)
{
	struct survey survey = { 0 };
	int ret = survey_read(pid, &check->topology, &survey);

	if (!ret)
		ret = other_files_warn(pid, &check->topology);
	if (!ret && uses_gpu(&survey))
		ret = array_append(&surveys->list, &surveys->count, sizeof(survey), &survey);
	if (ret < 0 || !uses_gpu(&survey))
		survey_done(&survey);
	if (!ret || ret == -ESRCH || ret == -ENOENT)
		return TOOL_YES;
	check_refuse(check, "process %d: cannot examine: %s; run this command as root", pid,
		     strerror(-ret));
	return TOOL_TROUBLE;
}

static void print(struct check *check, const struct survey *survey)
{
	uint64_t largest;

	check->contents += survey_estimate(survey, &largest);
	check->largest = largest > check->largest ? largest : check->largest;
	if (!check->quiet)
		print_survey(survey);
	for (size_t i = 0; i < survey->num_gpus; i++) {
		if (survey->gpus[i].vram_bytes || survey->gpus[i].num_mapped)
			check_machine_gpu(check, survey->gpus[i].node);
	}
}

static void print_estimate(const struct check *check)
{
	double gib = (double)check->contents / (1ULL << 30);
	char size[16], text[512];

	printf("contents: about %s, which take %.1f s if the storage takes %d GiB/s\n",
	       text_size(check->contents, size), gib / STORAGE_SPEED, STORAGE_SPEED);
	printf("pause of a job that runs on: as long, or %.2f s with dump-memory for all contents if the GPUs copy %d GiB/s\n",
	       gib / COPY_SPEED, COPY_SPEED);
	printf("only the dump can tell whether\n");
	for (size_t i = 0; foresee_name_late(i, text, sizeof(text)); i++)
		printf("  %s\n", text);
}

/* A number is a pid, another word the name of a container. */
static int find_pid(struct check *check, pid_t *ret_pid)
{
	const char *name = check->request->pid;
	int ret = read_pid(name, ret_pid);

	if (ret < 0 && strspn(name, "0123456789") != strlen(name))
		ret = container_find_pid(name, ret_pid);
	if (ret == -ENOENT)
		check_refuse(
			check,
			"there is no process %s, and neither podman nor docker to ask for a container of that name; give its pid",
			name);
	else if (ret == -ESRCH)
		check_refuse(
			check,
			"there is no process %s, and podman and docker know no container of that name for this user; give its pid",
			name);
	else if (ret == -ENOTCONN)
		check_refuse(check, "container %s does not run; start it", name);
	else if (ret < 0)
		check_refuse(check, "there is no process %s", name);
	return ret;
}

int check_find_process(struct check *check, struct pid_list *ret_tree)
{
	pid_t pid = 0;
	int ret = find_pid(check, &pid);

	if (ret < 0)
		return TOOL_TROUBLE;
	ret = proc_list_tree(pid, ret_tree);
	if (!ret && ret_tree->count)
		return TOOL_YES;
	check_refuse(check, "there is no process %s", check->request->pid);
	return TOOL_TROUBLE;
}

static bool has_queue(const struct survey *survey, const struct topology_node *gpu)
{
	for (size_t i = 0; i < survey->num_queues; i++) {
		if (survey->queues[i].gpu_id == gpu->gpu_id)
			return true;
	}
	return false;
}

static void note_gpus(const struct check *check, const struct survey *survey,
		      struct preflight_gpu *uses)
{
	for (size_t i = 0; i < survey->num_gpus; i++) {
		const struct survey_gpu *gpu = &survey->gpus[i];
		struct preflight_gpu *use = &uses[gpu->node - check->topology.nodes];

		use->is_seen |= gpu->is_visible || gpu->is_open;
		use->is_used |= gpu->vram_bytes || gpu->num_mapped || has_queue(survey, gpu->node);
	}
}

static void warn_of_unused(const struct check *check, const struct surveys *surveys)
{
	_cleanup_free_ struct preflight_gpu *uses =
		calloc(check->topology.num_nodes + 1, sizeof(*uses));

	for (size_t i = 0; uses && i < surveys->count; i++)
		note_gpus(check, &surveys->list[i], uses);
	if (uses)
		preflight_process_warn_of_unused(&check->topology, uses);
}

/* The driver keeps the process until its end, but CRIU shows the plugin files and mappings only. */
static bool is_dumped(const struct surveys *surveys)
{
	bool found = false;

	for (size_t i = 0; i < surveys->count; i++)
		found |= surveys->list[i].has_files;
	return found;
}

int check_process(struct check *check, const struct pid_list *tree, bool *ret_has_gpu)
{
	_cleanup_(surveys_done) struct surveys surveys = { 0 };

	*ret_has_gpu = false;
	for (size_t i = 0; i < tree->count; i++) {
		int ret = examine(check, tree->pids[i], &surveys);

		if (ret != TOOL_YES)
			return ret;
	}
	if (!surveys.count) {
		check_refuse(check, "process %s and its descendants use no AMD GPU",
			     check->request->pid);
		return TOOL_YES;
	}
	if (!is_dumped(&surveys)) {
		check_refuse(
			check,
			"process %s and its descendants have closed /dev/kfd: a dump has nothing of AMD GPUs to save",
			check->request->pid);
		return TOOL_YES;
	}
	*ret_has_gpu = true;
	for (size_t i = 0; i < surveys.count; i++)
		print(check, &surveys.list[i]);
	(void)fflush(stdout);
	warn_of_unused(check, &surveys);
	if (foresee_tree(&check->options, &check->topology, tree, surveys.list, surveys.count) < 0)
		check->refused = true;
	if (!check->quiet)
		print_estimate(check);
	return TOOL_YES;
}
