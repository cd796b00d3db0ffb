#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Writes the machines of the given directories (topology trees as in sysfs) to stdout, in the form that model/topology.c reads.
set -eu

for dir; do
	printf 'machine %s\n' "$(basename "$dir")"
	find "$dir" -type f -printf '%P %s\n' | LC_ALL=C sort | while read -r path size; do
		printf 'file %s %s\n' "$path" "$size"
		cat "$dir/$path"
	done
done
