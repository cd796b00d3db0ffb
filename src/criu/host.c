// SPDX-License-Identifier: GPL-2.0-only
/* Calls the functions that CRIU exports. A function that some supported version lacks is weak, and
 * the plugin tests its address. The plugin imports no variable of CRIU: a missing variable would
 * make dlopen() fail. */
#include "criu/host.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

extern int criu_get_image_dir(void);
extern int find_unused_fd_pid(pid_t pid);
extern int fdstore_add(int fd);
extern int fdstore_get(int id);
extern int add_inventory_plugin(const char *name) __attribute__((weak));
extern bool check_and_remove_inventory_plugin(const char *name, size_t length)
	__attribute__((weak));
extern int criu_plugin_get_options(int *argc, char ***argv) __attribute__((weak));
extern int lazy_pages_setup_zombie(int pid) __attribute__((weak));
extern int cr_fchown(int fd, uid_t uid, gid_t gid) __attribute__((weak));
extern int img_streamer_open(const char *name, int flags);
extern void unsuspend_lsm(void) __attribute__((weak));
extern void network_unlock(void) __attribute__((weak));
extern void delete_link_remaps(void) __attribute__((weak));
extern void clean_cr_time_mounts(void) __attribute__((weak));
extern int stop_cgroupd(void) __attribute__((weak));

/* The sockets of criu-image-streamer, without their directory. */
static const char *const streamer_sockets[] = { "streamer-capture.sock", "streamer-serve.sock" };

/* What CRIU does with the tasks of a dump that has succeeded (cr_options.h): the first member of
 * `opts`. init_opts() stores FINAL_DEAD there in the packages of 3.17.1, 4.1.1, 4.2.1 and 4.3, and
 * cr_dump_finish() compares it with FINAL_ALIVE. The other members move from version to version. */
enum final_state {
	FINAL_UNKNOWN,
	FINAL_ALIVE,
	FINAL_DEAD,
	FINAL_STOPPED,
};

/* CRIU numbers its service descriptors consecutively, and has some 20 of them. */
#define SERVICE_FDS_MAX 64

unsigned int host_count_hooks(void)
{
	const size_t list_head_size = 2 * sizeof(void *);
	const ElfW(Sym) *symbol = NULL;
	unsigned int hooks;
	Dl_info info;
	void *table;

	table = dlsym(RTLD_DEFAULT, "cr_plugin_ctl");
	if (!table || !dladdr1(table, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return HOOKS_OF_OLDEST_HOST;

	hooks = (unsigned int)(symbol->st_size / list_head_size);
	if (hooks <= HOOKS_OF_OLDEST_HOST)
		return HOOKS_OF_OLDEST_HOST;
	hooks -= 1;
	return hooks < HOOK_MAX ? hooks : HOOK_MAX;
}

bool host_has_hook(enum criu_plugin_hook hook)
{
	return host_count_hooks() > hook;
}

int host_errno(int ret)
{
	return ret == -ENOTSUP ? -EIO : ret;
}

bool host_copies_mapping_fd(void)
{
	/* CRIU 3.19 takes the descriptor over (commit a68975c06) and has cr_fchown(). It has as
	 * many hooks as older versions, so their number does not distinguish it. */
	return !host_has_hook(HOOK_PAUSE_DEVICES) && !cr_fchown;
}

/* The plugin cannot read CRIU's options, which move from version to version. With lazy pages this
 * function of CRIU asks for a descriptor in CRIU's store (uffd.c). A dump has no store, so the
 * function fails. Without lazy pages it does nothing. */
int host_find_lazy_dump(void)
{
	if (host_has_hook(HOOK_PAUSE_DEVICES) || !lazy_pages_setup_zombie)
		return -ENOENT;
	return lazy_pages_setup_zombie(0) < 0 ? 0 : -ENOENT;
}

bool host_is_timed(void)
{
	struct itimerval timer = { 0 };

	(void)getitimer(ITIMER_REAL, &timer);
	return timer.it_value.tv_sec || timer.it_value.tv_usec;
}

static enum final_state find_final_state(void)
{
	const int *opts = dlsym(RTLD_DEFAULT, "opts");

	if (!opts || opts[0] < FINAL_ALIVE || opts[0] > FINAL_STOPPED)
		return FINAL_UNKNOWN;
	return (enum final_state)opts[0];
}

bool host_ends_tasks(void)
{
	return find_final_state() == FINAL_DEAD;
}

/* What cr_dump_finish() undoes after an error. Newer versions of CRIU do it before they end
 * plugins, if the tasks are to run on. The others come to it later. */
static void undo_locks(void)
{
	void (*const steps[])(void) = { unsuspend_lsm, network_unlock, delete_link_remaps,
					clean_cr_time_mounts };

	if (find_final_state() == FINAL_ALIVE && host_has_hook(HOOK_PAUSE_DEVICES))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (steps[i])
			steps[i]();
	}
}

void host_fail_dump(void)
{
	undo_locks();
	exit(EXIT_FAILURE);
}

void host_fail_restore(void)
{
	exit(EXIT_FAILURE);
}

/* Like CRIU's own descriptor, which is the same for all files. */
static int kept_image_dir = -1;

int host_image_dir(void)
{
	return kept_image_dir >= 0 ? kept_image_dir : criu_get_image_dir();
}

void host_keep_image_dir(void)
{
	kept_image_dir = fcntl(criu_get_image_dir(), F_DUPFD_CLOEXEC, HOST_LOWEST_FD);
}

void host_drop_image_dir(void)
{
	fd_close(&kept_image_dir);
}

/* Recognises the streamer by its socket name, which remains after its file is removed. */
static bool is_streamer(int fd)
{
	struct sockaddr_un peer = { 0 };
	/* Leaves one byte to terminate the path. */
	socklen_t size = sizeof(peer) - 1;
	const char *name;

	if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0 || peer.sun_family != AF_UNIX)
		return false;
	name = strrchr(peer.sun_path, '/');
	name = name ? name + 1 : peer.sun_path;
	for (size_t i = 0; i < ARRAY_SIZE(streamer_sockets); i++) {
		if (!strcmp(name, streamer_sockets[i]))
			return true;
	}
	return false;
}

static int find_service_fd(bool (*is_wanted)(int fd))
{
	int image_dir = criu_get_image_dir();
	int first = image_dir < SERVICE_FDS_MAX ? 0 : image_dir - SERVICE_FDS_MAX;

	for (int fd = first; image_dir >= 0 && fd <= image_dir + SERVICE_FDS_MAX; fd++) {
		if (is_wanted(fd))
			return fd;
	}
	return -ENOENT;
}

/* Like CRIU's own option: the same for each task, and until CRIU ends. */
static bool streams;

void host_find_streamer(void)
{
	streams = find_service_fd(is_streamer) >= 0;
}

void host_set_streaming(void)
{
	streams = true;
}

bool host_is_streaming(void)
{
	return streams;
}

/* CRIU exits if the flags are not those that it passes itself. */
int host_create_streamed(const char *name)
{
	int fd = img_streamer_open(name, O_WRONLY | O_CREAT | O_TRUNC);

	return fd < 0 ? -EIO : fd;
}

int host_open_streamed(const char *name)
{
	int fd = img_streamer_open(name, O_RDONLY);

	return fd >= 0 || fd == -ENOENT ? fd : -EIO;
}

int host_inventory_add(const char *name)
{
	if (!add_inventory_plugin)
		return 0;
	return add_inventory_plugin(name) < 0 ? -EIO : 0;
}

bool host_has_inventory(void)
{
	return check_and_remove_inventory_plugin != NULL;
}

bool host_inventory_take(const char *name)
{
	return check_and_remove_inventory_plugin &&
	       check_and_remove_inventory_plugin(name, strlen(name));
}

int host_store_fd(int fd)
{
	int id = fdstore_add(fd);

	return id < 0 ? -EIO : id;
}

int host_fetch_fd(int id)
{
	int fd = fdstore_get(id);

	return fd < 0 ? -EIO : fd;
}

/* CRIU's store is the queue of a datagram socket that is connected to itself. */
static bool is_store(int fd)
{
	struct sockaddr_un own = { 0 }, peer = { 0 };
	socklen_t own_size = sizeof(own), peer_size = sizeof(peer);

	return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 &&
	       own.sun_family == AF_UNIX && own_size > sizeof(sa_family_t) &&
	       own_size == peer_size && !memcmp(&own, &peer, own_size);
}

int host_find_store(void)
{
	return find_service_fd(is_store);
}

void host_empty_store(int store)
{
	ssize_t got;
	char byte;

	if (store < 0)
		return;
	/* A task that does not know of a failure yet must not store more. */
	(void)shutdown(store, SHUT_RDWR);
	/* Without room for control data the kernel drops the descriptors of a message. */
	do {
		got = recv(store, &byte, sizeof(byte), MSG_DONTWAIT);
	} while (got >= 0 || errno == EINTR);
}

void host_stop_cgroup_helper(void)
{
	if (stop_cgroupd)
		(void)stop_cgroupd();
}

int host_unused_fd(pid_t pid)
{
	int fd = find_unused_fd_pid(pid);

	return fd < 0 ? -ESRCH : fd;
}

int host_plugin_options(int *ret_argc, char ***ret_argv)
{
	*ret_argc = 0;
	if (!criu_plugin_get_options)
		return 0;
	if (criu_plugin_get_options(ret_argc, ret_argv) < 0)
		return log_error(-EINVAL,
				 "options: CRIU cannot list its --plugin-option arguments");
	return 0;
}
