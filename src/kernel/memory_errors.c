// SPDX-License-Identifier: GPL-2.0-only
/* Adds up the uncorrectable memory errors of a GPU from sysfs (amdgpu_ras.c in the kernel).
 * Contexts do not tell them: a new context reports errors of the past, and late
 * (amdgpu_ctx_query2()). */
#include "kernel/memory_errors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

/* The directory of all functions of a PCI device: GPUs in virtual machines may have any. */
#define FUNCTIONS 8u

static DIR *open_directory(uint64_t pci_device)
{
	struct pci_slot slot = { pci_device >> 32 & INT32_MAX, pci_device & 0xfff8 };
	DIR *stream = NULL;
	int error;

	for (uint32_t function = 0; !stream && function < FUNCTIONS; function++, slot.location++) {
		char path[64], text[PCI_SLOT_TEXT];

		(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/ras",
			       pci_slot_print(slot, text));
		stream = dir_open_at(AT_FDCWD, path, &error);
	}
	return stream;
}

/* Each part of the GPU has a file. Drivers for MI300 before Linux 7.3 name it otherwise
 * (add_aca_sysfs() in amdgpu_aca.c). */
static bool is_count(const char *name)
{
	static const char end[] = "_err_count";
	size_t length = strlen(name);

	return !strncmp(name, "aca_", 4) ||
	       (length > strlen(end) && !strcmp(name + length - strlen(end), end));
}

/* The file has no number during a reset, which contexts report, and reading it may fail for a part
 * that the driver cannot ask. */
static bool read_count(int directory, const char *name, uint64_t *ret_count)
{
	_cleanup_close_ int fd = fd_open_at(directory, name, O_RDONLY);
	char text[64] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
	       sscanf(text, "ue: %" SCNu64, ret_count) == 1;
}

int memory_errors_count(uint64_t pci_device, struct memory_errors *ret_errors)
{
	_cleanup_closedir_ DIR *stream = open_directory(pci_device);
	struct memory_errors sum = { 0 };
	struct dirent *entry;
	uint64_t count = 0;
	int ret = 0;

	if (!stream)
		return -ENOENT;
	while ((entry = next_entry(stream, &ret))) {
		if (!is_count(entry->d_name) || !read_count(dirfd(stream), entry->d_name, &count))
			continue;
		sum.count += count;
		sum.parts++;
	}
	if (ret < 0)
		return ret;
	*ret_errors = sum;
	return sum.parts ? 0 : -ENOENT;
}

int memory_errors_count_new(uint64_t pci_device, const struct memory_errors *before,
			    uint64_t *ret_count)
{
	struct memory_errors now = { 0 };

	if (!before->parts || memory_errors_count(pci_device, &now) < 0 ||
	    now.parts != before->parts)
		return -ENOENT;
	*ret_count = now.count > before->count ? now.count - before->count : 0;
	return 0;
}
