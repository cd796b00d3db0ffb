// SPDX-License-Identifier: GPL-2.0-only
/* Rules in tables, one for queues and one for buffers, and a line for each one that is broken. What
 * is wrong with a process's files and mappings is found where these are looked at. */
#include "dump/preflight.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/bo_index.h"
#include "image/image_dir.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"

#define CWSR_PARAMETER "/sys/module/amdgpu/parameters/cwsr_enable"

/* sizeof(struct v9_mqd), amdgpu's v9_structs.h: all GPUs of several XCCs are of that family. */
#define MQD_OF_ONE_XCC 2048u

/* gfx_target_version is major * 10000 + minor * 100 + stepping. */
#define GFX9  90000u
#define GFX11 110000u
#define GFX12 120000u

#define FORCE_HINT "AMDGPU_FORCE=1 dumps it all the same"

struct queue {
	const struct kfd_priv_queue *saved;
	const struct topology_node *gpu;
};

struct bo {
	const struct kfd_bo_bucket *saved;
	const struct topology_node *gpu;
};

/* What is wrong, after the name of the thing, and what helps. */
struct verdict {
	const char *reason;
	const char *remedy;
	/* No force makes an image of it that could be restored. */
	bool final;
};

static bool is_of_unknown_type(const struct queue *queue)
{
	return queue->saved->type != KFD_PRIV_QUEUE_COMPUTE &&
	       queue->saved->type != KFD_PRIV_QUEUE_SDMA &&
	       queue->saved->type != KFD_PRIV_QUEUE_SDMA_XGMI;
}

/* The kernel has said how much it saved: kernels that know of one XCC only save the first one's. */
static bool lacks_xccs(const struct queue *queue)
{
	return queue->saved->type == KFD_PRIV_QUEUE_COMPUTE && queue->gpu->num_xcc > 1 &&
	       queue->saved->mqd_size < (uint64_t)MQD_OF_ONE_XCC * queue->gpu->num_xcc;
}

static bool lacks_save_area(const struct queue *queue)
{
	return queue->saved->type == KFD_PRIV_QUEUE_COMPUTE && !queue->saved->cwsr_size;
}

/* Their queues are the firmware's scheduler's (MES), for which no kernel can rebuild them: it
 * refuses, or crashes. There is nothing to ask. */
static bool cannot_be_rebuilt(const struct queue *queue)
{
	return queue->gpu->gfx_target_version >= GFX11;
}

static const struct queue_rule {
	bool (*is_broken)(const struct queue *queue);
	struct verdict verdict;
} queue_rules[] = {
	{ is_of_unknown_type,
	  { "is of a type that this plugin does not know", "a newer plugin may", false } },
	{ lacks_xccs,
	  { "runs on several XCCs, not all of which this kernel has saved: it would hang after a restore",
	    "use a kernel that saves all (6.18), or a partition mode with one XCC a GPU (CPX)",
	    false } },
	{ lacks_save_area,
	  { "has no area to save its waves in, so that what runs would be lost",
	    "load amdgpu with cwsr_enable=1", false } },
	{ cannot_be_rebuilt,
	  { "is of gfx11 or newer, whose queues kernels cannot rebuild",
	    "have the process destroy its queues before the dump", false } },
};

static bool is_of_unknown_kind(const struct bo *bo)
{
	return !kfd_bo_has_one_kind(bo->saved->alloc_flags);
}

static bool has_unknown_flags(const struct bo *bo)
{
	return bo->saved->alloc_flags & ~(uint32_t)(KFD_BO_KINDS | KFD_BO_ATTRIBUTES);
}

static bool has_no_address(const struct bo *bo)
{
	return !bo->saved->addr && bo->saved->alloc_flags & KFD_BO_WITH_CONTENTS;
}

/* The kernel says half of what was asked for, and takes half of that when it restores it. */
static bool would_be_halved(const struct bo *bo)
{
	return bo->saved->alloc_flags & KFD_BO_AQL_QUEUE_MEM && bo->gpu->gfx_target_version &&
	       bo->gpu->gfx_target_version < GFX9;
}

/* SDMA 7 has another packet (see the packet unit). */
static bool is_out_of_reach(const struct bo *bo)
{
	return bo->saved->alloc_flags & KFD_BO_WITH_CONTENTS &&
	       bo->gpu->gfx_target_version >= GFX12;
}

static const struct bo_rule {
	bool (*is_broken)(const struct bo *bo);
	struct verdict verdict;
} bo_rules[] = {
	{ is_of_unknown_kind, { "is of an unknown kind", "a newer plugin may know it", true } },
	{ has_unknown_flags,
	  { "has flags that this plugin does not know", "a newer plugin may", false } },
	{ has_no_address,
	  { "is mapped by its render node (virtual memory API), which cannot be restored",
	    "turn that off (PYTORCH_HIP_ALLOC_CONF=expandable_segments:False)", true } },
	{ would_be_halved,
	  { "is memory of a queue on a GPU before gfx9, which kernels restore at half its size",
	    "run it on a GPU of gfx9 or newer", true } },
	{ is_out_of_reach,
	  { "is on a GPU of gfx12 or newer, whose copy engine this plugin cannot use",
	    "a newer plugin may", true } },
};

static const struct verdict unknown_layout = {
	"has a layout that this plugin does not know, so the plugin cannot check whether the kernel saved "
	"the queues whole",
	"a newer plugin may know it",
	false,
};

static const struct verdict is_shared = {
	"is shared, and each process would get a copy of its own",
	"turn sharing off (NCCL_P2P_DISABLE=1 and the like)",
	false,
};

static const struct verdict no_cwsr = {
	"cannot be paused, as the driver was told not to save running waves",
	"load amdgpu with cwsr_enable=1",
	false,
};

/* @thing with @more others like it broke the rule. */
static int judge(int kfd_id, bool force, const char *thing, size_t more,
		 const struct verdict *verdict)
{
	char others[40] = "";

	if (more)
		(void)snprintf(others, sizeof(others), " (like %zu more)", more);
	if (force && !verdict->final) {
		log_warn("kfd %d: %s%s %s; dumped all the same, as AMDGPU_FORCE says", kfd_id,
			 thing, others, verdict->reason);
		return 0;
	}
	return log_error(-EOPNOTSUPP, "kfd %d: %s%s %s; %s%s", kfd_id, thing, others,
			 verdict->reason, verdict->remedy, verdict->final ? "" : "; " FORCE_HINT);
}

int preflight_check_driver(int kfd_id, bool force)
{
	_cleanup_fclose_ FILE *file = fopen(CWSR_PARAMETER, "re");
	int enabled;

	/* A kernel that does not say has it on.
	 * NOLINTNEXTLINE(cert-err34-c): the kernel's number */
	if (!file || fscanf(file, "%d", &enabled) != 1 || enabled)
		return 0;
	return judge(kfd_id, force, "the process", 0, &no_cwsr);
}

static const struct {
	enum kfd_criu_op op;
	int error;
	const char *meaning;
} explanations[] = {
	{ KFD_PROCESS_INFO, -ENOTTY,
	  "this kernel cannot checkpoint GPU processes; Linux 5.18 and newer can" },
	{ KFD_PROCESS_INFO, -EBADF, "its process is not part of this dump" },
	{ KFD_PROCESS_INFO, -EACCES,
	  "the kernel wants CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN in the initial user namespace" },
	{ KFD_PROCESS_INFO, -EOPNOTSUPP,
	  "it has a queue that the kernel cannot save, as debuggers make them; detach them" },
	{ KFD_CHECKPOINT, -EOPNOTSUPP,
	  "this kernel cannot save queues of this kind of GPU; a newer one may, or (before gfx12) "
	  "the process destroys its queues before the dump" },
	{ KFD_CHECKPOINT, -EINVAL,
	  "its BOs or queues keep changing, or its GPU cannot save running waves (cwsr)" },
};

const char *preflight_explain(enum kfd_criu_op op, int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(explanations); i++) {
		if (explanations[i].op == op && explanations[i].error == error)
			return explanations[i].meaning;
	}
	return NULL;
}

/* Dumps in which a process's memory would be of another moment than its GPUs'. */
static const struct {
	/* 0: this dump is one; -ENOENT: it is not; other errors after a line. */
	int (*find)(void);
	const char *reason;
	const char *remedy;
} torn_dumps[] = {
	/* What a GPU writes to a process's memory makes no page dirty, so that CRIU would take it
	 * from the images of the dump before, as it was then. */
	{ image_dir_find_parent,
	  "is an incremental one, which lacks what a GPU has written to the process's memory since"
	  " the one before",
	  "leave out --prev-images-dir, and remove the link \"parent\" from the image directory" },
	{ host_is_lazy_dump,
	  "is a lazy one, and this CRIU ends the plugin, so that the queues run again, before the"
	  " process's memory has left",
	  "leave out --lazy-pages, or take a newer CRIU" },
};

int preflight_check_dump(bool force)
{
	for (size_t i = 0; i < ARRAY_SIZE(torn_dumps); i++) {
		int ret = torn_dumps[i].find();

		if (ret == -ENOENT)
			continue;
		if (ret < 0)
			return ret;
		if (!force)
			return log_error(-EOPNOTSUPP,
					 "dump: %s; %s; AMDGPU_FORCE=1 dumps it all the same",
					 torn_dumps[i].reason, torn_dumps[i].remedy);
		log_warn("dump: %s; dumped all the same, as AMDGPU_FORCE says",
			 torn_dumps[i].reason);
	}
	return 0;
}

static const struct topology_node *find_gpu(const struct preflight_subject *subject,
					    uint32_t user_gpu_id)
{
	return bo_index_find_gpu(subject->state, subject->topology, user_gpu_id);
}

static int check_queue_rule(const struct preflight_subject *subject,
			    const struct kfd_priv_queue *queues, size_t num_queues,
			    const struct queue_rule *rule)
{
	const struct kfd_priv_queue *first = NULL;
	size_t broken = 0;
	char name[64];

	for (size_t i = 0; i < num_queues; i++) {
		struct queue queue = { &queues[i], find_gpu(subject, queues[i].gpu_id) };

		if (!queue.gpu)
			return log_error(
				-EINVAL,
				"kfd %d: queue %u is of GPU 0x%04x, which is not the process's",
				subject->process->id, queues[i].id, queues[i].gpu_id);
		if (!rule->is_broken(&queue))
			continue;
		if (!broken++)
			first = &queues[i];
	}
	if (!broken)
		return 0;
	(void)snprintf(name, sizeof(name), "queue %u of type %u on GPU 0x%04x", first->id,
		       first->type, first->gpu_id);
	return judge(subject->process->id, subject->session->options->force, name, broken - 1,
		     &rule->verdict);
}

static int judge_layout(const struct preflight_subject *subject, const struct kfd_priv *priv)
{
	uint32_t version = 0;
	char name[160];

	memcpy(&version, priv->bytes, priv->size < sizeof(version) ? priv->size : sizeof(version));
	(void)snprintf(name, sizeof(name),
		       "the kernel's private data (version %u, %zu bytes for %u GPUs, %u BOs and %u"
		       " objects)",
		       version, priv->size, priv->num_devices, priv->num_bos, priv->num_objects);
	return judge(subject->process->id, subject->session->options->force, name, 0,
		     &unknown_layout);
}

static int check_queues(const struct preflight_subject *subject)
{
	const struct kfd_state *state = subject->state;
	struct kfd_priv priv = { state->priv_data, state->priv_data_size, state->num_devices,
				 state->num_bos, state->num_objects };
	struct kfd_priv_queue *queues;
	size_t num_queues;
	int ret;

	ret = kfd_priv_list_queues(&priv, &queues, &num_queues);
	if (ret == -EINVAL)
		return judge_layout(subject, &priv);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its queues", subject->process->id);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(queue_rules); i++)
		ret = check_queue_rule(subject, queues, num_queues, &queue_rules[i]);
	free(queues);
	return ret;
}

static int judge_bo(const struct preflight_subject *subject, uint32_t index, size_t more,
		    const struct verdict *verdict)
{
	const struct kfd_bo_bucket *bo = &subject->state->bos[index];
	char name[96];

	(void)snprintf(name, sizeof(name),
		       "BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", flags 0x%x,", index, bo->size,
		       bo->addr, bo->alloc_flags);
	return judge(subject->process->id, subject->session->options->force, name, more, verdict);
}

static int check_bo_rule(const struct preflight_subject *subject, const struct bo_rule *rule)
{
	uint32_t first = 0;
	size_t broken = 0;

	for (uint32_t i = 0; i < subject->state->num_bos; i++) {
		const struct kfd_bo_bucket *saved = &subject->state->bos[i];
		struct bo bo = { saved, find_gpu(subject, saved->gpu_id) };

		if (rule->is_broken(&bo) && !broken++)
			first = i;
	}
	return broken ? judge_bo(subject, first, broken - 1, &rule->verdict) : 0;
}

static bool is_elsewhere(const struct preflight_subject *subject,
			 const struct bo_index_entry *entry)
{
	for (size_t i = 0; i < subject->session->num_processes; i++) {
		const struct dumped_process *other = &subject->session->processes[i];

		if (other != subject->process &&
		    (bo_index_find_offset(other->bo_index, entry->render_minor, entry->offset) ||
		     bo_index_find_inode(other->bo_index, entry->inode)))
			return true;
	}
	return false;
}

/* A place that another BO before it has, too, of its GPU or of another. */
static bool is_again(const struct bo_index *index, const struct bo_index_entry *entry)
{
	return bo_index_find_offset(index, entry->render_minor, entry->offset) != entry ||
	       bo_index_find_inode(index, entry->inode) != entry;
}

/* With a process dumped before, or twice in this one. */
static int check_sharing(const struct preflight_subject *subject)
{
	const struct bo_index *index = subject->process->bo_index;
	const struct bo_index_entry *first = NULL;
	size_t shared = 0;

	for (size_t i = 0; i < index->count; i++) {
		const struct bo_index_entry *entry = &index->entries[i];

		if (!is_again(index, entry) && !is_elsewhere(subject, entry))
			continue;
		if (!shared++)
			first = entry;
	}
	return shared ? judge_bo(subject, first->index, shared - 1, &is_shared) : 0;
}

int preflight_check(const struct preflight_subject *subject)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(bo_rules); i++)
		ret = check_bo_rule(subject, &bo_rules[i]);
	if (!ret)
		ret = check_queues(subject);
	return ret < 0 ? ret : check_sharing(subject);
}
