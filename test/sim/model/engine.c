// SPDX-License-Identifier: GPL-2.0-only
/* Runs user-mode SDMA queues in turn: reads doorbells, runs the packets (sdma.c), moves read
 * pointers, and does not run evicted queues. Of a compute queue it checks the pointers. It holds
 * one lock during a turn, so an eviction finds each queue between two packets. */
#include "process.h"
#include "sdma.h"

/* What a queue may do in a turn. */
#define PACKETS_PER_TURN 64u
#define BYTES_PER_TURN   (1ull << 20)

static u64 *doorbell_of(const struct sim_queue *queue)
{
	u8 *page = queue->pdd->doorbells[queue->doorbell_id * 8 / SIM_PAGE_SIZE];

	return (u64 *)(page + queue->doorbell_id * 8 % SIM_PAGE_SIZE);
}

static u64 read_doorbell(const struct sim_queue *queue)
{
	return __atomic_load_n(doorbell_of(queue), __ATOMIC_ACQUIRE);
}

static struct sim_client client_of(const struct sim_queue *queue)
{
	return (struct sim_client){
		.sim = queue->pdd->gpu->sim,
		.vm = &queue->pdd->render->vm,
		.reach = sim_svm_reach,
		.reach_arg = queue->pdd,
		.who = queue->who,
	};
}

static void hang(struct sim_queue *queue)
{
	queue->hung = true;
}

static int read_pointer(const struct sim_client *client, u64 addr, u64 *ret_value)
{
	return sim_client_read(client, addr, ret_value, sizeof(*ret_value));
}

/* The read pointer of a restored queue must be in memory as the queue left it. Otherwise the queue
 * was started before its buffers were filled. */
static int check_restored(struct sim_queue *queue, const struct sim_client *client)
{
	u64 rptr;
	int ret;

	ret = read_pointer(client, queue->rptr_addr, &rptr);
	if (ret < 0)
		return ret;
	queue->restored = false;
	if (rptr == queue->rptr)
		return 0;
	sim_violation(client->sim,
		      "%s: runs again with read pointer 0x%llx"
		      ", but memory says 0x%llx",
		      queue->who, queue->rptr, rptr);
	return -EINVAL;
}

/* The engine reads the doorbell first. A program writes the write pointer and then the doorbell, so
 * a pointer that is read later is at least as new. In the other order the engine would miss a
 * program that writes between the two reads. */
static int put_on_hardware(struct sim_queue *queue, const struct sim_client *client)
{
	int ret = 0;

	if (queue->restored)
		ret = check_restored(queue, client);
	if (ret < 0)
		return ret;
	queue->last_doorbell = read_doorbell(queue);
	ret = read_pointer(client, queue->wptr_addr, &queue->wptr);
	if (ret < 0)
		return ret;
	queue->reload = false;
	return 0;
}

/* Reads the doorbell, and checks that the pointers make sense. */
static int update_wptr(struct sim_queue *queue, const struct sim_client *client)
{
	u64 doorbell, pending;
	int ret;

	if (queue->reload) {
		ret = put_on_hardware(queue, client);
		if (ret < 0)
			return ret;
	}
	doorbell = read_doorbell(queue);
	if (doorbell != queue->last_doorbell) {
		queue->last_doorbell = doorbell;
		queue->wptr = doorbell;
	}
	pending = queue->wptr - queue->rptr;
	if (pending <= queue->ring_size && pending % 4 == 0)
		return 0;
	sim_violation(client->sim,
		      "%s: write pointer 0x%llx"
		      " does not fit read pointer 0x%llx",
		      queue->who, queue->wptr, queue->rptr);
	return -EINVAL;
}

static int fetch_head(const struct sim_queue *queue, const struct sim_client *client,
		      struct sim_sdma_head *ret_head)
{
	u64 offset = queue->rptr % queue->ring_size;
	u64 bytes = min(queue->wptr - queue->rptr, queue->ring_size - offset);

	memset(ret_head, 0, sizeof(*ret_head));
	ret_head->addr = queue->ring_addr + offset;
	ret_head->available = (u32)(bytes / 4);
	return sim_client_read(client, ret_head->addr, ret_head->dwords,
			       min(ret_head->available, SIM_SDMA_HEAD_DWORDS) * 4);
}

/* Runs one packet completely: its effects, then the read pointer. */
static int run_packet(struct sim_queue *queue, const struct sim_client *client, u64 *bytes)
{
	struct sim_process *process = queue->pdd->process;
	struct sim_sdma_result result;
	struct sim_sdma_head head;
	int ret;

	ret = fetch_head(queue, client, &head);
	if (ret == 0)
		ret = sim_sdma_run_packet(client, &head, &result);
	if (ret < 0)
		return ret;
	queue->rptr += 4ull * result.length;
	ret = sim_client_write(client, queue->rptr_addr, &queue->rptr, sizeof(queue->rptr));
	if (ret < 0)
		return ret;
	process->packets++;
	*bytes += result.bytes;
	return 0;
}

/* What has been done in a turn. */
struct turn {
	u32 packets;
	u64 bytes;
};

static int run_copies(struct sim_queue *queue, const struct sim_client *client, struct turn *turn)
{
	int ret;

	ret = update_wptr(queue, client);
	while (!ret && queue->rptr != queue->wptr) {
		ret = run_packet(queue, client, &turn->bytes);
		if (ret < 0)
			break;
		turn->packets++;
		if (turn->packets == PACKETS_PER_TURN || turn->bytes >= BYTES_PER_TURN)
			break;
	}
	return ret;
}

static bool is_compute(const struct sim_queue *queue)
{
	return queue->type == SIM_QUEUE_COMPUTE;
}

/* Has it done anything? */
static bool run_queue(struct sim_queue *queue)
{
	struct sim_client client = client_of(queue);
	struct turn turn = { .packets = 0 };
	int ret = is_compute(queue) ? put_on_hardware(queue, &client)
				    : run_copies(queue, &client, &turn);

	if (ret < 0 && ret != -ESRCH)
		hang(queue);
	return turn.packets;
}

static bool may_run(const struct sim_queue *queue)
{
	if (queue->hung || !sim_queue_is_active(queue) || queue->pdd->process->mm_gone)
		return false;
	return !is_compute(queue) || queue->reload;
}

void sim_engine_lock(struct sim *sim)
{
	(void)__atomic_add_fetch(&sim->engine_waiters, 1, __ATOMIC_RELAXED);
	sim_lock(&sim->engine_lock);
	(void)__atomic_sub_fetch(&sim->engine_waiters, 1, __ATOMIC_RELAXED);
}

/* With nothing to do the caller rests for a moment, so a waiter gets the lock. */
bool sim_engine_pass(struct sim *sim)
{
	struct sim_queue *queue;
	bool busy = false;

	if (__atomic_load_n(&sim->engine_waiters, __ATOMIC_RELAXED))
		return false;
	sim_lock(&sim->engine_lock);
	for (queue = sim->queues; queue; queue = queue->next)
		if (may_run(queue))
			busy |= run_queue(queue);
	sim_unlock(&sim->engine_lock);
	return busy;
}

bool sim_engine_has_work(void *arg)
{
	struct sim *sim = arg;
	struct sim_queue *queue;
	bool work = false;

	sim_lock(&sim->engine_lock);
	for (queue = sim->queues; queue && !work; queue = queue->next)
		work = may_run(queue);
	sim_unlock(&sim->engine_lock);
	return work;
}

void sim_engine_kick(struct sim *sim)
{
	sim_os_wake(&sim->engine_wait);
}

/* Takes the queue off the hardware, to be put back at its next turn; under sim->engine_lock. */
static void unmap(struct sim_queue *queue)
{
	if (!queue->pdd->process->mm_gone)
		queue->reload = true;
}

void sim_engine_evict(struct sim_pdd *pdd)
{
	struct sim *sim = pdd->gpu->sim;
	struct sim_queue *queue;

	sim_engine_lock(sim);
	for (queue = sim->queues; queue && !pdd->evicted; queue = queue->next)
		if (queue->pdd == pdd)
			unmap(queue);
	pdd->evicted++;
	sim_unlock(&sim->engine_lock);
}

void sim_engine_restore(struct sim_pdd *pdd)
{
	struct sim *sim = pdd->gpu->sim;
	struct sim_queue *queue;

	sim_engine_lock(sim);
	if (pdd->evicted && --pdd->evicted == 0)
		for (queue = sim->queues; queue; queue = queue->next)
			if (queue->pdd == pdd)
				queue->reload = true;
	sim_unlock(&sim->engine_lock);
	sim_engine_kick(sim);
}
