// SPDX-License-Identifier: GPL-2.0-only
/* Gives each named file to the target, without a fuzzer. A finding ends the program. */
#include "fuzz.h"

#include <time.h>

/* A small input must not keep the plugin busy. */
#define LIMIT_S 1.0

static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes = NULL;
	size_t size = 0, got;

	if (!file)
		return NULL;
	do {
		bytes = realloc(bytes, size + 65536);
		if (!bytes)
			abort();
		got = fread(bytes + size, 1, 65536, file);
		size += got;
	} while (got);
	(void)fclose(file);
	/* No spare byte, so that a sanitizer sees reads beyond the end. */
	*ret_size = size;
	return size ? realloc(bytes, size) : bytes;
}

/* In seconds. Other programs on the machine do not count. */
static double processor_time(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t size;
		uint8_t *bytes = read_file(argv[i], &size);
		double begin = processor_time();

		if (!bytes) {
			(void)fprintf(stderr, "%s: cannot read\n", argv[i]);
			return 1;
		}
		(void)LLVMFuzzerTestOneInput(bytes, size);
		free(bytes);
		if (processor_time() - begin > LIMIT_S) {
			(void)fprintf(stderr, "%s: takes %.1f s of processor time\n", argv[i],
				      processor_time() - begin);
			return 1;
		}
		printf("passed %s\n", argv[i]);
		(void)fflush(stdout);
	}
	return 0;
}
