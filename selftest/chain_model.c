/* SPDX-License-Identifier: GPL-2.0-only */
/* Generates the steps of the chain and carries them out on the CPU. It knows no GPU: the thread
 * that turns steps into packets is another unit. */
#include "chain_model.h"

#include <string.h>

#include "pattern.h"

void chain_model_init(struct chain_model *model, uint64_t key)
{
	struct pattern tape = { .key = pattern_mix(key + 1) };
	struct pattern table = { .key = pattern_mix(key + 2) };

	memset(model, 0, sizeof(*model));
	model->key = key;
	pattern_fill(&tape, 0, model->tape, sizeof(model->tape));
	pattern_fill(&table, 0, model->state.table, sizeof(model->state.table));
}

static void apply_data(struct chain_state *state, const uint8_t *tape,
		       const struct chain_step *step)
{
	uint8_t *to = state->table + step->to;
	uint64_t word;

	switch (step->kind) {
	case CHAIN_SHIFT:
	case CHAIN_MIX:
		memmove(to, state->table + step->from, step->bytes);
		return;
	case CHAIN_INJECT:
		memcpy(to, tape + step->from, step->bytes);
		return;
	case CHAIN_FILL:
		memset(to, (int)step->value, step->bytes);
		return;
	case CHAIN_ADD:
		memcpy(&word, to, sizeof(word));
		word += step->value;
		memcpy(to, &word, sizeof(word));
		return;
	}
}

uint64_t chain_slot_value(const struct chain_step *step)
{
	return pattern_mix(step->number + 1);
}

static enum chain_kind chain_pick_kind(uint64_t random)
{
	static const enum chain_kind kinds[] = {
		CHAIN_SHIFT, CHAIN_SHIFT, CHAIN_SHIFT,  CHAIN_SHIFT,
		CHAIN_ADD,   CHAIN_MIX,   CHAIN_INJECT, CHAIN_FILL,
	};

	return kinds[random % 8];
}

/* Offsets are multiples of 4, as engines like it. */
static void chain_shape(struct chain_step *step, uint64_t random)
{
	uint32_t start = (uint32_t)(random >> 8) % 32 * 4;
	uint32_t cell = step->cell * CHAIN_CELL_BYTES;
	uint32_t other =
		(step->cell + 1 + (uint32_t)(random >> 16) % (CHAIN_CELLS - 1)) % CHAIN_CELLS;

	step->to = cell + start;
	step->value = 0;
	switch (step->kind) {
	case CHAIN_SHIFT:
		step->from = step->to + 4 + (uint32_t)(random >> 24) % 64 * 4;
		step->bytes = cell + CHAIN_CELL_BYTES - step->from;
		return;
	case CHAIN_MIX:
		step->from = other * CHAIN_CELL_BYTES + (uint32_t)(random >> 24) % 32 * 4;
		step->bytes = CHAIN_CELL_BYTES - 128;
		return;
	case CHAIN_INJECT:
		step->from = (uint32_t)(random >> 24) % ((CHAIN_TAPE_BYTES - 1024) / 4) * 4;
		step->bytes = CHAIN_CELL_BYTES - start;
		return;
	case CHAIN_FILL:
		step->bytes = 64 + (uint32_t)(random >> 24) % 32 * 4;
		step->value = random >> 32 & 0xff;
		return;
	case CHAIN_ADD:
		step->to = cell + start / 8 * 8;
		step->bytes = 8;
		step->value = random | 1;
		return;
	}
}

/* Does the step leave a trace, and when repeated another one? */
static bool chain_step_shows(struct chain_model *model, const struct chain_step *step)
{
	uint8_t *at = model->state.table + step->cell * CHAIN_CELL_BYTES;
	uint8_t before[CHAIN_CELL_BYTES], after[CHAIN_CELL_BYTES];
	bool shows;

	memcpy(before, at, sizeof(before));
	apply_data(&model->state, model->tape, step);
	memcpy(after, at, sizeof(after));
	shows = memcmp(before, after, sizeof(before)) != 0;
	if (shows && (step->kind == CHAIN_SHIFT || step->kind == CHAIN_ADD)) {
		apply_data(&model->state, model->tape, step);
		shows = memcmp(after, at, sizeof(after)) != 0;
	}
	memcpy(at, shows ? after : before, sizeof(after));
	return shows;
}

void chain_model_next(struct chain_model *model, struct chain_step *ret_step)
{
	uint64_t number = model->next++;
	uint64_t pass = number / CHAIN_CELLS;
	struct chain_step step = { .number = number };
	uint64_t random = pattern_mix(model->key + number);

	/* Every cell once in a pass, in an order that depends on the pass. */
	step.cell = (uint32_t)((number * 37 + pass * 11) % CHAIN_CELLS);
	step.kind = chain_pick_kind(random);
	chain_shape(&step, random);
	while (!chain_step_shows(model, &step)) {
		step.kind = CHAIN_INJECT;
		random = pattern_mix(random + 1);
		chain_shape(&step, random);
	}
	model->state.slots[step.cell] += chain_slot_value(&step);
	*ret_step = step;
}
