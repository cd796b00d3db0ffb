/* SPDX-License-Identifier: GPL-2.0-only */
/* The image of this process on machine "one", made by hand: the CPU node and the GPU, and nothing
 * else yet. */
#ifndef TEST_UNIT_IMAGE_OF_ONE_H
#define TEST_UNIT_IMAGE_OF_ONE_H

#include "amdgpu_plugin_topology.h"
#include "criu-amdgpu.pb-c.h"
#include "host.h"

/* @user_id: the id by which the process knows the GPU. Free the image with
 * criu_kfd__free_unpacked(). */
static inline CriuKfd *new_image_of_one(uint32_t user_id)
{
	struct topology topology;
	CriuKfd *image = malloc(sizeof(*image));

	assert_non_null(image);
	assert_int_equal(topology_read(MACHINES "/one", &topology), 0);
	criu_kfd__init(image);
	image->pid = (uint32_t)getpid();
	image->num_of_gpus = image->num_of_cpus = 1;
	image->device_entries = calloc(topology.num_nodes, sizeof(*image->device_entries));
	for (size_t i = 0; i < topology.num_nodes; i++)
		image->device_entries[image->n_device_entries++] =
			topology_entry_new(&topology, &topology.nodes[i]);
	image->device_entries[1]->gpu_id = user_id;
	topology_done(&topology);
	return image;
}

#endif
