// SPDX-License-Identifier: GPL-2.0-only
/* A restore beside processes that have share handles of the images, by a KFD that only knows such
 * handles. */
#include "host.h"

#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>

#include "image/image.h"
#include "image/image_priv.h"
#include "kernel/kfd.h"
#include "map/map.h"
#include "memory/restore_shared.h"
#include "sharing/share_handles.h"

#define BOS      2
#define RECORD   296
#define SHARE    276
#define PRIV     (8 + 8 + RECORD * BOS)
#define LARGEST  (16 + 312 * BOS)
#define FD       77
#define SAVED_ID 0x1111
#define LOCAL_ID 0xaaaa
/* Milliseconds, and questions of the driver, each of which leaves a line in the kernel's log. */
#define WAIT_MAX      10000
#define QUESTIONS_MAX 10

static const uint32_t names[BOS][KFD_SHARE_WORDS] = { { 0, 2, 3, 4 }, { 5, 6, 7, 0 } };
static const uint32_t none[KFD_SHARE_WORDS];

/* The handle that a process outside has, for how long the plugin has waited in milliseconds, and
 * when the handle is free. */
static struct {
	const uint32_t *used;
	int error;
	unsigned int waited, frees_at, questions;
} driver;

int ioctl(int fd, unsigned long request, ...)
{
	const struct kfd_ipc_import_args *args;
	va_list arguments;

	va_start(arguments, request);
	args = va_arg(arguments, const struct kfd_ipc_import_args *);
	va_end(arguments);
	assert_int_equal(fd, FD);
	assert_true(request == KFD_IOC_IPC_IMPORT);
	assert_int_equal(args->gpu_id, LOCAL_ID);
	driver.questions++;
	errno = driver.error;
	if (!errno)
		errno = driver.used && !memcmp(args->share_handle, driver.used, sizeof(none))
				? ENODEV
				: EINVAL;
	return -1;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	driver.waited += (unsigned int)(pause->tv_sec * 1000 + pause->tv_nsec / 1000000);
	if (driver.frees_at && driver.waited >= driver.frees_at)
		driver.used = NULL;
	return 0;
}

static struct restore_shared *shared;

/* A task that is restored: its records, and what became of them. */
struct task {
	uint8_t priv[LARGEST];
	KfdBoEntry bos[BOS];
	int ret;
};

static int begin(void **state)
{
	memset(&driver, 0, sizeof(driver));
	return unit_begin(state) || restore_shared_new(&shared) ? -1 : 0;
}

static int end(void **state)
{
	restore_shared_free(shared);
	return unit_end(state);
}

/* BO 0 is object 3 of all tasks, and BO 1 the task's own. */
static struct task make_task(const uint32_t *first, const uint32_t *second)
{
	struct task task = { .priv = { 1 } };

	for (size_t i = 0; i < BOS; i++)
		kfd_bo_entry__init(&task.bos[i]);
	memcpy(task.priv + 16 + SHARE, first, sizeof(none));
	memcpy(task.priv + 16 + RECORD + SHARE, second, sizeof(none));
	task.bos[0].object = 3;
	task.bos[0].by_share_handle = true;
	return task;
}

static void await(struct task *task, bool force, size_t size)
{
	struct topology_node nodes[] = { { .gpu_id = 0 }, { .gpu_id = SAVED_ID } };
	struct topology_node local = { .gpu_id = LOCAL_ID };
	const struct topology_node *map[] = { NULL, &local };
	KfdBoEntry *bos[] = { &task->bos[0], &task->bos[1] };
	CriuKfd kfd = CRIU_KFD__INIT;
	const struct options options = { .force = force };
	struct restore_session session = { .options = &options, .shared = shared };

	kfd.num_of_gpus = 1;
	kfd.n_bo_entries = BOS;
	kfd.bo_entries = bos;
	kfd.priv_data = (ProtobufCBinaryData){ size, task->priv };
	session.task = (struct restored_task){ .kfd = &kfd, .saved = { nodes, 2 } };
	session.task.map.local = map;
	session.task.layout = image_priv_of(&kfd).layout;
	driver.waited = driver.questions = 0;
	task->ret = share_handles_await(&session, FD);
}

static void assert_names(const struct task *task, const uint32_t *first, const uint32_t *second)
{
	assert_memory_equal(task->priv + 16 + SHARE, first, sizeof(none));
	assert_memory_equal(task->priv + 16 + RECORD + SHARE, second, sizeof(none));
}

#define TEST(name) TEST_WITH(name, begin, end)

/* The driver frees the memory of a process some time after its end. */
TEST(a_restore_waits_until_the_handle_is_free)
{
	struct task task = make_task(names[0], names[1]);

	driver.used = names[0];
	driver.frees_at = 6500;
	await(&task, false, PRIV);
	assert_int_equal(task.ret, 0);
	assert_true(driver.waited >= 6500 && driver.waited < WAIT_MAX);
	assert_int_equal(unit_count_errors(), 0);
	assert_names(&task, names[0], names[1]);
}

/* It has asked for the handle before, and then made the BO. */
TEST(another_task_of_the_restore_may_have_the_handle)
{
	struct task first = make_task(names[0], none), second = make_task(names[0], names[1]);

	await(&first, false, PRIV);
	driver.used = names[0];
	await(&second, false, PRIV);
	assert_int_equal(second.ret, 0);
	assert_int_equal(driver.waited, 0);
	/* but not that of another BO */
	driver.used = names[1];
	await(&second, false, PRIV);
	assert_int_equal(second.ret, -EBUSY);
	assert_int_equal(driver.waited, WAIT_MAX);
	assert_true(driver.questions <= QUESTIONS_MAX);
}

TEST(images_without_handles_ask_nothing)
{
	static const size_t sizes[] = { 80, 272, 312 };
	struct task task = make_task(none, none);

	await(&task, false, PRIV);
	assert_int_equal(task.ret, 0);
	memset(task.priv + 16, 0x77, LARGEST - 16);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		await(&task, false, 16 + BOS * sizes[i]);
		assert_int_equal(task.ret, 0);
	}
	assert_int_equal(driver.questions, 0);
}

/* Its RESTORE refuses the image. */
TEST(a_driver_without_share_handles_knows_none)
{
	struct task task = make_task(names[0], names[1]);

	driver.error = ENOTTY;
	await(&task, false, PRIV);
	assert_int_equal(task.ret, 0);
	driver.error = EIO;
	await(&task, false, PRIV);
	assert_int_equal(task.ret, -EIO);
	assert_int_equal(unit_count_errors(), 1);
}
