#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Makes a tree of what a program sees of a machine's GPUs: mkroot.sh TOPOLOGY ROOT. TOPOLOGY is a directory as
# /sys/class/kfd/kfd/topology is one.
set -eu
topology=$1
root=$2
kfd_major=510

rm -rf "$root"
mkdir -p "$root/dev/dri" "$root/sys/class/kfd/kfd/proc" "$root/sys/devices/virtual/kfd"
ln -s ../../../class/kfd/kfd "$root/sys/devices/virtual/kfd/kfd"
: > "$root/dev/kfd"
echo "$kfd_major:0" > "$root/sys/class/kfd/kfd/dev"
cp -R "$topology" "$root/sys/class/kfd/kfd/topology"
chmod -R u+w "$root/sys/class/kfd/kfd/topology"

property() { # NODE NAME: 0 if older kernels do not have it
	sed -n "s/^$2 //p" "$1/properties" | grep . || echo 0
}

# render MINOR DRIVER: a node, and what the kernel says of it
render() {
	device=$root/sys/dev/char/226:$1/device

	mkdir -p "$device/drm/card$(($1 - 128))" "$device/drm/renderD$1" "$root/sys/drivers/$2"
	ln -s "../../../../drivers/$2" "$device/driver"
	: > "$root/dev/dri/renderD$1"
}

# A simulated driver asks no device cgroup, so the process sees none.
mkdir -p "$root/proc/self"
echo "1:name=systemd:/" > "$root/proc/self/cgroup"

minors=
last=127
for node in "$root"/sys/class/kfd/kfd/topology/nodes/*; do
	# directories that the kernel makes even if there is nothing in them
	mkdir -p "$node/mem_banks" "$node/caches" "$node/io_links" "$node/p2p_links" "$node/perf"
	[ "$(cat "$node/gpu_id")" != 0 ] || continue
	minor=$(property "$node" drm_render_minor)
	minors="$minors $minor"
	[ "$minor" -le "$last" ] || last=$minor
	render "$minor" amdgpu
done
# minors below, which GPUs of another vendor have
minor=128
while [ "$minor" -lt "$last" ]; do
	case "$minors " in
	*" $minor "*) ;;
	*) render "$minor" foreign_sim ;;
	esac
	minor=$((minor + 1))
done
