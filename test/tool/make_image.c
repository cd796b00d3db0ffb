// SPDX-License-Identifier: GPL-2.0-only
/* make_image TREE DIR [new]: writes the image of a process to DIR. It sees all GPUs of the topology
 * TREE, and has nothing else. new: the driver's private data has a version that no driver has yet.
 * make_image a|b|gem DIR: images of CRIU's own plugin, of 3.17 to 4.2 or later, or later with a GEM
 * object. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "image/image.h"
#include "tools/host.h"

/* The unit test's images of other programs, without its way to write them. */
#define TEST_UNIT_FRAMED_H
static void write_framed(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(name, "we");
	uint64_t length = size;

	/* Little-endian, as on the machines that the tests run on. */
	if (!file || fwrite(&length, sizeof(length), 1, file) != 1 ||
	    fwrite(bytes, size, 1, file) != 1 || fclose(file))
		abort();
}
#include "foreign_image.h"

/* A render node of CRIU's own plugin. */
static void write_foreign_render(const char *name, enum vintage vintage, bool has_gem_object)
{
	struct wire node = { 0 }, object = { 0 };

	wire_number(&node, 1, 0xbeef);
	if (vintage == VINTAGE_B) {
		wire_number(&node, 2, 2);
		wire_number(&node, 3, 128);
		wire_number(&node, 4, has_gem_object);
	}
	for (unsigned int field = 1; field <= 9; field++)
		wire_number(&object, field, field < 9 ? 0x1000 : 0);
	if (has_gem_object)
		wire_bytes(&node, 5, object.bytes, object.size);
	write_framed(name, node.bytes, node.size);
}

static int write_foreign(const char *kind, const char *dir)
{
	enum vintage vintage = kind[0] == 'a' ? VINTAGE_A : VINTAGE_B;
	char name[4096];

	(void)snprintf(name, sizeof(name), "%s/amdgpu-kfd-1.img", dir);
	write_foreign_kfd(name, 100, vintage);
	(void)snprintf(name, sizeof(name), "%s/amdgpu-renderD-2.img", dir);
	write_foreign_render(name, vintage, !strcmp(kind, "gem"));
	return 0;
}

static int write_machine(const char *tree, uint8_t version)
{
	struct topology topology;
	CriuKfd *kfd = malloc(sizeof(*kfd));
	int ret = topology_read(tree, &topology);

	if (ret < 0 || !kfd)
		return ret;
	criu_kfd__init(kfd);
	kfd->pid = 100;
	kfd->device_entries = calloc(topology.num_nodes + 1, sizeof(*kfd->device_entries));
	for (size_t i = 0; i < topology.num_nodes; i++) {
		kfd->device_entries[kfd->n_device_entries++] =
			topology_entry_new(&topology, &topology.nodes[i]);
		kfd->num_of_gpus += topology.nodes[i].gpu_id != 0;
	}
	/* The version of the driver's private data, and a record for each GPU. */
	kfd->priv_data.len = 8 + 8 * (size_t)kfd->num_of_gpus;
	kfd->priv_data.data = calloc(1, kfd->priv_data.len);
	if (!kfd->priv_data.data)
		return -ENOMEM;
	kfd->priv_data.data[0] = version;
	return image_write_kfd(1, kfd);
}

int main(int argc, char **argv)
{
	if (argc != 3 && argc != 4)
		return 2;
	(void)mkdir(argv[2], 0700);
	if (!strcmp(argv[1], "a") || !strcmp(argv[1], "b") || !strcmp(argv[1], "gem"))
		return write_foreign(argv[1], argv[2]);
	return host_open_images(argv[2]) < 0 || write_machine(argv[1], argc == 4 ? 2 : 1) < 0;
}
