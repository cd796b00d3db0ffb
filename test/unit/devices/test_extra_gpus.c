// SPDX-License-Identifier: GPL-2.0-only
/* Restores where the task sees more GPUs than its image has: the devices of RESTORE, hidden GPUs,
 * and refusals. The image has the GPU of machine "one", the restore runs on "eight". The task is
 * this process. */
#include "fake_kernel.h"

#include <linux/bpf.h>
#include <sys/prctl.h>

#include "amdgpu_plugin_topology.h"
#include "image/image.h"
#include "image_of_one.h"
#include "restore_hooks.h"

#define GPUS      8
#define LOWEST    300
#define PRIV_SIZE (8 + 8 + 64)
#define SVM_SIZE  (24 + 8 * (4 + 1))

/* The bpf() of the kernel. */
static struct {
	int load_error;
	int link_error;
	/* Before so many sleeps of the task, the cgroup has as many programs as it may have. */
	unsigned int full_until;
	unsigned int sleeps;
	int link;
	unsigned int links;
	uint32_t hidden[GPUS];
	size_t num_hidden;
	/* When the task opened /dev/kfd. */
	unsigned int opens;
	bool attached_at_open;
	char name_at_open[16];
} bpf;

/* The minors that the program compares. It also compares a type, the major 226, and a result. */
static void note_program(const union bpf_attr *attributes)
{
	const struct bpf_insn *program = (const void *)(uintptr_t)attributes->insns;

	bpf.num_hidden = 0;
	for (uint32_t i = 0; i < attributes->insn_cnt && bpf.num_hidden < GPUS; i++) {
		if (program[i].code == (BPF_JMP | BPF_JEQ | BPF_K) && program[i].imm >= 128 &&
		    program[i].imm != 226)
			bpf.hidden[bpf.num_hidden++] = (uint32_t)program[i].imm;
	}
}

static long call_bpf(int command, const union bpf_attr *attributes)
{
	int error = command == BPF_PROG_LOAD ? bpf.load_error : bpf.link_error;

	if (command == BPF_LINK_CREATE && bpf.sleeps < bpf.full_until)
		error = E2BIG;
	if (error) {
		errno = error;
		return -1;
	}
	if (command == BPF_PROG_LOAD)
		note_program(attributes);
	else
		bpf.links++;
	bpf.link = openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
	return bpf.link;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	bpf.sleeps++;
	return 0;
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long arguments[6];
	va_list list;

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_bpf)
		return call_bpf((int)arguments[0], (const void *)arguments[1]);
	return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		    arguments[5]);
}

static void note_open(void)
{
	if (bpf.opens++)
		return;
	bpf.attached_at_open = bpf.links && fcntl(bpf.link, F_GETFD) >= 0;
	(void)prctl(PR_GET_NAME, bpf.name_at_open);
}

/* The task is in a cgroup of its own. */
static void make_cgroup(void)
{
	unit_print("self-cgroup", "1:name=systemd:/\n0::/pod/job\n");
	unit_print("self-mountinfo",
		   "30 20 0:26 / /elsewhere rw - cgroup cgroup rw\n"
		   "31 20 0:27 /pod %s rw shared:3 - cgroup2 cgroup2 rw\n",
		   unit_path("cgroup2"));
	unit_print("cgroup2/job/cgroup.type", "domain\n");
}

static int begin(void **state)
{
	int ret = fake_kernel_begin(state);

	memset(&bpf, 0, sizeof(bpf));
	make_cgroup();
	kernel.kfd_opens = note_open;
	kernel.machine = "eight";
	criu_stub.unused_fd = LOWEST;
	(void)add_process(getpid());
	return ret;
}

/* Private data of one GPU, no BOs, an event and, with @svm, an SVM range. */
static void set_priv_data(CriuKfd *image, bool svm)
{
	uint8_t *bytes = calloc(PRIV_SIZE + SVM_SIZE, 1);

	assert_non_null(bytes);
	bytes[0] = 1;
	memset(bytes + 8, 0x55, 8);
	bytes[16] = 1;
	bytes[PRIV_SIZE] = 2;
	image->priv_data.data = bytes;
	image->priv_data.len = svm ? PRIV_SIZE + SVM_SIZE : PRIV_SIZE;
	image->num_of_objects = svm ? 2 : 1;
}

static void write_image(bool svm, uint32_t user_id, size_t cut)
{
	_cleanup_kfd_ CriuKfd *image = new_image_of_one(user_id);

	set_priv_data(image, svm);
	image->priv_data.len -= cut;
	assert_int_equal(image_write_kfd(5, image), 0);
}

static int run_restore(void)
{
	int fd;

	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
	fd = restore_file(5);
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, fd < 0 ? fd : 0);
	return fd;
}

static void assert_refused(const char *why)
{
	assert_true(run_restore() < 0);
	assert_int_equal(kernel.processes[0].calls[KFD_RESTORE], 0);
	assert_logged("Error (amdgpu_plugin): ", why, "renderD");
}

static void leave_cgroup(void)
{
	assert_int_equal(unlink(unit_path("cgroup2/job/cgroup.type")), 0);
}

#define TEST(name) TEST_WITH(name, begin, fake_kernel_end)

TEST(visible_gpus_get_their_own_buckets)
{
	uint32_t mapped;
	_cleanup_close_ int fd = -1;

	leave_cgroup();
	write_image(false, 0xbeef, 0);
	fd = run_restore();
	assert_true(fd >= 0);
	assert_int_equal(kernel.restored.num_devices, GPUS);
	assert_int_equal(kernel.restored.priv_data_size, PRIV_SIZE + 8 * (GPUS - 1));
	assert_int_equal(kernel.restored_devices[0].user_gpu_id, 0xbeef);
	mapped = kernel.restored_devices[0].actual_gpu_id;
	for (size_t i = 1; i < GPUS; i++) {
		const struct kfd_device_bucket *device = &kernel.restored_devices[i];

		assert_int_equal(device->user_gpu_id, device->actual_gpu_id);
		assert_int_not_equal(device->actual_gpu_id, mapped);
		assert_true((int)device->drm_fd >= LOWEST);
		for (size_t j = 1; j < i; j++)
			assert_int_not_equal(device->actual_gpu_id,
					     kernel.restored_devices[j].actual_gpu_id);
	}
	assert_logged("amdgpu_plugin: kfd 5: the task also sees 0x",
		      "the task is in the root cgroup");
}

/* The process knows its GPU by the id of an extra GPU. */
TEST(an_extra_gpu_gets_no_id_that_the_process_knows)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	int fd;

	leave_cgroup();
	/* Its first queue could reach the extra GPU. */
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	assert_int_equal(topology_read(MACHINES "/eight", &topology), 0);
	for (size_t i = 0; i < topology.num_nodes; i++) {
		uint32_t known = topology.nodes[i].gpu_id;

		if (!known)
			continue;
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		write_image(false, known, 0);
		fd = run_restore();
		assert_true(fd >= 0);
		assert_int_equal(kernel.restored.num_devices, GPUS);
		for (size_t j = 0; j < GPUS; j++) {
			assert_int_not_equal(kernel.restored_devices[j].user_gpu_id, 0);
			for (size_t k = 0; k < j; k++)
				assert_int_not_equal(kernel.restored_devices[j].user_gpu_id,
						     kernel.restored_devices[k].user_gpu_id);
		}
		(void)close(fd);
	}
}

/* KFD gives the process only the GPU of the image, so RESTORE has one device. */
static void assert_hidden(void)
{
	char name[16] = "", now[16] = "";
	_cleanup_close_ int fd = -1;

	(void)prctl(PR_GET_NAME, name);
	fd = run_restore();
	assert_true(fd >= 0);
	(void)prctl(PR_GET_NAME, now);
	assert_string_equal(now, name);
	assert_string_not_equal(bpf.name_at_open, name);
	assert_true(bpf.attached_at_open);
	assert_int_equal(bpf.links, 1);
	assert_int_equal(kernel.restored.num_devices, 1);
	assert_int_equal(bpf.num_hidden, GPUS - 1);
	for (size_t i = 0; i < bpf.num_hidden; i++) {
		assert_in_range(bpf.hidden[i], 128, 127 + GPUS);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(bpf.hidden[i], bpf.hidden[j]);
	}
	assert_logged("amdgpu_plugin: ", "a program in the task's cgroup hides");
}

TEST(extra_gpus_are_hidden)
{
	write_image(false, 0xbeef, 0);
	assert_hidden();
	assert_int_equal(kernel.restored.priv_data_size, PRIV_SIZE);
}

/* The other tasks of a large job open /dev/kfd at the same time. */
TEST(a_full_cgroup_has_room_again_soon)
{
	bpf.full_until = 100;
	write_image(true, 0xbeef, 0);
	assert_hidden();
	assert_int_equal(bpf.sleeps, 100);
}

/* Programs of others stay. */
TEST(a_cgroup_that_stays_full_is_refused)
{
	bpf.full_until = UINT_MAX;
	write_image(true, 0xbeef, 0);
	assert_refused("attach a program");
	assert_in_range(bpf.sleeps, 100, 10000);
}

/* A process that has opened /dev/kfd keeps its GPUs. In a stream, the other file may come first. */
TEST(extra_gpus_stay_after_another_open)
{
	CriuKfd empty = CRIU_KFD__INIT;
	_cleanup_close_ int first = -1, second = -1;

	assert_int_equal(image_write_kfd(4, &empty), 0);
	write_image(false, 0xbeef, 0);
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
	assert_int_equal(unlink(unit_path("amdgpu-kfd-5.img")), 0);
	first = restore_file(4);
	write_image(false, 0xbeef, 0);
	second = restore_file(5);
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, 0);
	assert_true(first >= 0 && second >= 0);
	assert_int_equal(bpf.links, 0);
	assert_int_equal(kernel.restored.num_devices, GPUS);
	assert_logged("the task also sees 0x", "the task has opened /dev/kfd already");
}

TEST(extra_gpus_beside_svm_ranges_are_hidden)
{
	write_image(true, 0xbeef, 0);
	assert_hidden();
	assert_int_equal(kernel.restored.priv_data_size, PRIV_SIZE + SVM_SIZE);
}

/* The last GPU of the machine is one of this generation. */
static void add_gpu_of(uint32_t version)
{
	char edit[64];

	(void)snprintf(edit, sizeof(edit), "s/^gfx_target_version .*/gfx_target_version %u/",
		       version);
	change_gpus("eight", "9", edit);
}

static void assert_kept_visible(void)
{
	int fd = run_restore();

	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(kernel.processes[0].calls[KFD_RESTORE], 1);
	kernel.processes[0].calls[KFD_RESTORE] = 0;
}

/* The restore fails before RESTORE, where the driver would answer EPERM. */
TEST(xnack_beside_a_gpu_that_cannot_must_be_hidden)
{
	static const struct {
		uint32_t version;
		const char *noretry;
		bool must_be_hidden;
	} cases[] = {
		/* Vega 20, Raven, MI210, MI300, gfx10 and gfx12.1. */
		{ 90006, "-1\n", true },  { 90006, "1\n", true },  { 90006, "0\n", false },
		{ 90002, "-1\n", false }, { 90002, "1\n", true },  { 90010, "1\n", false },
		{ 90402, "1\n", false },  { 100300, "0\n", true }, { 120500, "0\n", false },
		{ 120500, "-1\n", true },
	};

	bpf.load_error = EPERM;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CriuKfd *image = new_image_of_one(0xbeef);

		print_message("case %zu\n", i);
		add_gpu_of(cases[i].version);
		unit_print("parameter-noretry", "%s", cases[i].noretry);
		set_priv_data(image, false);
		image->priv_data.data[4] = 1;
		assert_int_equal(image_write_kfd(5, image), 0);
		criu_kfd__free_unpacked(image, NULL);
		if (cases[i].must_be_hidden)
			assert_refused("XNACK");
		else
			assert_kept_visible();
	}
}

TEST(extra_gpus_beside_unknown_private_data_are_hidden)
{
	write_image(false, 0xbeef, 1);
	assert_hidden();
}

/* The GPU that has the old id now is none of the process. */
TEST(a_hidden_gpu_may_have_the_id_of_another)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	uint32_t id;

	assert_int_equal(topology_read(MACHINES "/eight", &topology), 0);
	id = topology_find_minor(&topology, 129)->gpu_id;
	(void)unsetenv("AMDGPU_FORCE");
	assert_int_equal(setenv("AMDGPU_DEVICE_MAP", "renderD128=renderD130", 1), 0);
	write_image(false, id, 0);
	assert_hidden();
	(void)unsetenv("AMDGPU_DEVICE_MAP");
}

TEST(what_cannot_be_hidden_is_refused)
{
	bpf.load_error = EPERM;
	write_image(true, 0xbeef, 0);
	assert_refused("device cgroup");
	assert_logged("Error (amdgpu_plugin): ", "SVM", "load a program", "--runtime runc",
		      "Operation not permitted");
	/* The end of the restore repeats it. */
	assert_int_equal(unit_count_errors(), 2);
	unit_forget_lines();
	write_image(false, 0xbeef, 1);
	assert_refused("unknown layout");
	bpf.load_error = 0;
	bpf.link_error = EPERM;
	assert_refused("attach a program");
	assert_int_equal(bpf.opens, 0);
}

TEST(a_task_in_the_root_cgroup_is_refused)
{
	leave_cgroup();
	write_image(true, 0xbeef, 0);
	assert_refused("the task is in the root cgroup");
	unit_print("self-cgroup", "5:devices:/job\n");
	assert_refused("does not see its cgroup");
	unit_print("self-cgroup", "0::/podium\n");
	assert_refused("does not see its cgroup");
	assert_int_equal(bpf.links, 0);
}

/* The first open of /dev/kfd decides, also that of a file without state. */
TEST(a_file_without_state_does_not_open_kfd_too_early)
{
	CriuKfd empty = CRIU_KFD__INIT;
	_cleanup_close_ int first = -1, second = -1;

	write_image(true, 0xbeef, 0);
	assert_int_equal(image_write_kfd(4, &empty), 0);
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
	first = restore_file(4);
	second = restore_file(5);
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, 0);
	assert_true(first >= 0 && second >= 0);
	assert_true(bpf.attached_at_open);
	assert_int_equal(bpf.links, 1);
	assert_int_equal(kernel.restored.num_devices, 1);
}

TEST(svm_ranges_without_extra_gpus_are_restored)
{
	_cleanup_close_ int fd = -1;

	kernel.machine = "one";
	write_image(true, 0xbeef, 0);
	fd = run_restore();
	assert_true(fd >= 0);
	assert_int_equal(kernel.restored.num_devices, 1);
	assert_int_equal(kernel.restored.priv_data_size, PRIV_SIZE + SVM_SIZE);
}

TEST(gpus_without_a_render_node_are_not_used)
{
	kernel.hides_render_nodes = true;
	write_image(false, 0xbeef, 0);
	assert_refused("(cannot open: renderD");
	assert_int_equal(unit_count_lines("is not used: cannot open renderD"), GPUS);
}
