# SPDX-License-Identifier: GPL-2.0-only
#
# Compares what stock rocminfo says with the data of a machine of gfx90a (a tree as /sys/class/kfd/kfd/topology). The caches
# are those of test/sim/caches.sh.

# What rocminfo says on standard input: NODE KEY VALUE a line, with a pool as its segment and size in KiB. The hexadecimal
# form of a number is left out, and so is what only the host decides (names and caches of CPUs). So are the pools of
# extended scope, which ROCr has from 6.0 on beside each of the others.
said() {
	awk '
	function fact(key, value) {
		sub(/\(0x[0-9a-f]*\)/, "", value)
		sub(/ *(KB)? *$/, "", value)
		lines[++count] = key " " value
	}
	function end_agent(    i) {
		for (i = 1; i <= count; i++)
			if (lines[i] !~ /EXTENDED/ && (!cpu || lines[i] !~ /^(Name|Marketing Name|Uuid|Cache|BDFID|Chip)/))
				print node, lines[i]
		count = 0
	}
	{ value = $0; sub(/^[^:]*: */, "", value) }
	/^Agent / || /^\*\*\* Done/ { end_agent(); cpu = 0 }
	/^  Node:/ { node = value + 0 }
	/^  Device Type:/ { cpu = value ~ /CPU/ }
	/^  (Name|Marketing Name|Uuid|Device Type|Chip ID|Max Clock|BDFID|Compute Unit|SIMDs|Wavefront Size):?/ {
		key = $0; sub(/^  /, "", key); sub(/:.*/, "", key)
		fact(key, value)
	}
	/^    L[0-9]:/ { fact("Cache " $1, value) }
	/^      Segment:/ { sub(/ *$/, "", value); segment = value }
	/^      Size:/ { fact("Pool " segment, value) }'
}

property() { # NODE NAME [FOLDER]
	sed -n "s/^$2 //p" "$machine/nodes/$1/${3-.}/properties"
}

# What ROCr has to make of it: gfx and the three parts of gfx_target_version, the last in hexadecimal.
gfx_name() {
	printf 'gfx%d%d%x' $(($1 / 10000)) $(($1 / 100 % 100)) $(($1 % 100))
}

# GPUs of a hive have a pool of fine-grained VRAM, too.
gpu_facts() { # NODE
	local device kib

	device=$(property "$1" device_id)
	kib=$(($(property "$1" size_in_bytes mem_banks/0) / 1024))
	echo "Name $(gfx_name "$(property "$1" gfx_target_version)")"
	printf 'Uuid GPU-%016x\n' "$(property "$1" unique_id)"
	echo "Marketing Name $(sed -n "s/^$(printf %X "$device"),.*,[[:space:]]*//p" /usr/share/libdrm/amdgpu.ids)"
	echo "Device Type GPU"
	# as kfd_crat.c says of gfx90a (Linux 6.12)
	echo "Cache L1: 16"
	echo "Cache L2: 8192"
	echo "Chip ID $device"
	echo "Max Clock Freq. (MHz) $(property "$1" max_engine_clk_fcompute)"
	echo "BDFID $(property "$1" location_id)"
	echo "Compute Unit $(($(property "$1" simd_count) / $(property "$1" simd_per_cu)))"
	echo "SIMDs per CU $(property "$1" simd_per_cu)"
	echo "Wavefront Size $(property "$1" wave_front_size)"
	echo "Pool GLOBAL; FLAGS: COARSE GRAINED $kib"
	[ "$(property "$1" hive_id)" = 0 ] || echo "Pool GLOBAL; FLAGS: FINE GRAINED $kib"
	echo "Pool GROUP $(property "$1" lds_size_in_kb)"
}

cpu_facts() { # NODE
	local kib flags

	kib=$(($(property "$1" size_in_bytes mem_banks/0) / 1024))
	echo "Device Type CPU"
	echo "Max Clock Freq. (MHz) $(property "$1" max_engine_clk_ccompute)"
	echo "Compute Unit $(property "$1" cpu_cores_count)"
	echo "SIMDs per CU 0"
	for flags in "FINE GRAINED" "KERNARG, FINE GRAINED" "COARSE GRAINED"; do
		echo "Pool GLOBAL; FLAGS: $flags $kib"
	done
}

expected() {
	local node id

	for ((node = 0; ; node++)); do
		id=$(cat "$machine/nodes/$node/gpu_id" 2> /dev/null) || return 0
		if [ "$id" = 0 ]; then cpu_facts $node; else gpu_facts $node; fi | sed "s/^/$node /"
	done
}

# rocminfo_differs MACHINE FILE: whether rocminfo has written something else into FILE than the tree MACHINE says, and what.
rocminfo_differs() {
	local machine=$1

	! diff <(expected) <(said < "$2")
}
