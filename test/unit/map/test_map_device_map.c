// SPDX-License-Identifier: GPL-2.0-only
/* The option device-map: names of GPUs, pairs that keep the rules, and pairs that break them. */
#include "host.h"

#include "map/map.h"
#include "pairs.h"
#include "synthetic.h"

/* Two hives of two GPUs at two CPU nodes: GPUs 0x100 to 0x103, minors 130 to 133, slots 07:00.0 to
 * 0a:00.0. */
static void make_machine(struct topology *topology)
{
	machine_of_hives(2, 2, 2, false, topology);
}

static struct topology saved, local;
static struct map_options options;
static struct gpu_map map;

static int begin(void **state)
{
	options = pair_options();
	make_machine(&saved);
	make_machine(&local);
	return unit_begin(state);
}

static int end(void **state)
{
	map_done(&map);
	topology_done(&saved);
	topology_done(&local);
	return unit_end(state);
}

#define TEST(name) TEST_WITH(name, begin, end)

static void decide(const char *text)
{
	print_message("case %s\n", text);
	map_done(&map);
	options.device_map = (char *)text;
	assert_int_equal(map_decide(&saved, &local, &options, &map), 0);
}

static void assert_reason(const char *text, const char *expected)
{
	char reason[PAIR_REASON_MAX];

	decide(text);
	pair_reason(&map, reason, sizeof(reason));
	assert_string_equal(reason, expected);
}

static void assert_mapped(const char *text, const char *expected)
{
	char mapping[128] = "";
	size_t used = 0;

	decide(text);
	for (size_t i = 0; i < saved.num_nodes; i++) {
		if (map.local[i])
			used += (size_t)snprintf(mapping + used, sizeof(mapping) - used, "%s%x",
						 used ? " " : "", map.local[i]->gpu_id);
	}
	assert_string_equal(mapping, expected);
}

static void assert_wrong(const char *text, const char *words, const char *problem)
{
	assert_mapped(text, "");
	assert_int_equal(map.outcome, MAP_REFUSED);
	assert_reason(text, words);
	assert_non_null(strstr(map.problem, problem));
}

TEST(without_a_device_map_gpus_stay_on_the_same_device)
{
	assert_mapped(NULL, "100 101 102 103");
	assert_mapped("", "100 101 102 103");
	assert_mapped(" , ", "100 101 102 103");
}

TEST(a_gpu_has_four_kinds_of_names)
{
	static const char *const names[] = {
		"0x100=0x101",
		"100=101",
		"0x100=renderD131",
		"renderD130=/dev/dri/renderD131",
		"0000:07:00.0=0000:08:00.0",
		"07:00.0=0x0101",
		"GPU-70000000=GPU-0000000070000001",
		"0x70000000=0x70000001",
		"1879048192=1879048193",
		"130=131",
		"256=257",
		"0x100 = 0x101",
		" 0x100=\t 257 ,",
		"0X100=130,,0x101=renderD130",
	};

	/* The links determine the other GPUs. The last row repeats a present GPU. */
	for (size_t i = 0; i < ARRAY_SIZE(names) - 1; i++)
		assert_mapped(names[i], "101 100 102 103");
	assert_wrong(names[ARRAY_SIZE(names) - 1], "device-map:twice", "130");
}

TEST(a_pair_may_move_a_whole_hive)
{
	assert_mapped("0x100=0x103", "103 102 100 101");
	assert_mapped("0x100=0x103,0x101=0x102,0x102=0x101,0x103=0x100", "103 102 101 100");
	assert_mapped("0x100=0x103;0x103=0x100\n0x100=0x103", "103 102 101 100");
}

TEST(a_syntax_error_is_refused_and_quoted)
{
	assert_wrong("0x100", "device-map:syntax", "\"0x100\" is not SAVED=PRESENT");
	assert_wrong("=0x100", "device-map:syntax", "SAVED=PRESENT");
	assert_wrong("0x100=", "device-map:syntax", "SAVED=PRESENT");
	assert_wrong("0x100 =  ", "device-map:syntax", "\"0x100=\" is not SAVED=PRESENT");
	assert_wrong("0x100 0x101", "device-map:syntax", "\"0x100\" is not SAVED=PRESENT");
	assert_wrong("0x100=card0", "device-map:syntax", "\"card0\"");
	assert_wrong("renderD=0x100", "device-map:syntax", "\"renderD\"");
	assert_wrong("0x100=renderD12x", "device-map:syntax", "\"renderD12x\"");
	assert_wrong("0x=0x100", "device-map:syntax", "\"0x\"");
	assert_wrong("0x100=1:2:3", "device-map:syntax", "\"1:2:3\"");
	assert_wrong("0x100=07:00.0.1", "device-map:syntax", "\"07:00.0.1\"");
	assert_wrong("0x100=07:20.0", "device-map:syntax", "\"07:20.0\"");
	assert_wrong("0x100=0x12345678901234567", "device-map:syntax", "\"0x12345678901234567\"");
	assert_wrong("0x100=18446744073709551616", "device-map:syntax", "\"18446744073709551616\"");
}

TEST(an_unknown_gpu_is_refused_with_a_list_of_gpus)
{
	assert_wrong("0x100=0x1234", "device-map:unknown", "no present GPU \"0x1234\"");
	assert_wrong("0x1234=0x100", "device-map:unknown", "no saved GPU \"0x1234\"");
	assert_wrong("0x100=GPU-1", "device-map:unknown", "GPU-1");
	assert_wrong("0x100=18446744073709551615", "device-map:unknown", "18446744073709551615");
	assert_wrong("0x100=0001:07:00.0", "device-map:unknown", "0001:07:00.0");
	options.device_map = (char *)"0x100=renderD128";
	assert_true(pair_explain(&saved, &local, &options) < 0);
	assert_logged("present GPUs: ", "0x0103 (0000:0a:00.0, renderD133)");
	assert_logged("Error (amdgpu_plugin): ", "no present GPU \"renderD128\"");
}

TEST(an_ambiguous_name_is_refused)
{
	machine_gpu(&saved, 0)->gpu_id = 0x133;
	assert_reason("133=0x101", "device-map:ambiguous");
	/* 0x257 and 257. */
	machine_gpu(&local, 2)->gpu_id = 0x257;
	assert_reason("0x133=257", "device-map:ambiguous");
	/* Partitions of one card share a unique_id on older kernels. */
	machine_gpu(&saved, 1)->unique_id = machine_gpu(&saved, 0)->unique_id;
	assert_reason("GPU-70000000=0x101", "device-map:ambiguous");
}

TEST(a_gpu_cannot_be_in_two_pairs)
{
	assert_wrong("0x100=0x100,0x100=0x101", "device-map:twice", "0x100");
	assert_wrong("0x100=0x100,0x101=0x100", "device-map:twice", "0x100");
}

TEST(a_pair_that_breaks_a_rule_is_refused_with_the_rule)
{
	assert_wrong("0x100=0x100,0x101=0x102", "device-map:links", "XGMI");
	machine_gpu(&saved, 2)->fw_version++;
	machine_gpu(&local, 3)->fw_version++;
	assert_reason("0x102=0x102", "device-map:fw_version");
	assert_non_null(strstr(map.problem, "93 saved, 92 present (KFD_FW_VER_CHECK=0 relaxes"));
	/* Without an XGMI link the rule for CPU nodes remains. */
	machine_lose_link(&saved, 0, 1);
	assert_reason("0x100=0x100,0x101=0x102", "device-map:numa");
	options.check_numa = false;
	machine_lose_link(&saved, 2, 3);
	decide("0x100=0x100,0x101=0x102");
	assert_int_equal(map.outcome, MAP_MAPPED);
	/* The rule for CPU nodes includes the CPU link. */
	options.check_numa = true;
	machine_gpu(&local, 0)->num_links = 0;
	assert_reason("0x100=0x100", "device-map:numa");
}

/* If 0x100 maps to 0x102, only 0x103 remains for 0x101, and its firmware is too old. */
TEST(pairs_that_prevent_a_mapping_are_named_as_the_cause)
{
	machine_gpu(&local, 3)->fw_version--;
	machine_gpu(&saved, 3)->fw_version--;
	machine_gpu(&saved, 2)->fw_version--;
	options.device_map = (char *)"0x100=0x102";
	assert_true(pair_explain(&saved, &local, &options) < 0);
	assert_logged("Error (amdgpu_plugin): ", "the device-map allows no other mapping");
}

TEST(a_moved_gpu_has_two_gpu_ids)
{
	machine_gpu(&saved, 0)->gpu_id = 0xaaaa;
	for (size_t i = 0; i < 2; i++) {
		decide(i ? "0xaaaa=0x101" : "0x100=0x101");
		assert_int_equal(map.local[machine_gpu(&saved, 0) - saved.nodes]->gpu_id, 0x101);
	}
}

TEST(random_text_is_refused_or_applied)
{
	static const char letters[] = "0123456789abcdefxGPU-:.=,; renderD/";

	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct dice dice = { seed };
		char text[200] = "";
		size_t length = dice_roll(&dice, sizeof(text) - 1);

		for (size_t i = 0; i < length; i++)
			text[i] = letters[dice_roll(&dice, sizeof(letters) - 1)];
		decide(text);
		assert_true(map.outcome != MAP_REFUSED || map.reason == REASON_DEVICE_MAP);
	}
}
