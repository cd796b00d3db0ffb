// SPDX-License-Identifier: GPL-2.0-only
/* Share handles across the processes of a program: each has a simulator of its own, so a table in
 * memory that all inherit names the process and the descriptor of each shared buffer. A handle is
 * free again when the process that entered it has ended. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"

#define ENTRIES 1024u

struct entry {
	struct sim_share share;
	pid_t pid; /* 0: free */
	int fd;
};

static struct table {
	pthread_mutex_t lock;
	struct entry entries[ENTRIES];
} * table;

static void __attribute__((constructor)) make_table(void)
{
	pthread_mutexattr_t attributes;

	table = NATIVE_REAL(mmap)(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		abort();
	(void)pthread_mutexattr_init(&attributes);
	(void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	(void)pthread_mutex_init(&table->lock, &attributes);
}

static void lock_table(void)
{
	if (pthread_mutex_lock(&table->lock) == EOWNERDEAD)
		(void)pthread_mutex_consistent(&table->lock);
}

static void unlock_table(void)
{
	(void)pthread_mutex_unlock(&table->lock);
}

/* Under the lock. @handle NULL: a free one. */
static struct entry *find(const u32 *handle)
{
	u32 i;

	for (i = 0; i < ENTRIES; i++) {
		struct entry *entry = &table->entries[i];

		if (entry->pid && NATIVE_REAL(kill)(entry->pid, 0) < 0)
			entry->pid = 0;
		if (handle ? entry->pid && !memcmp(entry->share.handle, handle,
						   sizeof(entry->share.handle))
			   : !entry->pid)
			return entry;
	}
	return NULL;
}

int sim_os_share_enter(struct sim_dmabuf *dmabuf, const struct sim_share *share)
{
	struct entry *entry;
	int ret = -EINVAL;

	lock_table();
	if (!find(share->handle)) {
		entry = find(NULL);
		ret = entry ? 0 : -ENOMEM;
	}
	if (ret == 0) {
		entry->share = *share;
		entry->fd = dmabuf->bo->fd;
		entry->pid = native_real_pid();
	}
	unlock_table();
	return ret;
}

int sim_os_share_find(const u32 *handle, struct sim_share *ret_share,
		      struct sim_dmabuf **ret_dmabuf)
{
	const struct entry *entry;
	char path[64] = "";
	int fd, ret;

	lock_table();
	entry = find(handle);
	if (entry && entry->pid != native_real_pid())
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", entry->pid, entry->fd);
	if (entry)
		*ret_share = entry->share;
	unlock_table();
	fd = path[0] ? NATIVE_REAL(open)(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return -EINVAL;
	ret = sim_os_dmabuf_from_fd(fd, ret_dmabuf);
	(void)NATIVE_REAL(close)(fd);
	return ret;
}

void sim_os_share_leave(const u32 *handle)
{
	struct entry *entry;

	lock_table();
	entry = find(handle);
	if (entry && entry->pid == native_real_pid())
		entry->pid = 0;
	unlock_table();
}
