// SPDX-License-Identifier: GPL-2.0-only
#include "differences.h"

#include <stddef.h>
#include <string.h>

#define NO_TRACER "the tracer would be another process, with a simulator of its own"
#define KEEPS_REFUSED \
	"the driver refuses the import, warns, and keeps the buffer and a reference to itself"

static const struct difference differences[] = {
	{ "ptrace_only_the_tracing_thread_with_capability_dumps", WORLD_NATIVE, NULL, false,
	  NO_TRACER },
	{ "ptrace_a_dead_dumper_leaves_the_target_stopped", WORLD_NATIVE, NULL, false, NO_TRACER },
	{ "criu_process_info_of_a_process_that_holds_nothing", WORLD_TRUE | WORLD_NATIVE, "6.1",
	  false, "Linux 6.1 oopses at an UNPAUSE of a process without a VM" },
	{ "share_creation_flags_can_be_read_but_not_whether_it_is_public", WORLD_TRUE, "6.1", true,
	  "Linux 6.1 wipes host memory only with RAS, which the emulated GPU has not" },
	{ "share_import_on_another_device_is_an_object_of_its_own", WORLD_TRUE, "7.2", false,
	  KEEPS_REFUSED },
	{ "share_import_on_another_device_is_an_object_of_its_own", WORLD_TRUE, "7.3", false,
	  KEEPS_REFUSED },
	{ "kfd_errors_are_ebadf_then_eacces_then_efault", WORLD_NATIVE, NULL, false,
	  "every process has every capability" },
	{ "memory_and_doorbell_mappings_have_device_flags", WORLD_NATIVE, NULL, false,
	  "a mapping of the GPU is one of a file in memory" },
};

const struct difference *difference_find(const char *rule, enum world world,
					 const struct kernel *kernel)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		const struct difference *row = &differences[i];

		if (strcmp(row->rule, rule) == 0 && row->worlds & world &&
		    (!row->kernel || strcmp(row->kernel, kernel->name) == 0))
			return row;
	}
	return NULL;
}
