# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034
#
# What the scripts of the benchmark have in common. They read it at the top of the tree.
set -uo pipefail
export LC_ALL=C
build=$(realpath "${BUILD:-build}")
columns=workload,gpus,direction,storage,engine_gbps,reference_s,ours_s,copy_s,storage_s,ratio_reference,ratio_limit,staging_kib,cpu_s_per_gb

# median [FIELD FILE]: of the values of $rounds lines of a file, or of standard input
median() { cut -d ' ' -f "${1:-1}" "${2:--}" | sort -g | sed -n "$(((rounds + 1) / 2))p"; }

# spread FIELD FILE: the slowest minus the fastest, in percent of the median
spread() {
	cut -d ' ' -f "$1" "$2" | sort -g |
		awk -v m="$(median "$1" "$2")" 'NR == 1 { least = $1 } END { printf "%d", 100 * ($1 - least) / m }'
}

# wanted VALUE PATTERN: no word of BENCH matches PATTERN, or VALUE begins with one that does
wanted() {
	local word kind=''

	for word in ${BENCH:-}; do
		[[ $word =~ ^($2)$ ]] || continue
		[[ $1 != "$word"* ]] || return 0
		kind=1
	done
	[ -z "$kind" ]
}

show_head() {
	printf '%-13s %4s %-7s %-6s %6s %6s | %8s %4s %8s %4s %8s %4s %8s %4s | %6s %6s %7s %7s %6s %6s\n' workload gpus "" \
		storage GB/s GB reference +- ours +- copy +- storage +- x-ref limit staging rss cpu/GB others
}

# show LINE: times in seconds, spreads and processor time of other processes in percent, memory in KiB for each GPU
show() {
	local v

	IFS=, read -ra v <<< "$1"
	printf '%-13s %4s %-7s %-6s %6s %6s | %8s %3s%% %8s %3s%% %8s %3s%% %8s %3s%% | %6s %6s %7s %7s %6s %5s%%\n' "${v[@]:0:5}" "${v[17]}" \
		"${v[5]}" "${v[13]}" "${v[6]}" "${v[14]}" "${v[7]}" "${v[15]}" "${v[8]}" "${v[16]}" "${v[9]}" "${v[10]}" "${v[11]}" \
		"${v[18]}" "${v[12]}" "${v[19]}"
}
