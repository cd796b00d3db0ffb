// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"
#include "tests.h"

#define VRAM_BYTES (256ull << 20)

static char dir[] = "/tmp/test-board-XXXXXX";
static char paths[3][64]; /* of two GPUs, and the control socket */

static int make_paths(void **state)
{
	static const char *const names[] = { "gpu0", "gpu1", "control" };
	unsigned int i;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	for (i = 0; i < 3; i++)
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", dir, names[i]);
	return 0;
}

static int remove_paths(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		(void)unlink(paths[i]);
	return rmdir(dir);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) ? -1 : fd;
}

/* Whether the board answers. */
static int asks(int control)
{
	char answer[CONTROL_ANSWER] = "";

	if (write(control, "violations\n", 11) != 11)
		return 0;
	return read(control, answer, sizeof(answer) - 1) > 0 && strcmp(answer, "0\n") == 0;
}

/* What QEMU does that has two GPUs, and loses them one after the other. */
static int be_qemu(void)
{
	int first = connect_to(paths[0]), second = connect_to(paths[1]);
	int control = connect_to(paths[2]);

	if (first < 0 || second < 0 || control < 0 || !asks(control))
		return 1;
	(void)close(first);
	if (!asks(control) || !asks(control))
		return 2;
	(void)close(second);
	return 0;
}

TEST_WITH(it_serves_until_the_last_gpu_is_disconnected, make_paths, remove_paths)
{
	const char *const sockets[] = { paths[0], paths[1] };
	struct board board;
	int status;
	pid_t pid;

	assert_int_equal(board_init(&board, &asic_mi210, 2, VRAM_BYTES), 0);
	assert_int_equal(board_listen(&board, sockets, paths[2]), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(be_qemu());
	assert_int_equal(board_serve(&board), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	board_done(&board);
}
