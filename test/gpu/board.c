// SPDX-License-Identifier: GPL-2.0-only
#include "board.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "gpu.h"

static int add_gpu(struct board *board, const struct asic *asic, uint64_t vram_bytes)
{
	struct vfio_user *server = calloc(1, sizeof(*server));
	struct gpu *gpu;
	int ret;

	if (!server)
		return -ENOMEM;
	ret = gpu_new(asic, vram_bytes, &gpu);
	if (ret < 0) {
		free(server);
		return ret;
	}
	gpu->report.files = &board->files;
	device_init(server, gpu);
	board->servers[board->hive.num_nodes] = server;
	board->hive.nodes[board->hive.num_nodes++] = gpu;
	return 0;
}

int board_init(struct board *board, const struct asic *asic, unsigned int num_gpus,
	       uint64_t vram_bytes)
{
	int ret = 0;

	memset(board, 0, sizeof(*board));
	control_init(&board->control);
	while (ret == 0 && board->hive.num_nodes < num_gpus)
		ret = add_gpu(board, asic, vram_bytes);
	hive_connect(&board->hive);
	return ret;
}

void board_done(struct board *board)
{
	unsigned int i;

	for (i = 0; i < board->hive.num_nodes; i++) {
		vfio_user_close(board->servers[i]);
		free(board->servers[i]);
		gpu_free(board->hive.nodes[i]);
	}
	control_close(&board->control);
}

int board_listen(struct board *board, const char *const *sockets, const char *control)
{
	int ret = control_listen(&board->control, control);
	unsigned int i;

	for (i = 0; ret == 0 && i < board->hive.num_nodes; i++)
		ret = vfio_user_listen(board->servers[i], sockets[i]);
	return ret;
}

static bool is_connected(const struct board *board)
{
	unsigned int i;

	for (i = 0; i < board->hive.num_nodes; i++)
		if (board->servers[i]->fd >= 0)
			return true;
	return false;
}

/* QEMU has gone, or has unplugged this GPU. */
static void disconnect(struct board *board, unsigned int node)
{
	struct gpu *gpu = board->hive.nodes[node];

	report_log(&gpu->report, REPORT_ALWAYS, "QEMU has gone");
	vfio_user_disconnect(board->servers[node]);
	gpu_reset(gpu);
}

static int serve_gpu(struct board *board, unsigned int node)
{
	struct vfio_user *server = board->servers[node];
	int ret = server->fd >= 0 ? vfio_user_serve(server) : vfio_user_accept(server);

	if (ret < 0)
		disconnect(board, node);
	return ret == -EPIPE ? 0 : ret;
}

/* Waits for a message of QEMU or of a test, and serves what has come. */
static int serve_sockets(struct board *board, int wait_ms)
{
	struct pollfd fds[CONTROL_FDS + HIVE_MAX_NODES], *gpu_fds = fds + CONTROL_FDS;
	unsigned int i, num_gpus = board->hive.num_nodes;
	int ret = 0;

	control_prepare(&board->control, fds);
	for (i = 0; i < num_gpus; i++) {
		const struct vfio_user *server = board->servers[i];
		int fd = server->fd >= 0 ? server->fd : server->listen_fd;

		gpu_fds[i] = (struct pollfd){ fd, POLLIN, 0 };
	}
	if (board->files.log && wait_ms)
		(void)fflush(board->files.log);
	if (poll(fds, CONTROL_FDS + num_gpus, wait_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	control_serve(&board->control, fds, &board->hive);
	for (i = 0; ret == 0 && i < num_gpus; i++)
		if (gpu_fds[i].revents)
			ret = serve_gpu(board, i);
	return ret;
}

static int shorter(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

/* Each GPU works for the time of one turn. Behind a turn, messages are served at once, because the
 * driver waits for its registers. */
static int run_gpus(struct board *board)
{
	int wait_ms = -1, ret = 0;
	unsigned int i;

	for (i = 0; ret == 0 && i < board->hive.num_nodes; i++) {
		int wait_for_gpu_ms = -1;

		if (board->servers[i]->fd >= 0)
			wait_for_gpu_ms = queues_run(board->hive.nodes[i]);
		wait_ms = shorter(wait_ms, wait_for_gpu_ms);
		if (wait_for_gpu_ms == 0)
			ret = serve_sockets(board, 0);
	}
	return ret < 0 || wait_ms == 0 ? ret : serve_sockets(board, wait_ms);
}

int board_serve(struct board *board)
{
	unsigned int i;
	int ret = 0;

	while (ret == 0 && !is_connected(board))
		ret = serve_sockets(board, -1);
	while (ret == 0 && is_connected(board))
		ret = run_gpus(board);
	for (i = 0; i < board->hive.num_nodes; i++)
		if (board->servers[i]->fd >= 0)
			disconnect(board, i);
	return ret;
}
