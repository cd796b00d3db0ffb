// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the files of the image directory, and the same from a streamer: header, length, message.
 * The first byte selects the image, whether it is streamed, and whether the file has a hole behind
 * the input. */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "criu/host.h"
#include "image/image.h"
#include "image/image_validate.h"

#define ID  5
#define GPU 0x10

enum how {
	STREAMED = 4,
	WITH_HOLE = 8,
	DMABUF = 16,
};

static const uint8_t *text;
static size_t text_size;

/* A pipe has room for all bytes of the streamer. */
static int open_streamed(const char *name, int flags)
{
	int pipes[2];

	(void)name;
	(void)flags;
	if (text_size > 60000 || pipe2(pipes, O_CLOEXEC) < 0)
		return -ENOENT;
	if (text_size)
		promise(write(pipes[1], text, text_size) == (ssize_t)text_size);
	(void)close(pipes[1]);
	return pipes[0];
}

/* The name of the other end shows the plugin that CRIU streams. */
static void connect_streamer(int connection[2])
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s",
		       unit_path("streamer-serve.sock"));
	connection[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	promise(bind(listener, (struct sockaddr *)&name, sizeof(name)) == 0);
	promise(listen(listener, 1) == 0);
	promise(connect(connection[0], (struct sockaddr *)&name, sizeof(name)) == 0);
	connection[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	(void)close(listener);
	criu_stub.open_streamed = open_streamed;
}

static void write_file(const char *name, bool with_hole)
{
	uint64_t length = 0;

	unit_write(name, text, text_size);
	if (!with_hole || text_size < sizeof(length))
		return;
	/* A file is as long as its header says, if that is possible. A long file that is still
	 * valid would take too long to read. */
	memcpy(&length, text, sizeof(length));
	if (length < 1u << 20 || length > 1u << 30)
		(void)!truncate(unit_path("%s", name), (off_t)(8 + length));
}

static int read_pages(uint64_t size)
{
	int fd = -1, ret = image_open_pages(ID, GPU, size, &fd);
	struct stat stat;

	promise(ret == 0 || fd == -1);
	promise(ret < 0 || !size || fd >= 0);
	if (fd >= 0 && !image_is_streamed())
		promise(fstat(fd, &stat) == 0 && (uint64_t)stat.st_size == 8 + size);
	if (!ret)
		ret = image_end_pages(ID, GPU, &fd);
	return ret;
}

static int read_dmabuf(void)
{
	struct state_image image;
	int ret = image_read(ID, &image);

	promise(ret < 0 || image.kind == IMAGE_DMABUF);
	if (ret < 0)
		return ret;
	ret = image_validate_dmabuf(ID, image.dmabuf);
	image_done(&image);
	return ret;
}

static int read_image(unsigned int kind, uint64_t size)
{
	CriuRenderNode *render;
	CriuKfd *kfd;
	int ret;

	switch (kind) {
	default:
		ret = image_read_kfd(ID, &kfd);
		if (!ret)
			criu_kfd__free_unpacked(kfd, NULL);
		return ret;
	case 1:
		ret = image_read_render(ID, &render);
		if (!ret)
			criu_render_node__free_unpacked(render, NULL);
		return ret;
	case 2:
		return read_pages(size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const names[] = { "amdgpu-kfd-5.img", "amdgpu-renderD-5.img",
					     "amdgpu-pages-5-0010.img", "amdgpu-kfd-5.img" };
	struct fuzz_input input = { bytes, size };
	uint64_t how = fuzz_take_number(&input, 1);
	bool is_dmabuf = how & DMABUF;
	unsigned int kind = is_dmabuf ? 0 : how & 3;
	uint64_t wanted = kind == 2 ? fuzz_take_number(&input, 8) : 0;
	int connection[2] = { -1, -1 };
	int ret;

	fuzz_begin();
	text = input.bytes;
	text_size = input.size;
	if (how & STREAMED && kind != 3 && !is_dmabuf)
		connect_streamer(connection);
	else
		write_file(is_dmabuf ? "amdgpu-dmabuf_5.img" : names[kind], how & WITH_HOLE);
	host_find_streamer();
	ret = is_dmabuf ? read_dmabuf() : read_image(kind, wanted);
	promise(ret != -ENOENT || text_size > 60000);
	promise(ret == -ENOENT || unit_count_errors() == (ret < 0));
	(void)close(connection[0]);
	(void)close(connection[1]);
	fuzz_end();
	return 0;
}
