// SPDX-License-Identifier: GPL-2.0-only
/* Checks the texts of the message saved_on. */
#include "image/saved_on.h"

#include <string.h>

bool saved_on_is_text(const char *text)
{
	size_t length = strnlen(text, SAVED_ON_TEXT);

	for (size_t i = 0; i < length; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return length < SAVED_ON_TEXT;
}
