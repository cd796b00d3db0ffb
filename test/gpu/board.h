/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPUs of one QEMU: each has a vfio-user server, and all have one hive, one control socket and
 * one thread, which serves the sockets and lets the GPUs work in turns. */
#ifndef TEST_GPU_BOARD_H
#define TEST_GPU_BOARD_H

#include "asic.h"
#include "control.h"
#include "hive.h"
#include "report.h"
#include "vfio_user.h"

struct board {
	struct hive hive;
	struct vfio_user *servers[HIVE_MAX_NODES]; /* one for each node */
	struct control control;
	struct report_files files; /* the caller opens and closes them */
};

/* Makes @num_gpus GPUs, each with that much video memory. After a failure, too, board_done() must
 * be called. 0 or -errno. */
int board_init(struct board *board, const struct asic *asic, unsigned int num_gpus,
	       uint64_t vram_bytes);
void board_done(struct board *board);
/* Listens at one socket for each GPU, and at the control socket. 0 or -errno. */
int board_listen(struct board *board, const char *const *sockets, const char *control);
/* Serves until QEMU has connected and gone: 0, or -errno after an error. All GPUs are reset then.
 */
int board_serve(struct board *board);

#endif
