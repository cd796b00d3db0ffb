// SPDX-License-Identifier: GPL-2.0-only
/* One row for each kernel. The true drivers of Debian's kernels have to agree with their rows, and
 * so has the simulator when it behaves like them. */
#include "kernels.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

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

/* AMD's out-of-tree driver has a version of its own. */
#define AMD_VERSION "/sys/module/amdgpu/version"
#define AMD_ROW     "dkms"

#define NUM_KERNELS (sizeof(kernels) / sizeof(kernels[0]))

const struct kernel *kernel_find(const char *name)
{
	for (size_t i = 0; i < NUM_KERNELS; i++) {
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
	}
	return NULL;
}

/* "6.12.111" is 6012. Returns 0 for text without such numbers. */
static unsigned int number_of(const char *text)
{
	unsigned int major, minor;

	return sscanf(text, "%u.%u", &major, &minor) == 2 ? major * 1000 + minor : 0;
}

/* The rows stand in the order of the kernels. */
static const struct kernel *find_nearest(const char *release)
{
	const struct kernel *nearest = &kernels[0];

	for (size_t i = 0; i < NUM_KERNELS; i++) {
		if (number_of(kernels[i].name) && number_of(kernels[i].name) <= number_of(release))
			nearest = &kernels[i];
	}
	return nearest;
}

const struct kernel *kernel_find_running(bool *ret_is_known)
{
	struct utsname system = { .release = "" };

	*ret_is_known = false;
	if (access(AMD_VERSION, F_OK) == 0)
		return kernel_find(AMD_ROW);
	(void)uname(&system);
	for (size_t i = 0; i < NUM_KERNELS; i++) {
		const char *known = kernels[i].release;

		if (known && strncmp(system.release, known, strlen(known)) == 0) {
			*ret_is_known = true;
			return &kernels[i];
		}
	}
	return find_nearest(system.release);
}
