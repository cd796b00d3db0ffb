// SPDX-License-Identifier: GPL-2.0-only
/* The work of the ROCr client on one GPU. rocr_kernels.c has the kernels. */
#include "rocr_gpu.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS       65536u
#define SHORT_WORDS 4096u /* of copies by a kernel, which take longer */
#define PATIENCE_S  100u
#define REST_US     20000u

enum purpose { WAITING, KEPT, FIRST_OF_LOOP, SECOND_OF_LOOP, LOCKED, SHARED, PURPOSES };

static uint32_t pattern(const struct rocr_gpu *gpu, enum purpose purpose, uint32_t word)
{
	uint32_t seed = (gpu->generation * ROCR_MAX_GPUS + gpu->index) * PURPOSES + purpose + 1;

	return (word + seed * 40503u) * 2654435761u;
}

static void fill(const struct rocr_gpu *gpu, enum purpose purpose, uint32_t *words)
{
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = pattern(gpu, purpose, i);
}

static bool compare(const struct rocr_gpu *gpu, enum purpose purpose, const uint32_t *words,
		    uint32_t count, const char *what)
{
	for (uint32_t i = 0; i < count; i++) {
		if (words[i] != pattern(gpu, purpose, i))
			return rocr_say("GPU %u: %s: word %u is 0x%08x, not 0x%08x", gpu->index,
					what, i, words[i], pattern(gpu, purpose, i));
	}
	return true;
}

static bool copy_out(const struct rocr_gpu *gpu, uint32_t *to, const uint32_t *vram)
{
	return rocr_copy_out(&gpu->copier, to, vram, WORDS * 4);
}

static bool copy_in(const struct rocr_gpu *gpu, uint32_t *vram, const uint32_t *from)
{
	return rocr_copy_in(&gpu->copier, vram, from, WORDS * 4);
}

static bool put(const struct rocr_gpu *gpu, enum purpose purpose, uint32_t *vram)
{
	fill(gpu, purpose, gpu->from);
	return copy_in(gpu, vram, gpu->from);
}

/* The buffers of the loop stay what they were at the first generation. */
static void *copy_in_turn(void *arg)
{
	struct rocr_gpu first = *(const struct rocr_gpu *)arg;
	struct rocr_loop *loop = &((struct rocr_gpu *)arg)->loop;

	first.generation = 0;
	for (unsigned int turn = 0; !__atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE); turn++) {
		if (!rocr_copy_out(&loop->copier, loop->to, loop->vram[turn & 1], WORDS * 4) ||
		    !compare(&first, turn & 1 ? SECOND_OF_LOOP : FIRST_OF_LOOP, loop->to, WORDS,
			     "a copy in the loop")) {
			loop->wrong = true;
			break;
		}
		(void)usleep(REST_US * first.rocr->num_gpus);
	}
	return NULL;
}

static bool start_loop(struct rocr_gpu *gpu)
{
	struct rocr_loop *loop = &gpu->loop;

	return rocr_allocate(gpu->place, gpu->place, WORDS * 4, &loop->vram[0]) &&
	       rocr_allocate(gpu->place, gpu->place, WORDS * 4, &loop->vram[1]) &&
	       rocr_allocate(&gpu->rocr->cpu, gpu->place, WORDS * 4, &loop->to) &&
	       rocr_copier_open(gpu->rocr, gpu->place, &loop->copier) &&
	       put(gpu, FIRST_OF_LOOP, loop->vram[0]) && put(gpu, SECOND_OF_LOOP, loop->vram[1]) &&
	       pthread_create(&loop->thread, NULL, copy_in_turn, gpu) == 0;
}

bool rocr_gpu_open(struct rocr_gpu *gpu, const struct rocr *rocr, unsigned int index,
		   const struct rocr_work *work)
{
	const struct rocr_place *cpu = &rocr->cpu;

	memset(gpu, 0, sizeof(*gpu));
	gpu->rocr = rocr;
	gpu->place = &rocr->gpus[index];
	gpu->index = index;
	return rocr_allocate(cpu, gpu->place, WORDS * 4, &gpu->from) &&
	       rocr_allocate(cpu, gpu->place, WORDS * 4, &gpu->to) &&
	       rocr_allocate(gpu->place, gpu->place, WORDS * 4, &gpu->vram) &&
	       rocr_allocate(gpu->place, gpu->place, WORDS * 4, &gpu->kept) &&
	       rocr_host_lock(gpu->place, WORDS * 4, &gpu->locked) &&
	       rocr_host_share(gpu->place, WORDS * 4, &gpu->shared) &&
	       rocr_good(hsa_signal_create(1, 0, NULL, &gpu->go), "signal") &&
	       rocr_good(hsa_signal_create(1, 0, NULL, &gpu->copied), "signal") &&
	       rocr_good(hsa_signal_create(1, 0, NULL, &gpu->done), "signal") &&
	       rocr_copier_open(rocr, gpu->place, &gpu->copier) &&
	       (!work->code_object ||
		rocr_kernels_open(rocr, index, work->code_object, &gpu->kernels)) &&
	       (!work->vmem || rocr_vmem_open(rocr, index, &gpu->vmem)) && start_loop(gpu);
}

/* No time limit: the dump may take any time. */
static void *sleep_until_copied(void *arg)
{
	struct rocr_gpu *gpu = arg;

	(void)hsa_signal_wait_scacquire(gpu->copied, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
					HSA_WAIT_STATE_BLOCKED);
	return NULL;
}

bool rocr_gpu_begin(struct rocr_gpu *gpu)
{
	gpu->generation++;
	if (!put(gpu, KEPT, gpu->kept) || (gpu->vmem && !rocr_vmem_begin(gpu->vmem)))
		return false;
	fill(gpu, LOCKED, gpu->locked.memory);
	fill(gpu, SHARED, gpu->shared.memory);
	fill(gpu, WAITING, gpu->from);
	hsa_signal_store_relaxed(gpu->go, 1);
	hsa_signal_store_relaxed(gpu->copied, 1);
	return rocr_good(hsa_amd_memory_async_copy(gpu->vram, gpu->place->agent, gpu->from,
						   gpu->rocr->cpu.agent, WORDS * 4, 1, &gpu->go,
						   gpu->copied),
			 "copy that waits") &&
	       pthread_create(&gpu->sleeper, NULL, sleep_until_copied, gpu) == 0 &&
	       (!gpu->kernels || rocr_kernels_begin(gpu->kernels, gpu->go));
}

/* The copy that waits is done now, and was not before. */
static bool verify_waiting_copy(struct rocr_gpu *gpu)
{
	if (hsa_signal_load_scacquire(gpu->copied) != 1)
		return rocr_say("GPU %u: a copy did not wait", gpu->index);
	hsa_signal_store_screlease(gpu->go, 0);
	return pthread_join(gpu->sleeper, NULL) == 0 && copy_out(gpu, gpu->to, gpu->vram) &&
	       compare(gpu, WAITING, gpu->to, WORDS, "what a waiting copy has written");
}

static bool verify_kept(struct rocr_gpu *gpu)
{
	return copy_out(gpu, gpu->to, gpu->kept) && compare(gpu, KEPT, gpu->to, WORDS, "VRAM");
}

/* The GPU reads what the CPU has written before the dump, and writes what the CPU reads. */
static bool verify_host(const struct rocr_gpu *gpu, const struct rocr_host *host,
			enum purpose purpose, const char *what)
{
	return compare(gpu, purpose, host->memory, WORDS, what) &&
	       copy_in(gpu, gpu->vram, host->mapped) && copy_out(gpu, gpu->to, gpu->vram) &&
	       compare(gpu, purpose, gpu->to, WORDS, what) &&
	       copy_out(gpu, host->mapped, gpu->kept) &&
	       compare(gpu, KEPT, host->memory, WORDS, what);
}

static bool verify_hosts(const struct rocr_gpu *gpu)
{
	return verify_host(gpu, &gpu->locked, LOCKED, "locked memory") &&
	       verify_host(gpu, &gpu->shared, SHARED, "SVM memory") &&
	       rocr_host_verify_attributes(&gpu->shared);
}

/* New memory. ROCr copies within a GPU by a kernel of its own. */
static bool use_new_memory(struct rocr_gpu *gpu)
{
	uint32_t *vram;

	if (!rocr_allocate(gpu->place, gpu->place, WORDS * 4, &vram))
		return false;
	hsa_signal_store_relaxed(gpu->done, 1);
	return rocr_good(hsa_amd_memory_async_copy(vram, gpu->place->agent, gpu->kept,
						   gpu->place->agent, SHORT_WORDS * 4, 0, NULL,
						   gpu->done),
			 "copy within VRAM") &&
	       rocr_wait(gpu->done, PATIENCE_S, "a copy within VRAM") &&
	       copy_out(gpu, gpu->to, vram) &&
	       compare(gpu, KEPT, gpu->to, SHORT_WORDS, "new VRAM") &&
	       rocr_good(hsa_amd_memory_pool_free(vram), "free");
}

bool rocr_gpu_verify(struct rocr_gpu *gpu)
{
	bool in_loop = !gpu->kernels || rocr_kernels_verify_loop(gpu->kernels);

	return in_loop && verify_waiting_copy(gpu) &&
	       (!gpu->kernels || rocr_kernels_verify_behind(gpu->kernels)) && verify_kept(gpu) &&
	       verify_hosts(gpu) && (!gpu->vmem || rocr_vmem_verify(gpu->vmem)) &&
	       use_new_memory(gpu) && !gpu->loop.wrong;
}

static bool close_loop(struct rocr_loop *loop)
{
	__atomic_store_n(&loop->stop, true, __ATOMIC_RELEASE);
	return pthread_join(loop->thread, NULL) == 0 && !loop->wrong &&
	       rocr_copier_close(&loop->copier) &&
	       rocr_good(hsa_amd_memory_pool_free(loop->vram[0]), "free") &&
	       rocr_good(hsa_amd_memory_pool_free(loop->vram[1]), "free") &&
	       rocr_good(hsa_amd_memory_pool_free(loop->to), "free");
}

bool rocr_gpu_close(struct rocr_gpu *gpu)
{
	return close_loop(&gpu->loop) && (!gpu->kernels || rocr_kernels_close(gpu->kernels)) &&
	       (!gpu->vmem || rocr_vmem_close(gpu->vmem)) &&
	       rocr_good(hsa_signal_destroy(gpu->go), "signal") &&
	       rocr_good(hsa_signal_destroy(gpu->copied), "signal") &&
	       rocr_good(hsa_signal_destroy(gpu->done), "signal") &&
	       rocr_copier_close(&gpu->copier) && rocr_host_unlock(&gpu->locked) &&
	       rocr_host_unshare(&gpu->shared) &&
	       rocr_good(hsa_amd_memory_pool_free(gpu->from), "free") &&
	       rocr_good(hsa_amd_memory_pool_free(gpu->to), "free") &&
	       rocr_good(hsa_amd_memory_pool_free(gpu->vram), "free") &&
	       rocr_good(hsa_amd_memory_pool_free(gpu->kept), "free");
}
