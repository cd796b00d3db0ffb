// SPDX-License-Identifier: GPL-2.0-only
/* The machine that this process sees. This file finds it by name, reads the tree that mkroot.sh
 * made of it, and sets it up on first use. A forked child gets its own machine. */
#include <unistd.h>

#include "native.h"

static struct native *machine;
static bool failed;
static pthread_mutex_t machine_lock = PTHREAD_MUTEX_INITIALIZER;

pid_t native_real_pid(void)
{
	return NATIVE_REAL(getpid)();
}

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* A plain name selects a tree built with the library; a name with a slash is the caller's tree. */
static void find_root(struct native *native)
{
	const char *name = variable("AMDGPU_SIM_MACHINE", "one");

	if (strchr(name, '/'))
		(void)snprintf(native->root, sizeof(native->root), "%s", name);
	else
		(void)snprintf(native->root, sizeof(native->root), "%s/%s",
			       variable("AMDGPU_SIM_MACHINES", SIM_MACHINES), name);
}

static int read_machine(struct native *native)
{
	char path[PATH_MAX + 64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/sys/class/kfd/kfd/dev", native->root);
	file = NATIVE_REAL(fopen)(path, "re");
	if (!file)
		return -errno;
	if (fscanf(file, "%u", &native->kfd_major) != 1)
		native->kfd_major = 0;
	(void)fclose(file);
	return native_topology_read(native);
}

static void init_rings(struct native *native)
{
	u32 gpu, ring;

	for (gpu = 0; gpu < SIM_MAX_GPUS; gpu++) {
		for (ring = 0; ring < SIM_DMA_RINGS; ring++) {
			(void)pthread_mutex_init(&native->rings[gpu][ring].lock, NULL);
			(void)pthread_cond_init(&native->rings[gpu][ring].cond, NULL);
		}
	}
}

static struct native *machine_new(void)
{
	struct native *native = calloc(1, sizeof(*native));
	int ret;

	if (!native)
		return NULL;
	native->pid = native_real_pid();
	(void)pthread_mutex_init(&native->lock, NULL);
	sim_wait_init(&native->resumed);
	init_rings(native);
	find_root(native);
	ret = sim_init(&native->sim);
	if (ret == 0)
		ret = read_machine(native);
	if (ret == 0) {
		native_resume_init(native);
		return native;
	}
	(void)fprintf(stderr, "amdgpu_sim: cannot be the machine of %s: %s\n", native->root,
		      strerror(-ret));
	free(native);
	return NULL;
}

struct native *native_peek(void)
{
	return __atomic_load_n(&machine, __ATOMIC_ACQUIRE);
}

struct native *native_get(void)
{
	struct native *native = native_peek();
	int saved = errno;

	if (native)
		return native;
	(void)pthread_mutex_lock(&machine_lock);
	native = native_peek();
	if (!native && !failed) {
		native = machine_new();
		failed = !native;
		__atomic_store_n(&machine, native, __ATOMIC_RELEASE);
		if (native)
			native_control_from_environment(native);
	}
	(void)pthread_mutex_unlock(&machine_lock);
	errno = saved;
	return native;
}

/* The system call clone() runs no fork handler in the child. That child has one thread and may have
 * closed every descriptor. Its machine runs the same kernel. */
void native_check_clone(void)
{
	struct native *parents = native_peek();

	if (!parents || parents->pid == native_real_pid())
		return;
	(void)pthread_mutex_init(&machine_lock, NULL);
	__atomic_store_n(&machine, NULL, __ATOMIC_RELEASE);
	native_files_inherit(parents);
	if (native_get())
		native_get()->sim.knobs = parents->sim.knobs;
}

static void before_fork(void)
{
	(void)pthread_mutex_lock(&machine_lock);
	if (machine)
		(void)pthread_mutex_lock(&machine->lock);
}

static void after_fork(void)
{
	if (machine)
		(void)pthread_mutex_unlock(&machine->lock);
	(void)pthread_mutex_unlock(&machine_lock);
}

static void close_kept(struct native *native)
{
	struct native_file *file;
	struct native_bo *bo;
	u32 i;

	for (file = native->files; file; file = file->next)
		(void)NATIVE_REAL(close)(file->peer);
	if (native->resume_socket >= 0)
		(void)NATIVE_REAL(close)(native->resume_socket);
	for (i = 0; i < NATIVE_BUCKETS; i++)
		for (bo = native->by_id[i]; bo; bo = bo->next_by_id)
			(void)NATIVE_REAL(close)(bo->fd);
}

/* The child has no buffers or processes of its parent. An inherited dma-buf counts as one of
 * another process, and an inherited device file answers no call. The parent's threads do not run
 * here, so the child leaves their memory alone. */
static void after_fork_in_child(void)
{
	struct native *parents = machine;

	machine = NULL;
	(void)pthread_mutex_unlock(&machine_lock);
	if (!parents)
		return;
	close_kept(parents);
	native_files_inherit(parents);
	(void)pthread_mutex_unlock(&parents->lock);
}

static void __attribute__((constructor)) watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
