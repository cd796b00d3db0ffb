/* SPDX-License-Identifier: GPL-2.0-only */
/* Small tools that every unit may use: clean-up by scope, ioctl, whole reads and writes,
 * descriptors, numbers. Knows libc only. */
#ifndef AMDGPU_PLUGIN_UTIL_H
#define AMDGPU_PLUGIN_UTIL_H

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Closes *@fd, if it is not negative, and sets it to -1. Keeps errno. */
void fd_close(int *fd);
void cleanup_free(void *memory);
void cleanup_fclose(FILE **file);

#define _cleanup_(f)     __attribute__((cleanup(f)))
#define _cleanup_close_  _cleanup_(fd_close)
#define _cleanup_free_   _cleanup_(cleanup_free)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The next entry of a directory. NULL: there is none, or, with *@ret_error other than 0, -errno. */
struct dirent *next_entry(DIR *stream, int *ret_error);

/* Hands the descriptor over: *@fd is -1 afterwards. */
int take_fd(int *fd);
/* Hands a pointer over: *@memory (the address of a pointer) is NULL afterwards. */
void *take_ptr(void *memory);

/* Reallocates *@array (the address of a pointer) to @count elements of @size bytes, at least one.
 * New elements are not initialised. On -ENOMEM the array stays as it was. */
int array_grow(void *array, size_t count, size_t size);
/* Appends a copy of *@element of @size bytes to *@array (the address of a pointer), which has
 * *@count elements, and counts it. On -ENOMEM the array stays as it was. */
int array_append(void *array, size_t *count, size_t size, const void *element);

/* Pids in the pid namespace of the calling process. A list that is all zero is empty. */
struct pid_list {
	pid_t *pids;
	size_t count;
};

int pid_list_add(struct pid_list *list, pid_t pid);
void pid_list_done(struct pid_list *list);

/* An ioctl that is repeated after EINTR and EAGAIN; 0 or -errno. */
int xioctl(int fd, unsigned long request, void *argument);

/* Move exactly @size bytes at @offset. A file that ends early is -EIO. */
int pread_full(int fd, void *buffer, size_t size, uint64_t offset);
int pwrite_full(int fd, const void *buffer, size_t size, uint64_t offset);
/* The same where files have no offsets: pipes. */
int read_full(int fd, void *buffer, size_t size);
int write_full(int fd, const void *buffer, size_t size);
/* Reads at least @size bytes at @offset, and up to @room of them if the file has them. */
int pread_up_to(int fd, void *buffer, size_t size, size_t room, uint64_t offset);

/* Waits until what was written is on the device, and learns what only comes out there. 0 also for
 * files that cannot be synced. */
int fd_sync(int fd);

/* All of a file that is short, terminated: *@ret_length bytes and one. -E2BIG: there is
 * no room for it. */
int read_short(int fd, char *text, size_t room, size_t *ret_length);

/* Replaces *@fd by a close-on-exec duplicate whose number is at least @lowest. On failure *@fd is
 * left as it was. */
int fd_move_up(int *fd, int lowest);

/* A close-on-exec duplicate of @fd with a number of at least @lowest, or -errno. */
int fd_dup_above(int fd, int lowest);

/* Makes room for descriptors up to number @highest, raising the hard limit too where that is
 * allowed, else as much as there is. @ret_old takes what nofile_restore() puts back. */
int nofile_raise(uint64_t highest, struct rlimit *ret_old);
void nofile_restore(const struct rlimit *old);

/* "0", "1", "NO", "YES" in any case. -EINVAL: none of these. */
int parse_switch(const char *text, bool *ret_on);
/* A number of bytes: decimal digits, then nothing or one of K, M, G. -EINVAL, -ERANGE. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* Seconds on the monotonic clock, for reporting rates. */
double now_seconds(void);

/* A thread that no signal of CRIU's goes to. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*function)(void *), void *argument);

#endif
