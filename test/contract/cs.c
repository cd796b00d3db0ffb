/* SPDX-License-Identifier: GPL-2.0-only */
/* The copy engine's strictness: a command buffer that is wrong is not carried
 * out, and is counted. */
#include <errno.h>
#include <string.h>

#include "contract.h"
#include "cs_gpu.h"

/* Two buffers with known contents, and a copy between them that a test then spoils. */
struct scene {
	struct cs_gpu gpu;
	struct cs_bo from, to;
	uint32_t words[16];
	struct cs_job job;
};

#define SCENE_BYTES 8192u

static void scene_open(struct scene *scene)
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
}

/* Nothing of the copy has happened. Whether submission or fence complains is the device's choice:
 * violations are counted by the frame. */
static void scene_expect_nothing(struct scene *scene)
{
	(void)cs_run(&scene->gpu, &scene->job);
	for (unsigned int i = 0; i < SCENE_BYTES; i++)
		EXPECT(((unsigned char *)scene->to.cpu)[i], 0x42);
}

RULE(cs_good_copy_is_no_violation)
{
	struct scene scene;

	scene_open(&scene);
	EXPECT(cs_run(&scene.gpu, &scene.job), 0);
	EXPECT(((unsigned char *)scene.to.cpu)[0], 0x31);
	EXPECT(((unsigned char *)scene.to.cpu)[SCENE_BYTES - 1], 0x31);
}

SIMULATOR_RULE(cs_unknown_opcode_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	scene.words[0] = 0x7f;
	scene_expect_nothing(&scene);
}

SIMULATOR_RULE(cs_unknown_sub_opcode_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	scene.words[0] = 1 | 5 << 8;
	scene_expect_nothing(&scene);
}

SIMULATOR_RULE(cs_one_byte_beyond_a_buffer_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	/* The encoding of old engines: the count instead of count - 1. */
	scene.words[1] = SCENE_BYTES;
	(void)cs_run(&scene.gpu, &scene.job);
}

SIMULATOR_RULE(cs_count_beyond_the_limit_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	scene.words[1] = 0x00ffffff;
	(void)cs_run(&scene.gpu, &scene.job);
}

SIMULATOR_RULE(cs_unmapped_source_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	scene.words[4] += 0x100;
	scene_expect_nothing(&scene);
}

SIMULATOR_RULE(cs_unmapped_target_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	scene.words[6] += 0x100;
	scene_expect_nothing(&scene);
}

SIMULATOR_RULE(cs_buffer_missing_in_the_list_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	scene.job.bo_count = 1;
	scene_expect_nothing(&scene);
}

SIMULATOR_RULE(cs_unpadded_command_buffer_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	scene.job.count = 7;
	scene_expect_nothing(&scene);
}

SIMULATOR_RULE(cs_truncated_packet_is_noticed)
{
	struct scene scene;

	scene_open(&scene);
	/* Seven NOPs, then a packet whose body lies beyond the end. */
	memset(scene.words, 0, sizeof(scene.words));
	scene.words[7] = 1;
	scene_expect_nothing(&scene);
}

RULE(cs_ring_out_of_range_is_einval)
{
	struct scene scene;

	scene_open(&scene);
	scene.job.ring = 2;
	EXPECT(cs_run(&scene.gpu, &scene.job), -EINVAL);
}
