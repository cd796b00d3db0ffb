/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Another CRIU plugin on the hooks that ours has: it saves and restores files of the one device
 * that NEIGHBOUR_DEVICE names, and is not concerned with any other. It must neither be kept from
 * its work by ours nor be given ours. With NEIGHBOUR_SKIPS it leaves the first such file to others.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DUMP_EXT_FILE       2
#define RESTORE_EXT_FILE    3
#define HANDLE_DEVICE_VMA   7
#define UPDATE_VMA_MAP      8
#define RESUME_DEVICES_LATE 9
#define PLUGIN_VERSION_0_2  ((0 << 16) | (2 << 8) | 0)

struct cr_plugin_desc {
	const char *name;
	int (*init)(int stage);
	void (*exit)(int stage, int ret);
	unsigned int version;
	unsigned int max_hooks;
	void *hooks[10];
};

extern void print_on_level(unsigned int level, const char *format, ...);
extern int criu_get_image_dir(void);
/* Only a host that has this one passes a second argument to RESTORE_EXT_FILE. */
extern int criu_plugin_get_options(int *argc, char ***argv) __attribute__((weak));

static int plugin_init(int stage)
{
	print_on_level(3, "neighbour: init %d\n", stage);
	return 0;
}

static void plugin_exit(int stage, int ret)
{
	print_on_level(3, "neighbour: exit %d %d\n", stage, ret);
}

/* Image and device share one name, so that one line of code serves dump and restore. */
static const char *image_name(int id)
{
	static char name[64];

	snprintf(name, sizeof(name), "neighbour-%d.img", id);
	return name;
}

static bool is_ours(const struct stat *st)
{
	const char *path = getenv("NEIGHBOUR_DEVICE");
	struct stat device;

	return path && !stat(path, &device) && S_ISCHR(st->st_mode) &&
	       st->st_rdev == device.st_rdev;
}

static int dump_file(int fd, int id)
{
	static bool skipped;
	struct stat st;
	int image;

	print_on_level(3, "neighbour: asked to dump\n");
	if (fstat(fd, &st) || !is_ours(&st))
		return -ENOTSUP;
	if (getenv("NEIGHBOUR_SKIPS") && !skipped) {
		skipped = true;
		return -ENOTSUP;
	}
	image = openat(criu_get_image_dir(), image_name(id), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (image < 0)
		return -errno;
	close(image);
	print_on_level(3, "neighbour: dumped %d\n", id);
	return 0;
}

static int restore_file(int id, bool *retry)
{
	int fd;

	if (criu_plugin_get_options)
		*retry = false;
	if (faccessat(criu_get_image_dir(), image_name(id), F_OK, 0))
		return -ENOTSUP;
	fd = open(getenv("NEIGHBOUR_DEVICE"), O_RDWR);
	print_on_level(3, "neighbour: restored %d\n", id);
	return fd < 0 ? -errno : fd;
}

static int device_vma(int fd, const struct stat *st)
{
	(void)fd;
	print_on_level(3, "neighbour: asked about a mapping\n");
	return is_ours(st) ? 0 : -ENOTSUP;
}

static int update_vma(const char *path, unsigned long addr, unsigned long old_offset,
		      unsigned long *new_offset, int *fd)
{
	(void)path;
	(void)addr;
	(void)old_offset;
	(void)new_offset;
	(void)fd;
	return -ENOTSUP;
}

static int resume(int pid)
{
	print_on_level(3, "neighbour: resume %d\n", pid);
	return getenv("NEIGHBOUR_RESUMES") ? 0 : -ENOTSUP;
}

struct cr_plugin_desc CR_PLUGIN_DESC = {
	.name = "neighbour",
	.init = plugin_init,
	.exit = plugin_exit,
	.version = PLUGIN_VERSION_0_2,
	.max_hooks = 10,
	.hooks = {
		[DUMP_EXT_FILE] = dump_file,
		[RESTORE_EXT_FILE] = restore_file,
		[HANDLE_DEVICE_VMA] = device_vma,
		[UPDATE_VMA_MAP] = update_vma,
		[RESUME_DEVICES_LATE] = resume,
	},
};
