// SPDX-License-Identifier: GPL-2.0-only
/* Maps the program, and bounds every offset that it states. */
#include "elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_ORDER ELFDATA2LSB
#else
#define HOST_ORDER ELFDATA2MSB
#endif

/* @count elements of @size bytes at @offset, or NULL if the file ends before. */
static const void *part_of(const struct elf *elf, uint64_t offset, uint64_t count, size_t size)
{
	if (offset > elf->size || count > (elf->size - offset) / size)
		return NULL;
	return elf->bytes + offset;
}

static int check_head(const struct elf *elf)
{
	const Elf64_Ehdr *head = part_of(elf, 0, 1, sizeof(*head));

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != HOST_ORDER ||
	    head->e_shentsize != sizeof(Elf64_Shdr))
		return -ENOEXEC;
	return 0;
}

int elf_open(const char *path, struct elf *ret_elf)
{
	_cleanup_close_ int fd = fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct elf elf = { 0 };
	struct stat stat;
	void *bytes;
	int ret;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISREG(stat.st_mode) || !stat.st_size)
		return -ENOEXEC;
	bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	elf.bytes = bytes;
	elf.size = (size_t)stat.st_size;
	ret = check_head(&elf);
	if (ret < 0)
		elf_close(&elf);
	else
		*ret_elf = elf;
	return ret;
}

void elf_close(struct elf *elf)
{
	if (elf->bytes)
		(void)munmap((void *)(uintptr_t)elf->bytes, elf->size);
	*elf = (struct elf){ 0 };
}

bool elf_has(const char *path, const void *bytes, size_t size)
{
	_cleanup_(elf_close) struct elf elf = { 0 };

	return !elf_open(path, &elf) && memmem(elf.bytes, elf.size, bytes, size);
}

static const Elf64_Shdr *list_sections(const struct elf *elf, size_t *ret_count)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)elf->bytes;

	*ret_count = head->e_shnum;
	if (head->e_shoff % sizeof(uint64_t))
		return NULL;
	return part_of(elf, head->e_shoff, head->e_shnum, sizeof(Elf64_Shdr));
}

/* The name at @offset of the string table @section, or "" if the table has no whole name
 * there. */
static const char *name_at(const struct elf *elf, const Elf64_Shdr *section, uint64_t offset)
{
	const char *names = part_of(elf, section->sh_offset, section->sh_size, 1);

	if (!names || offset >= section->sh_size || names[section->sh_size - 1])
		return "";
	return names + offset;
}

static const Elf64_Sym *find_in(const struct elf *elf, const Elf64_Shdr *table,
				const Elf64_Shdr *names, const char *name)
{
	uint64_t count = table->sh_size / sizeof(Elf64_Sym);
	const Elf64_Sym *symbols = part_of(elf, table->sh_offset, count, sizeof(*symbols));

	if (!symbols || table->sh_offset % sizeof(uint64_t))
		return NULL;
	for (uint64_t i = 0; i < count; i++) {
		if (symbols[i].st_shndx != SHN_UNDEF &&
		    !strcmp(name_at(elf, names, symbols[i].st_name), name))
			return &symbols[i];
	}
	return NULL;
}

int elf_find_symbol(const struct elf *elf, const char *name, uint64_t *ret_size)
{
	size_t count;
	const Elf64_Shdr *sections = list_sections(elf, &count);

	for (size_t i = 0; sections && i < count; i++) {
		const Elf64_Sym *symbol;

		if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= count)
			continue;
		symbol = find_in(elf, &sections[i], &sections[sections[i].sh_link], name);
		if (!symbol)
			continue;
		*ret_size = symbol->st_size;
		return 0;
	}
	return -ENOENT;
}

const char *elf_find_path(const struct elf *elf, const char *end)
{
	size_t length = strlen(end) + 1;

	/* The zero byte belongs to the end. */
	for (size_t at = 0; at + length <= elf->size; at++) {
		const uint8_t *found = memmem(elf->bytes + at, elf->size - at, end, length);
		const uint8_t *begin;

		if (!found)
			return NULL;
		begin = found;
		while (begin > elf->bytes && begin[-1] > ' ' && begin[-1] < 0x7f)
			begin--;
		if (begin > elf->bytes && !begin[-1] && *begin == '/')
			return (const char *)begin;
		at = (size_t)(found - elf->bytes);
	}
	return NULL;
}
