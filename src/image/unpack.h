/* SPDX-License-Identifier: GPL-2.0-only */
/* Unpacks messages in bounded memory, and tells which fields they have. All programs know fields
 * below 1000; this plugin adds those from 1000 on. */
#ifndef AMDGPU_PLUGIN_IMAGE_UNPACK_H
#define AMDGPU_PLUGIN_IMAGE_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* Unpacks the @size bytes of image @name. The message is the caller's; free it with
 * protobuf_c_message_free_unpacked(). -EINVAL: the image is damaged; -EOPNOTSUPP:
 * it has a field of another program that is not known here; -ENOMEM. Logs on error. */
int unpack_message(const char *name, const ProtobufCMessageDescriptor *descriptor,
		   const uint8_t *bytes, uint64_t size, ProtobufCMessage **ret_message);

/* Whether @message, or a message in it, has a field that only this plugin writes. */
bool unpack_has_own_fields(const ProtobufCMessage *message);

#endif
