// SPDX-License-Identifier: GPL-2.0-only
/* A driver reads records of BOs of one size only. KFD 1.11 and older have smaller ones than KFD
 * 1.14 and newer. */
#include "fit_driver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "criu/log.h"
#include "image/image_validate.h"
#include "kernel/amdgpu_module.h"

/* MAX_GPU_INSTANCE in kfd_priv.h, the number of ids in the record of a BO, is 16 in Linux 6.1 with
 * KFD 1.11, and 64 in Linux 6.5 with KFD 1.14. The smallest records with 64 ids have 272 bytes. */
#define LAST_WITH_16  11
#define FIRST_WITH_64 14
#define SIZE_WITH_64  272

int fit_driver_check(const struct tool_image *image, uint32_t kfd_minor)
{
	const uint64_t size = image->priv.layout.bo_size;
	bool wide;

	if (!image->priv.num_bos || !image->priv.layout.is_known)
		return 0;
	wide = size >= SIZE_WITH_64;
	if (!(wide && kfd_minor <= LAST_WITH_16) && !(!wide && kfd_minor >= FIRST_WITH_64))
		return 0;
	return log_error(-EOPNOTSUPP,
			 "kfd %d: the driver has saved %" PRIu64
			 " bytes for each BO, and that of this machine (KFD 1.%" PRIu32
			 ") reads records of another size; restore under the kernel of the dump",
			 image->id, size, kfd_minor);
}

static bool is_equal(const char *saved, const char *here)
{
	return saved ? !strcmp(saved, here) : !*here;
}

static void print_driver(const char *kernel, uint32_t kfd_minor, const char *version)
{
	printf("Linux %s, KFD 1.%" PRIu32 "%s%s", kernel, kfd_minor, *version ? ", amdgpu " : "",
	       version);
}

void fit_driver_print(const struct tool_image *image, uint32_t kfd_minor)
{
	const SavedOn *saved = image->kfd->saved_on;
	char version[SAVED_ON_TEXT] = "", source[SAVED_ON_TEXT] = "";
	struct utsname here;

	if (!saved || !saved->kernel || !saved->has_kfd_minor || uname(&here) < 0)
		return;
	(void)amdgpu_module_text("version", version, sizeof(version));
	(void)amdgpu_module_text("srcversion", source, sizeof(source));
	if (is_equal(saved->kernel, here.release) && saved->kfd_minor == kfd_minor &&
	    is_equal(saved->driver_version, version) && is_equal(saved->driver_source, source))
		return;
	printf("  taken under another driver: ");
	print_driver(saved->kernel, saved->kfd_minor,
		     saved->driver_version ? saved->driver_version : "");
	printf("; here: ");
	print_driver(here.release, kfd_minor, version);
	printf("\n");
}
