// SPDX-License-Identifier: GPL-2.0-only
/*
 * What /proc says of this process where the simulation shows: mappings of devices are mappings of
 * files in memory, and a process that plays both CRIU and its task is traced, or has a pid of its
 * own, only if that is made believe. */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "native.h"

/* @other: the process that the file describes; NULL: this process. */
typedef void (*line_function)(struct native *native, const struct native_other *other,
			      const char *line, FILE *to);

static void copy_status(struct native *native, const struct native_other *other, const char *line,
			FILE *to)
{
	pid_t own_pid = other ? other->own_pid : native->own_pid;
	bool traced = other ? native->others_traced || other->traced : native->traced;

	if (traced && strncmp(line, "TracerPid:", 10) == 0)
		(void)fprintf(to, "TracerPid:\t%d\n", (int)syscall(SYS_gettid));
	else if (own_pid && strncmp(line, "NSpid:", 6) == 0)
		(void)fprintf(to, "%.*s\t%d\n", (int)strcspn(line, "\n"), line, own_pid);
	else
		(void)fputs(line, to);
}

struct mapping {
	unsigned long long start, end, offset, inode;
	unsigned int device_major, device_minor;
	char permissions[8];
};

static bool show_device(struct native *native, struct mapping *mapping, char *path, size_t size)
{
	struct native_id id = { makedev(mapping->device_major, mapping->device_minor),
				(ino_t)mapping->inode };
	struct native_bo *bo = native_bo_by_id(native, &id);

	if (bo) {
		mapping->offset += bo->offset;
		(void)snprintf(path, size, "/dev/dri/renderD%u", bo->bo.gpu->render_minor);
		native_bo_put(bo);
		return true;
	}
	(void)snprintf(path, size, "/dev/kfd");
	return native_page_is_file(&id) &&
	       native_kfd_find_map(native, mapping->start, (u64 *)&mapping->offset);
}

static void copy_mapping(struct native *native, const struct native_other *other, const char *line,
			 FILE *to)
{
	struct mapping mapping;
	char path[64];

	(void)other;
	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu", &mapping.start, &mapping.end,
		   mapping.permissions, &mapping.offset, &mapping.device_major,
		   &mapping.device_minor, &mapping.inode) == 7 &&
	    mapping.inode && show_device(native, &mapping, path, sizeof(path)))
		(void)fprintf(to, "%llx-%llx %s %08llx 00:05 %llu %s\n", mapping.start, mapping.end,
			      mapping.permissions, mapping.offset, mapping.inode, path);
	else
		(void)fputs(line, to);
}

static int rewrite(struct native *native, const struct native_other *other, const char *path,
		   line_function function)
{
	FILE *from = NATIVE_REAL(fopen)(path, "re"), *to;
	int fd = memfd_create("amdgpu_sim.proc", MFD_CLOEXEC);
	size_t room = 0;
	char *line = NULL;

	to = from && fd >= 0 ? fdopen(dup(fd), "we") : NULL;
	while (to && getline(&line, &room, from) >= 0)
		function(native, other, line, to);
	free(line);
	if (from)
		(void)fclose(from);
	if (to && fclose(to) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	if (fd >= 0)
		(void)NATIVE_REAL(close)(fd);
	return -1;
}

static int show_text(const char *text)
{
	int fd = memfd_create("amdgpu_sim.proc", MFD_CLOEXEC);

	if (fd >= 0 &&
	    (dprintf(fd, "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t1\n%s", text) < 0 ||
	     lseek(fd, 0, SEEK_SET) < 0)) {
		(void)NATIVE_REAL(close)(fd);
		fd = -1;
	}
	return fd;
}

/* dma-buf.c: dma_buf_show_fdinfo() (6.12), behind the lines that each file has; -2: it is no
 * dma-buf.
 */
static int show_dmabuf(int dmabuf)
{
	u32 references;
	char text[96];
	u64 size;

	if (!native_holders_count(dmabuf, &size, &references))
		return -2;
	(void)snprintf(text, sizeof(text), "size:\t%llu\ncount:\t%u\nexp_name:\tdrm\n",
		       (unsigned long long)size, references);
	return show_text(text);
}

/* amdgpu_fdinfo.c: amdgpu_show_fdinfo() (6.12), of which only the PASID is here; -2: the descriptor
 * is not a file of a simulated render node. @path: its fdinfo. A task that this process plays has
 * descriptors of the files here. */
static int show_render(struct native *native, const char *path, const char *behind_pid)
{
	char link[PATH_MAX], text[64];
	struct native_file *file;
	struct native_id id;
	struct stat of_file;
	int ret = -2;

	(void)snprintf(link, sizeof(link), "%.*sfd/%s", (int)(behind_pid - path), path,
		       behind_pid + strlen("fdinfo/"));
	if (NATIVE_REAL(stat)(link, &of_file) < 0 || !S_ISSOCK(of_file.st_mode))
		return -2;
	id = (struct native_id){ of_file.st_dev, of_file.st_ino };
	file = native_file_get_by_id(native, &id);
	if (file && file->render) {
		(void)snprintf(text, sizeof(text), "drm-driver:\tamdgpu\npasid:\t%u\n",
			       file->render->render.pasid);
		ret = show_text(text);
	}
	if (file)
		native_file_put(file);
	return ret;
}

/* Returns the part behind /proc/self/, or behind /proc/ and this process's number; NULL: the path
 * is about another process. */
static const char *about_us(struct native *native, const char *path)
{
	int pid, length = 0;

	if (!native || !path || strncmp(path, "/proc/", 6) != 0)
		return NULL;
	if (strncmp(path, "/proc/self/", 11) == 0)
		return path + 11;
	return sscanf(path, "/proc/%d/%n", &pid, &length) == 1 && pid == native->pid ? path + length
										     : NULL;
}

/* The same for another process, whose mappings are those of this process. */
static const char *about_other(struct native *native, const char *path,
			       const struct native_other **ret_other)
{
	int pid, length = 0;
	u32 i;

	if (!native || !path || sscanf(path, "/proc/%d/%n", &pid, &length) != 1 || !length)
		return NULL;
	for (i = 0; i < native->num_others; i++) {
		if (native->others[i].pid != pid)
			continue;
		*ret_other = &native->others[i];
		return path + length;
	}
	return NULL;
}

const char *native_proc_name(int directory, const char *path, char *buffer)
{
	static const char name[] = "/fdinfo";
	char link[64];
	ssize_t length;

	if (directory < 0 || path[0] == '/')
		return path;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = NATIVE_REAL(readlink)(link, buffer, PATH_MAX - 1);
	if (length < (ssize_t)strlen(name) ||
	    memcmp(buffer + length - strlen(name), name, strlen(name)) != 0)
		return path;
	(void)snprintf(buffer + length, PATH_MAX - (size_t)length, "/%s", path);
	return buffer;
}

int native_proc_open(const char *path)
{
	struct native *native = native_peek();
	const struct native_other *other = NULL;
	const char *file = about_us(native, path);
	int number, length = 0, fd;

	if (file && sscanf(file, "fdinfo/%d%n", &number, &length) == 1 && !file[length]) {
		fd = show_dmabuf(number);
		return fd == -2 ? show_render(native, path, file) : fd;
	}
	if (!file)
		file = about_other(native, path, &other);
	if (!file)
		return -2;
	if (strncmp(file, "fdinfo/", strlen("fdinfo/")) == 0)
		return show_render(native, path, file);
	/* the library's own descriptors are not the process's */
	if (sscanf(file, "fd/%d%n", &number, &length) == 1 && !file[length] &&
	    number >= native_fd_lowest_kept()) {
		errno = ENOENT;
		return -1;
	}
	if (strcmp(file, "maps") == 0)
		return rewrite(native, other, path, copy_mapping);
	if (strcmp(file, "status") == 0 && (other || native->traced || native->own_pid))
		return rewrite(native, other, path, copy_status);
	return -2;
}

ssize_t native_proc_readlink(const char *path, char *target, size_t size)
{
	struct native *native = native_peek();
	const char *name = about_us(native, path);
	struct native_file *file;
	char text[64] = "";
	int fd;

	if (!name || sscanf(name, "fd/%d", &fd) != 1)
		return -1;
	file = native_file_get(fd);
	if (!file && !native_dmabuf_is_any(fd))
		return -1;
	if (!file)
		(void)snprintf(text, sizeof(text), "/dmabuf:");
	else if (file->kind == NATIVE_KFD)
		(void)snprintf(text, sizeof(text), "/dev/kfd");
	else
		(void)snprintf(text, sizeof(text), "/dev/dri/renderD%u", file->minor);
	if (file)
		native_file_put(file);
	size = min(size, strlen(text));
	memcpy(target, text, size);
	return (ssize_t)size;
}
