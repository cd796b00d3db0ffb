// SPDX-License-Identifier: GPL-2.0-only
/* An input replaces a test: test/unit/host.c has its directory, its CRIU and its log. */
#include "fuzz.h"

#include <string.h>

/* In memory, because a run has many inputs. */
static void __attribute__((constructor)) set_up(void)
{
	unit_settings = (struct unit_settings){ .directory = "/dev/shm", .quiet = true };
}

void fuzz_begin(void)
{
	promise(unit_begin(NULL) == 0);
}

void fuzz_end(void)
{
	if (getenv("FUZZ_SHOW"))
		unit_show_lines();
	promise(unit_end(NULL) == 0);
}

uint64_t fuzz_take_number(struct fuzz_input *input, size_t num_bytes)
{
	uint64_t number = 0;
	size_t size;
	const uint8_t *bytes = fuzz_take_bytes(input, num_bytes, &size);

	for (size_t i = 0; i < size; i++)
		number |= (uint64_t)bytes[i] << (8 * i);
	return number;
}

const uint8_t *fuzz_take_bytes(struct fuzz_input *input, size_t size, size_t *ret_size)
{
	const uint8_t *bytes = input->bytes;

	if (size > input->size)
		size = input->size;
	if (size)
		input->bytes += size;
	input->size -= size;
	*ret_size = size;
	return bytes;
}

char *fuzz_take_text(struct fuzz_input *input)
{
	char *text = malloc(input->size + 1);

	promise(text);
	if (input->size)
		memcpy(text, input->bytes, input->size);
	text[input->size] = '\0';
	input->size = 0;
	return text;
}
