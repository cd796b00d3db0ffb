// SPDX-License-Identifier: GPL-2.0-only
#include "packets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "aql.h"
#include "events.h"

/* The sleeps of the waits are counted: the clock goes on while the process is frozen. */
#define STEP_US    1000
#define WAIT_STEPS 60000

struct packets_page {
	_Alignas(64) struct aql_pointers pointers;
	/* The CPU's, which the first packet waits for, and those of the packets. */
	_Alignas(64) struct raw_signal gate, done[PACKETS_COUNT];
};
_Static_assert(sizeof(struct packets_page) <= AQL_PAGE_BYTES, "one page");

struct packets {
	struct report *report;
	const struct gpu *gpu;
	struct aql aql;
	struct packets_page *page;
	struct waiter waiter;
};

int packets_new(struct report *report, const struct gpu *gpu, struct packets **ret_packets)
{
	struct packets *packets = calloc(1, sizeof(*packets));
	int ret;

	if (!packets)
		return report_fail(report, -ENOMEM, "no memory");
	*ret_packets = packets;
	packets->report = report;
	packets->gpu = gpu;
	ret = aql_open(report, gpu, &packets->aql);
	if (ret == 0)
		ret = waiter_start(report, "packet", &packets->waiter);
	if (ret < 0)
		return ret;
	packets->page = packets->aql.page.address;
	return packets_begin(packets);
}

void packets_free(struct packets *packets)
{
	if (!packets)
		return;
	aql_close(&packets->aql, packets->gpu);
	waiter_stop(&packets->waiter);
	free(packets);
}

int packets_begin(struct packets *packets)
{
	struct packets_page *page;
	struct raw_signal *last;

	if (!packets)
		return 0;
	page = packets->page;
	last = &page->done[PACKETS_COUNT - 1];
	raw_signal_init(&page->gate, 1);
	for (unsigned int i = 0; i < PACKETS_COUNT; i++)
		raw_signal_init(&page->done[i], 1);
	last->mailbox = (uintptr_t)packets->waiter.event->slot;
	last->event_id = packets->waiter.event->id;
	for (unsigned int i = 0; i < PACKETS_COUNT; i++) {
		const union {
			struct raw_barrier barrier;
			struct raw_packet packet;
		} slot = { .barrier = {
				   .header = RAW_AQL_BARRIER_AND | RAW_AQL_SYSTEM_SCOPES,
				   .signals = { (uintptr_t)(i ? &page->done[i - 1] : &page->gate) },
				   .completion = (uintptr_t)&page->done[i],
			   } };

		aql_put(&packets->aql, &slot.packet);
	}
	aql_ring(&packets->aql);
	return 0;
}

static int64_t value_of(const struct raw_signal *signal)
{
	return __atomic_load_n(&signal->value, __ATOMIC_ACQUIRE);
}

static int wait_for_last(const struct packets *packets)
{
	const struct packets_page *page = packets->page;

	for (int i = 0; value_of(&page->done[PACKETS_COUNT - 1]) > 0; i++) {
		if (i == WAIT_STEPS)
			return report_fail(packets->report, -ETIME,
					   "GPU %d: the compute queue stands still: %" PRIu64
					   " of %" PRIu64 " packets are done",
					   packets->gpu->index, page->pointers.read,
					   page->pointers.write);
		(void)usleep(STEP_US);
	}
	return 0;
}

/* Each completion counts its signal down once. */
static int compare(const struct packets *packets, int64_t expected)
{
	for (unsigned int i = 0; i < PACKETS_COUNT; i++) {
		int64_t value = value_of(&packets->page->done[i]);

		if (value != expected)
			return report_fail(
				packets->report, -EILSEQ,
				"GPU %d: packet %u of the compute queue: expected signal %" PRId64
				", got %" PRId64,
				packets->gpu->index, i, expected, value);
	}
	return 0;
}

int packets_verify(struct packets *packets)
{
	int ret;

	if (!packets)
		return 0;
	ret = compare(packets, 1);
	if (ret < 0)
		return ret;
	waiter_expect(&packets->waiter);
	__atomic_store_n(&packets->page->gate.value, 0, __ATOMIC_SEQ_CST);
	ret = wait_for_last(packets);
	if (ret == 0)
		ret = compare(packets, 0);
	return ret < 0 ? ret : waiter_settle(&packets->waiter);
}
