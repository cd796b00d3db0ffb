// SPDX-License-Identifier: GPL-2.0-only
/* Refuses dumps that would not come back right, before the plugin copies anything. The plugin asks
 * the kernel what it can do and what it has saved, not which version it is. */
#include "preflight/preflight.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image_dir.h"
#include "kernel/kfd_priv.h"
#include "kernel/kfd_queue.h"
#include "kernel/render_node.h"
#include "preflight/bo_index.h"
#include "preflight/queue_probe.h"

struct bo {
	const struct kfd_bo_bucket *saved;
	const struct topology_node *gpu;
	struct gem_answer *answer;
};

/* What the kernel has said last. The BOs of a GPU follow each other (criu_checkpoint_bos() in
 * kfd_chardev.c), so the plugin asks once a GPU. */
struct gem_answer {
	const struct topology_node *gpu;
	bool can_list;
};

static bool has_unknown_type(const struct kfd_queue *queue)
{
	return queue->saved->type != KFD_PRIV_QUEUE_COMPUTE &&
	       queue->saved->type != KFD_PRIV_QUEUE_SDMA &&
	       queue->saved->type != KFD_PRIV_QUEUE_SDMA_XGMI;
}

static bool lacks_save_area(const struct kfd_queue *queue)
{
	return queue->saved->type == KFD_PRIV_QUEUE_COMPUTE && !queue->saved->cwsr_size;
}

/* The firmware's scheduler (MES) runs these queues. Kernels refuse to rebuild them, or crash, so
 * the plugin cannot ask by trying. */
static bool cannot_be_rebuilt(const struct kfd_queue *queue)
{
	return queue->gpu->gfx_target_version >= TOPOLOGY_GFX11;
}

static bool has_unknown_kind(const struct bo *bo)
{
	return !kfd_bo_has_one_kind(bo->saved->alloc_flags);
}

static bool has_unknown_flags(const struct bo *bo)
{
	return bo->saved->alloc_flags & ~(uint32_t)(KFD_BO_KINDS | KFD_BO_ATTRIBUTES);
}

static bool can_list(const struct bo *bo)
{
	if (bo->answer->gpu != bo->gpu)
		*bo->answer = (struct gem_answer){
			.gpu = bo->gpu,
			.can_list = render_node_gem_can_list(bo->gpu->drm_render_minor),
		};
	return bo->answer->can_list;
}

static bool has_no_address(const struct bo *bo)
{
	return !bo->saved->addr && bo->saved->alloc_flags & KFD_BO_WITH_CONTENTS && !can_list(bo);
}

/* CHECKPOINT reports half the size that the process asked for, and RESTORE takes half of that. */
static bool would_be_halved(const struct bo *bo)
{
	return bo->saved->alloc_flags & KFD_BO_AQL_QUEUE_MEM && bo->gpu->gfx_target_version &&
	       bo->gpu->gfx_target_version < TOPOLOGY_GFX9;
}

/* SDMA 7 has another copy packet; src/content/sdma_packet.c lists the known ones. */
bool preflight_lacks_copy_packets(const struct topology_node *gpu)
{
	return gpu->gfx_target_version >= TOPOLOGY_GFX12;
}

static bool is_out_of_reach(const struct bo *bo)
{
	return bo->saved->alloc_flags & KFD_BO_WITH_CONTENTS &&
	       preflight_lacks_copy_packets(bo->gpu);
}

/* On gfx9, the area for waves may lie outside of BOs only with SVM. */
static bool may_lack_area(const struct topology_node *gpu)
{
	return gpu->gfx_target_version >= TOPOLOGY_GFX10 || kfd_has_svm();
}

static bool has_xccs(const struct topology_node *gpu)
{
	return gpu->num_xcc > 1;
}

static bool is_gfx9(const struct topology_node *gpu)
{
	return gpu->gfx_target_version >= TOPOLOGY_GFX9 && gpu->gfx_target_version < TOPOLOGY_GFX10;
}

#define RELEASE PREFLIGHT_RELEASE
#define RULE(name, group, what, remedy, can_be_forced, ...) \
	[name] = { .text = { group, what, remedy, can_be_forced }, ##__VA_ARGS__ }

/* A rule with a predicate is checked here. For the others, other code calls preflight_refuse()
 * where it finds their objects. */
static const struct rule {
	struct preflight_text text;
	/* The rule shows before the dump, at least in part: it needs no CHECKPOINT. */
	bool shows_early;
	/* Returns 0 if this dump is of the kind that the rule names, -ENOENT if it is not, and
	 * other errors are logged. */
	int (*dump_breaks)(void);
	bool (*queue_breaks)(const struct kfd_queue *queue);
	bool (*bo_breaks)(const struct bo *bo);
	/* It looks at the GPU only, and at the kind of the BO or the type of the queue. */
	bool needs_no_record;
	/* See preflight_get_range(). */
	struct preflight_range range;
} rules[] = {
	RULE(DUMP_IS_PRE_DUMP, PREFLIGHT_DUMP,
	     "the kernel does not track what a GPU writes, so memory cannot be saved in advance",
	     "leave out the pre-dump and make a full dump", false),
	/* A GPU's writes to memory of the process make no page dirty. CRIU would take such a page
	 * from the images of the dump before. */
	RULE(DUMP_IS_INCREMENTAL, PREFLIGHT_DUMP,
	     "it is incremental, so it lacks what a GPU has written to the process's memory since the dump before",
	     "leave out --prev-images-dir, and remove the link `parent` from the image directory",
	     true, .dump_breaks = image_dir_find_parent),
	RULE(DUMP_IS_LAZY, PREFLIGHT_DUMP,
	     "it is lazy, and this CRIU starts the queues before the process's memory has left",
	     "leave out --lazy-pages, or use CRIU 4.0 or newer", true,
	     .dump_breaks = host_find_lazy_dump),
	RULE(DUMP_GPU_IS_IN_RESET, PREFLIGHT_DUMP,
	     "a GPU is in reset, and the driver would stop queues that nothing can start",
	     "dump again, when the kernel's log says that the reset has ended", true),

	RULE(DUMP_CWSR_IS_OFF, PREFLIGHT_PROCESS,
	     "cannot be paused, because the driver does not save running waves",
	     "load amdgpu with cwsr_enable=1", true, .shows_early = true),
	RULE(DUMP_HAS_NO_KFD_FILE, PREFLIGHT_PROCESS,
	     "maps memory of a GPU, but does not have /dev/kfd open, so CRIU would not save that memory",
	     "have the process keep /dev/kfd open, or unmap the memory", false,
	     .shows_early = true),
	RULE(DUMP_FILE_OF_OTHER_PROCESS, PREFLIGHT_PROCESS,
	     "has the open /dev/kfd of another process, and CRIU would restore the file in this one: it has the lower pid, or the other has closed the file",
	     "have the process close the inherited descriptor, or call exec()", false,
	     .shows_early = true),
	RULE(DUMP_WITHOUT_ANY_VM, PREFLIGHT_PROCESS,
	     "has /dev/kfd open and no VM of a GPU, and this kernel would crash when the dump lets the process run on (Linux before 6.5)",
	     "have the process close /dev/kfd, or use Linux 6.5 or newer", false,
	     .shows_early = true),
	RULE(DUMP_GPU_WITHOUT_VM, PREFLIGHT_PROCESS,
	     "sees a GPU whose render node it has not opened, and the kernel may crash when it saves such a process",
	     "give the process the render nodes of all its GPUs, or hide the other GPUs with the device cgroup",
	     true, .shows_early = true),
	RULE(DUMP_HAS_NO_BO, PREFLIGHT_PROCESS,
	     "cannot be rebuilt by this kernel, because it has no BO of its own (AMD's out-of-tree driver, Linux before 6.12.58)",
	     "use another kernel", true, .shows_early = true),
	RULE(DUMP_HAS_CONTEXTS, PREFLIGHT_PROCESS,
	     "has several KFD contexts, and the kernel saves each of them as the same process",
	     "have the process use one KFD context", false, .shows_early = true),
	RULE(DUMP_UNKNOWN_LAYOUT, PREFLIGHT_PROCESS,
	     "has a layout that this plugin does not know, so the plugin cannot check whether the kernel saved the queues whole",
	     "a newer plugin may know it", true),

	RULE(DUMP_EVENT_TYPE, PREFLIGHT_PROCESS,
	     "has an event that RESTORE does not make: newer kernels (Linux 6.12.105) refuse the process, older ones drop the event",
	     "have the process destroy the event before the dump", true),

	RULE(DUMP_HIGH_PRECISION, PREFLIGHT_PROCESS,
	     "computes on gfx950 with HSA_HIGH_PRECISION_MODE, which the kernel does not save: it would compute with another precision after a restore",
	     "start the process without HSA_HIGH_PRECISION_MODE", true, .shows_early = true),
	RULE(DUMP_MEMORY_COPIED, PREFLIGHT_PROCESS,
	     "has memory of a memfd or an unlinked file that a GPU may write, and CRIU has copied it before the plugin could stop the queues",
	     "use CRIU 4.0 or newer", true),

	RULE(DUMP_QUEUE_TYPE, PREFLIGHT_QUEUE, "has a type that this plugin does not know",
	     "a newer plugin may know it", true, .queue_breaks = has_unknown_type,
	     .needs_no_record = true, .shows_early = true),
	RULE(DUMP_QUEUE_XCCS, PREFLIGHT_QUEUE,
	     "runs on several XCCs, and this kernel has not saved all of them: the queue would hang after a restore",
	     "use a kernel that saves and restores all XCCs (Linux 6.18; 7.2 and 7.3 without running waves), or with this kernel a partition mode with one XCC for each GPU (CPX)",
	     true, .queue_breaks = kfd_queue_lacks_xccs, .shows_early = true,
	     /* CHECKPOINT saves the first XCC: checkpoint_mqd_v9_4_3() in kfd_mqd_manager_v9.c is
	      * newer. */
	     .range = { 1, RELEASE(6, 18, 0), has_xccs, .waits = false }),
	RULE(DUMP_QUEUE_WITHOUT_AREA, PREFLIGHT_QUEUE,
	     "has no area for its waves, so running waves would be lost",
	     "load amdgpu with cwsr_enable=1", true, .queue_breaks = lacks_save_area),
	RULE(DUMP_QUEUE_STACK, PREFLIGHT_QUEUE,
	     "has running waves, and was saved without its control stack, so they would be lost (Linux 7.2 and 7.3, AMD's out-of-tree driver 7.1, compute queues on gfx9)",
	     "dump when its kernels end sooner than the option drain (AMDGPU_DRAIN) waits, or use another kernel (Linux 6.12; on several XCCs Linux 6.18 before 6.18.42)",
	     true, .queue_breaks = kfd_queue_loses_waves, .shows_early = true,
	     /* mqd_manager_init_v9() in kfd_mqd_manager_v9.c of 7.2.12 and 7.3.4 takes the size of
	      * the control stack of another node. */
	     .range = { RELEASE(7, 2, 0), RELEASE(7, 4, 0), is_gfx9, .waits = true }),
	RULE(DUMP_QUEUE_PARTITION, PREFLIGHT_QUEUE,
	     "is on a partition of a GPU (mode DPX, QPX or CPX), and the kernel may write over its own memory when it rebuilds the queue (Linux 6.18 to 7.2, AMD's out-of-tree drivers before 7.1)",
	     "use mode SPX, or Linux 6.12 and mode CPX; a kernel with the change \"use node XCC count for v9 CRIU control stack restore\" (Linux 7.3, AMD's out-of-tree driver 7.1) is safe, but the plugin cannot ask for it",
	     true, .queue_breaks = kfd_queue_may_overrun, .needs_no_record = true,
	     .shows_early = true),
	RULE(DUMP_QUEUE_GENERATION, PREFLIGHT_QUEUE,
	     "is on a GPU of gfx11 or newer, and no known kernel can rebuild such a queue",
	     "have the process destroy its queues before the dump", true,
	     .queue_breaks = cannot_be_rebuilt, .needs_no_record = true, .shows_early = true),
	RULE(DUMP_QUEUE_REFUSED, PREFLIGHT_QUEUE,
	     "cannot be rebuilt by this kernel, so the job would be lost (Linux 6.12.111 to 6.12.117, on gfx10, or if the area for waves is in an SVM range)",
	     "use another kernel, or start the job with HSA_USE_SVM=0 (likely to help on gfx9)",
	     true,
	     /* RESTORE needs the area for waves in a BO (kfd_queue_acquire_buffers() in
	      * kfd_queue.c, called by kfd_criu_restore_queue()). */
	     .range = { RELEASE(6, 12, 111), RELEASE(6, 12, 118), may_lack_area, .waits = false }),
	RULE(DUMP_QUEUE_XCCS_REFUSED, PREFLIGHT_QUEUE,
	     "cannot be rebuilt by this kernel on a GPU with several XCCs, so the job would be lost (Linux 6.18 from 6.18.42 on, queues with running waves)",
	     "dump when its kernels end sooner than the option drain (AMDGPU_DRAIN) waits, or use a kernel that restores the waves of all XCCs (Linux 6.18 before 6.18.42), or Linux 6.12 in mode CPX",
	     true,
	     /* RESTORE compares the size of the saved MQDs with that of one XCC, which waves rule
	      * out (see kfd_queue_repair()). */
	     .range = { RELEASE(6, 18, 42), RELEASE(6, 19, 0), has_xccs, .waits = true }),

	RULE(DUMP_BO_KIND, PREFLIGHT_BO, "has an unknown kind", "a newer plugin may know it", false,
	     .bo_breaks = has_unknown_kind),
	RULE(DUMP_BO_FLAGS, PREFLIGHT_BO, "has flags that this plugin does not know",
	     "a newer plugin may know them", true, .bo_breaks = has_unknown_flags),
	RULE(DUMP_BO_UNLISTED, PREFLIGHT_BO,
	     "is mapped by its render node (virtual memory API), and the kernel does not list such mappings",
	     "use Linux 6.18 or newer, or memory of another API: hipMalloc() or hsa_amd_memory_pool_allocate(); memory pools of HIP (hipMallocAsync()) and of frameworks: HIP_MEM_POOL_USE_VM=0, or an allocator that uses hipMalloc(); PyTorch: PYTORCH_HIP_ALLOC_CONF=expandable_segments:False; vLLM: no sleep mode; RCCL: NCCL_CUMEM_ENABLE=0",
	     false, .bo_breaks = has_no_address),
	RULE(DUMP_BO_HALVED, PREFLIGHT_BO,
	     "is queue memory on a GPU before gfx9, and the kernel would restore half of it",
	     "run the job on a GPU of gfx9 or newer", false, .bo_breaks = would_be_halved),
	RULE(DUMP_BO_GENERATION, PREFLIGHT_BO,
	     "is on a GPU of gfx12 or newer, and this plugin does not know the packets of its copy engine",
	     "a newer plugin may know them", false, .bo_breaks = is_out_of_reach,
	     .needs_no_record = true, .shows_early = true),
	RULE(DUMP_BO_SHARED, PREFLIGHT_BO,
	     "is shared in a way that cannot be restored yet, and each process would get a copy of its own",
	     "turn sharing off (NCCL_P2P_DISABLE=1 and similar, with CRIU 4.0 or newer and --ghost-limit 64M)",
	     true),
	RULE(DUMP_BO_OUTSIDE, PREFLIGHT_BO,
	     "is imported from a process outside the dump, and each process would get a copy of its own",
	     "dump all processes that share it together; if the process that made it has freed it, turn sharing off (NCCL_P2P_DISABLE=1 and similar, with CRIU 4.0 or newer and --ghost-limit 64M)",
	     true),
	RULE(DUMP_BO_HELD, PREFLIGHT_BO,
	     "is shared by a handle with a process outside the dump, and CRIU would kill the job, whose restore would fail as long as that process lives",
	     "dump all processes that share it together, or let the job run on (--leave-running)",
	     true),

	RULE(DUMP_HAS_DMABUF, PREFLIGHT_FILE,
	     "is a dma-buf of an AMD GPU, and not that of a BO of KFD in the dump",
	     "have the process close it, or dump all processes that share it together", false,
	     .shows_early = true),
	RULE(DUMP_HAS_GEM_OBJECTS, PREFLIGHT_FILE,
	     "has GEM objects that are no BOs of KFD in the dump (graphics, video, or memory of a process outside the dump), that are not in a file of a compute VM, or that may have mappings which the kernel does not list",
	     "have the process free them, or dump all processes that share them together, on Linux 6.18 or newer (HIP and HSA programs: without host memory by IPC, and without the virtual memory API)",
	     false),
	RULE(DUMP_MAPPING_WITHOUT_BO, PREFLIGHT_FILE, "maps no BO of KFD",
	     "have the process unmap it, or dump on Linux 6.18 or newer if it is host memory that another process shares by IPC",
	     false),
	RULE(DUMP_MAPPING_INSIDE_BO, PREFLIGHT_FILE,
	     "begins inside the BO, and the kernel maps a BO from its start only",
	     "have the process map BOs from their start", false),
	RULE(DUMP_MAPPING_AMBIGUOUS, PREFLIGHT_FILE,
	     "is at an address where another GPU has a BO with such an offset, and a restore would take that BO",
	     "have the process map BOs at their GPU address, as libhsakmt does", false),
	RULE(DUMP_MAPPING_OF_IMPORT, PREFLIGHT_FILE,
	     "maps the import of a BO on another PCI device, whose new offset no kernel tells",
	     "have the process unmap it; the CPU cannot access it anyway", false),
};
_Static_assert(ARRAY_SIZE(rules) == DUMP_RULES, "each rule has a row");

const struct preflight_text *preflight_get_text(size_t index)
{
	return index < ARRAY_SIZE(rules) ? &rules[index].text : NULL;
}

const struct preflight_range *preflight_get_range(enum dump_rule rule)
{
	return rules[rule].range.concerns ? &rules[rule].range : NULL;
}

bool preflight_shows_early(size_t index)
{
	return rules[index].shows_early || rules[index].text.group == PREFLIGHT_DUMP;
}

static int refuse_by_text(const struct dump_session *session, const struct preflight_text *text,
			  const char *object)
{
	if (!text->can_be_forced)
		return log_error(-EOPNOTSUPP, "%s %s; %s", object, text->what, text->remedy);
	if (!session->options->force)
		return log_error(-EOPNOTSUPP, "%s %s; %s; AMDGPU_FORCE=1 dumps it anyway", object,
				 text->what, text->remedy);
	log_warn("%s %s; dumped anyway, because AMDGPU_FORCE is set", object, text->what);
	return 0;
}

int preflight_refuse(const struct dump_session *session, enum dump_rule rule, const char *format,
		     ...)
{
	char object[256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(object, sizeof(object), format, arguments);
	va_end(arguments);
	return refuse_by_text(session, &rules[rule].text, object);
}

void preflight_warn_of(enum dump_rule rule, const char *format, ...)
{
	char object[256];
	const struct preflight_text *text;
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(object, sizeof(object), format, arguments);
	va_end(arguments);
	text = &rules[rule].text;
	log_warn("%s may be refused: it %s; %s", object, text->what, text->remedy);
}

int preflight_check_dump(const struct dump_session *session)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		int ret = rules[i].dump_breaks ? rules[i].dump_breaks() : -ENOENT;

		if (!ret)
			ret = refuse_by_text(session, &rules[i].text, "dump:");
		if (ret < 0 && ret != -ENOENT)
			return ret;
	}
	return 0;
}

int preflight_check_driver(const struct dump_session *session)
{
	return kfd_queue_driver_saves_waves()
		       ? 0
		       : preflight_refuse(session, DUMP_CWSR_IS_OFF, "a process");
}

/* "(like 2 more)" behind the name of the first of @count objects that break a rule. */
static const char *count_more(size_t count, char text[static 40])
{
	text[0] = '\0';
	if (count > 1)
		(void)snprintf(text, 40, " (like %zu more)", count - 1);
	return text;
}

struct kfd_queue preflight_queue(const struct dumped_process *process, const struct kfd_priv *priv,
				 const struct kfd_priv_queue *saved)
{
	const struct topology_node *gpu = bo_index_gpu_of(process, saved->gpu_id);

	return (struct kfd_queue){ .priv = priv,
				   .saved = saved,
				   .gpu = gpu,
				   .topology = &process->session->topology,
				   .kfd_minor = process->session->kfd_minor,
				   .saved_gpu = gpu };
}

static int check_queue_gpus(const struct dumped_process *process,
			    const struct kfd_priv_queue *queues, size_t num_queues)
{
	for (size_t i = 0; i < num_queues; i++) {
		if (!bo_index_gpu_of(process, queues[i].gpu_id))
			return log_error(
				-EINVAL,
				"%s: queue %u is on GPU 0x%04x, which the process does not see",
				process->name, queues[i].id, queues[i].gpu_id);
	}
	return 0;
}

static int check_queue_rule(const struct dumped_process *process,
			    const struct kfd_priv_queue *queues, size_t num_queues,
			    const struct rule *rule)
{
	const struct kfd_priv_queue *first = NULL;
	size_t broken = 0;
	char more[40], name[128];

	for (size_t i = 0; i < num_queues; i++) {
		const struct kfd_queue queue = preflight_queue(process, &process->priv, &queues[i]);

		if (rule->queue_breaks(&queue) && !broken++)
			first = &queues[i];
	}
	if (!broken)
		return 0;
	(void)snprintf(name, sizeof(name), "%s: queue %u of type %u on GPU 0x%04x%s", process->name,
		       first->id, first->type, first->gpu_id, count_more(broken, more));
	return refuse_by_text(process->session, &rule->text, name);
}

int preflight_check_queues_early(const struct dumped_process *process,
				 const struct kfd_priv_queue *queues, size_t num_queues)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		int broken = 0;

		if (rules[i].queue_breaks && rules[i].needs_no_record)
			broken = check_queue_rule(process, queues, num_queues, &rules[i]);
		ret = ret ? ret : broken;
	}
	return ret;
}

void preflight_warn_of_gpu(const struct dump_session *session, const struct topology_node *gpu)
{
	const struct kfd_priv_queue saved = { .type = KFD_PRIV_QUEUE_COMPUTE };
	const struct kfd_queue queue = { .saved = &saved,
					 .gpu = gpu,
					 .topology = &session->topology,
					 .kfd_minor = session->kfd_minor };
	const struct kfd_bo_bucket vram = { .alloc_flags = KFD_BO_VRAM };
	const struct bo bo = { .saved = &vram, .gpu = gpu };

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *rule = &rules[i];

		if (!rule->needs_no_record)
			continue;
		if (rule->queue_breaks && rule->queue_breaks(&queue))
			preflight_warn_of((enum dump_rule)i, "GPU 0x%04x: a queue", gpu->gpu_id);
		if (rule->bo_breaks && rule->bo_breaks(&bo))
			preflight_warn_of((enum dump_rule)i, "GPU 0x%04x: a BO", gpu->gpu_id);
	}
}

static int refuse_layout(const struct dumped_process *process)
{
	const struct kfd_priv *priv = &process->priv;
	uint32_t version = 0;

	memcpy(&version, priv->bytes, priv->size < sizeof(version) ? priv->size : sizeof(version));
	return preflight_refuse(
		process->session, DUMP_UNKNOWN_LAYOUT,
		"%s: the kernel's private data (version %u, %zu bytes for %u GPUs, %u BOs and %u objects)",
		process->name, version, priv->size, priv->num_devices, priv->num_bos,
		priv->num_objects);
}

static int check_events(const struct dumped_process *process)
{
	const struct kfd_layout *layout = &process->priv.layout;

	if (!layout->has_unsupported_event)
		return 0;
	return preflight_refuse(process->session, DUMP_EVENT_TYPE,
				"%s: event %u of type %u: the process", process->name,
				layout->unsupported_event.id, layout->unsupported_event.type);
}

/* If the plugin cannot ask (no memory, a GPU that CRIU cannot open), it does not refuse: most
 * kernels can rebuild the queue. */
static int check_rebuild(const struct dumped_process *process, const struct kfd_priv_queue *queues,
			 size_t num_queues)
{
	bool has_warned = false;

	for (size_t i = 0; i < num_queues; i++) {
		const struct kfd_priv_queue *saved = &queues[i];
		const struct kfd_queue queue = preflight_queue(process, &process->priv, saved);
		int ret;

		if (!queue_probe_can_ask(&queue))
			continue;
		ret = queue_probe_ask(process, &queue);
		if (ret == -EOPNOTSUPP)
			return preflight_refuse(process->session,
						queue.gpu->num_xcc > 1 ? DUMP_QUEUE_XCCS_REFUSED
								       : DUMP_QUEUE_REFUSED,
						"%s: queue %u of type %u on GPU 0x%04x",
						process->name, saved->id, saved->type,
						saved->gpu_id);
		if (ret < 0 && !has_warned)
			log_warn(
				"%s: cannot try whether this kernel can rebuild queue %u on GPU 0x%04x: %s; try a restore before you rely on the dump",
				process->name, saved->id, saved->gpu_id, strerror(-ret));
		has_warned |= ret < 0;
	}
	return 0;
}

static int check_queues(const struct dumped_process *process)
{
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t num_queues;
	int ret = kfd_priv_list_queues(&process->priv, &queues, &num_queues);

	if (ret == -EINVAL || ret == -ENOTUNIQ)
		return refuse_layout(process);
	if (ret < 0)
		return log_error(ret, "%s: cannot list its queues", process->name);
	ret = check_queue_gpus(process, queues, num_queues);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(rules); i++) {
		if (rules[i].queue_breaks)
			ret = check_queue_rule(process, queues, num_queues, &rules[i]);
	}
	return ret < 0 ? ret : check_rebuild(process, queues, num_queues);
}

/* BO @index is the first of @count BOs that break the rule. */
static int refuse_bo(const struct dumped_process *process, uint32_t index, size_t count,
		     const struct rule *rule)
{
	const struct kfd_bo_bucket *bo = &process->state.bos[index];
	char more[40], name[160];

	(void)snprintf(name, sizeof(name),
		       "%s: BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", flags 0x%x,%s",
		       process->name, index, bo->size, bo->addr, bo->alloc_flags,
		       count_more(count, more));
	return refuse_by_text(process->session, &rule->text, name);
}

static int check_bo_rule(const struct dumped_process *process, const struct rule *rule)
{
	struct gem_answer answer = { 0 };
	uint32_t first = 0;
	size_t broken = 0;

	for (uint32_t i = 0; i < process->state.num_bos; i++) {
		const struct kfd_bo_bucket *saved = &process->state.bos[i];
		struct bo bo = { saved, bo_index_gpu_of(process, saved->gpu_id), &answer };

		if (rule->bo_breaks(&bo) && !broken++)
			first = i;
	}
	return broken ? refuse_bo(process, first, broken, rule) : 0;
}

static int check_bos(const struct dumped_process *process)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(rules); i++) {
		if (rules[i].bo_breaks)
			ret = check_bo_rule(process, &rules[i]);
	}
	return ret;
}

int preflight_check_state(const struct dumped_process *process)
{
	int ret = check_bos(process);

	if (!ret)
		ret = check_queues(process);
	return ret < 0 ? ret : check_events(process);
}
