// SPDX-License-Identifier: GPL-2.0-only
/* Dumps KFD state: pause, checkpoint, contents, image. Each KFD process is paused once, however many
 * files of /dev/kfd it has, all of them before anything of one is copied, and stays paused until CRIU has saved
 * everything else. */
#include "amdgpu_plugin_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_bos.h"
#include "amdgpu_plugin_device.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_image.h"
#include "amdgpu_plugin_kfd.h"
#include "amdgpu_plugin_proc.h"
#include "amdgpu_plugin_rescue.h"
#include "amdgpu_plugin_shared_mem.h"
#include "amdgpu_plugin_support.h"
#include "amdgpu_plugin_tree.h"
#include "amdgpu_plugin_util.h"

#define NAME_SIZE 32

/* What is known while one KFD process is being dumped. */
struct dump {
	struct session *session;
	struct dumped_process *process;
	struct kfd_state state;
	const struct topology *topology;
	struct proc_mapping *mappings;
	size_t num_mappings;
	struct bo_work work;
};

static void finish_dump(struct dump *dump)
{
	bo_work_done(&dump->work);
	kfd_state_done(&dump->state);
	free(dump->mappings);
}

static struct kfd_state counts_of(const struct dumped_process *process)
{
	return (struct kfd_state){
		.own_pid = process->own_pid,
		.num_devices = process->num_devices,
		.num_bos = process->num_bos,
		.num_objects = process->num_objects,
		.priv_data_size = process->priv_data_size,
	};
}

static int try_checkpoint(const struct dumped_process *process, int fd)
{
	_cleanup_(kfd_state_done) struct kfd_state state = counts_of(process);
	int ret = kfd_state_alloc(&state);

	return ret < 0 ? ret : kfd_checkpoint(fd, &state, DUMP_LOWEST_FD);
}

/* Whether @fd is one more file of a process that is paused already. CHECKPOINT works on a paused
 * process only, and changes nothing; a second pause could not be undone. So what is no clear answer is an error: 1, 0 or
 * -errno. */
static int is_paused(const struct session *session, int fd)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		int ret;

		if (!session->processes[i].paused)
			continue;
		ret = try_checkpoint(&session->processes[i], fd);
		if (!ret)
			return 1;
		/* It is not paused, not that process, or none of this dump. */
		if (ret != -EINVAL && ret != -EBADF && ret != -ESRCH && ret != -ENODEV)
			return ret;
	}
	return 0;
}

/* The image of a file that has no state to save: it comes back as an open of /dev/kfd. */
static int dump_plain(int id, const char *reason)
{
	CriuKfd kfd = CRIU_KFD__INIT;

	log_info("kfd %d: %s", id, reason);
	return image_write_kfd(id, &kfd);
}

static int add_process(struct session *session, int fd, int id)
{
	struct dumped_process *grown;
	int copy;

	grown = realloc(session->processes, (session->num_processes + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	session->processes = grown;
	copy = fd_dup_above(fd, DUMP_LOWEST_FD);
	if (copy < 0)
		return copy;
	grown[session->num_processes++] = (struct dumped_process){ .id = id, .fd = copy };
	return 0;
}

/* What a process goes by in the log. */
static const char *name_of(const struct dumped_process *process, char name[static NAME_SIZE])
{
	if (process->id != DUMP_NO_ID)
		(void)snprintf(name, NAME_SIZE, "kfd %d", process->id);
	else
		(void)snprintf(name, NAME_SIZE, "process %d", process->pid);
	return name;
}

/* One line for an operation of the driver's that has failed; @doing is what it was to do. */
static int refused(const struct dumped_process *process, enum kfd_criu_op op, int ret,
		   const char *doing)
{
	const char *meaning = support_explain(op, ret);
	char name[NAME_SIZE];

	if (meaning)
		return log_error(ret, "%s: cannot %s, %s", name_of(process, name), doing, meaning);
	return log_error(ret, "%s: cannot %s", name_of(process, name), doing);
}

/* A process may still be paused by a dump that was killed together with its guard. Another pause on top could not be
 * undone. */
static int undo_old_pause(const struct dumped_process *process)
{
	int ret = kfd_unpause(process->fd);
	char name[NAME_SIZE];

	if (!ret)
		log_warn("%s: was still paused by a dump that did not end", name_of(process, name));
	/* Not paused; not of this dump, which the pause is going to say. */
	if (!ret || ret == -EINVAL || ret == -EBADF)
		return 0;
	return log_error(ret, "%s: cannot undo an old pause", name_of(process, name));
}

/* Stops the queues. From here on every way out goes by dump_unpause(). */
static int stop_queues(struct dumped_process *process)
{
	struct kfd_state counts;
	int ret = kfd_pause(process->fd, &counts);

	if (ret < 0)
		return ret;
	process->paused = true;
	process->own_pid = counts.own_pid;
	process->num_devices = counts.num_devices;
	process->num_bos = counts.num_bos;
	process->num_objects = counts.num_objects;
	process->priv_data_size = counts.priv_data_size;
	return 0;
}

/* With a guard, who knows the process before it is paused. Nothing is said of a process that needs no pause (-ENODEV), or
 * is not part of the dump (-EBADF). */
static int guard_and_pause(struct session *session, struct dumped_process *process)
{
	char name[NAME_SIZE];
	int ret = undo_old_pause(process);

	if (ret < 0)
		return ret;
	ret = rescue_renew(session);
	if (ret < 0)
		return log_error(ret, "%s: cannot start a guard for the process",
				 name_of(process, name));
	ret = stop_queues(process);
	if (!ret || ret == -ENODEV || ret == -EBADF)
		return ret;
	return refused(process, KFD_PROCESS_INFO, ret, "pause the process");
}

static int pause_process(struct dump *dump)
{
	struct dumped_process *process = dump->process;
	int ret = process->paused ? 0 : guard_and_pause(dump->session, process);

	if (ret == -EBADF)
		return refused(process, KFD_PROCESS_INFO, ret, "pause the process");
	if (ret < 0)
		return ret;
	dump->state = counts_of(process);
	log_info("kfd %d: paused process %d: %u GPUs, %u BOs, %u objects, %" PRIu64 " private bytes",
		 process->id, process->own_pid, process->num_devices, process->num_bos,
		 process->num_objects, process->priv_data_size);
	return 0;
}

static int read_state(struct dump *dump)
{
	int ret = kfd_state_alloc(&dump->state);

	return ret < 0 ? ret : kfd_checkpoint(dump->process->fd, &dump->state, DUMP_LOWEST_FD);
}

/* The counts of a pause are no longer the current ones: a range of the process's was split or merged
 * meanwhile. A pause cannot be repeated on top of another. Nothing of this process has been saved yet, so
 * it does no harm that its queues run for a moment. */
static int pause_again(struct dump *dump)
{
	int ret;

	log_info("kfd %d: its counts changed, asking again", dump->process->id);
	if (dump->session->num_processes > 1)
		log_warn("kfd %d: its queues run for a moment more than those of others",
			 dump->process->id);
	kfd_state_done(&dump->state);
	ret = kfd_unpause(dump->process->fd);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot unpause the process", dump->process->id);
	dump->process->paused = false;
	return pause_process(dump);
}

static int checkpoint(struct dump *dump)
{
	int ret = read_state(dump);

	if (ret == -EINVAL) {
		ret = pause_again(dump);
		if (ret < 0)
			return ret;
		ret = read_state(dump);
	}
	return ret < 0 ? refused(dump->process, KFD_CHECKPOINT, ret, "checkpoint") : 0;
}

static const struct kfd_device_bucket *find_device(const struct dump *dump, uint32_t user_gpu_id)
{
	for (uint32_t i = 0; i < dump->state.num_devices; i++) {
		if (dump->state.devices[i].user_gpu_id == user_gpu_id)
			return &dump->state.devices[i];
	}
	return NULL;
}

/* The GPU, here, that the process knows as @user_gpu_id. */
static const struct topology_node *find_gpu(const struct dump *dump, uint32_t user_gpu_id)
{
	const struct kfd_device_bucket *device = find_device(dump, user_gpu_id);

	return device ? topology_find_actual(dump->topology, device->actual_gpu_id) : NULL;
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

	if (!find_device(dump, bo->gpu_id))
		return log_error(-EINVAL, "kfd %d: BO %u is of GPU 0x%04x, which is not the process's",
				 id, index, bo->gpu_id);
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

/* Refuses what would not come back as it is. */
static int check_support(struct dump *dump)
{
	return support_check(&(struct support_subject){
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

	return render_is_device(mapping->device, &number) ?
		       topology_find_minor(dump->topology, number) : NULL;
}

static const struct kfd_bo_bucket *find_mapped_bo(const struct dump *dump,
						  const struct topology_node *gpu,
						  const struct proc_mapping *mapping)
{
	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &dump->state.bos[i];

		if (!(bo->alloc_flags & KFD_BO_WITH_CONTENTS) || mapping->offset < bo->offset ||
		    mapping->offset - bo->offset >= bo->size)
			continue;
		if (find_gpu(dump, bo->gpu_id) == gpu)
			return bo;
	}
	return NULL;
}

/* The kernel maps a BO only from its very start, so what mprotect() or munmap() has cut off from a
 * mapping's head could not be mapped again. */
static int check_mapping(const struct dump *dump, const struct proc_mapping *mapping)
{
	const struct topology_node *gpu = mapped_gpu(dump, mapping);
	const struct kfd_bo_bucket *bo;

	if (!gpu)
		return 0;
	bo = find_mapped_bo(dump, gpu, mapping);
	if (!bo)
		return log_error(-EOPNOTSUPP,
				 "kfd %d: mapping 0x%" PRIx64 "-0x%" PRIx64 " of renderD%u is of no BO of KFD",
				 dump->process->id, mapping->start, mapping->end,
				 gpu->drm_render_minor);
	if (mapping->offset != bo->offset)
		return log_error(-EOPNOTSUPP,
				 "kfd %d: mapping 0x%" PRIx64 "-0x%" PRIx64 " of renderD%u begins inside"
				 " BO 0x%" PRIx64 " and cannot be restored",
				 dump->process->id, mapping->start, mapping->end,
				 gpu->drm_render_minor, bo->addr);
	return 0;
}

static int check_mappings(struct dump *dump)
{
	pid_t pid;
	int ret;

	ret = proc_find_tracee(dump->process->own_pid, &pid);
	if (!ret)
		ret = proc_list_mappings(pid, &dump->mappings, &dump->num_mappings);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list the mappings of process %d",
				 dump->process->id, dump->process->own_pid);
	for (size_t i = 0; !ret && i < dump->num_mappings; i++)
		ret = check_mapping(dump, &dump->mappings[i]);
	return ret;
}

/* How many mappings CRIU will ask about at restore. Those of other vendors' devices are none of ours. */
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

/* What an older dump has left there is gone when room is asked for. */
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
			ret = image_create_pages(dump->process->id, job->gpu_id, size, &job->image_fd);
	}
	return ret < 0 ? ret : image_check_room(total);
}

static int dump_contents(struct dump *dump)
{
	struct bo_work *work = &dump->work;
	int ret;

	ret = bo_work_init(&dump->state, work);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its BOs", dump->process->id);
	ret = create_pages(dump);
	if (!ret)
		ret = content_save(work->jobs, work->num_jobs, &dump->session->options.content);
	for (uint32_t i = 0; !ret && i < work->num_jobs; i++)
		ret = image_close_pages(dump->process->id, work->jobs[i].gpu_id,
					&work->jobs[i].image_fd);
	return ret;
}

/* CPU nodes first, then GPUs in KFD's order. */
static int save_devices(const struct dump *dump, CriuKfd *kfd)
{
	size_t room = dump->topology->num_nodes + dump->state.num_devices;

	kfd->device_entries = calloc(room + 1, sizeof(*kfd->device_entries));
	if (!kfd->device_entries)
		return -ENOMEM;
	for (size_t i = 0; i < dump->topology->num_nodes; i++) {
		const struct topology_node *node = &dump->topology->nodes[i];
		KfdDeviceEntry *entry;

		if (node->gpu_id)
			continue;
		entry = device_entry_new(dump->topology, node);
		if (!entry)
			return -ENOMEM;
		kfd->device_entries[kfd->n_device_entries++] = entry;
		kfd->num_of_cpus++;
	}
	for (uint32_t i = 0; i < dump->state.num_devices; i++) {
		uint32_t user_gpu_id = dump->state.devices[i].user_gpu_id;
		KfdDeviceEntry *entry;
		int ret;

		entry = device_entry_new(dump->topology, find_gpu(dump, user_gpu_id));
		if (!entry)
			return -ENOMEM;
		entry->gpu_id = user_gpu_id;
		entry->has_contents_xxh3 = dump->work.jobs[i].has_checksums;
		kfd->device_entries[kfd->n_device_entries++] = entry;
		kfd->num_of_gpus++;
		ret = content_checksum(&dump->work.jobs[i], &entry->contents_xxh3);
		if (ret < 0)
			return ret;
	}
	return 0;
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
	struct shared_mem shared;
	int ret = shared_mem_read(&shared);

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
	kfd->pid = (uint32_t)dump->process->own_pid;
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
	ret = ret < 0 ? log_error(ret, "kfd %d: cannot write the image", dump->process->id) :
			image_write_kfd(dump->process->id, kfd);
	criu_kfd__free_unpacked(kfd, NULL);
	return ret;
}

/* One BO of each GPU, by which the process's render nodes are told apart. */
static int note_probes(struct dump *dump)
{
	struct dumped_process *process = dump->process;

	process->probes = calloc((size_t)dump->state.num_devices + 1, sizeof(*process->probes));
	if (!process->probes)
		return log_error(-ENOMEM, "kfd %d: cannot note its BOs", process->id);
	for (uint32_t i = 0; i < dump->state.num_devices; i++) {
		uint32_t gpu_id = dump->state.devices[i].user_gpu_id;
		uint32_t bo = 0, minor = 0;
		int ret;

		while (bo < dump->state.num_bos &&
		       (dump->state.bos[bo].gpu_id != gpu_id ||
			!(dump->state.bos[bo].alloc_flags & KFD_BO_WITH_CONTENTS)))
			bo++;
		if (bo == dump->state.num_bos)
			continue;
		ret = find_render_minor(dump, gpu_id, &minor);
		if (ret < 0)
			return ret;
		process->probes[process->num_probes++] = (struct probe){
			.render_minor = minor,
			.offset = dump->state.bos[bo].offset,
		};
	}
	return render_note_process(dump->session, process);
}

static int dump_process(struct dump *dump)
{
	/* The image comes last: it is what makes the rest count. */
	static int (*const steps[])(struct dump *dump) = {
		pause_process,  checkpoint,    check_devices, check_bos,   check_support,
		check_mappings, dump_contents, note_probes,   write_image,
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(steps); i++)
		ret = steps[i](dump);
	return ret;
}

/* CRIU may never show the file of a process that needs no pause, or is not part of the dump. */
static int pause_file(struct session *session, const struct tree_file *file)
{
	struct dumped_process *process;
	int ret = add_process(session, file->fd, DUMP_NO_ID);

	if (ret < 0)
		return log_error(ret, "process %d: cannot keep its /dev/kfd", file->pid);
	process = &session->processes[session->num_processes - 1];
	process->pid = file->pid;
	ret = guard_and_pause(session, process);
	if (!ret) {
		log_info("process %d: its queues are stopped", file->pid);
		return 0;
	}
	cleanup_close(&process->fd);
	session->num_processes--;
	return ret == -ENODEV || ret == -EBADF ? 0 : ret;
}

/* Of all of them, before one is paused: from then on a paused process is taken for one of this dump's. */
static int undo_old_pauses(const struct tree_files *files)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++) {
		const struct tree_file *file = &files->list[i];

		ret = undo_old_pause(&(const struct dumped_process){
			.id = DUMP_NO_ID, .pid = file->pid, .fd = file->fd });
	}
	return ret;
}

/* Stops all KFD processes of the tree before anything of the first one is copied. When CRIU shows the first file, it has
 * stopped all tasks, and their shared memory is saved after them: so this is early enough, with every CRIU. */
static int pause_tree(struct session *session)
{
	_cleanup_(tree_files_done) struct tree_files files = { 0 };
	int ret;

	if (session->tree_is_paused)
		return 0;
	session->tree_is_paused = true;
	ret = tree_find_kfd(DUMP_LOWEST_FD, &files);
	if (ret < 0) {
		log_warn(
			"processes are paused one after the other, as their files cannot be found: %s",
			strerror(-ret));
		return 0;
	}
	ret = undo_old_pauses(&files);
	for (size_t i = 0; !ret && i < files.count; i++) {
		ret = is_paused(session, files.list[i].fd);
		if (ret < 0)
			return log_error(ret, "process %d: cannot tell whether it is paused",
					 files.list[i].pid);
		ret = ret ? 0 : pause_file(session, &files.list[i]);
	}
	return ret;
}

/* The process that was paused through this very file; NULL: none. */
static struct dumped_process *find_process(const struct session *session, int fd)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];

		if (process->id == DUMP_NO_ID && tree_is_same_file(process->fd, fd))
			return process;
	}
	return NULL;
}

/* The process of @fd as @ret_process; NULL: this is one more file of a process that has an image. */
static int meet_process(struct session *session, int fd, int id,
			struct dumped_process **ret_process)
{
	struct dumped_process *process = find_process(session, fd);
	int ret = 0;

	if (!process)
		ret = is_paused(session, fd);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot tell whether its process is paused", id);
	if (ret) {
		*ret_process = NULL;
		return 0;
	}
	if (!process) {
		ret = add_process(session, fd, id);
		process = &session->processes[session->num_processes - 1];
	}
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot keep its descriptor", id);
	process->id = id;
	*ret_process = process;
	return 0;
}

int dump_kfd(struct session *session, int fd, int id)
{
	_cleanup_(finish_dump) struct dump dump = { .session = session };
	_cleanup_close_ int own = -1;
	int ret;

	ret = session_note(session);
	if (ret < 0)
		return ret;
	ret = kfd_open(&own);
	if (ret < 0)
		return ret;
	ret = session_topology(session, &dump.topology);
	if (ret < 0)
		return ret;
	if (!session->tree_is_paused)
		ret = support_check_driver(id, session->options.force);
	if (!ret)
		ret = pause_tree(session);
	if (!ret)
		ret = meet_process(session, fd, id, &dump.process);
	if (ret < 0)
		return ret;
	if (!dump.process)
		return dump_plain(id, "is one more file of a process that has an image");
	ret = dump_process(&dump);
	/* What PROCESS_INFO says where the process's cgroup or the machine has no GPU. */
	if (ret == -ENODEV && !dump.process->paused)
		return dump_plain(id, "its process sees no GPU");
	return ret;
}

int dump_unpause(struct session *session)
{
	int ret = 0;

	for (size_t i = 0; i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];
		char name[NAME_SIZE];
		int failed;

		if (!process->paused)
			continue;
		failed = kfd_unpause(process->fd);
		process->paused = false;
		cleanup_close(&process->fd);
		process->fd = -1;
		if (failed < 0)
			ret = log_error(failed, "%s: cannot unpause process %d",
					name_of(process, name), process->own_pid);
		else
			log_info("%s: unpaused process %d", name_of(process, name),
				 process->own_pid);
	}
	rescue_end(session);
	return ret;
}

/* Those of files without state, and of a dump before this one, too. */
void dump_remove_images(struct session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		if (session->processes[i].id != DUMP_NO_ID)
			image_remove_kfd(session->processes[i].id);
	}
	if (session->involved)
		(void)image_remove_old();
}

void dump_done(struct session *session)
{
	for (size_t i = 0; i < session->num_processes; i++) {
		cleanup_close(&session->processes[i].fd);
		free(session->processes[i].probes);
		free(session->processes[i].places);
	}
	free(session->processes);
	session->processes = NULL;
	session->num_processes = 0;
	for (size_t i = 0; i < session->num_renders; i++)
		cleanup_close(&session->renders[i].fd);
	free(session->renders);
	session->renders = NULL;
	session->num_renders = 0;
}
