// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes a file of contents, whole or with holes, too short, or a pipe, on its way to BOs. The
 * input is the kind, the sizes of the BOs in pages, and runs of bytes, each with the size of the
 * gap before it. The BOs must get the bytes that a plain read returns. */
#include "fuzz.h"

#include "fake_gpu.h"

#include "content/content.h"

#define PAGE    4096
#define BOS_MAX 8
#define ROOM    (1u << 20)

enum how {
	STREAMED = 1,
	CUT_OFF = 2,
	CHECKSUMS = 4,
	LITTLE_STAGING = 8,
};

struct pages {
	uint64_t how;
	struct content_bo bos[BOS_MAX];
	size_t num_bos;
	/* Header and contents. */
	uint64_t size;
	int fd;
};

static int make_bo(size_t index, uint64_t size)
{
	int fd = openat(AT_FDCWD, unit_path("bo-%zu", index), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	promise(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	return fd;
}

static void make_bos(struct fuzz_input *input, struct pages *pages)
{
	size_t count = fuzz_take_number(input, 1) % BOS_MAX + 1;

	pages->size = 8;
	for (size_t i = 0; i < count; i++) {
		uint64_t size = fuzz_take_number(input, 1) % 17 * PAGE;

		pages->bos[pages->num_bos++] =
			(struct content_bo){ .dmabuf_fd = make_bo(i, size), .size = size };
		pages->size += size;
	}
}

/* Unwritten parts are holes. */
static void make_file(struct fuzz_input *input, struct pages *pages)
{
	uint64_t at = 0;

	pages->fd = openat(AT_FDCWD, unit_path("pages"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	promise(pages->fd >= 0);
	while (input->size) {
		uint64_t skipped = fuzz_take_number(input, 2), size = fuzz_take_number(input, 1);
		const uint8_t *bytes = fuzz_take_bytes(input, size, &size);

		at += skipped;
		if (at + size > ROOM)
			break;
		promise(pwrite(pages->fd, bytes, size, (off_t)at) == (ssize_t)size);
		at += size;
	}
	if (!(pages->how & CUT_OFF))
		promise(ftruncate(pages->fd, (off_t)pages->size) == 0);
}

/* The bytes that a pipe has room for; the header has been read. */
static int make_pipe(const struct pages *pages)
{
	static char bytes[ROOM];
	ssize_t size = pread(pages->fd, bytes, sizeof(bytes), 8);
	int pipes[2];

	promise(size >= 0 && pipe2(pipes, O_CLOEXEC) == 0);
	promise(fcntl(pipes[1], F_SETPIPE_SZ, ROOM) >= (int)ROOM);
	promise(write(pipes[1], bytes, (size_t)size) == size);
	(void)close(pipes[1]);
	return pipes[0];
}

static void check(const struct pages *pages)
{
	uint64_t at = 8;

	for (size_t i = 0; i < pages->num_bos; i++) {
		static uint8_t expected[17 * PAGE], found[17 * PAGE];
		size_t size = pages->bos[i].size;

		promise(pread(pages->fd, expected, size, (off_t)at) == (ssize_t)size);
		promise(pread(pages->bos[i].dmabuf_fd, found, size, 0) == (ssize_t)size);
		promise(!memcmp(expected, found, size));
		at += size;
	}
}

static int load(struct pages *pages)
{
	const struct content_settings settings = {
		.staging_bytes = pages->how & LITTLE_STAGING ? PAGE : 8 * PAGE,
		.copy_timeout_s = 5,
		.checksum = true,
	};
	struct content_job job = {
		.gpu_id = 0x10,
		.render_minor = 128,
		.bos = pages->bos,
		.num_bos = pages->num_bos,
		.image_fd = pages->how & STREAMED ? make_pipe(pages) : pages->fd,
		.streamed = pages->how & STREAMED,
		.has_checksums = pages->how & CHECKSUMS,
	};
	int ret = content_load(&job, 1, &settings);

	if (job.image_fd != pages->fd)
		(void)close(job.image_fd);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = { bytes, size };
	struct pages pages = { .how = fuzz_take_number(&input, 1) };
	off_t length;
	int ret;

	promise(fake_gpu_begin(NULL) == 0);
	make_bos(&input, &pages);
	make_file(&input, &pages);
	ret = load(&pages);
	length = lseek(pages.fd, 0, SEEK_END);
	promise(unit_count_errors() == (ret < 0));
	promise(ret < 0 || pages.size == 8 || (uint64_t)length >= pages.size);
	if (!ret)
		check(&pages);
	for (size_t i = 0; i < pages.num_bos; i++)
		(void)close(pages.bos[i].dmabuf_fd);
	(void)close(pages.fd);
	promise(fake_gpu_end(NULL) == 0);
	return 0;
}
