// SPDX-License-Identifier: GPL-2.0-only
/* Checksums by libxxhash, with the widest vectors that the processor has. */
#include "content/checksum.h"

#include <errno.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

struct checksum {
	XXH3_state_t *state;
};

uint64_t checksum_of(const void *bytes, size_t size)
{
	return XXH3_64bits(bytes, size);
}

int checksum_new(struct checksum **ret_checksum)
{
	struct checksum *checksum = calloc(1, sizeof(*checksum));

	if (!checksum)
		return -ENOMEM;
	checksum->state = XXH3_createState();
	if (!checksum->state) {
		free(checksum);
		return -ENOMEM;
	}
	(void)XXH3_64bits_reset(checksum->state);
	*ret_checksum = checksum;
	return 0;
}

void checksum_free(struct checksum *checksum)
{
	if (!checksum)
		return;
	(void)XXH3_freeState(checksum->state);
	free(checksum);
}

void checksum_add(struct checksum *checksum, const void *bytes, size_t size)
{
	(void)XXH3_64bits_update(checksum->state, bytes, size);
}

uint64_t checksum_take(struct checksum *checksum)
{
	uint64_t sum = XXH3_64bits_digest(checksum->state);

	(void)XXH3_64bits_reset(checksum->state);
	return sum;
}
