/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes, uses and frees fresh memory and events. What was made earlier is verified elsewhere. */
#include "probe.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "memory.h"
#include "pattern.h"

#define PROBE_BYTES (68 << 10)

static int probe_copy(struct report *report, struct sdma_queue *queue, struct memory *from,
		      struct memory *to)
{
	struct pattern pattern = { .key = pattern_mix((uintptr_t)from->address) };
	struct pattern_mismatch wrong;
	int ret;

	pattern_fill(&pattern, 0, from->address, PROBE_BYTES);
	ret = sdma_copy_now(queue, from->address, to->address, PROBE_BYTES);
	if (ret < 0)
		return ret;
	ret = pattern_check(&pattern, 0, to->address, PROBE_BYTES, &wrong);
	if (ret < 0)
		return report_fail(report, ret,
				   "GPU %d: new %s copied to new %s differs at 0x%" PRIx64,
				   queue->gpu_index, memory_kind_name(from->kind),
				   memory_kind_name(to->kind), wrong.offset_bytes);
	return 0;
}

int probe_memory(struct report *report, const struct gpu *gpu, struct sdma_queue *queue)
{
	const enum memory_kind kinds[] = { gpu->vram_visible ? MEMORY_VRAM_VISIBLE : MEMORY_GTT,
					   MEMORY_GTT, MEMORY_USERPTR };
	struct gpus only = memory_only(gpu);
	struct memory memory[3] = { 0 };
	int ret = 0;

	for (int i = 0; ret == 0 && i < 3; i++)
		ret = memory_alloc(report, kinds[i], PROBE_BYTES, gpu, &only, &memory[i]);
	if (ret == 0)
		ret = probe_copy(report, queue, &memory[0], &memory[1]);
	if (ret == 0)
		ret = probe_copy(report, queue, &memory[2], &memory[0]);
	for (int i = 0; i < 3; i++)
		memory_free(report, &memory[i]);
	return ret;
}

int probe_event(struct report *report)
{
	struct thunk_event *event;
	int before, after, ret;

	ret = thunk_event_new(THUNK_SIGNAL, NULL, true, &event);
	if (ret < 0)
		return report_fail(report, ret, "cannot create a new event: %s", strerror(-ret));
	before = thunk_event_wait(event, true);
	ret = thunk_event_set(event, true);
	after = thunk_event_wait(event, true);
	if (ret || before != -ETIME || after)
		report_fail(report, -EILSEQ, "a new event was %d, set with %d, then %d", before,
			    ret, after);
	ret = thunk_event_free(event);
	if (ret < 0)
		report_fail(report, ret, "cannot destroy a new event: %s", strerror(-ret));
	return report_failed(report) ? -EIO : 0;
}
