// SPDX-License-Identifier: GPL-2.0-only
/* Finds rocFFT of the suite. */
#include "fft.h"

#include <dlfcn.h>

#include "library.h"

const char *fft_open(struct fft *fft)
{
	void *library = dlopen("librocfft.so.0", RTLD_NOW);

	if (!library)
		return "librocfft.so.0";
#define FFT_FIND(name, parameters)                               \
	if (!library_find(library, "rocfft_" #name, &fft->name)) \
		return "rocfft_" #name;
	FFT_FUNCTIONS(FFT_FIND)
#undef FFT_FIND
	return NULL;
}
