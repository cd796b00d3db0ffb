// SPDX-License-Identifier: GPL-2.0-only
/* The general half of sim_os.h with kernel calls: memory, time, waiting, the caller's memory and
 * address spaces. kmod_gem.c, kmod_drm.c and kmod_process.c have buffers, files and processes. */
#include <linux/anon_inodes.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "gcn.h"
#include "kmod.h"

void *sim_os_alloc(u64 size_bytes)
{
	return kvzalloc(size_bytes, GFP_KERNEL | __GFP_NOWARN);
}

void sim_os_free(void *memory)
{
	kvfree(memory);
}

void *sim_os_page_alloc(void)
{
	return (void *)__get_free_page(GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
}

void sim_os_page_free(void *page)
{
	free_page((unsigned long)page);
}

u64 sim_os_now_ns(void)
{
	return ktime_get_ns();
}

void sim_os_sleep_us(u32 us)
{
	if (us)
		fsleep(us);
}

static long jiffies_until(u64 deadline_ns)
{
	u64 now = ktime_get_ns();

	if (deadline_ns == SIM_FOREVER)
		return MAX_SCHEDULE_TIMEOUT;
	if (deadline_ns <= now)
		return 0;
	return (long)min_t(u64, nsecs_to_jiffies64(deadline_ns - now) + 1,
			   MAX_SCHEDULE_TIMEOUT - 1);
}

int sim_os_wait(struct sim_wait *wait, bool (*done)(void *arg), void *arg, u64 deadline_ns,
		bool interruptible)
{
	DEFINE_WAIT_FUNC(entry, woken_wake_function);
	int ret = 0;

	add_wait_queue(&wait->head, &entry);
	while (!done(arg)) {
		long timeout = jiffies_until(deadline_ns);

		if (!timeout)
			ret = -ETIME;
		else if (interruptible && signal_pending(current))
			ret = -ERESTARTSYS;
		if (ret < 0)
			break;
		wait_woken(&entry, interruptible ? TASK_INTERRUPTIBLE : TASK_UNINTERRUPTIBLE,
			   timeout);
	}
	remove_wait_queue(&wait->head, &entry);
	return ret;
}

void sim_os_wake(struct sim_wait *wait)
{
	wake_up_all(&wait->head);
}

int sim_os_copy_from_user(void *dst, u64 src, u64 size_bytes)
{
	return copy_from_user(dst, u64_to_user_ptr(src), size_bytes) ? -EFAULT : 0;
}

int sim_os_copy_to_user(u64 dst, const void *src, u64 size_bytes)
{
	return copy_to_user(u64_to_user_ptr(dst), src, size_bytes) ? -EFAULT : 0;
}

struct sim_mm *sim_os_mm_get(void)
{
	if (!current->mm)
		return NULL;
	mmgrab(current->mm);
	return (struct sim_mm *)current->mm;
}

void sim_os_mm_put(struct sim_mm *mm)
{
	mmdrop((struct mm_struct *)mm);
}

bool sim_os_mm_is_current(const struct sim_mm *mm)
{
	return (const struct mm_struct *)mm == current->mm;
}

static bool is_ordinary(const struct vm_area_struct *vma, bool write)
{
	if (vma->vm_flags & (VM_IO | VM_PFNMAP) || !(vma->vm_flags & VM_READ))
		return false;
	return !write || vma->vm_flags & VM_WRITE;
}

static int check_range(struct mm_struct *mm, u64 addr, u64 end, bool write)
{
	while (addr < end) {
		struct vm_area_struct *vma = find_vma(mm, addr);

		if (!vma || vma->vm_start > addr || !is_ordinary(vma, write))
			return -EFAULT;
		addr = vma->vm_end;
	}
	return 0;
}

int sim_os_mm_check(struct sim_mm *sim_mm, u64 addr, u64 size_bytes, bool write)
{
	struct mm_struct *mm = (struct mm_struct *)sim_mm;
	int ret;

	if (addr + size_bytes < addr)
		return -EFAULT;
	if (!mmget_not_zero(mm))
		return -ESRCH;
	mmap_read_lock(mm);
	ret = check_range(mm, addr, addr + size_bytes, write);
	mmap_read_unlock(mm);
	mmput_async(mm); /* never end an address space here: its notifier takes the model's locks */
	return ret;
}

bool sim_os_mm_has_file(struct sim_mm *sim_mm, u64 addr)
{
	struct mm_struct *mm = (struct mm_struct *)sim_mm;
	struct vm_area_struct *vma;
	bool has_file;

	if (!mmget_not_zero(mm))
		return false;
	mmap_read_lock(mm);
	vma = find_vma(mm, addr);
	has_file = vma && vma->vm_file;
	mmap_read_unlock(mm);
	mmput_async(mm);
	return has_file;
}

int sim_os_mm_pin(struct sim_mm *sim_mm, u64 addr, u32 count, bool write, struct sim_pin *ret_pin)
{
	struct mm_struct *mm = (struct mm_struct *)sim_mm;
	struct page **pages = (struct page **)ret_pin->cookie;
	long got;
	u32 i;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	mmap_read_lock(mm);
	got = pin_user_pages_remote(mm, addr, count, write ? FOLL_WRITE : 0, pages, NULL);
	mmap_read_unlock(mm);
	mmput_async(mm);
	if (got <= 0)
		return -EFAULT;
	for (i = 0; i < got; i++)
		ret_pin->page[i] = page_address(pages[i]);
	ret_pin->count = (u32)got;
	ret_pin->write = write;
	return 0;
}

void sim_os_mm_unpin(struct sim_pin *pin)
{
	unpin_user_pages_dirty_lock((struct page **)pin->cookie, pin->count, pin->write);
	pin->count = 0;
}

void sim_os_log(const char *message)
{
	pr_info_ratelimited("amdgpu_sim: %s\n", message);
}

static __poll_t smi_poll(struct file *file, struct poll_table_struct *table)
{
	return 0;
}

static const struct file_operations smi_fops = {
	.owner = THIS_MODULE,
	.poll = smi_poll,
	.llseek = noop_llseek,
};

int sim_os_smi_fd(void)
{
	return anon_inode_getfd("kfd_smi_ev", &smi_fops, NULL, O_RDWR);
}

/* The kernel computes no floats. */
int sim_gcn_float(enum sim_gcn_op op, u32 code, const u64 *src, u64 *ret_value)
{
	return -SIM_ENOTSUPP;
}
