// SPDX-License-Identifier: GPL-2.0-only
/* Linux 7.2.12 and 7.3-rc7, gfx9: AMDKFD_IOC_CRIU_OP saves no control stack of a compute queue, so
 * a restore loses its waves. mqd_manager_init_v9() asks kfd_topology_device_by_id(dev->id) while
 * dev->id is still 0, because kfd_topology_add_device() comes later in kfd_init_node(). It finds a
 * CPU's node, whose ctl_stack_size is 0. Linux 6.1 and 6.12 save it. Needs CAP_CHECKPOINT_RESTORE
 * and one GPU.
 *
 *     gcc waves_lost.c -lhsakmt */
#include <fcntl.h>
#include <hsakmt.h>
#include <linux/kfd_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define PAGE 4096

static void *allocate(HSAuint64 bytes)
{
	HsaMemFlags flags = { .ui32 = { .HostAccess = 1, .NonPaged = 1, .ExecuteAccess = 1 } };
	HSAuint64 alternate;
	void *memory;

	if (hsaKmtAllocMemory(0, bytes, flags, &memory) ||
	    hsaKmtMapMemoryToGPU(memory, bytes, &alternate))
		return NULL;
	return memset(memory, 0, bytes);
}

static int first_gpu(HSAuint32 *ret_node)
{
	HsaSystemProperties system;
	union {
		HsaNodeProperties properties;
		char room[PAGE]; /* newer libraries fill in more */
	} node;

	if (hsaKmtOpenKFD() || hsaKmtAcquireSystemProperties(&system))
		return -1;
	for (HSAuint32 i = 0; i < system.NumNodes; i++) {
		if (hsaKmtGetNodeProperties(i, &node.properties) ||
		    !node.properties.NumFComputeCores)
			continue;
		*ret_node = i;
		return 0;
	}
	return -1;
}

/* The size of the private data of a process, which is paused only meanwhile. */
static uint64_t saved_bytes(int kfd)
{
	struct kfd_ioctl_criu_args info = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct kfd_ioctl_criu_args unpause = { .op = KFD_CRIU_OP_UNPAUSE };

	if (ioctl(kfd, AMDKFD_IOC_CRIU_OP, &info) < 0)
		perror("PROCESS_INFO");
	(void)ioctl(kfd, AMDKFD_IOC_CRIU_OP, &unpause);
	return info.priv_data_size;
}

int main(void)
{
	HsaQueueResource queue = { 0 };
	uint64_t before, after;
	HSAuint32 node;
	int kfd = 3; /* libhsakmt's: no other file is open yet */

	if (first_gpu(&node)) {
		fprintf(stderr, "no GPU\n");
		return 1;
	}
	queue.Queue_read_ptr_aql = allocate(PAGE);
	queue.Queue_write_ptr_aql = queue.Queue_read_ptr_aql + 8;
	before = saved_bytes(kfd);
	if (hsaKmtCreateQueue(node, HSA_QUEUE_COMPUTE_AQL, 100, HSA_QUEUE_PRIORITY_NORMAL,
			      allocate(PAGE), PAGE, NULL, &queue)) {
		fprintf(stderr, "no queue\n");
		return 1;
	}
	after = saved_bytes(kfd);
	printf("a compute queue adds %llu bytes: %s\n", (unsigned long long)(after - before),
	       after - before < 4 * PAGE ? "its control stack is lost" : "with its control stack");
	return 0;
}
