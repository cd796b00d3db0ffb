// SPDX-License-Identifier: GPL-2.0-only
/* /sys/bus/pci/devices/ADDRESS/ras: the memory errors of a GPU, a file for each part of it. A
 * look-up of a path there writes them anew (amdgpu_ras.c, Linux 6.1 to 7.3:
 * amdgpu_ras_sysfs_create(), amdgpu_ras_sysfs_read()). */
#include <sys/stat.h>
#include <unistd.h>

#include "native.h"

#define PREFIX    "/sys/bus/pci/devices/"
#define DIRECTORY "/ras"

/* The part of @path behind the directory, and the GPU; NULL: the path leads elsewhere. All
 * partitions of a PCI device have one directory. */
static struct sim_gpu *find_gpu(struct native *native, const char *path, const char **ret_file)
{
	u32 domain, bus, slot, function, i;
	int length = 0;

	if (sscanf(path, PREFIX "%x:%x:%x.%x" DIRECTORY "%n", &domain, &bus, &slot, &function,
		   &length) != 4 ||
	    !length || (path[length] && path[length] != '/'))
		return NULL;
	*ret_file = path + length;
	for (i = 0; i < native->sim.num_gpus; i++)
		if (function == 0 &&
		    native->sim.gpus[i].location == ((u64)domain << 32 | bus << 8 | slot << 3))
			return &native->sim.gpus[i];
	return NULL;
}

/* Another thread may read the file meanwhile, so a new one takes its place. */
static void write_ras(const char *directory, const char *name, const char *text)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	FILE *stream;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	(void)snprintf(temporary, sizeof(temporary), "%s.%ld", directory, (long)gettid());
	stream = NATIVE_REAL(fopen)(temporary, "we");
	if (!stream || fputs(text, stream) < 0)
		(void)fprintf(stderr, "amdgpu_sim: cannot write %s: %s\n", path, strerror(errno));
	if (stream)
		(void)fclose(stream);
	(void)rename(temporary, path);
}

bool native_ras_path(struct native *native, const char *path, char *buffer)
{
	const char *file = NULL, *own;
	const struct sim_gpu *gpu = find_gpu(native, path, &file);
	s64 errors = gpu ? sim_gpu_memory_errors(gpu) : -1;
	char directory[PATH_MAX / 2 + 32], count[64];

	own = errors < 0 ? NULL : native_procfs_directory();
	if (!own)
		return false;
	(void)snprintf(directory, sizeof(directory), "%s/ras.%u", own, gpu->index);
	(void)mkdir(directory, 0755);
	(void)snprintf(count, sizeof(count), "ue: %lld\nce: 3\n", (long long)errors);
	/* The first name is that of Linux 7.3, the second that of older drivers for MI300. A part
	 * that the driver cannot ask has no number, and other files are no counts. */
	write_ras(directory, "umc_err_count", count);
	write_ras(directory, "aca_sdma", "ue: 2\nce: 0\nde: 0\n");
	write_ras(directory, "gfx_err_count", "ue: 0\nce: 0\n");
	write_ras(directory, "sdma_err_count", "Query currently inaccessible\n");
	write_ras(directory, "features", "ue: 77\n");
	return snprintf(buffer, PATH_MAX, "%s%s", directory, file) < PATH_MAX;
}
