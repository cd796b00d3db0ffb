// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CRIU operations by hand: a process checkpoints itself, a forked child rebuilds the state
 * through RESTORE and goes on with the same queue. Also who may call what, pausing, and the errors
 * of each operation. */
#define _GNU_SOURCE
#include <linux/kfd_ioctl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "kfd.h"

#define VRAM_BYTES (3ull << 20)
#define GTT_BYTES  (1ull << 20)
#define USER_BYTES (4ull << 20)
#define SVM_BYTES  (1ull << 20)

/* What PROCESS_INFO and CHECKPOINT gave, with the contents of all buffers. */
struct image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket devices[64];
	struct kfd_criu_bo_bucket *bos;
	uint8_t *priv;
	uint8_t **contents;
};

static struct kfd kfd;
static struct queue queue;
static uint32_t *vram, *gtt, *user, *registered;
static uint64_t *counter;

static int kfd_fd(void)
{
	char path[64], target[64];
	int fd;

	for (fd = 3; fd < 1024; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof(target) - 1);
		if (length == 8 && !memcmp(target, "/dev/kfd", 8))
			return fd;
	}
	return -1;
}

static int criu(int fd, struct kfd_ioctl_criu_args *args, uint32_t op)
{
	args->op = op;
	return ioctl(fd, AMDKFD_IOC_CRIU_OP, args) < 0 ? -errno : 0;
}

static int simple(int fd, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { .pid = (uint32_t)getpid() };

	return criu(fd, &args, op);
}

static void take_info(int fd, struct image *image)
{
	memset(image, 0, sizeof(*image));
	CHECK_INT(criu(fd, &image->args, KFD_CRIU_OP_PROCESS_INFO), 0);
	image->bos = calloc(image->args.num_bos + 1, sizeof(*image->bos));
	image->priv = calloc(1, image->args.priv_data_size);
	image->args.devices = (uint64_t)image->devices;
	image->args.bos = (uint64_t)image->bos;
	image->args.priv_data = (uint64_t)image->priv;
}

/* Memory that survives into a forked child. */
static void *shared(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static void save_contents(struct image *image)
{
	unsigned i;

	image->contents = calloc(image->args.num_bos, sizeof(*image->contents));
	for (i = 0; i < image->args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bo = &image->bos[i];
		int fd = (int)bo->dmabuf_fd;
		void *map;

		if (bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
			image->contents[i] = shared(bo->size);
			memcpy(image->contents[i], (void *)bo->addr, bo->size);
		}
		if (bo->dmabuf_fd == KFD_INVALID_FD)
			continue;
		CHECK_INT(fcntl(fd, F_GETFD), 0);
		CHECK_INT(lseek(fd, 0, SEEK_END), bo->size);
		map = mmap(NULL, bo->size, PROT_READ, MAP_SHARED, fd, 0);
		CHECK(map != MAP_FAILED);
		image->contents[i] = shared(bo->size);
		memcpy(image->contents[i], map, bo->size);
		munmap(map, bo->size);
		close(fd);
	}
}

static void take_image(int fd, struct image *image)
{
	CHECK_INT(image->args.num_devices, kfd.num_gpus);
	CHECK_INT(criu(fd, &image->args, KFD_CRIU_OP_CHECKPOINT), 0);
	save_contents(image);
}

static void test_errors(int fd)
{
	struct image image;
	unsigned i;

	CHECK_INT(simple(fd, 7), -EINVAL);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), -EINVAL);
	CHECK_INT(simple(fd, KFD_CRIU_OP_CHECKPOINT), -EINVAL);
	take_info(fd, &image);
	image.args.num_bos++;
	CHECK_INT(criu(fd, &image.args, KFD_CRIU_OP_CHECKPOINT), -EINVAL);
	image.args.num_bos--;
	image.args.priv_data_size++;
	CHECK_INT(criu(fd, &image.args, KFD_CRIU_OP_CHECKPOINT), -EINVAL);
	image.args.priv_data_size--;
	sim_write("bo_count_skew", "1");
	CHECK_INT(criu(fd, &image.args, KFD_CRIU_OP_CHECKPOINT), -EINVAL);
	sim_write("faults", "kfd:CRIU_CHECKPOINT 1 -5");
	CHECK_INT(criu(fd, &image.args, KFD_CRIU_OP_CHECKPOINT), -EIO);
	CHECK_INT(criu(fd, &image.args, KFD_CRIU_OP_CHECKPOINT), 0);
	for (i = 0; i < image.args.num_bos; i++)
		if (image.bos[i].dmabuf_fd != KFD_INVALID_FD)
			close((int)image.bos[i].dmabuf_fd);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), 0);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), -EINVAL);
	CHECK_INT(simple(fd, KFD_CRIU_OP_RESTORE), -EINVAL);
	free(image.bos);
	free(image.priv);
}

static void add_to_counter(uint64_t value)
{
	uint32_t *at = queue_reserve(&queue, 8);

	memset(at, 0, 32);
	at[0] = 10 | 47u << 25;
	at[1] = (uint32_t)(uint64_t)counter;
	at[2] = (uint32_t)((uint64_t)counter >> 32);
	at[3] = (uint32_t)value;
}

static void wait_for_counter(uint64_t value)
{
	int tries;

	for (tries = 0; tries < 20000 && *(volatile uint64_t *)counter != value; tries++)
		usleep(1000);
	CHECK_INT(*counter, value);
}

/* While paused nothing moves; nested pauses need as many ends. */
static void test_pause(int fd)
{
	struct kfd_ioctl_criu_args args = { .op = 0 };
	uint64_t before = *counter;

	CHECK_INT(criu(fd, &args, KFD_CRIU_OP_PROCESS_INFO), 0);
	CHECK_INT(args.pid, getpid());
	add_to_counter(1);
	queue_ring_doorbell(&queue);
	usleep(100000);
	CHECK_INT(*counter, before);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), 0);
	wait_for_counter(before + 1);
}

/* Two pauses and one end: stopped for ever, and nothing says so. The last
 * thing this process does. */
static void test_nesting(int fd)
{
	struct kfd_ioctl_criu_args args = { .op = 0 };
	uint64_t before = *counter;

	CHECK_INT(criu(fd, &args, KFD_CRIU_OP_PROCESS_INFO), 0);
	CHECK_INT(criu(fd, &args, KFD_CRIU_OP_PROCESS_INFO), 0);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), 0);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), -EINVAL);
	add_to_counter(1);
	queue_ring_doorbell(&queue);
	usleep(100000);
	CHECK_INT(*counter, before);
}

static int version_of(int fd)
{
	struct kfd_ioctl_get_version_args args;

	return ioctl(fd, AMDKFD_IOC_GET_VERSION, &args) < 0 ? -errno : 0;
}

static void *call_from_thread(void *fd)
{
	return (void *)(long)simple((int)(long)fd, KFD_CRIU_OP_UNPAUSE);
}

/* The parent owns the state; a child that traces it may use CRIU_OP alone, and from
 * the tracing thread alone. */
static int trace_parent(int fd)
{
	pid_t parent = getppid();
	pthread_t thread;
	void *result;

	CHECK_INT(version_of(fd), -EBADF);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), -EBADF);
	CHECK_INT(ptrace(PTRACE_SEIZE, parent, NULL, NULL), 0);
	CHECK_INT(version_of(fd), -EBADF);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), -EINVAL);
	CHECK_INT(pthread_create(&thread, NULL, call_from_thread, (void *)(long)fd), 0);
	CHECK_INT(pthread_join(thread, &result), 0);
	CHECK_INT((long)result, -EBADF);
	CHECK(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, (off_t)(3ull << 62)) == MAP_FAILED &&
	      errno == EBADF);
	CHECK_INT(setresuid(1234, 1234, 1234), 0);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), -EACCES);
	return 0;
}

static void wait_child(pid_t pid)
{
	int status;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
}

static void test_tracer(int fd)
{
	pid_t pid;

	CHECK_INT(prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) < 0 && errno != EINVAL, 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(trace_parent(fd));
	wait_child(pid);
}

static int render_of(const struct image *image, uint32_t user_gpu_id)
{
	unsigned i;

	for (i = 0; i < image->args.num_devices; i++)
		if (image->devices[i].user_gpu_id == user_gpu_id)
			return (int)image->devices[i].drm_fd;
	return -1;
}

/* Only the file that was given to RESTORE maps its buffers, and only from their start. */
static void check_map_rules(const struct kfd_criu_bo_bucket *bo, int render)
{
	char path[64];
	int fresh;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", render);
	fresh = open(path, O_RDWR);
	CHECK(fresh >= 0);
	CHECK(mmap(NULL, bo->size, PROT_READ, MAP_SHARED, fresh, (off_t)bo->restored_offset) ==
	      MAP_FAILED);
	CHECK_INT(errno, EACCES);
	close(fresh);
	if (bo->size == 4096)
		return; /* the next buffer may start there */
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, render, (off_t)bo->restored_offset + 4096) ==
	      MAP_FAILED);
	CHECK_INT(errno, EINVAL);
}

/* Maps what CRIU would map, with the new offsets, and fills it. */
static void put_back(struct image *image, int fd)
{
	unsigned i;

	for (i = 0; i < image->args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bo = &image->bos[i];
		int flags = MAP_SHARED | MAP_FIXED, source = render_of(image, bo->gpu_id);
		void *map;

		if (bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
			map = mmap((void *)bo->addr, bo->size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			CHECK(map != MAP_FAILED);
			memcpy(map, image->contents[i], bo->size);
			continue;
		}
		if (bo->alloc_flags &
		    (KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP))
			source = fd;
		map = mmap((void *)bo->addr, bo->size, PROT_READ | PROT_WRITE, flags, source,
			   (off_t)bo->restored_offset);
		CHECK(map != MAP_FAILED);
		if (source == fd)
			continue;
		check_map_rules(bo, source);
		/* nothing of the old contents may have survived */
		CHECK_INT(*(uint8_t *)map, 0xd6);
		memcpy(map, image->contents[i], bo->size);
		close((int)bo->dmabuf_fd);
	}
}

static int resume(pid_t pid)
{
	struct kfd_ioctl_criu_args args = { .pid = (uint32_t)pid };
	int fd = open("/dev/kfd", O_RDWR), ret;

	ret = criu(fd, &args, KFD_CRIU_OP_RESUME);
	close(fd);
	return ret;
}

static void restore_errors(struct image *image, int fd)
{
	struct kfd_ioctl_criu_args args = image->args;

	args.num_devices++;
	CHECK_INT(criu(fd, &args, KFD_CRIU_OP_RESTORE), -EINVAL);
	args = image->args;
	args.devices = 0;
	CHECK_INT(criu(fd, &args, KFD_CRIU_OP_RESTORE), -EINVAL);
}

/* Every GPU's part goes to the next GPU, so that the ids of the program are not the real ones. */
static int restore(struct image *image)
{
	unsigned count = image->args.num_devices, i;
	int fd = open("/dev/kfd", O_RDWR);
	uint32_t first = image->devices[0].actual_gpu_id;

	CHECK(fd >= 0);
	for (i = 0; i < count; i++) {
		struct kfd_criu_device_bucket *device = &image->devices[i];
		char path[64];

		device->actual_gpu_id = i + 1 < count ? image->devices[i + 1].actual_gpu_id : first;
		snprintf(path, sizeof(path), "/dev/dri/renderD%d",
			 kfd.nodes[kfd.gpus[(i + 1) % count]].DrmRenderMinor);
		device->drm_fd = (uint32_t)open(path, O_RDWR);
	}
	CHECK_INT(criu(fd, &image->args, KFD_CRIU_OP_RESTORE), 0);
	return fd;
}

/* Resumed without contents: the simulator notices. */
static int hasty_life(struct image *image)
{
	unsigned i;
	int tries;

	(void)restore(image);
	for (i = 0; i < image->args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bo = &image->bos[i];

		if (bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
			CHECK(mmap((void *)bo->addr, bo->size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	}
	CHECK_INT(resume(getpid()), 0);
	for (tries = 0; tries < 5000 && !sim_read("violations"); tries++)
		usleep(1000);
	expect_violations(1);
	CHECK_INT(resume(getpid()), -EINVAL);
	expect_violations(1);
	return 0;
}

static int restored_life(struct image *image, int old_fd, int ready, int go)
{
	char byte;
	int fd;

	CHECK_INT(version_of(old_fd), -EBADF);
	fd = restore(image);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), -EINVAL);
	put_back(image, fd);
	CHECK_INT(write(ready, "x", 1), 1);
	CHECK_INT(read(go, &byte, 1), 1); /* the parent has resumed us */
	CHECK(has_pattern(vram, VRAM_BYTES, 11));
	CHECK(has_pattern(user, USER_BYTES, 13));
	/* the packets that were in the ring at the time of the checkpoint run now, once */
	wait_for_counter(1005);
	queue_copy(&queue, gtt, vram, GTT_BYTES);
	add_to_counter(1);
	queue_ring_doorbell(&queue);
	wait_for_counter(1006);
	CHECK(has_pattern(gtt, GTT_BYTES, 11));
	/* ranges are there again since RESUME, by the same addresses */
	queue_copy(&queue, gtt, registered, SVM_BYTES);
	queue_copy(&queue, registered, vram, SVM_BYTES);
	add_to_counter(1);
	queue_ring_doorbell(&queue);
	wait_for_counter(1007);
	CHECK(has_pattern(gtt, SVM_BYTES, 14));
	CHECK(has_pattern(registered, SVM_BYTES, 11));
	expect_violations(0);
	return 0;
}

static void test_restore(int fd)
{
	struct image image;
	int ready[2], go[2];
	pid_t pid, stranger;
	unsigned i;
	char byte;

	CHECK_INT(pipe(ready) | pipe(go), 0);
	fill_pattern(vram, VRAM_BYTES, 11);
	fill_pattern(gtt, GTT_BYTES, 12);
	fill_pattern(user, USER_BYTES, 13);
	fill_pattern(registered, SVM_BYTES, 14);
	*counter = 1000;
	take_info(fd, &image);
	for (i = 0; i < 5; i++)
		add_to_counter(1);
	queue_ring_doorbell(&queue);
	take_image(fd, &image);
	stranger = fork();
	CHECK(stranger >= 0);
	if (stranger == 0) {
		restore_errors(&image, open("/dev/kfd", O_RDWR));
		_exit(0);
	}
	wait_child(stranger);
	/* the engine's queue has a fixed number: two cannot have it */
	CHECK_INT(hsaKmtDestroyQueue(queue.resource.QueueId), HSAKMT_STATUS_SUCCESS);
	stranger = fork();
	CHECK(stranger >= 0);
	if (stranger == 0)
		_exit(hasty_life(&image));
	wait_child(stranger);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(restored_life(&image, fd, ready[1], go[0]));
	close(ready[1]);
	CHECK_INT(read(ready[0], &byte, 1), 1);
	CHECK_INT(resume(pid), 0);
	CHECK_INT(write(go[1], "x", 1), 1);
	wait_child(pid);
	CHECK_INT(resume(pid), -ESRCH);
	CHECK_INT(*counter, 1000);
	CHECK_INT(simple(fd, KFD_CRIU_OP_UNPAUSE), 0);
	CHECK(has_pattern(gtt, GTT_BYTES, 12));
	CHECK(has_pattern(registered, SVM_BYTES, 14));
}

int main(void)
{
	int fd;

	sim_write("violations", "0");
	kfd_open(&kfd);
	CHECK(kfd.num_gpus > 0);
	fd = kfd_fd();
	CHECK(fd >= 0);
	vram = kfd_alloc(kfd.gpus[0], VRAM_BYTES, 1);
	gtt = kfd_alloc(kfd.gpus[0], GTT_BYTES, 0);
	user = kfd_alloc_user(USER_BYTES);
	registered = kfd_register(SVM_BYTES);
	counter = kfd_alloc(kfd.gpus[0], 4096, 0);
	queue_open(&queue, kfd.gpus[0]);
	test_errors(fd);
	test_pause(fd);
	test_tracer(fd);
	test_restore(fd);
	kfd_free(queue.ring, RING_BYTES);
	queue_open(&queue, kfd.gpus[0]);
	test_nesting(fd);
	printf("criu_self: ok with %u GPUs\n", kfd.num_gpus);
	return 0;
}
