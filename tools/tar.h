/* SPDX-License-Identifier: GPL-2.0-only */
/* Walks through the files of a tar archive, plain or compressed by gzip or zstd, and through those
 * of the archives that an image of a container has as its blobs. Trusts no byte of them. */
#ifndef AMDGPU_PLUGIN_TOOLS_TAR_H
#define AMDGPU_PLUGIN_TOOLS_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive;
struct walk;

/* An entry of an archive, valid until the function that got it returns. */
struct tar_member {
	/* With the name of its blob before it. Any bytes, so do not print them. */
	const char *path;
	/* As the archive says. It may have fewer bytes. */
	uint64_t size;
	/* A regular file, and no link to another one. */
	bool is_file;
	/* It has holes, of any size, which cost an archive few bytes. */
	bool is_sparse;
	/* For tar_read(). */
	const struct walk *walk;
	struct archive *reader;
	uint64_t left;
};

/* Calls @take for each entry of the archive in file @fd, until @take fails. @name is for messages.
 * Logs its own errors: -EOPNOTSUPP, no archive; -EBADMSG, damaged or cut short. */
int tar_walk(const char *name, int fd, int (*take)(struct tar_member *member, void *argument),
	     void *argument);

/* Reads the next @size bytes of an entry; holes are zeros. Logs on error: -EBADMSG, damaged or cut
 * short. */
int tar_read(struct tar_member *member, void *bytes, size_t size);

#endif
