/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes fields of a message instead of bytes, so that the result still parses and the plugin
 * reads its values. A target of messages names the message, and the start of the message in the
 * input. */
#ifndef TEST_FUZZ_MUTATE_H
#define TEST_FUZZ_MUTATE_H

#include <stddef.h>

struct ProtobufCMessageDescriptor;
extern const struct ProtobufCMessageDescriptor *mutate_descriptor;
extern const size_t mutate_offset;

#endif
