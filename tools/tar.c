// SPDX-License-Identifier: GPL-2.0-only
/* podman and the CRI plugin of containerd export a tar with a directory "checkpoint". An image, as
 * ctr and podman save it, has that tar, or one of the images alone, as a blob. */
#include "tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

/* libarchive's number for an unknown format. */
#define UNKNOWN_FORMAT EILSEQ
#define BLOBS          "blobs/sha256/"
#define BLOB_NAME_LEN  64

/* The bytes of an archive come from a file, or from an entry of another archive. */
struct source {
	int fd;
	off_t file_size;
	struct archive *outer;
	uint8_t buffer[64u << 10];
};

struct walk {
	const char *name;
	int (*take)(struct tar_member *member, void *argument);
	void *argument;
};

static la_ssize_t read_file(struct archive *reader, void *argument, const void **ret_bytes)
{
	struct source *source = argument;
	ssize_t count;

	do
		count = read(source->fd, source->buffer, sizeof(source->buffer));
	while (count < 0 && errno == EINTR);
	if (count < 0)
		archive_set_error(reader, errno, "%s", strerror(errno));
	*ret_bytes = source->buffer;
	return count;
}

/* Never past the end of the file: libarchive would not notice that the entry is cut short. */
static la_int64_t skip_file(struct archive *reader, void *argument, la_int64_t request)
{
	struct source *source = argument;
	off_t now = lseek(source->fd, 0, SEEK_CUR);
	la_int64_t left = now < 0 || now > source->file_size ? 0 : source->file_size - now;

	(void)reader;
	if (request > left)
		request = left;
	return lseek(source->fd, request, SEEK_CUR) < 0 ? 0 : request;
}

static la_ssize_t read_entry(struct archive *reader, void *argument, const void **ret_bytes)
{
	struct source *source = argument;
	la_ssize_t count = archive_read_data(source->outer, source->buffer, sizeof(source->buffer));

	if (count < 0)
		archive_set_error(reader, EIO, "%s", archive_error_string(source->outer));
	*ret_bytes = source->buffer;
	return count < 0 ? -1 : count;
}

static void free_reader(struct archive **reader)
{
	if (*reader)
		(void)archive_read_free(*reader);
}

static int report_damage(const struct walk *walk, struct archive *reader)
{
	const char *cause = archive_error_string(reader);

	return log_error(-EBADMSG, "archive %s: damaged or cut short (%s); copy or export it again",
			 walk->name, cause ? cause : "no cause is known");
}

/* -EOPNOTSUPP, not logged: this is no tar archive. */
static int open_reader(const struct walk *walk, struct source *source, struct archive **ret_reader)
{
	_cleanup_(free_reader) struct archive *reader = archive_read_new();
	bool is_nested = source->outer;

	if (!reader || archive_read_support_format_tar(reader) != ARCHIVE_OK)
		return log_error(-ENOMEM, "archive %s: cannot read it", walk->name);
	/* Warn if they need a program, which is as good. */
	(void)archive_read_support_filter_gzip(reader);
	(void)archive_read_support_filter_zstd(reader);
	if (archive_read_open2(reader, source, NULL, is_nested ? read_entry : read_file,
			       is_nested ? NULL : skip_file, NULL) != ARCHIVE_OK)
		return archive_errno(reader) == UNKNOWN_FORMAT ? -EOPNOTSUPP
							       : report_damage(walk, reader);
	*ret_reader = take_ptr(&reader);
	return 0;
}

/* Whether @path is the digest of a blob with @end behind it. */
static bool is_digest(const char *path, const char *end)
{
	return strspn(path, "0123456789abcdef") == BLOB_NAME_LEN &&
	       !strcmp(path + BLOB_NAME_LEN, end);
}

/* "blobs/sha256/DIGEST" of an OCI layout, "DIGEST.tar" of podman's docker-archive, and
 * "DIGEST/layer.tar" of docker before release 25. */
static bool is_blob(const char *path)
{
	if (!strncmp(path, "./", 2))
		path += 2;
	if (!strncmp(path, BLOBS, strlen(BLOBS)))
		return is_digest(path + strlen(BLOBS), "");
	return is_digest(path, ".tar") || is_digest(path, "/layer.tar");
}

static int walk_entries(const struct walk *walk, struct archive *reader, const char *blob);

/* Most blobs are no archives, but descriptions. */
static int walk_blob(const struct walk *walk, struct archive *outer, const char *blob)
{
	_cleanup_free_ struct source *source = malloc(sizeof(*source));
	_cleanup_(free_reader) struct archive *reader = NULL;
	int ret;

	if (!source)
		return log_error(-ENOMEM, "archive %s: cannot read it", walk->name);
	source->outer = outer;
	ret = open_reader(walk, source, &reader);
	if (ret < 0)
		return ret == -EOPNOTSUPP ? 0 : ret;
	return walk_entries(walk, reader, blob);
}

/* @blob: the name of the archive in another one, or NULL. */
static int visit(const struct walk *walk, struct archive *reader, struct archive_entry *entry,
		 const char *blob)
{
	const char *name = archive_entry_pathname_utf8(entry);
	bool is_file = archive_entry_filetype(entry) == AE_IFREG &&
		       !archive_entry_hardlink(entry) && archive_entry_size_is_set(entry) &&
		       archive_entry_size(entry) >= 0;
	struct tar_member member = { .is_file = is_file, .walk = walk, .reader = reader };
	_cleanup_free_ char *path = NULL;

	if (!name)
		name = archive_entry_pathname(entry);
	/* Not a name of an image. */
	if (!name || strlen(name) >= PATH_MAX)
		return 0;
	if (!blob && is_file && is_blob(name))
		return walk_blob(walk, reader, name);
	if (asprintf(&path, "%s/%s", blob ? blob : "", name) < 0) {
		path = NULL;
		return log_error(-ENOMEM, "archive %s: cannot read it", walk->name);
	}
	member.path = path;
	member.size = is_file ? (uint64_t)archive_entry_size(entry) : 0;
	member.left = member.size;
	member.is_sparse = archive_entry_sparse_count(entry) > 0;
	return walk->take(&member, walk->argument);
}

/* An archive ends with blocks of zeros. libarchive also accepts that they are missing, as they are
 * if the file is cut short between two entries. */
static int walk_entries(const struct walk *walk, struct archive *reader, const char *blob)
{
	struct archive_entry *entry;

	for (;;) {
		la_int64_t before = archive_filter_bytes(reader, 0);
		int status = archive_read_next_header(reader, &entry);
		int ret;

		if (status == ARCHIVE_EOF && archive_filter_bytes(reader, 0) == before)
			return log_error(-EBADMSG, "archive %s: cut short; copy or export it again",
					 walk->name);
		if (status == ARCHIVE_EOF)
			return 0;
		if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
			return report_damage(walk, reader);
		ret = visit(walk, reader, entry, blob);
		if (ret < 0)
			return ret;
		if (archive_read_data_skip(reader) < ARCHIVE_WARN)
			return report_damage(walk, reader);
	}
}

int tar_walk(const char *name, int fd, int (*take)(struct tar_member *member, void *argument),
	     void *argument)
{
	const struct walk walk = { .name = name, .take = take, .argument = argument };
	_cleanup_free_ struct source *source = malloc(sizeof(*source));
	_cleanup_(free_reader) struct archive *reader = NULL;
	struct stat stat;
	int ret;

	if (!source)
		return log_error(-ENOMEM, "archive %s: cannot read it", name);
	if (fstat(fd, &stat) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return log_error(-errno, "archive %s: cannot read it", name);
	source->fd = fd;
	source->file_size = stat.st_size;
	source->outer = NULL;
	ret = open_reader(&walk, source, &reader);
	if (ret == -EOPNOTSUPP)
		return log_error(
			ret,
			"archive %s: neither a tar nor one that gzip or zstd has compressed; unpack it, and name the directory with the images",
			name);
	return ret < 0 ? ret : walk_entries(&walk, reader, NULL);
}

int tar_read(struct tar_member *member, void *bytes, size_t size)
{
	la_ssize_t count = -1;

	if (size <= member->left)
		count = archive_read_data(member->reader, bytes, size);
	/* libarchive fills all holes but the one at the end. */
	if (count < 0 || ((size_t)count < size && !member->is_sparse))
		return report_damage(member->walk, member->reader);
	memset((uint8_t *)bytes + count, 0, size - (size_t)count);
	member->left -= size;
	return 0;
}
