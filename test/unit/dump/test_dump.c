// SPDX-License-Identifier: GPL-2.0-only
/* The dump of KFD processes, from the hooks down to the calls of the kernel: which processes are
 * paused, for how long, and the contents of the images. */
#include "dump/dump.h"
#include "dump_task.h"
#include "session/dump_session.h"

#include "wire.h"

/* Whether the state image existed when the process ran again. */
static bool seen_unpaused, seen_with_image;

static void look_at_image(const char *line)
{
	if (!strstr(line, ": unpaused process"))
		return;
	seen_unpaused = true;
	seen_with_image = unit_exists("amdgpu-kfd-5.img");
}

/* After the last of them the guard ends, and could not remove the image of a CRIU that is killed
 * then. */
TEST(the_image_of_a_failed_dump_goes_before_its_process_runs)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int fd = open_kfd_of(process);

	unit_criu()->printed = look_at_image;
	for (unsigned int with_finish = 0; with_finish < 2; with_finish++) {
		seen_unpaused = false;
		begin_dump(fd, 5);
		if (with_finish) {
			assert_int_equal(finish_dump(-1), 0);
			assert_false(unit_exists("amdgpu-kfd-5.img"));
		}
		end_dump(-1);
		assert_true(seen_unpaused);
		assert_false(seen_with_image);
	}
}

TEST(the_image_holds_what_the_kernel_said)
{
	struct fake_process *process = make_process();
	_cleanup_kfd_ CriuKfd *kfd = NULL;

	dump_process(process);
	assert_int_equal(image_read_kfd(5, &kfd), 0);
	assert_int_equal(kfd->pid, tracee);
	assert_int_equal(kfd->num_of_gpus, 2);
	assert_int_equal(kfd->num_of_cpus, 2);
	assert_int_equal(kfd->n_device_entries, 4);
	/* In the order of sysfs. */
	assert_int_equal(kfd->device_entries[0]->gpu_id, GPU_B);
	assert_int_equal(kfd->device_entries[0]->drm_render_minor, 129);
	assert_int_equal(kfd->device_entries[1]->gpu_id, 0);
	/* The id that the process knows, and the id of the machine. */
	assert_int_equal(kfd->device_entries[2]->gpu_id, 0xbeef);
	assert_int_equal(kfd->device_entries[2]->actual_gpu_id, GPU_A);
	assert_int_equal(kfd->device_entries[2]->drm_render_minor, 128);
	assert_int_equal(kfd->device_entries[3]->gpu_id, 0);
	assert_int_equal(kfd->num_of_bos, 2);
	assert_int_equal(kfd->bo_entries[0]->addr, 0x1000);
	assert_int_equal(kfd->bo_entries[0]->offset, 3ULL << 62 | (uint64_t)GPU_A << 46);
	assert_int_equal(kfd->bo_entries[0]->gpu_id, 0xbeef);
	assert_int_equal(kfd->bo_entries[1]->size, 0x123000);
	assert_int_equal(kfd->bo_entries[1]->alloc_flags, KFD_BO_USERPTR | 1u << 31);
	assert_int_equal(kfd->bo_entries[1]->handle, 0xffffffff);
	assert_int_equal(kfd->num_of_objects, 3);
	assert_int_equal(kfd->priv_data.len, private_size(process));
	assert_int_equal(kfd->priv_data.data[kfd->priv_data.len - 1], 0x5a);
	assert_int_equal(kfd->num_of_mappings, 0);
}

/* The fields that other programs require, by number. */
TEST(other_programs_can_read_the_image)
{
	struct fake_process *process = make_process();
	const uint8_t *at = NULL;
	uint64_t value = 0;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;

	dump_process(process);
	bytes = unit_read("amdgpu-kfd-5.img", &size);
	assert_true(size > 8);
	assert_true(wire_has_up_to(bytes + 8, size - 8, 10));
	for (size_t i = 0; i < 4; i++) {
		assert_true(wire_find(bytes + 8, size - 8, 4, i, &value, &at));
		assert_true(wire_has_up_to(at, value, 31));
	}
	for (size_t i = 0; i < 2; i++) {
		assert_true(wire_find(bytes + 8, size - 8, 6, i, &value, &at));
		assert_true(wire_has_up_to(at, value, 6));
	}
}

TEST(every_gpu_has_a_pages_file_also_without_contents)
{
	struct fake_process *process = make_process();
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;

	dump_process(process);
	bytes = unit_read("amdgpu-pages-5-beef.img", &size);
	assert_int_equal(size, 8);
	assert_memory_equal(bytes, "\0\0\0\0\0\0\0", 8);
	assert_true(unit_exists("amdgpu-pages-5-dfd4.img"));
}

/* CRIU 4.0 to 4.2 call PAUSE_DEVICES before each try to seize a task. */
TEST(a_task_that_criu_names_twice_is_listed_once)
{
	struct dump_session session = { 0 };

	assert_int_equal(dump_add_task(&session, 42), 0);
	assert_int_equal(dump_add_task(&session, 43), 0);
	assert_int_equal(dump_add_task(&session, 42), 0);
	assert_int_equal(session.tasks.count, 2);
	pid_list_done(&session.tasks);
}

/* Fills a BO with words that count up from its address. */
static void fill_bo(const struct kfd_bo_bucket *bo)
{
	_cleanup_free_ uint64_t *words = malloc(bo->size);

	assert_non_null(words);
	for (size_t i = 0; i < bo->size / sizeof(*words); i++)
		words[i] = bo->addr + i;
	unit_write(strrchr(unit_path("bo-%llx", (unsigned long long)bo->addr), '/') + 1, words,
		   bo->size);
}

TEST(contents_are_saved_by_gpu_in_the_order_of_bos)
{
	struct fake_process *process = make_process();
	const uint64_t *words;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;

	fill_bo(add_bo(process, GPU_B, KFD_BO_VRAM, 0x800000, 0x3000, 0x100000000));
	fill_bo(add_bo(process, 0xbeef, KFD_BO_GTT, 0x900000, 0x1000, 0x100000000));
	fill_bo(add_bo(process, GPU_B, KFD_BO_GTT, 0xa00000, 0x2000, 0x100003000));
	dump_process(process);
	bytes = unit_read("amdgpu-pages-5-dfd4.img", &size);
	words = (const void *)bytes;
	assert_int_equal(size, 8 + 0x5000);
	assert_int_equal(words[0], 0x5000);
	assert_int_equal(words[1], 0x800000);
	assert_int_equal(words[1 + 0x3000 / 8 - 1], 0x800000 + 0x3000 / 8 - 1);
	assert_int_equal(words[1 + 0x3000 / 8], 0xa00000);
	assert_int_equal(words[1 + 0x5000 / 8 - 1], 0xa00000 + 0x2000 / 8 - 1);
	free(bytes);
	bytes = unit_read("amdgpu-pages-5-beef.img", &size);
	words = (const void *)bytes;
	assert_int_equal(size, 8 + 0x1000);
	assert_int_equal(words[1], 0x900000);
}

/* Thousands of BOs exceed most limits. Their descriptors have high numbers, and no child inherits
 * them. */
TEST(descriptors_of_many_bos_find_room_and_are_closed)
{
	struct fake_process *process = make_process();
	struct rlimit before, after;
	_cleanup_close_ int fd = open_kfd_of(process);
	size_t open_before, open_after;

	for (uint64_t i = 0; i < 1500; i++)
		add_bo(process, GPU_B, KFD_BO_VRAM, (i + 1) << 20, 0x1000, 0x100000000 + (i << 12));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, before.rlim_max }), 0);
	start_dump();
	open_before = unit_count_fds();
	assert_int_equal(dump_file(fd, 5), 0);
	/* The additional descriptors: the file of the paused process, its guard, and the eight
	 * watched GPUs. */
	open_after = unit_count_fds();
	end_dump(0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(open_after, open_before + 2 + 8);
	assert_int_equal(after.rlim_cur, 1024);
	assert_in_range(gpu.lowest_dmabuf, 512, INT32_MAX - 1);
	assert_int_equal(gpu.inherited_dmabufs, 0);
}

TEST(a_process_that_sees_no_gpu_is_saved_as_a_plain_open)
{
	struct fake_process *process = add_process(tracee);
	_cleanup_kfd_ CriuKfd *kfd = NULL;

	dump_process(process);
	assert_int_equal(process->paused, 0);
	assert_int_equal(image_read_kfd(5, &kfd), 0);
	assert_int_equal(kfd->num_of_gpus, 0);
}

TEST(images_of_an_older_dump_go_first)
{
	struct fake_process *process = make_process();

	unit_print("amdgpu-kfd-9.img", "old");
	unit_print("amdgpu-renderD-8.img", "old");
	dump_process(process);
	assert_false(unit_exists("amdgpu-kfd-9.img"));
	assert_false(unit_exists("amdgpu-renderD-8.img"));
	assert_true(unit_exists("amdgpu-kfd-5.img"));
}

/* The next dump removes them, because it needs their room. Contents of another process that this
 * dump has saved stay. */
TEST(contents_of_a_failed_dump_go_at_the_next_one)
{
	struct fake_process *process = make_process(), *other = move_to_other_task(make_process());
	_cleanup_close_ int fd = open_kfd_of(process), other_fd = open_kfd_of(other);

	begin_dump(fd, 5);
	end_dump(-1);
	begin_dump(fd, 6);
	assert_false(unit_exists("amdgpu-pages-5-beef.img"));
	assert_int_equal(dump_file(other_fd, 7), 0);
	end_dump(0);
	assert_true(unit_exists("amdgpu-pages-6-beef.img"));
	assert_true(unit_exists("amdgpu-pages-7-beef.img"));
}

/* A second pause could not be undone. */
TEST(a_process_that_a_killed_dump_has_left_paused_runs_again_afterwards)
{
	struct fake_process *process = make_process();
	_cleanup_close_ int fd = open_kfd_of(process);

	process->paused = 1;
	begin_dump(fd, 5);
	assert_logged("Warn  (amdgpu_plugin): ", "still paused");
	assert_int_equal(process->paused, 1);
	end_dump(0);
	assert_int_equal(process->paused, 0);
}
