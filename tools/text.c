// SPDX-License-Identifier: GPL-2.0-only
/* Each function writes to the buffer of its caller, and returns it. */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

const char *text_colour(FILE *stream, const char *escape)
{
	const char *refusal = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if ((refusal && *refusal) || !isatty(fileno(stream)) || !terminal ||
	    !strcmp(terminal, "dumb"))
		return "";
	return escape;
}

const char *text_size(uint64_t bytes, char text[16])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(text, 16, "%.*f %s", unit && value < 100 ? 1 : 0, value, units[unit]);
	return text;
}

const char *text_pci(const KfdDeviceEntry *gpu, char text[PCI_SLOT_TEXT])
{
	if (!gpu->has_location_id)
		return "-";
	return pci_slot_print((struct pci_slot){ gpu->domain, gpu->location_id }, text);
}

/* As HIP and rocminfo print it. */
const char *text_unique_id(const KfdDeviceEntry *gpu, char text[TEXT_UNIQUE_ID])
{
	if (!gpu->unique_id)
		return "-";
	(void)snprintf(text, TEXT_UNIQUE_ID, "GPU-%016" PRIx64, gpu->unique_id);
	return text;
}

/* 90010 is gfx90a, since the stepping is hexadecimal (kfd_device.c). */
const char *text_gfx(uint32_t version, char text[16])
{
	if (!version)
		return "-";
	(void)snprintf(text, 16, "gfx%" PRIu32 "%" PRIx32 "%" PRIx32, version / 10000 % 1000,
		       version / 100 % 100, version % 100);
	return text;
}

void text_make_printable(char *text)
{
	for (; *text; text++)
		*text = *text < ' ' || *text > '~' ? '?' : *text;
}
