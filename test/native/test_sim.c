// SPDX-License-Identifier: GPL-2.0-only
/* Tests the native front end alone, through libdrm_amdgpu and raw ioctls: calls that the plugin may
 * use later, and the behaviour of descriptors and memory. The tests in the virtual machine cover
 * the model's rules. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <xf86drm.h>

#include "raw_kfd.h"
#include "sim_gpu.h"

#define CHILD           "--child"
#define RINGS           3000u
#define ENGINE_SLEEP_NS 100000u

/* Passes handles in the submission itself, without a list made before. */
static void buffers_may_be_listed_in_the_submission(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer a = new_buffer(&gpu, PAGE, AMDGPU_GEM_DOMAIN_VRAM);
	struct drm_amdgpu_bo_list_entry entries[2] = { 0 };
	struct drm_amdgpu_bo_list_in list = {
		.operation = ~0u,
		.list_handle = ~0u,
		.bo_number = 2,
		.bo_info_size = sizeof(entries[0]),
		.bo_info_ptr = (uintptr_t)entries,
	};
	struct drm_amdgpu_cs_chunk_ib ib = { .va_start = gpu.ib_va,
					     .ib_bytes = 32,
					     .ip_type = AMDGPU_HW_IP_DMA };
	struct drm_amdgpu_cs_chunk chunks[] = {
		{ AMDGPU_CHUNK_ID_BO_HANDLES, sizeof(list) / 4, (uintptr_t)&list },
		{ AMDGPU_CHUNK_ID_IB, sizeof(ib) / 4, (uintptr_t)&ib },
	};
	struct amdgpu_cs_fence fence = { .context = gpu.context, .ip_type = AMDGPU_HW_IP_DMA };

	(void)state;
	(void)amdgpu_bo_export(gpu.ib, amdgpu_bo_handle_type_kms, &entries[0].bo_handle);
	(void)amdgpu_bo_export(a.bo, amdgpu_bo_handle_type_kms, &entries[1].bo_handle);
	put_copy(&gpu, a.va, gpu.ib_va, 64);
	gpu.dwords[gpu.used] = 0;
	gpu.used = 0;
	assert_int_equal(amdgpu_cs_submit_raw2(gpu.device, gpu.context, 0, 2, chunks, &fence.fence),
			 0);
	assert_true(wait_for(&fence, AMDGPU_TIMEOUT_INFINITE));
	assert_memory_equal(cpu(&a), gpu.dwords, 32);
	(void)amdgpu_bo_cpu_unmap(a.bo);
	drop(&a);
	close_gpu(&gpu);
}

static void memory_of_the_program_is_copied_in_place(void **state)
{
	const uint64_t size = 32 * MIB;
	struct gpu gpu = open_gpu(128);
	struct buffer vram = new_buffer(&gpu, size, AMDGPU_GEM_DOMAIN_VRAM);
	uint8_t *from =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buffer in, out;

	(void)state;
	(void)madvise(from, 2 * size, MADV_HUGEPAGE);
	for (uint64_t i = 0; i < size; i += 8)
		*(uint64_t *)(from + i) = i * 0x9e3779b97f4a7c15ull;
	in = user_buffer(&gpu, from, size);
	out = user_buffer(&gpu, from + size, size);
	copy(&gpu, 0, &vram, &in, size);
	copy(&gpu, 1, &out, &vram, size);
	assert_true(!memcmp(from, from + size, size));
	drop(&in);
	drop(&out);
	drop(&vram);
	close_gpu(&gpu);
	(void)munmap(from, 2 * size);
}

static void memory_that_is_not_there_cannot_be_submitted(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer vram = new_buffer(&gpu, PAGE, AMDGPU_GEM_DOMAIN_VRAM);
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buffer user = user_buffer(&gpu, memory, PAGE);
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = gpu.ib_va, .size = 8 };
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.number_of_ibs = 1,
		.ibs = &ib,
		.resources = list_of(&gpu, &vram, &user),
	};

	(void)state;
	(void)munmap(memory, PAGE);
	memset(gpu.dwords, 0, 32);
	assert_int_equal(amdgpu_cs_submit(gpu.context, 0, &request, 1), -EFAULT);
	(void)amdgpu_bo_list_destroy(request.resources);
	drop(&user);
	drop(&vram);
	close_gpu(&gpu);
}

static void *wait_in_thread(void *fence)
{
	return (void *)(uintptr_t)wait_for(fence, AMDGPU_TIMEOUT_INFINITE);
}

static void a_wait_ends_with_its_fence_or_at_its_deadline(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer a = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	struct buffer b = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	struct amdgpu_cs_fence fence;
	pthread_t thread;
	void *ended;

	(void)state;
	sim_write("fence_hang", "1");
	fence = start_copy(&gpu, 0, &a, &b, MIB);
	assert_false(wait_for(&fence, 1000000));
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &fence), 0);
	sim_write("fence_hang", "0");
	assert_int_equal(pthread_join(thread, &ended), 0);
	assert_non_null(ended);
	drop(&a);
	drop(&b);
	close_gpu(&gpu);
}

static void what_is_under_way_ends_with_its_context(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer a = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	struct buffer b = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	long copied = sim_number("stats", "ib_bytes ");

	(void)state;
	sim_write("fence_hang", "1");
	(void)start_copy(&gpu, 0, &a, &b, MIB);
	(void)start_copy(&gpu, 1, &a, &b, MIB);
	end_context(&gpu);
	sim_write("fence_hang", "0");
	drop(&a);
	drop(&b);
	close_gpu(&gpu);
	assert_int_equal(sim_number("stats", "ib_bytes "), copied);
}

/* Ends without cleanup, as a killed process does. */
static void what_is_under_way_ends_with_its_file(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer a = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	struct buffer b = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	int fd = amdgpu_device_get_fd(gpu.device), null = open("/dev/null", O_RDWR);

	(void)state;
	sim_write("fence_hang", "1");
	(void)start_copy(&gpu, 0, &a, &b, MIB);
	assert_int_equal(dup2(null, fd), fd);
	assert_int_equal(close(gpu.fd), 0);
	assert_int_equal(sim_number("objects", "render_files "), 0);
	sim_write("fence_hang", "0");
	(void)close(null);
	(void)amdgpu_va_range_free(a.range);
	(void)amdgpu_va_range_free(b.range);
	(void)amdgpu_va_range_free(gpu.ib_range);
	(void)amdgpu_bo_cpu_unmap(gpu.ib);
	(void)amdgpu_bo_free(gpu.ib);
	(void)amdgpu_bo_free(a.bo);
	(void)amdgpu_bo_free(b.bo);
	(void)amdgpu_cs_ctx_free(gpu.context);
	(void)amdgpu_device_deinitialize(gpu.device);
}

static long resident_kib(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void what_nobody_wrote_takes_no_memory(void **state)
{
	long before = resident_kib();
	struct gpu gpu = open_gpu(128);
	struct buffer large = new_buffer(&gpu, 32 * GIB, AMDGPU_GEM_DOMAIN_VRAM);
	struct buffer small = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	uint8_t *memory = cpu(&small);

	(void)state;
	memory[0] = 1;
	put_copy(&gpu, large.va + 31 * GIB, small.va, PAGE);
	put_copy(&gpu, large.va + 8 * GIB, large.va + 16 * GIB, 4 * GIB);
	copy(&gpu, 0, &large, &small, MIB);
	assert_true(sim_number("objects", "pages ") < 64);
	memset(memory, 0xff, MIB);
	put_copy(&gpu, small.va, large.va + 31 * GIB, PAGE);
	copy(&gpu, 1, &small, &large, PAGE);
	assert_int_equal(memory[0], 1);
	assert_int_equal(memory[1], 0);
	assert_true(resident_kib() - before < 65536);
	(void)amdgpu_bo_cpu_unmap(small.bo);
	drop(&large);
	drop(&small);
	close_gpu(&gpu);
}

static void skipped_copies_end_and_move_nothing(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer a = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	struct buffer b = new_buffer(&gpu, MIB, AMDGPU_GEM_DOMAIN_VRAM);
	uint8_t *in = cpu(&a), *out = cpu(&b);

	(void)state;
	memset(in, 1, MIB);
	sim_write("skip_copies", "1");
	sim_write("engine_bytes_per_s", "1G");
	copy(&gpu, 0, &b, &a, MIB);
	assert_int_equal(out[0], 0);
	sim_write("skip_copies", "0");
	copy(&gpu, 0, &b, &a, MIB);
	assert_int_equal(out[0], 1);
	sim_write("engine_bytes_per_s", "0");
	(void)amdgpu_bo_cpu_unmap(a.bo);
	(void)amdgpu_bo_cpu_unmap(b.bo);
	drop(&a);
	drop(&b);
	close_gpu(&gpu);
}

static void a_dmabuf_is_one_object_however_it_is_seen(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer a = new_buffer(&gpu, 3 * PAGE, AMDGPU_GEM_DOMAIN_VRAM);
	int fd = export(&a), again = export(&a), own = open("/dev/dri/renderD128", O_RDWR);
	uint32_t handle, same, first;
	struct stat stat, other;

	(void)state;
	assert_int_equal(lseek(fd, 0, SEEK_END), 3 * PAGE);
	assert_int_equal(fstat(fd, &stat) | fstat(again, &other), 0);
	assert_int_equal(stat.st_ino, other.st_ino);
	assert_int_equal(stat.st_mode & S_IFMT, 0);
	assert_int_equal(amdgpu_bo_export(a.bo, amdgpu_bo_handle_type_kms, &first), 0);
	assert_int_equal(drmPrimeFDToHandle(amdgpu_device_get_fd(gpu.device), fd, &handle), 0);
	assert_int_equal(handle, first);
	assert_int_equal(drmPrimeFDToHandle(own, fd, &handle), 0);
	assert_int_equal(drmPrimeFDToHandle(own, again, &same), 0);
	assert_int_equal(handle, same);
	assert_int_equal(sim_number("objects", "dmabufs "), 2);
	assert_int_equal(sim_number("objects", "bos "), 2);
	(void)close(fd);
	(void)close(again);
	(void)close(own);
	drop(&a);
	close_gpu(&gpu);
}

static void duplicates_keep_a_file_open(void **state)
{
	int fd = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	int copies[] = { dup(fd), fcntl(fd, F_DUPFD_CLOEXEC, 50), open("/dev/null", O_RDWR) };
	struct stat stat;

	(void)state;
	assert_int_equal(dup2(fd, copies[2]), copies[2]);
	(void)close(fd);
	(void)close(copies[0]);
	(void)close(copies[1]);
	assert_int_equal(sim_number("objects", "render_files "), 1);
	assert_int_equal(fstat(copies[2], &stat), 0);
	assert_true(S_ISCHR(stat.st_mode));
	fd = open("/dev/null", O_RDWR);
	assert_int_equal(dup2(fd, copies[2]), copies[2]);
	assert_int_equal(sim_number("objects", "render_files "), 0);
	(void)close(fd);
	(void)close(copies[2]);
}

static void faults_are_armed_by_the_program(void **state)
{
	(void)state;
	sim_write("faults", "drm:OPEN 2 -5");
	assert_int_equal(close(open("/dev/dri/renderD128", O_RDWR)), 0);
	assert_int_equal(open("/dev/dri/renderD128", O_RDWR), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(close(open("/dev/dri/renderD128", O_RDWR)), 0);
}

static void hidden_gpus_are_not_seen(void **state)
{
	(void)state;
	sim_write("hidden", "0");
	assert_null(fopen("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "r"));
	assert_int_equal(errno, EPERM);
	assert_int_equal(open("/dev/dri/renderD128", O_RDWR), -1);
	sim_write("hidden", "");
	assert_int_equal(close(open("/dev/dri/renderD128", O_RDWR)), 0);
}

static void send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = { 0 }, byte = 0;
	struct iovec bytes = { &byte, 1 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	assert_int_equal(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec bytes = { &byte, 1 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd;

	assert_int_equal(recvmsg(socket, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Another process with a descriptor of the buffer: adds one to each byte of the first page. */
static void change_buffer(int fd)
{
	struct gpu gpu = open_gpu(128);
	struct buffer theirs = import(&gpu, fd),
		      ours = new_buffer(&gpu, PAGE, AMDGPU_GEM_DOMAIN_GTT);
	uint8_t *memory = cpu(&ours);

	copy(&gpu, 0, &ours, &theirs, PAGE);
	for (unsigned int i = 0; i < PAGE; i++)
		memory[i]++;
	copy(&gpu, 1, &theirs, &ours, PAGE);
	(void)amdgpu_bo_cpu_unmap(ours.bo);
	drop(&theirs);
	drop(&ours);
	close_gpu(&gpu);
	assert_int_equal(sim_number("violations", NULL), 0);
}

static void wait_for_child(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void check_changed(struct gpu *gpu, struct buffer *vram)
{
	struct buffer ours = new_buffer(gpu, PAGE, AMDGPU_GEM_DOMAIN_GTT);
	uint8_t *memory = cpu(&ours);

	copy(gpu, 0, &ours, vram, PAGE);
	for (unsigned int i = 0; i < PAGE; i++)
		assert_int_equal(memory[i], 8);
	(void)amdgpu_bo_cpu_unmap(ours.bo);
	drop(&ours);
}

static void a_descriptor_sent_to_another_process_is_the_same_memory(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer vram = new_buffer(&gpu, PAGE, AMDGPU_GEM_DOMAIN_VRAM);
	int ends[2], fd;
	char number[16];
	pid_t pid;

	(void)state;
	memset(cpu(&vram), 7, PAGE);
	(void)amdgpu_bo_cpu_unmap(vram.bo);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	(void)snprintf(number, sizeof(number), "%d", ends[1]);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_sim", CHILD, number, NULL);
		_exit(1);
	}
	fd = export(&vram);
	send_fd(ends[0], fd);
	wait_for_child(pid);
	check_changed(&gpu, &vram);
	(void)close(ends[0]);
	(void)close(ends[1]);
	(void)close(fd);
	drop(&vram);
	close_gpu(&gpu);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer cannot follow a fork */
static void a_forked_child_has_a_machine_of_its_own(void **state)
{
	struct gpu gpu = open_gpu(128);
	struct buffer vram = new_buffer(&gpu, PAGE, AMDGPU_GEM_DOMAIN_VRAM);
	int fd = export(&vram), kfd = open("/dev/kfd", O_RDWR);
	pid_t pid;

	(void)state;
	memset(cpu(&vram), 7, PAGE);
	(void)amdgpu_bo_cpu_unmap(vram.bo);
	drop(&vram);
	/* libdrm would use the parent's device in the child too; the descriptor keeps the buffer
	 * alive */
	close_gpu(&gpu);
	pid = fork();
	if (pid == 0) {
		char version[8];

		assert_int_equal(ioctl(kfd, 0x80084b01, version), -1);
		assert_int_equal(errno, EBADF);
		change_buffer(fd);
		_exit(0);
	}
	wait_for_child(pid);
	gpu = open_gpu(128);
	vram = import(&gpu, fd);
	check_changed(&gpu, &vram);
	(void)close(fd);
	(void)close(kfd);
	drop(&vram);
	close_gpu(&gpu);
}
#endif

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer reports the engine's reads as races */
static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Waits without a sleep, because the engine then polls the queue soonest. */
static int wait_awake(struct raw_queue *queue)
{
	for (int i = 0; i < 10000 && *queue->read != queue->written; i++)
		(void)sched_yield();
	return raw_queue_wait(queue);
}

/* Rings the doorbell for each packet at a different moment after the queue must return to the
 * hardware. */
static void who_rings_is_heard_at_any_moment(void **state)
{
	struct kfd_ioctl_update_queue_args update = { .queue_percentage = 100,
						      .queue_priority = 7 };
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo counter;

	(void)state;
	assert_int_equal(raw_open_acquired(&process), 0);
	assert_int_equal(raw_create_queue(&process, 0, &queue), 0);
	assert_int_equal(raw_alloc_mapped(&process, 0, RAW_GTT, PAGE, &counter), 0);
	update.ring_base_address = (uintptr_t)queue.ring.address;
	update.ring_size = (uint32_t)queue.ring.size;
	update.queue_id = queue.id;
	for (uint64_t i = 0; i < RINGS; i++) {
		uint64_t ring_ns;

		raw_queue_add(&queue, (uint64_t *)counter.address, 1);
		assert_int_equal(raw_ioctl(process.kfd, AMDKFD_IOC_UPDATE_QUEUE, &update), 0);
		ring_ns = now_ns() + i * 7919 % ENGINE_SLEEP_NS;
		while (now_ns() < ring_ns)
			;
		raw_queue_ring(&queue);
		assert_int_equal(wait_awake(&queue), 0);
	}
	assert_int_equal(*(uint64_t *)counter.address, RINGS);
	(void)close(process.render[0]);
	(void)close(process.kfd);
}
#endif

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(buffers_may_be_listed_in_the_submission),
		TEST(memory_of_the_program_is_copied_in_place),
		TEST(memory_that_is_not_there_cannot_be_submitted),
		TEST(a_wait_ends_with_its_fence_or_at_its_deadline),
		TEST(what_is_under_way_ends_with_its_context),
		TEST(what_is_under_way_ends_with_its_file),
		TEST(what_nobody_wrote_takes_no_memory),
		TEST(skipped_copies_end_and_move_nothing),
		TEST(a_dmabuf_is_one_object_however_it_is_seen),
		TEST(duplicates_keep_a_file_open),
		TEST(faults_are_armed_by_the_program),
		TEST(hidden_gpus_are_not_seen),
		TEST(a_descriptor_sent_to_another_process_is_the_same_memory),
#ifndef __SANITIZE_THREAD__
		TEST(a_forked_child_has_a_machine_of_its_own),
		TEST(who_rings_is_heard_at_any_moment),
#endif
	};

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], CHILD)) {
		change_buffer(receive_fd(atoi(argv[2])));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
