# SPDX-License-Identifier: GPL-2.0-only
#
# What must hold before any GPU comes in: CRIU likes the machine, and dumps and restores a process
# that has nothing to do with GPUs.

scenario_host_check() {
	criu check > check.log 2>&1 || fail "$(tail -n 3 check.log)"
}

scenario_no_gpu_process() {
	local before

	start sleep.log sleep 1000
	before=$(fds "$pid")
	dump img "$pid"
	gone "$pid"
	restore img
	alive "$pid" || fail "restored process is not there"
	[ "$(fds "$pid")" = "$before" ] || fail "fds differ: $(fds "$pid")"
}
