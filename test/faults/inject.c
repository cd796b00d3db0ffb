// SPDX-License-Identifier: GPL-2.0-only
/* Makes one call of the plugin fail. This library is preloaded before the simulator. When the
 * plugin is loaded, it replaces each function of calls.h in the import tables of the plugin and of
 * the libraries below it (libdrm, protobuf-c, xxhash). Calls of CRIU, of the simulator and of the C
 * library stay as they are.
 *
 * The function and the return addresses inside these libraries identify a call: its place.
 * FAULTS_TABLE names a file that lists all places and how often they were met (table.h). The
 * explorer reads it. FAULTS_INJECT="PLACE N FAULT" makes the Nth call at that place fail. Three
 * more words make another call fail, too. faults_of() says how a call can fail: errno values,
 * "short" (fewer bytes), "eof" (no bytes), "null" and "-1" (no errno).
 *
 * left.c counts the memory of these libraries. When the plugin is unloaded, it prints what is left.
 *
 * Two failures are left out, because the libdrm of Debian bookworm does not survive them: memory
 * that libdrm asks for, and DRM_IOCTL_VERSION from libdrm. No kernel fails the latter for a file
 * that it has opened. Memory of protobuf-c and xxhash is included.
 *
 * These functions are left out, because with valid arguments they cannot fail on Linux: kill() of a
 * child that is not reaped, mutexes, conditions without a timeout, sigprocmask, pthread_sigmask,
 * setsid() of a process that leads no group, prctl() that sets a name, close_range() without flags,
 * getrlimit, clock_gettime, F_GETFL, F_GETFD, F_SETFD, getpeername() of a local socket, getpid,
 * umask, sem_close. ptrace() is left out, too: only the guard of a killed CRIU calls it, and the
 * guard repeats a refused call (make check-kills). These errnos are answers ("there is none"), not
 * failures: ENOENT, ENXIO of lseek(), ENODEV of PROCESS_INFO. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "calls.h"
#include "kernel/kfd.h"
#include "left.h"
#include "table.h"

#define EXPORTED __attribute__((visibility("default")))
#define ARGS     9

#define TARGETS_MAX 2

/* stdio's flag of a stream that had an error (glibc). */
#define STREAM_HAD_ERROR 0x20

/* How a function reports its failure. DONE: it has done its work nevertheless, as close() does. */
enum answer {
	ERRNO,
	ERRNO_DONE,
	POSITIVE,
	NEGATIVE,
	NEGATIVE_DONE,
	NULL_ERRNO,
	MAP_ERRNO,
	STREAM,
	EOF_DONE
};

typedef long (*function)(long, long, long, long, long, long, long, long, long);

struct call {
	const char *name;
	enum answer answer;
	const char *faults;
	function real;
};

#define ROW(name, answer, faults) { #name, answer, faults, NULL },
static struct call calls[] = { CALLS(ROW) };

#define LIBRARY_FILE(file, name) file,
static const char *const library_names[] = { LIBRARIES(LIBRARY_FILE) };
#define NUM_LIBRARIES (sizeof(library_names) / sizeof(library_names[0]))

static struct {
	struct table *table;
	struct {
		uintptr_t from, to, base;
	} libraries[NUM_LIBRARIES];
	uintptr_t own_from, own_to;
	struct target {
		uint64_t hash, n;
		char fault[FAULT_SIZE];
	} targets[TARGETS_MAX];
	void *plugin; /* its handle */
} injector;

static const struct {
	const char *name;
	int number;
} errnos[] = {
#define E(name)             \
	{                   \
#name, name \
	}
	E(EINTR),   E(ENOMEM),    E(EINVAL),     E(EMFILE),       E(EACCES),   E(EIO),
	E(ENOSPC),  E(EAGAIN),    E(EPERM),      E(EROFS),        E(EPIPE),    E(ESRCH),
	E(ENOSYS),  E(EBADF),     E(EOPNOTSUPP), E(ETIME),        E(EFAULT),   E(ENODEV),
	E(ENOBUFS), E(ETIMEDOUT), E(ECANCELED),  E(ETOOMANYREFS), E(ENOTCONN), E(ECONNRESET),
	E(EBUSY),   E(ENFILE),
#undef E
};

static int library_of(uintptr_t address)
{
	for (size_t i = 0; i < NUM_LIBRARIES; i++) {
		if (address >= injector.libraries[i].from && address < injector.libraries[i].to)
			return (int)i;
	}
	return -1;
}

struct trace {
	uint64_t frames[FRAMES_MAX];
	size_t num_frames;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument)
{
	struct trace *trace = argument;
	uintptr_t address = _Unwind_GetIP(context);
	int library = library_of(address);

	/* A call of libdrm is below a call of the plugin, which came through this library. */
	if (address >= injector.own_from && address < injector.own_to)
		return _URC_NO_REASON;
	if (library < 0)
		return trace->num_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
	trace->frames[trace->num_frames++] =
		(uint64_t)library << FRAME_BITS | (address - injector.libraries[library].base);
	return trace->num_frames < FRAMES_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static uint64_t hash_of(int number, const struct trace *trace, uint64_t detail)
{
	uint64_t hash = (14695981039346656037ull ^ (uint64_t)number) * 1099511628211ull;

	for (size_t i = 0; i < trace->num_frames; i++)
		hash = (hash ^ trace->frames[i]) * 1099511628211ull;
	hash = (hash ^ detail) * 1099511628211ull;
	return hash ? hash : 1;
}

static uint64_t detail_of(int number, const long *args)
{
	uint64_t request = (uint64_t)(uint32_t)args[1];

	if (number != CALL_ioctl)
		return number == CALL_fcntl ? request : 0;
	if (request == (uint32_t)KFD_IOC_CRIU_OP)
		return request | (uint64_t)(((struct kfd_criu_args *)args[2])->op + 1) << 32;
	if (request == (uint32_t)DRM_IOCTL_AMDGPU_BO_LIST)
		return request | (uint64_t)((union drm_amdgpu_bo_list *)args[2])->in.operation
					 << 32;
	if (request == (uint32_t)DRM_IOCTL_AMDGPU_CTX)
		return request | (uint64_t)((union drm_amdgpu_ctx *)args[2])->in.op << 32;
	return request;
}

static const char *criu_op_faults(uint64_t op)
{
	switch (op) {
	case KFD_PROCESS_INFO + 1:
		return "EINTR ENOMEM EIO ETIME EPERM EBADF";
	case KFD_CHECKPOINT + 1:
		return "EINTR ENOMEM EINVAL EMFILE EFAULT EOPNOTSUPP";
	case KFD_UNPAUSE + 1:
		return "EINTR ENOMEM EIO ETIME";
	case KFD_RESTORE + 1:
		return "EINTR ENOMEM EINVAL ENODEV EMFILE";
	case KFD_RESUME + 1:
		return "EINTR ENOMEM EIO ETIME ESRCH";
	default:
		return "";
	}
}

static const char *ioctl_faults(uint64_t detail)
{
	switch (detail) {
	case (uint32_t)DRM_IOCTL_GEM_CLOSE: /* the memory can be freed */
	case (uint32_t)DRM_IOCTL_AMDGPU_BO_LIST | (uint64_t)AMDGPU_BO_LIST_OP_DESTROY << 32:
	case (uint32_t)DRM_IOCTL_AMDGPU_CTX | (uint64_t)AMDGPU_CTX_OP_FREE_CTX << 32:
		return "EINTR";
	case (uint32_t)DRM_IOCTL_AMDGPU_CS:
		return "EINTR ENOMEM ECANCELED ENODEV";
	default:
		return "EINTR ENOMEM EINVAL ENODEV";
	}
}

static bool is_libdrm(uint64_t frame)
{
	return frame >> FRAME_BITS == 1 || frame >> FRAME_BITS == 2;
}

static const char *faults_of(int number, const long *args, uint64_t detail, uint64_t caller)
{
	if (is_libdrm(caller) &&
	    (number == CALL_malloc || number == CALL_calloc || number == CALL_realloc ||
	     number == CALL_strdup || number == CALL_posix_memalign))
		return "";
	if (is_libdrm(caller) && number == CALL_ioctl && detail == (uint32_t)DRM_IOCTL_VERSION)
		return "EINTR";
	if (number == CALL_ioctl && (uint32_t)detail == (uint32_t)KFD_IOC_CRIU_OP)
		return criu_op_faults(detail >> 32);
	if (number == CALL_ioctl)
		return ioctl_faults(detail);
	if (number == CALL_fcntl && detail == F_SETFL)
		return "EINVAL";
	if (number == CALL_fcntl && (detail == F_GETFL || detail == F_GETFD || detail == F_SETFD))
		return "";
	if ((number == CALL_open || number == CALL_openat) &&
	    args[number == CALL_open ? 1 : 2] & O_CREAT)
		return "EMFILE EACCES ENOMEM EINTR ENOSPC EROFS";
	return calls[number].faults;
}

static void lock_table(struct table *table)
{
	/* A killed process may hold the lock. */
	for (unsigned int i = 0;
	     i < 10000000 && __atomic_exchange_n(&table->lock, 1, __ATOMIC_ACQUIRE); i++)
		;
}

/* The number of calls at that place, with this one. */
static uint64_t count_call(int number, const struct trace *trace, const long *args,
			   uint64_t *ret_hash)
{
	struct table *table = injector.table;
	uint64_t detail = detail_of(number, args), hash = hash_of(number, trace, detail), count = 0;
	struct place *place = &table->places[hash % PLACES_MAX];

	*ret_hash = hash;
	lock_table(table);
	while (place->hash && place->hash != hash)
		place = place == &table->places[PLACES_MAX - 1] ? table->places : place + 1;
	if (!place->hash && ++table->num_places >= PLACES_MAX)
		abort();
	if (!place->hash) {
		place->hash = hash;
		place->detail = detail;
		place->num_frames = trace->num_frames;
		memcpy(place->frames, trace->frames, sizeof(place->frames));
		(void)snprintf(place->name, sizeof(place->name), "%s", calls[number].name);
		(void)snprintf(place->faults, sizeof(place->faults), "%s",
			       faults_of(number, args, detail, trace->frames[0]));
	}
	/* Two places with the same hash would hide each other. */
	if (strcmp(place->name, calls[number].name) != 0 ||
	    place->num_frames != trace->num_frames ||
	    memcmp(place->frames, trace->frames, trace->num_frames * sizeof(*trace->frames)) != 0)
		abort();
	count = ++place->count;
	__atomic_store_n(&table->lock, 0, __ATOMIC_RELEASE);
	return count;
}

static long call_real(int number, const long *a)
{
	return calls[number].real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
}

static long fewer_bytes(int number, const long *args)
{
	long fewer[ARGS];
	long size = args[2];

	memcpy(fewer, args, sizeof(fewer));
	/* Direct access needs whole blocks. */
	fewer[2] = size >= 8192 ? size / 2 & ~4095l : size > 1 ? size / 2 : size;
	return call_real(number, fewer);
}

static void spoil_stream(int number, const long *args, const char *fault)
{
	FILE *stream = (FILE *)args[number == CALL_fgets || number == CALL_getline ? 2
				    : number == CALL___getdelim                    ? 3
										   : 0];

	/* A failure to grow the buffer is not an error of the stream. */
	if (strcmp(fault, "ENOMEM") != 0)
		stream->_flags |= STREAM_HAD_ERROR;
}

static long fail_as(int number, const long *args, const char *fault)
{
	int error = 0;

	if (!strcmp(fault, "short"))
		return fewer_bytes(number, args);
	if (!strcmp(fault, "eof"))
		return 0;
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (!strcmp(errnos[i].name, fault))
			error = errnos[i].number;
	}
	switch (calls[number].answer) {
	case POSITIVE:
		return error;
	case NEGATIVE_DONE:
		(void)call_real(number, args);
		/* fallthrough */
	case NEGATIVE:
		errno = error ? error : EMFILE;
		return error ? -error : -1;
	case NULL_ERRNO:
		errno = error;
		return 0;
	case STREAM:
		spoil_stream(number, args, fault);
		errno = error;
		return number == CALL_fgets ? 0 : -1;
	case ERRNO_DONE:
	case EOF_DONE:
		(void)call_real(number, args);
		/* fallthrough */
	default:
		errno = error;
		return -1;
	}
}

static const struct target *find_target(uint64_t hash, uint64_t n)
{
	for (size_t i = 0; i < TARGETS_MAX; i++) {
		if (injector.targets[i].hash == hash && injector.targets[i].n == n)
			return &injector.targets[i];
	}
	return NULL;
}

static long intercept(int number, const long *args)
{
	struct trace trace = { .num_frames = 0 };
	const struct target *target;
	uint64_t hash, n;
	long result;
	int error = errno;

	(void)_Unwind_Backtrace(note_frame, &trace);
	n = count_call(number, &trace, args, &hash);
	target = find_target(hash, n);
	if (target)
		(void)__atomic_fetch_add(&injector.table->fired, 1, __ATOMIC_RELAXED);
	if (left_tracks(number))
		left_begin(number, args);
	errno = error;
	result = target ? fail_as(number, args, target->fault) : call_real(number, args);
	error = errno;
	if (left_tracks(number))
		left_end(number, args, result, hash);
	errno = error;
	return result;
}

/* All arguments are integers or pointers, nine at most. A function with fewer ignores the rest. */
#define WRAPPER(name, answer, faults)                                                           \
	static long wrap_##name(long a, long b, long c, long d, long e, long f, long g, long h, \
				long i)                                                         \
	{                                                                                       \
		const long args[ARGS] = { a, b, c, d, e, f, g, h, i };                          \
                                                                                                \
		return intercept(CALL_##name, args);                                            \
	}
CALLS(WRAPPER)

#define POINTER(name, answer, faults) wrap_##name,
static const function wrappers[] = { CALLS(POINTER) };

static int call_number(const char *name)
{
	for (int i = 0; i < NUM_CALLS; i++) {
		if (!strcmp(calls[i].name, name))
			return i;
	}
	return -1;
}

static void patch(const struct link_map *map, const char *name, ElfW(Addr) offset)
{
	int number = call_number(name);
	void **slot = (void **)(map->l_addr + offset);
	uintptr_t page = (uintptr_t)slot & ~4095ul;

	if (number < 0)
		return;
	if (!calls[number].real)
		calls[number].real = (function)(uintptr_t)dlsym(RTLD_DEFAULT, name);
	if (!calls[number].real)
		calls[number].real = (function)(uintptr_t)dlsym(injector.plugin, name);
	/* This CRIU lacks the function, so the plugin must not see it. */
	if (!calls[number].real)
		return;
	(void)mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
	*slot = (void *)(uintptr_t)wrappers[number];
}

static void patch_all(const struct link_map *map, const ElfW(Rela) * relocation, size_t bytes)
{
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;

	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			symbols = (const void *)entry->d_un.d_ptr;
		if (entry->d_tag == DT_STRTAB)
			strings = (const void *)entry->d_un.d_ptr;
	}
	for (size_t i = 0; symbols && strings && i < bytes / sizeof(*relocation); i++) {
		uint64_t type = ELF64_R_TYPE(relocation[i].r_info),
			 symbol = ELF64_R_SYM(relocation[i].r_info);

		if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64)
			patch(map, strings + symbols[symbol].st_name, relocation[i].r_offset);
	}
}

static void take_library(const struct link_map *map)
{
	const ElfW(Rela) *plain = NULL, *plt = NULL;
	size_t plain_bytes = 0, plt_bytes = 0;

	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag; entry++) {
		if (entry->d_tag == DT_RELA)
			plain = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_RELASZ)
			plain_bytes = entry->d_un.d_val;
		else if (entry->d_tag == DT_JMPREL)
			plt = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_PLTRELSZ)
			plt_bytes = entry->d_un.d_val;
	}
	patch_all(map, plain, plain_bytes);
	patch_all(map, plt, plt_bytes);
}

static int note_range(struct dl_phdr_info *info, size_t size, void *argument)
{
	uintptr_t end = 0;

	(void)size;
	(void)argument;
	for (int part = 0; part < info->dlpi_phnum; part++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[part];

		if (header->p_type == PT_LOAD)
			end = header->p_vaddr + header->p_memsz;
	}
	if ((uintptr_t)note_range >= info->dlpi_addr &&
	    (uintptr_t)note_range < info->dlpi_addr + end) {
		injector.own_from = info->dlpi_addr;
		injector.own_to = info->dlpi_addr + end;
	}
	for (size_t i = 0; i < NUM_LIBRARIES; i++) {
		if (!strstr(info->dlpi_name, library_names[i]))
			continue;
		injector.libraries[i].base = injector.libraries[i].from = info->dlpi_addr;
		injector.libraries[i].to = info->dlpi_addr + end;
	}
	return 0;
}

static void take_all(void *plugin)
{
	struct link_map *map;

	injector.plugin = plugin;
	(void)dl_iterate_phdr(note_range, NULL);
	if (dlinfo(plugin, RTLD_DI_LINKMAP, &map))
		return;
	for (; map; map = map->l_next) {
		for (size_t i = 0; i < NUM_LIBRARIES; i++) {
			if (strstr(map->l_name, library_names[i]))
				take_library(map);
		}
	}
}

static void open_table(void)
{
	const char *path = getenv("FAULTS_TABLE"), *target = getenv("FAULTS_INJECT");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	injector.table = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE,
			      fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if ((fd >= 0 && ftruncate(fd, sizeof(struct table)) < 0) || injector.table == MAP_FAILED)
		abort();
	if (fd >= 0)
		(void)close(fd);
	for (int i = 0, length = 0; target && *target && i < TARGETS_MAX; i++, target += length) {
		struct target *parsed = &injector.targets[i];

		if (sscanf(target, "%lx %lu %31s%n", &parsed->hash, &parsed->n, parsed->fault,
			   &length) != 3)
			abort();
	}
}

static void __attribute__((constructor)) get_ready(void)
{
	open_table();
}

EXPORTED void *dlopen(const char *path, int flags)
{
	static void *(*real)(const char *, int);
	void *handle;

	if (!real)
		real = (void *(*)(const char *, int))(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
	handle = real(path, flags);
	if (handle && path && strstr(path, library_names[0]))
		take_all(handle);
	return handle;
}

EXPORTED int dlclose(void *handle)
{
	static int (*real)(void *);

	if (!real)
		real = (int (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "dlclose");
	if (handle == injector.plugin) {
		left_report();
		injector.plugin = NULL;
		memset(injector.libraries, 0, sizeof(injector.libraries));
		/* The libraries are unloaded too, and may come back at other addresses. */
		for (int i = 0; i < NUM_CALLS; i++)
			calls[i].real = NULL;
	}
	return real(handle);
}
