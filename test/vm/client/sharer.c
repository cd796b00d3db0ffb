/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_sharer LOG RANKS [GPU [keep|host]]: processes in a ring. Each owns a buffer in VRAM,
 * and imports the buffer of the process before it by a dma-buf, as ROCr does. An owner writes a
 * number and a page that follows from it. The importer reads both through its own queue and its own
 * mapping, and writes the number back through its queue. Only then the owner writes the next
 * number. A process that has a copy instead of the buffer therefore waits without end.
 *
 * Buffers are on the first GPU. @GPU, 0 if it is left out, is the index of the GPU for which the
 * others import them, and whose queue reads and writes them. The CPU cannot map an import on
 * another device than the buffer's.
 *
 * With `keep`, the parent of the processes keeps a dma-buf of each buffer. The parent has no
 * /dev/kfd, and looks at the buffers through the dma-bufs.
 *
 * With `host`, the buffers are in host memory. A process imports one as newer ROCr does: by a GEM
 * handle in the render file of its compute VM, without a BO of KFD. GEM_VA maps the handle, and the
 * CPU maps it at the offset of GEM_MMAP. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <amdgpu_drm.h>

#include "board.h"
#include "raw_gem.h"
#include "raw_kfd.h"
#include "report.h"

#define PAGE         4096u
#define WORDS        (PAGE / sizeof(uint64_t))
#define BUFFER_PAGES 16u
/* Pages of a buffer: what the owner writes, what the importer answers; the others never change. */
enum { QUESTION, ANSWER, FIRST_STILL };
/* An owner waits so many of its steps for an answer. */
#define PATIENCE 20000
#define STEP_US  5000
#define GOLDEN   0x9e3779b97f4a7c15ull

enum mode { DEFAULT, KEEP, HOST, MODES };

static const char *const mode_names[MODES] = { [DEFAULT] = "", [KEEP] = "keep", [HOST] = "host" };

/* What the parent knows. */
struct parent {
	struct report *report;
	struct board *board;
	int gpu;
	enum mode mode;
	int dmabufs[BOARD_RANKS_MAX];
};

struct rank {
	struct report *report;
	struct board *board;
	unsigned int number, before;
	int gpu;    /* of the import and of the queue */
	int parent; /* a socket that takes the dma-buf of the own buffer, or -1 if none does */
	enum mode mode;
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo own, import, staging;
	uint64_t question, answered;
	unsigned int waited;
};

/* What goes along with a dma-buf. */
struct offer {
	uint64_t mmap_offset;
	uint64_t size;
};

static uint64_t word(unsigned int owner, uint64_t question, size_t i)
{
	return (((uint64_t)owner + 1) << 48 ^ question << 16 ^ i) * GOLDEN;
}

static uint64_t *page(const struct raw_bo *bo, unsigned int number)
{
	return (uint64_t *)(void *)(bo->address + number * PAGE);
}

static int fail(struct rank *rank, int ret, const char *what)
{
	return report_fail(rank->report, ret, "rank %u: %s: %s", rank->number, what,
			   strerror(-ret));
}

static int send_offer(int socket, struct offer offer, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec data = { &offer, sizeof(offer) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == sizeof(offer) ? 0 : -EPIPE;
}

static int receive_offer(int socket, struct offer *ret_offer, int *ret_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = { ret_offer, sizeof(*ret_offer) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(*ret_offer))
		return -EPIPE;
	if (!message.msg_controllen)
		return -EPIPE;
	memcpy(ret_fd, CMSG_DATA(&control.header), sizeof(*ret_fd));
	return 0;
}

static int make_own(struct rank *rank)
{
	uint32_t flags = rank->mode == HOST ? RAW_GTT | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT : RAW_VRAM;
	int ret = raw_alloc_mapped(&rank->process, 0, flags, BUFFER_PAGES * PAGE, &rank->own);

	for (unsigned int i = 0; ret == 0 && i < BUFFER_PAGES; i++) {
		for (size_t at = 0; at < WORDS; at++)
			page(&rank->own, i)[at] = i < FIRST_STILL ? 0 : word(rank->number, i, at);
	}
	return ret;
}

/* The page that was allocated before leaves a hole below the handle of the import. */
static int import_bo(struct rank *rank, const struct offer *offer, int fd, void *address)
{
	uint32_t gpu_id = rank->process.gpu[rank->gpu].gpu_id;
	struct raw_bo hole;
	int ret = raw_alloc(&rank->process, gpu_id, RAW_GTT, PAGE, NULL, &hole);

	if (ret == 0)
		ret = raw_import(&rank->process, gpu_id, fd, address, &rank->import);
	if (ret == 0)
		ret = raw_map(&rank->process, &rank->import, gpu_id);
	if (ret == 0)
		ret = raw_free(&rank->process, &hole);
	if (ret < 0)
		return ret;
	(void)munmap(hole.address, PAGE);
	rank->import.mmap_offset = offer->mmap_offset;
	return 0;
}

/* No BO of KFD is made. The object that was made before leaves a hole below the GEM handle of the
 * import. */
static int import_gem(struct rank *rank, const struct offer *offer, int fd, void *address)
{
	int render = rank->process.render[rank->gpu];
	uint32_t hole, handle;
	int ret = raw_gem_create(render, AMDGPU_GEM_DOMAIN_GTT, PAGE, &hole);

	rank->import = (struct raw_bo){ .address = address, .size = offer->size };
	if (ret == 0)
		ret = raw_gem_import(render, fd, &handle);
	if (ret == 0)
		ret = raw_gem_close(render, hole);
	if (ret == 0)
		ret = raw_gem_map(render, handle, (uintptr_t)address, 0, offer->size);
	return ret ? ret : raw_gem_offset(render, handle, &rank->import.mmap_offset);
}

static int import(struct rank *rank, const struct offer *offer, int fd)
{
	void *address = mmap(NULL, offer->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (address == MAP_FAILED)
		return -ENOMEM;
	ret = rank->mode == HOST ? import_gem(rank, offer, fd, address)
				 : import_bo(rank, offer, fd, address);
	if (ret < 0 || rank->gpu)
		return ret;
	return raw_mmap(rank->process.render[0], &rank->import);
}

/* The ends of the ring: of the rank before, and of the one behind. */
static int join_ring(struct rank *rank, int from, int to)
{
	struct offer offer = { .mmap_offset = rank->own.mmap_offset, .size = rank->own.size };
	int fd = -1;
	int ret = raw_export(&rank->process, &rank->own, &fd);

	if (ret == 0)
		ret = send_offer(to, offer, fd);
	if (ret == 0 && rank->parent >= 0)
		ret = send_offer(rank->parent, offer, fd);
	if (fd >= 0)
		(void)close(fd);
	fd = -1;
	if (ret == 0)
		ret = receive_offer(from, &offer, &fd);
	if (ret == 0)
		ret = import(rank, &offer, fd);
	if (fd >= 0)
		(void)close(fd);
	(void)close(from);
	(void)close(to);
	if (rank->parent >= 0)
		(void)close(rank->parent);
	return ret;
}

static int start(struct rank *rank, int from, int to)
{
	int ret = raw_open_acquired(&rank->process);

	if (ret == 0 && rank->gpu >= rank->process.gpus)
		ret = -ENODEV;
	if (ret == 0)
		ret = make_own(rank);
	if (ret == 0)
		ret = join_ring(rank, from, to);
	if (ret == 0)
		ret = raw_alloc_mapped(&rank->process, rank->gpu, RAW_GTT, BUFFER_PAGES * PAGE,
				       &rank->staging);
	if (ret == 0)
		ret = raw_create_queue(&rank->process, rank->gpu, &rank->queue);
	return ret < 0 ? fail(rank, ret, "cannot start") : 0;
}

static int gpu_copy(struct rank *rank, const void *from, void *to, uint32_t bytes)
{
	int ret;

	raw_queue_copy(&rank->queue, from, to, bytes);
	raw_queue_ring(&rank->queue);
	ret = raw_queue_wait(&rank->queue);
	return ret < 0 ? fail(rank, ret, "a copy does not end") : 0;
}

static int check_page(struct rank *rank, const uint64_t *words, uint64_t question, size_t from)
{
	for (size_t i = from; i < WORDS; i++) {
		if (words[i] != word(rank->before, question, i))
			return report_fail(rank->report, -EIO,
					   "rank %u: word %zu of page %" PRIu64
					   " of rank %u is 0x%" PRIx64,
					   rank->number, i, question, rank->before, words[i]);
	}
	return 0;
}

static int check_still(struct rank *rank)
{
	int ret = 0;

	for (unsigned int i = FIRST_STILL; ret == 0 && i < BUFFER_PAGES; i++) {
		ret = check_page(rank, page(&rank->staging, i), i, 0);
		if (ret == 0 && !rank->gpu)
			ret = check_page(rank, page(&rank->import, i), i, 0);
	}
	return ret;
}

/* The importer: looks for a question, by its queue and by its mapping, and answers by its queue. */
static int answer(struct rank *rank)
{
	uint64_t *copy = page(&rank->staging, QUESTION), question;
	int ret = gpu_copy(rank, rank->import.address, rank->staging.address, BUFFER_PAGES * PAGE);

	question = copy[0];
	if (ret < 0 || question == rank->answered)
		return ret;
	/* the rest of the page came before the number */
	ret = gpu_copy(rank, rank->import.address, rank->staging.address, PAGE);
	if (ret == 0)
		ret = check_page(rank, copy, question, 1);
	if (ret == 0 && !rank->gpu)
		ret = check_page(rank, page(&rank->import, QUESTION), question, 1);
	if (ret == 0)
		ret = check_still(rank);
	if (ret < 0)
		return ret;
	rank->answered = question;
	return gpu_copy(rank, copy, page(&rank->import, ANSWER), sizeof(question));
}

/* The owner: when the last question is answered, asks the next. */
static int ask(struct rank *rank)
{
	uint64_t *words = page(&rank->own, QUESTION);

	if (__atomic_load_n(page(&rank->own, ANSWER), __ATOMIC_ACQUIRE) != rank->question) {
		if (rank->waited++ < PATIENCE)
			return 0;
		return report_fail(rank->report, -ETIME,
				   "rank %u: no rank answers question %" PRIu64, rank->number,
				   rank->question);
	}
	rank->waited = 0;
	rank->question++;
	for (size_t i = 1; i < WORDS; i++)
		words[i] = word(rank->number, rank->question, i);
	__atomic_store_n(words, rank->question, __ATOMIC_RELEASE);
	board_count_round(rank->board, rank->number);
	return 0;
}

static int run_rank(struct rank *rank, int from, int to)
{
	int ret = start(rank, from, to);

	if (ret == 0)
		board_enter(rank->board);
	while (ret == 0 && !board_stops(rank->board)) {
		ret = ask(rank);
		if (ret == 0)
			ret = answer(rank);
		(void)usleep(STEP_US);
	}
	if (ret < 0)
		board_fail(rank->board);
	return ret;
}

/* Sockets, by rank: pairs[i] leads from rank i to the next, up[i] from rank i to the parent. */
struct sockets {
	int pairs[BOARD_RANKS_MAX][2];
	int up[BOARD_RANKS_MAX][2];
};

static int open_sockets(const struct parent *parent, struct sockets *sockets)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC;

	for (unsigned int i = 0; i < parent->board->ranks; i++) {
		sockets->up[i][0] = sockets->up[i][1] = -1;
		if (socketpair(AF_UNIX, type, 0, sockets->pairs[i]) < 0 ||
		    (parent->mode == KEEP && socketpair(AF_UNIX, type, 0, sockets->up[i]) < 0))
			return -errno;
	}
	return 0;
}

static void close_unless(int fd, int kept)
{
	if (fd >= 0 && fd != kept)
		(void)close(fd);
}

static void close_others(const struct parent *parent, const struct sockets *sockets,
			 const struct rank *rank)
{
	for (unsigned int i = 0; i < parent->board->ranks; i++) {
		close_unless(sockets->pairs[i][1], sockets->pairs[rank->before][1]);
		close_unless(sockets->pairs[i][0], sockets->pairs[rank->number][0]);
		close_unless(sockets->up[i][0], -1);
		close_unless(sockets->up[i][1], rank->parent);
	}
}

static int fork_rank(const struct parent *parent, const struct sockets *sockets,
		     unsigned int number)
{
	struct rank rank = { .report = parent->report,
			     .board = parent->board,
			     .number = number,
			     .before = (number + parent->board->ranks - 1) % parent->board->ranks,
			     .gpu = parent->gpu,
			     .parent = sockets->up[number][1],
			     .mode = parent->mode };
	pid_t pid = fork();

	if (pid)
		return pid < 0 ? -errno : 0;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_others(parent, sockets, &rank);
	_exit(run_rank(&rank, sockets->pairs[rank.before][1], sockets->pairs[number][0]) ? 1 : 0);
}

static int fork_ranks(struct parent *parent)
{
	struct sockets sockets;
	struct offer offer;
	int ret = open_sockets(parent, &sockets);

	for (unsigned int i = 0; ret == 0 && i < parent->board->ranks; i++)
		ret = fork_rank(parent, &sockets, i);
	for (unsigned int i = 0; ret == 0 && i < parent->board->ranks; i++) {
		(void)close(sockets.pairs[i][0]);
		(void)close(sockets.pairs[i][1]);
		if (parent->mode != KEEP)
			continue;
		(void)close(sockets.up[i][1]);
		ret = receive_offer(sockets.up[i][0], &offer, &parent->dmabufs[i]);
		(void)close(sockets.up[i][0]);
	}
	return ret;
}

/* The question in the buffer of rank @number, or 0 if its other pages are not right. */
static uint64_t look_at(const struct parent *parent, unsigned int number)
{
	const uint64_t *words =
		mmap(NULL, BUFFER_PAGES * PAGE, PROT_READ, MAP_SHARED, parent->dmabufs[number], 0);
	uint64_t question = words == MAP_FAILED ? 0 : __atomic_load_n(words, __ATOMIC_ACQUIRE);

	for (uint64_t i = FIRST_STILL; question && i < BUFFER_PAGES; i++) {
		for (size_t at = 0; question && at < WORDS; at++)
			question = words[i * WORDS + at] == word(number, i, at) ? question : 0;
	}
	if (words != MAP_FAILED)
		(void)munmap((void *)(uintptr_t)words, BUFFER_PAGES * PAGE);
	return question;
}

/* The parent sees the questions of all ranks go on, too. */
static bool verify(void *argument)
{
	const struct parent *parent = argument;
	uint64_t before[BOARD_RANKS_MAX] = { 0 };
	bool good = board_goes_on(parent->board);

	for (unsigned int i = 0; parent->mode == KEEP && i < parent->board->ranks; i++)
		before[i] = look_at(parent, i);
	good = good && board_goes_on(parent->board);
	for (unsigned int i = 0; parent->mode == KEEP && i < parent->board->ranks; i++)
		good &= before[i] && look_at(parent, i) > before[i];
	return good;
}

/* MODES: there is no such mode. */
static enum mode find_mode(const char *name)
{
	enum mode mode = DEFAULT;

	while (mode < MODES && strcmp(mode_names[mode], name) != 0)
		mode++;
	return mode;
}

int main(int argc, char **argv)
{
	unsigned int ranks = argc >= 3 ? (unsigned int)atoi(argv[2]) : 0;
	struct parent parent = { 0 };
	struct report report;

	parent.gpu = argc >= 4 ? atoi(argv[3]) : 0;
	parent.mode = find_mode(argc >= 5 ? argv[4] : "");
	if (ranks < 2 || ranks > BOARD_RANKS_MAX || parent.gpu < 0 || parent.mode == MODES)
		return 2;
	report_init(&report, argv[1]);
	parent.report = &report;
	parent.board = board_new(sizeof(*parent.board), ranks, STEP_US);
	if (!parent.board || fork_ranks(&parent) < 0)
		return 1;
	return board_serve(parent.board, &report, verify, &parent);
}
