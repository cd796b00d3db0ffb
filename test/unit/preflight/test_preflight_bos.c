// SPDX-License-Identifier: GPL-2.0-only
/* Refusals of BOs: those that a restore would change, and those that several processes share. */
#include "image/image_validate.h"
#include "preflight_task.h"

TEST(a_buffer_of_gfx12_is_refused)
{
	struct fake_process *process = make_process();

	change_gpus("eight", "*", GFX("120001"));
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	assert_refused(process, "gfx12", "newer plugin");
	assert_final(process, "gfx12");
}

#define POOLS "memory pools of HIP (hipMallocAsync()) and of frameworks"

static const struct {
	uint64_t addr;
	uint32_t flags;
	const char *gpus, *words, *remedy;
	bool final;
} bad_bos[] = {
	{ 4096, 0, "", "unknown kind", "newer plugin", true },
	{ 4096, 3, "", "flags 0x3", "newer plugin", true },
	{ 4096, 0x20, "", "flags 0x20", "newer plugin", true },
	{ 0, KFD_BO_VRAM, "", "virtual memory", POOLS, true },
	{ 4096, KFD_BO_VRAM | 0x20, "", "flags 0x21", "newer plugin", false },
	{ 4096, KFD_BO_GTT | 1u << 22, "", "flags 0x400002", "newer plugin", false },
	{ 4096, KFD_BO_GTT | KFD_BO_AQL_QUEUE_MEM, GFX("80003"), "half", "gfx9", true },
};

TEST(bos_that_would_be_others_are_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_bos); i++) {
		struct fake_process *process;
		struct kfd_bo_bucket *bo;

		print_message("case %zu\n", i);
		change_gpus("eight", "*", bad_bos[i].gpus);
		process = make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });
		bo = add_bo(process, GPU_B, bad_bos[i].flags, bad_bos[i].addr, 4096, 1 << 20);
		assert_int_equal(bo - process->bos, 3);
		assert_refused(process, "BO 3 of 4096 bytes", bad_bos[i].remedy);
		assert_logged("Error (amdgpu_plugin): ", bad_bos[i].words);
		if (bad_bos[i].final)
			assert_final(process, bad_bos[i].words);
		else
			assert_force_dumps(process, bad_bos[i].words);
	}
}

/* The number of opens of a render node by a dump of so many BOs without an address. */
static unsigned int count_opens(unsigned int bos)
{
	struct fake_process *process =
		make_process_with((struct fake_queue){ GPU_B, SDMA, 0, 0, 512 });

	for (unsigned int i = 0; i < bos; i++)
		add_bo(process, GPU_B, KFD_BO_VRAM, 0, 4096, (uint64_t)(i + 1) << 20);
	kernel.render_opens = 0;
	assert_refused(process, "virtual memory", "Linux 6.18");
	return kernel.render_opens;
}

TEST(a_gpu_is_asked_once_whether_it_lists_mappings)
{
	assert_int_equal(count_opens(5), count_opens(1));
}

TEST(known_flags_are_dumped)
{
	struct fake_process *process = make_process();

	for (uint32_t bit = 23; bit < 32; bit++)
		add_bo(process, GPU_B, KFD_BO_VRAM | 1u << bit, (uint64_t)bit << 20, 0x1000,
		       0x100000000 + (bit << 12));
	dump_process(process);
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
}

/* The process exported a BO and imported it again for the same GPU. */
TEST(a_buffer_that_is_there_twice_is_refused)
{
	struct fake_process *process = make_process();
	_cleanup_kfd_ CriuKfd *kfd = NULL;

	add_bo(process, GPU_B, KFD_BO_VRAM, 0x900000, 0x1000, 0x200000);
	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	/* On another GPU the same offset belongs to another BO. */
	add_bo(process, 0xbeef, KFD_BO_VRAM, 0xa00000, 0x1000, 0x100000);
	assert_int_equal(process->num_bos, 5);
	add_bo(process, GPU_B, KFD_BO_GTT, 0xb00000, 0x1000, 0x300000);
	add_bo(process, GPU_B, KFD_BO_VRAM, 0xc00000, 0x1000, 0x100000);
	assert_refused(process, "several processes look like its owner", "NCCL_P2P_DISABLE");
	assert_force_dumps(process, "shared");
	/* A restore accepts the forced image. */
	assert_int_equal(image_read_kfd(5, &kfd), 0);
	assert_int_equal(image_validate_kfd(5, kfd), 0);
}

/* A restore would give each process a copy of its own. Both processes run on. */
TEST(a_buffer_of_two_processes_is_refused)
{
	struct fake_process *one = make_process(), *two = move_to_other_task(make_process());
	_cleanup_close_ int first = open_kfd_of(one), second = open_kfd_of(two);

	add_bo(one, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(two, GPU_B, KFD_BO_VRAM, 0x810000, 0x1000, 0x101000);
	add_bo(two, GPU_B, KFD_BO_VRAM, 0x820000, 0x1000, 0x100000);
	start_dump();
	assert_fails(dump_file(first, 5));
	assert_logged("Error (amdgpu_plugin): process ", ": BO 2", "shared");
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
	end_dump(-1);
	assert_int_equal(one->paused + two->paused, 0);
	assert_false(unit_exists("amdgpu-kfd-5.img"));
	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	begin_dump(first, 5);
	assert_int_equal(dump_file(second, 6), 0);
	assert_logged("Warn  (amdgpu_plugin): ", ": BO 3", "shared");
	end_dump(0);
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	assert_int_equal(one->paused + two->paused, 0);
}

/* BO 2 of the second process is shared with the first. */
static void assert_both_are_refused(const struct fake_process *one, const struct fake_process *two)
{
	_cleanup_close_ int first = open_kfd_of(one), second = open_kfd_of(two);

	start_dump();
	assert_fails(dump_file(first, 5));
	assert_logged("Error (amdgpu_plugin): process ", ": BO 2", "shared");
	end_dump(-1);
}

/* One dma-buf is of BOs on two GPUs, which both look like the owner's. In this test BOs at the same
 * address have the same memory file. */
TEST(a_buffer_of_two_gpus_is_refused)
{
	struct fake_process *one = make_process(), *two = move_to_other_task(make_process());

	add_bo(one, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(two, 0xbeef, KFD_BO_VRAM, 0x800000, 0x1000, 0x500000);
	assert_both_are_refused(one, two);
}

TEST(a_buffer_of_two_gpus_of_one_process_is_refused)
{
	struct fake_process *process = make_process();

	add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(process, 0xbeef, KFD_BO_VRAM, 0x800000, 0x1000, 0x500000);
	assert_refused(process, "BO 2", "NCCL_P2P_DISABLE");
	assert_true(unit_logged("several processes look like its owner", NULL));
}

/* Partitions of one PCI device (CPX) share the mmap offsets. Each has a dma-buf of its own. */
TEST(a_buffer_of_two_partitions_is_refused)
{
	struct fake_process *one = make_process(), *two = move_to_other_task(make_process());

	change_gpus("eight", "*", "s/^location_id .*/location_id 25344/");
	add_bo(one, GPU_B, KFD_BO_VRAM, 0x800000, 0x1000, 0x100000);
	add_bo(two, 0xbeef, KFD_BO_VRAM, 0x900000, 0x1000, 0x100000);
	assert_both_are_refused(one, two);
}
