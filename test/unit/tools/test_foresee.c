// SPDX-License-Identifier: GPL-2.0-only
/* Refusals that show without pausing a process: the scripted kernel has the process, and no call of
 * a dump is made. test/tool/check.sh has what criu-amdgpu says of it. */
#include "preflight_task.h"

#include <sys/utsname.h>

#include "foresee.h"
#include "preflight/preflight.h"

static const char *release = "6.18.0";

int uname(struct utsname *name)
{
	*name = (struct utsname){ .sysname = "Linux" };
	(void)snprintf(name->release, sizeof(name->release), "%s", release);
	return 0;
}

/* The link of a mapping leads to the file of a device; see fake_kernel.h. */
int stat(const char *path, struct stat *stat)
{
	char link[512];
	ssize_t length = readlink(path, link, sizeof(link) - 1);
	const char *node;

	if (fstatat(AT_FDCWD, path, stat, 0) < 0)
		return -1;
	link[length < 0 ? 0 : length] = '\0';
	node = strstr(link, "/renderD-");
	if (strstr(path, "/map_files/") && node) {
		stat->st_mode = S_IFCHR | 0666;
		stat->st_rdev = makedev(226, (unsigned int)atoi(node + strlen("/renderD-")));
	}
	return 0;
}

/* Copies of render files. */
static unsigned int copies;

int __real_proc_get_fd(pid_t pid, int number, int *ret_fd);
int __wrap_proc_get_fd(pid_t pid, int number, int *ret_fd);

int __wrap_proc_get_fd(pid_t pid, int number, int *ret_fd)
{
	if (number <= RENDER_FDS || number >= KFD_FDS)
		return __real_proc_get_fd(pid, number, ret_fd);
	copies++;
	*ret_fd = open_render((uint32_t)number - RENDER_FDS, O_RDWR);
	return *ret_fd < 0 ? -errno : 0;
}

/* What foresee_tree() says of processes that have the open files and the mappings that this one had
 * when it started them. */
static int foresee_processes(pid_t *pids, size_t count)
{
	const struct options options = { 0 };
	const struct pid_list tasks = { .pids = pids, .count = count };
	_cleanup_(topology_done) struct topology topology = { 0 };
	struct survey surveys[2];
	int ret;

	unit_forget_lines();
	assert_int_equal(topology_read(TOPOLOGY_SYSFS, &topology), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(survey_read(pids[i], &topology, &surveys[i]), 0);
	ret = foresee_tree(&options, &topology, &tasks, surveys, count);
	for (size_t i = 0; i < count; i++)
		survey_done(&surveys[i]);
	return ret;
}

static int foresee_child(void)
{
	pid_t child = unit_start_sleeper();
	int ret = foresee_processes(&child, 1);

	unit_end_sleeper(child);
	return ret;
}

static void *map_render(uint32_t minor)
{
	_cleanup_close_ int fd = open_render(minor, O_RDWR);
	void *memory;

	assert_int_equal(ftruncate(fd, 4096), 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	return memory;
}

/* Only the dump can tell whether it is that of a BO. */
TEST_WITH(a_dmabuf_of_a_gpu_may_be_refused, begin, end)
{
	int fd = open_device("dmabuf-7", O_RDWR);

	assert_int_equal(foresee_child(), 0);
	assert_logged("Warn  (amdgpu_plugin): process ",
		      "may be refused: it is a dma-buf of an AMD GPU", "have the process close it");
	(void)close(fd);
	assert_int_equal(foresee_child(), 0);
	assert_int_equal(unit_count_lines("may be refused"), 0);
}

TEST_WITH(gem_objects_are_foreseen, begin, end)
{
	_cleanup_close_ int fd = open_render(128, O_RDWR);

	kernel.gem_objects = 1;
	assert_int_equal(foresee_child(), -EOPNOTSUPP);
	assert_logged("Error (amdgpu_plugin): process ", "renderD128 has GEM objects",
		      "have the process free them");
	kernel.gem_objects = 0;
	assert_int_equal(foresee_child(), 0);
}

/* Linux before 7.2 would stop its queues when the copy is closed. */
TEST_WITH(a_file_with_the_vm_of_a_running_process_is_not_copied, begin, end)
{
	_cleanup_close_ int kfd = open_device("kfd-0", O_RDWR);
	pid_t child = unit_start_sleeper();

	(void)add_process(child);
	kernel.num_open_renders = 1;
	kernel.gem_objects = 1;
	copies = 0;
	unit_print("process/pasid", "32770\n");
	unit_print("fdinfo-128", "pasid:\t32770\n");
	assert_int_equal(foresee_processes(&child, 1), 0);
	assert_int_equal(copies, 0);
	/* A file for graphics. */
	unit_print("fdinfo-128", "pasid:\t32771\n");
	assert_int_equal(foresee_processes(&child, 1), -EOPNOTSUPP);
	assert_logged("Error (amdgpu_plugin): process ", "renderD128 has GEM objects");
	/* In another pid namespace, sysfs does not show the process. */
	copies = 0;
	(void)unlink(unit_path("process/pasid"));
	assert_int_equal(foresee_processes(&child, 1), 0);
	assert_int_equal(copies, 0);
	unit_end_sleeper(child);
}

TEST_WITH(a_mapping_without_kfd_is_foreseen, begin, end)
{
	void *memory = map_render(128);
	int fd;

	assert_int_equal(foresee_child(), -EOPNOTSUPP);
	assert_logged("Error (amdgpu_plugin): process ", "does not have /dev/kfd open",
		      "have the process keep /dev/kfd open, or unmap the memory");
	fd = open_device("kfd-0", O_RDWR);
	(void)foresee_child();
	assert_int_equal(unit_count_lines("does not have /dev/kfd open"), 0);
	(void)close(fd);
	(void)munmap(memory, 4096);
	assert_int_equal(foresee_child(), 0);
}

/* Sysfs says which process KFD knows, but not in another pid namespace. */
TEST_WITH(an_inherited_kfd_file_is_foreseen, begin, end)
{
	int fd = open_device("kfd-0", O_RDWR);
	void *memory;

	assert_int_equal(foresee_child(), 0);
	assert_int_equal(unit_count_lines("may be refused: it has the open /dev/kfd"), 1);
	memory = map_render(128);
	(void)foresee_child();
	assert_int_equal(unit_count_lines("may be refused: it has the open /dev/kfd"), 0);
	(void)munmap(memory, 4096);
	(void)close(fd);
	assert_int_equal(foresee_child(), 0);
	assert_int_equal(unit_count_lines("may be refused"), 0);
}

/* Worker processes of a job have its /dev/kfd, too. CRIU opens it in the process with the lowest
 * pid. */
TEST_WITH(a_file_of_two_processes_must_be_that_of_the_first, begin, end)
{
	int fd = open_device("kfd-0", O_RDWR);

	for (size_t owner = 0; owner < 2; owner++) {
		pid_t pids[2];
		void *memory;

		for (size_t i = 0; i < 2; i++) {
			memory = i == owner ? map_render(128) : NULL;
			pids[i] = unit_start_sleeper();
			if (memory)
				(void)munmap(memory, 4096);
		}
		(void)foresee_processes(pids, 2);
		assert_int_equal(unit_count_lines("has the open /dev/kfd of another"), owner);
		assert_int_equal(unit_count_lines("may be refused: it has the open /dev/kfd"), 0);
		for (size_t i = 0; i < 2; i++)
			unit_end_sleeper(pids[i]);
	}
	assert_logged("Error (amdgpu_plugin): /dev/kfd of process ",
		      "have the process close the inherited descriptor");
	(void)close(fd);
}

/* Without the right to compare files, nothing is said of them. */
static int forbid_copies(long number)
{
	return number == SYS_pidfd_getfd ? EPERM : 0;
}

TEST_WITH(files_that_cannot_be_compared_are_a_warning, begin, end)
{
	int fd = open_device("kfd-0", O_RDWR);

	failing_syscall = forbid_copies;
	assert_int_equal(foresee_child(), 0);
	failing_syscall = NULL;
	assert_logged("Warn  (amdgpu_plugin): ", "cannot compare their files of /dev/kfd",
		      "run this command as root");
	(void)close(fd);
}

/* @gfx: 0, or of all GPUs in place of their own. */
static void warn_on(const char *kernel_release, uint32_t gfx)
{
	const struct options options = { .drain_s = 10 };
	_cleanup_(topology_done) struct topology topology = { 0 };

	release = kernel_release;
	assert_int_equal(topology_read(TOPOLOGY_SYSFS, &topology), 0);
	for (size_t i = 0; gfx && i < topology.num_nodes; i++) {
		if (topology.nodes[i].gpu_id)
			topology.nodes[i].gfx_target_version = gfx;
	}
	unit_forget_lines();
	foresee_warn(&options, &topology);
}

TEST_WITH(kernels_that_save_no_control_stack_are_known_by_their_release, begin, end)
{
	static const struct {
		const char *release;
		unsigned int gpus;
	} cases[] = { { "7.1.12", 0 }, { "7.2.12-amd64", 8 }, { "7.3.0-rc7", 8 }, { "7.4.0", 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("%s\n", cases[i].release);
		warn_on(cases[i].release, 0);
		assert_int_equal(
			unit_count_lines("a dump waits until its kernels have ended, up to 10 s"),
			cases[i].gpus);
	}
}

/* Such a kernel has the areas for waves in BOs (Debian 13). Queues of gfx10 are refused even so. */
TEST_WITH(kernels_without_svm_do_not_refuse_queues, begin, end)
{
	kernel.lacks_svm = true;
	warn_on("6.12.117+deb13-amd64", 0);
	assert_int_equal(unit_count_lines("a compute queue may be refused"), 0);
	warn_on("6.12.117+deb13-amd64", TOPOLOGY_GFX10);
	assert_int_equal(unit_count_lines("a compute queue may be refused"), 8);
}

/* A rule of which nothing is said shows late. */
TEST_WITH(late_rules_are_named_with_their_objects, begin, end)
{
	static const char *const late[] = { "a queue has no area for its waves",
					    "a BO has an unknown kind",
					    "a file or mapping maps no BO of KFD",
					    "a file or mapping has GEM objects",
					    "a process has a layout" };
	static const char *const early[] = { "cannot be paused", "several KFD contexts", "pre-dump",
					     "gfx11", "dma-buf of an AMD GPU" };
	char all[16384] = "", text[512];

	for (size_t i = 0; foresee_name_late(i, text, sizeof(text)); i++)
		(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s\n", text);
	for (size_t i = 0; i < ARRAY_SIZE(late); i++)
		assert_non_null(strstr(all, late[i]));
	for (size_t i = 0; i < ARRAY_SIZE(early); i++)
		assert_null(strstr(all, early[i]));
}

TEST_WITH(a_driver_without_waves_is_foreseen, begin, end)
{
	const struct options options = { 0 }, force = { .force = true };
	_cleanup_(topology_done) struct topology topology = { 0 };

	unit_print("parameter-cwsr_enable", "0\n");
	assert_int_equal(topology_read(TOPOLOGY_SYSFS, &topology), 0);
	assert_int_equal(foresee_machine(&options, &topology), -EOPNOTSUPP);
	assert_true(unit_logged("Error (amdgpu_plugin): a process cannot be paused",
				"cwsr_enable=1", NULL));
	assert_int_equal(foresee_machine(&force, &topology), 0);
}
