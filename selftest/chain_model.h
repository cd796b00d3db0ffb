/* SPDX-License-Identifier: GPL-2.0-only */
/* A chain of dependent copy-engine operations and what memory must look like after them. Within a
 * pass every cell of the table and every slot is written exactly once, so a packet that is lost
 * leaves a wrong cell until the pass is compared; 13 packets of 16 also change something when they
 * are executed a second time. */
#ifndef SELFTEST_CHAIN_MODEL_H
#define SELFTEST_CHAIN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define CHAIN_CELLS       128u
#define CHAIN_CELL_BYTES  1024u
#define CHAIN_TABLE_BYTES (CHAIN_CELLS * CHAIN_CELL_BYTES)
#define CHAIN_TAPE_BYTES  65536u

enum chain_kind {
	CHAIN_SHIFT,  /* moves most of a cell down by a few words: not idempotent */
	CHAIN_ADD,    /* adds to a word of a cell: not idempotent */
	CHAIN_MIX,    /* copies from another cell */
	CHAIN_INJECT, /* copies from the tape */
	CHAIN_FILL,
};

struct chain_step {
	enum chain_kind kind;
	uint64_t number;
	uint32_t cell;
	uint32_t to;   /* offset in the table */
	uint32_t from; /* offset in the table, or in the tape */
	uint32_t bytes;
	uint64_t value;
};

/* What the engine changes. */
struct chain_state {
	uint64_t slots[CHAIN_CELLS]; /* sums of something of every step of the cell */
	uint8_t table[CHAIN_TABLE_BYTES];
};

struct chain_model {
	struct chain_state state;
	uint8_t tape[CHAIN_TAPE_BYTES];
	uint64_t next;
	uint64_t key;
};

void chain_model_init(struct chain_model *model, uint64_t key);

/* Chooses the next step and carries it out. Every step changes its cell, and a shift or an addition
 * changes it again when it is repeated. */
void chain_model_next(struct chain_model *model, struct chain_step *ret_step);

/* What a step adds to the slot of its cell. */
uint64_t chain_slot_value(const struct chain_step *step);

#endif
