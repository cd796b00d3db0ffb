/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads test/data/kernels/gfx90a.txt: compiled kernels, with the text of every instruction. */
#ifndef TEST_LIB_GCN_LISTING_H
#define TEST_LIB_GCN_LISTING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LISTING
#define LISTING "test/data/kernels/gfx90a.txt"
#endif
#define LISTING_MAX_DWORDS 512u

/* A kernel as it lies in memory: the descriptor, whose dwords 4 and 5 say where the code is. */
struct listed_kernel {
	uint32_t descriptor[16];
	uint32_t code[LISTING_MAX_DWORDS];
	uint32_t dwords;
};

/* A line of code: false for any other. @text points into @line. */
static inline bool listing_code(char *line, uint32_t *words, uint32_t *ret_count, char **text)
{
	char *bar = strstr(line, " | "), *at = line;

	if (!bar)
		return false;
	*bar = '\0';
	*text = bar + 3;
	(*text)[strcspn(*text, "\n")] = '\0';
	for (*ret_count = 0; *at && *ret_count < 2; (*ret_count)++)
		words[*ret_count] = (uint32_t)strtoul(at, &at, 16);
	return true;
}

static inline void listing_descriptor(const char *line, uint32_t *descriptor)
{
	char *at = strchr(line, ' ');
	int i;

	for (i = 0; at && i < 16; i++)
		descriptor[i] = (uint32_t)strtoul(at, &at, 16);
}

/* 0, or -1 where there is no such kernel. */
static inline int listing_read(const char *name, struct listed_kernel *ret_kernel)
{
	FILE *file = fopen(LISTING, "r");
	bool wanted = false;
	char line[512], *text;
	uint32_t count;

	memset(ret_kernel, 0, sizeof(*ret_kernel));
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "kernel ", 7) == 0)
			wanted = strncmp(line + 7, name, strlen(name)) == 0 &&
				 line[7 + strlen(name)] == '\n';
		else if (wanted && strncmp(line, "descriptor ", 11) == 0)
			listing_descriptor(line, ret_kernel->descriptor);
		else if (wanted && ret_kernel->dwords + 2 <= LISTING_MAX_DWORDS &&
			 listing_code(line, ret_kernel->code + ret_kernel->dwords, &count, &text))
			ret_kernel->dwords += count;
	}
	if (file)
		(void)fclose(file);
	return ret_kernel->dwords ? 0 : -1;
}

#endif
