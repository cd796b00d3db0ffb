/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions of RCCL that the RCCL client calls. The library needs HIP's runtime of the same
 * suite, so it is opened at run time. The signatures are those of its header, with communicators
 * and streams as pointers to void. */
#ifndef CLIENT_RCCL_H
#define CLIENT_RCCL_H

#include <stdbool.h>
#include <stddef.h>

#define RCCL_UINT32 3
#define RCCL_SUM    0

struct rccl_id {
	char bytes[128];
};

#define RCCL_FUNCTIONS(X)                                                          \
	X(GetUniqueId, (struct rccl_id * ret_id))                                  \
	X(CommInitRank, (void **ret_comm, int ranks, struct rccl_id id, int rank)) \
	X(CommInitAll, (void **ret_comms, int ranks, const int *devices))          \
	X(CommDestroy, (void *comm))                                               \
	X(GroupStart, (void))                                                      \
	X(GroupEnd, (void))                                                        \
	X(AllReduce,                                                               \
	  (const void *from, void *to, size_t count, int type, int op, void *comm, void *stream))

struct rccl {
#define RCCL_MEMBER(name, parameters) int(*name) parameters;
	RCCL_FUNCTIONS(RCCL_MEMBER)
#undef RCCL_MEMBER
};

/* Opens the library, and HIP's with it. NULL: well, else what is missing. */
const char *rccl_open(struct rccl *rccl);

#endif
