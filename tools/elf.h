/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the dynamic symbols and the strings of a program, without running it. */
#ifndef AMDGPU_PLUGIN_TOOLS_ELF_H
#define AMDGPU_PLUGIN_TOOLS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A program for this kind of processor, in memory. */
struct elf {
	const uint8_t *bytes;
	size_t size;
};

/* -ENOEXEC: the file is no ELF program of 64 bits in this byte order. Free with elf_close(). */
int elf_open(const char *path, struct elf *ret_elf);
void elf_close(struct elf *elf);

/* Whether the file is such a program and has these bytes. */
bool elf_has(const char *path, const void *bytes, size_t size);

/* Whether the program defines and exports @name. *@ret_size: of the object. -ENOENT: it does not.
 */
int elf_find_symbol(const struct elf *elf, const char *name, uint64_t *ret_size);

/* The first string in the program that begins with '/' and ends with @end, or NULL. Borrowed.
 */
const char *elf_find_path(const struct elf *elf, const char *end);

#endif
