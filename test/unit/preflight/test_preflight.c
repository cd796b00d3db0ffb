// SPDX-License-Identifier: GPL-2.0-only
/* Refusals of a process as a whole and by the driver, and docs/refusals.md against the rules.
 * test_preflight_queues.c and test_preflight_bos.c have the other refusals. */
#include "preflight_task.h"

#include "image/image.h"
#include "preflight/preflight.h"

/* A pause would wait for the end of running waves, so the refusal comes before it. */
TEST(a_driver_that_saves_no_waves_is_refused_before_the_pause)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int fd = open_kfd_of(process);

	unit_print("parameter-cwsr_enable", "0\n");
	start_dump();
	assert_fails(dump_file(fd, 5));
	assert_logged("Error (amdgpu_plugin): ", "cwsr_enable=1", "AMDGPU_FORCE=1");
	end_dump(-1);
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
	assert_force_dumps(process, "waves");
	unit_print("parameter-cwsr_enable", "1\n");
	dump_one(fd, 5);
}

/* The driver refuses: the log explains its error, and AMDGPU_FORCE=1 does not help. */
TEST(what_the_driver_refuses_is_explained)
{
	static const struct {
		enum kfd_criu_op op;
		int error;
		const char *words;
	} cases[] = {
		{ KFD_PROCESS_INFO, ENOTTY, "Linux 5.18" },
		{ KFD_PROCESS_INFO, EACCES, "run CRIU there, as root or with this capability" },
		{ KFD_PROCESS_INFO, EBADF, "not part of this dump" },
		{ KFD_PROCESS_INFO, EOPNOTSUPP, "debuggers" },
		{ KFD_CHECKPOINT, EOPNOTSUPP, "this kind of GPU" },
		{ KFD_CHECKPOINT, EACCES, "docs/without-root.md" },
		{ KFD_CHECKPOINT, EINVAL, "cwsr" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process =
			make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });

		print_message("case %zu\n", i);
		kernel.fail_op = cases[i].op;
		kernel.fail_errno = cases[i].error;
		kernel.fail_count = 2;
		assert_refused(process, cases[i].words, strerror(cases[i].error));
		kernel.fail_count = 2;
		assert_final(process, cases[i].words);
		kernel.fail_count = 0;
	}
}

TEST(an_old_driver_is_refused_with_force_too)
{
	struct fake_process *process = make_process();

	kernel.kfd_minor = 7;
	assert_refused(process, "1.7", "Linux 5.18");
	assert_final(process, "1.8");
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
	kernel.kfd_minor = 8;
	dump_process(process);
}

#define REFUSALS "docs/refusals.md"

static const char *const headings[] = {
	[PREFLIGHT_DUMP] = "## The dump",
	[PREFLIGHT_PROCESS] = "## Processes",
	[PREFLIGHT_QUEUE] = "## Queues",
	[PREFLIGHT_BO] = "## BOs",
	[PREFLIGHT_FILE] = "## Files and mappings",
};

/* The next line of the document, without its end, or NULL at the end of the document. */
static char *next_line(FILE *file, char line[static 1024])
{
	if (!fgets(line, 1024, file))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Skips to the first row of the table below @heading. */
static void find_table(FILE *file, const char *heading)
{
	char line[1024];

	do {
		assert_non_null(next_line(file, line));
	} while (strcmp(line, heading) != 0);
	do {
		assert_non_null(next_line(file, line));
	} while (strncmp(line, "| ---", 5) != 0);
}

static void assert_row(FILE *file, const struct preflight_text *text)
{
	char line[1024], begin[1024], end[1024];

	(void)snprintf(begin, sizeof(begin), "| %s | ", text->what);
	(void)snprintf(end, sizeof(end), " | %s | %s |", text->remedy,
		       text->can_be_forced ? "yes" : "no");
	assert_non_null(next_line(file, line));
	print_message("%s\n", line);
	assert_memory_equal(line, begin, strlen(begin));
	/* How the plugin finds out is between them. */
	assert_true(strlen(line) > strlen(begin) + strlen(end));
	assert_string_equal(line + strlen(line) - strlen(end), end);
}

/* Each rule is one row, in the same order, and no table has another row. */
TEST(the_document_has_each_rule)
{
	_cleanup_fclose_ FILE *file = fopen(REFUSALS, "re");
	enum preflight_group group = PREFLIGHT_FILE + 1;
	const struct preflight_text *text;
	char line[1024];

	assert_non_null(file);
	for (size_t i = 0; (text = preflight_get_text(i)); i++) {
		if (text->group != group) {
			assert_true(!i || !*next_line(file, line));
			find_table(file, headings[text->group]);
		}
		group = text->group;
		assert_row(file, text);
	}
	assert_int_equal(group, PREFLIGHT_FILE);
	assert_true(!*next_line(file, line));
}

/* A row that is left out is empty. */
TEST(each_rule_has_a_text)
{
	const struct options options = { 0 };
	const struct dump_session session = { .options = &options };

	for (size_t rule = 0; rule < DUMP_RULES; rule++) {
		const struct preflight_text *text = preflight_get_text(rule);

		assert_true(text->what && text->remedy);
		unit_forget_lines();
		assert_int_equal(preflight_refuse(&session, (enum dump_rule)rule, "object"),
				 -EOPNOTSUPP);
		assert_logged("Error (amdgpu_plugin): object", text->what, text->remedy);
	}
	assert_null(preflight_get_text(DUMP_RULES));
}

TEST(events_that_restore_does_not_make_are_refused)
{
	static const struct {
		uint32_t type;
		bool bad;
	} cases[] = {
		{ 0, false }, { 1, true }, { 2, true }, { 3, false }, { 4, true },
		{ 5, false }, { 6, true }, { 7, true }, { 8, false }, { 9, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process =
			make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });
		char words[64];

		(void)snprintf(words, sizeof(words), "event 1 of type %u", cases[i].type);
		print_message("case %s\n", words);
		kernel.event_type = cases[i].type;
		if (cases[i].bad) {
			assert_refused(process, words, "destroy the event");
			assert_force_dumps(process, words);
		} else {
			dump_process(process);
		}
	}
}

TEST(high_precision_on_gfx950_is_refused)
{
	static const struct {
		const char *gpus, *environment;
		bool bad;
	} cases[] = {
		{ GFX("90500"), "A=1%cHSA_HIGH_PRECISION_MODE=1%cB=2%c", true },
		{ GFX("90500"), "HSA_HIGH_PRECISION_MODE=yes%c", true },
		{ GFX("90500"), "A=1%cHSA_HIGH_PRECISION_MODE=0%cB=2%c", false },
		{ GFX("90500"), "XHSA_HIGH_PRECISION_MODE=1%cHSA_HIGH_PRECISION_MODE=%c", false },
		{ GFX("90402"), "HSA_HIGH_PRECISION_MODE=1%c", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_process *process;

		print_message("case %zu\n", i);
		change_gpus("eight", "*", cases[i].gpus);
		unit_print("environ", cases[i].environment, 0, 0, 0);
		process = make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });
		if (cases[i].bad) {
			assert_refused(process, "HSA_HIGH_PRECISION_MODE",
				       "start the process without");
			assert_force_dumps(process, "HSA_HIGH_PRECISION_MODE");
			continue;
		}
		dump_process(process);
	}
}

/* An fdinfo; without the field if @pasid is 0. */
static void make_fdinfo(const char *name, unsigned int pasid)
{
	if (pasid)
		unit_print(name, "pos:\t0\ndrm-driver:\tamdgpu\npasid:\t%u\n", pasid);
	else
		unit_print(name, "pos:\t0\nflags:\t02100002\n");
}

/* The process sees two GPUs, of the render nodes 128 and 129, and has both open. */
static void make_files(unsigned int process_pasid, unsigned int one, unsigned int other)
{
	unit_print("process/pasid", "%u\n", process_pasid);
	make_fdinfo("fdinfo-128", one);
	make_fdinfo("fdinfo-129", other);
}

TEST(a_file_with_another_pasid_gives_no_vm)
{
	struct fake_process *process = make_process();

	kernel.num_open_renders = 2;
	make_files(32769, 32769, 32770);
	assert_refused(process, "render node", "device cgroup");
	assert_int_equal(process->calls[KFD_CHECKPOINT], 0);
}

/* Sysfs has a process with the same number, whose files are others. */
TEST(a_process_of_the_initial_pid_namespace_is_not_taken_for_one_of_another)
{
	const struct fake_process *process = make_process();

	kernel.num_open_renders = 2;
	make_files(32771, 32771, 32770);
	assert_int_equal(mkdir(unit_path("process/context_0"), 0700), 0);
	kernel.in_pid_namespace = true;
	dump_process(process);
	assert_int_equal(rmdir(unit_path("process/context_0")), 0);
}

/* KFD before Linux 6.5. Sysfs tells the two GPUs of the process if @pasid is not 0. */
static struct fake_process *make_process_of_an_old_kernel(unsigned int pasid)
{
	struct fake_process *process = make_process();

	kernel.kfd_minor = 11;
	if (!pasid)
		return process;
	unit_print("process/pasid", "%u\n", pasid);
	unit_print("process/vram_1997", "0\n");
	unit_print("process/vram_57300", "0\n");
	return process;
}

static void assert_refused_before_a_pause(struct fake_process *process, const char *words)
{
	assert_refused(process, words, "process");
	assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
}

/* UNPAUSE of such a kernel crashes, so no pause may come before the refusal, also by force. */
TEST(a_process_without_a_vm_is_not_paused_on_an_old_kernel)
{
	static const struct {
		unsigned int process, file;
	} pasids[] = {
		/* Without an open render node, with one for graphics, and in another pid namespace.
		 */
		{ 32769, 0 },
		{ 32769, 32770 },
		{ 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pasids); i++) {
		struct fake_process *process = make_process_of_an_old_kernel(pasids[i].process);

		print_message("case %zu\n", i);
		kernel.num_open_renders = pasids[i].file != 0;
		make_fdinfo("fdinfo-128", pasids[i].file);
		assert_refused_before_a_pause(process, "no VM of a GPU");
		assert_final(process, "no VM of a GPU");
		assert_int_equal(process->calls[KFD_PROCESS_INFO], 0);
		(void)unlink(unit_path("process/pasid"));
		(void)unlink(unit_path("process/vram_1997"));
		(void)unlink(unit_path("process/vram_57300"));
		(void)rmdir(unit_path("process"));
		forget_processes();
	}
}

/* Where sysfs does not know the process, one VM is enough. */
TEST(a_process_with_a_vm_is_dumped_on_an_old_kernel)
{
	for (size_t i = 0; i < 2; i++) {
		const struct fake_process *process = make_process_of_an_old_kernel(i ? 32769 : 0);

		print_message("case %zu\n", i);
		kernel.num_open_renders = i ? 2 : 1;
		if (i)
			make_files(32769, 32769, 32769);
		dump_process(process);
		forget_processes();
	}
}

/* Files of the same node, of other drivers, and a process that has no VM and no BO. */
TEST(ordinary_processes_have_a_vm_of_each_gpu)
{
	static const struct {
		unsigned int process, one, other;
	} pasids[] = {
		{ 32769, 32769, 32769 },
		/* Linux 7: each file has its own, and the process has 0. */
		{ 0, 32770, 32771 },
		/* Files that do not tell. */
		{ 32769, 0, 0 },
		/* A driver in which the PASID has another meaning. */
		{ 5, 32770, 32771 },
	};

	for (size_t i = 0; i <= ARRAY_SIZE(pasids); i++) {
		struct fake_process *process;

		print_message("case %zu\n", i);
		forget_processes();
		process = make_process();
		kernel.num_open_renders = 2;
		if (i < ARRAY_SIZE(pasids)) {
			make_files(pasids[i].process, pasids[i].one, pasids[i].other);
		} else {
			process->num_bos = 0;
			kernel.num_open_renders = 0;
		}
		unit_forget_lines();
		dump_process(process);
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
	}
}

static struct fake_process *make_process_without_bos(void)
{
	struct fake_process *process = add_process(tracee);

	add_device(process, GPU_A, GPU_A);
	return process;
}

/* The answer of newer kernels; other errors tell nothing. */
TEST(a_process_without_bos_is_dumped_elsewhere)
{
	static const int errors[] = { EFAULT, EPERM, ENOMEM };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct fake_process *process = make_process_without_bos();

		kernel.no_bo_errno = errors[i];
		unit_forget_lines();
		dump_process(process);
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), i > 0);
		assert_int_equal(unit_count_lines("process without BOs"), i > 0);
	}
}

/* The page with the registers of a GPU and a queue without a ring on it. */
TEST(a_gpu_that_the_job_does_not_use_is_named)
{
	for (unsigned int has_queue = 0; has_queue < 2; has_queue++) {
		const uint32_t gpu_c = 0xa7ac;
		struct fake_process *process =
			make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });

		add_device(process, gpu_c, gpu_c);
		add_bo(process, gpu_c, KFD_BO_MMIO_REMAP, 0x3000, 0x1000, 0);
		if (has_queue)
			process->queues[0].gpu_id = gpu_c;
		unit_forget_lines();
		dump_process(process);
		assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), !has_queue);
		assert_int_equal(
			unit_count_lines("GPU 0xa7ac: the job sees it and does not use it"),
			!has_queue);
	}
}
