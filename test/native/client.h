/* SPDX-License-Identifier: GPL-2.0-only */
/* A KFD process with the buffers of a workload, made with the driver's own ioctls. What CRIU knows
 * of it, its files and its device mappings, is in struct task (task.h). */
#ifndef TEST_NATIVE_CLIENT_H
#define TEST_NATIVE_CLIENT_H

#include "task.h"
#include "workload.h"

struct client;

/* Opens /dev/kfd and the first @gpus GPUs (runtimes open all): -errno after a line on stderr. */
int client_open(uint32_t gpus, struct client **ret_client);
/* Makes the buffers, filled with their patterns, and notes in @task what CRIU is going to see. */
int client_make(struct client *client, const struct workload *workload, struct task *task);
/* A dma-buf of shared buffer @index, and its import in another process, which leaves a hole below
 * the first handle. */
int client_export(struct client *client, size_t index, int *ret_fd);
int client_import(struct client *client, const struct workload *owner, size_t index, int fd);
/* Writes to each shared buffer, and waits until what all other tasks have written is there: -ETIME
 * after a line. */
int client_meet(const struct workload *workload);
/* The simulator's list of buffers, with addresses and handles, into @directory, and compared with
 * that: -EIO after a line. */
int client_save_list(const struct workload *workload, const char *directory);
int client_compare_list(const struct workload *workload, const char *directory);
/* Every byte of every buffer of this process, whoever made them: -EIO after a line. */
int client_verify(const struct workload *workload);
/* Memory that the process itself had: CRIU puts it back before the GPU may look at it. */
int client_map_user_memory(const struct workload *workload);
/* Closes the files; buffers stay until the process ends. */
void client_close(struct client *client);

/* The simulator's files, see test/sim/README.md: 0 or the length, or -errno. The process ends with
 * a line where there is no simulator. */
int simulator_write(const char *file, const char *text);
int simulator_read(const char *file, char *text, size_t size);
/* A function of the simulator. */
void *simulator_find(const char *name);

#endif
