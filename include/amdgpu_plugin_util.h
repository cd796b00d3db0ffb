/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers for all units: cleanup by scope, arrays, opens, ioctl, complete reads and writes,
 * descriptors, numbers. They need only the C library, and they log nothing. */
#ifndef AMDGPU_PLUGIN_UTIL_H
#define AMDGPU_PLUGIN_UTIL_H

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Closes *@fd, if it is not negative, and sets it to -1. Keeps errno. */
void fd_close(int *fd);
void cleanup_free(void *memory);
void cleanup_fclose(FILE **file);
void cleanup_closedir(DIR **stream);

#define _cleanup_(f)       __attribute__((cleanup(f)))
#define _cleanup_close_    _cleanup_(fd_close)
#define _cleanup_free_     _cleanup_(cleanup_free)
#define _cleanup_fclose_   _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

pthread_mutex_t *lock_take(pthread_mutex_t *lock);
void lock_give(pthread_mutex_t **lock);
/* Holds @lock until the end of the block. */
#define HOLD(lock) \
	_cleanup_(lock_give) __attribute__((unused)) pthread_mutex_t *held_ = lock_take(lock)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Advice to madvise() of Linux 5.14 and 6.1; not in the headers of older systems. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Opens directory @path, also relative to @directory, with a position of its own. NULL: *@ret_error
 * is -errno. */
DIR *dir_open_at(int directory, const char *path, int *ret_error);
/* The next entry of a directory. NULL: the end, or an error if *@ret_error is not 0 but -errno. */
struct dirent *next_entry(DIR *stream, int *ret_error);

/* Why getline() or getdelim() has returned -1. 0: the file is at its end. They also stop for lack
 * of memory, and then set no error in the stream. */
int stream_error(FILE *file);

/* Returns *@fd and sets it to -1, so that the cleanup attribute does not close it. */
int take_fd(int *fd);
/* Returns *@memory (the address of a pointer) and sets it to NULL, in the same way. */
void *take_ptr(void *memory);
/* Returns the struct @from and sets it to zero, in the same way. */
#define take_struct(from)                         \
	({                                        \
		__typeof__(from) taken_ = (from); \
		(from) = (__typeof__(from)){ 0 }; \
		taken_;                           \
	})

/* Reallocates *@array (the address of a pointer) to @count elements of @size bytes, at least one.
 * New elements are not initialised. On -ENOMEM the array stays as it was. */
int array_grow(void *array, size_t count, size_t size);
/* Appends a copy of *@element of @size bytes to *@array (the address of a pointer), which has
 * *@count elements, and counts it. The room doubles when it is used up, so all elements of the
 * array must have come by this function. On -ENOMEM the array stays as it was. */
int array_append(void *array, size_t *count, size_t size, const void *element);

/* The order of two numbers, for functions that compare: -1, 0 or 1. */
#define ORDER(one, other) (((one) > (other)) - ((one) < (other)))

/* For qsort() and bsearch(), also of structs that begin with the number. */
int compare_u32(const void *left, const void *right);
int compare_u64(const void *left, const void *right);

/* Searches an array that is sorted as @compare says, which gets an element and @key. Return: the
 * index of the first element that is not before @key, or @count. */
size_t lower_bound(const void *key, const void *array, size_t count, size_t size,
		   int (*compare)(const void *element, const void *key));

/* Pids in the pid namespace of the calling process. A list that is all zero is empty. */
struct pid_list {
	pid_t *pids;
	size_t count;
};

int pid_list_add(struct pid_list *list, pid_t pid);
bool pid_list_has(const struct pid_list *list, pid_t pid);
void pid_list_done(struct pid_list *list);

/* Call open() and openat() with O_CLOEXEC, again after EINTR: a driver, or the process behind a
 * file of FUSE, may sleep in an open() that signals interrupt. A file that O_CREAT makes has mode
 * 0600. They return the descriptor or -errno. */
int fd_open(const char *path, int flags);
int fd_open_at(int directory, const char *path, int flags);
/* Opens a file for reading as a stream, in the same way. NULL: errno is set. */
FILE *stream_open(const char *path);

/* Calls ioctl(), again after EINTR and EAGAIN. 0 or -errno. */
int xioctl(int fd, unsigned long request, void *argument);

/* Move exactly @size bytes at @offset. -EIO: the file ends early. */
int pread_full(int fd, void *buffer, size_t size, uint64_t offset);
int pwrite_full(int fd, const void *buffer, size_t size, uint64_t offset);
/* The same for pipes, which have no offset. */
int read_full(int fd, void *buffer, size_t size);
int write_full(int fd, const void *buffer, size_t size);
/* Reads at least @size bytes at @offset, and up to @room of them if the file has them. */
int pread_up_to(int fd, void *buffer, size_t size, size_t room, uint64_t offset);

/* Writes the file to the disk with fdatasync(), which also reports errors of earlier writes. 0 for
 * files that cannot be synced, such as pipes. */
int fd_sync(int fd);

/* Reads all of a short file as a string of *@ret_length bytes and a zero byte. -E2BIG: the file
 * needs more than @room bytes. */
int read_short(int fd, char *text, size_t room, size_t *ret_length);
/* The decimal number at the beginning of file @name of the directory. -EIO: the file begins with
 * something else. */
int read_number_at(int directory, const char *name, uint64_t *ret_number);

/* Replaces *@fd by a close-on-exec duplicate with a number of at least @lowest. On error *@fd stays
 * unchanged. */
int fd_move_up(int *fd, int lowest);

/* Whether two descriptors are of one open file: 1, 0 or -errno. */
int fd_is_same(int one, int other);

/* Whether two descriptors are of one file, perhaps opened twice. */
bool fd_is_same_inode(int one, int other);

/* A close-on-exec duplicate of @fd with a number of at least @lowest, or -errno. */
int fd_dup_above(int fd, int lowest);

/* Raises the limit of open files to allow descriptor @highest. Without the right to raise the hard
 * limit, raises the soft limit up to it. *@old is all zero at first, and then the limit before the
 * first of these calls. nofile_restore() sets it again, if there was one. */
int nofile_raise(uint64_t highest, struct rlimit *old);
void nofile_restore(const struct rlimit *old);

/* Parses "0", "1", "NO" or "YES", in upper or lower case. -EINVAL: @text is something else. */
int parse_switch(const char *text, bool *ret_on);
/* Parses a decimal number, or a hexadecimal one after "0x", and an optional unit: K, M or G, with B
 * or iB behind it or not, in upper or lower case. All units are powers of 1024. CRIU's own plugin
 * takes hexadecimal numbers, k and MB, too. -EINVAL: @text is something else; -ERANGE: the number
 * is too large. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* A PCI address, as the properties `domain` and `location_id` of a KFD node have it. */
struct pci_slot {
	/* Machines of some hypervisors have domains of 32 bits. */
	uint32_t domain;
	/* bus << 8 | device << 3 | function */
	uint32_t location;
};

/* Bytes of the longest address, "ffffffff:ff:1f.7", with its zero byte. */
#define PCI_SLOT_TEXT 17

/* Prints domain:bus:device.function, the format of lspci, to @text and returns it. */
const char *pci_slot_print(struct pci_slot slot, char text[PCI_SLOT_TEXT]);
/* Parses each address that pci_slot_print() prints, also without its domain. -EINVAL: @text is
 * something else. */
int pci_slot_parse(const char *text, struct pci_slot *ret_slot);

/* The number in @least..@most that is next to @value. If @least is above @most: @least for a value
 * below it, otherwise @most. */
uint64_t clamp(uint64_t value, uint64_t least, uint64_t most);

/* The next multiple of @unit. */
static inline uint64_t round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) / unit * unit;
}

/* Seconds on a clock, and on the monotonic one. */
double clock_seconds(clockid_t clock);
double now_seconds(void);

/* In memory that processes share: sleeps while *@word is @value, at most @seconds; and wakes all
 * that sleep. The caller looks again at what it waits for. */
void futex_wait_while(uint32_t *word, uint32_t value, time_t seconds);
void futex_wake_all(uint32_t *word);

/* The number of processors that this thread may use, or 0 if it is not known, as on machines with
 * more of them than fit in a cpu_set_t. */
size_t usable_processors(void);

/* Starts a thread that blocks all signals, so that CRIU's handlers run in CRIU's thread. */
int thread_start(pthread_t *thread, void *(*function)(void *), void *argument);
/* Gives this thread, and the threads that it starts, a root and working directory of their own.
 * CRIU's main thread enters mount namespaces. The kernel refuses that to a process whose threads
 * share a root (mntns_install() in fs/namespace.c: EINVAL). */
int thread_unshare_fs(void);

/* Runs @job in a process with a copy of this process's memory, and waits for its end, at most
 * @timeout_s seconds. The process has no descriptors, no signals and one thread, so @job must not
 * log. It dies with this thread. It is no child of this process, so CRIU neither waits for it nor
 * gets SIGCHLD, also if it hangs in the kernel and cannot be killed.
 * *@ret_result: what @job returned, 0 or -errno.
 * -ECHILD: something killed it; -ETIME: it has not ended in time, and was killed. */
int child_run(int (*job)(void *argument), void *argument, unsigned int timeout_s, int *ret_result);

#endif
