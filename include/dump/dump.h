/* SPDX-License-Identifier: GPL-2.0-only */
/* The dump of KFD state: what outlives a hook, and one function a step. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_H
#define AMDGPU_PLUGIN_DUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "criu/guard.h"
#include "criu/options.h"
#include "kernel/kfd.h"
#include "kernel/memory_errors.h"

#define DUMP_NO_ID (-1)

struct background;
struct bo_index;
struct dumped_dmabuf;
struct gem_files;
struct gem_saved_list;
struct proc_mapping;
struct shared_bos;

/* An open /dev/kfd of the dump. */
struct dumped_file {
	/* The plugin's descriptor of the file. */
	int fd;
	/* A task that has the file, by its pid here. */
	pid_t pid;
	/* The lowest vpid of the tasks that have it: CRIU opens the file again in that task. */
	pid_t reopen_vpid;
	/* Index of the process that owns the file, or DUMP_NO_PROCESS if it could not be paused. */
	size_t process;
	/* Then: -ENODEV if the process sees no GPU, -EBADF if it is not part of the dump. */
	int refusal;
};

#define DUMP_NO_PROCESS SIZE_MAX

/* What the kernel has said of queues, see src/preflight/queue_probe.h. */
struct queue_answers {
	struct queue_answer *list;
	size_t count;
};

/* A KFD process of the dump: one for each process, however many files of /dev/kfd it has. */
struct dumped_process {
	struct dump_session *session;
	/* The file whose image holds the state, or DUMP_NO_ID if CRIU has not shown one yet. */
	int id;
	/* For the log: "kfd ID", or "process PID" before there is an id. */
	char name[32];
	/* The descriptor of one of its files in dump_session.files, borrowed. */
	int fd;
	bool paused;
	/* Its pid here. */
	pid_t pid;
	/* Its pid as the process sees itself. */
	pid_t vpid;
	/* The time of its core image when it was paused, or all zero if there was none. */
	struct timespec core_time;
	/* The vpid of the process in which CRIU is going to open the file again. */
	pid_t reopen_vpid;
	/* The counts of PROCESS_INFO, and from CHECKPOINT on the arrays and the dma-bufs. */
	struct kfd_state state;
	/* Of the processes of the session, the first one whose dma-bufs were open when this one
	 * got its own. */
	size_t first_open;
	/* Finds the BO of a mapping. */
	struct bo_index *bo_index;
	/* The mappings of devices. */
	struct proc_mapping *mappings;
	size_t num_mappings;
	/* Its render files, with their GEM handles. */
	struct gem_files *gem_files;
	/* The GEM handles for its image. */
	struct gem_saved_list *gem;
	/* The contents that are being saved. */
	struct kfd_jobs jobs;
	/* The GPUs that the process sees. */
	struct dumped_gpu {
		uint32_t render_minor;
		uint32_t user_gpu_id;
		/* A BO of the GPU has this mmap offset. Only the process's compute file maps it. */
		bool has_bo;
		/* Without such a BO: a GEM handle of the compute file whose object has this
		 * offset; 0: none. Another process's file may map the object, too. */
		uint32_t handle;
		uint64_t bo_offset;
		/* The GEM handles of the compute file that the process's image has. */
		size_t num_handles;
		/* CRIU has shown the compute file, and drm_write() has recognised it. */
		bool found;
	} * gpus;
	size_t num_gpus;
};

/* A context of the plugin on a GPU of this machine. */
struct dumped_watch {
	/* Of dump_session.topology. */
	const struct topology_node *gpu;
	int fd;
	uint32_t context;
	/* The uncorrectable memory errors of the GPU when its watch began. No parts, if the driver
	 * does not count them. */
	struct memory_errors memory_errors;
};

/* All zero but for the options: nothing has been dumped. */
struct dump_session {
	const struct options *options;
	/* CRIU knows that the images need the plugin, and those of older dumps are gone. */
	bool registered;
	/* CRIU has shown something of an AMD GPU, so a dump that fails removes its images. */
	bool has_gpu_files;
	struct topology topology;
	bool has_topology;
	/* The second number of KFD's version. */
	uint32_t kfd_minor;
	/* The tasks of the dump, as CRIU names them before it shows their files; none: this CRIU
	 * does not name them. */
	struct pid_list tasks;
	/* All files of /dev/kfd that the tasks have, listed and grouped by process before the first
	 * one is saved. */
	struct dumped_file *files;
	size_t num_files;
	struct dumped_process *processes;
	size_t num_processes;
	/* The tasks have been searched for open files of /dev/kfd, and have some. */
	bool kfd_is_looked_for;
	bool has_kfd;
	/* Processes that map a GPU without /dev/kfd have been looked for. */
	bool mappings_are_checked;
	/* The KFD processes of all tasks have been looked for and paused. */
	bool tree_is_paused;
	/* snapshot_take() has succeeded, so no rule is broken. */
	bool has_snapshot;
	/* The limit of descriptors before it was raised for the dma-bufs of all processes. */
	struct rlimit old_limit;
	bool limit_raised;
	struct queue_answers queue_answers;
	/* The BOs that are one object, or NULL before CHECKPOINT. See src/dump/shared_bos.h. */
	struct shared_bos *shared;
	/* Contents that are being saved while CRIU goes on; NULL: none. See src/dump/background.h.
	 */
	struct background *background;
	/* The open dma-bufs that CRIU has shown. See src/dump/dmabuf_files.h. */
	struct dumped_dmabuf *dmabufs;
	size_t num_dmabufs;
	struct dumped_watch *watches;
	size_t num_watches;
	/* The log says what the kernel does not save. */
	bool gaps_are_told;
	struct content_totals totals;
	/* The dump is over: the processes run again. */
	bool released;
	/* dump_complete() has succeeded. */
	bool completed;
	/* A process was unpaused, and could not be paused again. Which one it is, is not known. */
	bool lost_pause;
	/* Unpauses the processes if CRIU dies. */
	struct guard guard;
};

/* All rules, in the order of docs/refusals.md. src/preflight/preflight.c has their texts. */
enum dump_rule {
	DUMP_IS_PRE_DUMP,
	DUMP_IS_INCREMENTAL,
	DUMP_IS_LAZY,
	DUMP_GPU_IS_IN_RESET,
	DUMP_CWSR_IS_OFF,
	DUMP_HAS_NO_KFD_FILE,
	DUMP_FILE_OF_OTHER_PROCESS,
	DUMP_LACKS_VM,
	DUMP_HAS_NO_BO,
	DUMP_HAS_CONTEXTS,
	DUMP_UNKNOWN_LAYOUT,
	DUMP_EVENT_TYPE,
	DUMP_HIGH_PRECISION,
	DUMP_QUEUE_TYPE,
	DUMP_QUEUE_XCCS,
	DUMP_QUEUE_WITHOUT_AREA,
	DUMP_QUEUE_STACK,
	DUMP_QUEUE_PARTITION,
	DUMP_QUEUE_GENERATION,
	DUMP_QUEUE_REFUSED,
	DUMP_BO_KIND,
	DUMP_BO_FLAGS,
	DUMP_BO_UNLISTED,
	DUMP_BO_HALVED,
	DUMP_BO_GENERATION,
	DUMP_BO_SHARED,
	DUMP_BO_OUTSIDE,
	DUMP_HAS_DMABUF,
	DUMP_HAS_GEM_OBJECTS,
	DUMP_MAPPING_WITHOUT_BO,
	DUMP_MAPPING_INSIDE_BO,
	DUMP_MAPPING_AMBIGUOUS,
	DUMP_MAPPING_OF_IMPORT,
	DUMP_RULES,
};

/* The object named by @format breaks @rule: logs the object, the rule and its remedy, and returns
 * -EOPNOTSUPP. With AMDGPU_FORCE=1 and a rule that can be forced, it logs a warning and returns 0.
 */
int preflight_refuse(const struct dump_session *session, enum dump_rule rule, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));

/* The same as a warning, where only the dump can tell whether the object breaks the rule. */
void preflight_warn_of(enum dump_rule rule, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Notes a task of the dump, by its pid here. -ENOMEM after a line. */
int dump_add_task(struct dump_session *session, pid_t pid);
/* Prepares the image directory when CRIU shows the first thing of an AMD GPU: the inventory names
 * the plugin, and images of older dumps go. Later calls do nothing. Logs on error. */
int dump_begin(struct dump_session *session);
/* The topology of this machine, read once a dump. Logs on error. */
int dump_topology(struct dump_session *session, const struct topology **ret_topology);

/* CRIU has met a device mapping, so all tasks are stopped: refuses tasks that map a GPU without an
 * open /dev/kfd, which CRIU would never show. Logs on error. */
int dump_check_mappings(struct dump_session *session);
/* Saves the process of the /dev/kfd that CRIU shows as @fd, under the image id @id. The first call
 * takes the snapshot of all processes. Contents and the state image may still be missing when this
 * returns; dump_complete() waits for them. Logs on error. */
int dump_kfd(struct dump_session *session, int fd, int id);

/* dmabuf_files.c, after dump_begin(): notes the dma-buf that CRIU shows as @fd.
 * dmabuf_files_write() writes its image @id. Logs on error. */
int dmabuf_files_dump(struct dump_session *session, int fd, int id);
/* dmabuf_files.c, when dump_knows_all(): writes the images of the dma-bufs that CRIU has shown
 * since the last call. Logs on error. */
int dmabuf_files_write(struct dump_session *session);

/* Whether CRIU has shown all KFD processes of the dump, or no task has an open /dev/kfd: 1; 0: CRIU
 * may still show one, or has not named the tasks; or -errno after a line. */
int dump_knows_all(struct dump_session *session);

/* Whether @process has the open file @fd: 1, 0 or -errno. */
int dump_process_has_file(const struct dumped_process *process, int fd);

/* All files have been shown: waits for the contents of all processes, and finds out whether each
 * paused process has an image. Writes the images of dma-bufs that are missing. Later calls do
 * nothing. Logs on error. */
int dump_complete(struct dump_session *session);
/* Ends the dump with @result: unpauses every process, and removes the images if @result is an
 * error. If CRIU is going to kill the tasks, their queues stay stopped. Logs on error. */
int dump_release(struct dump_session *session, int result);
void dump_done(struct dump_session *session);

#endif
