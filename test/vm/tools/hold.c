/* SPDX-License-Identifier: GPL-2.0-only */
/* A process that holds files of other drivers, so that a test sees which plugin claims them, or GPU
 * memory that no dump saves. It answers SIGUSR1 with a line about its files in its log. The caller
 * checks the line. */
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

#include <libdrm/amdgpu_drm.h>
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

/* A GEM object of an AMD GPU, as programs for graphics have. Returns the render node's file. */
static int create_gem(const char *node, uint32_t *ret_handle)
{
	union drm_amdgpu_gem_create create = {
		.in = { .bo_size = 4096, .alignment = 4096, .domains = AMDGPU_GEM_DOMAIN_GTT },
	};
	int fd = open(node, O_RDWR);

	need(fd >= 0, node);
	need(!ioctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), "GEM_CREATE");
	*ret_handle = create.out.handle;
	return fd;
}

static void hold_gem(const char *node)
{
	uint32_t handle;

	(void)create_gem(node, &handle);
}

/* Only the mapping stays. */
static void hold_gem_mapping(const char *node)
{
	union drm_amdgpu_gem_mmap where = { 0 };
	uint32_t handle;
	int fd = create_gem(node, &handle);
	void *memory;

	where.in.handle = handle;
	need(!ioctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &where), "GEM_MMAP");
	memory =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)where.out.addr_ptr);
	need(memory != MAP_FAILED, "mmap");
	close(fd);
}

static const struct {
	const char *name;
	void (*hold)(const char *path);
} kinds[] = {
	{ "open", hold_file },
	{ "map", map_file },
	{ "dumb", hold_dumb },
	{ "gem", hold_gem },
	{ "gem-mapping", hold_gem_mapping },
};

/* Whether @name is a kind of file that has a @path. */
static int hold_kind(const char *name, const char *path)
{
	size_t i;

	for (i = 0; path && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(name, kinds[i].name))
			continue;
		kinds[i].hold(path);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	sigset_t signals;
	int i, signal;

	if (argc < 2) {
		fprintf(stderr, "usage: hold LOG [open FILE | map FILE | udmabuf | dumb CARD |"
				" gem NODE | gem-mapping NODE]...\n");
		return 2;
	}
	log_path = argv[1];
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	for (i = 2; i < argc; i++) {
		if (hold_kind(argv[i], argv[i + 1]))
			i++;
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
