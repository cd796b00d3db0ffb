# SPDX-License-Identifier: GPL-2.0-only
#
# Stock HIP of the root's suite: 5.2.3 (CRIU 3.17.1), 5.7.1 (4.1.1) or 6.4.3. The client has streams, events,
# copies that never rest, and a kernel in the middle of its loop for which another stream waits.

start_hip() { program=hip_client start_client --kernels /opt/vm/lib/gfx90a.co; }

scenario_rocm_hip() {
	machine one
	start_hip
	come_back
	come_back
	finish
}

scenario_rocm_hip_move() {
	machine one
	start_hip
	then_machine=one-other come_back
	finish
}

scenario_rocm_hip_eight() {
	machine eight
	start_hip
	then_machine=eight-other come_back
	finish
}

# clinfo finds the GPUs that the machine's data has, each with its compute units.
opencl_lists() { # MACHINE
	machine "$1"
	clinfo --raw > "$1.txt" 2> "$1.err" < /dev/null || fail "$1: clinfo: status $?: $(tail -n 1 "$1.err")"
	awk '$1 == "simd_count" { simds = $2 } $1 == "simd_per_cu" && simds { print simds / $2 }' \
		"/opt/vm/machines/$1"/nodes/*/properties > "$1.wanted"
	awk '$2 == "CL_DEVICE_MAX_COMPUTE_UNITS" { print $3 }' "$1.txt" | diff "$1.wanted" - ||
		fail "$1: clinfo: other GPUs: $(grep CL_DEVICE_NAME "$1.txt" | tr -s ' \n' ' ;')"
	[ "$(grep -c 'CL_DEVICE_NAME .*gfx90a' "$1.txt")" = "$(grep -c . "$1.wanted")" ] || fail "$1: clinfo: other names"
	no_violation
}

scenario_rocm_hip_clinfo() {
	[ -x /usr/bin/clinfo ] || skip "this suite has no OpenCL for ROCm"
	opencl_lists one
	opencl_lists eight
}
