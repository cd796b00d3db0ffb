/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU's post-dump script, which copies or sends the images: all of them must be complete when it
 * runs. The script notes the plugin's images, and the end of the dump compares them. */
#ifndef TEST_NATIVE_POST_DUMP_H
#define TEST_NATIVE_POST_DUMP_H

#include <stddef.h>

struct post_dump_image;

/* Begins all zero. */
struct post_dump {
	struct post_dump_image *images;
	size_t count;
	int ran;
};

/* The script: notes the images in the directory @image_dir, or those that a streamer has. -errno.
 */
int post_dump_run(int image_dir, struct post_dump *script);
/* CRIU ends the dump with @ret. Returns @ret, or -EIO if the images are not those that the script
 * saw. Prints what differs, and "script ran ..." if that was for a dump that failed. */
int post_dump_check(int image_dir, int ret, struct post_dump *script);
/* Instead of post_dump_check(), for images that were not complete at the script. */
void post_dump_forget(struct post_dump *script);

#endif
