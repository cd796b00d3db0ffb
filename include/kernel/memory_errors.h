/* SPDX-License-Identifier: GPL-2.0-only */
/* Uncorrectable errors (ECC) in the memory of GPUs. */
#ifndef AMDGPU_PLUGIN_KERNEL_MEMORY_ERRORS_H
#define AMDGPU_PLUGIN_KERNEL_MEMORY_ERRORS_H

#include <stdint.h>

struct memory_errors {
	/* Since the driver was loaded, of all parts of the GPU that could be asked. */
	uint64_t count;
	/* How many parts could be asked. */
	unsigned int parts;
};

/* Asks the hardware at each call. @pci_device: from topology_pci_device(). -ENOENT: the driver does
 * not count errors of this GPU, or sysfs does not show the GPU to this process. Logs nothing. */
int memory_errors_count(uint64_t pci_device, struct memory_errors *ret_errors);
/* The number of errors that the GPU has had since @before was counted. -ENOENT: that cannot be
 * told, because the parts that could be asked are not the same. Logs nothing. */
int memory_errors_count_new(uint64_t pci_device, const struct memory_errors *before,
			    uint64_t *ret_count);

#endif
