/* SPDX-License-Identifier: GPL-2.0-only */
/* All rules by which a dump is refused. A rule has a name in enum dump_rule, one row of the
 * table in preflight.c, and one row of docs/refusals.md; a unit test compares the two.
 * CONTRIBUTING.md has the steps to add one. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_PREFLIGHT_H
#define AMDGPU_PLUGIN_PREFLIGHT_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/kfd_queue.h"
#include "session/dump_session.h"

/* In the order of docs/refusals.md. */
enum dump_rule {
	DUMP_IS_PRE_DUMP,
	DUMP_IS_INCREMENTAL,
	DUMP_IS_LAZY,
	DUMP_GPU_IS_IN_RESET,
	DUMP_CWSR_IS_OFF,
	DUMP_HAS_NO_KFD_FILE,
	DUMP_FILE_OF_OTHER_PROCESS,
	DUMP_WITHOUT_ANY_VM,
	DUMP_GPU_WITHOUT_VM,
	DUMP_HAS_NO_BO,
	DUMP_HAS_CONTEXTS,
	DUMP_UNKNOWN_LAYOUT,
	DUMP_EVENT_TYPE,
	DUMP_HIGH_PRECISION,
	DUMP_MEMORY_COPIED,
	DUMP_QUEUE_TYPE,
	DUMP_QUEUE_XCCS,
	DUMP_QUEUE_WITHOUT_AREA,
	DUMP_QUEUE_STACK,
	DUMP_QUEUE_PARTITION,
	DUMP_QUEUE_GENERATION,
	DUMP_QUEUE_REFUSED,
	DUMP_QUEUE_XCCS_REFUSED,
	DUMP_BO_KIND,
	DUMP_BO_FLAGS,
	DUMP_BO_UNLISTED,
	DUMP_BO_HALVED,
	DUMP_BO_GENERATION,
	DUMP_BO_SHARED,
	DUMP_BO_OUTSIDE,
	DUMP_BO_HELD,
	DUMP_HAS_DMABUF,
	DUMP_HAS_GEM_OBJECTS,
	DUMP_MAPPING_WITHOUT_BO,
	DUMP_MAPPING_INSIDE_BO,
	DUMP_MAPPING_AMBIGUOUS,
	DUMP_MAPPING_OF_IMPORT,
	DUMP_RULES,
};

enum preflight_group {
	PREFLIGHT_DUMP,
	PREFLIGHT_PROCESS,
	PREFLIGHT_QUEUE,
	PREFLIGHT_BO,
	PREFLIGHT_FILE,
};

/* What a rule says. @what completes a sentence that begins with the object's name. */
struct preflight_text {
	enum preflight_group group;
	const char *what;
	const char *remedy;
	/* AMDGPU_FORCE=1 turns the refusal into a warning. Otherwise no restore could use the
	 * image. */
	bool can_be_forced;
};

/* The Linux releases in which compute queues of some GPUs break a rule. The dump applies the rule
 * to what the kernel saves; only warnings before a dump depend on this. */
struct preflight_range {
	/* The first release, and the one behind the last. */
	unsigned int first, end;
	bool (*concerns)(const struct topology_node *gpu);
	/* Only queues with waves break the rule, and a dump waits for their end. */
	bool waits;
};

#define PREFLIGHT_RELEASE(major, minor, patch) (((major)*1000u + (minor)) * 1000u + (patch))

/* NULL if no releases are known in which queues break @rule. */
const struct preflight_range *preflight_get_range(enum dump_rule rule);

/* The text of rule @index in the order of docs/refusals.md; NULL behind the last. */
const struct preflight_text *preflight_get_text(size_t index);
/* Whether that rule shows before the dump, at least in part. */
bool preflight_shows_early(size_t index);

/* The object named by @format breaks @rule: logs the object, the rule and its remedy, and returns
 * -EOPNOTSUPP. With AMDGPU_FORCE=1 and a rule that can be forced, it logs a warning and returns 0.
 */
int preflight_refuse(const struct dump_session *session, enum dump_rule rule, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));

/* The same as a warning, where only the dump can tell whether the object breaks the rule. */
void preflight_warn_of(enum dump_rule rule, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The functions below log one error line for the first broken rule and return -EOPNOTSUPP. With
 * AMDGPU_FORCE=1 and a rule that can be forced, they log a warning and go on. */

/* Before the plugin pauses the first process: rules of the dump as a whole, and of the driver. */
int preflight_check_dump(const struct dump_session *session);
int preflight_check_driver(const struct dump_session *session);
/* For a process that runs on: the rules of its queues that show early. Each queue has its id, its
 * type and a GPU of the process. */
int preflight_check_queues_early(const struct dumped_process *process,
				 const struct kfd_priv_queue *queues, size_t num_queues);
/* Warns of each rule that every BO with contents, or every compute queue, of the GPU breaks. */
void preflight_warn_of_gpu(const struct dump_session *session, const struct topology_node *gpu);
/* Whether BOs of the GPU cannot be copied. */
bool preflight_lacks_copy_packets(const struct topology_node *gpu);
/* Queue @saved of @priv, which is the data of @process. Its GPU is NULL if the process does not see
 * it. */
struct kfd_queue preflight_queue(const struct dumped_process *process, const struct kfd_priv *priv,
				 const struct kfd_priv_queue *saved);
/* Rules of BOs, queues and events. All BOs have their GPUs in the topology. */
int preflight_check_state(const struct dumped_process *process);

#endif
