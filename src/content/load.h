/* SPDX-License-Identifier: GPL-2.0-only */
/* The steps of a restore: reads the ranges of an image, and copies them to BOs. */
#ifndef AMDGPU_PLUGIN_CONTENT_LOAD_H
#define AMDGPU_PLUGIN_CONTENT_LOAD_H

#include <stddef.h>

#include "content/steps.h"
#include "storage/trial.h"

extern const struct steps load_steps;

/* Begins a trial of the two ways to read files. @num_transfers loads share the trial. */
void load_init_trial(struct trial *trial, size_t num_transfers);

#endif
