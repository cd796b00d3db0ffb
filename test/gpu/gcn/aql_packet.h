/* SPDX-License-Identifier: GPL-2.0-only */
/* The packets of AQL queues, for the simulated and the emulated GPU. Formats are those of the HSA
 * specification (Platform System Architecture Specification 1.2, "Architected Queuing Language")
 * and of hsa_ext_amd.h (vendor packets), signals those of amd_hsa_signal.h. */
#ifndef SIM_AQL_PACKET_H
#define SIM_AQL_PACKET_H

#include "sim_env.h"

#define AQL_PACKET_BYTES    64u
#define AQL_BARRIER_COUNT   5u
#define AQL_SIGNAL_USER     1
#define AQL_PM4_DWORDS(pm4) ((pm4)->jump[3] & 0xfffffu)

enum aql_packet_type {
	AQL_VENDOR = 0,
	AQL_INVALID = 1,
	AQL_DISPATCH = 2,
	AQL_BARRIER_AND = 3,
	AQL_BARRIER_OR = 5,
};

enum { AQL_VENDOR_PM4 = 1, AQL_VENDOR_VALUE = 2 };

struct aql_dispatch {
	u16 header, setup, workgroup[3], reserved1;
	u32 grid[3], private_bytes, group_bytes;
	u64 kernel, kernarg, reserved2, completion;
};

struct aql_barrier {
	u16 header, reserved1;
	u32 reserved2;
	u64 signals[AQL_BARRIER_COUNT], reserved3, completion;
};

struct aql_value {
	u16 header;
	u8 format, reserved1;
	u32 reserved2;
	u64 signal;
	s64 value, mask;
	u32 condition, reserved3;
	u64 reserved4, reserved5, completion;
};

/* A jump to a buffer of PM4 commands. */
struct aql_pm4 {
	u16 header, format;
	u32 jump[4], remaining, reserved[8];
	u64 completion;
};

union aql_packet {
	u16 header;
	struct aql_dispatch dispatch;
	struct aql_barrier barrier;
	struct aql_value value;
	struct aql_pm4 pm4;
};

struct aql_signal {
	s64 kind, value;
	u64 mailbox;
	u32 event_id, reserved1;
	u64 start, end, queue, reserved2;
};

u32 aql_packet_type(const union aql_packet *packet);
/* What is wrong with the packet, or NULL. */
const char *aql_packet_find_fault(const union aql_packet *packet);

/* Reads the value of a signal. 0 or -errno. */
typedef int (*aql_read_value)(void *argument, u64 address, s64 *ret_value);

/* Whether a barrier of either kind is satisfied: 1, 0 or -errno. */
int aql_packet_look_at_barrier(const union aql_packet *packet, aql_read_value read, void *argument);
int aql_packet_look_at_value(const struct aql_value *packet, aql_read_value read, void *argument);

#endif
