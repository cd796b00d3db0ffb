// SPDX-License-Identifier: GPL-2.0-only
/* The file and the semaphore that processes with old libhsakmt share. The tests create both in
 * their own directory, and never touch those of the machine. */
#include "host.h"

#include <semaphore.h>
#include <sys/mman.h>

#include "kernel/hsakmt_shm.h"

#define FILE_NAME      "hsakmt_shared_mem"
#define SEMAPHORE_NAME "/hsakmt_semaphore"
#define SEMAPHORE_FILE "sem.hsakmt_semaphore"

static struct {
	sem_t semaphore;
	unsigned int opens;
	unsigned int closes;
	unsigned int value;
	mode_t mode;
	bool fails;
} fake;

int shm_open(const char *name, int flags, mode_t mode)
{
	if (strcmp(name, "/" FILE_NAME))
		assert_string_equal(name, "/" SEMAPHORE_FILE);
	/* glibc adds the same flag. */
	return open(unit_path("%s", name + 1), flags | O_NOFOLLOW, mode);
}

int shm_unlink(const char *name)
{
	assert_string_equal(name, "/" FILE_NAME);
	return unlink(unit_path("%s", name + 1));
}

sem_t *sem_open(const char *name, int flags, ...)
{
	va_list arguments;

	assert_string_equal(name, SEMAPHORE_NAME);
	/* A semaphore that exists must keep its value. */
	assert_int_equal(flags & (O_CREAT | O_EXCL), O_CREAT);
	va_start(arguments, flags);
	/* The kernel applies the umask. */
	fake.mode = va_arg(arguments, mode_t) & ~umask(0);
	fake.value = va_arg(arguments, unsigned int);
	va_end(arguments);
	if (fake.fails) {
		errno = ENOSPC;
		return SEM_FAILED;
	}
	fake.opens++;
	return &fake.semaphore;
}

int sem_close(sem_t *semaphore)
{
	assert_ptr_equal(semaphore, &fake.semaphore);
	fake.closes++;
	return 0;
}

static int begin(void **state)
{
	fake.opens = fake.closes = fake.value = 0;
	fake.fails = false;
	return unit_begin(state);
}

static int restore(uint64_t size, uint32_t magic)
{
	const struct hsakmt_shm shared = { .size = size, .magic = magic };

	return hsakmt_shm_restore(&shared);
}

#define TEST(name) TEST_WITH(name, begin, unit_end)

TEST(size_first_word_and_modes_are_saved)
{
	struct hsakmt_shm shared;

	unit_write(FILE_NAME, "\x78\x56\x34\x12rest", 8);
	unit_write(SEMAPHORE_FILE, "semaphore", 9);
	assert_int_equal(chmod(unit_path(FILE_NAME), 0640), 0);
	assert_int_equal(chmod(unit_path(SEMAPHORE_FILE), 0664), 0);
	assert_int_equal(hsakmt_shm_read(&shared), 0);
	assert_int_equal(shared.size, 8);
	assert_int_equal(shared.magic, 0x12345678);
	assert_int_equal(shared.mode, 0640);
	assert_int_equal(shared.semaphore_mode, 0664);
}

TEST(a_file_shorter_than_a_word_is_not_saved)
{
	struct hsakmt_shm shared = { 42, 42, 42, 42 };

	unit_write(FILE_NAME, "abc", 3);
	assert_int_equal(hsakmt_shm_read(&shared), 0);
	assert_int_equal(shared.size, 0);
	assert_int_equal(shared.magic, 0);
}

static void make_link(const char *path)
{
	assert_int_equal(symlink("/dev/zero", path), 0);
}

static void make_pipe(const char *path)
{
	assert_int_equal(mkfifo(path, 0666), 0);
}

static void make_directory(const char *path)
{
	assert_int_equal(mkdir(path, 0777), 0);
}

static void make_socket(const char *path)
{
	assert_int_equal(mknod(path, S_IFSOCK | 0666, 0), 0);
}

static void make_large_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
}

/* Any user can create these in /dev/shm. */
static const struct {
	const char *what;
	void (*make)(const char *path);
} wrong_files[] = {
	{ "link", make_link },     { "pipe", make_pipe },        { "directory", make_directory },
	{ "socket", make_socket }, { "large", make_large_file },
};

/* An open of a FIFO would block while the queues are stopped. The others would fail every dump or
 * restore. Calls @check with each of them at the path of @name. */
static void for_each_wrong(const char *name, const char *level, void (*check)(void))
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong_files); i++) {
		print_message("case %s\n", wrong_files[i].what);
		unit_forget_lines();
		wrong_files[i].make(unit_path("%s", name));
		(void)alarm(60);
		check();
		(void)alarm(0);
		assert_logged(level, name);
		assert_int_equal(remove(unit_path("%s", name)), 0);
	}
}

static void assert_saves(uint64_t size)
{
	struct hsakmt_shm shared = { 42, 42, 42, 42 };

	assert_int_equal(hsakmt_shm_read(&shared), 0);
	assert_int_equal(shared.size, size);
	assert_int_equal(shared.semaphore_mode, 0);
}

static void check_file(void)
{
	assert_saves(0);
}

TEST(a_file_of_another_type_is_not_saved)
{
	for_each_wrong(FILE_NAME, "Warn  (amdgpu_plugin): ", check_file);
}

static void check_semaphore(void)
{
	assert_saves(8);
}

TEST(a_semaphore_of_another_type_has_no_mode)
{
	unit_write(FILE_NAME, "8 bytes.", 8);
	for_each_wrong(SEMAPHORE_FILE, "Warn  (amdgpu_plugin): ", check_semaphore);
}

static void check_refused(void)
{
	assert_int_equal(restore(8, 1), -EINVAL);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	assert_int_equal(fake.opens, 0);
}

TEST(a_semaphore_of_another_type_is_refused)
{
	for_each_wrong(SEMAPHORE_FILE, "Error (amdgpu_plugin): ", check_refused);
	unit_write(SEMAPHORE_FILE, "of 32 bytes, as the library's is", 32);
	assert_int_equal(restore(8, 1), 0);
	assert_int_equal(fake.opens, 1);
}

static mode_t mode_of_file(void)
{
	struct stat stat;

	assert_int_equal(lstat(unit_path(FILE_NAME), &stat), 0);
	return stat.st_mode & 0777;
}

/* CRIU refuses to restore a mapping if the permissions of its file have changed. */
TEST(file_and_semaphore_are_created_as_saved)
{
	const struct hsakmt_shm shared = { 8, 0x12345678, 0666, 0664 };
	mode_t old = umask(077);
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;

	assert_int_equal(hsakmt_shm_restore(&shared), 0);
	(void)umask(old);
	bytes = unit_read(FILE_NAME, &size);
	assert_int_equal(size, 8);
	assert_memory_equal(bytes, "\x78\x56\x34\x12\0\0\0\0", 8);
	assert_int_equal(mode_of_file(), 0666);
	assert_int_equal(fake.mode, 0664);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(fake.closes, 1);
	assert_int_equal(fake.value, 1);
}

TEST(images_without_modes_get_the_default_mode)
{
	assert_int_equal(restore(8, 1), 0);
	assert_int_equal(mode_of_file(), 0644);
	assert_int_equal(fake.mode, 0644);
}

TEST(an_existing_file_keeps_its_contents)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;

	unit_write(FILE_NAME, "theirs of 16 byt", 16);
	assert_int_equal(restore(8, 0x12345678), 0);
	bytes = unit_read(FILE_NAME, &size);
	assert_int_equal(size, 16);
	assert_memory_equal(bytes, "theirs of 16 byt", 16);
}

TEST(invalid_sizes_are_refused)
{
	static const uint64_t sizes[] = { 1, 3, (1 << 20) + 1, 1ULL << 40, UINT64_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unit_forget_lines();
		assert_fails(restore(sizes[i], 1));
		assert_logged("Error (amdgpu_plugin): ", FILE_NAME);
		assert_false(unit_exists(FILE_NAME));
	}
}

TEST(a_failed_creation_is_an_error_and_leaves_no_file)
{
	int ret;

	unit_limit_files(0);
	ret = restore(8, 1);
	unit_unlimit_files();
	assert_int_equal(ret, -EFBIG);
	assert_logged("Error (amdgpu_plugin): ", FILE_NAME);
	/* The next restore would take the file for a complete one. */
	assert_false(unit_exists(FILE_NAME));
	fake.fails = true;
	unit_forget_lines();
	assert_int_equal(restore(8, 1), -ENOSPC);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
}

TEST(invalid_modes_are_refused)
{
	static const mode_t modes[] = { 04755, 02644, 01666, 0100644, 0xffffffff };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct hsakmt_shm shared = { .size = 8, .magic = 1, .mode = modes[i] };

		assert_int_equal(hsakmt_shm_restore(&shared), -EINVAL);
		shared.mode = 0;
		shared.semaphore_mode = modes[i];
		assert_int_equal(hsakmt_shm_restore(&shared), -EINVAL);
		assert_logged("Error (amdgpu_plugin): ", "mode");
	}
	assert_false(unit_exists(FILE_NAME));
	assert_int_equal(fake.opens, 0);
}
