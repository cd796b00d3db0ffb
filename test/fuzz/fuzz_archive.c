// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the reader of archives that criu-amdgpu has. The input is an archive. */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/image_archive.h"
#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "image/image_dir.h"

#define MOST_BYTES (4u << 20)

/* As the tool does with a pages file of the right size. */
static int take_pages(const struct image_name *image, struct tar_member *member, void *argument)
{
	const struct image_archive *archive = argument;
	uint64_t size = 0;
	char bytes[4096];

	/* A second entry of that name would have been refused. */
	promise(image_archive_find_pages(archive, image->id, image->gpu_id, &size) == 0);
	promise(member->size == size);
	/* A hole of any size costs the input few bytes. */
	size = size < MOST_BYTES ? size : MOST_BYTES;
	for (; size; size -= size < sizeof(bytes) ? size : sizeof(bytes)) {
		int ret = tar_read(member, bytes, size < sizeof(bytes) ? size : sizeof(bytes));

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void open_all(const struct image_archive *archive, enum image_kind kind, const char *pattern)
{
	int *ids = NULL;
	size_t count = 0;

	promise(image_archive_list(archive, kind, &ids, &count) == 0);
	for (size_t i = 0; i < count; i++) {
		char name[IMAGE_NAME_SIZE];
		struct stat stat;
		int fd;

		promise(!i || ids[i - 1] <= ids[i]);
		(void)snprintf(name, sizeof(name), pattern, ids[i]);
		fd = image_archive_open(archive, name);
		promise(fd >= 0 && fstat(fd, &stat) == 0 && stat.st_size <= 1 << 30);
		(void)close(fd);
	}
	free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct image_archive *archive = NULL;
	int fd;

	fuzz_begin();
	fd = memfd_create("archive", MFD_CLOEXEC);
	promise(fd >= 0 && write_full(fd, bytes, size) == 0);
	if (image_archive_read("input", fd, &archive) == 0) {
		const struct pages_reader reader = { .take = take_pages, .argument = archive };
		int files = image_archive_open(archive, FILES_NAME);

		open_all(archive, IMAGE_KFD, IMAGE_KFD_NAME);
		open_all(archive, IMAGE_RENDER, IMAGE_RENDER_NAME);
		open_all(archive, IMAGE_DMABUF, IMAGE_DMABUF_NAME);
		(void)image_archive_read_pages(archive, &reader);
		fd_close(&files);
	}
	image_archive_free(&archive);
	fuzz_end();
	return 0;
}
