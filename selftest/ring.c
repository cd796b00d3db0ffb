/* SPDX-License-Identifier: GPL-2.0-only */
/* The ranks, from their fork to their end. Their parent starts them, and serves the signals. */
#include "ring.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE         4096u
#define WORDS        (PAGE / sizeof(uint64_t))
#define BUFFER_PAGES (RING_BYTES / PAGE)
/* Pages of a buffer: what the owner writes, what the importer answers; the others never change. */
enum { QUESTION, ANSWER, FIRST_STILL };
/* An owner waits so many of its steps for an answer. */
#define PATIENCE 6000
#define GOLDEN   0x9e3779b97f4a7c15ull

struct rank {
	const struct ring_options *options;
	unsigned int number, before;
	int gpu;    /* of the queue */
	int parent; /* a socket that takes the dma-buf of the own buffer, or -1 if none does */
	bool has_mapping; /* of the import, for the CPU */
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
	return report_fail(rank->options->report, ret, "rank %u: %s: %s", rank->number, what,
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
	return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof(offer) ? 0 : -EPIPE;
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

/* --- the start of a rank ------------------------------------------------------------------------
 */

static int make_own(struct rank *rank)
{
	int ret = raw_alloc_mapped(&rank->process, rank->options->buffer_gpu[rank->number],
				   rank->options->flags, RING_BYTES, &rank->own);

	for (unsigned int i = 0; ret == 0 && i < BUFFER_PAGES; i++) {
		for (size_t at = 0; at < WORDS; at++)
			page(&rank->own, i)[at] = i < FIRST_STILL ? 0 : word(rank->number, i, at);
	}
	return ret;
}

/* The driver may know no dma-bufs of KFD. */
static int export_own(struct rank *rank, int *ret_fd)
{
	int ret = raw_export(&rank->process, &rank->own, ret_fd);

	if (ret == -ENOTTY)
		report_line(rank->options->report,
			    "unable: this driver shares no memory of KFD by dma-bufs");
	return ret;
}

/* GPUs reach each other's VRAM by XGMI, or by PCIe if the machine allows that. */
static int map_import(struct rank *rank)
{
	int buffer_gpu = rank->options->buffer_gpu[rank->before];
	int ret = raw_map(&rank->process, &rank->import, rank->process.gpu[rank->gpu].gpu_id);

	if (ret < 0 && buffer_gpu != rank->gpu)
		report_line(rank->options->report,
			    "unable: GPU %d does not reach the memory of GPU %d: %s", rank->gpu,
			    buffer_gpu, strerror(-ret));
	return ret;
}

/* The page that was allocated before leaves a hole below the handle of the import. */
static int import_bo(struct rank *rank, int gpu, int fd)
{
	uint32_t gpu_id = rank->process.gpu[gpu].gpu_id;
	struct raw_bo hole;
	int ret = raw_alloc(&rank->process, gpu_id, RAW_GTT, PAGE, NULL, &hole);

	if (ret == 0)
		ret = raw_import(&rank->process, gpu_id, fd, rank->import.address, &rank->import);
	if (ret == 0)
		ret = map_import(rank);
	if (ret == 0)
		ret = raw_free(&rank->process, &hole);
	if (ret < 0)
		return ret;
	(void)munmap(hole.address, PAGE);
	return 0;
}

static int import(struct rank *rank, const struct offer *offer, int fd)
{
	const struct ring_options *options = rank->options;
	int owner_gpu = options->buffer_gpu[rank->before];
	int gpu = options->imports_elsewhere ? rank->gpu : owner_gpu;
	void *address = mmap(NULL, offer->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (address == MAP_FAILED)
		return -ENOMEM;
	rank->import = (struct raw_bo){ .address = address, .size = offer->size };
	ret = options->import ? options->import(&rank->process, gpu, fd, &rank->import)
			      : import_bo(rank, gpu, fd);
	rank->has_mapping = gpu == owner_gpu;
	if (ret < 0 || !rank->has_mapping)
		return ret;
	if (!rank->import.mmap_offset)
		rank->import.mmap_offset = offer->mmap_offset;
	return raw_mmap(rank->process.render[gpu], &rank->import);
}

/* The ends of the ring: of the rank before, and of the one behind. */
static int join_ring(struct rank *rank, int from, int to)
{
	struct offer offer = { .mmap_offset = rank->own.mmap_offset, .size = rank->own.size };
	int fd = -1;
	int ret = export_own(rank, &fd);

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
		ret = raw_alloc_mapped(&rank->process, rank->gpu, RAW_GTT, RING_BYTES,
				       &rank->staging);
	if (ret == 0)
		ret = raw_create_queue(&rank->process, rank->gpu, &rank->queue);
	return ret < 0 ? fail(rank, ret, "cannot start") : 0;
}

/* --- questions and answers ----------------------------------------------------------------------
 */

static int gpu_copy(struct rank *rank, const void *from, void *to, uint32_t bytes)
{
	int ret;

	raw_queue_copy(&rank->queue, from, to, bytes);
	raw_queue_ring(&rank->queue);
	ret = raw_queue_wait(&rank->queue);
	return ret < 0 ? fail(rank, ret, "a copy does not end") : 0;
}

static int check_page(struct rank *rank, unsigned int owner, const uint64_t *words,
		      uint64_t question, size_t from)
{
	for (size_t i = from; i < WORDS; i++) {
		if (words[i] != word(owner, question, i))
			return report_fail(rank->options->report, -EIO,
					   "rank %u: word %zu of page %" PRIu64
					   " of rank %u is 0x%" PRIx64,
					   rank->number, i, question, owner, words[i]);
	}
	return 0;
}

static int check_still(struct rank *rank, unsigned int owner, const struct raw_bo *buffer)
{
	int ret = 0;

	for (unsigned int i = FIRST_STILL; ret == 0 && i < BUFFER_PAGES; i++)
		ret = check_page(rank, owner, page(buffer, i), i, 0);
	return ret;
}

/* The importer: looks for a question, by its queue and by its mapping, and answers by its queue. */
static int answer(struct rank *rank)
{
	uint64_t *copy = page(&rank->staging, QUESTION), question;
	int ret = gpu_copy(rank, rank->import.address, rank->staging.address, RING_BYTES);

	question = copy[0];
	if (ret < 0 || question == rank->answered)
		return ret;
	/* the rest of the page came before the number */
	ret = gpu_copy(rank, rank->import.address, rank->staging.address, PAGE);
	if (ret == 0)
		ret = check_page(rank, rank->before, copy, question, 1);
	if (ret == 0)
		ret = check_still(rank, rank->before, &rank->staging);
	if (ret == 0 && rank->has_mapping)
		ret = check_page(rank, rank->before, page(&rank->import, QUESTION), question, 1);
	if (ret == 0 && rank->has_mapping)
		ret = check_still(rank, rank->before, &rank->import);
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
		return report_fail(rank->options->report, -ETIME,
				   "rank %u: the process that shares its buffer does not see what "
				   "it writes, or the other way round: question %" PRIu64
				   " has no answer",
				   rank->number, rank->question);
	}
	rank->waited = 0;
	rank->question++;
	for (size_t i = 1; i < WORDS; i++)
		words[i] = word(rank->number, rank->question, i);
	__atomic_store_n(words, rank->question, __ATOMIC_RELEASE);
	board_count_round(rank->options->board, rank->number);
	return check_still(rank, rank->number, &rank->own);
}

static int run_rank(struct rank *rank, int from, int to)
{
	struct board *board = rank->options->board;
	int ret = start(rank, from, to);

	if (ret == 0)
		board_enter(board);
	while (ret == 0 && !board_stops(board)) {
		ret = ask(rank);
		if (ret == 0)
			ret = answer(rank);
		(void)usleep(RING_STEP_US);
	}
	if (ret < 0)
		board_fail(board);
	return ret;
}

/* --- the parent ---------------------------------------------------------------------------------
 */

/* Sockets, by rank: pairs[i] leads from rank i to the next, up[i] from rank i to the parent. */
struct sockets {
	int pairs[BOARD_RANKS_MAX][2];
	int up[BOARD_RANKS_MAX][2];
};

static int open_sockets(const struct ring_options *options, struct sockets *sockets)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC;

	for (unsigned int i = 0; i < options->board->ranks; i++) {
		sockets->up[i][0] = sockets->up[i][1] = -1;
		if (socketpair(AF_UNIX, type, 0, sockets->pairs[i]) < 0 ||
		    (options->dmabufs && socketpair(AF_UNIX, type, 0, sockets->up[i]) < 0))
			return -errno;
	}
	return 0;
}

static void close_unless(int fd, int kept)
{
	if (fd >= 0 && fd != kept)
		(void)close(fd);
}

static void close_others(const struct sockets *sockets, const struct rank *rank)
{
	for (unsigned int i = 0; i < rank->options->board->ranks; i++) {
		close_unless(sockets->pairs[i][1], sockets->pairs[rank->before][1]);
		close_unless(sockets->pairs[i][0], sockets->pairs[rank->number][0]);
		close_unless(sockets->up[i][0], -1);
		close_unless(sockets->up[i][1], rank->parent);
	}
}

static int fork_rank(const struct ring_options *options, const struct sockets *sockets,
		     unsigned int number)
{
	const unsigned int ranks = options->board->ranks;
	struct rank rank = { .options = options,
			     .number = number,
			     .before = (number + ranks - 1) % ranks,
			     .gpu = options->queue_gpu[number],
			     .parent = sockets->up[number][1] };
	pid_t pid = fork();

	if (pid)
		return pid < 0 ? -errno : 0;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_others(sockets, &rank);
	_exit(run_rank(&rank, sockets->pairs[rank.before][1], sockets->pairs[number][0]) ? 1 : 0);
}

int ring_start(const struct ring_options *options)
{
	struct sockets sockets;
	struct offer offer;
	int ret = open_sockets(options, &sockets);

	for (unsigned int i = 0; ret == 0 && i < options->board->ranks; i++)
		ret = fork_rank(options, &sockets, i);
	for (unsigned int i = 0; ret == 0 && i < options->board->ranks; i++) {
		(void)close(sockets.pairs[i][0]);
		(void)close(sockets.pairs[i][1]);
		if (!options->dmabufs)
			continue;
		(void)close(sockets.up[i][1]);
		ret = receive_offer(sockets.up[i][0], &offer, &options->dmabufs[i]);
		(void)close(sockets.up[i][0]);
	}
	return ret;
}

uint64_t ring_look(const void *buffer, unsigned int owner)
{
	const uint64_t *words = buffer;
	uint64_t question = __atomic_load_n(words, __ATOMIC_ACQUIRE);

	for (uint64_t i = FIRST_STILL; i < BUFFER_PAGES; i++) {
		for (size_t at = 0; at < WORDS; at++)
			question = words[i * WORDS + at] == word(owner, i, at) ? question : 0;
	}
	return question;
}
