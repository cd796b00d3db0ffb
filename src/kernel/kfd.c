// SPDX-License-Identifier: GPL-2.0-only
/* Calls the KFD driver. The callers in src/dump/ and src/restore/ decide what to do with the state
 * of a process. */
#include "kernel/kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

#define KFD_SYSFS_DEV "/sys/class/kfd/kfd/dev"

/* CHECKPOINT exports dma-bufs of GTT BOs since 1.8. Without one, the plugin cannot
 * save contents. */
#define KFD_MINOR_NEEDED 8

/* An address in the first page, which no process has. */
#define UNREADABLE      8
#define UNREADABLE_SIZE 1024

/* Descriptors that a process may have open besides dma-bufs. */
#define OTHER_DESCRIPTORS 4096

/* In the mount namespace of a task the path may be any file. O_NONBLOCK keeps a FIFO
 * from blocking. */
int kfd_read_device(dev_t *ret_device)
{
	_cleanup_close_ int fd = fd_open(KFD_SYSFS_DEV, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	unsigned int device_major, device_minor;
	size_t length;
	char text[64];
	int ret;

	if (fd < 0)
		return fd;
	ret = read_short(fd, text, sizeof(text), &length);
	if (ret < 0)
		return ret;
	if (sscanf(text, "%u:%u", &device_major, &device_minor) != 2)
		return -EINVAL;
	*ret_device = makedev(device_major, device_minor);
	return 0;
}

int kfd_is_file(const struct stat *stat)
{
	dev_t device = 0;
	int ret;

	if (!S_ISCHR(stat->st_mode))
		return 0;
	ret = kfd_read_device(&device);
	if (ret == -ENOENT)
		return 0;
	/* CRIU's own error would only say that it cannot dump this type of file. */
	if (ret < 0)
		return log_error(ret,
				 "%s: cannot read, so the plugin cannot recognise files of KFD",
				 KFD_SYSFS_DEV);
	return stat->st_rdev == device;
}

static int report_dmabuf(int ret)
{
	return log_error(ret, "%s: cannot query the dma-buf", KFD_PATH);
}

int kfd_is_dmabuf(int fd)
{
	_cleanup_close_ int kfd = fd_open(KFD_PATH, O_RDWR);
	/* If the metadata did not fit, the error would be that for a foreign dma-buf. */
	char metadata[256];
	struct kfd_dmabuf_info_args args = {
		.metadata_ptr = (uintptr_t)metadata,
		.metadata_size = sizeof(metadata),
		.dmabuf_fd = (uint32_t)fd,
	};
	int ret;

	/* Without the driver no dma-buf is KFD's. */
	if (kfd < 0)
		return kfd == -ENOENT || kfd == -ENXIO || kfd == -ENODEV ? 0 : report_dmabuf(kfd);
	ret = xioctl(kfd, KFD_IOC_GET_DMABUF_INFO, &args);
	if (ret == -EINVAL)
		return 0;
	return ret < 0 ? report_dmabuf(ret) : 1;
}

static int report_open(int ret)
{
	dev_t device = 0;

	if (ret == -EACCES)
		return log_error(
			ret, "%s: cannot open; %s", KFD_PATH,
			geteuid()
				? "run this as root, or as a member of the node's group"
				: "a security module (SELinux: setsebool container_use_devices=1) or a user namespace (rootless podman: --group-add keep-groups) forbids it to root");
	if (ret == -ENOENT)
		return log_error(
			ret,
			"%s: cannot open; load the driver amdgpu, or give the container the node (podman: --device /dev/kfd)",
			KFD_PATH);
	if (ret != -EPERM || kfd_read_device(&device) < 0)
		return log_error(ret, "%s: cannot open", KFD_PATH);
	return log_error(
		ret,
		"%s: cannot open; the device cgroup must allow c %u:%u rw (linux.resources.devices of config.json, podman: --device /dev/kfd)",
		KFD_PATH, major(device), minor(device));
}

int kfd_read_minor(int fd, uint32_t *ret_minor)
{
	struct kfd_version_args version = { 0 };
	int ret = xioctl(fd, KFD_IOC_GET_VERSION, &version);

	if (ret < 0)
		return log_error(ret, "%s: cannot get its version", KFD_PATH);
	if (version.major != 1 || version.minor < KFD_MINOR_NEEDED)
		return log_error(
			-EOPNOTSUPP,
			"%s: version %u.%u cannot checkpoint; use version 1.%d or newer (Linux 5.18)",
			KFD_PATH, version.major, version.minor, KFD_MINOR_NEEDED);
	*ret_minor = version.minor;
	return 0;
}

static int open_checked(int *ret_fd, uint32_t *ret_minor)
{
	_cleanup_close_ int fd = fd_open(KFD_PATH, O_RDWR | O_NOFOLLOW | O_NOCTTY);
	struct stat stat;
	int ret;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return report_open(fd < 0 ? fd : -errno);
	/* In the mount namespace of a task the path may be any file. */
	ret = kfd_is_file(&stat);
	if (ret < 0)
		return ret;
	if (!ret)
		return log_error(-ENXIO,
				 "%s: not the device of the KFD driver; make the node again",
				 KFD_PATH);
	ret = kfd_read_minor(fd, ret_minor);
	if (ret < 0)
		return ret;
	*ret_fd = take_fd(&fd);
	return 0;
}

int kfd_open(int *ret_fd)
{
	uint32_t minor_version;

	return open_checked(ret_fd, &minor_version);
}

int kfd_check_version(uint32_t *ret_minor)
{
	_cleanup_close_ int fd = -1;

	return open_checked(&fd, ret_minor);
}

/* Each call is EPERM without SVM. With SVM no range begins at 0 (kfd_ioctl_svm() in
 * kfd_chardev.c). */
bool kfd_has_svm(void)
{
	struct kfd_svm_args args = { 0 };
	_cleanup_close_ int fd = -1;

	return kfd_open(&fd) < 0 || xioctl(fd, KFD_IOC_SVM, &args) != -EPERM;
}

int kfd_state_alloc(struct kfd_state *state)
{
	size_t priv_data_size = state->priv_data_size;

	state->devices = calloc((size_t)state->num_devices + 1, sizeof(*state->devices));
	state->bos = calloc((size_t)state->num_bos + 1, sizeof(*state->bos));
	/* Otherwise kfd_state_done() would close descriptor 0. */
	for (uint32_t i = 0; state->bos && i < state->num_bos; i++)
		state->bos[i].dmabuf_fd = KFD_INVALID_FD;
	state->priv_data = calloc(priv_data_size + 1, 1);
	return state->devices && state->bos && state->priv_data ? 0 : -ENOMEM;
}

const struct kfd_device_bucket *kfd_state_find_device(const struct kfd_state *state,
						      uint32_t user_gpu_id)
{
	for (uint32_t i = 0; i < state->num_devices; i++) {
		if (state->devices[i].user_gpu_id == user_gpu_id)
			return &state->devices[i];
	}
	return NULL;
}

uint32_t kfd_state_choose_id(const struct kfd_state *state, uint32_t gpu_id)
{
	while (kfd_state_find_device(state, gpu_id))
		gpu_id = gpu_id % KFD_GPU_ID_MAX + 1;
	return gpu_id;
}

void kfd_state_close(struct kfd_state *state)
{
	for (uint32_t i = 0; state->bos && i < state->num_bos; i++) {
		if (state->bos[i].dmabuf_fd != KFD_INVALID_FD)
			(void)close((int)state->bos[i].dmabuf_fd);
		state->bos[i].dmabuf_fd = KFD_INVALID_FD;
	}
}

void kfd_state_done(struct kfd_state *state)
{
	kfd_state_close(state);
	free(state->devices);
	free(state->bos);
	free(state->priv_data);
	nofile_restore(&state->old_limit);
	*state = (struct kfd_state){ 0 };
}

static struct kfd_criu_args args_of(const struct kfd_state *state, enum kfd_criu_op op)
{
	return (struct kfd_criu_args){
		.devices = (uintptr_t)state->devices,
		.bos = (uintptr_t)state->bos,
		.priv_data = (uintptr_t)state->priv_data,
		.priv_data_size = state->priv_data_size,
		.num_devices = state->num_devices,
		.num_bos = state->num_bos,
		.num_objects = state->num_objects,
		.op = op,
	};
}

/* The kernel returns low numbers without close-on-exec. CRIU's children would inherit them, and
 * they would be in the way of the descriptors that CRIU restores for the task. */
static int move_dmabuf_fds(struct kfd_state *state, int lowest_fd)
{
	for (uint32_t i = 0; i < state->num_bos; i++) {
		int fd = (int)state->bos[i].dmabuf_fd;
		int ret;

		if (fd < 0)
			continue;
		ret = fd_move_up(&fd, lowest_fd);
		state->bos[i].dmabuf_fd = (uint32_t)fd;
		if (ret < 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return -errno;
	}
	return 0;
}

/* Does not repeat the call after EINTR or EAGAIN, as xioctl() would: the driver may have failed
 * halfway, and a second call would use what the first one has freed. */
static int call_unrepeated(int fd, struct kfd_criu_args *args)
{
	return ioctl(fd, KFD_IOC_CRIU_OP, args) < 0 ? -errno : 0;
}

/* CHECKPOINT and RESTORE return a dma-buf for each BO with contents, all in one call. If they lack
 * descriptors, snapshot.c and dump.c close dma-bufs of other processes and try again.
 * kfd_explain() has what the user reads. */
static int call_for_dmabufs(int fd, struct kfd_state *state, enum kfd_criu_op op, int lowest_fd)
{
	uint64_t highest = (uint64_t)lowest_fd + 2ULL * state->num_bos + OTHER_DESCRIPTORS;
	struct kfd_criu_args args = args_of(state, op);
	int ret;

	/* The old limit may suffice. If not, the driver returns EMFILE. */
	ret = nofile_raise(highest, &state->old_limit);
	if (ret < 0)
		log_warn("kfd: cannot raise RLIMIT_NOFILE to %llu for the dma-bufs of BOs: %s",
			 (unsigned long long)highest, strerror(-ret));
	ret = op == KFD_RESTORE ? call_unrepeated(fd, &args) : xioctl(fd, KFD_IOC_CRIU_OP, &args);
	return ret < 0 ? ret : move_dmabuf_fds(state, lowest_fd);
}

int kfd_pause(int fd, struct kfd_state *ret_counts)
{
	struct kfd_criu_args args = { .op = KFD_PROCESS_INFO };
	int ret;

	ret = xioctl(fd, KFD_IOC_CRIU_OP, &args);
	if (ret < 0)
		return ret;
	*ret_counts = (struct kfd_state){
		.vpid = (pid_t)args.pid,
		.num_devices = args.num_devices,
		.num_bos = args.num_bos,
		.num_objects = args.num_objects,
		.priv_data_size = args.priv_data_size,
	};
	return 0;
}

int kfd_checkpoint(int fd, struct kfd_state *state, int lowest_fd)
{
	return call_for_dmabufs(fd, state, KFD_CHECKPOINT, lowest_fd);
}

int kfd_look(int fd, struct kfd_state *state)
{
	struct kfd_criu_args args = args_of(state, KFD_CHECKPOINT);
	struct rlimit old, none;
	int ret;

	if (getrlimit(RLIMIT_NOFILE, &old) < 0)
		return -errno;
	none = (struct rlimit){ .rlim_max = old.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		return -errno;
	ret = xioctl(fd, KFD_IOC_CRIU_OP, &args);
	nofile_restore(&old);
	return ret == -EMFILE ? 0 : ret;
}

int kfd_unpause(int fd)
{
	struct kfd_criu_args args = { .op = KFD_UNPAUSE };
	int ret = xioctl(fd, KFD_IOC_CRIU_OP, &args);

	/* A failed UNPAUSE is partly applied, and repeating it is safe.
	 * -EINVAL: the process is not paused. -EBADF: this thread does not trace the process. */
	if (ret < 0 && ret != -EINVAL && ret != -EBADF)
		ret = xioctl(fd, KFD_IOC_CRIU_OP, &args);
	return ret;
}

int kfd_restore(int fd, struct kfd_state *state, int lowest_fd)
{
	return call_for_dmabufs(fd, state, KFD_RESTORE, lowest_fd);
}

static int try_once(struct kfd_criu_args *args)
{
	_cleanup_close_ int fd = fd_open(KFD_PATH, O_RDWR | O_NOFOLLOW | O_NOCTTY);

	return fd < 0 ? fd : call_unrepeated(fd, args);
}

int kfd_try_restore(struct kfd_state *state)
{
	struct kfd_criu_args args = args_of(state, KFD_RESTORE);

	return try_once(&args);
}

/* criu_restore() first compares the arguments with 0. Then it reads the private data, before it
 * builds anything. */
int kfd_try_restore_without_bos(void)
{
	struct kfd_device_bucket device = { 0 };
	struct kfd_bo_bucket bo = { 0 };
	struct kfd_criu_args args = {
		.op = KFD_RESTORE,
		.devices = (uintptr_t)&device,
		.num_devices = 1,
		.bos = (uintptr_t)&bo,
		.priv_data = UNREADABLE,
		.priv_data_size = UNREADABLE_SIZE,
	};

	return try_once(&args);
}

int kfd_available_vram(int fd, uint32_t gpu_id, uint64_t *ret_bytes)
{
	struct kfd_available_args args = { .gpu_id = gpu_id };
	int ret = xioctl(fd, KFD_IOC_AVAILABLE, &args);

	/* Linux 6.1 counts each BO in steps of 2 MiB, but does not refuse BOs by that count, so
	 * what it subtracts may exceed the VRAM: amdgpu_amdkfd_get_available_memory() in
	 * amdgpu_amdkfd_gpuvm.c. */
	if (!ret)
		*ret_bytes = (int64_t)args.bytes < 0 ? 0 : args.bytes;
	return ret;
}

int kfd_resume(pid_t pid)
{
	struct kfd_criu_args args = { .op = KFD_RESUME, .pid = (uint32_t)pid };
	_cleanup_close_ int fd = -1;
	const char *meaning;
	int ret;

	ret = kfd_open(&fd);
	if (ret < 0)
		return ret;
	ret = call_unrepeated(fd, &args);
	if (!ret)
		return 0;
	meaning = kfd_explain(KFD_RESUME, ret);
	return log_error(ret, "process %d: cannot resume the queues%s%s", pid, meaning ? ", " : "",
			 meaning ? meaning : "");
}

int kfd_memory_import(int fd, uint32_t gpu_id, uint64_t addr, int dmabuf_fd, uint64_t *ret_handle)
{
	struct kfd_import_args args = {
		.va_addr = addr,
		.gpu_id = gpu_id,
		.dmabuf_fd = (uint32_t)dmabuf_fd,
	};
	int ret = xioctl(fd, KFD_IOC_IMPORT_DMABUF, &args);

	*ret_handle = args.handle;
	return ret;
}

int kfd_memory_has_share_handle(int fd, uint32_t gpu_id, const uint32_t *handle)
{
	struct kfd_ipc_import_args args = { .gpu_id = gpu_id };
	int ret;

	memcpy(args.share_handle, handle, sizeof(args.share_handle));
	ret = xioctl(fd, KFD_IOC_IPC_IMPORT, &args);
	/* ENOTTY: a driver without share handles, whose RESTORE refuses the image. */
	return ret == -ENODEV ? 1 : ret == -EINVAL || ret == -ENOTTY ? 0 : ret;
}

int kfd_memory_map(int fd, uint64_t handle, const uint32_t *gpu_ids, uint32_t num_gpus)
{
	struct kfd_map_args args = {
		.handle = handle,
		.gpu_ids = (uintptr_t)gpu_ids,
		.num_gpus = num_gpus,
	};

	return num_gpus ? xioctl(fd, KFD_IOC_MAP_MEMORY, &args) : 0;
}

int kfd_memory_take_handle(int fd, uint32_t gpu_id, uint64_t *ret_handle)
{
	struct kfd_alloc_args args = {
		.size = KFD_GPU_PAGE,
		.gpu_id = gpu_id,
		.flags = KFD_BO_GTT | KFD_BO_WRITABLE,
	};
	int ret = xioctl(fd, KFD_IOC_ALLOC_MEMORY, &args);

	*ret_handle = args.handle;
	return ret;
}

int kfd_memory_free(int fd, uint64_t handle)
{
	return xioctl(fd, KFD_IOC_FREE_MEMORY, &handle);
}

static const struct {
	enum kfd_criu_op op;
	int error;
	const char *text;
} explanations[] = {
	{ KFD_PROCESS_INFO, -ENOTTY,
	  "this kernel cannot checkpoint GPU processes; use Linux 5.18 or newer" },
	{ KFD_PROCESS_INFO, -EBADF, "the process is not part of this dump" },
	{ KFD_PROCESS_INFO, -EIO,
	  "its GPU hangs or is in reset; its queues may stay stopped, and then only ending the process helps" },
	{ KFD_PROCESS_INFO, -ETIME,
	  "its queues did not stop in time; they may stay stopped, and then only ending the process helps" },
	{ KFD_PROCESS_INFO, -EOPNOTSUPP,
	  "the process has a queue that the kernel cannot save, such as debuggers create; detach debuggers" },
	{ KFD_CHECKPOINT, -EOPNOTSUPP,
	  "this kernel cannot save queues of this kind of GPU; use a newer kernel, or (before gfx12) have the process destroy its queues before the dump" },
	{ KFD_CHECKPOINT, -EINVAL,
	  "the BOs or queues of the process keep changing, or its GPU cannot save running waves (cwsr)" },
	/* criu_get_prime_handle() in kfd_chardev.c */
	{ KFD_CHECKPOINT, -EMFILE,
	  "CRIU has too few descriptors for a dma-buf of each BO; raise the hard limit of CRIU's open files (ulimit -Hn, LimitNOFILE)" },
	{ KFD_RESTORE, -ENOMEM,
	  "most likely another process has the memory, of the GPU or of the host; end it, or use another GPU (device-map); if no process has it, reset the GPU or load amdgpu again" },
	/* A device cgroup of another process may hide it since the mapping, or it is off the bus.
	 */
	{ KFD_RESTORE, -ENODEV,
	  "the driver has no such GPU for the task, such as one that a device cgroup hides or that is lost; see the kernel's log, and use another GPU (device-map)" },
	{ KFD_RESTORE, -EIO,
	  "a GPU hangs or is in reset; restore again when the kernel's log says that the reset has ended, or use another GPU (device-map)" },
	{ KFD_RESTORE, -EINTR, "a signal has interrupted the driver; restore again" },
	/* criu_restore_process() in kfd_chardev.c, kfd_process_xnack_mode() in kfd_process.c */
	{ KFD_RESTORE, -EPERM,
	  "the process was saved with XNACK on, which a GPU that the task sees does not support (gfx10 or newer, or amdgpu.noretry=1); hide that GPU with the device cgroup" },
	/* kfd_device_queue_manager.c: allocate_sdma_queue() gives a queue the number that it had.
	 */
	{ KFD_RESTORE, -EBUSY,
	  "most likely another process has an SDMA queue with the same number on that GPU, such as the original, which still runs, another container, or another process of this restore; end it, or use another GPU (device-map)" },
	/* Linux 7.2 and 7.3 fail if a page of an SVM range moves meanwhile. The kernel's NUMA
	 * balancing marks pages, and then the driver's own page fault moves them
	 * (amdgpu_hmm_range_get_pages()). */
	{ KFD_RESUME, -EAGAIN,
	  "because the kernel has moved pages of its memory meanwhile; restore it again, with kernel.numa_balancing=0 if the sysctl is 1" },
	{ KFD_RESUME, -EINTR, "because a signal has interrupted the driver; restore again" },
	/* svm_range_set_attr(), which RESUME calls for the ranges of the image */
	{ KFD_RESUME, -ENOMEM,
	  "because the host has too little memory for its SVM ranges; end other processes, or raise the limit of its cgroup" },
	{ KFD_RESUME, -EFAULT,
	  "because it lacks memory of an SVM range, which no kernel restores; dump the job again" },
	{ KFD_RESUME, -EINVAL,
	  "because the driver does not take one of its SVM ranges; restore again under the kernel of the dump" },
	{ KFD_CHECKPOINT, -ESRCH, "the process has ended" },
	{ KFD_RESUME, -ESRCH,
	  "because the task has ended; see the kernel's log and CRIU's for the cause" },
};

const char *kfd_explain(enum kfd_criu_op op, int error)
{
	/* kfd_ioctl() in kfd_chardev.c asks for it before it looks at the operation. */
	if (error == -EACCES)
		return "the kernel requires CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN in the initial user namespace; run CRIU there, as root or with this capability (docs/without-root.md)";
	for (size_t i = 0; i < ARRAY_SIZE(explanations); i++) {
		if (explanations[i].op == op && explanations[i].error == error)
			return explanations[i].text;
	}
	return NULL;
}
