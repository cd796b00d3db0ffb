// SPDX-License-Identifier: GPL-2.0-only
/* make-firmware DIR: writes the firmware files that amdgpu wants for both chips, in DIR/amdgpu.
 * They have headers, and zeros instead of microcode, because the emulated engines need none. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER_BYTES 256u
#define UCODE_BYTES  4096u

/* amdgpu_ucode.h cannot be compiled outside of the kernel. */
struct header {
	uint32_t size_bytes, header_bytes;
	uint16_t major, minor, ip_major, ip_minor;
	uint32_t version, ucode_bytes, ucode_offset, crc32;
	uint32_t feature_version;
};

struct file {
	const char *name;
	struct header header;
	uint32_t jump_table_at; /* dword of the header: offset and size in dwords */
};

#define FILE_OF(file_name, header_major, ucode_version, feature, jump_table) \
	{                                                                    \
		.name = (file_name),                                         \
		.header = { .size_bytes = HEADER_BYTES + UCODE_BYTES,        \
			    .header_bytes = HEADER_BYTES,                    \
			    .major = (header_major),                         \
			    .ip_major = 9,                                   \
			    .ip_minor = 4,                                   \
			    .version = (ucode_version),                      \
			    .ucode_bytes = UCODE_BYTES,                      \
			    .ucode_offset = HEADER_BYTES,                    \
			    .feature_version = (feature) },                  \
		.jump_table_at = (jump_table),                               \
	}

/* From version 88 of the MEC on, drivers add a cleaner shader. Lists of the RLC are empty. */
static const struct file files[] = {
	FILE_OF("aldebaran_mec.bin", 1, 78, 50, 9), FILE_OF("aldebaran_mec2.bin", 1, 78, 50, 9),
	FILE_OF("aldebaran_rlc.bin", 2, 17, 1, 9),  FILE_OF("aldebaran_sdma.bin", 1, 8, 50, 10),
	FILE_OF("gc_9_4_3_mec.bin", 1, 78, 50, 9),  FILE_OF("gc_9_4_3_rlc.bin", 2, 17, 1, 9),
	FILE_OF("sdma_4_4_2.bin", 1, 8, 50, 10),
};

static int write_file(const char *folder, const struct file *file)
{
	uint32_t words[(HEADER_BYTES + UCODE_BYTES) / 4] = { 0 };
	char path[4096];
	size_t written;
	FILE *out;
	int n = snprintf(path, sizeof(path), "%s/amdgpu/%s", folder, file->name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(words, &file->header, sizeof(file->header));
	words[file->jump_table_at + 1] = 16;
	out = fopen(path, "wbe");
	if (!out)
		return -errno;
	written = fwrite(words, 1, sizeof(words), out);
	if (fclose(out) || written != sizeof(words))
		return -EIO;
	return 0;
}

static int make_folder(const char *path)
{
	return mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
}

static int make_folders(const char *folder)
{
	char path[4096];
	int n = snprintf(path, sizeof(path), "%s/amdgpu", folder), ret;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	ret = make_folder(folder);
	return ret < 0 ? ret : make_folder(path);
}

int main(int argc, char **argv)
{
	size_t i;
	int ret;

	if (argc != 2) {
		(void)fprintf(stderr, "usage: make-firmware DIR\n");
		return 2;
	}
	ret = make_folders(argv[1]);
	if (ret < 0) {
		(void)fprintf(stderr, "make-firmware: cannot make %s/amdgpu: %s\n", argv[1],
			      strerror(-ret));
		return 1;
	}
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		ret = write_file(argv[1], &files[i]);
		if (ret < 0) {
			(void)fprintf(stderr, "make-firmware: cannot write %s/amdgpu/%s: %s\n",
				      argv[1], files[i].name, strerror(-ret));
			return 1;
		}
	}
	return 0;
}
