/* SPDX-License-Identifier: GPL-2.0-only */
/* What the plugin uses of CRIU. Each program that stands in for CRIU defines those
 * that it needs. */
#ifndef TEST_LIB_CRIU_SYMBOLS_H
#define TEST_LIB_CRIU_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All versions. */
void print_on_level(unsigned int level, const char *format, ...);
int criu_get_image_dir(void);
int find_unused_fd_pid(pid_t pid);
int fdstore_add(int fd);
int fdstore_get(int id);
int img_streamer_open(const char *name, int flags);
int lazy_pages_setup_zombie(int pid);

/* Programs that export it have the plugin know what CRIU does with the tasks of a dump that
 * succeeds. 0: not known. */
#define CRIU_FINAL_ALIVE   1
#define CRIU_FINAL_DEAD    2
#define CRIU_FINAL_STOPPED 3
extern int opts;

/* Some versions. */
int add_inventory_plugin(const char *name);
bool check_and_remove_inventory_plugin(const char *name, size_t length);
int criu_plugin_get_options(int *argc, char ***argv);
int cr_fchown(int fd, uid_t uid, gid_t gid);

#endif
