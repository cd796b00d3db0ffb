// SPDX-License-Identifier: GPL-2.0-only
/* hold FILE...: keeps the FILEs open, without opening their devices, until its standard input ends. It prints a line
 * when it has them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char byte;

	for (int i = 1; i < argc; i++) {
		if (open(argv[i], O_PATH) < 0) {
			perror(argv[i]);
			return 1;
		}
	}
	(void)puts("ready");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
