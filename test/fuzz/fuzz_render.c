// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the image of a render node: of a process without KFD state, or (selected by the first
 * byte) of a process whose KFD image exists. The rest of the input is the message. */
#include "restore.h"

#include "image/image.h"
#include "mutate.h"

#define ID 5

const struct ProtobufCMessageDescriptor *mutate_descriptor = &criu_render_node__descriptor;
const size_t mutate_offset = 1;

/* A valid image. */
static void write_kfd(void)
{
	CriuKfd *kfd = new_image_of_one(FUZZ_GPU);

	/* The version, and a record for the GPU. */
	kfd->priv_data.data = calloc(1, 8 + 8);
	promise(kfd->priv_data.data);
	kfd->priv_data.data[0] = 1;
	kfd->priv_data.len = 8 + 8;
	promise(image_write_kfd(4, kfd) == 0);
	criu_kfd__free_unpacked(kfd, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = { bytes, size };
	bool beside_kfd = fuzz_take_number(&input, 1) & 1;
	int fd;

	restore_begin("one-other");
	if (beside_kfd)
		write_kfd();
	write_framed("amdgpu-renderD-5.img", input.bytes, input.size);
	fd = restore_file(ID);
	promise(fd != -ENOTSUP);
	promise(unit_count_errors() == (fd < 0));
	if (fd >= 0)
		(void)close(fd);
	restore_end(fd < 0 ? -1 : 0);
	return 0;
}
