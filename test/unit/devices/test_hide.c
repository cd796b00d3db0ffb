// SPDX-License-Identifier: GPL-2.0-only
/* The program that hides GPUs: its answers, by an interpreter of its few instructions, and in a
 * cgroup of this machine, where the kernel allows that. */
#include "host.h"

#include <sys/prctl.h>
#include <sys/sysmacros.h>

#include "devices/hide.h"

#define STACK_SIZE 512

struct access {
	uint32_t type;
	uint32_t major;
	uint32_t minor;
};

struct machine {
	uint64_t registers[11];
	uint8_t stack[STACK_SIZE];
	struct bpf_cgroup_dev_ctx context;
	char name[HIDE_NAME_SIZE];
};

static uint64_t load(const struct bpf_insn *insn, const struct machine *machine)
{
	const uint8_t *from =
		(const uint8_t *)(uintptr_t)machine->registers[insn->src_reg] + insn->off;
	uint64_t value = 0;

	memcpy(&value, from, insn->code == (BPF_LDX | BPF_MEM | BPF_DW) ? 8 : 4);
	return value;
}

static void call(struct machine *machine, int function)
{
	assert_int_equal(function, BPF_FUNC_get_current_comm);
	assert_int_equal(machine->registers[2], HIDE_NAME_SIZE);
	memcpy((void *)(uintptr_t)machine->registers[1], machine->name, HIDE_NAME_SIZE);
	machine->registers[0] = 0;
	/* The kernel forgets them, too. */
	for (size_t i = 1; i < 6; i++)
		machine->registers[i] = 0xdeadbeef;
}

/* Whether the instruction jumps. */
static bool step(struct machine *machine, const struct bpf_insn *insn)
{
	uint64_t *to = &machine->registers[insn->dst_reg];
	uint64_t from = machine->registers[insn->src_reg];

	switch (insn->code) {
	case BPF_LDX | BPF_MEM | BPF_W:
	case BPF_LDX | BPF_MEM | BPF_DW:
		*to = load(insn, machine);
		return false;
	case BPF_LD | BPF_IMM | BPF_DW:
		*to = (uint32_t)insn[0].imm | (uint64_t)(uint32_t)insn[1].imm << 32;
		return false;
	case BPF_ALU64 | BPF_MOV | BPF_X:
		*to = from;
		return false;
	case BPF_ALU64 | BPF_MOV | BPF_K:
		*to = (uint64_t)(int64_t)insn->imm;
		return false;
	case BPF_ALU64 | BPF_ADD | BPF_K:
		*to += (uint64_t)(int64_t)insn->imm;
		return false;
	case BPF_ALU64 | BPF_AND | BPF_K:
		*to &= (uint64_t)(int64_t)insn->imm;
		return false;
	case BPF_JMP | BPF_CALL:
		call(machine, insn->imm);
		return false;
	case BPF_JMP | BPF_JEQ | BPF_K:
		return *to == (uint64_t)(int64_t)insn->imm;
	case BPF_JMP | BPF_JEQ | BPF_X:
		return *to == from;
	default:
		fail_msg("instruction 0x%x", insn->code);
		return false;
	}
}

static uint64_t run(const struct bpf_insn *program, size_t count, const char *name,
		    const struct access *access)
{
	struct machine machine = { .context = { (BPF_DEVCG_ACC_READ << 16) | access->type,
						access->major, access->minor } };
	size_t at = 0;

	(void)strncpy(machine.name, name, sizeof(machine.name) - 1);
	machine.registers[1] = (uintptr_t)&machine.context;
	machine.registers[10] = (uintptr_t)machine.stack + STACK_SIZE;
	while (program[at].code != (BPF_JMP | BPF_EXIT)) {
		const struct bpf_insn *insn = &program[at];

		at += step(&machine, insn) ? (size_t)(insn->off + 1) : 1;
		at += insn->code == (BPF_LD | BPF_IMM | BPF_DW);
		assert_true(at < count);
	}
	return machine.registers[0];
}

UNIT_TEST(only_the_thread_itself_is_denied_the_hidden_minors)
{
	static const uint32_t minors[] = { 129, 130, 256 };
	static const char name[HIDE_NAME_SIZE] = "0123456789abcde";
	static const struct {
		struct access access;
		const char *name;
		bool allowed;
	} cases[] = {
		{ { BPF_DEVCG_DEV_CHAR, 226, 129 }, "0123456789abcde", false },
		{ { BPF_DEVCG_DEV_CHAR, 226, 130 }, "0123456789abcde", false },
		{ { BPF_DEVCG_DEV_CHAR, 226, 256 }, "0123456789abcde", false },
		{ { BPF_DEVCG_DEV_CHAR, 226, 128 }, "0123456789abcde", true },
		{ { BPF_DEVCG_DEV_CHAR, 226, 131 }, "0123456789abcde", true },
		{ { BPF_DEVCG_DEV_CHAR, 225, 129 }, "0123456789abcde", true },
		{ { BPF_DEVCG_DEV_BLOCK, 226, 129 }, "0123456789abcde", true },
		/* Other threads: the difference is in the first half or in the second. */
		{ { BPF_DEVCG_DEV_CHAR, 226, 129 }, "criu", true },
		{ { BPF_DEVCG_DEV_CHAR, 226, 129 }, "1123456789abcde", true },
		{ { BPF_DEVCG_DEV_CHAR, 226, 129 }, "0123456789abcdf", true },
		{ { BPF_DEVCG_DEV_CHAR, 226, 129 }, "01234567", true },
	};
	struct bpf_insn program[HIDE_INSTRUCTIONS_MAX];
	size_t count = hide_build(minors, ARRAY_SIZE(minors), name, program);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		assert_int_equal(run(program, count, cases[i].name, &cases[i].access),
				 cases[i].allowed);
	}
}

UNIT_TEST(the_largest_program_fits)
{
	struct bpf_insn program[HIDE_INSTRUCTIONS_MAX];
	uint32_t minors[HIDE_MINORS_MAX];
	size_t count;

	for (uint32_t i = 0; i < HIDE_MINORS_MAX; i++)
		minors[i] = 128 + i;
	count = hide_build(minors, HIDE_MINORS_MAX, "name-of-15-byte", program);
	assert_true(count <= HIDE_INSTRUCTIONS_MAX);
	for (uint32_t i = 120; i < 128 + HIDE_MINORS_MAX + 8; i++)
		assert_int_equal(run(program, count, "name-of-15-byte",
				     &(struct access){ BPF_DEVCG_DEV_CHAR, 226, i }),
				 i < 128 || i >= 128 + HIDE_MINORS_MAX);
}

/* A cgroup of the test's own, with this process in it. */
static struct {
	char root[256];
	char path[300];
} cgroup;

static bool find_root(void)
{
	char type[64], line[1024];
	_cleanup_fclose_ FILE *file = fopen("/proc/self/mounts", "re");
	bool found = false;

	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*s %255s %63s", cgroup.root, type) == 2 &&
			!strcmp(type, "cgroup2");
	return found;
}

static bool enter(const char *path)
{
	char name[400];
	FILE *file;
	bool good;

	(void)snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	file = fopen(name, "we");
	if (!file)
		return false;
	good = fprintf(file, "%d\n", getpid()) > 0;
	return fclose(file) == 0 && good;
}

/* In a child, as a cgroup cannot be left to where the process was by an unprivileged one. */
static bool enter_scratch(void)
{
	if (geteuid() || !find_root())
		return false;
	(void)snprintf(cgroup.path, sizeof(cgroup.path), "%s/amdgpu-plugin-unit-%d", cgroup.root,
		       getpid());
	return mkdir(cgroup.path, 0755) == 0 && enter(cgroup.path);
}

static int open_null(void)
{
	int fd = open(unit_path("null"), O_RDONLY | O_CLOEXEC);
	int ret = fd < 0 ? -errno : 0;

	fd_close(&fd);
	return ret;
}

/* The child opens a node with a number of render nodes: ENXIO without such a device, or it is
 * there; the cgroup answers before that. */
static int try_in_cgroup(void)
{
	static const uint32_t minors[] = { 250, 251 };
	char before[HIDE_NAME_SIZE] = "", during[HIDE_NAME_SIZE] = "", after[HIDE_NAME_SIZE] = "";
	struct hide hide = { .link = -1 };
	const char *cause = NULL;
	int allowed, ret;

	if (mknod(unit_path("null"), S_IFCHR | 0600, makedev(226, 250)) < 0)
		return UNIT_REFUSED;
	allowed = open_null();
	if (allowed == -EPERM || allowed == -EACCES)
		return UNIT_REFUSED;
	(void)prctl(PR_GET_NAME, before);
	ret = hide_begin(minors, ARRAY_SIZE(minors), &hide, &cause);
	if (ret == -EPERM || ret == -EINVAL || ret == -ENOSYS) {
		printf("%s: %s\n", cause, strerror(-ret));
		return UNIT_REFUSED;
	}
	(void)prctl(PR_GET_NAME, during);
	if (ret < 0 || open_null() != -EPERM || !strcmp(before, during))
		return 1;
	hide_end(&hide);
	(void)prctl(PR_GET_NAME, after);
	return open_null() == allowed && !strcmp(before, after) ? 0 : 2;
}

/* Not in the root of the hierarchy. */
static int try_in_root(void)
{
	struct hide hide;
	const char *cause = NULL;

	if (!enter(cgroup.root))
		return UNIT_REFUSED;
	return hide_begin(&(uint32_t){ 250 }, 1, &hide, &cause) == -EPERM &&
			       strstr(cause, "root cgroup")
		       ? 0
		       : 3;
}

static void run_in_cgroup(int (*function)(void))
{
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int result = UNIT_REFUSED;

		if (enter_scratch()) {
			result = function();
			(void)enter(cgroup.root);
			(void)rmdir(cgroup.path);
		}
		(void)fflush(stdout);
		_exit(result);
	}
	assert_int_equal(unit_wait(pid), 0);
}

UNIT_TEST(the_kernel_denies_until_the_end)
{
	run_in_cgroup(try_in_cgroup);
}

UNIT_TEST(the_root_cgroup_is_left_alone)
{
	run_in_cgroup(try_in_root);
}
