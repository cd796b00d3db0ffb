// SPDX-License-Identifier: GPL-2.0-only
/* Compares the room in the image directory, and the limit of file sizes, with the contents that a
 * dump would write. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "criu/host.h"
#include "foresee.h"
#include "image/image.h"
#include "text.h"

/* CRIU inherits the limit of a file if it is started from here. */
static void compare(struct check *check, const struct image_room *room)
{
	const char *dir = check->request->dir;
	char found[16], needed[16];
	const char *size = text_size(room->bytes, found);

	if (!room->bytes)
		check_refuse(check, "images: %s has no room; choose another directory", dir);
	else if (room->bytes < check->contents)
		check_refuse(
			check,
			"images: %s has room for %s, and the contents need about %s; choose another directory",
			dir, size, text_size(check->contents, needed));
	else if (room->file_bytes < check->largest)
		check_refuse(
			check,
			"images: no file may be larger than %s, and the contents of a GPU need about %s; raise the limit (ulimit -f, LimitFSIZE)",
			text_size(room->file_bytes, found), text_size(check->largest, needed));
	else if (room->bytes == UINT64_MAX)
		check_say_ok(check, "images: %s does not tell how much room it has", dir);
	else
		check_say_ok(check, "images: %s has room for %s", dir, size);
}

void check_room(struct check *check)
{
	const char *dir = check->request->dir;
	struct image_room room;
	int ret = image_find_room(&room);

	if (ret < 0) {
		check_refuse(check, "images: cannot examine %s: %s", dir, strerror(-ret));
		return;
	}
	if (faccessat(host_image_dir(), ".", W_OK, AT_EACCESS) < 0) {
		check_refuse(check, "images: cannot write to %s: %s; choose another directory", dir,
			     strerror(errno));
		return;
	}
	if (foresee_images(&check->options) < 0)
		check->refused = true;
	compare(check, &room);
}
