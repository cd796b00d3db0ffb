// SPDX-License-Identifier: GPL-2.0-only
/* Makes one call of the plugin fail. Preloaded before the simulator, it waits until the plugin is
 * loaded and then puts itself in the place of every failable function in the import tables of the
 * plugin and of the libraries below it (libdrm, protobuf-c, xxhash); so CRIU's own calls, the
 * simulator's and the C library's are not touched.
 *
 * A call is known by its function and the return addresses inside these libraries: its place.
 * FAULTS_TABLE names a file that lists all places that were met and how often (table.h, which the
 * explorer reads); FAULTS_INJECT="PLACE N FAULT" makes the Nth call at that place fail, and with
 * three more words another one, too. What a call can give is said in faults_of(): errno values,
 * "short" (fewer bytes), "eof" (none), "null" and "-1" (no errno).
 *
 * What these libraries allocate and map is counted, too: what they have left is said when the
 * plugin is unloaded.
 *
 * Left out, as the libdrm of Debian bookworm does not survive it: memory that libdrm itself cannot
 * have, and a DRM_IOCTL_VERSION of libdrm's that fails, which no kernel does for a file that it has
 * opened. That of protobuf-c and xxhash is in.
 *
 * Not among the functions, since they cannot fail with valid arguments on Linux: kill() of a
 * child that nobody has waited for, mutexes and conditions but for waits with a timeout,
 * sigprocmask, pthread_sigmask, setsid() of a process that leads no group, prctl() that gives a
 * name, close_range() without flags, getrlimit, clock_gettime, F_GETFL, F_GETFD, F_SETFD,
 * getpeername() of a local socket, getpid, umask, sem_close. Nor ptrace(): only the guard of a
 * CRIU that was killed calls it, and what is refused is asked again (make check-kills). Not among
 * the errnos: ENOENT, ENXIO of lseek() and ENODEV of PROCESS_INFO, which are answers ("there is
 * none") and not failures. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>
#include <link.h>
#include <pthread.h>
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
#include "table.h"

#define EXPORTED   __attribute__((visibility("default")))
#define ARGS       9
#define BLOCKS_MAX 65536

#define TARGETS_MAX 2

/* What stdio remembers of a stream that had an error (glibc). */
#define STREAM_HAD_ERROR 0x20

/* How a function says that it failed. DONE: it has done its work all the same, as close() has. */
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

#define NUMBER(name, answer, faults) CALL_##name,
enum { CALLS(NUMBER) NUM_CALLS };

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
	pthread_mutex_t lock;
	void *blocks[BLOCKS_MAX];
	uint64_t places[BLOCKS_MAX];
	long mapped;
} injector = { .lock = PTHREAD_MUTEX_INITIALIZER };

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

	/* calls of libdrm's own are below a call of the plugin's that came by here */
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
	case (uint32_t)DRM_IOCTL_GEM_CLOSE: /* what is there can be freed */
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
	/* who holds it may have been killed */
	for (unsigned int i = 0;
	     i < 10000000 && __atomic_exchange_n(&table->lock, 1, __ATOMIC_ACQUIRE); i++)
		;
}

/* How many calls there have been at that place, with this one. */
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
	/* two places of one hash would hide each other */
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
	/* direct access goes by whole blocks */
	fewer[2] = size >= 8192 ? size / 2 & ~4095l : size > 1 ? size / 2 : size;
	return call_real(number, fewer);
}

static void spoil_stream(int number, const long *args, const char *fault)
{
	FILE *stream = (FILE *)args[number == CALL_fgets || number == CALL_getline ? 2
				    : number == CALL___getdelim                    ? 3
										   : 0];

	/* a buffer that cannot grow is no error of the stream's */
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

static size_t find_block(const void *block)
{
	size_t at = (uintptr_t)block / 16 * 0x9e3779b97f4a7c15ull >> 48;

	while (injector.blocks[at] && injector.blocks[at] != block)
		at = (at + 1) % BLOCKS_MAX;
	return at;
}

static void add_block(void *block, uint64_t place)
{
	size_t at;

	if (!block)
		return;
	at = find_block(block);
	injector.blocks[at] = block;
	injector.places[at] = place;
}

/* Those behind it move up, as in every table of this kind. */
static void remove_block(const void *block)
{
	size_t at = find_block(block);

	if (!block || !injector.blocks[at])
		return;
	injector.blocks[at] = NULL;
	for (at = (at + 1) % BLOCKS_MAX; injector.blocks[at]; at = (at + 1) % BLOCKS_MAX) {
		void *moved = injector.blocks[at];
		uint64_t place = injector.places[at];

		injector.blocks[at] = NULL;
		add_block(moved, place);
	}
}

/* What was there before the call and is not any more; the other way round below. */
static void note_before(int number, const long *args)
{
	if (number == CALL_free || number == CALL_fclose || number == CALL_closedir)
		remove_block((void *)args[0]);
	else if (number == CALL___getdelim || number == CALL_getline)
		remove_block(*(void **)args[0]);
	else if (number == CALL_munmap)
		injector.mapped -= (args[1] + 4095) / 4096;
}

static void note_after(int number, const long *args, long result, uint64_t place)
{
	switch (number) {
	case CALL_realloc:
		if (result)
			remove_block((void *)args[0]);
		/* fallthrough */
	case CALL_malloc:
	case CALL_calloc:
	case CALL_strdup:
	case CALL_fopen:
	case CALL_opendir:
	case CALL_fdopendir:
		add_block((void *)result, place);
		break;
	case CALL___getdelim:
	case CALL_getline:
		add_block(*(void **)args[0], place);
		break;
	case CALL_mmap:
	case CALL_mmap64:
		if (result != -1)
			injector.mapped += (args[1] + 4095) / 4096;
		break;
	default:
		break;
	}
}

static bool keeps_books(int number)
{
	return number == CALL_free || number == CALL_fclose || number == CALL_closedir ||
	       number == CALL_munmap || number == CALL_realloc || number == CALL_malloc ||
	       number == CALL_calloc || number == CALL_strdup || number == CALL_fopen ||
	       number == CALL_opendir || number == CALL_fdopendir || number == CALL___getdelim ||
	       number == CALL_getline || number == CALL_mmap || number == CALL_mmap64;
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
	if (keeps_books(number)) {
		/* no other thread may be given the address in between */
		(void)pthread_mutex_lock(&injector.lock);
		note_before(number, args);
	}
	errno = error;
	result = target ? fail_as(number, args, target->fault) : call_real(number, args);
	error = errno;
	if (keeps_books(number)) {
		note_after(number, args, result, hash);
		(void)pthread_mutex_unlock(&injector.lock);
	}
	errno = error;
	return result;
}

/* All arguments are integers or pointers, and there are nine at most; of fewer, what lies
 * behind is passed on. */
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
	/* what this CRIU does not have stays unknown to the plugin */
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

static void report_left(void)
{
	long blocks = 0;

	for (size_t i = 0; i < BLOCKS_MAX; i++) {
		if (!injector.blocks[i])
			continue;
		if (!blocks++)
			printf("left memory of place %016lx\n", injector.places[i]);
		injector.blocks[i] = NULL;
	}
	if (blocks)
		printf("left blocks %ld\n", blocks);
	if (injector.mapped)
		printf("left pages %ld\n", injector.mapped);
	injector.mapped = 0;
}

EXPORTED int dlclose(void *handle)
{
	static int (*real)(void *);

	if (!real)
		real = (int (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "dlclose");
	if (handle == injector.plugin) {
		report_left();
		injector.plugin = NULL;
		memset(injector.libraries, 0, sizeof(injector.libraries));
		/* the libraries go with it, and may come back elsewhere */
		for (int i = 0; i < NUM_CALLS; i++)
			calls[i].real = NULL;
	}
	return real(handle);
}
