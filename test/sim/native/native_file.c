// SPDX-License-Identifier: GPL-2.0-only
/* Open files of /dev/kfd and render nodes. This file makes them, finds them by any descriptor of
 * the program, and releases them after the last descriptor. native_kfd.c and native_drm.c handle
 * the calls on them. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "native.h"

/* The parent's machine, which the child never changes. */
static const struct native *inherited;

void native_files_inherit(struct native *parents)
{
	inherited = parents;
}

const struct native_file *native_file_find_inherited(const struct native_id *id)
{
	const struct native_file *file = inherited ? inherited->files : NULL;

	while (file && !native_id_equal(&file->id, id))
		file = file->next;
	return file;
}

bool native_file_is_inherited(int fd)
{
	struct native_id id;

	return inherited && native_fd_identify(fd, &id) == 0 && native_file_find_inherited(&id);
}

static void file_free(struct native_file *file)
{
	if (file->process)
		native_process_put(file->process);
	if (file->render) {
		sim_render_closing(&file->render->render);
		native_handles_close(file->render);
		sim_render_done(&file->render->render);
		sim_ids_done(&file->render->handles);
		free(file->render);
	}
	free(file);
}

void native_file_put(struct native_file *file)
{
	if (__atomic_sub_fetch(&file->refs, 1, __ATOMIC_ACQ_REL) == 0)
		file_free(file);
}

/* Gives @file a descriptor; a failure frees the file. */
static int file_enter(struct native *native, struct native_file *file, int flags)
{
	int fd = native_fd_pair((flags & O_CLOEXEC) != 0, &file->peer);

	file->refs = 1;
	if (fd < 0) {
		native_file_put(file);
		return fd;
	}
	(void)native_fd_identify(fd, &file->id);
	(void)pthread_mutex_lock(&native->lock);
	file->next = native->files;
	native->files = file;
	(void)pthread_mutex_unlock(&native->lock);
	return fd;
}

int native_open_kfd(struct native *native, int flags)
{
	struct native_file *file;
	int ret;

	native_files_reap(native);
	ret = sim_fault(&native->sim.faults, "kfd", "OPEN");
	if (ret < 0)
		return ret;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->kind = NATIVE_KFD;
	ret = native_process_open(native, &file->process);
	if (ret < 0) {
		free(file);
		return ret;
	}
	return file_enter(native, file, flags);
}

static struct sim_gpu *find_gpu(struct native *native, u32 minor)
{
	u32 i;

	for (i = 0; i < native->sim.num_gpus; i++)
		if (native->sim.gpus[i].render_minor == minor)
			return &native->sim.gpus[i];
	return NULL;
}

static int make_render(struct native_file *file, struct sim_gpu *gpu)
{
	struct native_render *render;
	int ret;

	if (gpu->hidden)
		return -EPERM; /* a device cgroup would return the same error */
	render = calloc(1, sizeof(*render));
	if (!render)
		return -ENOMEM;
	ret = sim_render_init(&render->render, gpu);
	if (ret < 0) {
		free(render);
		return ret;
	}
	render->file = file;
	sim_ids_init(&render->handles, 1);
	file->render = render;
	return 0;
}

static struct native_render *make_client(struct sim_gpu *gpu)
{
	struct native_render *client = calloc(1, sizeof(*client));

	if (!client)
		abort(); /* the real driver makes the client when it is loaded */
	sim_render_init_client(&client->render, gpu);
	sim_ids_init(&client->handles, 1);
	return client;
}

struct sim_render *sim_os_kfd_client(struct sim_gpu *gpu)
{
	struct sim_gpu *device = sim_gpu_device(gpu);
	struct native *native = native_get();
	struct native_render **client = &native->kfd_clients[device->index];

	(void)pthread_mutex_lock(&native->lock);
	if (!*client)
		*client = make_client(device);
	(void)pthread_mutex_unlock(&native->lock);
	return &(*client)->render;
}

/* A node without a simulated GPU belongs to another vendor's GPU. */
int native_open_render(struct native *native, u32 minor, int flags)
{
	struct sim_gpu *gpu = find_gpu(native, minor);
	struct native_file *file;
	int ret = 0;

	native_files_reap(native);
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->kind = gpu ? NATIVE_RENDER : NATIVE_FOREIGN;
	file->minor = minor;
	if (gpu)
		ret = make_render(file, gpu);
	if (ret < 0) {
		free(file);
		return ret;
	}
	return file_enter(native, file, flags);
}

struct native_file *native_file_get_by_id(struct native *native, const struct native_id *id)
{
	struct native_file *file;

	(void)pthread_mutex_lock(&native->lock);
	for (file = native->files; file && !native_id_equal(&file->id, id); file = file->next)
		;
	if (file)
		(void)__atomic_add_fetch(&file->refs, 1, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&native->lock);
	return file;
}

struct native_file *native_file_get(int fd)
{
	struct native *native = native_peek();
	struct native_id id;
	struct stat stat;
	int saved = errno;

	if (!native || NATIVE_REAL(fstat)(fd, &stat) < 0 || !S_ISSOCK(stat.st_mode)) {
		errno = saved;
		return NULL;
	}
	id = (struct native_id){ stat.st_dev, stat.st_ino };
	return native_file_get_by_id(native, &id);
}

static bool is_abandoned(const struct native_file *file)
{
	struct pollfd poll_fd = { .fd = file->peer };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLHUP;
}

void native_files_reap(struct native *native)
{
	struct native_file **link, *file, *dead = NULL;

	(void)pthread_mutex_lock(&native->lock);
	for (link = &native->files; (file = *link);) {
		if (!is_abandoned(file)) {
			link = &file->next;
			continue;
		}
		*link = file->next;
		file->next = dead;
		dead = file;
	}
	(void)pthread_mutex_unlock(&native->lock);
	while ((file = dead)) {
		dead = file->next;
		(void)NATIVE_REAL(close)(file->peer);
		native_file_put(file);
	}
}

struct sim_render *sim_os_render_from_fd(int fd)
{
	struct native_file *file = native_file_get(fd);

	if (!file)
		return NULL;
	if (file->kind == NATIVE_RENDER)
		return &file->render->render;
	native_file_put(file);
	return NULL;
}

void sim_os_render_put(struct sim_render *render)
{
	native_file_put(native_render_of(render)->file);
}
