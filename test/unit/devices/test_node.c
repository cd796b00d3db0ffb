// SPDX-License-Identifier: GPL-2.0-only
/* Device nodes that a restored /dev lacks, made for real: each case is a child in a mount namespace
 * of its own, with an empty /dev and a /sys that names the device of KFD. */
#include "host.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "devices/node.h"

#define KFD_MAJOR 241
#define OUTDATED  240

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* Ends the child if the machine does not allow the set-up. */
static void set_up(int result)
{
	if (result < 0) {
		printf("set-up: %s\n", strerror(errno));
		_exit(UNIT_REFUSED);
	}
}

static void write_number(void)
{
	FILE *file;

	set_up(mount("none", "/sys", "tmpfs", 0, NULL));
	set_up(mkdir("/sys/class", 0755));
	set_up(mkdir("/sys/class/kfd", 0755));
	set_up(mkdir("/sys/class/kfd/kfd", 0755));
	file = fopen("/sys/class/kfd/kfd/dev", "we");
	CHECK(file && fprintf(file, "%d:0\n", KFD_MAJOR) > 0 && fclose(file) == 0);
}

/* The child's part: a container with an empty /dev. */
static void contain(void)
{
	set_up(unshare(CLONE_NEWNS));
	set_up(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	set_up(mount("none", "/dev", "tmpfs", 0, "mode=755"));
	write_number();
	(void)umask(077);
	set_up(mknod("/dev/probe", S_IFCHR | 0600, makedev(226, 200)));
	set_up(unlink("/dev/probe"));
}

static void check_node(const char *path, unsigned int device_major, unsigned int device_minor,
		       mode_t mode, gid_t gid)
{
	struct stat stat;

	CHECK(lstat(path, &stat) == 0);
	CHECK(S_ISCHR(stat.st_mode));
	CHECK(stat.st_rdev == makedev(device_major, device_minor));
	CHECK((stat.st_mode & 07777) == mode);
	CHECK(stat.st_gid == gid && stat.st_uid == 0);
}

static bool exists(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) == 0;
}

static void count_entries(const char *path, size_t expected)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "[ $(ls -A %s | wc -l) = %zu ]", path, expected);
	CHECK(system(command) == 0);
}

static void make_missing_nodes(const struct machine_dev *machine)
{
	contain();
	CHECK(node_can_make_render(machine, 130));
	CHECK(!exists("/dev/dri"));
	CHECK(node_make_render(machine, 130) == 0);
	check_node("/dev/dri/renderD130", 226, 130, 0666, 0);
	CHECK(!node_can_make_render(machine, 130));
	CHECK(node_make_kfd(machine) == 0);
	check_node("/dev/kfd", KFD_MAJOR, 0, 0666, 0);
	CHECK(unit_count_lines("made the node") == 2);
	CHECK(unit_logged("/dev/dri/renderD130", "226:130", NULL));
	/* What is there stays, and leaves no line. */
	CHECK(node_make_render(machine, 130) == 0 && node_make_kfd(machine) == 0);
	CHECK(unit_count_lines("made the node") == 2);
	count_entries("/dev", 2);
	count_entries("/dev/dri", 1);
}

/* The order in which a directory lists its entries depends on the file system, so a card is older
 * than the render node and another is newer. */
static void take_rights_of_a_neighbour(const struct machine_dev *machine)
{
	contain();
	set_up(mkdir("/dev/dri", 0755));
	set_up(mknod("/dev/dri/card1", S_IFCHR | 0600, makedev(226, 1)));
	set_up(mknod("/dev/dri/renderD128", S_IFCHR | 0600, makedev(226, 128)));
	set_up(chmod("/dev/dri/renderD128", 0660));
	set_up(chown("/dev/dri/renderD128", 0, 44));
	set_up(mknod("/dev/dri/card9", S_IFCHR | 0600, makedev(226, 9)));
	CHECK(node_make_render(machine, 130) == 0);
	check_node("/dev/dri/renderD130", 226, 130, 0660, 44);
}

/* What a task has not finished has the mode with which it was made. */
static void take_no_rights_of_unfinished_nodes(const struct machine_dev *machine)
{
	char own[64];

	contain();
	(void)snprintf(own, sizeof(own), "/dev/dri/.renderD130.%d", getpid());
	set_up(mkdir("/dev/dri", 0755));
	set_up(mknod("/dev/dri/.renderD131.999999", S_IFCHR | 0600, makedev(226, 131)));
	/* An earlier process of this pid was killed. */
	set_up(mknod(own, S_IFCHR | 0600, makedev(226, 130)));
	CHECK(node_make_render(machine, 130) == 0);
	check_node("/dev/dri/renderD130", 226, 130, 0666, 0);
	CHECK(!exists(own));
	set_up(mknod("/dev/.kfd.999999", S_IFCHR | 0600, makedev(KFD_MAJOR, 0)));
	CHECK(node_make_kfd(machine) == 0);
	check_node("/dev/kfd", KFD_MAJOR, 0, 0666, 0);
}

#define TASKS  8
#define ROUNDS 50

static void make_at_once(const struct machine_dev *machine, const int start[2])
{
	char byte;

	CHECK(close(start[1]) == 0);
	CHECK(read(start[0], &byte, 1) == 0);
	CHECK(node_make_render(machine, 130) == 0);
	check_node("/dev/dri/renderD130", 226, 130, 0666, 0);
	CHECK(node_make_kfd(machine) == 0);
	check_node("/dev/kfd", KFD_MAJOR, 0, 0666, 0);
	exit(0);
}

static void run_round(const struct machine_dev *machine)
{
	int start[2], status;

	CHECK(pipe(start) == 0);
	for (int i = 0; i < TASKS; i++) {
		if (!fork())
			make_at_once(machine, start);
	}
	CHECK(close(start[0]) == 0 && close(start[1]) == 0);
	for (int i = 0; i < TASKS; i++)
		CHECK(wait(&status) > 0 && status == 0);
	count_entries("/dev", 2);
	count_entries("/dev/dri", 1);
}

static void make_one_node_in_many_tasks(const struct machine_dev *machine)
{
	contain();
	for (int round = 0; round < ROUNDS; round++) {
		run_round(machine);
		set_up(unlink("/dev/dri/renderD130"));
		set_up(unlink("/dev/kfd"));
	}
}

static void replace_an_outdated_kfd(const struct machine_dev *machine)
{
	contain();
	set_up(mknod("/dev/kfd", S_IFCHR | 0600, makedev(OUTDATED, 0)));
	set_up(chmod("/dev/kfd", 0640));
	set_up(chown("/dev/kfd", 0, 109));
	CHECK(node_make_kfd(machine) == 0);
	check_node("/dev/kfd", KFD_MAJOR, 0, 0640, 109);
	CHECK(unit_logged("/dev/kfd", "outdated", "made the node", NULL));
	count_entries("/dev", 1);
}

/* A container may have the node of another GPU under this name, or a file. */
static void keep_what_the_user_has_put_there(const struct machine_dev *machine)
{
	contain();
	set_up(mkdir("/dev/dri", 0755));
	set_up(mknod("/dev/dri/renderD130", S_IFCHR | 0600, makedev(226, 128)));
	set_up(symlink("/dev/elsewhere", "/dev/kfd"));
	CHECK(!node_can_make_render(machine, 130));
	CHECK(node_make_render(machine, 130) == 0 && node_make_kfd(machine) == 0);
	check_node("/dev/dri/renderD130", 226, 128, 0600, 0);
	CHECK(readlink("/dev/kfd", (char[16]){ 0 }, 16) == 14);
	CHECK(unit_count_lines("made the node") == 0);
}

/* The same file system as the host's /dev, mounted in the container. */
static void leave_the_hosts_dev_alone(const struct machine_dev *machine)
{
	struct machine_dev other;
	struct stat dev;

	contain();
	set_up(stat("/dev", &dev));
	other = *machine;
	other.dev = dev.st_dev;
	CHECK(!node_can_make_render(&other, 130));
	CHECK(node_make_render(&other, 130) == 0 && node_make_kfd(&other) == 0);
	count_entries("/dev", 0);
}

static void expect_no_render_node(const struct machine_dev *machine)
{
	CHECK(!node_can_make_render(machine, 130));
	CHECK(node_make_render(machine, 130) == 0);
	count_entries("/dev/dri", 0);
}

/* A directory that the container has from elsewhere: of a disk, or of another tmpfs. */
static void leave_mounted_directories_alone(const struct machine_dev *machine)
{
	contain();
	set_up(mkdir("/dev/dri", 0755));
	set_up(mkdir(unit_path("dri"), 0755));
	set_up(mount(unit_path("dri"), "/dev/dri", NULL, MS_BIND, NULL));
	expect_no_render_node(machine);
	set_up(mount("none", "/dev/dri", "tmpfs", 0, NULL));
	expect_no_render_node(machine);
}

/* A container may have its root directory, with /dev, on a disk of the host. */
static void leave_a_dev_alone_that_is_no_tmpfs(const struct machine_dev *machine)
{
	contain();
	set_up(mount("none", "/dev", "ramfs", 0, NULL));
	set_up(mkdir("/dev/dri", 0755));
	expect_no_render_node(machine);
	CHECK(node_make_kfd(machine) == 0);
	count_entries("/dev", 1);
}

static void follow_no_links(const struct machine_dev *machine)
{
	contain();
	set_up(mkdir("/dev/other", 0755));
	set_up(symlink("other", "/dev/dri"));
	CHECK(!node_can_make_render(machine, 130));
	CHECK(node_make_render(machine, 130) == 0);
	count_entries("/dev/other", 0);
}

static void make_nothing_in_criu_s_namespace(const struct machine_dev *machine)
{
	struct machine_dev here;

	(void)machine;
	contain();
	node_note_machine(&here);
	CHECK(here.known);
	/* As if another file system were the host's /dev. */
	here.dev = 0;
	CHECK(!node_can_make_render(&here, 130));
	CHECK(node_make_render(&here, 130) == 0 && node_make_kfd(&here) == 0);
	CHECK(!node_can_make_render(&(struct machine_dev){ 0 }, 130));
	CHECK(node_make_kfd(&(struct machine_dev){ 0 }) == 0);
	count_entries("/dev", 0);
}

static void name_a_read_only_dev(const struct machine_dev *machine)
{
	contain();
	set_up(mkdir("/dev/dri", 0755));
	set_up(mount("none", "/dev", NULL, MS_REMOUNT | MS_RDONLY, NULL));
	CHECK(node_make_render(machine, 130) == -EROFS);
	CHECK(unit_logged("Error (amdgpu_plugin): ", "/dev/dri/renderD130", "226:130", "read-only",
			  "mount the host's", NULL));
	CHECK(node_make_kfd(machine) == -EROFS);
}

static void name_a_missing_capability(const struct machine_dev *machine)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	contain();
	set_up((int)syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1u << CAP_MKNOD);
	set_up((int)syscall(SYS_capset, &header, data));
	CHECK(node_make_kfd(machine) == -EPERM);
	CHECK(unit_logged("Error (amdgpu_plugin): ", "/dev/kfd", "CAP_MKNOD", "mount the host's",
			  NULL));
	CHECK(unit_count_lines("Error") == 1);
	count_entries("/dev", 0);
}

typedef void (*case_function)(const struct machine_dev *machine);

static void run_case(case_function function)
{
	struct machine_dev machine;
	pid_t pid;

	node_note_machine(&machine);
	assert_true(machine.known);
	(void)fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		function(&machine);
		(void)fflush(stdout);
		_exit(0);
	}
	assert_int_equal(unit_wait(pid), 0);
}

#define CASE(name, function)        \
	UNIT_TEST(name)             \
	{                           \
		run_case(function); \
	}

CASE(missing_nodes_are_made, make_missing_nodes)
CASE(a_node_has_the_rights_of_its_neighbour, take_rights_of_a_neighbour)
CASE(a_node_has_no_rights_of_unfinished_ones, take_no_rights_of_unfinished_nodes)
CASE(many_tasks_make_one_node, make_one_node_in_many_tasks)
CASE(an_outdated_kfd_is_replaced, replace_an_outdated_kfd)
CASE(other_files_are_kept, keep_what_the_user_has_put_there)
CASE(the_hosts_dev_stays_as_it_is, leave_the_hosts_dev_alone)
CASE(mounted_directories_stay_as_they_are, leave_mounted_directories_alone)
CASE(a_dev_on_a_disk_stays_as_it_is, leave_a_dev_alone_that_is_no_tmpfs)
CASE(links_are_not_followed, follow_no_links)
CASE(tasks_outside_containers_make_nothing, make_nothing_in_criu_s_namespace)
CASE(a_read_only_dev_is_named, name_a_read_only_dev)
CASE(a_missing_capability_is_named, name_a_missing_capability)
