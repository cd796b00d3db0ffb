// SPDX-License-Identifier: GPL-2.0-only
/* Keeps a restored job apart from the job that it is a copy of. imports.c then compares the shared
 * BOs of the restored tasks with each other. */
#include "restore/originals.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"

/* Counted, because the driver frees the memory of a process some time after its end. */
#define POLL_NS      10000000L
#define POLLS_MAX    1000
#define WAIT_SECONDS 10

_Static_assert(POLL_NS *POLLS_MAX == WAIT_SECONDS * 1000000000L, "one limit");

/* The order of the fields is not known, so any number may be of a share handle. */
static bool may_have_handle(const CriuKfd *kfd)
{
	const struct kfd_priv priv = { kfd->priv_data.data, kfd->priv_data.len, kfd->num_of_gpus,
				       (uint32_t)kfd->n_bo_entries, kfd->num_of_objects };
	struct kfd_priv_shared shared;
	uint64_t bo_size;

	if (kfd_priv_find_bo_size(&priv, &bo_size) < 0)
		return false;
	for (uint32_t i = 0; i < priv.num_bos; i++) {
		if (!kfd_priv_read_shared(&priv, bo_size, i, &shared) &&
		    kfd_priv_may_be_shared(&shared))
			return true;
	}
	return false;
}

static int add_holder(int id, struct pid_list *holders)
{
	CriuKfd *kfd;
	int ret = image_read_kfd(id, &kfd);

	if (ret < 0)
		return ret;
	if (may_have_handle(kfd))
		ret = pid_list_add(holders, (pid_t)kfd->pid);
	criu_kfd__free_unpacked(kfd, NULL);
	return ret;
}

static int list_holders(struct pid_list *holders)
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;
	int ret = image_dir_list(IMAGE_KFD, &ids, &count);

	for (size_t i = 0; !ret && i < count; i++)
		ret = add_holder(ids[i], holders);
	return ret;
}

struct search {
	/* The processes of the images whose BOs may have share handles. */
	struct pid_list holders;
	bool are_listed;
};

static void search_done(struct search *search)
{
	pid_list_done(&search->holders);
}

/* Most hosts have no process that uses GPUs, and then no image is read. */
static int list_users(struct search *search, struct pid_list *users)
{
	int ret = proc_list_kfd(users);

	if (ret < 0)
		return log_error(ret, "restore: cannot list the processes that use GPUs");
	if (!users->count || search->are_listed)
		return 0;
	search->are_listed = true;
	return list_holders(&search->holders);
}

/* A process that may have a share handle of the images; 0: none. */
static int find_original(struct search *search, pid_t *ret_original)
{
	_cleanup_(pid_list_done) struct pid_list users = { 0 };
	int ret = list_users(search, &users);

	*ret_original = 0;
	for (size_t i = 0; !ret && search->holders.count && i < users.count; i++) {
		pid_t vpid;

		ret = proc_vpid(users.pids[i], &vpid);
		if (ret < 0 && ret != -ESRCH)
			return log_error(ret, "restore: cannot read the pid of process %d",
					 users.pids[i]);
		if (ret == -ESRCH || pid_list_has(&search->holders, vpid)) {
			*ret_original = users.pids[i];
			return 0;
		}
	}
	return ret;
}

static int refuse(const struct restore_session *session, pid_t original)
{
	if (session->options->force) {
		log_warn("restore: process %d may have the share handles of the images, so the"
			 " driver may give its BOs to the restored tasks",
			 original);
		return 0;
	}
	return log_error(-EBUSY,
			 "restore: process %d may have the share handles of the images (the job"
			 " that was dumped, or another copy of it), and the driver would give its"
			 " BOs to the restored tasks; end it first; AMDGPU_FORCE=1 restores anyway",
			 original);
}

int originals_await(const struct restore_session *session)
{
	_cleanup_(search_done) struct search search = { .are_listed = false };
	pid_t original = 0;
	int ret;

	if (image_is_streamed())
		return 0;
	ret = find_original(&search, &original);
	for (unsigned int i = 0; !ret && original && i < POLLS_MAX; i++) {
		(void)nanosleep(&(const struct timespec){ .tv_nsec = POLL_NS }, NULL);
		ret = find_original(&search, &original);
	}
	return ret || !original ? ret : refuse(session, original);
}
