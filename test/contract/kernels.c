// SPDX-License-Identifier: GPL-2.0-only
/* One row for each kernel. The true drivers of Debian's kernels have to agree with their rows, and
 * so has the simulator when it behaves like them. */
#include "kernels.h"

#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>

/* The simulator's 7.2 is Linux 7.2.13, which lists the alignments of buffers in bytes. Debian has
 * 7.2.12. */
#define OLDER_LIST "list_alignment_bytes=0"

static const struct kernel kernels[] = {
	{ .name = "6.1",
	  .release = "6.1.",
	  .hive_imports = true,
	  .event_types = true,
	  .pause_nests = true,
	  .event_page = true,
	  .process_pasid = true },
	{ .name = "6.5",
	  .svm = true,
	  .exports = true,
	  .hive_imports = true,
	  .addressless = true,
	  .bos_required = true,
	  .pause_nests = true,
	  .event_page = true,
	  .process_pasid = true },
	{ .name = "6.8",
	  .svm = true,
	  .exports = true,
	  .one_dmabuf = true,
	  .hive_imports = true,
	  .addressless = true,
	  .bos_required = true,
	  .pause_nests = true,
	  .event_page = true,
	  .process_pasid = true },
	{ .name = "6.12.111",
	  .release = "6.12.",
	  .exports = true,
	  .one_dmabuf = true,
	  .hive_imports = true,
	  .addressless = true,
	  .event_types = true,
	  .event_page = true,
	  .process_pasid = true,
	  .checks_rings = true },
	{ .name = "6.18",
	  .svm = true,
	  .exports = true,
	  .one_dmabuf = true,
	  .hive_imports = true,
	  .addressless = true,
	  .pause_nests = true,
	  .event_page = true,
	  .checks_rings = true,
	  .alignment_unit = 4096 },
	{ .name = "7.2",
	  .release = "7.2.",
	  .svm = true,
	  .exports = true,
	  .one_dmabuf = true,
	  .addressless = true,
	  .event_types = true,
	  .pause_nests = true,
	  .event_page = true,
	  .contexts = true,
	  .checks_rings = true,
	  .alignment_unit = 4096,
	  .knobs = OLDER_LIST },
	{ .name = "7.3",
	  .release = "7.3",
	  .svm = true,
	  .exports = true,
	  .one_dmabuf = true,
	  .addressless = true,
	  .event_types = true,
	  .user_ids = true,
	  .contexts = true,
	  .checks_rings = true,
	  .alignment_unit = 1 },
	{ .name = "dkms",
	  .amd = true,
	  .unchecked_handles = true,
	  .svm = true,
	  .exports = true,
	  .one_dmabuf = true,
	  .hive_imports = true,
	  .addressless = true,
	  .pause_nests = true,
	  .event_page = true,
	  .checks_rings = true,
	  .alignment_unit = 4096 },
	{ .name = "dkms-7.1",
	  .amd = true,
	  .svm = true,
	  .exports = true,
	  .one_dmabuf = true,
	  .hive_imports = true,
	  .addressless = true,
	  .event_types = true,
	  .pause_nests = true,
	  .user_ids = true,
	  .contexts = true,
	  .checks_rings = true,
	  .alignment_unit = 4096 },
	{ .name = "default",
	  .svm = true,
	  .exports = true,
	  .one_dmabuf = true,
	  .hive_imports = true,
	  .addressless = true,
	  .pause_nests = true,
	  .event_page = true,
	  .process_pasid = true,
	  .checks_rings = true },
};

static bool is(const struct kernel *kernel, const char *name, const char *release)
{
	if (name)
		return strcmp(kernel->name, name) == 0;
	return kernel->release && strncmp(release, kernel->release, strlen(kernel->release)) == 0;
}

const struct kernel *kernel_find(const char *name)
{
	struct utsname system;

	if (uname(&system) < 0)
		return NULL;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		if (is(&kernels[i], name, system.release))
			return &kernels[i];
	}
	return NULL;
}
