#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Makes a tree of what a program sees of a machine's GPUs: mkroot.sh TOPOLOGY ROOT. TOPOLOGY is a directory as
# /sys/class/kfd/kfd/topology is one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
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
sh "$here/../caches.sh" "$root/sys/class/kfd/kfd/topology"
sh "$here/../mkbundle.sh" "$topology" > "$root/bundle"

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

# nodes_of DEVICE MINOR: the device's nodes in /sys/class/drm
nodes_of() {
	mkdir -p "$root/sys/class/drm"
	for name in "card$(($2 - 128))" "renderD$2"; do
		mkdir -p "$1/drm/$name"
		ln -s ../.. "$1/drm/$name/device"
		ln -s "../../${1#"$root/sys/"}/drm/$name" "$root/sys/class/drm/$name"
	done
}

# card NODE MINOR: what /sys/class/drm says of a GPU. Where it is on the bus says the link, as drm_sysfs.c makes it; of
# the rest vendor and device are pci-sysfs.c's, vbios_version is amdgpu_atombios.c's, and unique_id and the monitor are
# amdgpu_pm.c's (Linux 6.12). The monitor's sensors have labels, without which rocm-smi 5.2.3 fails, and no values.
# Memory is amdgpu_vram_mgr.c's; none of it is used, because a process that only reads this has a machine of its own.
card() {
	location=$(property "$1" location_id)
	device=$root/sys/devices/pci0000:00/$(printf '%04x:%02x:%02x.%d' "$(property "$1" domain)" $((location >> 8)) \
		$((location >> 3 & 31)) $((location & 7)))
	monitor=$device/hwmon/hwmon$(($2 - 128))
	mkdir -p "$monitor"
	echo amdgpu > "$monitor/name"
	echo edge > "$monitor/temp1_label"
	echo junction > "$monitor/temp2_label"
	echo mem > "$monitor/temp3_label"
	echo vddgfx > "$monitor/in0_label"
	printf '0x%04x\n' "$(property "$1" vendor_id)" > "$device/vendor"
	printf '0x%04x\n' "$(property "$1" device_id)" > "$device/device"
	printf '%016x\n' "$(property "$1" unique_id)" > "$device/unique_id"
	cat "$1"/mem_banks/*/properties | sed -n 's/^size_in_bytes //p' | head -n 1 > "$device/mem_info_vram_total"
	echo 0 > "$device/mem_info_vram_used"
	echo 113-SIMULATED-000 > "$device/vbios_version"
	nodes_of "$device" "$2"
}

# A simulated driver asks no device cgroup, so the process sees none.
mkdir -p "$root/proc/self"
echo "1:name=systemd:/" > "$root/proc/self/cgroup"

# That the driver is loaded: kernel/module/procfs.c, m_show(), and kernel/module/sysfs.c, Linux 6.12.
mkdir -p "$root/proc" "$root/sys/module/amdgpu/holders"
echo "amdgpu 0 0 - Live 0x0000000000000000" > "$root/proc/modules"
echo live > "$root/sys/module/amdgpu/initstate"
echo 0 > "$root/sys/module/amdgpu/refcnt"
echo 0 > "$root/sys/module/amdgpu/coresize"

# cache DIRECTORY LEVEL TYPE KIB CPU: a cache of one CPU (drivers/base/cacheinfo.c, Linux 6.12)
cache() {
	mkdir -p "$1"
	echo "$2" > "$1/level"
	echo "$3" > "$1/type"
	echo "$4K" > "$1/size"
	echo 64 > "$1/coherency_line_size"
	echo 1 > "$1/physical_line_partition"
	echo 8 > "$1/ways_of_associativity"
	echo $(($4 * 2)) > "$1/number_of_sets"
	echo "$5" > "$1/shared_cpu_list"
	# groups of 32 CPUs, the highest first
	printf '%08x%s\n' $((1 << ($5 % 32))) "$(seq $(($5 / 32)) | sed 's/.*/,00000000/' | tr -d '\n')" > "$1/shared_cpu_map"
}

# cpu DIRECTORY NUMBER: its caches, which are not those of the host: not every host shows some, and libhsakmt 5.2.3 lists
# no GPU without them
cpu() {
	cache "$1/cache/index0" 1 Data 32 "$2"
	cache "$1/cache/index1" 1 Instruction 32 "$2"
	cache "$1/cache/index2" 2 Unified 512 "$2"
}

# numa NODE NUMBER OF: a node of memory (drivers/base/node.c, Linux 6.12) with each OFth of the CPUs that there are, and
# with one if these are fewer: libhsakmt 5.2.3 lists no GPU if a node has none
numa() {
	bytes=$(cat "$1"/mem_banks/*/properties 2> /dev/null | sed -n 's/^size_in_bytes //p' | head -n 1)
	kib=$((${bytes:-0} / 1024))
	directory=$root/sys/devices/system/node/node$2
	mkdir -p "$directory"
	printf 'Node %s MemTotal: %15s kB\nNode %s MemFree:  %15s kB\n' "$2" $kib "$2" $kib > "$directory/meminfo"
	list=
	for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
		cpu=${cpu##*/cpu}
		[ $((cpu % $3)) = "$2" ] || continue
		cpu "$directory/cpu$cpu" "$cpu"
		list=$list${list:+,}$cpu
	done
	[ -n "$list" ] || cpu "$directory/cpu${list:=0}" 0
	echo "$list" > "$directory/cpulist"
}

cpu_nodes=$(cat "$root"/sys/class/kfd/kfd/topology/nodes/*/gpu_id | grep -cx 0 || :)
cpu_node=0
minors=
last=127
for node in "$root"/sys/class/kfd/kfd/topology/nodes/*; do
	# directories that the kernel makes even if there is nothing in them
	mkdir -p "$node/mem_banks" "$node/caches" "$node/io_links" "$node/p2p_links" "$node/perf"
	if [ "$(cat "$node/gpu_id")" = 0 ]; then
		numa "$node" $cpu_node "$cpu_nodes"
		cpu_node=$((cpu_node + 1))
		continue
	fi
	minor=$(property "$node" drm_render_minor)
	minors="$minors $minor"
	[ "$minor" -le "$last" ] || last=$minor
	render "$minor" amdgpu
	card "$node" "$minor"
done
# minors below, which GPUs of another vendor have
minor=128
while [ "$minor" -lt "$last" ]; do
	case "$minors " in
	*" $minor "*) ;;
	*)
		render "$minor" foreign_sim
		nodes_of "$root/sys/devices/platform/foreign_sim.$minor" "$minor"
		;;
	esac
	minor=$((minor + 1))
done
