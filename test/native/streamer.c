// SPDX-License-Identifier: GPL-2.0-only
/* CRIU's image streamer: pipes to and from files in a folder of the image directory, and the
 * connection by which the plugin knows that CRIU streams. */
#include "streamer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "criu_exports.h"
#include "criu_state.h"

#define FOLDER "streamed"
/* The least that a pipe holds, so that reads and writes are short. */
#define STREAM_ROOM 4096

struct stream {
	int from, to;
};

static struct {
	bool captures;
	int connection, other; /* CRIU's end, and the streamer's */
	int folder;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	unsigned int running;
} streamer = { .connection = -1,
	       .other = -1,
	       .folder = -1,
	       .lock = PTHREAD_MUTEX_INITIALIZER,
	       .ended = PTHREAD_COND_INITIALIZER };

static void close_all(void)
{
	int *fds[] = { &streamer.connection, &streamer.other, &streamer.folder };

	for (size_t i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

static int move_up(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CRIU_LOWEST_FD);

	if (fd >= 0)
		(void)close(fd);
	return high;
}

/* The name stays known when its file is gone. */
static int connect_both(const char *directory, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name);
	(void)unlink(address.sun_path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(listener, 1) == 0 &&
	    connect(caller, (struct sockaddr *)&address, sizeof(address)) == 0)
		streamer.other = move_up(accept(listener, NULL, NULL));
	streamer.connection = move_up(caller);
	(void)close(listener);
	(void)unlink(address.sun_path);
	return streamer.other < 0 || streamer.connection < 0 ? -ECONNREFUSED : 0;
}

static void forget_streamed(void)
{
	DIR *stream = fdopendir(dup(streamer.folder));
	struct dirent *entry;

	rewinddir(stream);
	while ((entry = readdir(stream)))
		(void)unlinkat(streamer.folder, entry->d_name, 0);
	(void)closedir(stream);
}

int streamer_start(const char *directory, bool captures)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/" FOLDER, directory);
	(void)mkdir(path, 0700);
	(void)signal(SIGPIPE, SIG_IGN);
	streamer.captures = captures;
	streamer.folder = move_up(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (streamer.folder < 0)
		return -errno;
	if (captures)
		forget_streamed();
	return connect_both(directory, captures ? "streamer-capture.sock" : "streamer-serve.sock");
}

void streamer_stop(void)
{
	(void)pthread_mutex_lock(&streamer.lock);
	while (streamer.running)
		(void)pthread_cond_wait(&streamer.ended, &streamer.lock);
	(void)pthread_mutex_unlock(&streamer.lock);
	close_all();
}

/* Until the other side of the pipe has closed it, or the file is at its end. */
static void *carry(void *argument)
{
	struct stream *stream = argument;
	char bytes[STREAM_ROOM];
	ssize_t size;

	/* counted with the simulator's threads, and not among those that the plugin has left */
	(void)pthread_setname_np(pthread_self(), "amdgpu_sim pipe");
	while ((size = read(stream->from, bytes, sizeof(bytes))) > 0 &&
	       write(stream->to, bytes, (size_t)size) == size)
		;
	(void)close(stream->from);
	(void)close(stream->to);
	free(stream);
	(void)pthread_mutex_lock(&streamer.lock);
	streamer.running--;
	(void)pthread_cond_signal(&streamer.ended);
	(void)pthread_mutex_unlock(&streamer.lock);
	return NULL;
}

static int start_thread(int from, int to)
{
	struct stream *stream = malloc(sizeof(*stream));
	pthread_t thread;

	if (!stream)
		return -ENOMEM;
	*stream = (struct stream){ from, to };
	(void)pthread_mutex_lock(&streamer.lock);
	streamer.running++;
	(void)pthread_mutex_unlock(&streamer.lock);
	return pthread_create(&thread, NULL, carry, stream) ? -EAGAIN : -pthread_detach(thread);
}

/* An image that was served is gone. */
int img_streamer_open(const char *name, int flags)
{
	int file = openat(streamer.folder, name, flags | O_CLOEXEC, 0600);
	int ends[2];

	if (file < 0)
		return errno == ENOENT ? -ENOENT : -1;
	if (!streamer.captures)
		(void)unlinkat(streamer.folder, name, 0);
	file = move_up(file);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	(void)fcntl(ends[0], F_SETPIPE_SZ, STREAM_ROOM);
	if (streamer.captures)
		return start_thread(move_up(ends[0]), file) < 0 ? -1 : ends[1];
	return start_thread(file, move_up(ends[1])) < 0 ? -1 : ends[0];
}
