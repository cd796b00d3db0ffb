// SPDX-License-Identifier: GPL-2.0-only
/* The topology below the kfd device in sysfs: a kobject for each directory, an attribute for each
 * file of the model's list. The model decides who may read a file, and has its contents. */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "kmod.h"

struct entry {
	struct kobj_attribute attribute;
	const struct sim_topology_file *file;
	struct kobject *parent;
};

struct directory {
	char path[SIM_TOPOLOGY_PATH];
	struct kobject *kobject;
};

struct kmod_sysfs {
	struct directory *directories; /* parents before children */
	u32 num_directories, max_directories;
	struct entry *entries;
	u32 num_entries;
};

static ssize_t show(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	struct entry *entry = container_of(attribute, struct entry, attribute);

	return sim_topology_show(entry->file, text, PAGE_SIZE);
}

static struct kobject *find_directory(struct kmod_sysfs *sysfs, const char *path, size_t length)
{
	u32 i;

	for (i = 0; i < sysfs->num_directories; i++)
		if (strlen(sysfs->directories[i].path) == length &&
		    strncmp(sysfs->directories[i].path, path, length) == 0)
			return sysfs->directories[i].kobject;
	return NULL;
}

static struct kobject *add_directory(struct kmod_sysfs *sysfs, struct kobject *parent,
				     const char *path, size_t length, const char *name)
{
	struct directory *directory = &sysfs->directories[sysfs->num_directories];
	struct kobject *kobject;

	if (sysfs->num_directories == sysfs->max_directories)
		return NULL;
	kobject = kobject_create_and_add(name, parent);
	if (!kobject)
		return NULL;
	memcpy(directory->path, path, length);
	directory->path[length] = '\0';
	directory->kobject = kobject;
	sysfs->num_directories++;
	return kobject;
}

/* The directory of a file, made with all its parents. Path "" is topology/ itself. */
static struct kobject *get_directory(struct kmod_sysfs *sysfs, const char *path, size_t length)
{
	struct kobject *kobject = find_directory(sysfs, path, length), *parent;
	char name[SIM_TOPOLOGY_PATH];
	size_t parent_length = length;

	if (kobject || !length)
		return kobject;
	while (parent_length && path[parent_length - 1] != '/')
		parent_length--;
	parent = get_directory(sysfs, path, parent_length ? parent_length - 1 : 0);
	if (!parent)
		return NULL;
	strscpy(name, path + parent_length, min(sizeof(name), length - parent_length + 1));
	return add_directory(sysfs, parent, path, length, name);
}

static int add_file(struct kmod_sysfs *sysfs, const struct sim_topology_file *file)
{
	const char *slash = strrchr(file->path, '/');
	struct entry *entry = &sysfs->entries[sysfs->num_entries];
	struct kobject *parent = get_directory(sysfs, file->path, slash ? slash - file->path : 0);
	int ret;

	if (!parent)
		return -ENOMEM;
	entry->file = file;
	entry->parent = parent;
	sysfs_attr_init(&entry->attribute.attr);
	entry->attribute.attr.name = slash ? slash + 1 : file->path;
	entry->attribute.attr.mode = 0444;
	entry->attribute.show = show;
	ret = sysfs_create_file(parent, &entry->attribute.attr);
	if (ret == 0)
		sysfs->num_entries++;
	return ret;
}

/* Directories that the kernel makes even if they are empty. */
static int add_empty_directories(struct kmod_sysfs *sysfs, u32 nodes)
{
	static const char *const names[] = { "mem_banks", "caches", "io_links", "p2p_links",
					     "perf" };
	char path[SIM_TOPOLOGY_PATH];
	u32 node, i;

	for (node = 0; node < nodes; node++) {
		for (i = 0; i < ARRAY_SIZE(names); i++) {
			int length = snprintf(path, sizeof(path), "nodes/%u/%s", node, names[i]);

			if (!get_directory(sysfs, path, (size_t)length))
				return -ENOMEM;
		}
	}
	return 0;
}

int kmod_topology_init(struct kmod *kmod)
{
	const struct sim_topology *topology = &kmod->topology;
	struct kmod_sysfs *sysfs = kzalloc(sizeof(*sysfs), GFP_KERNEL);
	u32 i;
	int ret;

	if (!sysfs)
		return -ENOMEM;
	kmod->sysfs = sysfs;
	sysfs->max_directories = topology->count + 6 * kmod->sim.num_nodes + 2;
	sysfs->directories =
		kvcalloc(sysfs->max_directories, sizeof(*sysfs->directories), GFP_KERNEL);
	sysfs->entries = kvcalloc(topology->count, sizeof(*sysfs->entries), GFP_KERNEL);
	if (!sysfs->directories || !sysfs->entries)
		return -ENOMEM;
	if (!add_directory(sysfs, &kmod->kfd->kobj, "", 0, "topology"))
		return -ENOMEM;
	ret = add_empty_directories(sysfs, kmod->sim.num_nodes);
	for (i = 0; ret == 0 && i < topology->count; i++)
		ret = add_file(sysfs, &topology->files[i]);
	return ret;
}

void kmod_topology_done(struct kmod *kmod)
{
	struct kmod_sysfs *sysfs = kmod->sysfs;
	u32 i;

	if (!sysfs)
		return;
	for (i = 0; i < sysfs->num_entries; i++)
		sysfs_remove_file(sysfs->entries[i].parent, &sysfs->entries[i].attribute.attr);
	for (i = sysfs->num_directories; i-- > 0;) {
		kobject_del(sysfs->directories[i].kobject);
		kobject_put(sysfs->directories[i].kobject);
	}
	kvfree(sysfs->entries);
	kvfree(sysfs->directories);
	kfree(sysfs);
	kmod->sysfs = NULL;
}
