/* SPDX-License-Identifier: GPL-2.0-only */
/* The copy engine's strictness: a command buffer that is wrong is not carried
 * out, and is counted. */
#include <errno.h>
#include <string.h>

#include "accept.h"
#include "accept_cs.h"

/* Two buffers with known contents, and a copy between them that a test then spoils. */
struct scene {
	struct cs_gpu gpu;
	struct cs_bo from, to;
	uint32_t words[16];
	struct cs_job job;
};

#define SCENE_BYTES 8192u

static int scene_open(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	EXPECT(cs_open(0, &scene->gpu), 0);
	EXPECT(cs_alloc(&scene->gpu, AMDGPU_GEM_DOMAIN_GTT, SCENE_BYTES, &scene->from), 0);
	EXPECT(cs_alloc(&scene->gpu, AMDGPU_GEM_DOMAIN_VRAM, SCENE_BYTES, &scene->to), 0);
	memset(scene->from.cpu, 0x31, SCENE_BYTES);
	memset(scene->to.cpu, 0x42, SCENE_BYTES);
	cs_build_copy(scene->words, scene->from.address, scene->to.address, SCENE_BYTES);
	scene->job = (struct cs_job){
		.words = scene->words,
		.count = 8,
		.bos = { scene->from.handle, scene->to.handle },
		.bo_count = 2,
	};
	return 0;
}

/* Nothing of the copy has happened. Whether submission or fence complains is the device's choice:
 * violations are counted by the frame. */
static int scene_expect_nothing(struct scene *scene)
{
	(void)cs_run(&scene->gpu, &scene->job);
	for (unsigned int i = 0; i < SCENE_BYTES; i++)
		EXPECT(((unsigned char *)scene->to.cpu)[i], 0x42);
	return 0;
}

static int test_good(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	EXPECT(cs_run(&scene.gpu, &scene.job), 0);
	EXPECT(((unsigned char *)scene.to.cpu)[0], 0x31);
	EXPECT(((unsigned char *)scene.to.cpu)[SCENE_BYTES - 1], 0x31);
	return 0;
}

static int test_opcode(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.words[0] = 0x7f;
	return scene_expect_nothing(&scene);
}

static int test_sub_opcode(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.words[0] = 1 | 5 << 8;
	return scene_expect_nothing(&scene);
}

static int test_one_byte_too_many(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	/* The encoding of old engines: the count instead of count - 1. */
	scene.words[1] = SCENE_BYTES;
	(void)cs_run(&scene.gpu, &scene.job);
	return 0;
}

static int test_huge_count(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.words[1] = 0x00ffffff;
	(void)cs_run(&scene.gpu, &scene.job);
	return 0;
}

static int test_unmapped_source(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.words[4] += 0x100;
	return scene_expect_nothing(&scene);
}

static int test_unmapped_target(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.words[6] += 0x100;
	return scene_expect_nothing(&scene);
}

static int test_not_in_list(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.job.bo_count = 1;
	return scene_expect_nothing(&scene);
}

static int test_unpadded(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.job.count = 7;
	return scene_expect_nothing(&scene);
}

static int test_truncated(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	/* Seven NOPs, then a packet whose body lies beyond the end. */
	memset(scene.words, 0, sizeof(scene.words));
	scene.words[7] = 1;
	return scene_expect_nothing(&scene);
}

static int test_submission_errors(void)
{
	struct scene scene;

	EXPECT(scene_open(&scene), 0);
	scene.job.ring = 2;
	EXPECT(cs_run(&scene.gpu, &scene.job), -EINVAL);
	return 0;
}

static const struct accept_test tests[] = {
	{ "cs_good_copy_is_no_violation", test_good, false },
	{ "cs_unknown_opcode_is_noticed", test_opcode, true },
	{ "cs_unknown_sub_opcode_is_noticed", test_sub_opcode, true },
	{ "cs_one_byte_beyond_a_buffer_is_noticed", test_one_byte_too_many, true },
	{ "cs_count_beyond_the_limit_is_noticed", test_huge_count, true },
	{ "cs_unmapped_source_is_noticed", test_unmapped_source, true },
	{ "cs_unmapped_target_is_noticed", test_unmapped_target, true },
	{ "cs_buffer_missing_in_the_list_is_noticed", test_not_in_list, true },
	{ "cs_unpadded_command_buffer_is_noticed", test_unpadded, true },
	{ "cs_truncated_packet_is_noticed", test_truncated, true },
	{ "cs_ring_out_of_range_is_einval", test_submission_errors, false },
	{ 0 },
};

const struct accept_group accept_cs_group = { "cs", tests };
