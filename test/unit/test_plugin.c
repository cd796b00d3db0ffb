// SPDX-License-Identifier: GPL-2.0-only
/* The plugin as CRIU loads it: its descriptor, its hooks for each version of CRIU, and its answers
 * for files of others. The tests need no GPU. */
#include "host.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "criu/host.h"
#include "criu/log.h"
#include "criu/plugin_abi.h"

extern struct criu_plugin_desc CR_PLUGIN_DESC;

typedef int dump_ext_file(int fd, int id);
typedef int restore_ext_file(int id);
typedef int handle_device_vma(int fd, const struct stat *stat);
typedef int update_vma_map(const char *path, const uint64_t addr, const uint64_t old_offset,
			   uint64_t *new_offset, int *fd);
typedef int resume_devices_late(int pid);
typedef int post_forking(void);
typedef int restore_init(void);
typedef int dump_devices_late(int pid);
typedef int dump_finish(int ret);

#define HOOK(name, number) ((name *)CR_PLUGIN_DESC.hooks[number])

static int begin(void **state)
{
	(void)unsetenv("KFD_NUMA_CHECK");
	return unit_begin(state);
}

#define TEST(name) TEST_WITH(name, begin, unit_end)

TEST(the_descriptor_is_of_version_0_2_and_has_every_hook)
{
	static const unsigned int hooks[] = {
		HOOK_DUMP_EXT_FILE,  HOOK_RESTORE_EXT_FILE,    HOOK_HANDLE_DEVICE_VMA,
		HOOK_UPDATE_VMA_MAP, HOOK_RESUME_DEVICES_LATE, HOOK_POST_FORKING,
		HOOK_RESTORE_INIT,   HOOK_DUMP_DEVICES_LATE,   HOOK_DUMP_FINISH,
	};

	assert_string_equal(CR_PLUGIN_DESC.name, "amdgpu_plugin");
	assert_int_equal(CR_PLUGIN_DESC.version, 0x200);
	/* This program hides its table of hooks, whose size tells the version of CRIU. */
	assert_int_equal(CR_PLUGIN_DESC.max_hooks, 10);
	assert_non_null(CR_PLUGIN_DESC.init);
	assert_non_null(CR_PLUGIN_DESC.exit);
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++)
		assert_non_null(CR_PLUGIN_DESC.hooks[hooks[i]]);
	/* Hooks 0, 1 and 4 to 6 are for other kinds of files. With them, CRIU would ask the plugin
	 * about such files. */
	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(CR_PLUGIN_DESC.hooks[i] != NULL, i == 2 || i == 3);
}

/* The offsets that CRIU uses on 64-bit machines. */
TEST(the_descriptor_is_laid_out_as_criu_reads_it)
{
	assert_int_equal(offsetof(struct criu_plugin_desc, init), 8);
	assert_int_equal(offsetof(struct criu_plugin_desc, exit), 16);
	assert_int_equal(offsetof(struct criu_plugin_desc, version), 24);
	assert_int_equal(offsetof(struct criu_plugin_desc, max_hooks), 28);
	assert_int_equal(offsetof(struct criu_plugin_desc, hooks), 32);
}

struct foreign_file {
	const char *name;
	int fd;
};

/* Opens one file of each kind that the plugin does not handle. */
static void open_foreign(struct foreign_file files[static 9])
{
	int pair[2], pipes[2];

	unit_print("regular", "text");
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	(void)close(pipes[1]);
	(void)close(pair[1]);
	files[0] = (struct foreign_file){ "regular file",
					  open(unit_path("regular"), O_RDWR | O_CLOEXEC) };
	files[1] = (struct foreign_file){ "directory", open("/", O_RDONLY | O_CLOEXEC) };
	files[2] = (struct foreign_file){ "pipe", pipes[0] };
	files[3] = (struct foreign_file){ "socket", pair[0] };
	files[4] = (struct foreign_file){ "/dev/null", open("/dev/null", O_RDWR | O_CLOEXEC) };
	files[5] = (struct foreign_file){ "/dev/zero", open("/dev/zero", O_RDWR | O_CLOEXEC) };
	files[6] = (struct foreign_file){ "eventfd", eventfd(0, EFD_CLOEXEC) };
	files[7] = (struct foreign_file){ "memfd", memfd_create("kfd", MFD_CLOEXEC) };
	files[8] = (struct foreign_file){ "path", open("/dev/null", O_PATH | O_CLOEXEC) };
	for (unsigned int i = 0; i < 9; i++)
		assert_true(files[i].fd >= 0);
}

TEST(a_dump_does_not_handle_foreign_files)
{
	struct foreign_file files[9];

	open_foreign(files);
	for (int stage = STAGE_DUMP; stage <= STAGE_PRE_DUMP; stage++) {
		assert_int_equal(CR_PLUGIN_DESC.init(stage), 0);
		for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
			struct stat stat;

			print_message("case %s\n", files[i].name);
			assert_int_equal(fstat(files[i].fd, &stat), 0);
			assert_int_equal(HOOK(dump_ext_file, HOOK_DUMP_EXT_FILE)(files[i].fd, 5),
					 -ENOTSUP);
			assert_int_equal(
				HOOK(handle_device_vma, HOOK_HANDLE_DEVICE_VMA)(files[i].fd, &stat),
				-ENOTSUP);
		}
		CR_PLUGIN_DESC.exit(stage, 0);
	}
	assert_int_equal(HOOK(dump_ext_file, HOOK_DUMP_EXT_FILE)(-1, 5), -ENOTSUP);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		(void)close(files[i].fd);
	/* The images of a dump without GPU do not need the plugin, and the log does
	 * not mention it. */
	assert_int_equal(unit_criu()->notes, 0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

TEST(a_restore_does_not_handle_foreign_files)
{
	static const char *const paths[] = {
		"/dev/null", "/dev/kfd", "/dev/dri/renderD128",
		"/dev/mem",  "",         "/dev/shm/hsakmt_shared_mem"
	};
	uint64_t offset = 42;
	int fd = 43;

	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
	assert_int_equal(HOOK(restore_init, HOOK_RESTORE_INIT)(), -ENOTSUP);
	assert_int_equal(HOOK(restore_ext_file, HOOK_RESTORE_EXT_FILE)(7), -ENOTSUP);
	assert_int_equal(HOOK(post_forking, HOOK_POST_FORKING)(), -ENOTSUP);
	/* A task without KFD state may have paths like those of GPUs. */
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_int_equal(HOOK(update_vma_map, HOOK_UPDATE_VMA_MAP)(paths[i], 0x1000, 0,
									   &offset, &fd),
				 -ENOTSUP);
	assert_int_equal(offset, 42);
	assert_int_equal(fd, 43);
	assert_int_equal(HOOK(resume_devices_late, HOOK_RESUME_DEVICES_LATE)(getpid()), -ENOTSUP);
	assert_int_equal(HOOK(resume_devices_late, HOOK_RESUME_DEVICES_LATE)(0x7fffffff), -ENOTSUP);
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, 0);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 0);
}

TEST(a_dump_without_gpu_has_nothing_to_finish)
{
	static const int results[] = { 0, -1, -ENOSPC };

	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		assert_int_equal(CR_PLUGIN_DESC.init(STAGE_DUMP), 0);
		assert_int_equal(HOOK(dump_devices_late, HOOK_DUMP_DEVICES_LATE)(getpid()),
				 -ENOTSUP);
		assert_int_equal(HOOK(dump_finish, HOOK_DUMP_FINISH)(results[i]), -ENOTSUP);
		assert_int_equal(HOOK(dump_finish, HOOK_DUMP_FINISH)(-1), -ENOTSUP);
		CR_PLUGIN_DESC.exit(STAGE_DUMP, results[i]);
	}
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

TEST(a_restore_does_not_handle_images_of_other_plugins)
{
	unit_print("amdgpu-kfd-8.img", "not 7");
	unit_print("ext-files-7.img", "theirs");
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
	assert_int_equal(HOOK(restore_ext_file, HOOK_RESTORE_EXT_FILE)(7), -ENOTSUP);
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, 0);
}

TEST(a_damaged_image_is_an_error_and_not_foreign)
{
	static const char *const names[] = { "amdgpu-kfd-7.img", "amdgpu-renderD-7.img" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int ret;

		unit_print(names[i], "damaged");
		assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
		ret = HOOK(restore_ext_file, HOOK_RESTORE_EXT_FILE)(7);
		CR_PLUGIN_DESC.exit(STAGE_RESTORE, -1);
		assert_in_range(-ret, 1, 4095);
		assert_int_not_equal(ret, -ENOTSUP);
		assert_logged("Error (amdgpu_plugin): ", names[i]);
		(void)unlink(unit_path("%s", names[i]));
	}
}

TEST(only_a_restore_reads_the_inventory)
{
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_DUMP), 0);
	CR_PLUGIN_DESC.exit(STAGE_DUMP, 0);
	assert_int_equal(unit_criu()->claims, 0);
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, 0);
	assert_int_equal(unit_criu()->claims, 1);
	assert_string_equal(unit_criu()->name, "amdgpu_plugin");
}

TEST(an_invalid_option_fails_the_load_of_the_plugin)
{
	for (int stage = STAGE_DUMP; stage <= STAGE_RESTORE; stage++) {
		unit_forget_lines();
		assert_int_equal(setenv("KFD_NUMA_CHECK", "perhaps", 1), 0);
		assert_true(CR_PLUGIN_DESC.init(stage) < 0);
		assert_logged("Error (amdgpu_plugin): ", "KFD_NUMA_CHECK", "\"perhaps\"");
		(void)unsetenv("KFD_NUMA_CHECK");
		assert_int_equal(CR_PLUGIN_DESC.init(stage), 0);
		CR_PLUGIN_DESC.exit(stage, 0);
	}
}

/* The path of the built plugin, relative to this program. */
static const char *plugin_file(void)
{
	static char path[512];
	char self[400];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(length > 0);
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	(void)snprintf(path, sizeof(path), "%s/../amdgpu_plugin.so", self);
	if (access(path, R_OK) < 0)
		fail_msg("%s: not built; make all comes first", path);
	return path;
}

static void run(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Runs a shell command, which must succeed, and returns its output. */
static void run(char *text, size_t size, const char *format, ...)
{
	char command[2048];
	va_list arguments;
	size_t length;
	FILE *pipe;

	va_start(arguments, format);
	(void)vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	length = fread(text, 1, size - 1, pipe);
	text[length] = '\0';
	if (pclose(pipe) != 0)
		fail_msg("%s: %s", command, text);
}

TEST(the_plugin_exports_only_its_descriptor)
{
	char text[65536];

	run(text, sizeof(text),
	    "nm -D --defined-only --format=posix %s | sed 's/ .*//; /^__odr_asan/d'",
	    plugin_file());
	assert_string_equal(text, "CR_PLUGIN_DESC\n");
}

/* dlopen() binds functions lazily, but fails if CRIU lacks a variable. */
TEST(the_plugin_imports_functions_of_criu_and_no_variables)
{
	static const char *const wanted[] = { "criu_get_image_dir", "fdstore_add",
					      "fdstore_get",        "find_unused_fd_pid",
					      "img_streamer_open",  "print_on_level" };
	size_t num_wanted = 0;
	char text[65536];

	run(text, sizeof(text), "readelf -rW %s | awk '$3 ~ /COPY/'", plugin_file());
	assert_string_equal(text, "");
	run(text, sizeof(text),
	    "nm -D --undefined-only --format=posix %s | awk '$2 == \"U\" { sub(/@.*/, \"\"); print $1 }'"
	    " | sort",
	    plugin_file());
	for (const char *name = strtok(text, "\n"); name; name = strtok(NULL, "\n")) {
		/* This program has the libraries of the plugin, and exports nothing. */
		if (dlsym(RTLD_DEFAULT, name))
			continue;
		assert_true(num_wanted < ARRAY_SIZE(wanted));
		assert_string_equal(name, wanted[num_wanted++]);
	}
	assert_int_equal(num_wanted, ARRAY_SIZE(wanted));
}

/* Sanitizers add libraries of their own and disable the checks of the C library. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif
#ifdef __OPTIMIZE__
#define IS_OPTIMIZED true
#else
#define IS_OPTIMIZED false
#endif

TEST(the_plugin_is_hardened)
{
	char text[65536];

	run(text, sizeof(text), "readelf -lW %s | awk '$1 == \"GNU_RELRO\" { print $1 }'",
	    plugin_file());
	assert_string_equal(text, "GNU_RELRO\n");
	run(text, sizeof(text), "readelf -lW %s | awk '$1 == \"GNU_STACK\" { print $(NF - 1) }'",
	    plugin_file());
	assert_string_equal(text, "RW\n");
	run(text, sizeof(text), "readelf -lW %s | awk '$1 == \"LOAD\" && /W/ && / [RW ]*E /'",
	    plugin_file());
	assert_string_equal(text, "");
	run(text, sizeof(text), "readelf -dW %s | grep TEXTREL || :", plugin_file());
	assert_string_equal(text, "");
	run(text, sizeof(text), "nm -D --format=posix %s | sed 's/[@ ].*//' | grep '_chk'",
	    plugin_file());
	assert_non_null(strstr(text, "__stack_chk_fail\n"));
	if (IS_OPTIMIZED && !IS_SANITIZED)
		assert_non_null(strstr(text, "__snprintf_chk\n"));
}

/* Checked variants such as __read_chk() would bypass the calls that tests replace. */
TEST(the_plugin_calls_no_checked_variant_of_a_replaced_call)
{
	char text[65536];

	run(text, sizeof(text),
	    "nm -D --undefined-only --format=posix %s | sed 's/[@ ].*//' |"
	    " sed '/^__asan_/d' | grep -E '_chk$|_2$' | grep -vE '^__(v?s?n?printf|mem[a-z]+|st[rp][a-z]+)_chk$' || :",
	    plugin_file());
	assert_string_equal(text, "");
}

/* README.md lists them for packagers. */
TEST(the_plugin_needs_three_libraries_and_glibc_2_34)
{
	char text[65536];

	run(text, sizeof(text),
	    "readelf -dW %s | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p' |"
	    " grep -vE '^lib([a-z]san|ubsan)\\.|^ld-linux' | sort",
	    plugin_file());
	assert_string_equal(text,
			    "libc.so.6\nlibdrm_amdgpu.so.1\nlibprotobuf-c.so.1\nlibxxhash.so.0\n");
	run(text, sizeof(text), "readelf -VW %s | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1",
	    plugin_file());
	/* A newer glibc replaces functions that the plugin uses. */
	if (strcmp(gnu_get_libc_version(), "2.36") <= 0)
		assert_string_equal(text, "GLIBC_2.34\n");
}

static char last_line[128];

static void keep_line(const char *line)
{
	(void)snprintf(last_line, sizeof(last_line), "%s", line);
}

/* crun and runc select lines of CRIU's log by their prefixes. */
TEST(log_lines_have_the_prefixes_of_criu)
{
	unit_criu()->printed = keep_line;
	assert_int_equal(log_error(-EIO, "kfd %d: cannot save", 7), -EIO);
	assert_string_equal(last_line,
			    "Error (amdgpu_plugin): kfd 7: cannot save: Input/output error\n");
	(void)log_error(0, "kfd 7: cannot save");
	assert_string_equal(last_line, "Error (amdgpu_plugin): kfd 7: cannot save\n");
	log_warn("kfd 7: saved in part");
	assert_string_equal(last_line, "Warn  (amdgpu_plugin): kfd 7: saved in part\n");
	log_info("kfd 7: saved");
	assert_string_equal(last_line, "amdgpu_plugin: kfd 7: saved\n");
	log_debug("kfd 7: saves");
	assert_string_equal(last_line, "amdgpu_plugin: kfd 7: saves\n");
}
