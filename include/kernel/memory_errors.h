/* SPDX-License-Identifier: GPL-2.0-only */
/* Uncorrectable errors (ECC) in the memory of GPUs. */
#ifndef AMDGPU_PLUGIN_KERNEL_MEMORY_ERRORS_H
#define AMDGPU_PLUGIN_KERNEL_MEMORY_ERRORS_H

#include <stdint.h>

/* The number of errors since the driver was loaded, which asks the hardware at each call.
 * @pci_device: from topology_pci_device(). -ENOENT: the driver does not count errors of this GPU,
 * or sysfs does not show the GPU to this process. Logs nothing. */
int memory_errors_count(uint64_t pci_device, uint64_t *ret_count);

#endif
