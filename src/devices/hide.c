// SPDX-License-Identifier: GPL-2.0-only
/* Builds the program, and attaches it to the cgroup of the task with a BPF link. The kernel runs it
 * beside the programs of the runtime, and each of them can deny an access. */
#include "devices/hide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cgroup.h"
#include "kernel/render_node.h"

/* In the classes of instructions, linux/bpf_common.h has the rest. */
#define LOAD_FIELD (BPF_LDX | BPF_MEM | BPF_W)
#define LOAD_STACK (BPF_LDX | BPF_MEM | BPF_DW)
#define LOAD_VALUE (BPF_LD | BPF_IMM | BPF_DW)
#define MOVE       (BPF_ALU64 | BPF_MOV | BPF_X)
#define MOVE_VALUE (BPF_ALU64 | BPF_MOV | BPF_K)
#define ADD_VALUE  (BPF_ALU64 | BPF_ADD | BPF_K)
#define AND_VALUE  (BPF_ALU64 | BPF_AND | BPF_K)
#define CALL       (BPF_JMP | BPF_CALL)
#define EXIT       (BPF_JMP | BPF_EXIT)
#define IF_EQUAL   (BPF_JMP | BPF_JEQ | BPF_K)
#define IF_SAME    (BPF_JMP | BPF_JEQ | BPF_X)
/* The instructions of an answer. */
#define ANSWER_SIZE 2

/* The type is in the lower half of the field. */
#define TYPE_MASK 0xffff

/* A cgroup has at most 64 programs (BPF_CGROUP_MAX_PROGS). The program of another task leaves as
 * soon as that task has opened /dev/kfd. */
#define WAIT_SECONDS 10
#define POLL_NS      10000000L
#define POLLS_MAX    (WAIT_SECONDS * 1000000000L / POLL_NS)

#define INSN(operation, to, from, distance, value)                                          \
	{                                                                                   \
		.code = (operation), .dst_reg = (to), .src_reg = (from), .off = (distance), \
		.imm = (int32_t)(value),                                                    \
	}
#define ANSWER(allowed) INSN(MOVE_VALUE, 0, 0, 0, allowed), INSN(EXIT, 0, 0, 0, 0)
/* Allows the access unless the condition of the jump is true. */
#define TEST(jump, to, from, value) INSN(jump, to, from, ANSWER_SIZE, value), ANSWER(true)
#define FIELD(name)                 INSN(LOAD_FIELD, 0, 1, offsetof(struct bpf_cgroup_dev_ctx, name), 0)
/* Tests half of the thread's name, at @offset from the top of the stack. */
#define HALF_TEST(offset, half)                                              \
	INSN(LOAD_STACK, 1, 10, offset, 0), INSN(LOAD_VALUE, 2, 0, 0, half), \
		INSN(0, 0, 0, 0, (half) >> 32), TEST(IF_SAME, 1, 2, 0)

size_t hide_build(const uint32_t *minors, size_t count, const char name[HIDE_NAME_SIZE],
		  struct bpf_insn *ret_program)
{
	uint64_t halves[2];

	memcpy(halves, name, sizeof(halves));
	const struct bpf_insn head[] = {
		FIELD(access_type),
		INSN(AND_VALUE, 0, 0, 0, TYPE_MASK),
		TEST(IF_EQUAL, 0, 0, BPF_DEVCG_DEV_CHAR),
		FIELD(major),
		TEST(IF_EQUAL, 0, 0, major(render_node_device(0))),
		FIELD(minor),
	};
	/* Other threads of the cgroup see no change. */
	const struct bpf_insn tail[] = {
		ANSWER(true),
		INSN(MOVE, 1, 10, 0, 0),
		INSN(ADD_VALUE, 1, 0, 0, -HIDE_NAME_SIZE),
		INSN(MOVE_VALUE, 2, 0, 0, HIDE_NAME_SIZE),
		INSN(CALL, 0, 0, 0, BPF_FUNC_get_current_comm),
		TEST(IF_EQUAL, 0, 0, 0),
		HALF_TEST(-HIDE_NAME_SIZE, halves[0]),
		HALF_TEST(-HIDE_NAME_SIZE / 2, halves[1]),
		ANSWER(false),
	};
	struct bpf_insn *tests = ret_program + ARRAY_SIZE(head);

	memcpy(ret_program, head, sizeof(head));
	/* Each jumps over the rest of them, and over the answer. */
	for (size_t i = 0; i < count; i++)
		tests[i] = (struct bpf_insn)INSN(IF_EQUAL, 0, 0,
						 (int16_t)(count - i - 1 + ANSWER_SIZE), minors[i]);
	memcpy(tests + count, tail, sizeof(tail));
	return ARRAY_SIZE(head) + count + ARRAY_SIZE(tail);
}

static int call_bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
	long ret = syscall(SYS_bpf, command, attributes, sizeof(*attributes));

	return ret < 0 ? -errno : (int)ret;
}

static int load(const uint32_t *minors, size_t count, const char name[HIDE_NAME_SIZE])
{
	struct bpf_insn program[HIDE_INSTRUCTIONS_MAX];
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attributes.insn_cnt = (uint32_t)hide_build(minors, count, name, program);
	attributes.insns = (uintptr_t)program;
	attributes.license = (uintptr_t) "GPL";
	return call_bpf(BPF_PROG_LOAD, &attributes);
}

/* Unlike BPF_PROG_ATTACH, a link ends with its last descriptor. -E2BIG: the cgroup is full. */
static int attach(int program, int cgroup)
{
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.link_create.prog_fd = (uint32_t)program;
	attributes.link_create.target_fd = (uint32_t)cgroup;
	attributes.link_create.attach_type = BPF_CGROUP_DEVICE;
	return call_bpf(BPF_LINK_CREATE, &attributes);
}

static int attach_in_time(int program, int cgroup)
{
	int ret = attach(program, cgroup);

	for (long polls = 0; ret == -E2BIG && polls < POLLS_MAX; polls++) {
		(void)nanosleep(&(const struct timespec){ .tv_nsec = POLL_NS }, NULL);
		ret = attach(program, cgroup);
	}
	return ret;
}

/* The root of the hierarchy holds the whole machine, and has no such file. */
static bool is_root(int cgroup)
{
	return faccessat(cgroup, "cgroup.type", F_OK, 0) < 0;
}

/* A name that no other thread has. */
static int choose_name(char name[HIDE_NAME_SIZE])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	memset(name, 0, HIDE_NAME_SIZE);
	(void)snprintf(name, HIDE_NAME_SIZE, "%015" PRIx64, number >> 4);
	return 0;
}

int hide_attach(const uint32_t *minors, size_t count, const char name[HIDE_NAME_SIZE],
		const char **ret_cause)
{
	_cleanup_close_ int cgroup = cgroup_open_own(NULL), program = -1;

	*ret_cause = "too many GPUs are visible";
	if (count > HIDE_MINORS_MAX)
		return -E2BIG;
	*ret_cause = "the task does not see its cgroup (cgroup v2)";
	if (cgroup < 0)
		return cgroup;
	*ret_cause = "the task is in the root cgroup";
	if (is_root(cgroup))
		return -EPERM;
	*ret_cause = "the kernel does not load a program for the device cgroup";
	program = load(minors, count, name);
	if (program < 0)
		return program;
	*ret_cause = "the kernel does not attach a program to the task's cgroup";
	return attach_in_time(program, cgroup);
}

int hide_begin(const uint32_t *minors, size_t count, struct hide *ret_hide, const char **ret_cause)
{
	struct hide hide = { .link = -1 };
	char name[HIDE_NAME_SIZE];

	*ret_cause = "the task cannot get a name of its own";
	if (choose_name(name) < 0 || prctl(PR_GET_NAME, hide.old_name) < 0)
		return -EIO;
	hide.link = hide_attach(minors, count, name, ret_cause);
	if (hide.link < 0)
		return hide.link;
	(void)prctl(PR_SET_NAME, name);
	*ret_hide = hide;
	return 0;
}

void hide_end(struct hide *hide)
{
	if (hide->link < 0)
		return;
	(void)prctl(PR_SET_NAME, hide->old_name);
	fd_close(&hide->link);
}
