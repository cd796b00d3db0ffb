// SPDX-License-Identifier: GPL-2.0-only
/* The inventory of plugins, for the versions that have one. */
#include "criu_exports.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "criu_stub.h"

#define INVENTORY "inventory.txt"

int criu_note_plugin(const char *name)
{
	int fd = openat(criu_stub.image_dir, INVENTORY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);
	bool good = fd >= 0 && write(fd, name, strlen(name)) == (ssize_t)strlen(name);

	if (fd >= 0)
		(void)close(fd);
	return good ? 0 : -1;
}

bool criu_claim_plugin(const char *name, size_t length)
{
	char noted[64] = "";
	int fd = openat(criu_stub.image_dir, INVENTORY, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, noted, sizeof(noted) - 1);

	if (fd >= 0)
		(void)close(fd);
	return got == (ssize_t)length && !memcmp(noted, name, length);
}
