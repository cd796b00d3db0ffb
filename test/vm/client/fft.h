/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions of rocFFT that the FFT client calls. The library needs HIP's runtime of the same
 * suite, so it is opened at run time. The signatures are those of its header, with plans and their
 * parts as pointers to void. */
#ifndef CLIENT_FFT_H
#define CLIENT_FFT_H

#include <stdbool.h>
#include <stddef.h>

#define FFT_IN_PLACE 0
#define FFT_FORWARD  0
#define FFT_SINGLE   0

#define FFT_FUNCTIONS(X)                                                               \
	X(setup, (void))                                                               \
	X(cleanup, (void))                                                             \
	X(plan_description_create, (void **ret_description))                           \
	X(plan_description_set_scale_factor, (void *description, double factor))       \
	X(plan_description_destroy, (void *description))                               \
	X(plan_create,                                                                 \
	  (void **ret_plan, int placement, int type, int precision, size_t dimensions, \
	   const size_t *lengths, size_t transforms, void *description))               \
	X(plan_get_work_buffer_size, (void *plan, size_t *ret_size))                   \
	X(plan_destroy, (void *plan))                                                  \
	X(execution_info_create, (void **ret_info))                                    \
	X(execution_info_set_stream, (void *info, void *stream))                       \
	X(execution_info_destroy, (void *info))                                        \
	X(execute, (void *plan, void **from, void **to, void *info))

struct fft {
#define FFT_MEMBER(name, parameters) int(*name) parameters;
	FFT_FUNCTIONS(FFT_MEMBER)
#undef FFT_MEMBER
};

/* Opens the library, and HIP's with it. NULL: well, else what is missing. */
const char *fft_open(struct fft *fft);

#endif
