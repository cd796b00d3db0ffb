/* SPDX-License-Identifier: GPL-2.0-only */
/* A process that holds files of other drivers, so that a test sees which plugin claims them. It
 * answers SIGUSR1 with a line about its files in its log. The caller checks the line. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libdrm/drm.h>
#include <libdrm/drm_mode.h>

#define TOOL "hold %d: "
#include "say.h"

static void hold_file(const char *path)
{
	need(open(path, O_RDWR) >= 0, path);
}

static void map_file(const char *path)
{
	int fd;

	fd = open(path, O_RDWR);
	need(fd >= 0, path);
	need(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED, path);
}

/* A dma-buf made of a memfd's pages; only the dma-buf stays open. */
static void hold_udmabuf(void)
{
	struct udmabuf_create create = { .size = 4096 };
	int memory, device;

	memory = memfd_create("pages", MFD_ALLOW_SEALING);
	need(memory >= 0, "memfd");
	need(!ftruncate(memory, 4096), "ftruncate");
	need(!fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), "seals");
	device = open("/dev/udmabuf", O_RDWR);
	need(device >= 0, "/dev/udmabuf");
	create.memfd = (uint32_t)memory;
	need(ioctl(device, UDMABUF_CREATE, &create) >= 0, "UDMABUF_CREATE");
	close(device);
	close(memory);
}

/* A dma-buf of another DRM driver: a dumb buffer of the card, exported. */
static void hold_dumb(const char *card)
{
	struct drm_mode_create_dumb create = { .width = 64, .height = 64, .bpp = 32 };
	struct drm_prime_handle prime = { .flags = DRM_CLOEXEC | DRM_RDWR };
	int fd;

	fd = open(card, O_RDWR);
	need(fd >= 0, card);
	need(!ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &create), "CREATE_DUMB");
	prime.handle = create.handle;
	need(!ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), "PRIME_HANDLE_TO_FD");
	close(fd);
}

int main(int argc, char **argv)
{
	sigset_t signals;
	int i, signal;

	if (argc < 2) {
		fprintf(stderr,
			"usage: hold LOG [open FILE | map FILE | udmabuf | dumb CARD]...\n");
		return 2;
	}
	log_path = argv[1];
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "open") && i + 1 < argc)
			hold_file(argv[++i]);
		else if (!strcmp(argv[i], "map") && i + 1 < argc)
			map_file(argv[++i]);
		else if (!strcmp(argv[i], "dumb") && i + 1 < argc)
			hold_dumb(argv[++i]);
		else if (!strcmp(argv[i], "udmabuf"))
			hold_udmabuf();
		else
			need(0, argv[i]);
	}
	say("ready");
	while (!sigwait(&signals, &signal))
		say("alive");
	return 1;
}
