/* SPDX-License-Identifier: GPL-2.0-only */
/* The /dev/kfd of the fake kernel, see fake_kernel.h. */
#ifndef TEST_UNIT_FAKE_KFD_H
#define TEST_UNIT_FAKE_KFD_H

#include "host.h"
#include "kernel/kfd.h"

#define KFD_MAJOR    234
#define PROCESSES    4
#define GEM_OP       0x10
#define LIST_HANDLES 0x19
#define CONTEXT      0x02
#define GEM_MMAP     0x01
/* Parameters of the driver are files parameter-NAME in the test's directory. */
#define PARAMETERS    "/sys/module/amdgpu/parameters/"
#define KFD_DEVICE    "/sys/class/kfd/kfd/dev"
#define PCI_DEVICES   "/sys/bus/pci/devices/"
#define KFD_PROCESSES "/sys/class/kfd/kfd/proc/"
/* The descriptor of a render node in a fake process is this number plus the minor. */
#define RENDER_FDS 10000
/* Its descriptor of /dev/kfd is this number plus that of the test, which is below FAKE_FDS. */
#define KFD_FDS      20000
#define FAKE_FDS     256
#define QUEUE_RECORD 120
#define EVENT_RECORD 64
#define CTL_STACK    64
#define KERNEL_PAGE  4096

/* A process that has /dev/kfd open; in a restore, the restored process. */
struct fake_process {
	pid_t pid;
	struct kfd_device_bucket devices[8];
	uint32_t num_devices;
	struct kfd_bo_bucket *bos;
	uint32_t num_bos;
	/* Queues first, events after them. */
	uint32_t num_objects;
	struct fake_queue {
		uint32_t gpu_id, type, id, cwsr_size, mqd_size;
	} queues[4];
	uint32_t num_queues;
	/* The driver's count of pauses, and the number of successful calls of each operation. */
	unsigned int paused;
	unsigned int calls[KFD_RESUME + 1];
};

extern struct __attribute__((aligned(KERNEL_PAGE))) fake_kernel {
	/* One of test/data/make-machines, or a path; NULL: the driver is not loaded. */
	const char *machine;
	uint32_t kfd_minor;
	struct fake_process processes[PROCESSES];
	/* What the MQDs of a queue state as control stacks; 0: what the record has. */
	uint32_t mqd_stack;
	/* The MQDs say that the queue has no waves. */
	bool at_rest;
	/* The pids of the initial pid namespace are others. */
	bool in_pid_namespace;
	/* The kernel was built without SVM. */
	bool lacks_svm;
	/* The type of all events. */
	uint32_t event_type;
	/* The number of GEM objects of each render node, and the name of its driver. */
	unsigned int gem_objects;
	const char *driver;
	/* The flags of contexts of this render node (0: of all contexts), and the errno of calls
	 * that make or query one. */
	uint32_t context_flags, context_minor;
	int context_errno;
	/* Bytes of a BO's record in private data. */
	uint32_t bo_record_size;
	/* Each process has this many render nodes open, from the first on. */
	unsigned int num_open_renders;
	/* Each process also has the render nodes that the test has open, as the same open files. */
	bool shares_render_files;
	/* /dev has no render nodes, as in some containers. */
	bool hides_render_nodes;
	/* A name in /dev opens another device: that of the next render node, or a plain file. */
	bool misnames_render_nodes;
	bool misnames_kfd;
	/* mmap() of /dev/kfd takes the ids that the process knows, as Linux 7.3 does. */
	bool maps_known_ids;
	/* How often render nodes were opened by their names. */
	unsigned int render_opens;
	/* Called when a process opens /dev/kfd. */
	void (*kfd_opens)(void);
	/* Answers other calls of /dev/kfd, or of a render node, with an errno. NULL: there are
	 * none. */
	int (*other_kfd)(unsigned long request, void *argument);
	int (*other_render)(unsigned long request, void *argument);
	/* The next @fail_count calls of @fail_op give @fail_errno. */
	enum kfd_criu_op fail_op;
	unsigned int fail_count;
	int fail_errno;
	/* The PROCESS_INFO, by number from 1, that stops the queues and gives ETIME. The driver
	 * does not count this as a pause. */
	unsigned int slow_pause, pauses;
	/* RESTORE in a process that is none of the above gives these, with objects and without.
	 * The number of such calls; it needs fake_kernel_share(). */
	int trial_errno;
	int empty_trial_errno;
	unsigned int trials;
	struct kfd_criu_args trial;
	/* What RESTORE there answers without BOs, before it reads private data; 0: it reads. */
	int no_bo_errno;
	/* The free VRAM of each GPU. AVAILABLE_MEMORY reports it, unless the kernel is too old.
	 * RESTORE gives ENOMEM if its BOs need more. */
	uint64_t free_vram;
	bool hides_free_vram;
	/* The arguments of the last RESTORE, and the process that was killed. */
	struct kfd_criu_args restored;
	struct kfd_device_bucket restored_devices[8];
	pid_t killed;
	/* Calls that harm a real kernel or process. */
	unsigned int wrong_calls;
	/* Each failed CHECKPOINT is a line in a real kernel's log. */
	unsigned int failed_checkpoints;
} kernel;

/* The number in the name of the device that @fd is open on, -1 for other files. */
int device_of(int fd, const char *kind);
uint64_t private_size(const struct fake_process *process);
int kfd_ioctl(int index, unsigned long request, void *argument);

#endif
