// SPDX-License-Identifier: GPL-2.0-only
/* Makes device nodes in the /dev of a restored task. The callers open the nodes by name. */
#include "devices/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"

#define MOUNT_NAMESPACE "/proc/self/ns/mnt"

/* As udev makes render nodes and /dev/kfd where no group is set. */
#define MODE_DEFAULT 0666

struct node {
	/* "dri" for render nodes, NULL for nodes in /dev itself. */
	const char *folder;
	char name[32];
	dev_t device;
	/* Another device of this name is a leftover of another boot, and not the user's choice. */
	bool replace;
};

/* The owner and mode of a node. */
struct access_rights {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

enum node_state {
	/* The node, or a file that the task must not replace. */
	NODE_PRESENT,
	NODE_MISSING,
	NODE_OUTDATED,
};

void node_note_machine(struct machine_dev *ret_machine)
{
	struct stat namespace, dev;

	*ret_machine = (struct machine_dev){ 0 };
	if (stat(MOUNT_NAMESPACE, &namespace) < 0 || stat("/dev", &dev) < 0) {
		log_debug("restore: tasks make no device nodes: cannot examine the host's /dev: %s",
			  strerror(errno));
		return;
	}
	*ret_machine = (struct machine_dev){
		.known = true,
		.mount_namespace = namespace.st_ino,
		.dev = dev.st_dev,
	};
}

/* Whether the task has a mount namespace of its own. */
static bool is_contained(const struct machine_dev *machine)
{
	struct stat namespace;

	return machine->known && stat(MOUNT_NAMESPACE, &namespace) == 0 &&
	       namespace.st_ino != machine->mount_namespace;
}

/* -EXDEV: it is no directory. A link may lead anywhere. */
static int open_in_dev(int parent, const char *name, int *ret_fd, dev_t *ret_device)
{
	_cleanup_close_ int fd = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	struct stat stat;

	if (fd == -ELOOP || fd == -ENOTDIR)
		return -EXDEV;
	if (fd < 0 || fstat(fd, &stat) < 0)
		return fd < 0 ? fd : -errno;
	*ret_device = stat.st_dev;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A container's own /dev is a tmpfs. A disk would be the machine's, and so is devtmpfs, which looks
 * like a tmpfs, and is one file system wherever it is mounted. -EXDEV: it is not the container's
 * own. */
static int check_own(const struct machine_dev *machine, int fd, dev_t device)
{
	struct statfs statfs;

	if (fstatfs(fd, &statfs) < 0)
		return -errno;
	return statfs.f_type == TMPFS_MAGIC && device != machine->dev ? 0 : -EXDEV;
}

/* The directory of the node. @make: makes it if it is missing. -EXDEV: the task must not make nodes
 * there. */
static int open_folder(const struct machine_dev *machine, const struct node *node, bool make,
		       int *ret_fd)
{
	_cleanup_close_ int dev = -1, folder = -1;
	dev_t dev_device, folder_device;
	int ret;

	if (!is_contained(machine))
		return -EXDEV;
	ret = open_in_dev(AT_FDCWD, "/dev", &dev, &dev_device);
	if (!ret)
		ret = check_own(machine, dev, dev_device);
	if (ret < 0)
		return ret;
	if (!node->folder) {
		*ret_fd = take_fd(&dev);
		return 0;
	}
	if (make && mkdirat(dev, node->folder, 0755) < 0 && errno != EEXIST)
		return -errno;
	ret = open_in_dev(dev, node->folder, &folder, &folder_device);
	if (ret < 0)
		return ret;
	/* What is mounted below /dev is of the machine. */
	if (folder_device != dev_device)
		return -EXDEV;
	*ret_fd = take_fd(&folder);
	return 0;
}

static int examine(int folder, const struct node *node, struct stat *ret_stat,
		   enum node_state *ret_state)
{
	*ret_state = NODE_MISSING;
	if (fstatat(folder, node->name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret_state =
		node->replace && S_ISCHR(ret_stat->st_mode) && ret_stat->st_rdev != node->device
			? NODE_OUTDATED
			: NODE_PRESENT;
	return 0;
}

/* Cards, which are for displays, have other rights. Nodes that other tasks have not finished have
 * names of another form. */
static bool is_render_name(const char *name)
{
	static const char prefix[] = "renderD";
	const char *number = name + sizeof(prefix) - 1;

	return !strncmp(name, prefix, sizeof(prefix) - 1) && *number &&
	       !number[strspn(number, "0123456789")];
}

/* The rights of the first render node in @folder: the runtime has chosen them for this job. */
static void copy_rights(int folder, struct access_rights *rights)
{
	int error;
	_cleanup_closedir_ DIR *stream = dir_open_at(folder, ".", &error);
	struct dirent *entry;

	while (stream && (entry = next_entry(stream, &error))) {
		struct stat stat;

		if (!is_render_name(entry->d_name) ||
		    fstatat(folder, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISCHR(stat.st_mode))
			continue;
		*rights = (struct access_rights){ stat.st_uid, stat.st_gid, stat.st_mode & 0777 };
		break;
	}
}

static struct access_rights choose_rights(int folder, const struct node *node,
					  enum node_state state, const struct stat *old)
{
	struct access_rights rights = { 0, 0, MODE_DEFAULT };

	if (state == NODE_OUTDATED)
		return (struct access_rights){ old->st_uid, old->st_gid, old->st_mode & 0777 };
	/* /dev/kfd has no neighbour. */
	if (node->folder)
		copy_rights(folder, &rights);
	return rights;
}

/* The node gets its name when it is complete: at no moment is it missing or has other rights.
 * -EEXIST: another task was faster. */
static int make_under(int folder, const struct node *node, const struct access_rights *rights,
		      enum node_state state)
{
	char temporary[64];

	/* A task of this pid that was killed may have left it. */
	(void)snprintf(temporary, sizeof(temporary), ".%s.%d", node->name, getpid());
	(void)unlinkat(folder, temporary, 0);
	if (mknodat(folder, temporary, S_IFCHR | 0600, node->device) < 0)
		return -errno;
	if (fchownat(folder, temporary, rights->uid, rights->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(folder, temporary, rights->mode, 0) < 0 ||
	    renameat2(folder, temporary, folder, node->name,
		      state == NODE_OUTDATED ? 0 : RENAME_NOREPLACE) < 0) {
		int ret = -errno;

		(void)unlinkat(folder, temporary, 0);
		return ret;
	}
	return 0;
}

static int make_in(int folder, const struct node *node)
{
	struct access_rights rights;
	enum node_state state;
	struct stat old;
	int ret = examine(folder, node, &old, &state);

	if (ret < 0 || state == NODE_PRESENT)
		return ret;
	rights = choose_rights(folder, node, state, &old);
	ret = make_under(folder, node, &rights, state);
	if (ret < 0)
		return ret == -EEXIST ? 0 : ret;
	log_info("/dev/%s%s%s: the restored /dev has %s: made the node, device %u:%u, mode 0%o",
		 node->folder ? node->folder : "", node->folder ? "/" : "", node->name,
		 state == NODE_OUTDATED ? "an outdated number" : "no such node",
		 major(node->device), minor(node->device), rights.mode);
	return 0;
}

static bool has_mknod(void)
{
	uint64_t capabilities;

	return !proc_own_capabilities(&capabilities) && capabilities >> CAP_MKNOD & 1;
}

/* Why the task cannot make the node, and what helps; to follow the name of the node. */
static void explain(const struct node *node, int error, char *text, size_t size)
{
	const char *mount = "mount the host's node or directory into the container";

	if (error == -EROFS)
		(void)snprintf(text, size, ": /dev is read-only; %s", mount);
	else if (error != -EPERM)
		text[0] = '\0';
	else if (!has_mknod())
		(void)snprintf(text, size, ": CRIU has no CAP_MKNOD; run CRIU with it, or %s",
			       mount);
	else if (proc_in_user_namespace())
		(void)snprintf(text, size, ": the container has a user namespace; %s", mount);
	else
		(void)snprintf(
			text, size,
			": the device cgroup forbids it; allow c %u:%u rwm in linux.resources.devices of config.json (podman: --device-cgroup-rule), or %s",
			major(node->device), minor(node->device), mount);
}

static int make(const struct machine_dev *machine, const struct node *node)
{
	_cleanup_close_ int folder = -1;
	char cause[256];
	int ret = open_folder(machine, node, true, &folder);

	if (ret == -EXDEV)
		return 0;
	if (!ret)
		ret = make_in(folder, node);
	if (ret >= 0)
		return 0;
	explain(node, ret, cause, sizeof(cause));
	return log_error(ret,
			 "/dev/%s%s%s: cannot make the node, device %u:%u, in the task's /dev%s",
			 node->folder ? node->folder : "", node->folder ? "/" : "", node->name,
			 major(node->device), minor(node->device), cause);
}

static struct node render_node(uint32_t number)
{
	struct node node = { .folder = "dri", .device = render_node_device(number) };

	(void)snprintf(node.name, sizeof(node.name), "renderD%u", number);
	return node;
}

bool node_can_make_render(const struct machine_dev *machine, uint32_t number)
{
	const struct node node = render_node(number);
	_cleanup_close_ int folder = -1;
	enum node_state state;
	struct stat stat;
	int ret = open_folder(machine, &node, false, &folder);

	if (ret < 0)
		return ret == -ENOENT;
	return examine(folder, &node, &stat, &state) == 0 && state == NODE_MISSING;
}

int node_make_render(const struct machine_dev *machine, uint32_t number)
{
	const struct node node = render_node(number);

	return make(machine, &node);
}

int node_make_kfd(const struct machine_dev *machine)
{
	struct node node = { .name = "kfd", .replace = true };

	/* Without the driver there is no such file, and the open fails. */
	return kfd_read_device(&node.device) < 0 ? 0 : make(machine, &node);
}
