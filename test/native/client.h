/* SPDX-License-Identifier: GPL-2.0-only */
/* A KFD process with the buffers of a workload, made with the driver's own ioctls. struct task
 * (task.h) holds the part that CRIU saves: files and device mappings. */
#ifndef TEST_NATIVE_CLIENT_H
#define TEST_NATIVE_CLIENT_H

#include "task.h"
#include "workload.h"

/* Buffers are filled and compared in parts. Sanitizers take long for the allocation of a larger
 * part, and there is one for each buffer. */
#define CLIENT_PART (64u << 10)

struct client;

/* Opens /dev/kfd and the GPUs of the workload (runtimes open all): -errno after a line on stderr.
 */
int client_open(const struct workload *workload, struct client **ret_client);
/* Makes the buffers, fills them with their patterns, and notes in @task the files and mappings that
 * CRIU will see. */
int client_make(struct client *client, const struct workload *workload, struct task *task);
/* Exports shared buffer @index as a dma-buf, or by a share handle of four words. */
int client_export(struct client *client, size_t index, int *ret_fd);
int client_export_handle(struct client *client, size_t index, uint32_t *ret_handle);
/* Imports shared buffer @index of another process, by the dma-buf @fd, or by @handle unless that is
 * NULL. The import leaves a hole below the first handle. Notes its mapping for the CPU, if there is
 * one, in @task. */
int client_import(struct client *client, const struct workload *owner, size_t index, int fd,
		  const uint32_t *handle, struct task *task);
/* Frees shared buffer @index, which other processes have imported. */
int client_release(struct client *client, const struct workload *workload, size_t index);
/* Puts dma-bufs of the shared buffers of @client into the files of @task, which has no KFD. */
int client_give_dmabufs(struct client *client, const struct workload *workload, struct task *task);
/* client_dmabuf.c: through its dma-bufs, checks the contents of buffers, and that a process with
 * KFD has the same memory. A broker writes to each shared buffer, and waits for the others: -ETIME
 * or -EIO after a line. */
int client_verify_dmabufs(const struct workload *workload, const struct task *task);
/* Writes to each shared buffer, then waits until the writes of all other tasks are visible: -ETIME
 * after a line. */
int client_meet(const struct workload *workload);
/* Writes the simulator's lists of buffers, GEM handles and mappings into @directory, or compares
 * them with these files: -EIO after a line. */
int client_save_list(const struct workload *workload, const char *directory);
int client_compare_list(const struct workload *workload, const char *directory);
/* Checks every byte of imported buffers: -EIO after a line. */
int client_see_imports(const struct workload *workload);
/* Checks every byte of every buffer of this process, also imported ones: -EIO after a line. */
int client_verify(const struct workload *workload);
/* Host memory that the process had before the dump. CRIU restores it before the GPU accesses it. */
int client_map_user_memory(const struct workload *workload);
/* Closes the files; buffers stay until the process ends. */
void client_close(struct client *client);

/* Prints what has failed, with the cause @ret, and returns @ret. */
int client_complain(int ret, const char *what);

#endif
