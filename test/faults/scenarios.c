// SPDX-License-Identifier: GPL-2.0-only
/* The table of scenarios. The first is the smallest, which the short selection uses. */
#include "scenarios.h"

#include <string.h>

#define FEW  "1x4K,1x8K:G,1x4K:U,1x8K:D,1x4K:M,events=1"
#define MORE "2x64K,3x12K:G,1x4K:U,1x8K:D,1x4K:M,events=2"

const char *const phase_names[] = { "dump", "restore" };

const struct scenario scenarios[] = {
	{ .name = "small", .workload = FEW },
	{ .name = "oldest-criu", .workload = MORE, .criu = "3.17.1" },
	{ .name = "criu-4.1.1", .workload = FEW, .criu = "4.1.1" },
	{ .name = "by-the-task",
	  .workload = MORE,
	  .environment = { [RESTORE] = "AMDGPU_PARALLEL_RESTORE=0" } },
	{ .name = "two-gpus", .workload = "gpus=2," MORE, .machine = { "eight", "eight-other" } },
	{ .name = "slots",
	  .workload = "1x4K,1x9M,3x1500K,5x300K:G",
	  .environment = { [DUMP] = "KFD_MAX_BUFFER_SIZE=2M" } },
	{ .name = "zeros", .workload = "3x1500K,30x64K,zero=60" },
	{ .name = "another-machine",
	  .workload = MORE,
	  .machine = { "one", "one-other" },
	  .environment = { [DUMP] = "AMDGPU_CHECKSUM=0" } },
	{ .name = "stream",
	  .workload = "gpus=2," FEW,
	  .machine = { "eight", "eight" },
	  .streams = true },
	{ .name = "stream-3.17.1", .workload = FEW, .criu = "3.17.1", .streams = true },
	{ .name = "several-files", .workload = "kfds=3," FEW },
	{ .name = "tree", .workload = "tasks=2," FEW, .machine = { "one", "one-other" } },
	{ .name = "over-old-images", .workload = FEW, .over_old_images = true },
	{ .name = "old-libhsakmt", .workload = FEW, .private = true },
	{ .name = "queues", .workload = FEW ",1x64K:W,2x4K:Q" },
	{ .name = "told-map",
	  .workload = FEW,
	  .environment = { [RESTORE] = "AMDGPU_DEVICE_MAP=0x07cd=renderD128" } },
	{ .name = "more-gpus", .workload = FEW, .machine = { "one", "eight" } },
	{ .name = "sharing",
	  .workload = "tasks=2,shared=1,dmabufs=1,3x64K," FEW,
	  .machine = { "one", "one-other" } },
	{ .name = "ends-tasks",
	  .workload = "tasks=2," FEW,
	  .machine = { "one", "one-other" },
	  .ends_tasks = true },
	{ .name = "sharing-freed",
	  .workload = "tasks=2,owner=1,gone=1,shared=1,map=0,2x64K",
	  .machine = { "one", "one-other" } },
	{ .name = "share-handles",
	  .workload = "tasks=2,legacy=1,shared=1,1x8K,1x64K",
	  .environment = { [DUMP] = "AMDGPU_SIM_KNOBS=kernel=dkms",
			   [RESTORE] = "AMDGPU_SIM_KNOBS=kernel=dkms" } },
	{ .name = "vmem",
	  .workload = "gpus=2,1x8K:N,1x64K",
	  .machine = { "eight", "eight-other" },
	  .environment = { [DUMP] = "AMDGPU_SIM_KNOBS=kernel=7.3;hive_imports=1",
			   [RESTORE] = "AMDGPU_SIM_KNOBS=kernel=7.3;hive_imports=1" } },
	{ .name = "host-memory",
	  .workload = "tasks=2,owner=0,host=1,shared=1,1x8K:H",
	  .environment = { [DUMP] = "AMDGPU_SIM_KNOBS=kernel=7.3",
			   [RESTORE] = "AMDGPU_SIM_KNOBS=kernel=7.3" } },
	{ .name = "behind",
	  .workload = "tasks=2,2x64K," FEW,
	  .machine = { "one", "one-other" },
	  .environment = { [DUMP] = "AMDGPU_DUMP_MEMORY=1M" } },
	{ .name = "behind-3.17.1",
	  .workload = "tasks=2," FEW,
	  .criu = "3.17.1",
	  .environment = { [DUMP] = "AMDGPU_DUMP_MEMORY=1M" } },
	{ .name = "base", .workload = "1x3M," FEW, .on_base = true },
	{ .name = "drained",
	  .workload = FEW ",1x64K:W,2x4K:Q",
	  .environment = { [DUMP] = "AMDGPU_SIM_KNOBS=kernel=7.2;running_kernels=3",
			   [RESTORE] = "AMDGPU_SIM_KNOBS=kernel=7.2" } },
	{ .name = "ipc-handles", .workload = "2x64K:I," FEW, .machine = { "one", "one-other" } },
	{ .name = "too-few-gpus",
	  .workload = "gpus=2," FEW,
	  .machine = { "eight", "one" },
	  .fails = { [RESTORE] = true } },
};
const size_t num_scenarios = sizeof(scenarios) / sizeof(scenarios[0]);

const struct scenario *scenario_find(const char *name)
{
	for (size_t i = 0; i < num_scenarios; i++) {
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	}
	return NULL;
}
