#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Writes the machine of a directory (a topology tree as in sysfs) to stdout, in the form that model/topology.c reads.
set -eu
dir=$1

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
