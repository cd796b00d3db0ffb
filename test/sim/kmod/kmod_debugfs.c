// SPDX-License-Identifier: GPL-2.0-only
/* The test's view of the simulator and its switches, in debugfs. The README beside the model
 * describes the files. */
#include <linux/debugfs.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "kernels.h"
#include "kmod.h"

#define TEXT_BYTES 16384

/* A file whose text is printed at once, and that accepts a line. */
struct text_file {
	const char *name;
	int (*print)(struct kmod *kmod, char *text, u32 size);
	int (*write)(struct kmod *kmod, char *line);
};

static int print_violations(struct kmod *kmod, char *text, u32 size)
{
	return sim_violations_print(&kmod->sim.violations, text, size);
}

static int write_violations(struct kmod *kmod, char *line)
{
	sim_violations_clear(&kmod->sim.violations);
	return 0;
}

static int print_objects(struct kmod *kmod, char *text, u32 size)
{
	/* do not count processes that have just ended, nor the files that they had */
	flush_workqueue(kmod->process_wq);
	flush_workqueue(kmod->process_wq);
	flush_delayed_fput();
	return sim_print_counts(&kmod->sim, 0, SIM_COUNT_OBJECTS, text, size);
}

static int print_stats(struct kmod *kmod, char *text, u32 size)
{
	return sim_print_counts(&kmod->sim, SIM_COUNT_OBJECTS, SIM_COUNTS, text, size);
}

static int print_faults(struct kmod *kmod, char *text, u32 size)
{
	return sim_faults_print(&kmod->sim.faults, text, size);
}

static int write_faults(struct kmod *kmod, char *line)
{
	return sim_faults_command(&kmod->sim.faults, line);
}

static int print_processes(struct kmod *kmod, char *text, u32 size)
{
	struct kmod_process *process;
	u32 used = 0;

	text[0] = '\0';
	mutex_lock(&kmod->processes_lock);
	list_for_each_entry(process, &kmod->processes, link)
	{
		used += scnprintf(text + used, size - used, "pid=%d comm=%s ",
				  process->lead_thread->pid, process->lead_thread->comm);
		used += sim_process_print(&process->process, text + used, size - used);
		used += scnprintf(text + used, size - used, "\n");
		if (size - used < 256)
			break;
	}
	mutex_unlock(&kmod->processes_lock);
	return (int)used;
}

static int print_hidden(struct kmod *kmod, char *text, u32 size)
{
	u32 used = 0, i;

	for (i = 0; i < kmod->sim.num_gpus; i++)
		if (kmod->sim.gpus[i].hidden)
			used += scnprintf(text + used, size - used, "%s%u", used ? "," : "", i);
	return (int)(used + scnprintf(text + used, size - used, "\n"));
}

static int write_hidden(struct kmod *kmod, char *line)
{
	return kmod_hide(kmod, line);
}

static int print_kernel(struct kmod *kmod, char *text, u32 size)
{
	return (int)scnprintf(text, size, "%s\n", sim_kernel_name(&kmod->sim));
}

static int write_kernel(struct kmod *kmod, char *line)
{
	return sim_kernel_set(&kmod->sim, line);
}

static const struct text_file text_files[] = {
	{ "violations", print_violations, write_violations },
	{ "processes", print_processes, NULL },
	{ "objects", print_objects, NULL },
	{ "stats", print_stats, NULL },
	{ "faults", print_faults, write_faults },
	{ "hidden", print_hidden, write_hidden },
	{ "kernel", print_kernel, write_kernel },
};

static int text_show(struct seq_file *seq, void *unused)
{
	const struct text_file *file = seq->private;
	char *text = kvzalloc(TEXT_BYTES, GFP_KERNEL);

	if (!text)
		return -ENOMEM;
	seq_write(seq, text, (size_t)file->print(kmod_machine, text, TEXT_BYTES));
	kvfree(text);
	return 0;
}

static int text_open(struct inode *inode, struct file *file)
{
	return single_open_size(file, text_show, inode->i_private, TEXT_BYTES);
}

static ssize_t text_write(struct file *file, const char __user *user, size_t size, loff_t *position)
{
	const struct text_file *text_file = file_inode(file)->i_private;
	char line[128];
	int ret;

	if (!text_file->write || size >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, user, size))
		return -EFAULT;
	line[size] = '\0';
	ret = text_file->write(kmod_machine, strim(line));
	return ret < 0 ? ret : (ssize_t)size;
}

static const struct file_operations text_fops = {
	.owner = THIS_MODULE,
	.open = text_open,
	.read = seq_read,
	.write = text_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int knob_get(void *data, u64 *ret_value)
{
	*ret_value = (u64)sim_knob_get(&kmod_machine->sim, data);
	return 0;
}

static int knob_set(void *data, u64 value)
{
	return sim_knob_set(&kmod_machine->sim, data, (s64)value);
}

DEFINE_DEBUGFS_ATTRIBUTE_SIGNED(knob_fops, knob_get, knob_set, "%lld\n");

void kmod_debugfs_init(struct kmod *kmod)
{
	const struct sim_knob *knob;
	u32 i;

	kmod->debugfs = debugfs_create_dir("amdgpu_sim", NULL);
	for (i = 0; i < ARRAY_SIZE(text_files); i++)
		debugfs_create_file(text_files[i].name, 0600, kmod->debugfs, (void *)&text_files[i],
				    &text_fops);
	for (i = 0; (knob = sim_knob_at(i)); i++)
		debugfs_create_file_unsafe(sim_knob_name(knob), 0600, kmod->debugfs, (void *)knob,
					   &knob_fops);
}

void kmod_debugfs_done(struct kmod *kmod)
{
	debugfs_remove_recursive(kmod->debugfs);
	kmod->debugfs = NULL;
}
