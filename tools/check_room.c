// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "check.h"
#include "criu/host.h"
#include "foresee.h"
#include "text.h"

void check_room(struct check *check)
{
	const char *dir = check->request->dir;
	struct statvfs room;
	char text[16];
	uint64_t bytes;

	if (fstatvfs(host_image_dir(), &room) < 0) {
		check_refuse(check, "images: cannot examine %s: %s", dir, strerror(errno));
		return;
	}
	if (faccessat(host_image_dir(), ".", W_OK, AT_EACCESS) < 0) {
		check_refuse(check, "images: cannot write to %s: %s; choose another directory", dir,
			     strerror(errno));
		return;
	}
	if (foresee_images(&check->options) < 0)
		check->refused = true;
	bytes = (uint64_t)room.f_bavail * room.f_frsize;
	if (!bytes) {
		check_refuse(check, "images: %s has no room; choose another directory", dir);
		return;
	}
	if (bytes < check->contents) {
		char needed[16];

		check_refuse(check,
			     "images: %s has room for %s, and the contents need about %s; choose"
			     " another directory",
			     dir, text_size(bytes, text), text_size(check->contents, needed));
		return;
	}
	check_say_ok(check, "images: %s has room for %s", dir, text_size(bytes, text));
}
