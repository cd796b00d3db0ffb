// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the image of a render node: of a process without KFD state, or (selected by the first
 * byte) of a process whose KFD image exists. The rest of the input is the message. */
#include "restore.h"

#include "amdgpu_plugin_topology.h"
#include "image/image.h"
#include "mutate.h"

#define ID 5

const struct ProtobufCMessageDescriptor *mutate_descriptor = &criu_render_node__descriptor;
const size_t mutate_offset = 1;

/* A valid image, with the GPU that images of the corpus name. */
static void write_kfd(void)
{
	struct topology topology;
	CriuKfd *kfd = malloc(sizeof(*kfd));

	promise(kfd && topology_read("test/data/machines/one", &topology) == 0);
	criu_kfd__init(kfd);
	kfd->pid = FUZZ_PID;
	kfd->num_of_gpus = kfd->num_of_cpus = 1;
	kfd->device_entries = calloc(topology.num_nodes, sizeof(*kfd->device_entries));
	promise(kfd->device_entries);
	for (size_t i = 0; i < topology.num_nodes; i++)
		kfd->device_entries[kfd->n_device_entries++] =
			topology_entry_new(&topology, &topology.nodes[i]);
	topology_done(&topology);
	kfd->priv_data.data = calloc(1, PRIVATE_SIZE);
	kfd->priv_data.len = PRIVATE_SIZE;
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
