// SPDX-License-Identifier: GPL-2.0-only
#include "aql.h"

#include <errno.h>
#include <string.h>

#define RING_BYTES (RAW_AQL_SLOTS * sizeof(struct raw_packet))

_Static_assert(RING_BYTES == 4096, "a page");

int aql_open(struct report *report, const struct gpu *gpu, struct aql *aql)
{
	struct gpus only = memory_only(gpu);
	int ret;

	*aql = (struct aql){ .report = report };
	ret = memory_alloc(report, MEMORY_GTT, RING_BYTES, gpu, &only, &aql->ring);
	if (ret == 0)
		ret = memory_alloc(report, MEMORY_GTT, AQL_PAGE_BYTES, gpu, &only, &aql->page);
	if (ret < 0)
		return ret;
	memset(aql->page.address, 0, AQL_PAGE_BYTES);
	for (uint32_t i = 0; i < RAW_AQL_SLOTS; i++)
		((struct raw_packet *)aql->ring.address)[i] =
			(struct raw_packet){ .header = RAW_AQL_INVALID };
	ret = thunk_queue_new(gpu, THUNK_AQL, &aql->ring, aql->page.address, &aql->queue);
	return ret ? report_fail(report, ret, "GPU %d: cannot create a compute queue: %s",
				 gpu->index, strerror(-ret))
		   : 0;
}

void aql_close(struct aql *aql, const struct gpu *gpu)
{
	int ret = thunk_queue_free(&aql->queue);

	if (ret < 0)
		report_fail(aql->report, ret, "GPU %d: cannot destroy the compute queue: %s",
			    gpu->index, strerror(-ret));
	memory_free(aql->report, &aql->page);
	memory_free(aql->report, &aql->ring);
}

void aql_put(struct aql *aql, const struct raw_packet *packet)
{
	struct aql_pointers *pointers = aql->page.address;
	uint64_t index = pointers->write;
	struct raw_packet *slot = (struct raw_packet *)aql->ring.address + index % RAW_AQL_SLOTS;

	/* The header makes the packet valid. */
	memcpy((char *)slot + sizeof(slot->header), (const char *)packet + sizeof(slot->header),
	       sizeof(*slot) - sizeof(slot->header));
	__atomic_store_n(&slot->header, packet->header, __ATOMIC_RELEASE);
	__atomic_store_n(&pointers->write, index + 1, __ATOMIC_RELEASE);
}

void aql_ring(struct aql *aql)
{
	const struct aql_pointers *pointers = aql->page.address;

	__atomic_store_n(aql->queue.doorbell, pointers->write - 1, __ATOMIC_SEQ_CST);
}
