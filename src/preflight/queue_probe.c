// SPDX-License-Identifier: GPL-2.0-only
/* Tries RESTORE with one queue, in a child process. The driver binds KFD state to the memory of a
 * process, so nothing of the child touches the paused process or CRIU. */
#include "preflight/queue_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "kernel/render_node.h"

#define PAGE 4096u

/* A child that takes longer hangs in the kernel: this, and a second for each render node that it
 * opens. */
#define TIMEOUT_S 5

/* One BO for each buffer, or one alone. */
#define BOS_MAX KFD_PRIV_QUEUE_BUFFERS

/* Access of the GPU (uapi/linux/kfd_ioctl.h: WRITABLE and EXECUTABLE). */
#define BO_ACCESS (3u << 30)

/* Queues that no known kernel treats differently, and what the kernel said of one of them. */
struct queue_answer {
	uint32_t type;
	bool has_area_in_bo;
	uint32_t gfx_target_version;
	uint32_t num_xcc;
	/* On several XCCs, where it decides on the form of the state (kfd_queue_repair()). */
	bool has_waves;
	int ret;
};

/* A process that RESTORE is to build. */
struct probe {
	struct kfd_state state;
	/* The data of the saved process with the state of the queue as a restore gives it, and that
	 * queue. */
	struct kfd_priv priv;
	struct kfd_priv_queue queue;
	uint8_t *repaired;
	/* By index of the devices. */
	uint32_t *minors;
	struct kfd_priv_bo bos[BOS_MAX];
	/* Addresses for the memory of the BOs, which nothing uses. */
	char *memory;
	size_t memory_size;
};

static void probe_done(struct probe *probe)
{
	kfd_state_done(&probe->state);
	free(probe->minors);
	free(probe->repaired);
	if (probe->memory)
		(void)munmap(probe->memory, probe->memory_size);
}

/* The BO that begins with the page of @address. Libraries give each buffer of a queue a BO. */
static uint32_t find_bo(const struct kfd_state *state, const struct kfd_priv_queue *queue,
			uint64_t address)
{
	for (uint32_t i = 0; address && i < state->num_bos; i++) {
		if (state->bos[i].gpu_id == queue->gpu_id &&
		    state->bos[i].addr == address / PAGE * PAGE)
			return i;
	}
	return KFD_PRIV_NO_BO;
}

/* SDMA queues on a GPU with one XCC are all alike. */
bool queue_probe_can_ask(const struct kfd_queue *queue)
{
	const struct topology_node *gpu = queue->gpu;

	if (!gpu || gpu->gfx_target_version >= TOPOLOGY_GFX11)
		return false;
	if (queue->saved->type != KFD_PRIV_QUEUE_COMPUTE)
		return gpu->num_xcc > 1;
	return !kfd_queue_gpu_may_overrun(queue->topology, gpu, queue->kfd_minor);
}

static bool has_gpu(const struct kfd_state *state, uint32_t actual_id)
{
	for (uint32_t i = 0; i < state->num_devices; i++) {
		if (state->devices[i].actual_gpu_id == actual_id)
			return true;
	}
	return false;
}

static void add_device(struct probe *probe, uint32_t user_id, const struct topology_node *gpu)
{
	struct kfd_state *state = &probe->state;

	probe->minors[state->num_devices] = gpu->drm_render_minor;
	state->devices[state->num_devices++] =
		(struct kfd_device_bucket){ .user_gpu_id = user_id, .actual_gpu_id = gpu->gpu_id };
}

/* RESTORE wants all GPUs that the child sees: those of CRIU. The GPUs of the saved process keep the
 * ids that it knows, because the records name them. */
static void add_devices(struct probe *probe, const struct kfd_state *saved,
			const struct topology *topology)
{
	for (uint32_t i = 0; i < saved->num_devices; i++) {
		const struct kfd_device_bucket *device = &saved->devices[i];
		const struct topology_node *gpu =
			topology_find_actual(topology, device->actual_gpu_id);

		if (gpu)
			add_device(probe, device->user_gpu_id, gpu);
	}
	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *gpu = &topology->nodes[i];

		if (gpu->gpu_id && !has_gpu(saved, gpu->gpu_id))
			add_device(probe, kfd_state_choose_id(&probe->state, gpu->gpu_id), gpu);
	}
}

/* The memory of a userptr BO is not looked at before RESUME, so a BO of any size costs nothing. */
static void add_bo(struct probe *probe, const struct kfd_state *saved, uint32_t index)
{
	struct kfd_state *state = &probe->state;

	for (uint32_t i = 0; i < state->num_bos; i++) {
		if (probe->bos[i].index == index)
			return;
	}
	probe->bos[state->num_bos].index = index;
	state->bos[state->num_bos] = (struct kfd_bo_bucket){
		.addr = saved->bos[index].addr,
		.size = saved->bos[index].size,
		.gpu_id = saved->bos[index].gpu_id,
		.alloc_flags = KFD_BO_USERPTR | BO_ACCESS,
		.dmabuf_fd = KFD_INVALID_FD,
	};
	state->num_bos++;
}

/* Older kernels refuse a process without BOs. */
static void add_lone_bo(struct probe *probe, const struct kfd_priv_queue *queue)
{
	probe->bos[0] = (struct kfd_priv_bo){ .index = KFD_PRIV_NO_BO };
	probe->state.bos[probe->state.num_bos++] = (struct kfd_bo_bucket){
		.addr = 1ULL << 33,
		.size = PAGE,
		.gpu_id = queue->gpu_id,
		.alloc_flags = KFD_BO_GTT | BO_ACCESS,
		.dmabuf_fd = KFD_INVALID_FD,
	};
}

static int reserve_memory(struct probe *probe)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < probe->state.num_bos; i++)
		size += probe->state.bos[i].size;
	if (!size)
		return -EINVAL;
	probe->memory =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (probe->memory == MAP_FAILED) {
		probe->memory = NULL;
		return -errno;
	}
	probe->memory_size = size;
	for (uint32_t i = 0; i < probe->state.num_bos; i++) {
		size -= probe->state.bos[i].size;
		if (probe->state.bos[i].alloc_flags & KFD_BO_USERPTR)
			probe->bos[i].user_addr = (uintptr_t)probe->memory + size;
	}
	return 0;
}

static int add_bos(struct probe *probe, const struct kfd_state *saved,
		   const struct kfd_priv_queue *queue)
{
	for (size_t i = 0; i < KFD_PRIV_QUEUE_BUFFERS; i++) {
		uint32_t index = find_bo(saved, queue, queue->buffers[i]);

		if (index != KFD_PRIV_NO_BO)
			add_bo(probe, saved, index);
	}
	if (!probe->state.num_bos)
		add_lone_bo(probe, queue);
	return reserve_memory(probe);
}

static int alloc_probe(struct probe *probe, const struct topology *topology)
{
	struct kfd_state *state = &probe->state;

	state->devices = calloc(topology->num_nodes + 1, sizeof(*state->devices));
	state->bos = calloc(BOS_MAX, sizeof(*state->bos));
	probe->minors = calloc(topology->num_nodes + 1, sizeof(*probe->minors));
	return state->devices && state->bos && probe->minors ? 0 : -ENOMEM;
}

/* By force a queue is restored without its waves, as the driver has saved it. */
static int repair_queue(struct probe *probe, const struct kfd_queue *queue)
{
	size_t size = 0;
	int ret =
		kfd_queue_loses_waves(queue) ? 0 : kfd_queue_repair(queue, &probe->repaired, &size);

	probe->priv = *queue->priv;
	probe->queue = *queue->saved;
	if (ret <= 0)
		return ret;
	probe->priv.bytes = probe->repaired;
	probe->priv.size = size;
	probe->queue.size += size - queue->priv->size;
	return 0;
}

static int prepare(struct probe *probe, const struct dumped_process *process,
		   const struct kfd_queue *queue)
{
	const struct topology *topology = &process->session->topology;
	int ret = alloc_probe(probe, topology);

	if (!ret)
		ret = repair_queue(probe, queue);
	if (ret < 0)
		return ret;
	add_devices(probe, &process->state, topology);
	return add_bos(probe, &process->state, queue->saved);
}

/* In the child. The end of the child closes all that is opened here. */
static int restore_in_child(void *argument)
{
	struct probe *probe = argument;

	for (uint32_t i = 0; i < probe->state.num_devices; i++) {
		int fd, ret = render_node_open(probe->minors[i], 0, &fd);

		if (ret < 0)
			return ret;
		probe->state.devices[i].drm_fd = (uint32_t)fd;
	}
	return kfd_try_restore(&probe->state);
}

/* *@ret_answer: what RESTORE said, or what kept the child from asking. */
static int run_probe(struct probe *probe, bool with_queue, int *ret_answer)
{
	const struct kfd_priv_parts parts = { probe->state.num_devices, probe->bos,
					      probe->state.num_bos,
					      with_queue ? &probe->queue : NULL };
	size_t size;
	int ret;

	free(probe->state.priv_data);
	probe->state.priv_data = NULL;
	ret = kfd_priv_build(&probe->priv, &parts, &probe->state.priv_data, &size);
	if (ret < 0)
		return ret;
	probe->state.priv_data_size = size;
	probe->state.num_objects = with_queue;
	return child_run(restore_in_child, probe, TIMEOUT_S + probe->state.num_devices, ret_answer);
}

/* EINVAL has many causes. Only if the same process without the queue can be restored, the cause is
 * the queue. */
static int ask(const struct dumped_process *process, const struct kfd_queue *queue)
{
	_cleanup_(probe_done) struct probe probe = { 0 };
	int ret, answer = 0;

	ret = prepare(&probe, process, queue);
	if (!ret)
		ret = run_probe(&probe, true, &answer);
	/* The original has the engine. The kernel has compared the sizes before it looked. */
	if (!ret && answer == -EBUSY && queue->saved->type != KFD_PRIV_QUEUE_COMPUTE)
		return 0;
	if (ret < 0 || answer != -EINVAL)
		return ret < 0 ? ret : answer;
	ret = run_probe(&probe, false, &answer);
	if (ret < 0 || answer < 0)
		return ret < 0 ? ret : answer;
	return -EOPNOTSUPP;
}

static struct queue_answer kind_of(const struct kfd_state *state, const struct kfd_queue *queue)
{
	const uint64_t area = queue->saved->buffers[KFD_PRIV_QUEUE_AREA];

	return (struct queue_answer){
		.type = queue->saved->type,
		.has_area_in_bo = find_bo(state, queue->saved, area) != KFD_PRIV_NO_BO,
		.gfx_target_version = queue->gpu->gfx_target_version,
		.num_xcc = queue->gpu->num_xcc,
		.has_waves = queue->gpu->num_xcc > 1 && kfd_queue_has_waves(queue),
	};
}

static bool is_of_kind(const struct queue_answer *answer, const struct queue_answer *kind)
{
	return answer->type == kind->type && answer->has_area_in_bo == kind->has_area_in_bo &&
	       answer->gfx_target_version == kind->gfx_target_version &&
	       answer->num_xcc == kind->num_xcc && answer->has_waves == kind->has_waves;
}

int queue_probe_ask(const struct dumped_process *process, const struct kfd_queue *queue)
{
	struct queue_answers *answers = &process->session->queue_answers;
	struct queue_answer answer = kind_of(&process->state, queue);
	int ret;

	for (size_t i = 0; i < answers->count; i++) {
		if (is_of_kind(&answers->list[i], &answer))
			return answers->list[i].ret;
	}
	answer.ret = ask(process, queue);
	ret = array_append(&answers->list, &answers->count, sizeof(answer), &answer);
	return ret < 0 ? ret : answer.ret;
}
