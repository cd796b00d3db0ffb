// SPDX-License-Identifier: GPL-2.0-only
/* Tells files that CRIU 3.17.1 to 4.3 cannot save, by its dump_one_file(). That function asks
 * plugins for each of them. Sockets and files on file systems are left to CRIU. */
#include "other_files.h"

#include <dirent.h>
#include <errno.h>
#include <linux/major.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "text.h"

/* Majors of serial terminals that linux/major.h lacks. */
#define USB_SERIAL_MAJOR       188
#define LOW_DENSE_SERIAL_MAJOR 204

#define TUN_MINOR       200
#define AUTOFS_MINOR    235
#define AUX_MINOR_PTMX  2
#define CONSOLE_MINOR_1 1
#define CONSOLES        63

#define ANON_PREFIX "anon_inode:"

struct other_file {
	/* 0: not a device. */
	dev_t device;
	char name[96];
	/* The lowest descriptor, and the number of all. */
	int number;
	size_t count;
};

struct other_files {
	struct other_file *files;
	size_t count;
};

/* dump_chrdev() and get_tty_driver() in CRIU's files.c and tty.c. */
static bool criu_saves_device(dev_t device)
{
	unsigned int number = major(device), index = minor(device);

	switch (number) {
	case MEM_MAJOR:
	case USB_SERIAL_MAJOR:
	case LOW_DENSE_SERIAL_MAJOR:
	case UNIX98_PTY_SLAVE_MAJOR:
		return true;
	case MISC_MAJOR:
		return index == TUN_MINOR || index == AUTOFS_MINOR;
	case TTYAUX_MAJOR:
		return index <= AUX_MINOR_PTMX;
	case TTY_MAJOR:
		return index >= CONSOLE_MINOR_1 && index <= CONSOLES;
	default:
		return number >= UNIX98_PTY_MASTER_MAJOR &&
		       number < UNIX98_PTY_MASTER_MAJOR + UNIX98_PTY_MAJOR_COUNT;
	}
}

/* pidfds need CRIU 4.1. */
static bool criu_saves_anonymous(const char *kind)
{
	static const char *const kinds[] = {
		"[eventfd]",  "[eventpoll]", "inotify", "[fanotify]",
		"[signalfd]", "[timerfd]",   "[pidfd]", "bpf-map",
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(kind, kinds[i]))
			return true;
	}
	return false;
}

/* A GPU that KFD does not support has a render node of amdgpu, too. */
static bool driver_is_amdgpu(dev_t device)
{
	char path[64], driver[256];
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/driver", major(device),
		       minor(device));
	length = readlink(path, driver, sizeof(driver) - 1);
	if (length < 0)
		return false;
	driver[length] = '\0';
	return strrchr(driver, '/') && !strcmp(strrchr(driver, '/'), "/amdgpu");
}

/* 1, 0 or -errno. */
static int plugin_saves(const struct topology *topology, const struct stat *stat)
{
	uint32_t minor;
	int ret = kfd_is_file(stat);

	if (ret || !render_node_is_device(stat->st_rdev, &minor))
		return ret;
	return topology_find_minor(topology, minor) || driver_is_amdgpu(stat->st_rdev);
}

/* 1, 0 or -errno. */
static int is_saved(const struct topology *topology, const struct stat *stat, const char *name)
{
	if (S_ISBLK(stat->st_mode))
		return 0;
	if (S_ISCHR(stat->st_mode))
		return criu_saves_device(stat->st_rdev) ? 1 : plugin_saves(topology, stat);
	if (!strncmp(name, ANON_PREFIX, strlen(ANON_PREFIX)))
		return criu_saves_anonymous(name + strlen(ANON_PREFIX));
	return 1;
}

static int add(struct other_files *list, const struct other_file *file)
{
	for (size_t i = 0; i < list->count; i++) {
		struct other_file *known = &list->files[i];

		if (known->device == file->device && !strcmp(known->name, file->name)) {
			known->count++;
			return 0;
		}
	}
	return array_append(&list->files, &list->count, sizeof(*file), file);
}

static int add_descriptor(struct other_files *list, pid_t pid, const struct topology *topology,
			  int number)
{
	struct other_file file = { .number = number, .count = 1 };
	struct stat stat;
	char path[64];
	ssize_t length;
	int ret = proc_stat_fd(pid, number, &stat);

	if (ret <= 0)
		return ret;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	length = readlink(path, file.name, sizeof(file.name) - 1);
	if (length < 0)
		return errno == ENOENT ? 0 : -errno;
	ret = is_saved(topology, &stat, file.name);
	if (ret)
		return ret < 0 ? ret : 0;
	text_make_printable(file.name);
	if (S_ISCHR(stat.st_mode) || S_ISBLK(stat.st_mode))
		file.device = stat.st_rdev;
	return add(list, &file);
}

static void warn_of(pid_t pid, const struct other_file *file)
{
	char device[32] = "", more[48] = "";

	if (file->device)
		(void)snprintf(device, sizeof(device), " (%u:%u)", major(file->device),
			       minor(file->device));
	if (file->count > 1)
		(void)snprintf(more, sizeof(more), " and %zu more", file->count - 1);
	log_warn(
		"process %d: descriptor %d%s is %s%s, which neither CRIU nor this plugin saves; have the process close it before the dump, unless another plugin saves it",
		pid, file->number, more, file->name, device);
}

int other_files_warn(pid_t pid, const struct topology *topology)
{
	_cleanup_closedir_ DIR *stream = NULL;
	struct other_files list = { 0 };
	int number;
	int ret = proc_open_fds(pid, &stream);

	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = add_descriptor(&list, pid, topology, number);
	for (size_t i = 0; !ret && i < list.count; i++)
		warn_of(pid, &list.files[i]);
	free(list.files);
	return ret;
}
