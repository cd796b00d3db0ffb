/* SPDX-License-Identifier: GPL-2.0-only */
/* The contents of one pages file compared with the checksums of their BOs, from any source. */
#ifndef AMDGPU_PLUGIN_TOOLS_VERIFY_PAGES_H
#define AMDGPU_PLUGIN_TOOLS_VERIFY_PAGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content/kfd_jobs.h"
#include "images.h"

/* Counts what verify has compared, in all processes. Several threads may add to it at the same
 * time. */
struct verify_totals {
	pthread_mutex_t lock;
	/* A terminal shows the progress. It was shown last at this time, in seconds. */
	bool shows_progress;
	double shown;
	size_t num_bos;
	size_t num_unchecked;
	uint64_t bytes;
	/* With those that follow. */
	uint64_t all_bytes;
};

/* Clears the line of the progress. */
void verify_end_progress(const struct verify_totals *totals);

/* Makes a job of each pages file of the process, with the checksums of its BOs. Logs on error.
 * -EBADMSG: the checksums are damaged. Free the result with kfd_jobs_done(). */
int verify_list_pages(const struct tool_kfd *kfd, struct kfd_jobs *ret_jobs);

/* The contents of a pages file, which follow its header. */
struct verify_source {
	/* Reads the next bytes. Return: 0 or -errno. */
	int (*read)(void *argument, void *bytes, size_t size);
	void *argument;
};

/* Reads the contents, unless the job has no checksums. Return: 0, 1 if BO *@ret_bo differs, or
 * -errno if it cannot be read. Logs nothing. */
int verify_pages(const struct content_job *job, const struct verify_source *source,
		 struct verify_totals *totals, const struct content_bo **ret_bo);
/* Logs a result of verify_pages() but 0. Return: -EBADMSG if the BO differs, or @result. */
int verify_report(const struct tool_kfd *kfd, const struct kfd_jobs *jobs,
		  const struct content_job *job, const struct content_bo *bo, int result);

#endif
