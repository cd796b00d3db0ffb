// SPDX-License-Identifier: GPL-2.0-only
#include "streamer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "criu_stub.h"

#define STREAMS_MAX 64
/* The smallest pipe, so that few bytes are on the way between streamer and reader. */
#define STREAM_ROOM 4096
#define TIMEOUT_S   120

struct stream {
	char name[64];
	/* The process whose thread moves the bytes. */
	pid_t owner;
	int file;
	/* The streamer's end of the pipe. */
	int pipe;
	/* While images are served: a copy of the reader's end. */
	int watched;
	pthread_t thread;
};

struct streamer streamer;

static struct {
	bool captures;
	/* CRIU's end of the connection, the streamer's end, and the folder. */
	int connection, other, folder;
	void (*fail)(const char *text);
	struct stream streams[STREAMS_MAX];
	size_t num_streams;
} state = { .connection = -1, .other = -1, .folder = -1 };

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (state.fail)
		state.fail(text);
	(void)fprintf(stderr, "streamer: %s\n", text);
	abort();
}

/* The simulator may change what getpid() says. */
static pid_t this_process(void)
{
	return (pid_t)syscall(SYS_getpid);
}

static void *move_bytes(void *argument)
{
	struct stream *stream = argument;
	int from = state.captures ? stream->pipe : stream->file;
	int to = state.captures ? stream->file : stream->pipe;
	size_t left = streamer.breaks_after;
	char bytes[512];
	ssize_t size;

	/* Tests that count the threads of the plugin leave out those with such a name. */
	(void)pthread_setname_np(pthread_self(), "amdgpu_sim pipe");
	while (left &&
	       (size = read(from, bytes, left < sizeof(bytes) ? left : sizeof(bytes))) > 0 &&
	       write(to, bytes, (size_t)size) == size)
		left -= (size_t)size;
	(void)close(stream->file);
	(void)close(stream->pipe);
	return NULL;
}

static void join_stream(struct stream *stream)
{
	struct timespec end;

	if (stream->watched >= 0)
		(void)close(stream->watched);
	stream->watched = -1;
	if (stream->owner != this_process())
		return;
	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += TIMEOUT_S;
	if (pthread_timedjoin_np(stream->thread, NULL, &end))
		complain("%s is still open", stream->name);
}

/* Whether the reader has read all bytes. The streamer may need time to close its end. Bytes that
 * are in the pipe now stay unread, because the reader opens the next image. */
static bool is_drained(const struct stream *stream)
{
	struct pollfd end = { stream->watched, POLLIN, 0 };

	if (stream->watched < 0 || stream->owner != this_process())
		return true;
	(void)poll(&end, 1, TIMEOUT_S * 1000);
	return end.revents == POLLHUP;
}

static void check_request(const char *name, int flags)
{
	/* CRIU aborts on other flags. */
	if (flags != (state.captures ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY))
		complain("%s is asked for with flags 0x%x", name, flags);
	if (strchr(name, '/'))
		complain("%s is not a name", name);
	if (state.num_streams == STREAMS_MAX)
		complain("%s is one image too many", name);
	for (size_t i = 0; !state.captures && !streamer.deaf && i < state.num_streams; i++) {
		if (!is_drained(&state.streams[i]))
			complain("%s is asked for before %s has been read to its end", name,
				 state.streams[i].name);
	}
}

/* Each image is written once, and gone when it has been read. */
static int open_file(const char *name)
{
	int flags = state.captures ? O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC : O_RDONLY | O_CLOEXEC;
	int fd = criu_stub_keep_fd(openat(state.folder, name, flags, 0600));

	if (fd < 0 && state.captures)
		complain("%s cannot be captured: %s", name, strerror(errno));
	if (!state.captures)
		(void)unlinkat(state.folder, name, 0);
	return fd;
}

static int open_stream(const char *name, int flags)
{
	struct stream *stream = &state.streams[state.num_streams];
	int ends[2], mine = state.captures ? 0 : 1;

	check_request(name, flags);
	if (streamer.deaf)
		return -1;
	*stream = (struct stream){ .owner = this_process(), .watched = -1 };
	(void)snprintf(stream->name, sizeof(stream->name), "%s", name);
	stream->file = open_file(name);
	if (stream->file < 0)
		return -ENOENT;
	if (pipe2(ends, O_CLOEXEC) < 0)
		complain("%s has no pipe: %s", name, strerror(errno));
	(void)fcntl(ends[0], F_SETPIPE_SZ, STREAM_ROOM);
	if (!state.captures)
		stream->watched = fcntl(ends[0], F_DUPFD_CLOEXEC, criu_stub.lowest_fd);
	stream->pipe = criu_stub_keep_fd(ends[mine]);
	state.num_streams++;
	if (pthread_create(&stream->thread, NULL, move_bytes, stream))
		complain("%s has no thread", name);
	return ends[1 - mine];
}

/* The name of the socket stays known when its file is gone. Real streamers remove the file too. */
int streamer_connect(const char *directory, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name);
	(void)unlink(address.sun_path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(listener, 1) == 0 &&
	    connect(caller, (struct sockaddr *)&address, sizeof(address)) == 0)
		state.other = criu_stub_keep_fd(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	state.connection = criu_stub_keep_fd(caller);
	(void)close(listener);
	(void)unlink(address.sun_path);
	return state.other < 0 || state.connection < 0 ? -ECONNREFUSED : 0;
}

static void empty_folder(void)
{
	DIR *stream = fdopendir(dup(state.folder));
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		(void)unlinkat(state.folder, entry->d_name, 0);
	if (stream)
		(void)closedir(stream);
}

int streamer_start(const char *directory, bool captures, void (*fail)(const char *text))
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/" STREAMER_FOLDER, directory);
	(void)mkdir(path, 0700);
	(void)signal(SIGPIPE, SIG_IGN);
	streamer = (struct streamer){ .breaks_after = SIZE_MAX };
	state.captures = captures;
	state.fail = fail;
	state.num_streams = 0;
	state.folder =
		criu_stub_keep_fd(openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (state.folder < 0)
		return -errno;
	if (captures)
		empty_folder();
	criu_stub.open_streamed = open_stream;
	return streamer_connect(directory,
				captures ? "streamer-capture.sock" : "streamer-serve.sock");
}

void streamer_settle(void)
{
	for (size_t i = 0; i < state.num_streams; i++)
		join_stream(&state.streams[i]);
	state.num_streams = 0;
}

void streamer_stop(void)
{
	int *fds[] = { &state.connection, &state.other, &state.folder };

	streamer_settle();
	criu_stub.open_streamed = NULL;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}
