// SPDX-License-Identifier: GPL-2.0-only
/* The ioctl dispatcher of /dev/kfd with the driver's order of checks, and mmap(). kfd_*.c, event.c,
 * svm.c and criu.c have the ioctls. */
#include "process.h"

#define DIR_READ     1u /* the argument is copied back */
#define DIR_WRITE    2u /* the argument is read */
#define MAX_ARGUMENT 16384u

typedef SIM_KFD_HANDLER(handler_function);

struct ioctl {
	const char *name;
	handler_function *function;
	u32 size, flags;
};

/* kfd_chardev.c: kfd_ioctl_create_process() (Linux 7.3) */
static SIM_KFD_HANDLER(create_process)
{
	return process->is_context ? -EINVAL : SIM_KFD_NEW_CONTEXT;
}

#define R                                              DIR_READ
#define W                                              DIR_WRITE
#define ENTRY_AT(number, name, bytes, flags, function) [number] = { #name, function, bytes, flags }
#define ENTRY(name, bytes, flags, function) \
	ENTRY_AT(_IOC_NR(AMDKFD_IOC_##name), name, bytes, flags, function)

static const struct ioctl ioctls[KFD_COMMAND_END] = {
	ENTRY(GET_VERSION, 8, R, sim_kfd_get_version),
	ENTRY(CREATE_QUEUE, 96, R | W, sim_kfd_create_queue),
	ENTRY(DESTROY_QUEUE, 8, R | W, sim_kfd_destroy_queue),
	ENTRY(CREATE_EVENT, 32, R | W, sim_kfd_create_event),
	ENTRY(ACQUIRE_VM, 8, W, sim_kfd_acquire_vm),
	ENTRY(ALLOC_MEMORY_OF_GPU, 40, R | W, sim_kfd_alloc_memory),
	ENTRY(FREE_MEMORY_OF_GPU, 8, W, sim_kfd_free_memory),
	ENTRY(MAP_MEMORY_TO_GPU, 24, R | W, sim_kfd_map_memory),
	ENTRY(UNMAP_MEMORY_FROM_GPU, 24, R | W, sim_kfd_unmap_memory),
	ENTRY(GET_DMABUF_INFO, 32, R | W, sim_kfd_get_dmabuf_info),
	ENTRY(IMPORT_DMABUF, 24, R | W, sim_kfd_import_dmabuf),
	ENTRY(SVM, 24, R | W, sim_kfd_svm),
	ENTRY(SET_XNACK_MODE, 4, R | W, sim_kfd_set_xnack_mode),
	ENTRY(CRIU_OP, 56, R | W, sim_kfd_criu),
	ENTRY(AVAILABLE_MEMORY, 16, R | W, sim_kfd_available_memory),
	ENTRY_AT(KFD_EXPORT_DMABUF, EXPORT_DMABUF, 16, R | W, sim_kfd_export_dmabuf),
	ENTRY_AT(KFD_CREATE_PROCESS, CREATE_PROCESS, 0, 0, create_process),
};

static const struct ioctl ipc_import = { "IPC_IMPORT_HANDLE", sim_kfd_ipc_import, 48, R | W };
static const struct ioctl ipc_export = { "IPC_EXPORT_HANDLE", sim_kfd_ipc_export, 32, R | W };

/* Later kernels have it, the model does not. */
static const struct ioctl unknown = { .name = "unknown" };

static const char *const criu_names[] = {
	"CRIU_PROCESS_INFO", "CRIU_CHECKPOINT", "CRIU_UNPAUSE", "CRIU_RESTORE", "CRIU_RESUME",
};

static const char *fault_name(const struct ioctl *ioctl, const void *args)
{
	const struct kfd_ioctl_criu_args *criu = args;

	if (ioctl->function != sim_kfd_criu || criu->op >= ARRAY_SIZE(criu_names))
		return ioctl->name;
	return criu_names[criu->op];
}

/* CRIU_OP of a tracer locks the process that it is about. */
static int call(struct sim_process *process, const struct ioctl *ioctl, void *args, u32 size)
{
	int ret;

	ret = sim_fault(&process->sim->faults, "kfd", fault_name(ioctl, args));
	if (ret < 0)
		return ret;
	if (ioctl->function == sim_kfd_criu)
		return ioctl->function(process, args, size);
	sim_lock(&process->lock);
	ret = ioctl->function(process, args, size);
	sim_unlock(&process->lock);
	return ret;
}

/* @user_size: the size in the caller's command, which may be smaller or larger than the model's
 * struct. */
static int call_with_copy(struct sim_process *process, const struct ioctl *ioctl, u64 user,
			  u32 user_size)
{
	u32 size = max(ioctl->size, user_size);
	void *args = calloc(1, size);
	int ret = 0;

	if (!args)
		return -ENOMEM;
	if (ioctl->flags & DIR_WRITE)
		ret = sim_os_copy_from_user(args, user, user_size);
	if (ret == 0) {
		ret = call(process, ioctl, args, size);
		/* also after an error */
		if (ioctl->flags & DIR_READ && sim_os_copy_to_user(user, args, user_size) < 0)
			ret = -EFAULT;
	}
	free(args);
	return ret;
}

/* NULL: this kernel does not have it. */
static const struct ioctl *find_ioctl(const struct sim *sim, u32 number)
{
	if (number >= KFD_IPC_IMPORT_HANDLE && SIM_KNOB(sim, ipc_handles)) {
		if (number == KFD_IPC_IMPORT_HANDLE)
			return &ipc_import;
		return number == KFD_IPC_EXPORT_HANDLE ? &ipc_export : &unknown;
	}
	if (number < KFD_GET_VERSION || number > SIM_KNOB(sim, last_ioctl))
		return SIM_KNOB(sim, unknown_invalid) ? &unknown : NULL;
	return number < KFD_COMMAND_END ? &ioctls[number] : &unknown;
}

long sim_kfd_ioctl(struct sim_process *process, u32 cmd, u64 user)
{
	u32 number = cmd & 0xff, size = cmd >> 16 & 0x3fff;
	const struct ioctl *ioctl = find_ioctl(process->sim, number);

	if (!ioctl)
		return -ENOTTY;
	if (!sim_os_is_owner())
		return -EBADF;
	if (!ioctl->function)
		return -EINVAL;
	return size > MAX_ARGUMENT ? -ENOMEM : call_with_copy(process, ioctl, user, size);
}

static int map_doorbells(struct sim_pdd *pdd, u64 size, struct sim_kfd_map *map)
{
	u32 i;

	if (size != KFD_DOORBELL_SLICE)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(pdd->doorbells); i++)
		map->page[map->count++] = pdd->doorbells[i];
	return 0;
}

static int map_events(struct sim_process *process, u64 size, struct sim_kfd_map *map)
{
	u32 i;

	if (size > KFD_EVENT_PAGE_BYTES || !SIM_KNOB(process->sim, kernel_event_page))
		return -EINVAL;
	sim_lock(&process->event_lock);
	for (i = 0; process->event_page_set && i < size / SIM_PAGE_SIZE; i++)
		map->page[map->count++] = process->event_page[i];
	if (map->count && !process->event_mem)
		process->event_slots = (u32)(size / 8);
	sim_unlock(&process->event_lock);
	return map->count ? 0 : -EINVAL;
}

int sim_kfd_mmap(struct sim_process *process, u64 offset, u64 size, struct sim_kfd_map *ret_map)
{
	u32 type = (u32)(offset >> 62), gpu_id = (u32)(offset >> 46 & 0xffff);
	struct sim_pdd *pdd = SIM_KNOB(process->sim, mmap_user_ids)
				      ? sim_process_pdd(process, gpu_id)
				      : sim_process_pdd_by_real_id(process, gpu_id);
	int ret;

	ret = sim_fault(&process->sim->faults, "kfd", "MMAP");
	if (ret < 0)
		return ret;
	ret_map->count = 0;
	if (type == KFD_MMAP_EVENTS)
		return map_events(process, size, ret_map);
	if (!pdd)
		return -ENODEV;
	switch (type) {
	case KFD_MMAP_DOORBELL:
		return map_doorbells(pdd, size, ret_map);
	case KFD_MMAP_MMIO:
		if (size != SIM_PAGE_SIZE)
			return -EINVAL;
		ret_map->page[0] = process->sim->mmio_page;
		ret_map->count = 1;
		return 0;
	default:
		return -EINVAL; /* only old APUs have trap handler pages */
	}
}
