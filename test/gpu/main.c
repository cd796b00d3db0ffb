// SPDX-License-Identifier: GPL-2.0-only
/* amdgpu-device: one emulated GPU for one QEMU. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "device.h"
#include "gpu.h"
#include "vfio_user.h"

#define DEFAULT_VRAM_MIB 4096ull
#define LEAST_VRAM_MIB   256ull
#define MOST_VRAM_MIB    (64ull << 10) /* an MI210 */

struct options {
	const char *socket, *control, *log, *violations;
	uint64_t vram_mib;
	enum report_level level;
	bool keep; /* wait for the next QEMU when one has gone */
};

static int usage(void)
{
	(void)fprintf(stderr,
		      "usage: amdgpu-device -s SOCKET -c CONTROL_SOCKET [-m VRAM_MIB] [-l LOG] "
		      "[-v LEVEL] [-w VIOLATIONS_FILE] [-k]\n"
		      "VRAM_MIB: a power of two from 256 to 65536; LEVEL: 0 to 3\n");
	return 2;
}

static int parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	return errno || end == text || *end || *ret_value < least || *ret_value > most ? -EINVAL
										       : 0;
}

static int parse_option(struct options *options, int option, const char *value)
{
	uint64_t level;
	int ret = 0;

	switch (option) {
	case 's':
		options->socket = value;
		return 0;
	case 'c':
		options->control = value;
		return 0;
	case 'l':
		options->log = value;
		return 0;
	case 'w':
		options->violations = value;
		return 0;
	case 'k':
		options->keep = true;
		return 0;
	case 'm':
		ret = parse_number(value, LEAST_VRAM_MIB, MOST_VRAM_MIB, &options->vram_mib);
		return options->vram_mib & (options->vram_mib - 1) ? -EINVAL : ret;
	case 'v':
		ret = parse_number(value, REPORT_ALWAYS, REPORT_REGISTERS, &level);
		options->level = (enum report_level)level;
		return ret;
	default:
		return -EINVAL;
	}
}

static int parse_options(int argc, char **argv, struct options *options)
{
	int option, ret = 0;

	while (ret == 0 && (option = getopt(argc, argv, "s:c:l:w:m:v:k")) >= 0)
		ret = parse_option(options, option, optarg);
	return ret < 0 || optind != argc || !options->socket || !options->control ? -EINVAL : 0;
}

/* One round of the loop. -EPIPE: QEMU has gone. */
static int serve(struct vfio_user *server, struct control *control, struct gpu *gpu)
{
	struct pollfd fds[CONTROL_FDS + 1];
	int is_connected = server->fd >= 0;
	int wait_ms = is_connected ? queues_run(gpu) : -1;

	control_prepare(control, fds);
	fds[CONTROL_FDS] =
		(struct pollfd){ is_connected ? server->fd : server->listen_fd, POLLIN, 0 };
	if (gpu->report.log && wait_ms)
		(void)fflush(gpu->report.log);
	if (poll(fds, CONTROL_FDS + 1, wait_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	control_serve(control, fds, gpu);
	if (!fds[CONTROL_FDS].revents)
		return 0;
	return is_connected ? vfio_user_serve(server) : vfio_user_accept(server);
}

static int run(const struct options *options, struct vfio_user *server, struct control *control,
	       struct gpu *gpu)
{
	int ret = 0;

	do {
		while (ret == 0)
			ret = serve(server, control, gpu);
		report_log(&gpu->report, REPORT_ALWAYS, "QEMU has gone");
		vfio_user_disconnect(server);
		gpu_reset(gpu);
		if (ret == -EPIPE)
			ret = 0;
	} while (ret == 0 && options->keep);
	return ret;
}

static int start(const struct options *options, struct vfio_user *server, struct control *control,
		 struct gpu *gpu)
{
	int ret;

	gpu->report.level = options->level;
	ret = report_open(&gpu->report, options->log, options->violations);
	if (ret == 0)
		ret = control_listen(control, options->control);
	if (ret == 0)
		ret = vfio_user_listen(server, options->socket);
	return ret;
}

int main(int argc, char **argv)
{
	struct options options = { .vram_mib = DEFAULT_VRAM_MIB };
	struct vfio_user *server = calloc(1, sizeof(*server));
	struct control control;
	struct gpu *gpu = NULL;
	int ret = server ? 0 : -ENOMEM;

	if (parse_options(argc, argv, &options) < 0) {
		free(server);
		return usage();
	}
	control_init(&control);
	if (ret == 0)
		ret = gpu_new(options.vram_mib << 20, &gpu);
	if (ret == 0) {
		device_init(server, gpu);
		ret = start(&options, server, &control, gpu);
		if (ret == 0)
			ret = run(&options, server, &control, gpu);
		vfio_user_close(server);
	}
	if (ret < 0)
		(void)fprintf(stderr, "amdgpu-device: %s: %s\n", options.socket, strerror(-ret));
	control_close(&control);
	gpu_free(gpu);
	free(server);
	return ret < 0;
}
