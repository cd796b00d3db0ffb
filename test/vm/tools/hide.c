/* SPDX-License-Identifier: GPL-2.0-only */
/* hide GROUP MINOR...: no process of this cgroup may use the render nodes with these minors, and
 * KFD does not show their GPUs to it. It ends with the cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MINORS_MAX 16
#define DRM_MAJOR  226

#define LOAD(to, offset)                                                                          \
	{                                                                                         \
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (to), .src_reg = 1, .off = (offset) \
	}
#define JUMP(op, value, by)                                                               \
	{                                                                                 \
		.code = BPF_JMP | (op) | BPF_K, .dst_reg = 2, .off = (by), .imm = (value) \
	}
#define SET(value)                                                  \
	{                                                           \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = (value) \
	}
#define END                                \
	{                                  \
		.code = BPF_JMP | BPF_EXIT \
	}

static void bpf(int command, union bpf_attr *attr, const char *what, int *ret_fd)
{
	*ret_fd = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
	if (*ret_fd >= 0)
		return;
	fprintf(stderr, "hide: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The context is struct bpf_cgroup_dev_ctx. The low half of access_type is the type of the node. */
static int load(char **minors, int count)
{
	struct bpf_insn program[MINORS_MAX + 10] = {
		LOAD(2, offsetof(struct bpf_cgroup_dev_ctx, access_type)),
		{ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 2, .imm = 0xffff },
		JUMP(BPF_JNE, BPF_DEVCG_DEV_CHAR, count + 3),
		LOAD(2, offsetof(struct bpf_cgroup_dev_ctx, major)),
		JUMP(BPF_JNE, DRM_MAJOR, count + 1),
		LOAD(2, offsetof(struct bpf_cgroup_dev_ctx, minor)),
	};
	const struct bpf_insn end[] = { SET(1), END, SET(0), END };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE };
	int fd, i, at = 6;

	for (i = 0; i < count; i++)
		program[at++] = (struct bpf_insn)JUMP(BPF_JEQ, atoi(minors[i]), count - i + 1);
	memcpy(program + at, end, sizeof(end));
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = (uint32_t)at + 4;
	attr.license = (uintptr_t) "GPL";
	bpf(BPF_PROG_LOAD, &attr, "BPF_PROG_LOAD", &fd);
	return fd;
}

int main(int argc, char **argv)
{
	union bpf_attr attr = { .attach_type = BPF_CGROUP_DEVICE,
				.attach_flags = BPF_F_ALLOW_MULTI };
	int group, ignored;

	if (argc < 3 || argc - 2 > MINORS_MAX) {
		fprintf(stderr, "usage: hide GROUP MINOR... (%d at most)\n", MINORS_MAX);
		return 2;
	}
	group = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (group < 0) {
		fprintf(stderr, "hide: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	attr.target_fd = (uint32_t)group;
	attr.attach_bpf_fd = (uint32_t)load(argv + 2, argc - 2);
	bpf(BPF_PROG_ATTACH, &attr, "BPF_PROG_ATTACH", &ignored);
	return 0;
}
