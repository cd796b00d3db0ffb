/* SPDX-License-Identifier: GPL-2.0-only */
/* What programs on stock ROCr begin with: CPUs, GPUs, memory that both reach, code objects,
 * packets, waits and copies. A function that returns false has said why. */
#ifndef TEST_LIB_ROCR_H
#define TEST_LIB_ROCR_H

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCR_MAX_GPUS 8

struct rocr_place {
	hsa_agent_t agent;
	hsa_amd_memory_pool_t pool; /* its first one of global memory */
};

struct rocr {
	struct rocr_place cpu; /* the first one */
	struct rocr_place gpus[ROCR_MAX_GPUS];
	unsigned int num_gpus;
};

/* Where complaints go: each program has its own. One line, without a newline. Returns false, so
 * that it can end a function. */
bool rocr_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool rocr_good(hsa_status_t status, const char *what);

/* Begins with ROCr, and finds at least one CPU and one GPU. */
bool rocr_open(struct rocr *rocr);

/* Memory of @place that @gpu may access, too. *@ret is a pointer of any type. */
bool rocr_allocate(const struct rocr_place *place, const struct rocr_place *gpu, size_t size,
		   void *ret);

/* Opens a file with a code object. The caller destroys the reader. */
bool rocr_open_object(const char *path, hsa_code_object_reader_t *ret_reader);
bool rocr_new_executable(hsa_executable_t *ret_executable);

/* Loads the code object @path onto @gpu. */
bool rocr_load(const struct rocr_place *gpu, const char *path, hsa_executable_t *ret_executable);

/* Finds kernel @name ("NAME.kd"), and sets what the packet says of it. */
bool rocr_find_kernel(hsa_executable_t executable, const struct rocr_place *gpu, const char *name,
		      hsa_kernel_dispatch_packet_t *packet);

/* A queue of @slots packets. */
bool rocr_make_queue(const struct rocr_place *gpu, uint32_t slots, hsa_queue_t **ret_queue);

/* Puts a packet of 64 bytes into the queue, behind all others there, and rings the doorbell. Its
 * header is made of @type. */
void rocr_submit(hsa_queue_t *queue, const void *packet, hsa_packet_type_t type);

/* Waits until the signal is 0, at most @seconds; asleep, if it takes longer. */
bool rocr_wait(hsa_signal_t signal, unsigned int seconds, const char *what);

/* Copies between one GPU and the CPU's memory, one at a time. */
struct rocr_copier {
	hsa_agent_t cpu, gpu;
	hsa_signal_t done;
};

bool rocr_copier_open(const struct rocr *rocr, const struct rocr_place *gpu,
		      struct rocr_copier *ret_copier);
bool rocr_copier_close(struct rocr_copier *copier);

/* To the GPU or from there. A copy has 100 seconds. */
bool rocr_copy_in(const struct rocr_copier *copier, void *to, const void *from, size_t size);
bool rocr_copy_out(const struct rocr_copier *copier, void *to, const void *from, size_t size);

#endif
