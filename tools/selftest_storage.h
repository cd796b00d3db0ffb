/* SPDX-License-Identifier: GPL-2.0-only */
/* The speed of the storage for images when no GPU takes part. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_STORAGE_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_STORAGE_H

#include <stdint.h>

struct selftest_storage {
	double write_mib_s; /* to the page cache, as a dump writes */
	double flush_mib_s; /* until the storage has it */
	double read_mib_s;  /* from the storage, as far as the kernel lets go of its pages */
};

/* Writes and reads a file of @bytes in @dir, and removes it. */
int selftest_storage_measure(const char *dir, uint64_t bytes, struct selftest_storage *ret_storage);

#endif
