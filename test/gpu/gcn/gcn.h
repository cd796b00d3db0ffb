/* SPDX-License-Identifier: GPL-2.0-only */
/* An interpreter of the GPUs' machine code (gfx90a): decoding (gcn_decode.c, gcn_text.c),
 * arithmetic (gcn_alu.c, gcn_lanes.c, gcn_matrix.c), instructions (gcn_exec.c, gcn_memory.c), and
 * waves (gcn_run.c). It knows no queues, and reaches memory through functions of its caller.
 * Between two instructions, all state of a dispatch is in plain structs. */
#ifndef SIM_GCN_H
#define SIM_GCN_H

#include "sim_env.h"

#define SIM_GCN_LANES     64u
#define SIM_GCN_VGPRS     256u
#define SIM_GCN_REGISTERS 512u /* of a lane: VGPRs, then accumulation registers */
#define SIM_GCN_MAX_WAVES 16u  /* of a workgroup: 1024 work-items */
#define SIM_GCN_LDS_BYTES 65536u
#define SIM_GCN_TEXT      160u

enum sim_gcn_format {
	SIM_GCN_SOP2,
	SIM_GCN_SOP1,
	SIM_GCN_SOPC,
	SIM_GCN_SOPK,
	SIM_GCN_SOPP,
	SIM_GCN_SMEM,
	SIM_GCN_VOP1,
	SIM_GCN_VOP2,
	SIM_GCN_VOP3,
	SIM_GCN_DS,
	SIM_GCN_FLAT,
	SIM_GCN_MUBUF, /* loads and stores have the rows of FLAT */
	SIM_GCN_VOPC,  /* not in the table: its 256 codes follow a rule */
	SIM_GCN_FORMATS,
};

enum sim_gcn_op {
	SIM_GCN_UNKNOWN,
#define OP(name, ...) SIM_GCN_##name,
#include "gcn_ops.h"
#undef OP
	SIM_GCN_v_cmp, /* all of them */
	SIM_GCN_OPS,
};

/* Flags of a row. */
enum {
	SIM_GCN_SAVEEXEC = 1u << 0,
	SIM_GCN_COMPARES = 1u << 1,
	SIM_GCN_IMMEDIATE = 1u << 2,
	SIM_GCN_TO_SCALAR = 1u << 3,
	SIM_GCN_FLOAT = 1u << 4,    /* its sources may be negated, or lose their signs */
	SIM_GCN_FROM_INT = 1u << 5, /* its source has no sign bit that can be flipped */
	SIM_GCN_SIGNS = 1u << 6,    /* takes negated sources, but is no float */
	SIM_GCN_CARRY_IN = 1u << 7,
	SIM_GCN_CARRY_OUT = 1u << 8,
	SIM_GCN_ACCUMULATES = 1u << 9,
	SIM_GCN_LOAD = 1u << 10,
	SIM_GCN_STORE = 1u << 11,
	SIM_GCN_ATOMIC = 1u << 12,
	SIM_GCN_SIGNED = 1u << 13,
	SIM_GCN_PAIR = 1u << 14, /* two accesses, with an offset each */
	SIM_GCN_FAR = 1u << 15,  /* the offsets count units of 64 elements */
	SIM_GCN_HALF = 1u << 16, /* its sources have 16 bits */
	SIM_GCN_HAS_LITERAL =
		1u << 17,            /* a constant follows, which is its second or third source */
	SIM_GCN_VCC_IN = 1u << 18,   /* the carries are in VCC */
	SIM_GCN_LAST_INT = 1u << 19, /* its last source is no float */
	SIM_GCN_PLAIN = 1u << 20,    /* has only the short form */
	SIM_GCN_TO_EXEC = 1u << 21,  /* a comparison that writes EXEC, too */
	SIM_GCN_CLAMPS = 1u << 22,   /* a float may be limited to 0 and 1, a difference to 0 */
	SIM_GCN_PACKED_HALF = 1u << 23, /* its sources are two halves, of 16 bits */
	SIM_GCN_PACKED_WIDE = 1u << 24, /* its sources are two halves, of 32 bits */
	SIM_GCN_MIXED = 1u << 25,       /* each source is a half of 16 bits or a float */
	SIM_GCN_KEEPS = 1u << 26,       /* its result has a part of the destination */
	SIM_GCN_HIGH = 1u << 27,        /* loads and stores: of the high half of the register */
	SIM_GCN_ACROSS = 1u << 28,      /* passes values between lanes, and needs no memory */
	SIM_GCN_MATRIX = 1u << 29,      /* over matrices: gcn_matrix.c */
	SIM_GCN_D16 = 1u << 30,         /* loads to one half of the register */
};

struct sim_gcn_alu;
struct sim_gcn_row {
	const char *name;
	u8 format;
	u8 width[4]; /* of the result and the sources, in dwords */
	u16 code;
	u32 flags;
	u64 (*compute)(struct sim_gcn_alu *alu); /* of loads and stores: the bytes */
};

/* Operands of one lane, or scalar ones. */
struct sim_gcn_alu {
	u64 src[3];
	u64 old;    /* the destination, with KEEPS */
	bool carry; /* or SCC */
	u32 lane;
};

extern const struct sim_gcn_row sim_gcn_rows[SIM_GCN_OPS];

/* Numbers of operands: SGPRs from 0, VGPRs from 256, accumulation registers from 512. */
enum {
	SIM_GCN_FLAT_SCRATCH = 102,
	SIM_GCN_VCC = 106,
	SIM_GCN_M0 = 124,
	SIM_GCN_EXEC = 126,
	SIM_GCN_ZERO = 128,
	SIM_GCN_SHARED_BASE = 235, /* the aperture of LDS in flat addresses */
	SIM_GCN_PRIVATE_BASE = 237,
	SIM_GCN_SDWA = 249,
	SIM_GCN_DPP = 250,
	SIM_GCN_LITERAL = 255,
	SIM_GCN_VGPR0 = 256,
	SIM_GCN_ACC0 = 512,
};

#define SIM_GCN_HW_ID 4u /* of s_getreg_b32 */

/* Parts of a register: bytes, words, or all. */
enum sim_gcn_part { SIM_GCN_BYTE0 = 0, SIM_GCN_WORD0 = 4, SIM_GCN_WORD1 = 5, SIM_GCN_DWORD = 6 };
enum { SIM_GCN_REST_ZERO, SIM_GCN_REST_SIGNS, SIM_GCN_REST_KEPT };

struct sim_gcn_inst {
	u32 words[2];
	u32 bytes;
	enum sim_gcn_op op;
	enum sim_gcn_format format; /* of the encoding: VOP3 for the long form of others */
	u32 flags;
	u8 width[4];
	u32 compare;     /* v_cmp: its code */
	u16 dst, src[3]; /* 0: not used */
	u16 sdst;        /* the mask that receives carries */
	u32 literal;
	u8 neg, abs;
	/* packed sources, a bit for each: which halves become the low and the high half, and
	 * whether the high one is negated. Mixed sources: a half and not a float, which loses its
	 * sign. */
	u8 select, select_high, neg_high;
	bool clamp;
	/* the extensions SDWA and DPP, or 0 */
	u8 extension;
	u8 part[2], dst_part, dst_rest; /* enum sim_gcn_part, and what becomes of the other parts */
	u8 sext;                        /* sources whose part is a signed number */
	u16 dpp;                        /* where the values of the first source come from */
	u8 rows, banks;                 /* masks of lanes that are written */
	bool bound;                     /* 0 is read where there is no lane */
	s32 offset;                     /* memory; LDS: both of a pair, in elements, 8 bits each */
	u16 saddr;   /* memory: SGPR pair, 127 none; SMEM: SGPR with an offset, 127 none */
	bool global; /* and not flat */
	u16 soffset; /* MUBUF: operand with an offset; saddr is the first SGPR of the buffer */
	bool glc, slc, scc; /* scc: of caches only */
};

/* @available: the dwords at @words, 1 or 2. -EINVAL: unknown, or not of this generation. */
int sim_gcn_decode(const u32 *words, u32 available, struct sim_gcn_inst *ret_inst);
/* In the notation of LLVM's disassembler. */
void sim_gcn_text(const struct sim_gcn_inst *inst, char *text, u32 size);
/* The value of a constant operand (128 to 248, 255) of one or two dwords. */
u64 sim_gcn_constant(const struct sim_gcn_inst *inst, u32 operand, u32 width);

struct sim_gcn_wave {
	u64 pc;
	u32 scc;
	u32 state; /* enum sim_gcn_state */
	u32 s[128];
	u32 v[SIM_GCN_REGISTERS][SIM_GCN_LANES];
};

enum sim_gcn_state { SIM_GCN_RUNS, SIM_GCN_WAITS, SIM_GCN_ENDED };

/* The environment of the waves. An error (-errno) of a function ends the dispatch. */
struct sim_gcn_env {
	void *arg;
	int (*read)(void *arg, u64 va, void *data, u32 bytes);
	int (*write)(void *arg, u64 va, const void *data, u32 bytes);
	/* Compares and exchanges 4 or 8 aligned bytes: stores @desired if @expected is there.
	 * *@expected becomes the old value. */
	int (*exchange)(void *arg, u64 va, u32 bytes, u64 *expected, u64 desired);
	u64 (*now)(void *arg);
	/* Reports an error of the code. */
	void (*complain)(void *arg, const char *text);
};

/* Private memory of work-items, as the queue describes it: that of wave i of a workgroup is the
 * i-th part of it. */
struct sim_gcn_scratch {
	u32 resource[4]; /* of buffer instructions */
	u64 address, bytes;
	u32 wave_bytes;
	u32 private_base, shared_base; /* high dwords of flat addresses */
};

/* A kernel over a grid: one workgroup after another. */
struct sim_gcn_dispatch {
	u64 entry;
	u64 kernarg, packet, queue; /* addresses */
	u32 descriptor[16];
	u32 grid[3], workgroup[3];
	u32 lds_bytes;
	struct sim_gcn_scratch scratch;
	/* the progress */
	u32 id[3]; /* of the workgroup */
	u32 num_waves;
	bool begun, done;
};

/* Checks the dispatch and fills in derived fields. After a complaint: -EINVAL for values beyond the
 * limits, or for features that are missing. */
int sim_gcn_begin(struct sim_gcn_dispatch *dispatch, const struct sim_gcn_env *env);

/* An entry of the cache of decoded instructions. In an empty one, inst.bytes is 0. */
struct sim_gcn_cached {
	u64 pc;
	struct sim_gcn_inst inst;
};

#define SIM_GCN_CACHED_INSTRUCTIONS 16384u

/* The dispatch, with plain memory for the waves of its workgroup and for its LDS. */
struct sim_gcn_group {
	struct sim_gcn_wave *waves; /* num_waves */
	u8 *lds;                    /* SIM_GCN_LDS_BYTES */
	/* Instructions that have run, so that each is decoded once a dispatch. An instruction is at
	 * the index of its address. */
	struct sim_gcn_cached *code; /* SIM_GCN_CACHED_INSTRUCTIONS */
};

/* Allocates the memory of a group of @num_waves, or frees it. Done accepts an empty group. */
int sim_gcn_group_init(struct sim_gcn_group *group, u32 num_waves);
void sim_gcn_group_done(struct sim_gcn_group *group);

/* Runs about @steps instructions. 1: all is done; 0: call again; -errno. */
int sim_gcn_run(struct sim_gcn_dispatch *dispatch, struct sim_gcn_group *group,
		const struct sim_gcn_env *env, u32 steps);

/* The following is shared by the files of the interpreter only. */

#define SIM_GCN_BOUNCE_BYTES 512u

/* The arguments of one call of sim_gcn_run(). */
struct sim_gcn_run {
	struct sim_gcn_dispatch *dispatch;
	struct sim_gcn_group *group;
	const struct sim_gcn_env *env;
	struct sim_gcn_wave *wave;
	u8 bounce[SIM_GCN_BOUNCE_BYTES];
};

/* The expression of a row, cut to the width of the result; or a v_cmp of integers. */
u64 sim_gcn_compute(enum sim_gcn_op op, struct sim_gcn_alu *alu);
bool sim_gcn_compare(u32 code, u64 a, u64 b);

/* Operands and results of all lanes: a register has 64 dwords, and an operand up to two registers.
 */
struct sim_gcn_lanes {
	const u32 *src[3][2];
	u32 result[2][SIM_GCN_LANES];
	const u32 *old;
	u64 carries; /* a bit of each lane: of sources, then of results */
};

/* The expression of a vector row, or a v_cmp, whose results are the carries. */
void sim_gcn_compute_lanes(enum sim_gcn_op op, struct sim_gcn_lanes *lanes);
void sim_gcn_compare_lanes(u32 code, struct sim_gcn_lanes *lanes);

/* Sources of an instruction, with copies of those that are not registers as they are. */
struct sim_gcn_operands {
	u32 copies[3][2][SIM_GCN_LANES];
	u32 signs[3][2][SIM_GCN_LANES];
	struct sim_gcn_lanes lanes;
};

void sim_gcn_take_sources(struct sim_gcn_operands *operands, const struct sim_gcn_wave *wave,
			  const struct sim_gcn_inst *inst);
/* Source @i of a lane, or a scalar one, up to two dwords. */
u64 sim_gcn_operand(const struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst, u32 i,
		    u32 lane);
/* The lowest bit of a part, of enum sim_gcn_part. */
u32 sim_gcn_part_shift(u32 part);
/* The lane whose value @lane gets. Returns -1 if DPP names a lane outside the row or the wave,
 * or a lane that EXEC disables. */
s32 sim_gcn_dpp_source(const struct sim_gcn_inst *inst, u32 lane, u64 exec);

u64 sim_gcn_pair(const struct sim_gcn_wave *wave, u32 sgpr);
void sim_gcn_set_pair(struct sim_gcn_wave *wave, u32 sgpr, u64 value);
/* Runs one instruction. Its successor is at wave->pc already. 0 or -errno. */
int sim_gcn_scalar(struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
void sim_gcn_matrix(struct sim_gcn_wave *wave, const struct sim_gcn_inst *inst);
int sim_gcn_vector(struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
int sim_gcn_smem(struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
int sim_gcn_mubuf(struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
int sim_gcn_flat(struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
int sim_gcn_ds(struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
/* Complains, and names the instruction: -EINVAL. */
int sim_gcn_complain(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, const char *what);

#endif
