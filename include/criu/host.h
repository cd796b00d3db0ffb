/* SPDX-License-Identifier: GPL-2.0-only */
/* The CRIU process that loaded the plugin: what it offers, lacks, or does differently between
 * versions. src/criu/host.c and src/criu/log.c alone name symbols of CRIU. */
#ifndef AMDGPU_PLUGIN_CRIU_HOST_H
#define AMDGPU_PLUGIN_CRIU_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "criu/plugin_abi.h"

/* The lowest number for descriptors that the plugin keeps open in a process of CRIU. A restoring
 * CRIU opens the files of a task under the task's own numbers, which begin at 0. */
#define HOST_LOWEST_FD 512

/* How many hooks this host knows. Read from the size of CRIU's table of hook lists (one list head a
 * hook and one more), because a descriptor with more hooks than the host has is refused, and with
 * it every dump and restore on the machine. */
unsigned int host_count_hooks(void);

/* What CRIU is told of the outcome @ret for a thing that is ours: never -ENOTSUP, which would mean
 * that it is not ours, and is the same number as -EOPNOTSUPP. */
int host_errno(int ret);

/* Whether the host duplicates the descriptor that UPDATE_VMA_MAP returns, which then stays the
 * plugin's (CRIU 3.17 and 3.18). Later hosts take the descriptor over and close it. */
bool host_copies_mapping_fd(void);

/* The directory of the image files: a descriptor that stays CRIU's. */
int host_image_dir(void);

/* Whether CRIU streams its images (--stream): told by its connection to an image streamer, as
 * CRIU's options are out of sight, and as a socket's file may be an old one. */
bool host_is_streaming(void);
/* While CRIU streams images, in the same direction: a pipe of the image @name, for the caller.
 * -ENOENT: there is no such image, or it has been read before. -EIO: the streamer does not answer.
 * An image is to be read to its end before another one is asked for: a streamer may serve one after
 * the other, and would wait for its reader forever. */
int host_create_streamed(const char *name);
int host_open_streamed(const char *name);

/* Whether CRIU notes which plugins the images need. Those that do not ask one plugin
 * only about a thing. */
bool host_has_inventory(void);
/* Tells CRIU's inventory that the images need this plugin. 0 also on hosts without inventory. */
int host_inventory_add(const char *name);
/* Whether CRIU's inventory says that the images need this plugin, and tells CRIU that it is there.
 * False on hosts without inventory. */
bool host_inventory_take(const char *name);

/* 0: this dump leaves memory to be fetched when the plugin has been ended (--lazy-pages with hosts
 * before PAUSE_DEVICES); -ENOENT: it does not, or was ordered by RPC, which cannot be seen; other
 * errors after a line. */
int host_is_lazy_dump(void);

/* A descriptor number from which on no descriptor of the restored task @pid (as it sees itself) is
 * in the way, or -errno. */
int host_unused_fd(pid_t pid);

/* Whether the host's main process calls POST_FORKING. Such hosts have their descriptor store ready
 * when they load the plugin. */
bool host_calls_post_forking(void);
/* The host's descriptor store, which main process and tasks have in common: an id for a copy of
 * @fd, or -errno; a descriptor, of the caller's, for the id. */
int host_store_fd(int fd);
int host_fetch_fd(int id);

/* The options that the user has given CRIU for plugins, this one and others: CRIU's own, each one
 * "--PLUGIN.NAME=VALUE" (seen with 4.3). On hosts that have no such options *@ret_argc is 0.
 * -EINVAL after a line: the host will not tell. */
int host_plugin_options(int *ret_argc, char ***ret_argv);

#endif
