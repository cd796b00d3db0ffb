/* SPDX-License-Identifier: GPL-2.0-only */
/* The CRIU that loaded the plugin: its functions, and the differences between its versions. Only
 * src/criu/host.c, src/criu/log.c and src/criu/after_tasks.c name symbols of CRIU. */
#ifndef AMDGPU_PLUGIN_CRIU_HOST_H
#define AMDGPU_PLUGIN_CRIU_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "criu/plugin_abi.h"

/* The lowest number for descriptors that the plugin keeps open in a process of CRIU. A restoring
 * CRIU opens the files of a task under the task's own numbers, which begin at 0. */
#define HOST_LOWEST_FD 512

/* The number of hooks of this CRIU, from the size of its table of hook lists (one list head a hook
 * and one more). CRIU refuses a plugin descriptor with more hooks, and then every dump and restore
 * on the machine fails. */
unsigned int host_count_hooks(void);
/* Whether CRIU calls the hook. A CRIU with PAUSE_DEVICES names the tasks of a dump before it stops
 * them. One with POST_FORKING has its descriptor store ready when it loads the plugin. One with
 * DUMP_FINISH fails the dump if the plugin does. */
bool host_has_hook(enum criu_plugin_hook hook);

/* The result of a hook for a file or mapping of the plugin. -ENOTSUP becomes -EIO: to CRIU -ENOTSUP
 * means that the plugin does not handle the file, and -EOPNOTSUPP is the same number. */
int host_errno(int ret);

/* Whether CRIU duplicates the descriptor that UPDATE_VMA_MAP returns, so that the plugin must close
 * it (CRIU 3.17 and 3.18). Later versions close it themselves. */
bool host_copies_mapping_fd(void);

/* A descriptor of the image directory. CRIU owns it. */
int host_image_dir(void);
/* CRIU closes its descriptor soon: host_image_dir() is a copy from now on, until it is dropped. */
void host_keep_image_dir(void);
void host_drop_image_dir(void);

/* Finds out whether CRIU streams its images (--stream), by its connection to criu-image-streamer:
 * CRIU does not export its options, and the socket's file may be left over from an older run. Call
 * this when CRIU loads the plugin: CRIU has connected (open_image_dir()), and does not have a
 * descriptor of a task yet, which could be a socket of that name, too. */
void host_find_streamer(void);
/* For criu-amdgpu, which serves the images of an archive as streams. */
void host_set_streaming(void);
/* What host_find_streamer() has found. */
bool host_is_streaming(void);
/* If CRIU streams images: return a pipe to write or read the image @name, which the caller owns.
 * -ENOENT: there is no such image, or it has been read before. -EIO: the streamer does not answer.
 * The caller must read an image to its end before it opens the next one: a streamer may serve one
 * image at a time, and both would wait forever. */
int host_create_streamed(const char *name);
int host_open_streamed(const char *name);

/* Whether CRIU's inventory lists the plugins that the images need. A CRIU without this list asks
 * only one plugin about each file. */
bool host_has_inventory(void);
/* Adds the plugin to CRIU's inventory. Does nothing if the inventory has no such list. */
int host_inventory_add(const char *name);
/* Whether CRIU's inventory lists this plugin. Removes it from the list, because CRIU refuses to
 * restore if a plugin remains there. False if the inventory has no such list. */
bool host_inventory_take(const char *name);

/* Returns 0 if this dump serves memory after CRIU has unloaded the plugin (--lazy-pages with a CRIU
 * before PAUSE_DEVICES), and CRIU logs an error. Returns -ENOENT if it does not. */
int host_find_lazy_dump(void);

/* Whether CRIU's alarm runs, which ends a CRIU that takes too long to freeze the tasks
 * (collect_pstree() in seize.c). */
bool host_is_timed(void);

/* Whether CRIU is going to kill the tasks of a dump that succeeds. They run on nevertheless if its
 * post-dump script or a later step fails. False if this CRIU does not report it. */
bool host_ends_tasks(void);

/* Ends CRIU with an error, for a dump that fails so late that CRIU does not ask for a result any
 * more: it would kill the tasks, and exit with 0. The tasks run on. CRIU's locks of the network and
 * its links to files are removed first, as CRIU does after other errors. */
void host_fail_dump(void) __attribute__((noreturn));
/* The same for a restore. CRIU has let the tasks go. */
void host_fail_restore(void) __attribute__((noreturn));

/* Stops CRIU's helper for cgroups, after a restore that has failed. CRIU (4.0 and newer) lets it
 * run until CRIU's own end, and then the helper logs an error that has nothing to do with the
 * cause. Not after RESUME_DEVICES_LATE: CRIU has stopped the helper then, but would send the signal
 * again. */
void host_stop_cgroup_helper(void);

/* A descriptor number that is higher than all descriptors of the restored task with vpid @pid, or
 * -errno. */
int host_unused_fd(pid_t pid);

/* CRIU's descriptor store, which its main process and the restored tasks share. The first stores a
 * copy of @fd and returns its id, the second returns a descriptor that the caller
 * owns; or -errno. */
int host_store_fd(int fd);
int host_fetch_fd(int id);
/* The descriptor of that store, which CRIU owns. -ENOENT: this process has none. */
int host_find_store(void);
/* Empties CRIU's descriptor store @store, and closes it for new descriptors. Does nothing if @store
 * is -ENOENT. In CRIU's main process, when no task needs the store any more: BOs whose dma-bufs are
 * in the store stay allocated when their tasks have freed them. CRIU keeps the store until it ends.
 * After a restore that has failed, it may be kept even longer: a helper process of CRIU 4.3
 * inherits the store, and ends when all other processes have closed a socket that the store has,
 * too. */
void host_empty_store(int store);

/* The arguments of CRIU's --plugin-option for all plugins, each of the form "--PLUGIN.NAME=VALUE"
 * (CRIU 4.3). CRIU owns them. *@ret_argc is 0 if this CRIU has no such option. -EINVAL: CRIU
 * returns an error. Logs on error. */
int host_plugin_options(int *ret_argc, char ***ret_argv);

#endif
