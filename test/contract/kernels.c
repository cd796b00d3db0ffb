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

/* The columns are the fields of struct kernel in their order. */
/* clang-format off */
static const struct kernel kernels[] = {
	/* name       release  knobs       amd unchecked svm exports dmabuf hive no-va bos types nests page ids pasid contexts rings unit */
	{ "6.1",      "6.1.",  NULL,        0,        0,  0,      0,     0,   1,    0,  0,    1,    1,   1,  0,    1,       0,    0,    0 },
	{ "6.5",      NULL,    NULL,        0,        0,  1,      1,     0,   1,    1,  1,    0,    1,   1,  0,    1,       0,    0,    0 },
	{ "6.8",      NULL,    NULL,        0,        0,  1,      1,     1,   1,    1,  1,    0,    1,   1,  0,    1,       0,    0,    0 },
	{ "6.12.111", "6.12.", NULL,        0,        0,  0,      1,     1,   1,    1,  0,    1,    0,   1,  0,    1,       0,    1,    0 },
	{ "6.18",     NULL,    NULL,        0,        0,  1,      1,     1,   1,    1,  0,    0,    1,   1,  0,    0,       0,    1, 4096 },
	{ "7.2",      "7.2.",  OLDER_LIST,  0,        0,  1,      1,     1,   0,    1,  0,    1,    1,   1,  0,    0,       1,    1, 4096 },
	{ "7.3",      "7.3",   NULL,        0,        0,  1,      1,     1,   0,    1,  0,    1,    0,   0,  1,    0,       1,    1,    1 },
	{ "dkms",     NULL,    NULL,        1,        1,  1,      1,     1,   1,    1,  0,    0,    1,   1,  0,    0,       0,    1, 4096 },
	{ "dkms-7.1", NULL,    NULL,        1,        0,  1,      1,     1,   1,    1,  0,    1,    1,   0,  1,    0,       1,    1, 4096 },
	{ "default",  NULL,    NULL,        0,        0,  1,      1,     1,   1,    1,  0,    0,    1,   1,  0,    1,       0,    1,    0 },
};
/* clang-format on */

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
