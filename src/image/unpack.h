/* SPDX-License-Identifier: GPL-2.0-only */
/* Unpacks messages in bounded memory. */
#ifndef AMDGPU_PLUGIN_IMAGE_UNPACK_H
#define AMDGPU_PLUGIN_IMAGE_UNPACK_H

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* Unpacks the @size bytes of image @name. The message is the caller's; free it with
 * protobuf_c_message_free_unpacked(). -EINVAL: the image is damaged; -EOPNOTSUPP:
 * it has a field of another program that is not known here; -ENOMEM. Logs on error. */
int unpack_message(const char *name, const ProtobufCMessageDescriptor *descriptor,
		   const uint8_t *bytes, uint64_t size, ProtobufCMessage **ret_message);

#endif
