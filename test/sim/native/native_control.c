// SPDX-License-Identifier: GPL-2.0-only
/* The test's view of the simulator and its switches, for the program and its environment. */
#include <ctype.h>

#include "amdgpu_sim.h"
#include "native.h"
#include "native_cuda.h"

#define EXPORTED __attribute__((visibility("default")))

struct text_file {
	const char *name;
	int (*print)(struct native *native, char *text, u32 size);
	int (*write)(struct native *native, const char *line);
};

static int print_violations(struct native *native, char *text, u32 size)
{
	return sim_violations_print(&native->sim.violations, text, size);
}

static int write_violations(struct native *native, const char *line)
{
	(void)line;
	sim_violations_clear(&native->sim.violations);
	return 0;
}

/* Two counts are not stored: each read computes them. */
static int print_objects(struct native *native, char *text, u32 size)
{
	s64 *counts = native->sim.counts;

	native_files_reap(native);
	__atomic_store_n(&counts[SIM_COUNT_PAGES], (s64)native_bo_count_pages(native),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&counts[SIM_COUNT_DMABUFS], (s64)native_holders_count_descriptors(native),
			 __ATOMIC_RELAXED);
	return sim_print_counts(&native->sim, text, size);
}

static int write_faults(struct native *native, const char *line)
{
	return sim_faults_command(&native->sim.faults, line);
}

static int print_process(struct native *native, struct native_process *process, char *text,
			 u32 size)
{
	pid_t pid = process->task ? native->others[process->task - 1].pid : native->pid;
	int used = snprintf(text, size, "pid=%d comm=%s ", pid, program_invocation_short_name);

	used += sim_process_print(&process->process, text + used, size - (u32)used);
	native_process_put(process);
	return used + snprintf(text + used, size - (u32)used, "\n");
}

/* The process of a task, and its contexts. */
static int print_processes_of(struct native *native, u32 task, char *text, u32 size)
{
	struct native_process *process = native_process_get(native, task);
	int used = 0;
	u32 number;

	if (!process)
		return 0;
	used += print_process(native, process, text, size);
	for (number = 0; (process = native_context_next(native, task, &number)); number++)
		used += print_process(native, process, text + used, size - (u32)used);
	return used;
}

static int print_processes(struct native *native, char *text, u32 size)
{
	int used = 0;
	u32 task;

	native_process_settle(native);
	text[0] = '\0';
	for (task = 0; task < NATIVE_TASKS; task++)
		used += print_processes_of(native, task, text + used, size - (u32)used);
	return used;
}

static int write_hidden(struct native *native, const char *line)
{
	bool hide[SIM_MAX_GPUS] = { false };
	u32 i;

	while (*line) {
		char *end;
		unsigned long index = strtoul(line, &end, 10);

		if (end == line || index >= native->sim.num_gpus || (*end && *end != ','))
			return -EINVAL;
		hide[index] = true;
		line = *end ? end + 1 : end;
	}
	for (i = 0; i < native->sim.num_gpus; i++)
		native->sim.gpus[i].hidden = hide[i];
	return 0;
}

static int write_kernel(struct native *native, const char *line)
{
	return sim_kernel_set(&native->sim, line);
}

static int write_own_files(struct native *native, const char *line)
{
	native->own_files = atoi(line);
	return 0;
}

static int add_other(struct native *native, const struct native_other *other)
{
	u32 i = 0;

	while (i < native->num_others && native->others[i].pid != other->pid)
		i++;
	if (i == ARRAY_SIZE(native->others))
		return -ENOSPC;
	native->others[i] = *other;
	native->num_others = max(native->num_others, i + 1);
	return 0;
}

static int write_own_pid(struct native *native, const char *line)
{
	struct native_other other = { 0 };

	if (sscanf(line, "%d %d", &other.own_pid, &other.pid) == 2)
		return add_other(native, &other);
	native->own_pid = atoi(line);
	return 0;
}

static int write_pid_namespace(struct native *native, const char *line)
{
	native->in_pid_namespace = atoi(line);
	return 0;
}

static int trace_other(struct native *native, pid_t pid)
{
	u32 i;

	for (i = 0; i < native->num_others; i++) {
		if (native->others[i].pid != pid)
			continue;
		native->others[i].traced = true;
		return 0;
	}
	return -ESRCH;
}

static int write_traced(struct native *native, const char *line)
{
	pid_t pid;

	if (sscanf(line, "2 %d", &pid) == 1)
		return trace_other(native, pid);
	native->traced = atoi(line) == 1;
	native->others_traced = atoi(line) == 2;
	return 0;
}

static int write_task(struct native *native, const char *line)
{
	unsigned long task = strtoul(line, NULL, 10);

	if (task >= NATIVE_TASKS)
		return -EINVAL;
	native->task = (u32)task;
	return 0;
}

static int write_process_exit(struct native *native, const char *line)
{
	(void)line;
	native_process_exit(native);
	return 0;
}

static u64 sum_mapping_ids(const struct sim_process *process, const struct sim_mem *mem)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < process->num_pdds; i++)
		if (mem->mapped & 1ull << i)
			sum += process->pdds[i]->user_gpu_id;
	return sum;
}

/* A text for a program. Its whole length counts, also without room, so that the program can
 * allocate enough. */
struct text {
	char *at;
	u32 room, length;
};

static void __attribute__((format(printf, 2, 3))) append(struct text *text, const char *format, ...)
{
	bool fits = text->length < text->room;
	va_list args;

	va_start(args, format);
	text->length += (u32)vsnprintf(fits ? text->at + text->length : NULL,
				       fits ? text->room - text->length : 0, format, args);
	va_end(args);
}

/* The next one by the id that the process knows; NULL: none. */
static struct sim_pdd *next_pdd(struct sim_process *process, u32 above)
{
	struct sim_pdd *next = NULL;
	u32 i;

	for (i = 0; i < process->num_pdds; i++) {
		struct sim_pdd *pdd = process->pdds[i];

		if (pdd->user_gpu_id > above && (!next || pdd->user_gpu_id < next->user_gpu_id))
			next = pdd;
	}
	return next;
}

static void print_buffers(struct sim_process *process, struct sim_pdd *pdd, struct text *text)
{
	struct sim_mem *mem;
	u32 id;

	sim_lock(&process->lock);
	for (id = 0; (mem = sim_ids_next(&pdd->mems, &id)); id++)
		append(text, "va=%llx size=%llu handle=%llx mapped=%llx\n", mem->va, mem->bo->size,
		       (u64)pdd->user_gpu_id << 32 | mem->id, sum_mapping_ids(process, mem));
	sim_unlock(&process->lock);
}

static void print_mappings(struct sim_pdd *pdd, struct sim_bo *bo, struct text *text)
{
	struct sim_mapping list[16];
	u32 count = sim_vm_list(&pdd->render->vm, bo, list, ARRAY_SIZE(list)), i;

	for (i = 0; i < count && i < ARRAY_SIZE(list); i++)
		append(text, " va=%llx size=%llu offset=%llu flags=%x by=%s", list[i].start,
		       list[i].end - list[i].start, list[i].offset, list[i].flags,
		       list[i].origin == SIM_VM_GEM ? "gem" : "kfd");
}

/* The address of KFD's buffer that is the object, or 0. */
static u64 find_buffer(struct sim_process *process, const struct sim_bo *bo)
{
	struct sim_mem *mem;
	u64 va = 0;
	u32 i, id;

	sim_lock(&process->lock);
	for (i = 0; i < process->num_pdds; i++)
		for (id = 0; (mem = sim_ids_next(&process->pdds[i]->mems, &id)); id++)
			va = mem->bo == bo && !va ? mem->va : va;
	sim_unlock(&process->lock);
	return va;
}

static void print_object(struct sim_process *process, struct sim_bo *bo, struct text *text)
{
	u32 i;

	append(text, " buffer=%llx", find_buffer(process, bo));
	sim_lock(&bo->lock);
	if (bo->metadata)
		append(text, " tiling=%llx flags=%llx metadata=", bo->tiling, bo->metadata_flags);
	for (i = 0; bo->metadata && i < bo->metadata->bytes; i++)
		append(text, "%02x", ((u8 *)bo->metadata->data)[i]);
	sim_unlock(&bo->lock);
}

static void print_handles(struct sim_process *process, struct sim_pdd *pdd, struct text *text)
{
	u32 handle = pdd->render ? sim_os_handle_next(pdd->render, 1) : 0;

	for (; handle; handle = sim_os_handle_next(pdd->render, handle + 1)) {
		struct sim_bo *bo = sim_os_handle_lookup(pdd->render, handle);

		append(text, "gpu=%x handle=%u", pdd->user_gpu_id, handle);
		if (bo) {
			print_object(process, bo, text);
			print_mappings(pdd, bo, text);
			sim_os_bo_put(bo);
		}
		append(text, "\n");
	}
}

/* Returns the whole length. GPUs come in the order of the ids that the process knows, so that texts
 * of before a dump and after a restore can be compared. */
static int print_gpus(struct native *native, char *at, u32 size,
		      void (*print)(struct sim_process *process, struct sim_pdd *pdd,
				    struct text *text))
{
	struct sim_process *process = sim_os_process_find((u32)native->pid);
	struct sim_pdd *pdd = process ? next_pdd(process, 0) : NULL;
	struct text text = { at, size, 0 };

	at[0] = '\0';
	for (; pdd; pdd = next_pdd(process, pdd->user_gpu_id))
		print(process, pdd, &text);
	if (process)
		sim_os_process_put(process);
	return (int)text.length;
}

static int print_kfd_bos(struct native *native, char *text, u32 size)
{
	return print_gpus(native, text, size, print_buffers);
}

static int print_gem_handles(struct native *native, char *text, u32 size)
{
	return print_gpus(native, text, size, print_handles);
}

static int print_cuda(struct native *native, char *text, u32 size)
{
	const char *name = native_cuda_name();

	(void)native;
	return name ? snprintf(text, size, "%s\n", name) : -ENODEV;
}

static int write_cuda(struct native *native, const char *line)
{
	(void)native;
	return atoi(line) ? native_cuda_start() : -EINVAL;
}

static int write_cuda_scribble(struct native *native, const char *line)
{
	return native_cuda_scribble(native, (u8)strtoul(line, NULL, 0));
}

static const struct text_file text_files[] = {
	{ "violations", print_violations, write_violations },
	{ "processes", print_processes, NULL },
	{ "objects", print_objects, NULL },
	{ "faults", NULL, write_faults },
	{ "hidden", NULL, write_hidden },
	{ "kernel", NULL, write_kernel },
	{ "own_files", NULL, write_own_files },
	{ "own_pid", NULL, write_own_pid },
	{ "pid_namespace", NULL, write_pid_namespace },
	{ "traced", NULL, write_traced },
	{ "task", NULL, write_task },
	{ "kfd_bos", print_kfd_bos, NULL },
	{ "gem_handles", print_gem_handles, NULL },
	{ "process_exit", NULL, write_process_exit },
	{ "cuda", print_cuda, write_cuda },
	{ "cuda_scribble", NULL, write_cuda_scribble },
};

static const struct text_file *find_file(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(text_files); i++)
		if (strcmp(text_files[i].name, name) == 0)
			return &text_files[i];
	return NULL;
}

/* Parses a number with an optional suffix K, M or G. */
static int parse_number(const char *text, s64 *ret_value)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;
	s64 value;

	value = strtoll(text, &end, 0);
	if (end == text)
		return -EINVAL;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return -EINVAL;
	*ret_value = unit ? value << 10 * (unit - units + 1) : value;
	return 0;
}

static int write_knob(struct native *native, const char *name, const char *text)
{
	s64 value;
	int ret = parse_number(text, &value);

	return ret < 0 ? ret : sim_knob_set(&native->sim, name, value);
}

static int write_file(struct native *native, const char *name, const char *text)
{
	const struct text_file *file = find_file(name);

	if (!file)
		return write_knob(native, name, text);
	return file->write ? file->write(native, text) : -EINVAL;
}

EXPORTED int amdgpu_sim_write(const char *name, const char *text)
{
	struct native *native = native_get();

	return native ? write_file(native, name, text) : -ENODEV;
}

EXPORTED int amdgpu_sim_read(const char *name, char *text, size_t size)
{
	const struct text_file *file = find_file(name);
	struct native *native = native_get();

	if (!native || !size)
		return -ENODEV;
	return file && file->print ? file->print(native, text, (u32)size) : -ENOENT;
}

/* Finds the process's buffer and takes a reference. */
static int find_bo(uint64_t handle, struct sim_bo **ret_bo)
{
	struct native *native = native_get();
	struct sim_process *process = native ? sim_os_process_find((u32)native->pid) : NULL;
	struct sim_mem *mem;

	if (!process)
		return -ESRCH;
	sim_lock(&process->lock);
	mem = sim_mem_find(process, handle);
	if (mem)
		sim_os_bo_get(mem->bo);
	*ret_bo = mem ? mem->bo : NULL;
	sim_unlock(&process->lock);
	sim_os_process_put(process);
	return mem ? 0 : -ENOENT;
}

EXPORTED int amdgpu_sim_peek(uint64_t handle, uint64_t offset, void *data, size_t size)
{
	struct sim_bo *bo;
	int ret = find_bo(handle, &bo);

	if (ret < 0)
		return ret;
	ret = sim_bo_read(bo, offset, data, size);
	sim_os_bo_put(bo);
	return ret;
}

EXPORTED int amdgpu_sim_poke(uint64_t handle, uint64_t offset, const void *data, size_t size)
{
	struct sim_bo *bo;
	int ret = find_bo(handle, &bo);

	if (ret < 0)
		return ret;
	ret = sim_bo_write(bo, offset, data, size);
	sim_os_bo_put(bo);
	return ret;
}

/* 1: the GPU maps the address; 0: it does not. */
static int find_va(struct sim_pdd *pdd, uint64_t va, struct sim_client *ret_client)
{
	struct sim_mapping mapping;

	if (!pdd->render || sim_vm_find(&pdd->render->vm, va, &mapping) < 0)
		return 0;
	sim_os_bo_put(mapping.bo);
	*ret_client = (struct sim_client){ .sim = pdd->process->sim,
					   .vm = &pdd->render->vm,
					   .who = "a program" };
	return 1;
}

/* 1: the GPU maps the address; 0: it does not; or -errno. */
static int peek_va(struct sim_pdd *pdd, uint64_t va, void *data, size_t size)
{
	struct sim_client client;
	int ret;

	if (!find_va(pdd, va, &client))
		return 0;
	ret = sim_client_read(&client, va, data, size);
	return ret < 0 ? ret : 1;
}

EXPORTED int amdgpu_sim_peek_va(uint64_t va, void *data, size_t size)
{
	struct native *native = native_get();
	struct sim_process *process = native ? sim_os_process_find((u32)native->pid) : NULL;
	void *other = malloc(size);
	int ret = other ? 0 : -ENOMEM, count = 0;
	u32 i;

	for (i = 0; process && ret >= 0 && i < process->num_pdds; i++) {
		struct sim_pdd *pdd = process->pdds[i];

		ret = peek_va(pdd, va, count ? other : data, size);
		if (ret > 0 && count && memcmp(data, other, size) != 0)
			ret = -EIO;
		count += ret > 0;
	}
	free(other);
	if (process)
		sim_os_process_put(process);
	return ret < 0 ? ret : count;
}

EXPORTED int amdgpu_sim_poke_va(uint64_t va, const void *data, size_t size)
{
	struct native *native = native_get();
	struct sim_process *process = native ? sim_os_process_find((u32)native->pid) : NULL;
	struct sim_client client;
	int ret = -EFAULT;
	u32 i;

	for (i = 0; process && ret == -EFAULT && i < process->num_pdds; i++) {
		if (find_va(process->pdds[i], va, &client))
			ret = sim_client_write(&client, va, data, size);
	}
	if (process)
		sim_os_process_put(process);
	return ret;
}

/* AMDGPU_SIM_KNOBS="FILE=TEXT;FILE=TEXT" */
void native_control_from_environment(struct native *native)
{
	const char *value = getenv("AMDGPU_SIM_KNOBS");
	char *copy = value ? strdup(value) : NULL, *rest = copy, *entry;

	while ((entry = copy ? strsep(&rest, ";\n") : NULL)) {
		char *text = strchr(entry, '=');
		int ret = -EINVAL;

		if (!*entry)
			continue;
		if (text) {
			*text++ = '\0';
			ret = write_file(native, entry, text);
		}
		if (ret < 0) {
			(void)fprintf(stderr, "amdgpu_sim: AMDGPU_SIM_KNOBS: %s=%s: %s\n", entry,
				      text ? text : "", strerror(-ret));
			abort();
		}
	}
	free(copy);
}
