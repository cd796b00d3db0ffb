/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents of many BOs to and from image files: bounded memory, copy engine and storage at once.
 * All contents, of KFD and of DRM buffers, on dump and on restore, go through here.
 *
 * The image of a GPU is one stream of bytes: eight of length, then the contents of its BOs, in the
 * order of the list. It is cut into ranges of one staging slot each, so that a slot may hold many
 * small BOs or a part of a large one. Each slot has a thread, which takes the next range, carries
 * it through all steps, and takes another:
 *
 *            +--------------------- next range ----------------------+
 *            v                                                       |
 *    save:  cut ---> copy to slot ---> checksum* ---> write ---------+
 *    load:  cut ---> read -----------> checksum* ---> copy to BOs ---+
 *
 * So while the copy engine works for some slots, storage works for others, and the slower of the
 * two is never idle. Steps with a star are taken in the order of the ranges, each waiting for its
 * turn, since a checksum needs the bytes of a BO in order; where images are streamed, reading and
 * writing are part of that step. After an error, whatever the GPU, each thread ends with the step
 * that it is in.
 *
 *    threads:   caller ---> a worker a GPU: opens it, is the thread of its first slot ---> threads of the others */
#ifndef AMDGPU_PLUGIN_CONTENT_CONTENT_H
#define AMDGPU_PLUGIN_CONTENT_CONTENT_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "criu/options.h"

/* Sizes of BOs are multiples of this. So are the offsets of ranges of an image, in the file and in
 * memory, which has room up to the next multiple. */
#define CONTENT_ALIGNMENT 4096u

struct content_bo {
	/* Borrowed. */
	int dmabuf_fd;
	uint64_t size;
	/* XXH3, 64 bits, of the contents: the result of saving, and what loading expects. */
	uint64_t checksum;
};

/* The BOs of one GPU. */
struct content_job {
	/* For messages: the id the process knows. */
	uint32_t gpu_id;
	uint32_t render_minor;
	struct content_bo *bos;
	size_t num_bos;
	/* The image, borrowed: an empty file to save to, or a whole one. */
	int image_fd;
	/* It is a pipe; to load from it begins after the eight bytes of length. */
	bool streamed;
	/* The BOs' checksums are known. */
	bool has_checksums;
};

/* Bytes of the contents of @num_bos BOs. */
uint64_t content_size(const struct content_bo *bos, size_t num_bos);
/* XXH3 of the BOs' checksums, one after the other as little-endian words. -ENOMEM. */
int content_checksum(const struct content_job *job, uint64_t *ret_checksum);

/* Moves the contents of all jobs at once and returns when all have ended. The first error, in time,
 * ends them all and is returned, after a line that says GPU, BO and what was being done. -EBADMSG:
 * a checksum differs. About every two seconds a line tells how far each GPU is. */
int content_save(struct content_job *jobs, size_t num_jobs,
		 const struct content_settings *settings);
int content_load(struct content_job *jobs, size_t num_jobs,
		 const struct content_settings *settings);

struct content_run;

/* content_load() in two parts, of which only the second prints and waits: they may be called by
 * different threads. The jobs are borrowed until the end. @room counts the GPUs that all loads
 * which share it may still work for at once; the other GPUs wait. -ENOMEM. */
int content_start_load(struct content_job *jobs, size_t num_jobs,
		       const struct content_settings *settings, sem_t *room,
		       struct content_run **ret_run);
int content_finish(struct content_run *run);
/* Where nobody wants the contents any more: tells the run to end early, and waits for
 * nothing. A GPU that waits for @room goes on waiting, so the caller stops all runs that share
 * it before it cancels the first. Then content_cancel() follows. */
void content_stop(struct content_run *run);
/* Instead of content_finish(): ends early, and in silence. */
void content_cancel(struct content_run *run);

struct kfd_state;

/* The BOs of a KFD process as jobs: which BOs have contents, and in which order the contents lie in
 * the image of their GPU. The order is the same for dump and restore. */
struct kfd_jobs {
	/* One a device of the state, in its order. The caller sets render_minor and image_fd, which
	 * is -1 at first and closed with the rest. */
	struct content_job *jobs;
	uint32_t num_jobs;
	/* One a BO of the state, in its order: where its contents are work; NULL: it has none. */
	struct content_bo **by_index;
};

/* -ENOMEM. Borrows the dma-buf descriptors of @state. */
int kfd_jobs_init(const struct kfd_state *state, struct kfd_jobs *ret_work);
void kfd_jobs_done(struct kfd_jobs *work);

#endif
