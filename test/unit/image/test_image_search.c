// SPDX-License-Identifier: GPL-2.0-only
/* Tests the functions that list, read and remove images in CRIU's directory. */
#include "foreign_image.h"

#include <sys/wait.h>

#include "image/image.h"
#include "image/image_dir.h"

/* Others have such names by chance, or are copies. */
UNIT_TEST(images_are_listed_by_id_and_others_left_out)
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;

	write_foreign_kfd("amdgpu-kfd-11.img", 111, VINTAGE_B);
	write_foreign_kfd("amdgpu-kfd-3.img", 103, VINTAGE_A);
	write_foreign_kfd("amdgpu-kfd-07.img", 107, VINTAGE_B);
	write_foreign_kfd("amdgpu-kfd-8.img.bak", 108, VINTAGE_B);
	write_foreign_kfd("amdgpu-kfd-x.img", 109, VINTAGE_B);
	assert_int_equal(image_dir_list(IMAGE_KFD, &ids, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(ids[0], 3);
	assert_int_equal(ids[1], 11);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

UNIT_TEST(a_list_keeps_the_position_of_criu_s_directory)
{
	off_t before;

	write_foreign_kfd("amdgpu-kfd-3.img", 103, VINTAGE_A);
	before = lseek(criu_stub.image_dir, 0, SEEK_CUR);
	for (unsigned int i = 0; i < 3; i++) {
		_cleanup_free_ int *ids = NULL;
		size_t count = 0;

		assert_int_equal(image_dir_list(IMAGE_KFD, &ids, &count), 0);
		assert_int_equal(count, 1);
	}
	assert_int_equal(lseek(criu_stub.image_dir, 0, SEEK_CUR), before);
}

/* The restore would open /dev/kfd without the state, and without an error. */
UNIT_TEST(a_state_without_a_gpu_is_refused)
{
	uint8_t private_data[8] = { 0 };
	CriuKfd damaged = CRIU_KFD__INIT, *kfd;

	damaged.pid = 50;
	damaged.priv_data.data = private_data;
	damaged.priv_data.len = sizeof(private_data);
	assert_int_equal(image_write_kfd(1, &damaged), 0);
	assert_int_equal(image_read_kfd(1, &kfd), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img", "no GPU");
}

UNIT_TEST(only_images_of_an_older_dump_are_removed)
{
	static const char *const removed[] = { "amdgpu-kfd-1.img", "amdgpu-kfd-22.img",
					       "amdgpu-renderD-3.img", "amdgpu-pages-1-beef.img",
					       "amdgpu-pages-22-0a42.img" };
	static const char *const kept[] = { "pages-1.img",
					    "amdgpu-kfd-1.img.bak",
					    "core-1.img",
					    "amdgpu-kfd-x.img",
					    "my-amdgpu-kfd-1.img",
					    "amdgpu-pages-1-beef.img.bak",
					    "amdgpu-pages-1-a42.img",
					    "amdgpu-pages-1-BEEF.img",
					    "amdgpu-pages-1-x.img",
					    "amdgpu-pages-1.img",
					    "amdgpu-pages-1-.img",
					    "amdgpu-pages-01-beef.img" };

	for (size_t i = 0; i < ARRAY_SIZE(removed); i++)
		unit_print(removed[i], "old");
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		unit_print(kept[i], "other");
	assert_int_equal(image_dir_remove_old(), 0);
	for (size_t i = 0; i < ARRAY_SIZE(removed); i++)
		assert_false(unit_exists(removed[i]));
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_true(unit_exists(kept[i]));
}

/* A restore could take it for an image of this dump. The other old images are removed. */
UNIT_TEST(an_old_image_that_cannot_be_removed_is_an_error)
{
	unit_print("amdgpu-kfd-1.img", "old");
	assert_int_equal(mkdir(unit_path("amdgpu-kfd-2.img"), 0700), 0);
	unit_print("amdgpu-kfd-3.img", "old");
	unit_print("amdgpu-renderD-4.img", "old");
	assert_true(image_dir_remove_old() < 0);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-2.img");
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	assert_false(unit_exists("amdgpu-kfd-1.img"));
	assert_false(unit_exists("amdgpu-kfd-3.img"));
	assert_false(unit_exists("amdgpu-renderD-4.img"));
}

/* Pages files may be large, and the job waits for the removal. */
UNIT_TEST(removing_state_images_keeps_pages_files)
{
	unit_print("amdgpu-kfd-1.img", "ours");
	unit_print("amdgpu-renderD-3.img", "ours");
	unit_print("amdgpu-pages-1-beef.img", "ours");
	assert_int_equal(image_dir_remove_state(), 0);
	assert_false(unit_exists("amdgpu-kfd-1.img"));
	assert_false(unit_exists("amdgpu-renderD-3.img"));
	assert_true(unit_exists("amdgpu-pages-1-beef.img"));
}

UNIT_TEST(removing_an_image_keeps_the_others)
{
	write_foreign_kfd("amdgpu-kfd-1.img", 1, VINTAGE_A);
	write_foreign_kfd("amdgpu-kfd-2.img", 2, VINTAGE_A);
	image_remove_kfd(1);
	image_remove_kfd(9);
	assert_false(unit_exists("amdgpu-kfd-1.img"));
	assert_true(unit_exists("amdgpu-kfd-2.img"));
}

UNIT_TEST(a_state_image_in_the_directory_is_found)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	CriuKfd kfd = CRIU_KFD__INIT;

	assert_false(image_dir_has_any());
	unit_write("amdgpu-pages-5-1234.img", "", 0);
	unit_write("core-5.img", "", 0);
	assert_false(image_dir_has_any());
	assert_int_equal(image_write_render(6, &node), 0);
	assert_true(image_dir_has_any());
	assert_int_equal(unlinkat(criu_stub.image_dir, "amdgpu-renderD-6.img", 0), 0);
	assert_false(image_dir_has_any());
	assert_int_equal(image_write_kfd(6, &kfd), 0);
	assert_true(image_dir_has_any());
}

UNIT_TEST(the_kind_of_an_image_is_found_by_its_id)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	CriuKfd kfd = CRIU_KFD__INIT;
	struct state_image image;

	kfd.pid = 50;
	node.gpu_id = 0x4321;
	assert_int_equal(image_write_kfd(5, &kfd), 0);
	assert_int_equal(image_write_render(6, &node), 0);
	assert_int_equal(image_read(5, &image), 0);
	assert_int_equal(image.kind, IMAGE_KFD);
	assert_int_equal(image.kfd->pid, 50);
	image_done(&image);
	assert_int_equal(image_read(6, &image), 0);
	assert_int_equal(image.kind, IMAGE_RENDER);
	assert_int_equal(image.render->gpu_id, 0x4321);
	image_done(&image);
	assert_int_equal(image_read(7, &image), 0);
	assert_int_equal(image.kind, IMAGE_NONE);
	image_done(&image);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

UNIT_TEST(a_damaged_image_has_a_kind_and_fails_the_read)
{
	struct state_image image = { 0 };

	unit_print("amdgpu-kfd-1.img", "damaged");
	unit_print("amdgpu-renderD-2.img", "damaged");
	assert_int_equal(mkdir(unit_path("amdgpu-kfd-3.img"), 0700), 0);
	for (int id = 1; id <= 3; id++) {
		unit_forget_lines();
		assert_in_range(-image_read(id, &image), 1, 4095);
		assert_int_equal(image.kind, IMAGE_NONE);
		assert_int_equal(unit_count_lines("Error (amdgpu_plugin): image"), 1);
	}
}

UNIT_TEST(a_link_to_nothing_is_no_image)
{
	struct state_image image = { 0 };

	assert_int_equal(symlink("nowhere", unit_path("amdgpu-kfd-1.img")), 0);
	assert_int_equal(image_read(1, &image), 0);
	assert_int_equal(image.kind, IMAGE_NONE);
}
