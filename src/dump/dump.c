// SPDX-License-Identifier: GPL-2.0-only
/* Dumps KFD state: pause, checkpoint, contents, image. */
#include "dump/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/kfd_jobs.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/bo_index.h"
#include "dump/kfd_files.h"
#include "dump/pause.h"
#include "dump/preflight.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "kernel/hsakmt_shm.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"

/* What is known while one KFD process is being dumped. */
struct dump {
	struct dump_session *session;
	struct dumped_process *process;
	struct kfd_state state;
	const struct topology *topology;
	struct proc_mapping *mappings;
	size_t num_mappings;
	struct kfd_jobs work;
};

static void finish_dump(struct dump *dump)
{
	kfd_jobs_done(&dump->work);
	kfd_state_done(&dump->state);
	free(dump->mappings);
}

/* The image of a file that has no state to save: it comes back as an open of /dev/kfd. */
static int dump_plain(int id, const char *reason)
{
	CriuKfd kfd = CRIU_KFD__INIT;

	log_info("kfd %d: %s", id, reason);
	return image_write_kfd(id, &kfd);
}

static int pause_it(struct dump *dump)
{
	const struct dumped_process *process = dump->process;
	int ret = pause_process(dump->session, dump->process);

	if (ret < 0)
		return ret;
	dump->state = pause_counts(process);
	log_info("kfd %d: paused process %d: %u GPUs, %u BOs, %u objects, %" PRIu64
		 " private bytes",
		 process->id, process->vpid, process->num_devices, process->num_bos,
		 process->num_objects, process->priv_data_size);
	return 0;
}

/* An open file that several have comes back in the one with the lowest pid, but GPU state only in
 * the process that it is of. */
static int check_opener(struct dump *dump)
{
	const struct dumped_process *process = dump->process;

	if (!process->reopen_vpid || process->reopen_vpid == process->vpid)
		return 0;
	return log_error(
		-EOPNOTSUPP,
		"kfd %d: process %d has the file of process %d too, and has the lower pid or"
		" has it alone: CRIU would restore it there; let it close /dev/kfd",
		process->id, process->reopen_vpid, process->vpid);
}

static int read_state(struct dump *dump)
{
	int ret = kfd_state_alloc(&dump->state);

	return ret < 0 ? ret : kfd_checkpoint(dump->process->fd, &dump->state, DUMP_LOWEST_FD);
}

static int checkpoint(struct dump *dump)
{
	int ret = read_state(dump);

	if (ret == -EINVAL) {
		ret = pause_refresh(dump->session, dump->process);
		if (ret < 0)
			return ret;
		kfd_state_done(&dump->state);
		dump->state = pause_counts(dump->process);
		ret = read_state(dump);
	}
	return ret < 0 ? pause_report_refusal(dump->process, KFD_CHECKPOINT, ret, "checkpoint") : 0;
}

/* The GPU, here, that the process knows as @user_gpu_id. */
static const struct topology_node *find_gpu(const struct dump *dump, uint32_t user_gpu_id)
{
	return bo_index_find_gpu(&dump->state, dump->topology, user_gpu_id);
}

static int find_render_minor(const struct dump *dump, uint32_t user_gpu_id, uint32_t *ret_minor)
{
	const struct topology_node *gpu = find_gpu(dump, user_gpu_id);

	if (!gpu)
		return log_error(-ENODEV, "kfd %d: GPU 0x%04x has no render node here",
				 dump->process->id, user_gpu_id);
	*ret_minor = gpu->drm_render_minor;
	return 0;
}

static int check_devices(struct dump *dump)
{
	for (uint32_t i = 0; i < dump->state.num_devices; i++) {
		const struct kfd_device_bucket *device = &dump->state.devices[i];

		if (!find_gpu(dump, device->user_gpu_id))
			return log_error(-ENODEV, "kfd %d: GPU 0x%04x is not in the topology",
					 dump->process->id, device->actual_gpu_id);
	}
	return 0;
}

/* What the kernel says of a BO must fit together. */
static int check_bo(const struct dump *dump, uint32_t index)
{
	const struct kfd_bo_bucket *bo = &dump->state.bos[index];
	int id = dump->process->id;

	if (!find_gpu(dump, bo->gpu_id))
		return log_error(-EINVAL,
				 "kfd %d: BO %u is of GPU 0x%04x, which is not the process's", id,
				 index, bo->gpu_id);
	if (bo->alloc_flags & KFD_BO_WITH_CONTENTS && bo->dmabuf_fd == KFD_INVALID_FD)
		return log_error(-EINVAL, "kfd %d: BO %u came without a dma-buf", id, index);
	return 0;
}

static int check_bos(struct dump *dump)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < dump->state.num_bos; i++)
		ret = check_bo(dump, i);
	return ret;
}

static int index_bos(struct dump *dump)
{
	struct dumped_process *process = dump->process;
	int ret;

	ret = bo_index_new(&dump->state, dump->topology, &process->bo_index);
	return ret < 0 ? log_error(ret, "kfd %d: cannot list its BOs", process->id) : 0;
}

/* Refuses what would not come back as it is. */
static int check_support(struct dump *dump)
{
	return preflight_check(&(struct preflight_subject){
		.session = dump->session,
		.process = dump->process,
		.state = &dump->state,
		.topology = dump->topology,
	});
}

/* The GPU whose render node is mapped; NULL: another kind of device. */
static const struct topology_node *mapped_gpu(const struct dump *dump,
					      const struct proc_mapping *mapping)
{
	uint32_t number;

	return render_node_is_device(mapping->device, &number)
		       ? topology_find_minor(dump->topology, number)
		       : NULL;
}

/* A restore tells the BO of a mapping by the address first, as programs map BOs where the GPU has
 * them. So a mapping elsewhere must not be where another GPU has one that fits. */
static bool is_mistakable(const struct dump *dump, const struct proc_mapping *mapping,
			  const struct kfd_bo_bucket *mapped)
{
	for (uint32_t i = 0; mapped->addr != mapping->start && i < dump->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &dump->state.bos[i];

		if (bo->addr == mapping->start && bo->alloc_flags & KFD_BO_WITH_CONTENTS &&
		    mapping->offset - bo->offset < bo->size)
			return true;
	}
	return false;
}

/* The kernel maps a BO only from its very start, so what mprotect() or munmap() has cut off from a
 * mapping's head could not be mapped again. */
static int check_mapping(const struct dump *dump, const struct proc_mapping *mapping)
{
	const struct topology_node *gpu = mapped_gpu(dump, mapping);
	const struct bo_index_entry *bo;

	if (!gpu)
		return 0;
	bo = bo_index_find_offset(dump->process->bo_index, gpu->drm_render_minor, mapping->offset);
	if (!bo)
		return log_error(-EOPNOTSUPP,
				 "kfd %d: mapping 0x%" PRIx64 "-0x%" PRIx64
				 " of renderD%u is of no BO of KFD",
				 dump->process->id, mapping->start, mapping->end,
				 gpu->drm_render_minor);
	if (mapping->offset != bo->offset)
		return log_error(-EOPNOTSUPP,
				 "kfd %d: mapping 0x%" PRIx64 "-0x%" PRIx64
				 " of renderD%u begins inside"
				 " BO 0x%" PRIx64 " and cannot be restored",
				 dump->process->id, mapping->start, mapping->end,
				 gpu->drm_render_minor, dump->state.bos[bo->index].addr);
	if (is_mistakable(dump, mapping, &dump->state.bos[bo->index]))
		return log_error(
			-EOPNOTSUPP,
			"kfd %d: mapping 0x%" PRIx64 "-0x%" PRIx64
			" of renderD%u is where another GPU has a BO, and would be restored"
			" as one of that",
			dump->process->id, mapping->start, mapping->end, gpu->drm_render_minor);
	return 0;
}

static int check_mappings(struct dump *dump)
{
	pid_t pid;
	int ret;

	ret = proc_find_tracee(dump->process->vpid, &pid);
	if (!ret)
		ret = proc_list_mappings(pid, &dump->mappings, &dump->num_mappings);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list the mappings of process %d",
				 dump->process->id, dump->process->vpid);
	for (size_t i = 0; !ret && i < dump->num_mappings; i++)
		ret = check_mapping(dump, &dump->mappings[i]);
	return ret;
}

/* How many mappings CRIU will ask about at restore. Those of other vendors' devices
 * are none of ours. */
static int count_mappings(const struct dump *dump, CriuKfd *kfd)
{
	struct stat device;

	if (fstat(dump->process->fd, &device) < 0)
		return -errno;
	kfd->has_num_of_mappings = true;
	for (size_t i = 0; i < dump->num_mappings; i++)
		kfd->num_of_mappings += dump->mappings[i].device == device.st_rdev ||
					mapped_gpu(dump, &dump->mappings[i]);
	return 0;
}

/* Room is asked for last: making the files has removed those of an older
 * dump, whose room counts. */
static int create_pages(struct dump *dump)
{
	uint64_t total = 0;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < dump->work.num_jobs; i++) {
		struct content_job *job = &dump->work.jobs[i];
		uint64_t size = content_size(job->bos, job->num_bos);

		total += size;
		job->streamed = image_is_streamed();
		ret = find_render_minor(dump, job->gpu_id, &job->render_minor);
		if (!ret)
			ret = image_create_pages(dump->process->id, job->gpu_id, size,
						 &job->image_fd);
	}
	return ret < 0 ? ret : image_check_room(total);
}

static int dump_contents(struct dump *dump)
{
	struct kfd_jobs *work = &dump->work;
	int ret;

	ret = kfd_jobs_init(&dump->state, work);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its BOs", dump->process->id);
	ret = create_pages(dump);
	if (!ret)
		ret = content_save(work->jobs, work->num_jobs, &dump->session->options->content);
	for (uint32_t i = 0; !ret && i < work->num_jobs; i++)
		ret = image_close_pages(dump->process->id, work->jobs[i].gpu_id,
					&work->jobs[i].image_fd);
	return ret;
}

/* The index of the GPU in KFD's list of devices, which is also that of its job. The number of
 * devices if the process does not see the GPU. */
static uint32_t find_device(const struct dump *dump, const struct topology_node *gpu)
{
	uint32_t i = 0;

	while (i < dump->state.num_devices &&
	       dump->state.devices[i].actual_gpu_id != gpu->actual_gpu_id)
		i++;
	return i;
}

static int save_gpu(const struct dump *dump, uint32_t device, KfdDeviceEntry *entry)
{
	entry->gpu_id = dump->state.devices[device].user_gpu_id;
	entry->has_contents_xxh3 = dump->work.jobs[device].has_checksums;
	return content_checksum(&dump->work.jobs[device], &entry->contents_xxh3);
}

static int save_node(const struct dump *dump, const struct topology_node *node, CriuKfd *kfd)
{
	uint32_t device = node->gpu_id ? find_device(dump, node) : 0;
	KfdDeviceEntry *entry;

	if (node->gpu_id && device == dump->state.num_devices)
		return 0;
	entry = device_entry_new(dump->topology, node);
	if (!entry)
		return -ENOMEM;
	kfd->device_entries[kfd->n_device_entries++] = entry;
	if (node->gpu_id) {
		kfd->num_of_gpus++;
		return save_gpu(dump, device, entry);
	}
	kfd->num_of_cpus++;
	return 0;
}

/* In the order in which sysfs lists the nodes, as CRIU's own plugin writes them. For each GPU of an
 * image in turn, that plugin takes the first GPU of sysfs that fits, and for each hive the first
 * hive that is large enough. In another order GPUs move that could stay, and a hive of three GPUs
 * takes the hive of four that the next hive of the image needs. */
static int save_devices(const struct dump *dump, CriuKfd *kfd)
{
	const struct topology *topology = dump->topology;
	int ret = 0;

	kfd->device_entries = calloc(topology->num_nodes + 1, sizeof(*kfd->device_entries));
	if (!kfd->device_entries)
		return -ENOMEM;
	for (uint32_t i = 0; !ret && i < TOPOLOGY_ENTRIES_MAX; i++) {
		const struct topology_node *node = topology_find_listed(topology, i);

		ret = node ? save_node(dump, node, kfd) : 0;
	}
	return ret;
}

static bool has_checksum(const struct dump *dump, uint32_t bo)
{
	for (uint32_t i = 0; dump->work.by_index[bo] && i < dump->work.num_jobs; i++) {
		if (dump->work.jobs[i].gpu_id == dump->state.bos[bo].gpu_id)
			return dump->work.jobs[i].has_checksums;
	}
	return false;
}

static int save_bos(const struct dump *dump, CriuKfd *kfd)
{
	kfd->num_of_bos = dump->state.num_bos;
	kfd->bo_entries = calloc((size_t)dump->state.num_bos + 1, sizeof(*kfd->bo_entries));
	if (!kfd->bo_entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &dump->state.bos[i];
		KfdBoEntry *entry = malloc(sizeof(*entry));

		if (!entry)
			return -ENOMEM;
		kfd_bo_entry__init(entry);
		entry->addr = bo->addr;
		entry->size = bo->size;
		entry->offset = bo->offset;
		entry->alloc_flags = bo->alloc_flags;
		entry->gpu_id = bo->gpu_id;
		/* Insisted on by newer readers; none of these BOs has a handle in a render node. */
		entry->has_handle = true;
		entry->handle = 0xffffffff;
		entry->has_xxh3 = has_checksum(dump, i);
		entry->xxh3 = entry->has_xxh3 ? dump->work.by_index[i]->checksum : 0;
		kfd->bo_entries[kfd->n_bo_entries++] = entry;
	}
	return 0;
}

static int save_private(const struct dump *dump, CriuKfd *kfd)
{
	kfd->priv_data.data = malloc(dump->state.priv_data_size + 1);
	if (!kfd->priv_data.data)
		return -ENOMEM;
	kfd->priv_data.len = dump->state.priv_data_size;
	memcpy(kfd->priv_data.data, dump->state.priv_data, kfd->priv_data.len);
	return 0;
}

static int save_shared_mem(CriuKfd *kfd)
{
	struct hsakmt_shm shared;
	int ret = hsakmt_shm_read(&shared);

	if (ret < 0)
		return ret;
	kfd->shared_mem_size = shared.size;
	kfd->shared_mem_magic = shared.magic;
	kfd->has_shared_mem_mode = kfd->has_semaphore_mode = true;
	kfd->shared_mem_mode = shared.mode;
	kfd->semaphore_mode = shared.semaphore_mode;
	return 0;
}

static int write_image(struct dump *dump)
{
	CriuKfd *kfd = malloc(sizeof(*kfd));
	int ret;

	if (!kfd)
		return log_error(-ENOMEM, "kfd %d: cannot write the image", dump->process->id);
	criu_kfd__init(kfd);
	kfd->pid = (uint32_t)dump->process->vpid;
	kfd->num_of_objects = dump->state.num_objects;
	ret = save_shared_mem(kfd);
	if (!ret)
		ret = count_mappings(dump, kfd);
	if (!ret)
		ret = save_devices(dump, kfd);
	if (!ret)
		ret = save_bos(dump, kfd);
	if (!ret)
		ret = save_private(dump, kfd);
	ret = ret < 0 ? log_error(ret, "kfd %d: cannot write the image", dump->process->id)
		      : image_write_kfd(dump->process->id, kfd);
	criu_kfd__free_unpacked(kfd, NULL);
	return ret;
}

/* The first BO of the GPU that can be mapped; the number of BOs if there is none. */
static uint32_t find_mappable_bo(const struct dump *dump, uint32_t gpu_id)
{
	uint32_t i = 0;

	while (i < dump->state.num_bos &&
	       (dump->state.bos[i].gpu_id != gpu_id ||
		!(dump->state.bos[i].alloc_flags & KFD_BO_WITH_CONTENTS)))
		i++;
	return i;
}

static int note_gpu(struct dump *dump, uint32_t user_gpu_id)
{
	struct dumped_process *process = dump->process;
	struct dumped_gpu gpu = { .user_gpu_id = user_gpu_id };
	uint32_t bo = find_mappable_bo(dump, user_gpu_id);
	int ret = find_render_minor(dump, user_gpu_id, &gpu.render_minor);

	if (ret < 0)
		return ret;
	gpu.has_bo = bo < dump->state.num_bos;
	gpu.bo_offset = gpu.has_bo ? dump->state.bos[bo].offset : 0;
	process->gpus[process->num_gpus++] = gpu;
	return 0;
}

static int note_gpus(struct dump *dump)
{
	struct dumped_process *process = dump->process;
	int ret = 0;

	process->gpus = calloc((size_t)dump->state.num_devices + 1, sizeof(*process->gpus));
	if (!process->gpus)
		return log_error(-ENOMEM, "kfd %d: cannot note its GPUs", process->id);
	for (uint32_t i = 0; !ret && i < dump->state.num_devices; i++)
		ret = note_gpu(dump, dump->state.devices[i].user_gpu_id);
	return ret;
}

static int dump_process(struct dump *dump)
{
	/* The image comes last: it is what makes the rest count. */
	static int (*const steps[])(struct dump * dump) = {
		pause_it,      check_opener,   checkpoint,    check_devices, check_bos,   index_bos,
		check_support, check_mappings, dump_contents, note_gpus,     write_image,
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(steps); i++)
		ret = steps[i](dump);
	return ret;
}

int dump_add_task(struct dump_session *session, pid_t pid)
{
	int ret = pid_list_add(&session->tasks, pid);

	if (!ret)
		return 0;
	session->has_gpu_files = true;
	return log_error(ret, "process %d: cannot note it", pid);
}

int dump_begin(struct dump_session *session)
{
	int ret;

	if (session->registered)
		return 0;
	session->has_gpu_files = true;
	ret = preflight_check_dump(session->options->force);
	if (ret < 0)
		return ret;
	ret = host_inventory_add(PLUGIN_NAME);
	if (ret < 0)
		return log_error(ret, "inventory: cannot note the plugin");
	ret = image_dir_remove_old();
	session->registered = !ret;
	return ret;
}

int dump_topology(struct dump_session *session, const struct topology **ret_topology)
{
	int ret = session->has_topology ? 0 : topology_read(TOPOLOGY_SYSFS, &session->topology);

	if (ret < 0)
		return log_error(ret, "topology: cannot read %s", TOPOLOGY_SYSFS);
	session->has_topology = true;
	*ret_topology = &session->topology;
	return 0;
}

int dump_check_mappings(struct dump_session *session)
{
	const struct topology *topology = NULL;
	int ret = dump_begin(session);

	if (ret < 0 || session->mappings_are_checked)
		return ret;
	ret = dump_topology(session, &topology);
	if (!ret)
		ret = kfd_files_check_mappings(&session->tasks, topology);
	session->mappings_are_checked = !ret;
	return ret;
}

int dump_process_has_file(const struct dumped_process *process, int fd)
{
	pid_t pid;
	int ret = proc_find_tracee(process->vpid, &pid);

	return ret < 0 ? ret : kfd_files_has(pid, fd);
}

int dump_kfd(struct dump_session *session, int fd, int id, struct dumped_process **ret_process)
{
	_cleanup_(finish_dump) struct dump dump = { .session = session };
	int ret;

	*ret_process = NULL;
	ret = dump_begin(session);
	if (!ret)
		ret = kfd_check_version();
	if (!ret)
		ret = dump_topology(session, &dump.topology);
	if (!ret && !session->tree_is_paused)
		ret = preflight_check_driver(id, session->options->force);
	if (!ret)
		ret = pause_tree(session, fd);
	if (!ret)
		ret = pause_lookup(session, fd, id, &dump.process);
	if (ret < 0)
		return ret;
	if (!dump.process)
		return dump_plain(id, "is one more file of a process that has an image");
	ret = dump_process(&dump);
	/* What PROCESS_INFO says where the process's cgroup or the machine has no GPU. */
	if (ret == -ENODEV && !dump.process->paused)
		return dump_plain(id, "its process sees no GPU");
	if (!ret)
		*ret_process = dump.process;
	return ret;
}

int dump_check_complete(const struct dump_session *session)
{
	return pause_check_all_seen(session);
}

static void remove_images(const struct dump_session *session)
{
	/* By name first: the directory may fail to be listed. */
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id != DUMP_NO_ID)
			image_remove_kfd(session->processes[i].id);
	}
	/* Also the images of files without state, and of an older dump. */
	if (session->has_gpu_files)
		(void)image_dir_remove_state();
}

int dump_release(struct dump_session *session, int result)
{
	/* The guard still stands: if CRIU is killed here, the guard removes the images. The queues
	 * wait no longer than the removal of some names takes. */
	if (result)
		remove_images(session);
	session->released = true;
	return pause_undo_all(session);
}

void dump_done(struct dump_session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		fd_close(&session->processes[i].fd);
		free(session->processes[i].gpus);
		bo_index_free(session->processes[i].bo_index);
	}
	free(session->processes);
	pid_list_done(&session->tasks);
	topology_done(&session->topology);
	*session = (struct dump_session){ .options = session->options };
}
