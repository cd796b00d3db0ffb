// SPDX-License-Identifier: GPL-2.0-only
/* Tests what the simulator shows of KFD processes in /sys/class/kfd/kfd/proc, and the contexts that
 * CREATE_PROCESS makes (Linux 7.3). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw_kfd.h"
#include "sim_test.h"

#define PROC "/sys/class/kfd/kfd/proc"
#define MIB  (1u << 20)
/* AMDKFD_IOC_CREATE_PROCESS of Linux 7.3 */
#define CREATE_PROCESS _IO('K', 0x27)

static struct raw_process process;

static int begin_client(void **state)
{
	sim_write("kernel", "7.3");
	return begin(state) ? -1 : raw_open_acquired(&process);
}

static int begin_older(void **state)
{
	sim_write("kernel", "6.12");
	return begin(state) ? -1 : raw_open_acquired(&process);
}

static int end_client(void **state)
{
	for (int i = 0; i < process.gpus; i++)
		(void)close(process.render[i]);
	(void)close(process.kfd);
	return end(state);
}

/* @file: below the directory of the process @pid. -1: it is not there. */
static long long read_number(pid_t pid, const char *file)
{
	long long number = -1;
	char path[128];
	FILE *stream;

	(void)snprintf(path, sizeof(path), PROC "/%d/%s", pid, file);
	stream = fopen(path, "re");
	if (!stream)
		return -1;
	assert_int_equal(fscanf(stream, "%lld", &number), 1);
	(void)fclose(stream);
	return number;
}

static bool exists(pid_t pid, const char *file)
{
	char path[128];

	(void)snprintf(path, sizeof(path), PROC "/%d/%s", pid, file);
	return access(path, F_OK) == 0;
}

static int count_processes(void)
{
	DIR *stream = opendir(PROC);
	const struct dirent *entry;
	int count = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream)))
		count += entry->d_name[0] != '.';
	(void)closedir(stream);
	return count;
}

static long long vram_of(const char *directory, int gpu)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%svram_%u", directory, process.gpu[gpu].gpu_id);
	return read_number(getpid(), file);
}

static void a_process_has_a_directory_until_it_ends(void **state)
{
	(void)state;
	assert_int_equal(count_processes(), 1);
	assert_true(exists(getpid(), ""));
	assert_true(exists(getpid(), "queues"));
	sim_write("process_exit", "1");
	assert_int_equal(count_processes(), 0);
	assert_false(exists(getpid(), ""));
}

/* kfd_ioctl_alloc_memory_of_gpu() counts, kfd_ioctl_import_dmabuf() does not. */
static void only_vram_of_its_own_counts(void **state)
{
	struct raw_bo vram, gtt, import;
	int fd;

	(void)state;
	assert_int_equal(vram_of("", 0), 0);
	assert_int_equal(raw_alloc_mapped(&process, 0, RAW_VRAM, 4 * MIB, &vram), 0);
	assert_int_equal(raw_alloc_mapped(&process, 0, RAW_GTT, 2 * MIB, &gtt), 0);
	assert_int_equal(vram_of("", 0), 4 * MIB);
	assert_int_equal(raw_export(&process, &vram, &fd), 0);
	assert_int_equal(raw_import(&process, process.gpu[0].gpu_id, fd,
				    vram.address + (1ull << 40), &import),
			 0);
	assert_int_equal(vram_of("", 0), 4 * MIB);
	assert_int_equal(raw_free(&process, &import), 0);
	assert_int_equal(vram_of("", 0), 4 * MIB);
	assert_int_equal(raw_unmap(&process, &vram, process.gpu[0].gpu_id), 0);
	assert_int_equal(raw_free(&process, &vram), 0);
	assert_int_equal(vram_of("", 0), 0);
	(void)close(fd);
}

static void queues_have_size_type_and_gpu(void **state)
{
	struct kfd_ioctl_destroy_queue_args destroy = { 0 };
	struct raw_queue queue;
	char file[64];

	(void)state;
	assert_int_equal(raw_create_queue(&process, 0, &queue), 0);
	(void)snprintf(file, sizeof(file), "queues/%u/size", queue.id);
	assert_int_equal(read_number(getpid(), file), queue.ring.size);
	(void)snprintf(file, sizeof(file), "queues/%u/type", queue.id);
	assert_int_equal(read_number(getpid(), file), 1); /* KFD_QUEUE_TYPE_SDMA */
	(void)snprintf(file, sizeof(file), "queues/%u/gpuid", queue.id);
	assert_int_equal(read_number(getpid(), file), process.gpu[0].gpu_id);
	destroy.queue_id = queue.id;
	assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_DESTROY_QUEUE, &destroy), 0);
	(void)snprintf(file, sizeof(file), "queues/%u", queue.id);
	assert_false(exists(getpid(), file));
	assert_true(exists(getpid(), "queues"));
}

static long long pasid_of_file(int fd)
{
	char path[64], line[128];
	long long pasid = -1;
	FILE *stream;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	stream = fopen(path, "re");
	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream))
		(void)sscanf(line, "pasid: %lld", &pasid);
	(void)fclose(stream);
	return pasid;
}

static void compare_pasids(bool of_process)
{
	int fd;

	assert_int_equal(raw_open_render(&process.gpu[0], &fd), 0);
	if (of_process) {
		assert_true(read_number(getpid(), "pasid") > 0);
		assert_int_equal(pasid_of_file(process.render[0]), read_number(getpid(), "pasid"));
	} else {
		assert_int_equal(read_number(getpid(), "pasid"), 0);
		assert_true(pasid_of_file(process.render[0]) > 0);
	}
	assert_true(pasid_of_file(fd) > 0);
	assert_int_not_equal(pasid_of_file(fd), pasid_of_file(process.render[0]));
	(void)close(fd);
}

static void acquired_files_get_the_pasid_of_the_process(void **state)
{
	(void)state;
	compare_pasids(true);
}

static void each_file_keeps_its_pasid(void **state)
{
	(void)state;
	compare_pasids(false);
}

static void older_kernels_have_no_contexts(void **state)
{
	(void)state;
	assert_int_equal(raw_ioctl(process.kfd, CREATE_PROCESS, NULL), -ENOTTY);
}

static int new_context(void)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(raw_ioctl(fd, CREATE_PROCESS, NULL), 0);
	return fd;
}

static int count_contexts(void)
{
	char path[64];
	DIR *stream;
	const struct dirent *entry;
	int count = 0;

	(void)snprintf(path, sizeof(path), PROC "/%d", getpid());
	stream = opendir(path);
	assert_non_null(stream);
	while ((entry = readdir(stream)))
		count += strncmp(entry->d_name, "context_", strlen("context_")) == 0;
	(void)closedir(stream);
	return count;
}

/* kfd_process_alloc_id(): the lowest number; kfd_release(): the file ends its context. */
static void contexts_have_directories_until_their_files_end(void **state)
{
	int first, second;

	(void)state;
	assert_int_equal(count_contexts(), 0);
	first = new_context();
	second = new_context();
	assert_true(exists(getpid(), "context_0/queues"));
	assert_true(exists(getpid(), "context_1/pasid"));
	(void)close(first);
	assert_int_equal(count_contexts(), 1);
	assert_true(exists(getpid(), "context_1"));
	first = new_context();
	assert_true(exists(getpid(), "context_0"));
	(void)close(first);
	(void)close(second);
	assert_int_equal(count_contexts(), 0);
	assert_int_equal(count_processes(), 1);
}

static void a_context_has_memory_of_its_own(void **state)
{
	struct raw_process context = process;
	struct raw_bo bo, other;

	(void)state;
	context.kfd = new_context();
	assert_int_equal(raw_open_render(&process.gpu[0], &context.render[0]), 0);
	assert_int_equal(raw_acquire(&context, process.gpu[0].gpu_id, context.render[0]), 0);
	assert_int_equal(raw_alloc(&process, process.gpu[0].gpu_id, RAW_VRAM, MIB, NULL, &bo), 0);
	assert_int_equal(
		raw_alloc(&context, process.gpu[0].gpu_id, RAW_VRAM, 2 * MIB, NULL, &other), 0);
	assert_int_equal(other.handle, bo.handle);
	assert_int_equal(vram_of("", 0), MIB);
	assert_int_equal(vram_of("context_0/", 0), 2 * MIB);
	(void)close(context.kfd);
	(void)close(context.render[0]);
	assert_int_equal(vram_of("", 0), MIB);
}

/* kfd_ioctl_create_process(), kfd_ioctl_svm(), kfd_ioctl_alloc_memory_of_gpu() */
static void a_context_may_not_do_all(void **state)
{
	struct kfd_ioctl_svm_attribute attribute = { KFD_IOCTL_SVM_ATTR_ACCESS,
						     process.gpu[0].gpu_id };
	struct raw_process context = process;
	struct raw_bo bo;
	char *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	context.kfd = new_context();
	assert_int_equal(raw_ioctl(context.kfd, CREATE_PROCESS, NULL), -EINVAL);
	assert_int_equal(raw_svm(&context, memory, MIB, KFD_IOCTL_SVM_OP_SET_ATTR, &attribute, 1),
			 -EOPNOTSUPP);
	assert_int_equal(raw_alloc(&context, process.gpu[0].gpu_id, RAW_USERPTR, MIB, memory, &bo),
			 -EOPNOTSUPP);
	assert_int_equal(raw_svm(&process, memory, MIB, KFD_IOCTL_SVM_OP_SET_ATTR, &attribute, 1),
			 0);
	(void)close(context.kfd);
	(void)munmap(memory, MIB);
}

static void wait_for(int socket)
{
	char byte;

	if (read(socket, &byte, 1) != 1)
		_exit(1);
}

/* A child is a KFD process of the same host. This process is none yet: the thread sanitizer wants
 * no fork beside threads. */
static void a_child_is_seen_until_it_ends(void **state)
{
	int pair[2], status;
	char byte = 1;
	pid_t child;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	child = fork();
	if (child == 0) {
		struct raw_process own;

		if (raw_open(&own) < 0 || write(pair[1], &byte, 1) != 1)
			_exit(1);
		wait_for(pair[1]);
		_exit(0);
	}
	(void)close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	assert_int_equal(count_processes(), 1);
	assert_true(exists(child, ""));
	assert_int_equal(write(pair[0], &byte, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(count_processes(), 0);
	(void)close(pair[0]);
}

#define TEST(name)  cmocka_unit_test_setup_teardown(name, begin_client, end_client)
#define OLDER(name) cmocka_unit_test_setup_teardown(name, begin_older, end_client)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_is_seen_until_it_ends, begin, end),
		TEST(a_process_has_a_directory_until_it_ends),
		TEST(only_vram_of_its_own_counts),
		TEST(queues_have_size_type_and_gpu),
		OLDER(acquired_files_get_the_pasid_of_the_process),
		TEST(each_file_keeps_its_pasid),
		OLDER(older_kernels_have_no_contexts),
		TEST(contexts_have_directories_until_their_files_end),
		TEST(a_context_has_memory_of_its_own),
		TEST(a_context_may_not_do_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
