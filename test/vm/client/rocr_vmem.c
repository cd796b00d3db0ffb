// SPDX-License-Identifier: GPL-2.0-only
/* The virtual memory API of ROCr 6.1.2 and later. The headers of ROCr 5.2.3 lack it, so its
 * functions are looked up at run time, and their types are stated here. */
#include "rocr_vmem.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES 65536u
#define WORDS      (SLOT_BYTES / sizeof(uint64_t))
#define GOLDEN     0x9e3779b97f4a7c15ull

/* Parts of the address range. The first two show one piece. The last one is for new pieces. */
enum slot { FIRST, AGAIN, GIVEN_BACK, NEW, SLOTS };

struct piece {
	uint64_t handle;
};

struct right {
	hsa_access_permission_t permissions;
	hsa_agent_t agent;
};

/* Member, and name without "hsa_amd_vmem_". The 0 of create() is memory that is not pinned. */
#define FUNCTIONS(X)                                                                            \
	X(address_reserve, (void **address, size_t size, uint64_t wish, uint64_t flags))        \
	X(address_free, (void *address, size_t size))                                           \
	X(handle_create, (hsa_amd_memory_pool_t pool, size_t size, int type, uint64_t flags,    \
			  struct piece *ret_piece))                                             \
	X(handle_release, (struct piece piece))                                                 \
	X(map, (void *address, size_t size, size_t offset, struct piece piece, uint64_t flags)) \
	X(unmap, (void *address, size_t size))                                                  \
	X(set_access, (void *address, size_t size, const struct right *rights, size_t count))

struct rocr_vmem {
	const struct rocr *rocr;
	const struct rocr_place *gpu;
	unsigned int index, generation;
	struct rocr_copier copier;
	struct piece first;
	char *range;
	uint64_t *staging;
#define MEMBER(name, arguments) hsa_status_t(*name) arguments;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

static bool find_functions(struct rocr_vmem *vmem)
{
	const char *missing = NULL;
	void *function;

#define FIND(name, arguments)                                  \
	function = dlsym(RTLD_DEFAULT, "hsa_amd_vmem_" #name); \
	memcpy(&vmem->name, &function, sizeof(function));      \
	missing = function ? missing : #name;
	FUNCTIONS(FIND)
#undef FIND
	return !missing || rocr_say("this ROCr has no hsa_amd_vmem_%s()", missing);
}

static char *at(const struct rocr_vmem *vmem, enum slot slot)
{
	return vmem->range + slot * SLOT_BYTES;
}

static bool make(struct rocr_vmem *vmem, struct piece *ret_piece)
{
	return rocr_good(vmem->handle_create(vmem->gpu->pool, SLOT_BYTES, 0, 0, ret_piece),
			 "create a handle");
}

/* With access for the GPU, and for the CPU if @count is 2. */
static bool map(const struct rocr_vmem *vmem, enum slot slot, struct piece piece, size_t count)
{
	const struct right rights[] = {
		{ HSA_ACCESS_PERMISSION_RW, vmem->gpu->agent },
		{ HSA_ACCESS_PERMISSION_RW, vmem->rocr->cpu.agent },
	};

	return rocr_good(vmem->map(at(vmem, slot), SLOT_BYTES, 0, piece, 0), "map") &&
	       rocr_good(vmem->set_access(at(vmem, slot), SLOT_BYTES, rights, count), "access");
}

static bool unmap(const struct rocr_vmem *vmem, enum slot slot)
{
	return rocr_good(vmem->unmap(at(vmem, slot), SLOT_BYTES), "unmap");
}

/* A piece without a handle lives as long as its mapping. */
static bool map_given_back(struct rocr_vmem *vmem, enum slot slot)
{
	struct piece piece;

	return make(vmem, &piece) && map(vmem, slot, piece, 1) &&
	       rocr_good(vmem->handle_release(piece), "release a handle");
}

static bool reserve(struct rocr_vmem *vmem)
{
	void *range = NULL;

	if (!rocr_good(vmem->address_reserve(&range, SLOTS * SLOT_BYTES, 0, 0), "reserve"))
		return false;
	vmem->range = range;
	return true;
}

bool rocr_vmem_open(const struct rocr *rocr, unsigned int gpu, struct rocr_vmem **ret_vmem)
{
	struct rocr_vmem *vmem = calloc(1, sizeof(*vmem));

	if (!vmem)
		return rocr_say("no memory");
	*ret_vmem = vmem;
	vmem->rocr = rocr;
	vmem->gpu = &rocr->gpus[gpu];
	vmem->index = gpu;
	return find_functions(vmem) && rocr_copier_open(rocr, vmem->gpu, &vmem->copier) &&
	       rocr_allocate(&rocr->cpu, vmem->gpu, SLOT_BYTES, &vmem->staging) && reserve(vmem) &&
	       make(vmem, &vmem->first) && map(vmem, FIRST, vmem->first, 2) &&
	       map(vmem, AGAIN, vmem->first, 1) && map_given_back(vmem, GIVEN_BACK);
}

static uint64_t word(const struct rocr_vmem *vmem, enum slot slot, size_t i)
{
	uint64_t seed = ((uint64_t)vmem->generation * ROCR_MAX_GPUS + vmem->index) * SLOTS + slot;

	return ((seed + 1) << 24 ^ i) * GOLDEN;
}

/* Contents are named by @pattern, the slot for which they are made. */
static bool write_at(const struct rocr_vmem *vmem, enum slot slot, enum slot pattern)
{
	for (size_t i = 0; i < WORDS; i++)
		vmem->staging[i] = word(vmem, pattern, i);
	return rocr_copy_in(&vmem->copier, at(vmem, slot), vmem->staging, SLOT_BYTES);
}

static bool compare(const struct rocr_vmem *vmem, const uint64_t *words, enum slot pattern,
		    const char *what)
{
	for (size_t i = 0; i < WORDS; i++) {
		if (words[i] != word(vmem, pattern, i))
			return rocr_say("GPU %u: virtual memory: %s: word %zu is 0x%lx",
					vmem->index, what, i, words[i]);
	}
	return true;
}

static bool read_at(const struct rocr_vmem *vmem, enum slot slot, enum slot pattern,
		    const char *what)
{
	memset(vmem->staging, 0xee, SLOT_BYTES);
	return rocr_copy_out(&vmem->copier, vmem->staging, at(vmem, slot), SLOT_BYTES) &&
	       compare(vmem, vmem->staging, pattern, what);
}

static bool read_by_cpu(const struct rocr_vmem *vmem, enum slot pattern, const char *what)
{
	return compare(vmem, (const uint64_t *)(const void *)at(vmem, FIRST), pattern, what);
}

bool rocr_vmem_begin(struct rocr_vmem *vmem)
{
	vmem->generation++;
	return write_at(vmem, FIRST, FIRST) && write_at(vmem, GIVEN_BACK, GIVEN_BACK);
}

static bool use_new_piece(struct rocr_vmem *vmem)
{
	return map_given_back(vmem, NEW) && write_at(vmem, NEW, NEW) &&
	       read_at(vmem, NEW, NEW, "a new piece") && unmap(vmem, NEW);
}

bool rocr_vmem_verify(struct rocr_vmem *vmem)
{
	return read_at(vmem, FIRST, FIRST, "the first mapping") &&
	       read_by_cpu(vmem, FIRST, "the first mapping, for the CPU") &&
	       read_at(vmem, AGAIN, FIRST, "the second mapping") && write_at(vmem, AGAIN, AGAIN) &&
	       read_at(vmem, FIRST, AGAIN, "the first mapping of what the second has written") &&
	       read_by_cpu(vmem, AGAIN, "for the CPU, what the second mapping has written") &&
	       read_at(vmem, GIVEN_BACK, GIVEN_BACK, "a piece without a handle") &&
	       use_new_piece(vmem);
}

bool rocr_vmem_close(struct rocr_vmem *vmem)
{
	bool good = unmap(vmem, FIRST) && unmap(vmem, AGAIN) && unmap(vmem, GIVEN_BACK) &&
		    rocr_good(vmem->handle_release(vmem->first), "release a handle") &&
		    rocr_good(vmem->address_free(vmem->range, SLOTS * SLOT_BYTES), "free") &&
		    rocr_copier_close(&vmem->copier) &&
		    rocr_good(hsa_amd_memory_pool_free(vmem->staging), "free");

	free(vmem);
	return good;
}
