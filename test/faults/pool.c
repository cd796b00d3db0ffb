// SPDX-License-Identifier: GPL-2.0-only
/* Threads that each take one job after another, until all are done. The caller defines the jobs. */
#include "pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools.h"

struct crew {
	const struct pool *pool;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t next;
	unsigned int workers; /* the number of started workers */
	bool *done;           /* by job */
};

static void *worker(void *argument)
{
	struct crew *crew = argument;
	unsigned int number;

	(void)pthread_mutex_lock(&crew->lock);
	number = crew->workers++;
	while (crew->next < crew->pool->count) {
		size_t job = crew->next++;

		(void)pthread_mutex_unlock(&crew->lock);
		crew->pool->work(crew->pool->argument, job, number);
		(void)pthread_mutex_lock(&crew->lock);
		crew->done[job] = true;
		(void)pthread_cond_signal(&crew->changed);
	}
	(void)pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static void take_all(struct crew *crew)
{
	for (size_t job = 0; job < crew->pool->count; job++) {
		(void)pthread_mutex_lock(&crew->lock);
		while (!crew->done[job])
			(void)pthread_cond_wait(&crew->changed, &crew->lock);
		(void)pthread_mutex_unlock(&crew->lock);
		crew->pool->take(crew->pool->argument, job);
	}
}

void pool_run(const struct pool *pool, unsigned int num_workers)
{
	struct crew crew = { .pool = pool,
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER };
	pthread_t *threads = must(calloc(num_workers, sizeof(*threads)));

	crew.done = must(calloc(pool->count + 1, sizeof(*crew.done)));
	for (unsigned int i = 0; i < num_workers; i++) {
		int error = pthread_create(&threads[i], NULL, worker, &crew);

		if (error)
			fail("no thread: %s", strerror(error));
	}
	take_all(&crew);
	for (unsigned int i = 0; i < num_workers; i++)
		(void)pthread_join(threads[i], NULL);
	free(crew.done);
	free(threads);
}
