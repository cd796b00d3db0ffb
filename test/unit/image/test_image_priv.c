// SPDX-License-Identifier: GPL-2.0-only
/* Tests the checks of handles in private data: what would crash a driver, or take minutes, is
 * refused with one line. */
#include "host.h"

#include "image/image.h"
#include "image/image_validate.h"
#include "kernel/kfd.h"

#define GPUS       2
#define BOS        4
#define BO_RECORD  272
#define EVENT      64
#define RECORDS    (8 + 8 * GPUS)
#define EVENTS     (RECORDS + BO_RECORD * BOS)
#define PAGE_SIZE  32768
#define HANDLE_MAX (1u << 26)

/* Two GPUs with two BOs each: VRAM and GTT, with the handles 0 and 1. Two events, and the GTT BO of
 * the first GPU is the page for them. */
static struct image {
	KfdDeviceEntry devices[GPUS];
	KfdDeviceEntry *device_list[GPUS];
	KfdBoEntry bos[BOS];
	KfdBoEntry *bo_list[BOS];
	uint8_t data[EVENTS + 2 * EVENT];
	CriuKfd kfd;
} image;

static void set_handle(size_t bo, uint32_t handle)
{
	memcpy(image.data + RECORDS + BO_RECORD * bo + 8, &handle, sizeof(handle));
}

static void set_page(size_t event, uint64_t handle)
{
	memcpy(image.data + EVENTS + EVENT * event + 8, &handle, sizeof(handle));
}

static void make_gpu(uint32_t i)
{
	KfdDeviceEntry *gpu = &image.devices[i];

	kfd_device_entry__init(gpu);
	gpu->node_id = 1 + i;
	gpu->gpu_id = gpu->actual_gpu_id = 0x10 * (1 + i);
	gpu->drm_render_minor = 128 + i;
	image.device_list[i] = gpu;
}

static void make_bo(uint32_t i)
{
	KfdBoEntry *bo = &image.bos[i];

	kfd_bo_entry__init(bo);
	bo->gpu_id = 0x10 * (1 + i / 2);
	bo->alloc_flags = i % 2 ? KFD_BO_GTT : KFD_BO_VRAM;
	bo->addr = 0x7f0000000000 + 0x100000 * i;
	bo->offset = 0x100000000 + 0x100000 * i;
	bo->size = PAGE_SIZE;
	image.bo_list[i] = bo;
	set_handle(i, i % 2);
}

static void make_image(void)
{
	memset(&image, 0, sizeof(image));
	image.data[0] = 1;
	for (uint32_t i = 0; i < GPUS; i++)
		make_gpu(i);
	for (uint32_t i = 0; i < BOS; i++)
		make_bo(i);
	image.data[EVENTS] = image.data[EVENTS + EVENT] = 1; /* the type of the records */
	set_page(0, KFD_HANDLE(0x10, 1));
	criu_kfd__init(&image.kfd);
	image.kfd.pid = 1;
	image.kfd.device_entries = image.device_list;
	image.kfd.n_device_entries = image.kfd.num_of_gpus = GPUS;
	image.kfd.bo_entries = image.bo_list;
	image.kfd.n_bo_entries = image.kfd.num_of_bos = BOS;
	image.kfd.num_of_objects = 2;
	image.kfd.priv_data = (ProtobufCBinaryData){ sizeof(image.data), image.data };
}

static void make_import(size_t bo)
{
	image.bos[bo].has_object = image.bos[bo].has_owner_pid = true;
	image.bos[bo].object = 1;
	image.bos[bo].owner_pid = 2;
}

static void assert_passes(void)
{
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
}

static void assert_refused(const char *words)
{
	unit_forget_lines();
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_int_equal(unit_count_errors(), 1);
	assert_logged("Error (amdgpu_plugin): kfd 7: ", words);
}

UNIT_TEST(handles_of_a_driver_pass)
{
	make_image();
	assert_passes();
	/* Linux 7 makes the page itself. */
	set_page(0, 0);
	assert_passes();
	set_page(1, KFD_HANDLE(0x10, 1));
	assert_passes();
	set_handle(0, HANDLE_MAX);
	assert_passes();
}

UNIT_TEST(a_page_for_events_must_be_a_bo)
{
	static const uint64_t pages[] = { KFD_HANDLE(0x10, 2), KFD_HANDLE(0x30, 1), 1, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		make_image();
		set_page(0, pages[i]);
		assert_refused("is no BO that RESTORE makes");
		set_page(0, 0);
		set_page(1, pages[i]);
		assert_refused("is no BO that RESTORE makes");
	}
	make_image();
	image.bos[1].alloc_flags = KFD_BO_USERPTR;
	assert_refused("is no BO that RESTORE makes");
	make_image();
	make_import(1);
	assert_refused("is no BO that RESTORE makes");
}

UNIT_TEST(a_page_for_events_must_have_room_for_all)
{
	make_image();
	image.bos[1].size = PAGE_SIZE - 0x1000;
	assert_refused("28672 bytes, fewer than 32768");
}

UNIT_TEST(a_handle_is_that_of_one_bo_of_a_gpu)
{
	make_image();
	set_handle(3, 0);
	assert_refused("two BOs have handle 0x2000000000");
}

UNIT_TEST(a_handle_that_is_too_high_is_refused)
{
	static const uint32_t handles[] = { HANDLE_MAX + 1, INT32_MAX, 1u << 31, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
		make_image();
		set_handle(2, handles[i]);
		assert_refused("BO 2 has the impossible handle");
	}
}

/* The restore makes a BO for each lower number. */
UNIT_TEST(an_import_behind_many_free_numbers_is_refused)
{
	make_image();
	set_handle(2, IMAGE_HANDLE_MAX(BOS) + 1);
	assert_passes();
	make_import(2);
	assert_refused("BO 2 has the impossible handle");
	/* RESTORE imports it, under any number. */
	image.bos[2].has_by_share_handle = image.bos[2].by_share_handle = true;
	assert_passes();
	image.bos[2].by_share_handle = false;
	set_handle(2, IMAGE_HANDLE_MAX(BOS));
	assert_passes();
}

/* Only its own driver can restore it. */
UNIT_TEST(data_of_an_unknown_layout_passes)
{
	make_image();
	set_handle(3, 0);
	image.kfd.priv_data.len--;
	assert_passes();
}
