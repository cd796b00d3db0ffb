// SPDX-License-Identifier: GPL-2.0-only
/* amdgpu-device: the emulated GPUs of one QEMU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asic.h"
#include "board.h"

#define DEFAULT_VRAM_MIB 4096ull
#define LEAST_VRAM_MIB   256ull
#define MOST_VRAM_MIB    (64ull << 10) /* an MI210 */

struct options {
	const char *sockets[HIVE_MAX_NODES]; /* one for each GPU */
	unsigned int num_gpus;
	const char *control, *log, *violations;
	const struct asic *asic;
	uint64_t vram_mib;
	enum report_level level;
	bool keep; /* wait for the next QEMU when one has gone */
};

static int usage(void)
{
	(void)fprintf(stderr,
		      "usage: amdgpu-device -s SOCKET... -c CONTROL_SOCKET [-m VRAM_MIB] [-l LOG] "
		      "[-v LEVEL] [-w VIOLATIONS_FILE] [-t CHIP] [-k]\n"
		      "SOCKET: one for each GPU, 16 at most; VRAM_MIB: a power of two from 256 to "
		      "65536; LEVEL: 0 to 3; CHIP: mi210 or mi300x\n");
	return 2;
}

static const struct asic *find_asic(const char *name)
{
	static const struct asic *const asics[] = { &asic_mi210, &asic_mi300x };
	size_t i;

	for (i = 0; i < sizeof(asics) / sizeof(asics[0]); i++)
		if (strcmp(asics[i]->name, name) == 0)
			return asics[i];
	return NULL;
}

static int parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	return errno || end == text || *end || *ret_value < least || *ret_value > most ? -EINVAL
										       : 0;
}

static int parse_option(struct options *options, int option, const char *value)
{
	uint64_t level;
	int ret = 0;

	switch (option) {
	case 's':
		if (options->num_gpus == HIVE_MAX_NODES)
			return -EINVAL;
		options->sockets[options->num_gpus++] = value;
		return 0;
	case 'c':
		options->control = value;
		return 0;
	case 'l':
		options->log = value;
		return 0;
	case 'w':
		options->violations = value;
		return 0;
	case 't':
		options->asic = find_asic(value);
		return options->asic ? 0 : -EINVAL;
	case 'k':
		options->keep = true;
		return 0;
	case 'm':
		ret = parse_number(value, LEAST_VRAM_MIB, MOST_VRAM_MIB, &options->vram_mib);
		return options->vram_mib & (options->vram_mib - 1) ? -EINVAL : ret;
	case 'v':
		ret = parse_number(value, REPORT_ALWAYS, REPORT_REGISTERS, &level);
		options->level = (enum report_level)level;
		return ret;
	default:
		return -EINVAL;
	}
}

static int parse_options(int argc, char **argv, struct options *options)
{
	int option, ret = 0;

	while (ret == 0 && (option = getopt(argc, argv, "s:c:l:w:m:v:t:k")) >= 0)
		ret = parse_option(options, option, optarg);
	if (ret < 0 || optind != argc || !options->num_gpus || !options->control)
		return -EINVAL;
	/* hive.c has the registers of the MI210 */
	return options->num_gpus > 1 && options->asic != &asic_mi210 ? -EINVAL : 0;
}

static int run(struct board *board, const struct options *options)
{
	int ret;

	board->files.level = options->level;
	ret = report_open(&board->files, options->log, options->violations);
	if (ret == 0)
		ret = board_listen(board, options->sockets, options->control);
	if (ret == 0)
		ret = board_serve(board);
	while (ret == 0 && options->keep)
		ret = board_serve(board);
	return ret;
}

/* gcn/ is compiled for processors that have these (GCN_TARGET in rules.mk). */
static bool can_interpret(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
	       __builtin_cpu_supports("fma");
#else
	return true;
#endif
}

int main(int argc, char **argv)
{
	struct options options = { .asic = &asic_mi210, .vram_mib = DEFAULT_VRAM_MIB };
	struct board board;
	int ret;

	if (parse_options(argc, argv, &options) < 0)
		return usage();
	if (!can_interpret()) {
		(void)fprintf(stderr, "amdgpu-device: this processor has no AVX2, BMI2 or FMA\n");
		return 1;
	}
	ret = board_init(&board, options.asic, options.num_gpus, options.vram_mib << 20);
	if (ret == 0)
		ret = run(&board, &options);
	if (ret < 0)
		(void)fprintf(stderr, "amdgpu-device: %s: %s\n", options.sockets[0],
			      strerror(-ret));
	board_done(&board);
	report_close(&board.files);
	return ret < 0;
}
