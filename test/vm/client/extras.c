/* SPDX-License-Identifier: GPL-2.0-only */
/* Opens the unusual descriptors, forks the child that only inherits, and looks at both later on. It
 * talks to the devices by plain ioctls, not through libhsakmt. */
#include "extras.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amdgpu_drm.h>

#include "raw_gem.h"
#include "raw_kfd.h"

/* Above everything that libraries open, so that a dump meets it after /dev/kfd. */
#define HIGH_FD        200
#define ANSWER_STEP_US 1000
#define ANSWER_STEPS   60000

struct extras_child {
	uint32_t answers;
	int error; /* what an ioctl on the inherited /dev/kfd gave */
};

int extras_open_render(struct report *report, const char *gpu_choice, int *ret_fd)
{
	int index = strcmp(gpu_choice, "all") == 0 ? 0 : atoi(gpu_choice), count = 0;
	struct raw_gpu gpus[RAW_GPUS];
	int ret = raw_list_gpus(gpus, &count, NULL);

	if (ret == 0)
		ret = index < count ? raw_open_render(&gpus[index], ret_fd) : -ENODEV;
	return ret < 0 ? report_fail(report, ret, "no render node of GPU %s: %s", gpu_choice,
				     strerror(-ret))
		       : 0;
}

int extras_init(struct report *report, const struct extras_options *options, const char *gpu_choice,
		struct extras *extras)
{
	*extras = (struct extras){
		.report = report,
		.options = *options,
		.gpu_choice = gpu_choice,
		.render_fd = -1,
		.kfd_fd = -1,
		.second_kfd_fd = -1,
		.gem_fd = -1,
		.undumpable_fd = -1,
	};
	return options->render_first || options->compute_first
		       ? extras_open_render(report, gpu_choice, &extras->render_fd)
		       : 0;
}

static int extras_find_kfd(struct extras *extras)
{
	struct stat device, file;
	int found = -1;

	if (stat("/dev/kfd", &device) < 0)
		return report_fail(extras->report, -errno, "no /dev/kfd");
	for (int fd = 0; fd < 256 && found < 0; fd++) {
		if (fstat(fd, &file) == 0 && S_ISCHR(file.st_mode) &&
		    file.st_rdev == device.st_rdev)
			found = fd;
	}
	if (found < 0)
		return report_fail(extras->report, -EBADF, "libhsakmt has no /dev/kfd open");
	if (found < extras->render_fd)
		return report_fail(extras->report, -EBADF,
				   "the render node is %d, /dev/kfd is %d: not below",
				   extras->render_fd, found);
	extras->kfd_fd = found;
	return 0;
}

/* The number below /dev/kfd becomes one more for the file that libhsakmt has, so that a dump meets
 * that one first. */
static int extras_share_compute(struct extras *extras)
{
	struct stat ours, file;

	if (fstat(extras->render_fd, &ours) < 0)
		return report_fail(extras->report, -errno, "render node %d is gone",
				   extras->render_fd);
	for (int fd = extras->kfd_fd + 1; fd < 256; fd++) {
		if (fstat(fd, &file) < 0 || !S_ISCHR(file.st_mode) || file.st_rdev != ours.st_rdev)
			continue;
		if (dup3(fd, extras->render_fd, O_CLOEXEC) < 0)
			return report_fail(extras->report, -errno, "cannot share render node %d",
					   fd);
		return 0;
	}
	return report_fail(extras->report, -EBADF, "libhsakmt has no render node open");
}

/* 0, or the -errno of a harmless ioctl. */
static int kfd_touch(int fd)
{
	struct kfd_ioctl_get_version_args args = { 0 };
	int ret = raw_ioctl(fd, AMDKFD_IOC_GET_VERSION, &args);

	return ret == 0 && args.major_version != 1 ? -EPROTO : ret;
}

static _Noreturn void child_main(int kfd_fd, struct extras_child *answers)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	for (;;) {
		if (sigwait(&set, &signal))
			continue;
		if (signal == SIGTERM)
			_exit(0);
		answers->error = kfd_touch(kfd_fd);
		__atomic_add_fetch(&answers->answers, 1, __ATOMIC_ACQ_REL);
	}
}

static int extras_fork(struct extras *extras)
{
	pid_t parent = getpid();

	extras->answers = mmap(NULL, sizeof(*extras->answers), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (extras->answers == MAP_FAILED) {
		extras->answers = NULL;
		return report_fail(extras->report, -errno, "no memory shared with the child");
	}
	extras->child = fork();
	if (extras->child < 0)
		return report_fail(extras->report, -errno, "cannot fork");
	if (extras->child > 0)
		return 0;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	child_main(extras->kfd_fd, extras->answers);
}

int extras_open(struct extras *extras)
{
	int ret = extras_find_kfd(extras);

	if (ret == 0 && extras->options.compute_first)
		ret = extras_share_compute(extras);
	if (ret == 0 && extras->options.second_kfd) {
		extras->second_kfd_fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
		if (extras->second_kfd_fd < 0)
			ret = report_fail(extras->report, -errno, "cannot open /dev/kfd again: %s",
					  strerror(errno));
	}
	if (ret == 0 && extras->options.fork_child)
		ret = extras_fork(extras);
	return ret;
}

static int extras_create_gem_bo(struct extras *extras)
{
	uint32_t handle;
	int ret = extras_open_render(extras->report, extras->gpu_choice, &extras->gem_fd);

	if (ret < 0)
		return ret;
	ret = raw_gem_create(extras->gem_fd, AMDGPU_GEM_DOMAIN_GTT, 65536, &handle);
	return ret < 0 ? report_fail(extras->report, ret, "cannot create a GEM object: %s",
				     strerror(-ret))
		       : 0;
}

/* No CRIU saves a userfaultfd. Unlike an io_uring it can be sent over a socket, so that CRIU
 * gets as far as looking at it, after it has looked at /dev/kfd. */
static int extras_open_undumpable(struct extras *extras)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return report_fail(extras->report, -errno, "no userfaultfd: %s", strerror(errno));
	extras->undumpable_fd = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	close(fd);
	if (extras->undumpable_fd < 0)
		return report_fail(extras->report, -errno, "no descriptor from %d on", HIGH_FD);
	return 0;
}

int extras_open_last(struct extras *extras)
{
	int ret = 0;

	if (extras->options.gem_bo)
		ret = extras_create_gem_bo(extras);
	if (ret == 0 && extras->options.undumpable)
		ret = extras_open_undumpable(extras);
	return ret;
}

static int extras_verify_render(struct extras *extras)
{
	char name[16] = "";
	struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };

	if (ioctl(extras->render_fd, DRM_IOCTL_VERSION, &version) < 0)
		return report_fail(extras->report, -errno, "render node %d does not answer: %s",
				   extras->render_fd, strerror(errno));
	if (strcmp(name, "amdgpu") != 0)
		return report_fail(extras->report, -EILSEQ,
				   "render node %d: expected driver amdgpu, got %s",
				   extras->render_fd, name);
	return 0;
}

static int extras_verify_child(struct extras *extras)
{
	uint32_t before = __atomic_load_n(&extras->answers->answers, __ATOMIC_ACQUIRE);

	if (kill(extras->child, SIGUSR1) < 0)
		return report_fail(extras->report, -errno, "the child is gone");
	for (int i = 0; __atomic_load_n(&extras->answers->answers, __ATOMIC_ACQUIRE) == before;
	     i++) {
		if (i == ANSWER_STEPS)
			return report_fail(extras->report, -ETIME, "the child does not answer");
		(void)usleep(ANSWER_STEP_US);
	}
	if (extras->answers->error != -EBADF)
		return report_fail(extras->report, -EILSEQ,
				   "the child's /dev/kfd: expected %d, got %d", -EBADF,
				   extras->answers->error);
	return 0;
}

int extras_verify(struct extras *extras)
{
	const int fds[] = { extras->kfd_fd, extras->second_kfd_fd };
	int ret = 0;

	for (int i = 0; i < 2 && fds[i] >= 0; i++) {
		ret = kfd_touch(fds[i]);
		if (ret < 0)
			return report_fail(extras->report, ret, "%s/dev/kfd %d does not answer: %s",
					   i ? "second " : "", fds[i], strerror(-ret));
	}
	if (extras->render_fd >= 0)
		ret = extras_verify_render(extras);
	if (ret == 0 && extras->child > 0)
		ret = extras_verify_child(extras);
	return ret;
}

static void extras_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void extras_drop(struct extras *extras)
{
	extras_close(&extras->gem_fd);
	extras_close(&extras->undumpable_fd);
}

void extras_done(struct extras *extras)
{
	extras_drop(extras);
	extras_close(&extras->render_fd);
	extras_close(&extras->second_kfd_fd);
	if (extras->child > 0) {
		(void)kill(extras->child, SIGTERM);
		(void)waitpid(extras->child, NULL, 0);
		extras->child = 0;
	}
	if (extras->answers)
		munmap(extras->answers, sizeof(*extras->answers));
	extras->answers = NULL;
}
