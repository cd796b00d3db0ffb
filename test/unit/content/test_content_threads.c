// SPDX-License-Identifier: GPL-2.0-only
/* Tests content_save() when threads cannot be started, or end at once. */
#include "drm_calls.h"

#include "content_set.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

/* How pthread_create() differs from the real one: it fails, or returns after the thread has ended.
 */
static struct {
	bool fails;
	bool returns_after_the_end;
} threads;

struct start {
	void *(*function)(void *);
	void *argument;
	sem_t ended;
};

static void *run_and_post(void *argument)
{
	struct start *start = argument;
	void *result = start->function(start->argument);

	(void)sem_post(&start->ended);
	return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
		   void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");
	struct start start = { .function = function, .argument = argument };
	int ret;

	if (threads.fails)
		return EAGAIN;
	if (!threads.returns_after_the_end)
		return real(thread, attributes, function, argument);
	(void)sem_init(&start.ended, 0, 0);
	ret = real(thread, attributes, run_and_post, &start);
	while (!ret && sem_wait(&start.ended) < 0)
		continue;
	return ret;
}

static int begin(void **state)
{
	threads.fails = threads.returns_after_the_end = false;
	return drm_calls_begin(state);
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

TEST(without_threads_the_caller_copies_one_gpu_after_the_other)
{
	_cleanup_set_ struct set *a = make_set((const uint64_t[]){ 3 * PAGE, PAGE, 7 * PAGE, 0 }),
				 *b = make_set((const uint64_t[]){ MIB, 0 });
	struct content_job jobs[2] = { a->job, b->job };
	struct content_settings alone = settings;

	fill(a);
	fill(b);
	/* The simulated GPU starts a thread of its own for the first copy in a ring. It is to be
	 * the ring of the caller. */
	alone.one_thread = true;
	assert_int_equal(content_save(jobs, 1, &alone), 0);
	assert_int_equal(ftruncate(jobs[0].image_fd, 0), 0);
	threads.fails = true;
	assert_int_equal(content_save(jobs, 2, &settings), 0);
	assert_true(image_is_filled(a));
	assert_true(image_is_filled(b));
	assert_logged("Warn  (amdgpu_plugin): ", "cannot start more threads", "2 of 2 GPUs");
}

/* The thread ends before pthread_create() returns. */
TEST(the_error_of_a_short_thread_is_reported)
{
	_cleanup_set_ struct set *set = make_set((const uint64_t[]){ 3 * PAGE, PAGE, 7 * PAGE, 0 });

	threads.returns_after_the_end = true;
	gpu.open_errno = EACCES;
	assert_int_equal(content_save(&set->job, 1, &settings), -EACCES);
	assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", strerror(EACCES));
}
