/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of the device, and its violations: what hardware would do wrong in silence, and what no
 * driver does. */
#ifndef TEST_GPU_REPORT_H
#define TEST_GPU_REPORT_H

#include <stdbool.h>
#include <stdio.h>

enum report_level {
	REPORT_ALWAYS,    /* connections, resets, faults, violations */
	REPORT_QUEUES,    /* queues that are mapped and unmapped */
	REPORT_PACKETS,   /* packets, doorbells and interrupts */
	REPORT_REGISTERS, /* each register that the driver reads or writes */
};

#define REPORT_KEPT 16u
#define REPORT_TEXT 200u

/* The files of all GPUs. */
struct report_files {
	FILE *log;        /* or NULL */
	FILE *violations; /* the same */
	enum report_level level;
};

/* What one GPU reports. */
struct report {
	const struct report_files *files; /* or NULL */
	char name[20];                    /* what its lines begin with: "GPU 3: ", or nothing */
	unsigned int num_violations;
	char kept[REPORT_KEPT][REPORT_TEXT]; /* the first violations */
};

/* Opens the files that are not NULL. 0 or -errno. */
int report_open(struct report_files *files, const char *log, const char *violations);
void report_close(struct report_files *files);

bool report_shows(const struct report *report, enum report_level level);
__attribute__((format(printf, 3, 4))) void
report_log(struct report *report, enum report_level level, const char *format, ...);
__attribute__((format(printf, 2, 3))) void report_violation(struct report *report,
							    const char *format, ...);
/* A test has provoked the violations so far. Empties the file, which has those of all GPUs. */
void report_forget(struct report *report);

#endif
