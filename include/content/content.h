/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies the contents of BOs to and from image files, in bounded memory, with copy engine and
 * storage at work at the same time. Dump and restore copy all contents through these functions.
 *
 * The image of a GPU is one stream of bytes: eight bytes of length, then the contents of its BOs in
 * the order of the list. The stream is divided into ranges. A range is as large as one staging slot
 * and holds many small BOs or a part of a large one. Each thread takes the next range, processes
 * all its steps in a slot of its own, and takes another:
 *
 *            +---------------------------- next range -----------------------------+
 *            v                                                                     |
 *    save:  next range --> copy to slot --> checksum --> bytes before* --> write --+
 *    load:  next range --> read ----------> checksum --> copy to BOs --------------+
 *
 * A load may read a range and compute its checksums in parts, on the way to the slot. While the
 * copy engine works for some slots, storage works for others, so the slower of the two is never
 * idle. If a load only copies from the page cache, there are fewer threads, and each has two
 * slots: it reads to one of them while the engine copies from the other. Each thread computes the
 * checksums of the pages that it has. Step * runs in the order of ranges: a range also writes the
 * eight bytes before it, so writes stay block-aligned. In a stream, reading and writing are done
 * in order too. After an error on any GPU, each thread ends with its current step.
 *
 *    threads:   caller ---> a worker per GPU: opens it, is its first thread ---> its other threads */
#ifndef AMDGPU_PLUGIN_CONTENT_CONTENT_H
#define AMDGPU_PLUGIN_CONTENT_CONTENT_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/base.h"
#include "criu/options.h"

/* Sizes of BOs are multiples of this. So are the offsets of ranges in the file and in memory. The
 * memory of a range extends to the next multiple. */
#define CONTENT_ALIGNMENT 4096u

struct pool;

struct content_bo {
	/* Borrowed. */
	int dmabuf_fd;
	uint64_t size;
	/* Checksum of the contents: content_save() sets it, content_load() compares it. */
	uint64_t checksum;
	/* Offset in the GPU's render node, 0 if unknown. content_save() compares it. */
	uint64_t mmap_offset;
};

/* The BOs of one GPU. */
struct content_job {
	/* The gpu_id that the process knows, for messages. */
	uint32_t gpu_id;
	uint32_t render_minor;
	/* topology_pci_device(), whose memory errors are counted during a load, or 0 for none. */
	uint64_t pci_device;
	struct content_bo *bos;
	size_t num_bos;
	/* The image, borrowed: an empty file to save to, or a complete one to load from. */
	int image_fd;
	/* The image is a pipe. A pipe to load from starts after the eight bytes of length. */
	bool streamed;
	/* Borrowed: memory in which contents wait to be written by a save, or NULL. */
	struct pool *pool;
	/* The chunks of the image, if a save is to share them with a base. content_save() has used
	 * them if @chunks.is_used is set. */
	struct base_chunks chunks;
	/* All BOs have checksums: content_save() sets it. content_load() then compares them at the
	 * end. */
	bool has_checksums;
	/* When the last save or load began, needed the BOs no more, and ended, for
	 * content_totals_add(): on the clock that time namespaces do not change, and how long all
	 * threads together copied, and waited for storage. */
	uint64_t begin_us, copied_us, end_us;
	uint64_t copy_us, storage_us;
	/* Whether the driver did not count memory errors of this GPU during the last load. */
	bool errors_unknown;
};

/* content.c */

/* The bytes that the contents of @num_bos BOs have together. */
uint64_t content_size(const struct content_bo *bos, size_t num_bos);

/* Copies the contents of all jobs at the same time and returns when all jobs have ended. The first
 * error ends all jobs and is returned, logged with GPU, BO and action. -EBADMSG: a checksum
 * differs. -EIO after a load: memory of a GPU has had an uncorrectable error meanwhile. About every
 * two seconds a line shows the progress of each GPU. */
int content_save(struct content_job *jobs, size_t num_jobs,
		 const struct content_settings *settings);
int content_load(struct content_job *jobs, size_t num_jobs,
		 const struct content_settings *settings);

/* Opens the copy engine of a GPU and closes it again. -EOPNOTSUPP: the packets of this generation
 * are not known; -ENODATA: the driver keeps all rings for user queues; -EMEDIUMTYPE: libdrm's list
 * amdgpu.ids is no regular file of at most 1 MiB. Logs nothing. */
int content_try_gpu(uint32_t render_minor);

struct content_run;

/* CRIU's main process saves or loads the contents of so many GPUs at once, over all tasks. */
#define CONTENT_GPUS_AT_ONCE 8

/* content_save() and content_load() in two parts. Only the second prints and waits, and another
 * thread may call it. The jobs are borrowed until the end. Several runs may share @gpu_limit,
 * the number of GPUs that may be copied at the same time: the others wait. -ENOMEM. */
int content_start_save(struct content_job *jobs, size_t num_jobs,
		       const struct content_settings *settings, sem_t *gpu_limit,
		       struct content_run **ret_run);
int content_start_load(struct content_job *jobs, size_t num_jobs,
		       const struct content_settings *settings, sem_t *gpu_limit,
		       struct content_run **ret_run);
/* The bytes of the images of a save for which the file system has no blocks yet, at most. */
uint64_t content_missing_room(const struct content_run *run);
/* Waits until a save needs its BOs no more: with the pool of its jobs, contents may still have to
 * be written. Logs nothing. -EIO: the save has failed, and content_finish() has the cause. */
int content_await_copies(struct content_run *run);
int content_finish(struct content_run *run);
/* Makes the run end early, and does not wait; content_cancel() must follow. A GPU that waits for
 * @gpu_limit keeps waiting. Stop all runs that share a limit before you cancel the first. */
void content_stop(struct content_run *run);
/* Ends the run early, logs nothing, and frees it. Call this or content_finish(). */
void content_cancel(struct content_run *run);

/* What all processes of a dump or a restore have copied, for one line of the log. */

#define CONTENT_MINORS 256

/* Zero at first. Processes may share the memory. */
struct content_totals {
	/* The process that logs the line counts them. */
	uint64_t processes;
	/* A bit a render minor, modulo CONTENT_MINORS. */
	uint64_t minors[CONTENT_MINORS / 64];
	uint64_t bytes;
	uint64_t begin_us, copied_us, end_us;
	uint64_t copy_us, storage_us;
	/* How long queues stood still for a dump, or 0. */
	double stopped_s;
	/* How long the dump let them run until their kernels had ended, or 0. */
	double drained_s;
	/* The jobs without checksums, and those during which memory errors were not counted. */
	uint64_t unchecked;
	uint64_t unwatched;
};

/* Adds jobs that have ended well. */
void content_totals_add(struct content_totals *totals, const struct content_job *jobs,
			size_t num_jobs);
/* One line with processes, GPUs, bytes, seconds, rate, what limited it, and whether contents have
 * checksums (@saved), or were compared with them. @checked: checksums are on. A warning follows if
 * memory errors were not counted. Logs nothing if there was no process. */
void content_totals_log(const struct content_totals *totals, bool saved, bool checked);

#endif
