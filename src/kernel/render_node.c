// SPDX-License-Identifier: GPL-2.0-only
/* Recognises render nodes by their device numbers, opens them, tries whether they can map a BO,
 * asks for the memory in use, and checks the list of names that libdrm reads when it opens one.
 * Lists and makes GEM handles and their mappings, by the rules of amdgpu_gem.c in Linux 7.3. */
#include "kernel/render_node.h"

#include <amdgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"

#define DRM_MAJOR_NUMBER 226

#define PAGE 4096

/* More handles, or mappings of a handle, than any program has. */
#define ENTRIES_MAX (1u << 24)

/* The kernel gives out the lowest free GEM handle, from 1 on. So behind that many free ones a file
 * has, for all practical purposes, no GEM object. Only for kernels before 6.18, which list no
 * handles. */
#define FREE_HANDLES_TRIED 4096

/* Since Linux 6.18; not in the headers of older systems. */
struct gem_list_handles {
	uint64_t entries;
	uint32_t num_entries;
	/* cppcheck-suppress unusedStructMember ; in the kernel's order */
	uint32_t padding;
};

struct gem_op_list {
	uint32_t handle;
	uint32_t op;
	uint64_t value;
	uint32_t num_entries;
	/* cppcheck-suppress unusedStructMember ; in the kernel's order */
	uint32_t padding;
};

#define IOCTL_GEM_LIST_HANDLES  DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct gem_list_handles)
#define IOCTL_GEM_OP_LIST       DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, struct gem_op_list)
#define GEM_OP_GET_MAPPING_INFO 2
/* Not in the headers of older systems either: AMDGPU_VM_PAGE_NOALLOC. */
#define PAGE_NOALLOC (1 << 9)

_Static_assert(sizeof(struct gem_list_handles) == 16, "kernel ABI");
_Static_assert(sizeof(struct gem_op_list) == 24, "kernel ABI");
_Static_assert(sizeof(struct render_gem) == 40, "kernel ABI");
_Static_assert(sizeof(struct render_mapping) == 32, "kernel ABI");
_Static_assert(sizeof(((struct drm_amdgpu_gem_metadata *)0)->data.data) == RENDER_METADATA_MAX,
	       "kernel ABI");

bool render_node_is_device(dev_t device, uint32_t *ret_minor)
{
	unsigned int number = minor(device);

	if (major(device) != DRM_MAJOR_NUMBER || number < RENDER_NODE_MINOR_FIRST ||
	    number > RENDER_NODE_MINOR_LAST)
		return false;
	*ret_minor = number;
	return true;
}

const struct topology_node *render_node_find_gpu(const struct topology *topology, dev_t device)
{
	uint32_t number;

	return render_node_is_device(device, &number) ? topology_find_minor(topology, number)
						      : NULL;
}

int render_node_find_open(const struct topology *topology, pid_t pid, int number,
			  const struct topology_node **ret_gpu)
{
	struct stat stat;
	int ret = proc_stat_fd(pid, number, &stat);

	*ret_gpu = ret > 0 && S_ISCHR(stat.st_mode) ? render_node_find_gpu(topology, stat.st_rdev)
						    : NULL;
	return ret < 0 ? ret : 0;
}

dev_t render_node_device(uint32_t number)
{
	return makedev(DRM_MAJOR_NUMBER, number);
}

int render_node_open(uint32_t number, int lowest_fd, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct stat stat;
	char path[64];
	int ret;

	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", number);
	fd = fd_open(path, O_RDWR | O_NOFOLLOW | O_NOCTTY);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISCHR(stat.st_mode) || stat.st_rdev != render_node_device(number))
		return -ENXIO;
	ret = lowest_fd ? fd_move_up(&fd, lowest_fd) : 0;
	if (ret < 0)
		return ret;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* libdrm's list has 16 KiB and grows by a few lines a year. */
#define NAMES_SIZE_MAX (1 << 20)

/* libdrm reads its list of names to the end and allocates memory for each line. A task that loads
 * its own contents sees the files of its container, where the name may lead to a pipe or to
 * /dev/zero. libdrm ignores a list that it cannot open. */
static int check_names(const char *path)
{
	struct stat names;

	if (stat(path, &names) < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	return S_ISREG(names.st_mode) && names.st_size <= NAMES_SIZE_MAX ? 0 : -EMEDIUMTYPE;
}

/* The paths in the builds of distributions, of AMD, and in local builds. */
int render_node_check_names(void)
{
	static const char *const paths[] = {
		"/usr/share/libdrm/amdgpu.ids",
		"/opt/amdgpu/share/libdrm/amdgpu.ids",
		"/usr/local/share/libdrm/amdgpu.ids",
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(paths); i++)
		ret = check_names(paths[i]);
	return ret;
}

bool render_node_can_map(int fd, uint64_t offset)
{
	void *mapping = mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, (off_t)offset);

	if (mapping == MAP_FAILED)
		return false;
	(void)munmap(mapping, 1);
	return true;
}

int render_node_find_memory(uint32_t number, struct render_memory *ret_memory)
{
	_cleanup_close_ int fd = -1;
	struct drm_amdgpu_memory_info info = { 0 };
	struct drm_amdgpu_info request = {
		.return_pointer = (uintptr_t)&info,
		.return_size = sizeof(info),
		.query = AMDGPU_INFO_MEMORY,
	};
	int ret = render_node_open(number, 0, &fd);

	if (!ret)
		ret = xioctl(fd, DRM_IOCTL_AMDGPU_INFO, &request);
	if (ret < 0)
		return ret;
	*ret_memory = (struct render_memory){
		.vram_used = info.vram.heap_usage,
		.gtt_used = info.gtt.heap_usage,
		.gtt_size = info.gtt.usable_heap_size,
	};
	return 0;
}

/* Both calls return the number, and the entries if they have room. */
static int ask_handles(int fd, uint32_t handle, void *entries, uint32_t *count)
{
	struct gem_list_handles args = { .entries = (uintptr_t)entries, .num_entries = *count };
	int ret = xioctl(fd, IOCTL_GEM_LIST_HANDLES, &args);

	(void)handle;
	*count = args.num_entries;
	return ret;
}

static int ask_mappings(int fd, uint32_t handle, void *entries, uint32_t *count)
{
	struct gem_op_list args = {
		.handle = handle,
		.op = GEM_OP_GET_MAPPING_INFO,
		.value = (uintptr_t)entries,
		.num_entries = *count,
	};
	int ret = xioctl(fd, IOCTL_GEM_OP_LIST, &args);

	*count = args.num_entries;
	return ret;
}

static int list(int fd, uint32_t handle, size_t size,
		int (*ask)(int fd, uint32_t handle, void *entries, uint32_t *count), void *ret_list,
		size_t *ret_count)
{
	_cleanup_free_ void *entries = NULL;
	uint32_t room = 0, count = 0;
	int ret = ask(fd, handle, NULL, &count);

	while (!ret && count > room) {
		room = count;
		ret = room > ENTRIES_MAX ? -E2BIG : array_grow(&entries, room, size);
		if (!ret)
			ret = ask(fd, handle, entries, &count);
	}
	if (ret < 0)
		return ret;
	*(void **)ret_list = take_ptr(&entries);
	*ret_count = count;
	return 0;
}

static int read_info(int fd, uint32_t handle, struct drm_amdgpu_gem_create_in *ret_info)
{
	struct drm_amdgpu_gem_op op = {
		.handle = handle,
		.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
		.value = (uintptr_t)ret_info,
	};

	return xioctl(fd, DRM_IOCTL_AMDGPU_GEM_OP, &op);
}

static int try_handles(int fd, struct render_gem **ret_list, size_t *ret_count)
{
	_cleanup_free_ struct render_gem *gems = NULL;
	uint32_t last = 0;
	size_t count = 0;
	int ret = 0;

	for (uint32_t handle = 1; !ret && handle <= last + FREE_HANDLES_TRIED; handle++) {
		struct render_gem gem = { .handle = handle };
		struct drm_amdgpu_gem_create_in info;

		ret = read_info(fd, handle, &info);
		if (!ret) {
			last = handle;
			ret = array_append(&gems, &count, sizeof(gem), &gem);
		} else if (ret == -ENOENT) {
			ret = 0;
		}
		if (!ret && count > ENTRIES_MAX)
			ret = -E2BIG;
	}
	if (ret < 0)
		return ret;
	*ret_list = take_ptr(&gems);
	*ret_count = count;
	return 0;
}

int render_node_gem_list(int fd, struct render_gem **ret_list, size_t *ret_count)
{
	int ret = list(fd, 0, sizeof(**ret_list), ask_handles, ret_list, ret_count);

	return ret == -EINVAL ? try_handles(fd, ret_list, ret_count) : ret;
}

bool render_node_gem_can_list(uint32_t minor)
{
	_cleanup_close_ int fd = -1;
	uint32_t count = 0;

	return !render_node_open(minor, 0, &fd) && !ask_handles(fd, 0, NULL, &count);
}

int render_node_gem_mappings(int fd, uint32_t handle, struct render_mapping **ret_list,
			     size_t *ret_count)
{
	return list(fd, handle, sizeof(**ret_list), ask_mappings, ret_list, ret_count);
}

int render_node_gem_offset(int fd, uint32_t handle, uint64_t *ret_offset)
{
	union drm_amdgpu_gem_mmap args = { .in = { .handle = handle } };
	int ret = xioctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &args);

	if (!ret)
		*ret_offset = args.out.addr_ptr;
	return ret;
}

int render_node_gem_inode(int fd, uint32_t handle, uint64_t *ret_inode)
{
	struct drm_prime_handle args = { .handle = handle, .flags = DRM_CLOEXEC, .fd = -1 };
	_cleanup_close_ int dmabuf_fd = -1;
	struct stat stat;
	int ret = xioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);

	if (ret < 0)
		return ret;
	dmabuf_fd = args.fd;
	if (fstat(dmabuf_fd, &stat) < 0)
		return -errno;
	*ret_inode = stat.st_ino;
	return 0;
}

int render_node_gem_import(int fd, int dmabuf_fd, uint32_t *ret_handle)
{
	struct drm_prime_handle args = { .fd = dmabuf_fd };
	int ret = xioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);

	if (!ret)
		*ret_handle = args.handle;
	return ret;
}

int render_node_gem_take(int fd, uint32_t *ret_handle)
{
	union drm_amdgpu_gem_create args = {
		.in = { .bo_size = PAGE, .alignment = PAGE, .domains = AMDGPU_GEM_DOMAIN_GTT },
	};
	int ret = xioctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &args);

	if (!ret)
		*ret_handle = args.out.handle;
	return ret;
}

int render_node_gem_close(int fd, uint32_t handle)
{
	struct drm_gem_close args = { .handle = handle };

	return xioctl(fd, DRM_IOCTL_GEM_CLOSE, &args);
}

bool render_node_gem_can_map(const struct render_mapping *mapping)
{
	const uint64_t known = AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE |
			       AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_PAGE_EXECUTABLE |
			       AMDGPU_VM_MTYPE_MASK | PAGE_NOALLOC;

	return !(mapping->flags & ~known);
}

/* DELAY_UPDATE would leave the page tables as they are until a submission. */
int render_node_gem_map(int fd, uint32_t handle, const struct render_mapping *mapping)
{
	struct drm_amdgpu_gem_va args = {
		.handle = handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = (uint32_t)mapping->flags & ~(uint32_t)AMDGPU_VM_DELAY_UPDATE,
		.va_address = mapping->addr,
		.offset_in_bo = mapping->offset,
		.map_size = mapping->size,
	};

	return xioctl(fd, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

int render_node_gem_get_metadata(int fd, uint32_t handle, struct render_metadata *ret_metadata)
{
	struct drm_amdgpu_gem_metadata args = {
		.handle = handle,
		.op = AMDGPU_GEM_METADATA_OP_GET_METADATA,
	};
	int ret = xioctl(fd, DRM_IOCTL_AMDGPU_GEM_METADATA, &args);

	if (ret < 0)
		return ret;
	if (args.data.data_size_bytes > sizeof(args.data.data))
		return -E2BIG;
	*ret_metadata = (struct render_metadata){
		.flags = args.data.flags,
		.tiling = args.data.tiling_info,
		.size = args.data.data_size_bytes,
	};
	memcpy(ret_metadata->data, args.data.data, ret_metadata->size);
	return 0;
}

int render_node_gem_set_metadata(int fd, uint32_t handle, const struct render_metadata *metadata)
{
	struct drm_amdgpu_gem_metadata args = {
		.handle = handle,
		.op = AMDGPU_GEM_METADATA_OP_SET_METADATA,
		.data = {
			.flags = metadata->flags,
			.tiling_info = metadata->tiling,
			.data_size_bytes = metadata->size,
		},
	};

	memcpy(args.data.data, metadata->data, metadata->size);
	return xioctl(fd, DRM_IOCTL_AMDGPU_GEM_METADATA, &args);
}

int render_node_gem_read(int fd, int dmabuf_fd, struct render_bo *ret_bo)
{
	struct drm_amdgpu_gem_create_in info = { 0 };
	struct render_bo bo = { 0 };
	uint32_t handle = 0;
	int ret = render_node_gem_import(fd, dmabuf_fd, &handle);

	if (ret < 0)
		return ret;
	ret = read_info(fd, handle, &info);
	bo.flags = info.domain_flags;
	if (!ret)
		ret = render_node_gem_offset(fd, handle, &bo.mmap_offset);
	(void)render_node_gem_close(fd, handle);
	if (ret < 0 && ret != -EPERM)
		return ret;
	*ret_bo = bo;
	return 0;
}
