/* SPDX-License-Identifier: GPL-2.0-only */
/* The saved form of topology nodes: to and from kfd_device_entry messages. */
#ifndef AMDGPU_PLUGIN_DEVICE_H
#define AMDGPU_PLUGIN_DEVICE_H

#include "amdgpu_plugin_topology.h"
#include "criu-amdgpu.pb-c.h"

/* A message made of malloc() alone; free with kfd_device_entry__free_unpacked(). Only those links
 * are saved that lead to a node of @topology. NULL: no memory. */
KfdDeviceEntry *device_entry_new(const struct topology *topology, const struct topology_node *node);

/* Appends the node that @entry describes. -ENOMEM. */
int device_entry_read(const KfdDeviceEntry *entry, struct topology *topology);

#endif
