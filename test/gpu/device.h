/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPU as a PCI device of vfio-user: which region is what. */
#ifndef TEST_GPU_DEVICE_H
#define TEST_GPU_DEVICE_H

struct gpu;
struct vfio_user;

/* Connects the two. Both stay the caller's. */
void device_init(struct vfio_user *server, struct gpu *gpu);

#endif
