// SPDX-License-Identifier: GPL-2.0-only
/* Checks the handles in the private data of a KFD image. RESTORE of AMD's own driver uses freed
 * memory if two BOs of a GPU have one handle, and crashes if the page for events is no BO or too
 * small. The hardware state of queues passes unchecked here. */
#include "image/image_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"

/* KFD_SIGNAL_EVENT_LIMIT * 8 in kfd_event_page_set() (kfd_events.c, Linux 6.1 to 7.3). */
#define EVENT_PAGE_SIZE 32768

/* KFD gives out the lowest number that is free, and no process has that many BOs. */
#define HANDLE_MAX (1u << 26)

/* A BO by its handle. */
struct handle {
	uint64_t key;
	const KfdBoEntry *bo;
};

/* The task imports it after RESTORE, which does not see its record. */
static bool is_import(const KfdBoEntry *bo)
{
	return bo->has_owner_pid && !bo->by_share_handle;
}

/* A restore makes a BO for each free number below the handle of an import. RESTORE itself makes a
 * BO under any number. */
static bool is_impossible(const CriuKfd *kfd, const KfdBoEntry *bo, uint32_t number)
{
	return number > (is_import(bo) ? IMAGE_HANDLE_MAX(kfd->n_bo_entries) : HANDLE_MAX);
}

/* @handles: in ascending order. */
static int list_handles(int id, const CriuKfd *kfd, const struct kfd_priv *priv,
			struct handle *handles)
{
	for (uint32_t i = 0; i < priv->num_bos; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];
		struct kfd_priv_bo_record record = { 0 };

		(void)kfd_priv_read_bo(priv, i, &record);
		if (is_impossible(kfd, bo, record.handle))
			return log_error(-EINVAL, "kfd %d: BO %u has the impossible handle 0x%x",
					 id, i, record.handle);
		handles[i] = (struct handle){ KFD_HANDLE(bo->gpu_id, record.handle), bo };
	}
	qsort(handles, priv->num_bos, sizeof(*handles), compare_u64);
	for (uint32_t i = 1; i < priv->num_bos; i++) {
		if (handles[i].key == handles[i - 1].key)
			return log_error(-EINVAL, "kfd %d: two BOs have handle 0x%" PRIx64, id,
					 handles[i].key);
	}
	return 0;
}

/* The page in which the driver marks events, if the process has brought one. */
static int check_event_page(int id, const struct handle *handles, size_t count, uint64_t page)
{
	const struct handle wanted = { .key = page };
	const struct handle *found =
		bsearch(&wanted, handles, count, sizeof(*handles), compare_u64);

	if (!found || is_import(found->bo) || !(found->bo->alloc_flags & KFD_BO_WITH_CONTENTS))
		return log_error(-EINVAL,
				 "kfd %d: its page for events, handle 0x%" PRIx64
				 ", is no BO that RESTORE makes",
				 id, page);
	if (found->bo->size < EVENT_PAGE_SIZE)
		return log_error(-EINVAL,
				 "kfd %d: its page for events has %" PRIu64 " bytes, fewer than %u",
				 id, found->bo->size, EVENT_PAGE_SIZE);
	return 0;
}

struct kfd_priv image_priv_in(const CriuKfd *kfd, const struct kfd_layout *layout)
{
	return (struct kfd_priv){
		.bytes = kfd->priv_data.data,
		.size = kfd->priv_data.len,
		.num_devices = kfd->num_of_gpus,
		.num_bos = (uint32_t)kfd->n_bo_entries,
		.num_objects = kfd->num_of_objects,
		.layout = *layout,
	};
}

struct kfd_priv image_priv_of(const CriuKfd *kfd)
{
	struct kfd_priv priv = image_priv_in(kfd, &(struct kfd_layout){ 0 });

	priv.layout = kfd_priv_parse(&priv);
	return priv;
}

int image_priv_validate(int id, const CriuKfd *kfd)
{
	const struct kfd_priv priv = image_priv_of(kfd);
	_cleanup_free_ struct handle *handles = calloc((size_t)priv.num_bos + 1, sizeof(*handles));
	const uint64_t page = priv.layout.event_page;
	int ret;

	if (!handles)
		return log_error(-ENOMEM, "kfd %d: cannot verify", id);
	if (priv.layout.is_ambiguous)
		return log_error(
			-EINVAL,
			"kfd %d: its private data can be read in two ways; use another image", id);
	/* queue_check_task() refuses a layout that is not known. */
	if (!priv.layout.is_known)
		return 0;
	ret = list_handles(id, kfd, &priv, handles);
	return !ret && page ? check_event_page(id, handles, priv.num_bos, page) : ret;
}
