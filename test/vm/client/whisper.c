// SPDX-License-Identifier: GPL-2.0-only
/* Finds whisper.cpp of the suite. */
#include "whisper.h"

#include <dlfcn.h>

#include "library.h"

const char *whisper_open(struct whisper *whisper)
{
	void *library = dlopen("libwhisper.so.1", RTLD_NOW),
	     *ggml = dlopen("libggml.so.0", RTLD_NOW);

	if (!library)
		return "libwhisper.so.1";
	if (!ggml || !library_find(ggml, "ggml_backend_load_all", &whisper->load_backends))
		return "ggml_backend_load_all";
#define WHISPER_FIND(type, name, parameters)                          \
	if (!library_find(library, "whisper_" #name, &whisper->name)) \
		return "whisper_" #name;
	WHISPER_FUNCTIONS(WHISPER_FIND)
#undef WHISPER_FIND
	return NULL;
}
