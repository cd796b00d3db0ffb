/* SPDX-License-Identifier: GPL-2.0-only */
/* An image streamer in the process of CRIU: pipes from and to files in a folder of the image
 * directory, and the socket connection that shows the plugin that CRIU streams. Each image is
 * captured once and served once. A real streamer may serve images one by one, so it is an error to
 * open an image before the previous one has been read to its end. */
#ifndef TEST_LIB_STREAMER_H
#define TEST_LIB_STREAMER_H

#include <stdbool.h>
#include <stddef.h>

/* The folder in the image directory. */
#define STREAMER_FOLDER "streamed"

/* What a test changes after streamer_start(), which resets it. */
struct streamer {
	/* The streamer refuses each image. */
	bool deaf;
	/* It ends after that many bytes of each image. */
	size_t breaks_after;
};

extern struct streamer streamer;

/* Makes CRIU stream: to an empty folder of @directory if @captures, else from that folder. @fail
 * takes a sentence on what the plugin did wrong, and does not return; NULL: the process aborts. */
int streamer_start(const char *directory, bool captures, void (*fail)(const char *text));
/* Only connects CRIU to a socket with that name, for streamer_stop() to close. */
int streamer_connect(const char *directory, const char *name);
/* Waits for the ends of the images that this process opened, and closes them. */
void streamer_settle(void);
/* The same, and CRIU streams no more. */
void streamer_stop(void);

#endif
