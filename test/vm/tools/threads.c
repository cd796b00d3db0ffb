/* SPDX-License-Identifier: GPL-2.0-only */
/* A process with many threads, which all sleep: CRIU lets go of one after the other.
 *
 *	threads COUNT LOG
 *
 * LOG gets a line when all are there. */
#include <pthread.h>

#define TOOL "threads %d: "
#include "say.h"

static void *stay(void *argument)
{
	(void)argument;
	for (;;)
		(void)pause();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t thread;

	if (argc != 3)
		return 2;
	log_path = argv[2];
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (int left = atoi(argv[1]); left > 0; left--)
		need(!(errno = pthread_create(&thread, &small, stay, NULL)), "make a thread");
	say("ready");
	(void)stay(NULL);
	return 0;
}
