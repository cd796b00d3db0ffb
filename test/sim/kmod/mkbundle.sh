#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Writes the machines of the given directories (topology trees as in sysfs) to stdout, in the form that model/topology.c
# reads. A process for each file would take a minute in the virtual machine.
set -eu

for dir; do
	printf 'machine %s\n' "$(basename "$dir")"
	find "$dir" -type f -printf '%P\n' | LC_ALL=C sort | LC_ALL=C awk -v dir="$dir" '{
		path = dir "/" $0
		text = ""
		while ((status = (getline line < path)) > 0)
			text = text line "\n"
		close(path)
		if (status < 0)
			exit 1
		printf "file %s %d\n%s", $0, length(text), text
	}'
done
