// SPDX-License-Identifier: GPL-2.0-only
/* Tests streamed images: writing to a streamer, reading from it, and streams that end too early or
 * too late. */
#include "streamed.h"

#include <sys/resource.h>

#include "image/image.h"
#include "image/image_dir.h"

/* More than a pipe holds, and more than the first buffer of a read. */
#define LARGE (300u << 10)

static void write_kfd(int id, size_t private_size)
{
	CriuKfd kfd = CRIU_KFD__INIT;

	kfd.pid = 4711;
	kfd.num_of_gpus = 1;
	kfd.priv_data.data = malloc(private_size);
	assert_non_null(kfd.priv_data.data);
	for (size_t i = 0; i < private_size; i++)
		kfd.priv_data.data[i] = (uint8_t)(i * 7 >> 3);
	kfd.priv_data.len = private_size;
	assert_int_equal(image_write_kfd(id, &kfd), 0);
	free(kfd.priv_data.data);
}

UNIT_TEST(a_connection_to_a_streamer_means_streaming)
{
	assert_false(image_is_streamed());
	start_streaming(true);
	assert_true(image_is_streamed());
	turn_stream();
	assert_true(image_is_streamed());
	stop_streaming();
	assert_false(image_is_streamed());
}

/* The file may belong to a streamer that has ended, or that CRIU does not use. */
UNIT_TEST(the_file_of_a_socket_does_not_mean_streaming)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		       unit_path("streamer-capture.sock"));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_false(image_is_streamed());
	(void)close(listener);
	assert_false(image_is_streamed());
	write_kfd(1, 1);
	assert_true(unit_exists("amdgpu-kfd-1.img"));
}

UNIT_TEST(a_connection_to_another_socket_does_not_mean_streaming)
{
	assert_int_equal(streamer_connect(unit_directory(), "streamer-capture.socket"), 0);
	assert_false(image_is_streamed());
}

UNIT_TEST(streamed_images_have_the_bytes_of_files)
{
	static const char *const names[] = { "amdgpu-kfd-12.img", "amdgpu-renderD-12.img",
					     "amdgpu-pages-12-0a42.img" };
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	uint8_t *files[ARRAY_SIZE(names)], *streamed;
	size_t sizes[ARRAY_SIZE(names)], size;
	int fd = -1;

	for (unsigned int pass = 0; pass < 2; pass++) {
		if (pass)
			start_streaming(true);
		write_kfd(12, LARGE);
		assert_int_equal(image_write_render(12, &node), 0);
		assert_int_equal(image_create_pages(12, 0xa42, 0, &fd), 0);
		assert_int_equal(image_close_pages(12, 0xa42, &fd), 0);
		for (size_t i = 0; !pass && i < ARRAY_SIZE(names); i++) {
			files[i] = unit_read(names[i], &sizes[i]);
			assert_int_equal(unlink(unit_path("%s", names[i])), 0);
		}
	}
	stop_streaming();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_false(unit_exists(names[i]));
		streamed = read_streamed(names[i], &size);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(streamed, files[i], size);
		free(streamed);
		free(files[i]);
	}
}

/* Reading is the only way to learn the kind, and a stream has each image once. */
UNIT_TEST(image_read_finds_a_streamed_image_once)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	struct state_image image;

	start_streaming(true);
	write_kfd(1, LARGE);
	assert_int_equal(image_write_render(2, &node), 0);
	turn_stream();
	for (int id = 1; id <= 2; id++) {
		assert_int_equal(image_read(id, &image), 0);
		assert_int_equal(image.kind, id == 1 ? IMAGE_KFD : IMAGE_RENDER);
		image_done(&image);
		assert_int_equal(image_read(id, &image), 0);
		assert_int_equal(image.kind, IMAGE_NONE);
	}
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

/* The files in the directory belong to another dump. */
UNIT_TEST(files_beside_a_stream_are_neither_read_nor_removed)
{
	CriuRenderNode *node;
	CriuKfd *kfd;

	write_kfd(1, 1);
	start_streaming(true);
	assert_int_equal(image_dir_remove_old(), 0);
	assert_int_equal(image_dir_remove_state(), 0);
	image_remove_kfd(1);
	assert_true(unit_exists("amdgpu-kfd-1.img"));
	assert_int_equal(image_check_room(UINT64_MAX, UINT64_MAX), 0);
	turn_stream();
	assert_int_equal(image_read_kfd(1, &kfd), -ENOENT);
	assert_int_equal(image_read_render(1, &node), -ENOENT);
	image_dir_report_missing(1, false);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	image_dir_report_missing(1, true);
	assert_int_equal(unit_count_lines("amdgpu-kfd-1.img"), 1);
}

UNIT_TEST(a_message_that_ends_early_is_refused_by_name)
{
	CriuKfd *kfd;
	_cleanup_free_ uint8_t *whole = NULL;
	size_t size;

	start_streaming(true);
	write_kfd(1, 40);
	stop_streaming();
	whole = read_streamed("amdgpu-kfd-1.img", &size);
	for (size_t left = 0; left < size; left++) {
		write_streamed("amdgpu-kfd-1.img", whole, left);
		start_streaming(false);
		unit_forget_lines();
		assert_int_equal(image_read_kfd(1, &kfd), -EIO);
		assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img");
		assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
		stop_streaming();
	}
}

UNIT_TEST(a_message_that_goes_on_is_refused_by_name)
{
	static const uint8_t longer[] = { 2, 0, 0, 0, 0, 0, 0, 0, 8, 1, 0 };
	CriuRenderNode *node;

	start_streaming(false);
	write_streamed("amdgpu-renderD-1.img", longer, sizeof(longer) - 1);
	assert_int_equal(image_read_render(1, &node), 0);
	criu_render_node__free_unpacked(node, NULL);
	write_streamed("amdgpu-renderD-1.img", longer, sizeof(longer));
	assert_int_equal(image_read_render(1, &node), -EIO);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-renderD-1.img", "more bytes");
}

/* Only the end of a stream shows that its length is wrong, so the plugin must not allocate it. */
UNIT_TEST(a_length_beyond_all_memory_takes_none)
{
	static const uint8_t huge[] = { 0, 0, 0, 0, 0, 0, 0, 0x40, 8, 1 };
	static const uint8_t largest[] = { 255, 255, 255, 255, 255, 255, 255, 255, 8, 1 };
	static const uint8_t possible[] = { 0, 0, 0, 0x3f, 0, 0, 0, 0, 8, 1 };
	CriuKfd *kfd;

	start_streaming(false);
	write_streamed("amdgpu-kfd-1.img", huge, sizeof(huge));
	assert_int_equal(image_read_kfd(1, &kfd), -EIO);
	stop_streaming();
	start_streaming(false);
	write_streamed("amdgpu-kfd-2.img", largest, sizeof(largest));
	assert_int_equal(image_read_kfd(2, &kfd), -EIO);
	stop_streaming();
	start_streaming(false);
	write_streamed("amdgpu-kfd-3.img", possible, sizeof(possible));
	assert_int_equal(image_read_kfd(3, &kfd), -EIO);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 3);
}

UNIT_TEST(a_streamer_that_ends_fails_the_write_by_name)
{
	CriuKfd kfd = CRIU_KFD__INIT;

	start_streaming(true);
	streamer.breaks_after = 10;
	kfd.priv_data.len = LARGE;
	kfd.priv_data.data = calloc(1, LARGE);
	assert_int_equal(image_write_kfd(1, &kfd), -EPIPE);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img", "Broken pipe");
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
	free(kfd.priv_data.data);
}

/* CRIU returns -1, which is no errno value; as -errno it would be -EPERM. */
UNIT_TEST(a_streamer_that_does_not_answer_is_an_error_by_name)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT, *read;
	int fd = -1;

	start_streaming(true);
	streamer.deaf = true;
	assert_int_equal(image_write_render(1, &node), -EIO);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-renderD-1.img", "streamer");
	assert_int_equal(image_create_pages(1, 0xa42, 1, &fd), -EIO);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-pages-1-0a42.img", "streamer");
	turn_stream();
	streamer.deaf = true;
	unit_forget_lines();
	assert_int_equal(image_read_render(1, &read), -EIO);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-renderD-1.img", "streamer");
	assert_int_equal(image_open_pages(1, 0xa42, 1, &fd), -EIO);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-pages-1-0a42.img", "streamer");
	assert_int_equal(fd, -1);
}

UNIT_TEST(pages_are_a_pipe_that_starts_after_the_length)
{
	static const uint8_t pages[] = { 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c', 'd' };
	char contents[4] = "";
	int fd = -1;

	start_streaming(false);
	for (unsigned int extra = 0; extra < 2; extra++) {
		write_streamed("amdgpu-pages-5-beef.img", pages, sizeof(pages) - 1 + extra);
		assert_int_equal(image_open_pages(5, 0xbeef, 3, &fd), 0);
		assert_int_equal(read_full(fd, contents, 3), 0);
		assert_string_equal(contents, "abc");
		assert_int_equal(image_end_pages(5, 0xbeef, &fd), extra ? -EIO : 0);
		assert_int_equal(fd, -1);
		assert_int_equal(unit_count_lines("amdgpu-pages-5-beef.img"), extra);
	}
	/* No contents: the stream is not opened. */
	assert_int_equal(image_open_pages(6, 0xbeef, 0, &fd), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(image_end_pages(6, 0xbeef, &fd), 0);
}

UNIT_TEST(missing_or_short_pages_are_refused_by_name)
{
	static const uint8_t pages[] = { 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c' };
	int fd = -1;

	start_streaming(false);
	assert_int_equal(image_open_pages(5, 0xbeef, 3, &fd), -ENOENT);
	write_streamed("amdgpu-pages-5-beef.img", pages, sizeof(pages));
	assert_int_equal(image_open_pages(5, 0xbeef, 4, &fd), -EINVAL);
	stop_streaming();
	start_streaming(false);
	write_streamed("amdgpu-pages-5-beef.img", pages, 7);
	assert_int_equal(image_open_pages(5, 0xbeef, 3, &fd), -EIO);
	assert_int_equal(fd, -1);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): image amdgpu-pages-5-beef.img"),
			 3);
}
