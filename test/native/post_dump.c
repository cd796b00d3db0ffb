// SPDX-License-Identifier: GPL-2.0-only
/* Notes the images at the post-dump script and compares them at the end of the dump. Of a large
 * image it reads samples, so that dumps can be measured with the script. */
#include "post_dump.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "streamer.h"

#define PREFIX "amdgpu-"

/* Files up to this size are read whole; of larger ones, a block in each step. */
#define WHOLE (16 << 20)
#define STEP  (1 << 20)
#define BLOCK 4096

struct post_dump_image {
	char name[256];
	off_t size;
	uint64_t sum;
};

/* FNV-1a, a word at a time. */
static uint64_t add(uint64_t sum, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum = (sum ^ words[i]) * 0x100000001b3;
	return sum;
}

static uint64_t sum_of(int fd, off_t size)
{
	uint64_t words[BLOCK / sizeof(uint64_t)], sum = 0xcbf29ce484222325;
	const off_t step = size > WHOLE ? STEP : BLOCK;

	for (off_t at = 0; at < size; at += step) {
		memset(words, 0, sizeof(words));
		if (pread(fd, words, sizeof(words), at) < 0)
			return 0;
		sum = add(sum, words, BLOCK / sizeof(uint64_t));
	}
	return sum;
}

static int note(int directory, const char *name, struct post_dump *script)
{
	struct post_dump_image *images =
		realloc(script->images, (script->count + 1) * sizeof(*images));
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	struct stat stat;

	if (images)
		script->images = images;
	if (!images || fd < 0 || fstat(fd, &stat) < 0)
		return -EIO;
	images += script->count++;
	(void)snprintf(images->name, sizeof(images->name), "%s", name);
	images->size = stat.st_size;
	images->sum = sum_of(fd, stat.st_size);
	(void)close(fd);
	return 0;
}

static int note_all(int image_dir, struct post_dump *script)
{
	int fd = openat(image_dir, STREAMER_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	struct dirent *entry;
	DIR *stream;

	if (fd < 0)
		fd = openat(image_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else
		streamer_settle();
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream)
		return -EIO;
	while (!ret && (entry = readdir(stream))) {
		if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			ret = note(fd, entry->d_name, script);
	}
	(void)closedir(stream);
	return ret;
}

int post_dump_run(int image_dir, struct post_dump *script)
{
	script->ran = 1;
	return note_all(image_dir, script);
}

static const struct post_dump_image *find(const struct post_dump *script, const char *name)
{
	for (size_t i = 0; i < script->count; i++) {
		if (!strcmp(script->images[i].name, name))
			return &script->images[i];
	}
	return NULL;
}

static int compare(const struct post_dump *seen, const struct post_dump *now)
{
	int ret = seen->count > now->count ? -EIO : 0;

	if (ret)
		printf("the post-dump script saw images that are gone\n");
	for (size_t i = 0; i < now->count; i++) {
		const struct post_dump_image *image = &now->images[i],
					     *was = find(seen, image->name);

		if (was && was->size == image->size && was->sum == image->sum)
			continue;
		printf("the post-dump script %s %s\n", was ? "saw another" : "did not see",
		       image->name);
		ret = -EIO;
	}
	return ret;
}

int post_dump_check(int image_dir, int ret, struct post_dump *script)
{
	struct post_dump now = { 0 };
	int different = 0;

	if (script->ran && ret)
		printf("script ran for a dump that failed\n");
	if (script->ran && !ret)
		different = note_all(image_dir, &now) ? -EIO : compare(script, &now);
	free(script->images);
	free(now.images);
	return ret ? ret : different;
}

void post_dump_forget(struct post_dump *script)
{
	free(script->images);
	*script = (struct post_dump){ 0 };
}
