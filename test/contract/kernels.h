/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernels do differently, as the rules expect it. */
#ifndef CONTRACT_KERNELS_H
#define CONTRACT_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

struct kernel {
	const char *name;       /* in the simulator's own table */
	const char *release;    /* how uname's release begins; NULL: no driver of Debian's */
	const char *knobs;      /* what the simulator has to change in its column; NULL: nothing */
	bool amd;               /* AMD's out-of-tree driver: share handles */
	bool unchecked_handles; /* the driver crashes on a handle of no buffer */
	bool svm;               /* Debian builds it with SVM */
	bool exports;           /* EXPORT_DMABUF exists */
	/* KFD has a handle of each buffer in a file of its own: a buffer has one dma-buf, and may
	 * be imported on another device. */
	bool one_dmabuf;
	/* A file, and KFD with one_dmabuf, import VRAM of another GPU of the same XGMI hive. */
	bool hive_imports;
	bool addressless;   /* CRIU_OP counts buffers without an address */
	bool bos_required;  /* RESTORE refuses a process without buffers */
	bool event_types;   /* RESTORE refuses an event of an unknown type */
	bool pause_nests;   /* a second PROCESS_INFO stops the queues once more */
	bool event_page;    /* the kernel makes a page for signal events */
	bool user_ids;      /* offsets of mmap() of /dev/kfd have the ids that the process knows */
	bool process_pasid; /* a KFD process has a PASID, which its render files get */
	bool contexts;      /* CREATE_PROCESS exists */
	bool checks_rings;  /* CREATE_QUEUE takes a ring only if it is a whole buffer */
	uint32_t alignment_unit; /* bytes, in the list of GEM handles; 0: there is no list */
};

/* The row of that name. Returns NULL if the table has no such row. */
const struct kernel *kernel_find(const char *name);

/* The row of the running kernel, or if no true driver of that kernel has been compared with a row,
 * the row of the nearest older kernel. *@ret_is_known tells which. */
const struct kernel *kernel_find_running(bool *ret_is_known);

#endif
