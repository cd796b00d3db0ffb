// SPDX-License-Identifier: GPL-2.0-only
/* Linux 6.1.192 and 7.2.12: to map host memory for a GPU may overwrite 1 GiB of other memory.
 * amdgpu_vm_sdma_update() puts page table entries at the end of a command buffer, and copies them
 * from there. If the command buffer is full, it takes a new one, but goes on with the room that the
 * old one had. Where that was just enough for the copies alone, it copies no entry, and the packet
 * has the number of bytes less one: -1, of which the engine takes 30 bits. Linux 6.12.118 and 7.3.4
 * use the room of the new one. With the module option vm_update_mode=3 the CPU writes the entries.
 *
 * The program maps pages that are all apart, twice, each time at the end of a page table and into
 * the next. An entry has 2 of the 256 dwords, and a copy 7. Linux 6.1 writes each page table twice.
 * So 110 entries in the first page table leave 22 dwords there, and without second copies 117
 * entries leave 15: nothing, behind the copies of the next entries and 7 dwords of padding. Needs
 * one GPU, and root, to know the physical pages. */
#include <drm/amdgpu_drm.h>
#include <drm/drm.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE       4096ul
#define HUGE_PAGE  (2ul << 20)
#define PAGES      (HUGE_PAGE / PAGE / 2)
#define SIZE       (PAGES * PAGE)
#define FRAME_MASK ((1ull << 55) - 1)

/* A huge page, which has its small pages one behind the other. */
static char *make_huge_page(void)
{
	char *room = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	char *page = room + -(uintptr_t)room % HUGE_PAGE;

	if (room == MAP_FAILED)
		return NULL;
	(void)madvise(page, HUGE_PAGE, MADV_HUGEPAGE);
	for (unsigned long i = 0; i < HUGE_PAGE; i += PAGE)
		page[i] = 1;
	return page;
}

/* Every second page of the huge page. */
static char *take_apart(char *huge)
{
	char *memory = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	for (unsigned long i = 0; i < PAGES; i++)
		if (mremap(huge + 2 * i * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   memory + i * PAGE) == MAP_FAILED)
			return NULL;
	return memory;
}

static uint64_t frame_of(int pagemap, const char *at)
{
	uint64_t entry = 0;

	if (pread(pagemap, &entry, sizeof(entry), (off_t)((uintptr_t)at / PAGE * sizeof(entry))) <
	    0)
		return 0;
	return entry & FRAME_MASK;
}

static int is_apart(const char *memory)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	for (unsigned long i = 0; i + 1 < PAGES; i++) {
		uint64_t frame = frame_of(pagemap, memory + i * PAGE);

		if (!frame || frame_of(pagemap, memory + (i + 1) * PAGE) == frame + 1)
			return 0;
	}
	return 1;
}

/* So that the first page table has @entries of them. */
static int map(int render, uint32_t handle, uint64_t table, uint64_t entries)
{
	struct drm_amdgpu_gem_va map = {
		.handle = handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE,
		.va_address = table + HUGE_PAGE - entries * PAGE,
		.map_size = SIZE,
	};

	return ioctl(render, DRM_IOCTL_AMDGPU_GEM_VA, &map);
}

static int map_twice(int render, char *memory)
{
	struct drm_amdgpu_gem_userptr bo = {
		.addr = (uintptr_t)memory,
		.size = SIZE,
		.flags = AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE,
	};

	if (ioctl(render, DRM_IOCTL_AMDGPU_GEM_USERPTR, &bo) < 0 ||
	    map(render, bo.handle, 0x100000000, 110) < 0)
		return -1;
	return map(render, bo.handle, 0x110000000, 117);
}

int main(int argc, char **argv)
{
	int render = open(argc > 1 ? argv[1] : "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	char *huge = make_huge_page(), *memory = huge ? take_apart(huge) : NULL;

	if (!memory || !is_apart(memory)) {
		fprintf(stderr, "the pages are not apart: no huge page, or no root\n");
		return 1;
	}
	if (map_twice(render, memory) < 0) {
		perror("map (the argument is the render node)");
		return 1;
	}
	printf("mapped\n");
	return 0;
}
