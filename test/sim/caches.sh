#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Gives the GPUs of a topology the records of their caches: caches.sh TOPOLOGY. TOPOLOGY is a directory as
# /sys/class/kfd/kfd/topology is one; it is changed. The captures have the number of records, and not the records.
#
# Records are those of kfd_fill_cache_non_crat_info() (amdkfd/kfd_topology.c, Linux 6.12) for gfx90a, whose table is
# aldebaran_cache_info (kfd_crat.c): an L1 of each CU, the L1 of instructions and that of scalars for each two CUs that
# are not both disabled, and one L2. The fields are in kfd_cache_show()'s order. Which CUs are disabled no topology
# says: here it is the last ones of each array. Other GPUs have no records, and a count of 0.
set -eu

for node in "$1"/nodes/*; do
	count=$(awk -v caches="$node/caches" '
	function bits(count, size,    text, i) {
		for (i = 0; i < size; i++)
			text = text (i ? "," : "") (i < count ? 1 : 0)
		return text
	}
	function cache(cu, level, kib, line, type, siblings) {
		text[count++] = "processor_id_low " sprintf("%.0f", p["simd_id_base"] + cu) "\nlevel " level "\nsize " kib \
			"\ncache_line_size " line "\ncache_lines_per_tag 0\nassociation 0\nlatency 0\ntype " type \
			"\nsibling_map " siblings
	}
	# of every @shared CUs, as far as they are enabled
	function level1(shared, kib, type,    array, cu, left) {
		for (array = 0; array < arrays; array++)
			for (cu = 0; cu < enabled[array]; cu += shared) {
				left = enabled[array] - cu
				cache(array * width + cu, 1, kib, 64, type, bits(left < shared ? left : shared, 32))
			}
	}
	function level2(    map, array) {
		for (array = 0; array < arrays; array++)
			map = map (array ? "," : "") bits(enabled[array], 32)
		cache(0, 2, 8192, 128, DATA + SIMD, map)
	}
	{ p[$1] = $2 }
	END {
		DATA = 1; INSTRUCTION = 2; SIMD = 8
		arrays = p["array_count"]
		width = p["cu_per_simd_array"]
		if (p["gfx_target_version"] == 90010 && p["num_xcc"] == 1) {
			for (array = 0; array < arrays; array++) {
				cus = p["simd_count"] / p["simd_per_cu"]
				enabled[array] = int(cus / arrays) + (array < cus % arrays)
			}
			level1(1, 16, DATA + SIMD)
			level1(2, 32, INSTRUCTION + SIMD)
			level1(2, 16, DATA + SIMD)
			level2()
		}
		for (i = 0; i < count; i++)
			directories = directories " " caches "/" i
		if (count)
			system("mkdir -p" directories)
		for (i = 0; i < count; i++) {
			print text[i] > (caches "/" i "/properties")
			close(caches "/" i "/properties")
		}
		print count + 0
	}' "$node/properties")
	sed -i "s/^caches_count .*/caches_count $count/" "$node/properties"
done
