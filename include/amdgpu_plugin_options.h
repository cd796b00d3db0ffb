/* SPDX-License-Identifier: GPL-2.0-only */
/* What the user may choose, read from the environment once when CRIU loads the plugin. */
#ifndef AMDGPU_PLUGIN_OPTIONS_H
#define AMDGPU_PLUGIN_OPTIONS_H

#include <stdbool.h>

#include "amdgpu_plugin_content.h"

/* Checks of the mapper that can be switched off: field, environment variable. */
#define OPTION_SWITCHES(X)                         \
	X(check_fw_version, KFD_FW_VER_CHECK)      \
	X(check_sdma_fw, KFD_SDMA_FW_VER_CHECK)    \
	X(check_caches, KFD_CACHES_COUNT_CHECK)    \
	X(check_num_gws, KFD_NUM_GWS_CHECK)        \
	X(check_vram_size, KFD_VRAM_SIZE_CHECK)    \
	X(check_numa, KFD_NUMA_CHECK)              \
	X(check_capability, KFD_CAPABILITY_CHECK)

struct options {
#define OPTION_FIELD(field, variable) bool field;
	OPTION_SWITCHES(OPTION_FIELD)
#undef OPTION_FIELD
	/* KFD_MAX_BUFFER_SIZE (0 there means the default) and KFD_COPY_TIMEOUT. */
	struct content_limits content;
};

/* A value that does not parse is -EINVAL, after a line that names variable and value. */
int options_read(struct options *ret_options);

#endif
