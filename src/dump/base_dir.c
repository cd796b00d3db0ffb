// SPDX-License-Identifier: GPL-2.0-only
/* Opens the directory that the option names, says in the log why it has no use, and hands the base
 * to the contents of each process. */
#include "dump/base_dir.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "content/base.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "image/image_dir.h"

/* Why files of this dump cannot share blocks, or NULL. */
static const char *find_obstacle(void)
{
	if (image_is_streamed())
		return "images are streamed";
	if (image_dir_is_in_memory())
		return "the images are in memory (tmpfs), where files share nothing";
	return NULL;
}

/* The path is relative to the image directory, as CRIU's --prev-images-dir is. Return: the
 * descriptor, or -1 after a warning if the directory cannot be a base. */
static int open_directory(const char *path)
{
	_cleanup_close_ int fd = fd_open_at(host_image_dir(), path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		log_warn(
			"option base: cannot open the directory \"%s\" (from the image directory): %s; all contents are written",
			path, strerror(-fd));
	else if (fd_is_same_inode(fd, host_image_dir()))
		log_warn(
			"option base: \"%s\" is the image directory itself; all contents are written",
			path);
	else
		return take_fd(&fd);
	return -1;
}

static void report_flaws(const struct base *base)
{
	static const char *const texts[] = {
		[BASE_DAMAGED] = "have damaged sums",
		[BASE_MISSING] = "are missing",
		[BASE_CHANGED] = "have changed since their dump, or are copies",
		[BASE_BEING_WRITTEN] = "are open for writing",
	};

	for (enum base_flaw flaw = 0; flaw < BASE_FLAWS; flaw++) {
		if (base_count_flaws(base, flaw))
			log_warn(
				"option base: %zu of its pages files %s, and nothing is shared with them",
				base_count_flaws(base, flaw), texts[flaw]);
	}
}

static int read_base(struct dump_session *session)
{
	const char *path = session->options->base;
	_cleanup_close_ int fd = open_directory(path);
	int ret = base_open(fd, &session->base);

	if (ret < 0)
		return log_error(ret, "option base: cannot read the sums in \"%s\"", path);
	report_flaws(session->base);
	log_info("option base: \"%s\" has %" PRIu64 " MiB that images may share", path,
		 base_size(session->base) >> 20);
	return 0;
}

int base_dir_open(struct dump_session *session)
{
	const char *path = session->options->base, *obstacle;

	if (!path || !*path || session->base_is_read)
		return 0;
	session->base_is_read = true;
	obstacle = find_obstacle();
	if (!obstacle)
		return read_base(session);
	log_warn("option base: of no use in this dump: %s", obstacle);
	return 0;
}

uint64_t base_dir_size(const struct dump_session *session)
{
	return session->base ? base_size(session->base) : 0;
}

int base_dir_add(const struct dumped_process *process, struct content_job *job)
{
	const uint64_t size = content_size(job->bos, job->num_bos);
	char name[IMAGE_NAME_SIZE];
	int ret;

	if (!process->session->base || !size)
		return 0;
	(void)snprintf(name, sizeof(name), IMAGE_PAGES_NAME, process->id, job->gpu_id);
	ret = base_chunks_init(&job->chunks, process->session->base, name,
			       IMAGE_HEADER_SIZE + size);
	return ret < 0 ? log_error(ret, "option base: cannot list the chunks of %s", name) : 0;
}

static int write_sums(const struct dumped_process *process, struct content_job *job)
{
	_cleanup_free_ void *bytes = NULL;
	size_t size;
	int ret = base_pack_sums(&job->chunks, job->image_fd, &bytes, &size);

	return ret < 0 ? ret : image_write_sums(process->id, job->gpu_id, bytes, size);
}

void base_dir_finish(const struct dumped_process *process, struct content_job *job)
{
	const struct base_chunks *chunks = &job->chunks;

	if (!chunks->is_used) {
		if (chunks->sums.count)
			log_warn(
				"option base: GPU 0x%04x: shares nothing, because the file takes its bytes in order, or its contents or max-buffer-size are small",
				job->gpu_id);
		return;
	}
	log_info("GPU 0x%04x: shares %" PRIu64 " of %" PRIu64 " bytes with the base", job->gpu_id,
		 chunks->shared_bytes, content_size(job->bos, job->num_bos));
	if (chunks->error)
		log_warn(
			"option base: GPU 0x%04x: the file system cannot share blocks of the base with this image, so the contents are written: %s",
			job->gpu_id, strerror(chunks->error));
	/* The image is complete without them. */
	if (write_sums(process, job) < 0)
		log_warn(
			"option base: GPU 0x%04x: without sums of its contents, the next dump shares nothing with this one",
			job->gpu_id);
}
