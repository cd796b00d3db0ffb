// SPDX-License-Identifier: GPL-2.0-only
/* Gives each named file to the target, without a fuzzer. A finding ends the program. */
#include "fuzz.h"

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

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t size;
		uint8_t *bytes = read_file(argv[i], &size);

		if (!bytes) {
			(void)fprintf(stderr, "%s: cannot read\n", argv[i]);
			return 1;
		}
		(void)LLVMFuzzerTestOneInput(bytes, size);
		free(bytes);
		printf("passed %s\n", argv[i]);
		(void)fflush(stdout);
	}
	return 0;
}
