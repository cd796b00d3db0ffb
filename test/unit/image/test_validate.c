// SPDX-License-Identifier: GPL-2.0-only
/* Each harmful value in an image is refused with one line, and unusual, harmless values pass. */
#include "host.h"

#include "image/image.h"
#include "image/image_validate.h"
#include "kernel/kfd.h"

#define ADDR 0x7f0000000000ULL
#define MIB  (1ULL << 20)

/* A CPU node and two GPUs with 1 MiB of VRAM each. The first GPU has a VRAM, a GTT and a user
 * memory BO, the second has a doorbell. */
static struct image {
	KfdDeviceEntry devices[3];
	KfdDeviceEntry *device_list[3];
	KfdBoEntry bos[4];
	KfdBoEntry *bo_list[4];
	bool has_handles;
	/* The second handle is of an object of another process. */
	bool has_other_object;
	GemHandleEntry handles[2];
	GemHandleEntry *handle_list[2];
	DrmVmEntry mapping;
	DrmVmEntry *mapping_list[1];
	uint8_t private_data[64];
	CriuKfd kfd;
} image;

static KfdBoEntry bo_of(uint32_t flags, uint64_t addr, uint64_t size, uint64_t offset)
{
	KfdBoEntry bo = KFD_BO_ENTRY__INIT;

	bo.gpu_id = 0x10;
	bo.alloc_flags = flags;
	bo.addr = addr;
	bo.size = size;
	bo.offset = offset;
	return bo;
}

/* The mapping is that of the two pages after the first one. */
static void name_other_object(GemHandleEntry *handle)
{
	handle->bo = IMAGE_NO_BO;
	handle->has_object = handle->has_owner_pid = handle->has_size = handle->has_offset = true;
	handle->object = IMAGE_OBJECTS_MAX;
	handle->owner_pid = 2;
	handle->size = 0x3000;
	handle->offset = 0x100000;
	image.mapping.offset = 0x1000;
}

/* Both name the GTT BO. The second one has a mapping of its last two pages. */
static void make_handles(CriuKfd *kfd)
{
	DrmVmEntry mapping = DRM_VM_ENTRY__INIT;

	mapping.addr = ADDR * 2;
	mapping.size = 0x2000;
	mapping.offset = 64 * MIB - 0x2000;
	image.mapping = mapping;
	image.mapping_list[0] = &image.mapping;
	for (uint32_t i = 0; i < ARRAY_SIZE(image.handles); i++) {
		GemHandleEntry handle = GEM_HANDLE_ENTRY__INIT;

		handle.gpu_id = 0x10;
		handle.handle = 2 + i;
		handle.bo = 1;
		handle.n_mappings = i;
		handle.mappings = image.mapping_list;
		image.handles[i] = handle;
		image.handle_list[i] = &image.handles[i];
	}
	if (image.has_other_object)
		name_other_object(&image.handles[1]);
	kfd->n_gem_handles = ARRAY_SIZE(image.handles);
	kfd->gem_handles = image.handle_list;
}

static void make_image(void)
{
	CriuKfd kfd = CRIU_KFD__INIT;

	for (uint32_t i = 0; i < ARRAY_SIZE(image.devices); i++) {
		KfdDeviceEntry device = KFD_DEVICE_ENTRY__INIT;

		device.node_id = i;
		device.gpu_id = device.actual_gpu_id = i * 0x10;
		device.has_actual_gpu_id = true;
		device.drm_render_minor = i ? 127 + i : 0;
		device.vram_size = i ? MIB : 0;
		image.devices[i] = device;
		image.device_list[i] = &image.devices[i];
	}
	image.bos[0] = bo_of(0xf0000000 | KFD_BO_VRAM, ADDR, 0x3000, 0x100000000);
	image.bos[1] = bo_of(KFD_BO_GTT, ADDR + 0x3000, 64 * MIB, 0x100003000);
	image.bos[2] = bo_of(KFD_BO_USERPTR, 0x1234, 0x777, 0);
	image.bos[3] = bo_of(KFD_BO_DOORBELL, 0x4000, 0x2000, 3ULL << 62);
	image.bos[3].gpu_id = 0x20;
	for (size_t i = 0; i < ARRAY_SIZE(image.bos); i++)
		image.bo_list[i] = &image.bos[i];
	kfd.pid = 1;
	kfd.num_of_gpus = 2;
	kfd.num_of_cpus = 1;
	kfd.n_device_entries = 3;
	kfd.device_entries = image.device_list;
	kfd.num_of_bos = kfd.n_bo_entries = 4;
	kfd.bo_entries = image.bo_list;
	kfd.num_of_objects = 16;
	kfd.priv_data = (ProtobufCBinaryData){ sizeof(image.private_data), image.private_data };
	if (image.has_handles)
		make_handles(&kfd);
	image.kfd = kfd;
}

enum width {
	W32,
	W64,
};

/* A field of the image, its value, and words of the expected line. */
struct hostile {
	const char *what;
	void *field;
	enum width width;
	uint64_t value;
	const char *words;
};

static void set(const struct hostile *hostile)
{
	uint32_t narrow = (uint32_t)hostile->value;

	if (hostile->width == W64)
		memcpy(hostile->field, &hostile->value, sizeof(hostile->value));
	else
		memcpy(hostile->field, &narrow, sizeof(narrow));
}

static void assert_refused(const struct hostile *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		print_message("case %s\n", cases[i].what);
		make_image();
		set(&cases[i]);
		unit_forget_lines();
		assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
		assert_logged("Error (amdgpu_plugin): kfd 7: ", cases[i].words);
		assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
	}
}

UNIT_TEST(a_good_image_passes)
{
	make_image();
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

/* Each of these values is harmful in an image without GEM handles. */
static const struct hostile harmful[] = {
	/* Counts that disagree. */
	{ "a BO more", &image.kfd.num_of_bos, W64, 5, "says 5 BOs and has 4" },
	{ "no BO", &image.kfd.num_of_bos, W64, 0, "says 0 BOs" },
	{ "as many in 32 bits", &image.kfd.num_of_bos, W64, (1ULL << 32) + 4, "BOs and has 4" },
	{ "all ones", &image.kfd.num_of_bos, W64, UINT64_MAX, "BOs and has 4" },
	{ "a GPU more", &image.kfd.num_of_gpus, W32, 3, "says 3 GPUs and has 2" },
	{ "all GPUs", &image.kfd.num_of_gpus, W32, UINT32_MAX, "GPUs and has 2" },
	{ "one object too many", &image.kfd.num_of_objects, W32, 17, "17 objects" },
	{ "all objects", &image.kfd.num_of_objects, W32, UINT32_MAX, "objects" },
	{ "no private data", &image.kfd.priv_data.len, W64, 0, "private data" },
	{ "more nodes than any", &image.kfd.n_device_entries, W64, 1025, "1025 nodes" },
	{ "more links than any", &image.devices[1].n_iolinks, W64, 1025, "1025 links" },
	/* Ids and minors out of range. */
	{ "a wide gpu_id", &image.devices[1].gpu_id, W32, 0x10010, "0x10010 is no gpu_id" },
	{ "a wide actual id", &image.devices[1].actual_gpu_id, W32, 0x80000000, "is no gpu_id" },
	{ "no minor", &image.devices[1].drm_render_minor, W32, 0, "no render node" },
	{ "that of a card", &image.devices[1].drm_render_minor, W32, 127, "render minor 127" },
	{ "more than the kernel has", &image.devices[1].drm_render_minor, W32, 1 << 20, "minor" },
	{ "a negative minor", &image.devices[1].drm_render_minor, W32, UINT32_MAX, "minor" },
	/* Duplicates. */
	{ "a node", &image.devices[2].node_id, W32, 1, "node 1 is in the image twice" },
	{ "a GPU", &image.devices[2].gpu_id, W32, 0x10, "GPU 0x0010 is in the image twice" },
	{ "a minor", &image.devices[2].drm_render_minor, W32, 128, "both have renderD128" },
	{ "an address", &image.bos[1].addr, W64, ADDR, "BOs 0 and 1 of GPU 0x0010" },
	{ "a page in front", &image.bos[1].addr, W64, ADDR - 0x1000, "same addresses" },
	{ "the last page", &image.bos[1].addr, W64, ADDR + 0x2000, "same addresses" },
	{ "an offset", &image.bos[1].offset, W64, 0x100000000, "same mmap offsets" },
	{ "the last page of an offset", &image.bos[1].offset, W64, 0x100002000, "same mmap" },
	/* BOs with impossible ranges. */
	{ "no GPU's", &image.bos[3].gpu_id, W32, 0x30, "GPU 0x0030, which the image does not" },
	{ "a CPU's", &image.bos[3].gpu_id, W32, 0, "which the image does not" },
	{ "no kind", &image.bos[3].alloc_flags, W32, 0xf0000000, "unknown kind" },
	{ "two kinds", &image.bos[3].alloc_flags, W32, 0x3, "unknown kind" },
	{ "no size", &image.bos[0].size, W64, 0, "no size" },
	{ "no size of a user's", &image.bos[2].size, W64, 0, "no size" },
	{ "a byte more than pages", &image.bos[0].size, W64, 0x3001, "no whole pages" },
	{ "all of memory", &image.bos[0].size, W64, UINT64_MAX - 0xfff, "too high" },
	{ "beyond the end", &image.bos[0].addr, W64, UINT64_MAX - 0xfff, "too high" },
	{ "a user's beyond the end", &image.bos[2].addr, W64, UINT64_MAX - 0x776, "too high" },
	{ "inside a page", &image.bos[0].addr, W64, ADDR + 1, "inside a page" },
	{ "offset inside a page", &image.bos[0].offset, W64, 0x100000001, "offset inside a page" },
	{ "offset beyond the end", &image.bos[0].offset, W64, UINT64_MAX - 0xfff,
	  "offset too high" },
	/* Sizes beyond the GPU and any file. */
	{ "more than the VRAM", &image.bos[0].size, W64, MIB + 0x1000, "bytes, and GPU 0x0010" },
	{ "together more", &image.devices[1].vram_size, W64, 0x2fff, "VRAM" },
	{ "more than any file", &image.bos[1].size, W64, INT64_MAX & ~0xfffULL, "larger than any" },
};

UNIT_TEST(each_harmful_value_is_refused)
{
	assert_refused(harmful, ARRAY_SIZE(harmful));
}

UNIT_TEST(handles_and_mappings_that_cannot_be_are_refused)
{
	const struct hostile cases[] = {
		{ "no GPU", &image.handles[1].gpu_id, W32, 0x30, "a GPU that the image" },
		{ "a CPU", &image.handles[1].gpu_id, W32, 0, "a GPU that the image" },
		{ "no BO", &image.handles[1].bo, W32, 4, "no BO that can be shared" },
		{ "any BO", &image.handles[1].bo, W32, UINT32_MAX - 1, "no BO that can be shared" },
		{ "neither BO nor object", &image.handles[1].bo, W32, IMAGE_NO_BO,
		  "neither a BO nor an object" },
		{ "user memory", &image.handles[1].bo, W32, 2, "no BO that can be shared" },
		{ "number 0", &image.handles[0].handle, W32, 0, "GEM handle 0 of GPU 0x0010" },
		{ "a number to fill up to", &image.handles[1].handle, W32, IMAGE_HANDLE_MAX(1) + 1,
		  "an impossible number" },
		{ "the same number", &image.handles[1].handle, W32, 2, "a lower number" },
		{ "a lower number", &image.handles[1].handle, W32, 1, "a lower number" },
		{ "no size", &image.mapping.size, W64, 0, "no whole pages" },
		{ "half a page", &image.mapping.size, W64, 0x1800, "no whole pages" },
		{ "an address in a page", &image.mapping.addr, W64, ADDR + 1, "no whole pages" },
		{ "a page too many", &image.mapping.size, W64, 0x3000, "outside of its BO" },
		{ "an offset behind it", &image.mapping.offset, W64, 64 * MIB,
		  "outside of its BO" },
		{ "any offset", &image.mapping.offset, W64, ~0xfffULL, "outside of its BO" },
		{ "the last page", &image.mapping.addr, W64, ~0xfffULL, "too high for its size" },
	};

	image.has_handles = true;
	make_image();
	image.handles[1].handle = IMAGE_HANDLE_MAX(1);
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	assert_refused(cases, ARRAY_SIZE(cases));
	/* of a GPU of its own */
	make_image();
	image.handles[1].gpu_id = 0x20;
	image.handles[1].handle = IMAGE_HANDLE_MAX(0) + 1;
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	image.handles[1].handle = IMAGE_HANDLE_MAX(0);
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	image.has_handles = false;
}

UNIT_TEST(metadata_of_a_gem_handle_are_bounded)
{
	uint8_t bytes[257] = { 0 };
	GemHandleEntry *handle = &image.handles[1];
	static const struct {
		bool has_metadata, has_flags, has_tiling;
		size_t size;
		const char *words;
	} cases[] = {
		{ true, true, true, 256, NULL },
		{ true, true, true, 257, "an impossible size of metadata" },
		{ true, true, true, 0, "an impossible size of metadata" },
		{ true, false, true, 4, "one part of its metadata without the others" },
		{ true, true, false, 4, "one part of its metadata without the others" },
		{ false, false, true, 4, "one part of its metadata without the others" },
	};

	image.has_handles = true;
	make_image();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		handle->has_metadata = cases[i].has_metadata;
		handle->metadata = (ProtobufCBinaryData){ cases[i].size, bytes };
		handle->has_metadata_flags = cases[i].has_flags;
		handle->has_tiling = cases[i].has_tiling;
		assert_int_equal(image_validate_kfd(7, &image.kfd), cases[i].words ? -EINVAL : 0);
		if (cases[i].words)
			assert_logged("Error (amdgpu_plugin): ", "GEM handle 3", cases[i].words);
	}
	image.has_handles = false;
}

UNIT_TEST(handles_of_other_processes_must_name_an_object)
{
	GemHandleEntry *handle = &image.handles[1];
	const struct hostile cases[] = {
		{ "object 0", &handle->object, W32, 0, "an impossible object" },
		{ "a high object", &handle->object, W32, IMAGE_OBJECTS_MAX + 1,
		  "an impossible object" },
		{ "no object", &handle->has_object, W32, 0, "neither a BO nor an object" },
		{ "no owner", &handle->has_owner_pid, W32, 0, "neither a BO nor an object" },
		{ "owner 0", &handle->owner_pid, W32, 0, "an impossible owner" },
		{ "a high owner", &handle->owner_pid, W32, 1u << 31, "an impossible owner" },
		{ "no size", &handle->has_size, W32, 0, "neither a BO nor an object" },
		{ "size 0", &handle->size, W64, 0, "no whole pages" },
		{ "half a page", &handle->size, W64, 0x2800, "no whole pages" },
		{ "an offset in a page", &handle->offset, W64, 0x100, "no whole pages" },
		{ "a small object", &handle->size, W64, 0x1000, "outside of its BO" },
	};

	image.has_handles = image.has_other_object = true;
	make_image();
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	assert_refused(cases, ARRAY_SIZE(cases));
	make_image();
	handle->owner_pid = image.kfd.pid;
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	image.has_handles = image.has_other_object = false;
}

/* With AMDGPU_FORCE, a dump saves an object that the process has at two addresses. */
UNIT_TEST(bos_that_were_one_object_pass)
{
	make_image();
	image.bos[1].offset = image.bos[0].offset;
	image.bos[1].size = image.bos[0].size;
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
	image.bos[1].addr = image.bos[0].addr;
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "same addresses");
}

/* Each BO alone would pass. */
UNIT_TEST(sums_beyond_gpu_and_file_are_refused)
{
	make_image();
	image.bos[1].alloc_flags = KFD_BO_VRAM;
	image.bos[1].size = MIB - 0x2000;
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_logged("kfd 7", "bytes of VRAM");
	image.bos[1].size = MIB - 0x3000;
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);

	make_image();
	image.bos[0] = bo_of(KFD_BO_GTT, 0, 1ULL << 62, 0);
	image.bos[1] = bo_of(KFD_BO_GTT, 1ULL << 62, 1ULL << 62, 1ULL << 62);
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_logged("kfd 7", "larger than any file");
}

static void share(KfdBoEntry *bo, uint32_t object, uint32_t owner_pid)
{
	bo->has_object = object != 0;
	bo->object = object;
	bo->has_owner_pid = owner_pid != 0;
	bo->owner_pid = owner_pid;
}

UNIT_TEST(shared_bos_pass)
{
	make_image();
	share(&image.bos[0], 1, 0);
	share(&image.bos[1], IMAGE_OBJECTS_MAX, 77);
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	/* An import takes no VRAM, and has no part of a file. */
	image.bos[1].alloc_flags = KFD_BO_VRAM;
	image.bos[1].size = MIB;
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	share(&image.bos[1], 2, 0);
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_logged("Error (amdgpu_plugin): kfd 7: ", "bytes of VRAM");
}

UNIT_TEST(impossible_shared_bos_are_refused)
{
	static const struct {
		size_t bo;
		uint32_t has_object, object, has_owner, owner;
		const char *words;
	} cases[] = {
		{ 0, 0, 0, 1, 77, "but no object" },
		{ 0, 1, 0, 0, 0, "impossible number" },
		{ 0, 1, IMAGE_OBJECTS_MAX + 1, 0, 0, "impossible number" },
		{ 2, 1, 1, 1, 77, "cannot be shared" },
		{ 3, 1, 1, 0, 0, "cannot be shared" },
		{ 1, 1, 1, 1, 0, "no process" },
		{ 1, 1, 1, 1, 0x80000000, "no process" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		KfdBoEntry *bo = &image.bos[cases[i].bo];

		make_image();
		bo->has_object = (protobuf_c_boolean)cases[i].has_object;
		bo->object = cases[i].object;
		bo->has_owner_pid = (protobuf_c_boolean)cases[i].has_owner;
		bo->owner_pid = cases[i].owner;
		unit_forget_lines();
		assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
		assert_logged("Error (amdgpu_plugin): kfd 7: ", cases[i].words);
		assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
	}
	make_image();
	image.bos[0].has_by_share_handle = image.bos[0].by_share_handle = true;
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_logged("Error (amdgpu_plugin): kfd 7: ", "a share handle, but no object");
}

UNIT_TEST(objects_are_made_once_and_by_their_owner)
{
	make_image();
	share(&image.bos[0], 3, 0);
	share(&image.bos[1], 3, 0);
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_logged("Error (amdgpu_plugin): kfd 7: two BOs make object 3");
	/* the process of this image */
	share(&image.bos[1], 3, 1);
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	share(&image.bos[0], 2, 0);
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_logged("Error (amdgpu_plugin): kfd 7: BO 1 is imported from object 3");
	share(&image.bos[0], 0, 0);
	unit_forget_lines();
	assert_int_equal(image_validate_kfd(7, &image.kfd), -EINVAL);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
	share(&image.bos[1], 3, 2);
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
}

/* Other programs, kernels and GPUs lead to such values. */
UNIT_TEST(unusual_but_harmless_values_pass)
{
	const struct hostile cases[] = {
		{ "VRAM unknown", &image.devices[1].vram_size, W64, 0, "" },
		{ "an unknown flag", &image.bos[0].alloc_flags, W32, 0x00800001, "" },
		{ "the first page", &image.bos[0].addr, W64, 0, "" },
		{ "right behind another", &image.bos[0].addr, W64, ADDR - 0x3000, "" },
		{ "a user's inside another", &image.bos[2].addr, W64, ADDR, "" },
		{ "same address on another GPU", &image.bos[3].addr, W64, ADDR, "" },
		{ "no CPUs told", &image.kfd.num_of_cpus, W32, 0, "" },
		{ "a high minor", &image.devices[1].drm_render_minor, W32, 4711, "" },
		{ "same handle", &image.bos[1].handle, W32, 1, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %s\n", cases[i].what);
		make_image();
		set(&cases[i]);
		image.bos[0].handle = 1;
		assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	}
	make_image();
	image.bos[0].gpu_id = 0x20;
	image.bos[0].addr = image.bos[1].addr;
	image.bos[0].offset = image.bos[1].offset;
	assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

UNIT_TEST(render_nodes_with_impossible_numbers_are_refused)
{
	static const struct {
		uint32_t gpu_id, minor, kfd_id;
		const char *words;
	} cases[] = {
		{ 0x10000, 128, 1, "0x10000 is no gpu_id" },
		{ 0x10, 0, 1, "no render node" },
		{ 0x10, 64, 1, "render minor 64" },
		{ 0x10, 128, 0x80000000, "0x80000000 is no id" },
	};
	KfdOwner owner = KFD_OWNER__INIT;
	KfdOwner *owners[] = { &owner };
	CriuRenderNode render = CRIU_RENDER_NODE__INIT;

	render.has_drm_render_minor = true;
	render.n_owners = 1;
	render.owners = owners;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		render.gpu_id = cases[i].gpu_id;
		render.drm_render_minor = cases[i].minor;
		owner.kfd_id = cases[i].kfd_id;
		assert_int_equal(image_validate_render(3, &render), -EINVAL);
		assert_logged("Error (amdgpu_plugin): render node 3: ", cases[i].words);
	}
	render.drm_render_minor = 128;
	owner.kfd_id = INT32_MAX;
	assert_int_equal(image_validate_render(3, &render), 0);
	make_image();
	render.device = &image.devices[1];
	assert_int_equal(image_validate_render(3, &render), 0);
	image.devices[1].n_iolinks = 1025;
	assert_int_equal(image_validate_render(3, &render), -EINVAL);
	assert_logged("Error (amdgpu_plugin): render node 3: ", "1025 links");
}

/* An image without the fields that only this plugin writes. */
UNIT_TEST(render_nodes_of_other_programs_pass)
{
	CriuRenderNode render = CRIU_RENDER_NODE__INIT;

	render.gpu_id = 0x10;
	assert_int_equal(image_validate_render(3, &render), 0);
}

/* criu-amdgpu prints them. */
UNIT_TEST(texts_of_the_machine_must_be_short_and_printable)
{
	static char text[200];
	static const struct {
		size_t length;
		char last;
		bool good;
	} cases[] = { { 1, 'x', true },    { 127, 'x', true },   { 128, 'x', false },
		      { 199, 'x', false }, { 9, '\033', false }, { 9, '\n', false },
		      { 9, '\200', false } };
	SavedOn saved = SAVED_ON__INIT;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		make_image();
		image.kfd.saved_on = &saved;
		assert_int_equal(image_validate_kfd(7, &image.kfd), 0);
		memset(text, 'x', sizeof(text));
		text[cases[i].length] = '\0';
		text[cases[i].length - 1] = cases[i].last;
		saved.driver_source = text;
		print_message("case %zu\n", i);
		assert_int_equal(image_validate_kfd(7, &image.kfd), cases[i].good ? 0 : -EINVAL);
		saved.driver_source = NULL;
	}
}

UNIT_TEST(impossible_dmabufs_are_refused)
{
	static const struct {
		bool has_object;
		uint32_t object, owner, kfd_id;
		const char *words;
	} cases[] = {
		{ false, 0, 0, 1, "names no BO" },
		{ true, 0, 9, 1, "impossible object 0" },
		{ true, IMAGE_OBJECTS_MAX + 1, 9, 1, "impossible object" },
		{ true, 1, 0, 1, "no process" },
		{ true, 1, 0x80000000, 1, "no process" },
		{ true, 1, 9, 0x80000000, "names kfd 2147483648" },
		{ true, 1, 8, 1, "process 8, which makes the BO, has no KFD state" },
	};
	KfdOwner owner = KFD_OWNER__INIT;
	KfdOwner *owners[] = { &owner };
	CriuDmabufNode dmabuf = CRIU_DMABUF_NODE__INIT;

	dmabuf.n_owners = 1;
	dmabuf.owners = owners;
	owner.pid = 9;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		dmabuf.has_object = cases[i].has_object;
		dmabuf.object = cases[i].object;
		dmabuf.owner_pid = cases[i].owner;
		owner.kfd_id = cases[i].kfd_id;
		assert_int_equal(image_validate_dmabuf(3, &dmabuf), -EINVAL);
		assert_logged("Error (amdgpu_plugin): dma-buf 3: ", cases[i].words);
	}
	dmabuf.owner_pid = 9;
	owner.kfd_id = 1;
	assert_int_equal(image_validate_dmabuf(3, &dmabuf), 0);
}
