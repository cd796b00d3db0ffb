/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes fields of a message instead of bytes, so that what comes out still parses and
 * gets as far as values are looked at. A target of messages says which, and where in the
 * input the message begins. */
#ifndef TEST_FUZZ_MUTATE_H
#define TEST_FUZZ_MUTATE_H

#include <stddef.h>

struct ProtobufCMessageDescriptor;
extern const struct ProtobufCMessageDescriptor *mutate_descriptor;
extern const size_t mutate_offset;

#endif
