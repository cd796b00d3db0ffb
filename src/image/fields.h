/* SPDX-License-Identifier: GPL-2.0-only */
/* Which fields a message has. All programs know fields below 1000; this plugin adds those from 1000
 * on. */
#ifndef AMDGPU_PLUGIN_IMAGE_FIELDS_H
#define AMDGPU_PLUGIN_IMAGE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* Whether @message, or a message in it, has a field that only this plugin writes. */
bool fields_have_own(const ProtobufCMessage *message);

/* Finds a field below 1000 that is not known here, in @message or in a message in it. Return:
 * the message that has the field, with *@ret_number set, or NULL if all fields are known. */
const ProtobufCMessage *fields_find_unknown(const ProtobufCMessage *message, uint32_t *ret_number);

#endif
