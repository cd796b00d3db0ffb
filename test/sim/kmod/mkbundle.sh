#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Writes the machines of the given directories (topology trees as in sysfs) to stdout, in the form that model/topology.c reads.
set -eu

for dir; do
	printf 'machine %s\n' "$(basename "$dir")"
	(cd "$dir" && find . -type f | LC_ALL=C sort) | while read -r path; do
		printf 'file %s %s\n' "${path#./}" "$(wc -c <"$dir/$path")"
		cat "$dir/$path"
	done
done
