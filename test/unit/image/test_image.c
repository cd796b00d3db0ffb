// SPDX-License-Identifier: GPL-2.0-only
/* Tests image files: bytes on disk, images of other programs, damage, and full disks. */
#include "foreign_image.h"

#include <sys/syscall.h>
#include <xxhash.h>

#include "image/image.h"

/* unlinkat() fails, as for files of another user in a sticky directory. */
static bool unlink_fails;

int unlinkat(int directory, const char *name, int flags)
{
	if (!unlink_fails)
		return (int)syscall(SYS_unlinkat, directory, name, flags);
	errno = EPERM;
	return -1;
}

/* The checksum covers the bytes before its field. */
UNIT_TEST(a_file_is_its_length_in_eight_bytes_and_the_message)
{
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;
	uint64_t sum;
	size_t size;
	_cleanup_free_ uint8_t *bytes = NULL;

	node.gpu_id = 0x4321;
	assert_int_equal(image_write_render(7, &node), 0);
	bytes = unit_read("amdgpu-renderD-7.img", &size);
	assert_int_equal(size, 22);
	assert_memory_equal(bytes, "\x0e\0\0\0\0\0\0\0\x08\xa1\x86\x01\xf9\x7c", 14);
	memcpy(&sum, bytes + 14, sizeof(sum));
	assert_int_equal(sum, XXH3_64bits(bytes + 8, 4));
}

UNIT_TEST(kfd_images_of_both_vintages_are_read)
{
	for (enum vintage vintage = VINTAGE_A; vintage <= VINTAGE_B; vintage++) {
		_cleanup_kfd_ CriuKfd *kfd = NULL;

		write_foreign_kfd("amdgpu-kfd-3.img", 99, vintage);
		assert_int_equal(image_read_kfd(3, &kfd), 0);
		assert_int_equal(kfd->pid, 99);
		assert_int_equal(kfd->num_of_gpus, 1);
		assert_int_equal(kfd->num_of_cpus, 1);
		assert_int_equal(kfd->n_device_entries, 2);
		assert_int_equal(kfd->device_entries[1]->gpu_id, 0xbeef);
		assert_false(kfd->device_entries[1]->has_actual_gpu_id);
		assert_int_equal(kfd->num_of_bos, 1);
		assert_int_equal(kfd->bo_entries[0]->offset, 0x1ffe00000000);
		assert_int_equal(kfd->bo_entries[0]->alloc_flags, 0xf0000001);
		assert_int_equal(kfd->bo_entries[0]->has_handle, vintage == VINTAGE_B);
		assert_int_equal(kfd->num_of_objects, 4);
		assert_int_equal(kfd->shared_mem_size, 8);
		assert_int_equal(kfd->shared_mem_magic, 0x12345678);
		assert_memory_equal(kfd->priv_data.data, "private", 7);
		assert_false(kfd->has_num_of_mappings);
	}
}

UNIT_TEST(render_images_of_both_vintages_are_read)
{
	for (enum vintage vintage = VINTAGE_A; vintage <= VINTAGE_B; vintage++) {
		struct wire wire = { 0 };
		CriuRenderNode *node;

		wire_number(&wire, 1, 0xbeef);
		if (vintage == VINTAGE_B) {
			wire_number(&wire, 2, 5);
			wire_number(&wire, 3, 130);
			wire_number(&wire, 4, 0);
		}
		write_framed("amdgpu-renderD-5.img", wire.bytes, wire.size);
		assert_int_equal(image_read_render(5, &node), 0);
		assert_int_equal(node->gpu_id, 0xbeef);
		assert_int_equal(node->has_drm_render_minor, vintage == VINTAGE_B);
		assert_int_equal(node->num_of_bos, 0);
		assert_null(node->device);
		criu_render_node__free_unpacked(node, NULL);
	}
}

/* As this plugin ends its messages. */
static void end_with_sum(struct wire *wire)
{
	const uint64_t sum = XXH3_64bits(wire->bytes, wire->size);

	wire_varint(wire, 1999 << 3 | 1);
	memcpy(wire->bytes + wire->size, &sum, sizeof(sum));
	wire->size += sizeof(sum);
}

/* Newer versions of this plugin may add fields from 1000 on. */
UNIT_TEST(unknown_fields_of_this_plugin_are_skipped)
{
	struct wire wire = { 0 };
	CriuRenderNode *node;

	wire_number(&wire, 1, 0xbeef);
	wire_number(&wire, 1500, 17);
	wire_bytes(&wire, 1501, "something", 9);
	end_with_sum(&wire);
	write_framed("amdgpu-renderD-5.img", wire.bytes, wire.size);
	assert_int_equal(image_read_render(5, &node), 0);
	assert_int_equal(node->gpu_id, 0xbeef);
	criu_render_node__free_unpacked(node, NULL);
}

static void assert_unknown_field(const char *name, int ret, const char *words)
{
	assert_int_equal(ret, -EOPNOTSUPP);
	assert_logged("Error (amdgpu_plugin): ", name, words, "which this plugin does not know");
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
	unit_forget_lines();
}

/* CRIU's own plugin may add fields below 1000, which a restore may need. */
UNIT_TEST(unknown_fields_of_other_programs_are_refused)
{
	struct wire node = { 0 }, kfd = foreign_kfd(99, VINTAGE_B), bo = { 0 };
	CriuRenderNode *read_node;
	CriuKfd *read_kfd;

	wire_number(&node, 1, 0xbeef);
	wire_number(&node, 999, 0);
	end_with_sum(&node);
	write_framed("amdgpu-renderD-5.img", node.bytes, node.size);
	assert_unknown_field("amdgpu-renderD-5.img", image_read_render(5, &read_node),
			     "field 999 of criu_render_node");
	for (unsigned int field = 1; field <= 7; field++)
		wire_number(&bo, field, 0);
	wire_bytes(&kfd, 6, bo.bytes, bo.size);
	write_framed("amdgpu-kfd-5.img", kfd.bytes, kfd.size);
	assert_unknown_field("amdgpu-kfd-5.img", image_read_kfd(5, &read_kfd),
			     "field 7 of kfd_bo_entry");
}

/* Files that no program writes. */
UNIT_TEST(damaged_images_are_refused_by_name)
{
	const struct wire good = foreign_kfd(99, VINTAGE_A);
	const struct {
		const char *what;
		size_t header;
		size_t bytes;
	} cases[] = {
		{ "empty file", 0, 0 },
		{ "no whole header", 7, 0 },
		{ "cut off by one byte", good.size, good.size - 1 },
		{ "cut off after the header", good.size, 0 },
		{ "a byte too many", good.size, good.size + 1 },
		{ "length of the file, not of the message", good.size + 8, good.size },
		{ "cut off, with a header that agrees", good.size - 1, good.size - 1 },
		{ "required fields missing", 2, 2 },
		{ "no message at all", 0, 0 },
		{ "length of all ones", SIZE_MAX, good.size },
		{ "length that overflows with the header", SIZE_MAX - 7, good.size },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t file[sizeof(good.bytes) + 8] = { 0 };
		size_t size = 8 + cases[i].bytes;
		CriuKfd *kfd = NULL;

		print_message("case %s\n", cases[i].what);
		if (i < 2)
			size = cases[i].header;
		for (size_t byte = 0; byte < 8; byte++)
			file[byte] = (uint8_t)((uint64_t)cases[i].header >> (8 * byte));
		memcpy(file + 8, good.bytes, good.size);
		unit_write("amdgpu-kfd-21.img", file, size);
		unit_forget_lines();
		assert_in_range(-image_read_kfd(21, &kfd), 1, 4095);
		assert_null(kfd);
		assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-21.img");
		assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
	}
}

/* The kernel accepts changed private data, so the checksum must detect the change. Another tag of
 * the checksum is an unknown field. */
UNIT_TEST(checksums_detect_each_flipped_bit)
{
	uint8_t private_data[64] = { 1, 2, 3 };
	CriuKfd kfd = CRIU_KFD__INIT;
	_cleanup_free_ uint8_t *file = NULL;
	size_t size;

	kfd.num_of_gpus = 1;
	kfd.priv_data = (ProtobufCBinaryData){ sizeof(private_data), private_data };
	assert_int_equal(image_write_kfd(1, &kfd), 0);
	file = unit_read("amdgpu-kfd-1.img", &size);
	for (size_t bit = 0; bit < 8 * size; bit++) {
		CriuKfd *read = NULL;

		file[bit / 8] ^= (uint8_t)(1u << bit % 8);
		unit_write("amdgpu-kfd-1.img", file, size);
		file[bit / 8] ^= (uint8_t)(1u << bit % 8);
		unit_forget_lines();
		assert_in_range(-image_read_kfd(1, &read), 1, 4095);
		assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img");
	}
}

/* Only images of other programs have no checksum. */
UNIT_TEST(fields_of_this_plugin_without_their_checksum_are_damage)
{
	struct wire kfds[3];
	CriuKfd *kfd;

	for (size_t i = 0; i < 3; i++) {
		struct wire device = { 0 };

		kfds[i] = foreign_kfd(99, VINTAGE_A);
		for (unsigned int field = 1; field <= 31; field++)
			wire_number(&device, field, 0);
		wire_number(&device, 1000, 7);
		if (i == 0)
			wire_number(&kfds[i], 1000, 7);
		if (i == 1)
			wire_number(&kfds[i], 1500, 7);
		if (i == 2)
			wire_bytes(&kfds[i], 4, device.bytes, device.size);
		write_framed("amdgpu-kfd-5.img", kfds[i].bytes, kfds[i].size);
		unit_forget_lines();
		assert_int_equal(image_read_kfd(5, &kfd), -EIO);
		assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-5.img", "damaged", "checksum");
		end_with_sum(&kfds[i]);
		write_framed("amdgpu-kfd-5.img", kfds[i].bytes, kfds[i].size);
		assert_int_equal(image_read_kfd(5, &kfd), 0);
		criu_kfd__free_unpacked(kfd, NULL);
	}
}

UNIT_TEST(an_image_may_be_a_link_to_a_regular_file)
{
	_cleanup_kfd_ CriuKfd *kfd = NULL;

	write_foreign_kfd("elsewhere", 99, VINTAGE_A);
	assert_int_equal(symlink("elsewhere", unit_path("amdgpu-kfd-1.img")), 0);
	assert_int_equal(image_read_kfd(1, &kfd), 0);
	assert_int_equal(kfd->pid, 99);
}

UNIT_TEST(only_a_regular_file_is_an_image)
{
	CriuKfd *kfd;

	assert_int_equal(symlink("/dev/zero", unit_path("amdgpu-kfd-1.img")), 0);
	assert_true(image_read_kfd(1, &kfd) < 0);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img");
	assert_int_equal(mkdir(unit_path("amdgpu-kfd-2.img"), 0700), 0);
	assert_true(image_read_kfd(2, &kfd) < 0);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-2.img");
}

/* No process writes to the pipe. A child opens it, because a blocking open() would never return. */
UNIT_TEST(a_pipe_instead_of_an_image_is_refused_at_once)
{
	pid_t child;

	assert_int_equal(mkfifo(unit_path("amdgpu-kfd-1.img"), 0600), 0);
	child = fork();
	if (!child) {
		CriuKfd *kfd;

		(void)alarm(120);
		_exit(image_read_kfd(1, &kfd) < 0 && unit_logged("Error (amdgpu_plugin): ",
								 "amdgpu-kfd-1.img", NULL)
			      ? 0
			      : 1);
	}
	assert_int_equal(unit_wait(child), 0);
}

/* A symbolic link, a hard link, and a pipe that all users may read. */
UNIT_TEST(a_file_with_the_name_of_an_image_is_replaced_not_written)
{
	CriuKfd kfd = CRIU_KFD__INIT;
	struct stat stat;
	size_t size;
	int fd;

	unit_print("precious", "data");
	assert_int_equal(symlink("precious", unit_path("amdgpu-kfd-1.img")), 0);
	assert_int_equal(link(unit_path("precious"), unit_path("amdgpu-kfd-2.img")), 0);
	assert_int_equal(mkfifo(unit_path("amdgpu-kfd-3.img"), 0666), 0);
	assert_int_equal(symlink("new", unit_path("amdgpu-pages-1-0001.img")), 0);
	for (int id = 1; id <= 3; id++) {
		assert_int_equal(image_write_kfd(id, &kfd), 0);
		assert_int_equal(lstat(unit_path("amdgpu-kfd-%d.img", id), &stat), 0);
		assert_int_equal(stat.st_mode, S_IFREG | 0600);
		assert_int_equal(stat.st_nlink, 1);
	}
	assert_int_equal(image_create_pages(1, 1, 5, &fd), 0);
	assert_int_equal(image_close_pages(1, 1, &fd), 0);
	assert_false(unit_exists("new"));
	free(unit_read("precious", &size));
	assert_int_equal(size, 4);
}

UNIT_TEST(a_file_that_cannot_be_replaced_is_an_error)
{
	CriuKfd kfd = CRIU_KFD__INIT;
	size_t size;

	unit_print("precious", "data");
	assert_int_equal(symlink("precious", unit_path("amdgpu-kfd-1.img")), 0);
	assert_int_equal(link(unit_path("precious"), unit_path("amdgpu-kfd-2.img")), 0);
	unlink_fails = true;
	for (int id = 1; id <= 2; id++) {
		assert_true(image_write_kfd(id, &kfd) < 0);
		assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-", "cannot create");
		unit_forget_lines();
	}
	unlink_fails = false;
	free(unit_read("precious", &size));
	assert_int_equal(size, 4);
}

/* A sparse file takes no disk space, so its size may be huge. */
UNIT_TEST(a_message_that_is_one_large_hole_is_not_read)
{
	uint64_t size = 1ULL << 40;
	CriuKfd *kfd;

	unit_write("amdgpu-kfd-1.img", &size, sizeof(size));
	assert_int_equal(truncate(unit_path("amdgpu-kfd-1.img"), (off_t)(8 + size)), 0);
	assert_int_equal(image_read_kfd(1, &kfd), -EIO);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img", "more than any message");
}

/* An unknown field takes two bytes in the message and some ninety in memory. */
UNIT_TEST(a_message_that_needs_too_much_memory_is_refused)
{
	const struct wire kfd = foreign_kfd(103, VINTAGE_A);
	size_t size = 4 << 20;
	_cleanup_free_ uint8_t *bytes = malloc(size);
	CriuKfd *image;

	assert_non_null(bytes);
	memcpy(bytes, kfd.bytes, kfd.size);
	for (size_t i = kfd.size; i < size; i++)
		bytes[i] = (i - kfd.size) % 2 ? 0 : 11 << 3;
	write_framed("amdgpu-kfd-1.img", bytes, size - (size - kfd.size) % 2);
	assert_int_equal(image_read_kfd(1, &image), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img", "MiB of memory");
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
}

/* The shortest possible entries: real ones have more bytes, and private data. */
UNIT_TEST(a_message_of_many_bos_is_read)
{
	static const KfdBoEntry nothing = KFD_BO_ENTRY__INIT;
	const size_t count = 100000;
	KfdBoEntry **entries = calloc(count, sizeof(*entries)), entry = nothing;
	CriuKfd kfd = CRIU_KFD__INIT, *read;

	assert_non_null(entries);
	for (size_t i = 0; i < count; i++)
		entries[i] = &entry;
	kfd.num_of_gpus = 1;
	kfd.bo_entries = entries;
	kfd.n_bo_entries = count;
	assert_int_equal(image_write_kfd(1, &kfd), 0);
	free(entries);
	assert_int_equal(image_read_kfd(1, &read), 0);
	assert_int_equal(read->n_bo_entries, count);
	criu_kfd__free_unpacked(read, NULL);
}

/* The disk is full at the first byte, in the header, after it, and in the message. */
UNIT_TEST(a_write_that_fails_leaves_no_image)
{
	static const uint64_t room[] = { 0, 1, 7, 8, 9, 100 };
	uint8_t private_data[4096] = { 0 };
	CriuKfd kfd = CRIU_KFD__INIT;

	kfd.priv_data.data = private_data;
	kfd.priv_data.len = sizeof(private_data);
	for (size_t i = 0; i < ARRAY_SIZE(room); i++) {
		int ret;

		unit_forget_lines();
		unit_limit_files(room[i]);
		ret = image_write_kfd(1, &kfd);
		unit_unlimit_files();
		assert_int_equal(ret, -EFBIG);
		assert_false(unit_exists("amdgpu-kfd-1.img"));
		assert_logged("Error (amdgpu_plugin): ", "amdgpu-kfd-1.img", strerror(EFBIG));
		assert_int_equal(unit_count_lines("amdgpu_plugin"), 1);
	}
}
