// SPDX-License-Identifier: GPL-2.0-only
/* Redirects paths of the simulated devices into the machine's tree. A file found there, or through
 * a descriptor, appears as the device that it stands for. */
#include <sys/sysmacros.h>

#include "native.h"
#include "native_cuda.h"

#define NODE_FORMAT "/dev/dri/renderD%u%n"

/* Whole directories, or files, that come from the machine's tree instead of the system. */
static const char *const prefixes[] = {
	"/dev/kfd",
	"/dev/dri",
	"/sys/bus/pci/devices",
	"/sys/class/kfd",
	"/sys/devices/virtual/kfd",
	"/sys/module/amdgpu",
	"/proc/self/cgroup",
};
#define CHAR_DEVICES "/sys/dev/char/226:"

static bool is_ours(const char *path)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		if (strncmp(path, prefixes[i], length) == 0 &&
		    (path[length] == '\0' || path[length] == '/'))
			return true;
	}
	return strncmp(path, CHAR_DEVICES, strlen(CHAR_DEVICES)) == 0;
}

/* Files that are written at a look-up. */
static bool find_written(struct native *native, const char *path, char *buffer)
{
	return native_procfs_path(native, path, buffer) || native_ras_path(native, path, buffer);
}

const char *native_path(const char *path, char *buffer)
{
	struct native *native;

	if (!path || path[0] != '/' || !is_ours(path) || native_cuda_is_starting())
		return path;
	native = native_get();
	if (native && find_written(native, path, buffer))
		return buffer;
	if (!native || (size_t)snprintf(buffer, PATH_MAX, "%s%s", native->root, path) >= PATH_MAX)
		return path;
	return buffer;
}

static void make_device(struct stat *stat, u32 device_major, u32 device_minor)
{
	stat->st_mode = (stat->st_mode & ~(mode_t)S_IFMT) | S_IFCHR;
	stat->st_rdev = makedev(device_major, device_minor);
}

/* Shows the target of a link of /proc/PID/map_files, except for mappings of the library itself. */
static void show_mapped(struct native *native, const char *range, struct stat *stat)
{
	struct native_id id = { stat->st_dev, stat->st_ino };
	u64 start = strtoull(range, NULL, 16), offset;
	struct native_bo *bo = native_bo_by_id(native, &id);

	if (bo) {
		if ((u64)(uintptr_t)bo->map != start)
			make_device(stat, NATIVE_DRM_MAJOR, bo->bo.gpu->render_minor);
		native_bo_put(bo);
	} else if (native_page_is_file(&id) && native_kfd_find_map(native, start, &offset)) {
		make_device(stat, native->kfd_major, 0);
	}
}

/* PROC_PID_INIT_INO in the kernel's linux/proc_ns.h. Tests may run in any namespace. */
static void show_pid_namespace(const struct native *native, struct stat *stat)
{
	const ino_t initial = 0xeffffffc;

	stat->st_ino = native->in_pid_namespace ? initial - 1 : initial;
}

void native_stat_of_path(const char *path, struct stat *stat)
{
	static const char map_files[] = "/map_files/";
	struct native *native = native_peek();
	const char *range;
	u32 device_minor;
	int length = 0;

	if (!native || path[0] != '/')
		return;
	if (strcmp(path, "/dev/kfd") == 0)
		make_device(stat, native->kfd_major, 0);
	else if (sscanf(path, NODE_FORMAT, &device_minor, &length) == 1 && !path[length])
		make_device(stat, NATIVE_DRM_MAJOR, device_minor);
	else if (strcmp(path, "/proc/self/ns/pid") == 0)
		show_pid_namespace(native, stat);
	else if (strncmp(path, "/proc/", 6) == 0 && (range = strstr(path, map_files)))
		show_mapped(native, range + strlen(map_files), stat);
}

static bool show_file(struct native *native, const struct native_id *id, struct stat *stat)
{
	struct native_file *file = native_file_get_by_id(native, id);
	const struct native_file *shown = file ? file : native_file_find_inherited(id);

	if (shown)
		make_device(stat, shown->kind == NATIVE_KFD ? native->kfd_major : NATIVE_DRM_MAJOR,
			    shown->minor);
	if (file)
		native_file_put(file);
	return shown;
}

void native_stat_of_fd(int fd, struct stat *stat)
{
	struct native *native = native_peek();
	struct native_id id = { stat->st_dev, stat->st_ino };

	if (!native || (S_ISSOCK(stat->st_mode) && show_file(native, &id, stat)))
		return;
	if (native_dmabuf_is_at(fd, stat))
		native_dmabuf_stat(fd, stat);
}
