/* SPDX-License-Identifier: GPL-2.0-only */
/* The server's side of the vfio-user protocol (QEMU's docs/interop/vfio-user.rst), as far as QEMU's
 * client uses it: one client, PCI regions, memory for DMA as file descriptors, and one MSI vector.
 */
#ifndef TEST_GPU_VFIO_USER_H
#define TEST_GPU_VFIO_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest.h"
#include "report.h"

/* Numbers of VFIO: BAR 0 to 5, then these. */
enum { VFIO_USER_ROM = 6, VFIO_USER_CONFIG = 7, VFIO_USER_REGIONS = 9 };
enum { VFIO_USER_MAX_FDS = 8, VFIO_USER_MAX_MESSAGE = 1 << 20 };

struct vfio_user_region {
	uint64_t size_bytes; /* 0: there is no such region */
	int fd;              /* memory that the client may map, or -1 */
};

/* What the device does. @owner is that of struct vfio_user. */
struct vfio_user_ops {
	void (*read)(void *owner, unsigned int region, uint64_t offset, void *data,
		     uint32_t size_bytes);
	void (*write)(void *owner, unsigned int region, uint64_t offset, const void *data,
		      uint32_t size_bytes);
	void (*reset)(void *owner);
};

struct vfio_user {
	struct vfio_user_region regions[VFIO_USER_REGIONS];
	const struct vfio_user_ops *ops;
	void *owner;
	struct guest *guest;
	struct report *report;
	int listen_fd, fd;          /* or -1 */
	int interrupt_fd;           /* the eventfd of MSI vector 0, or -1 */
	int fds[VFIO_USER_MAX_FDS]; /* those that came with the message, -1 once taken */
	unsigned int num_fds;
	_Alignas(8) uint8_t message[VFIO_USER_MAX_MESSAGE];
	_Alignas(8) uint8_t answer[VFIO_USER_MAX_MESSAGE];
};

/* Listens at a path, in the place of what is there. 0 or -errno. */
int vfio_user_listen(struct vfio_user *server, const char *path);
int vfio_user_accept(struct vfio_user *server);
/* Reads one message and answers it; blocks while the client has not sent all of it. -EPIPE: the
 * client has gone; call vfio_user_disconnect(). Other errors: the same, after a violation. */
int vfio_user_serve(struct vfio_user *server);
void vfio_user_disconnect(struct vfio_user *server);
void vfio_user_close(struct vfio_user *server);

/* Sends an MSI. -ENOTCONN: the driver has not enabled it. */
int vfio_user_interrupt(struct vfio_user *server);

#endif
