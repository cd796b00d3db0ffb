/* SPDX-License-Identifier: GPL-2.0-only */
/* What CRIU exports to plugins, as far as this one may use it; and what the part that differs
 * between versions asks of the part that does not. */
#ifndef TEST_NATIVE_CRIU_EXPORTS_H
#define TEST_NATIVE_CRIU_EXPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All versions. */
void print_on_level(unsigned int level, const char *format, ...);
unsigned int log_get_loglevel(void);
int criu_get_image_dir(void);
int find_unused_fd_pid(pid_t pid);
int fdstore_add(int fd);
int fdstore_get(int id);
void *shmalloc(size_t size);
int img_streamer_open(const char *name, int flags);

/* Some versions, by way of the two below. */
extern const size_t criu_hooks; /* how many this version has */
extern char cr_plugin_ctl[];
int add_inventory_plugin(const char *name);
bool check_and_remove_inventory_plugin(const char *name, size_t length);
int criu_plugin_get_options(int *argc, char ***argv);

int criu_note_plugin(const char *name);
bool criu_claim_plugin(const char *name, size_t length);

#endif
