// SPDX-License-Identifier: GPL-2.0-only
/* See the header. */
#include "usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double usage_cpu_seconds(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

double usage_machine_seconds(void)
{
	unsigned long long user = 0, nice = 0, system = 0, irq = 0, softirq = 0, steal = 0;
	FILE *file = fopen("/proc/stat", "re");

	if (!file)
		return 0;
	if (fscanf(file, "cpu %llu %llu %llu %*u %*u %llu %llu %llu", &user, &nice, &system, &irq,
		   &softirq, &steal) != 6)
		user = 0;
	(void)fclose(file);
	return (double)(user + nice + system + irq + softirq + steal) /
	       (double)sysconf(_SC_CLK_TCK);
}

long usage_memory_kib(const char *what)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, what, strlen(what)))
			kib = strtol(line + strlen(what), NULL, 10);
	}
	if (file)
		(void)fclose(file);
	return kib;
}

void usage_forget_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "we");

	if (!file)
		return;
	(void)fputs("5", file);
	(void)fclose(file);
}
