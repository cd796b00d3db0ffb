# SPDX-License-Identifier: GPL-2.0-only
#
# Tests without a GPU: `criu check` passes, CRIU dumps and restores a process without GPUs, and the
# package goes and comes back.

scenario_host_check() {
	criu check > check.log 2>&1 || fail "$(tail -n 3 check.log)"
}

# A process and its child. Both answer a signal with a line.
talker='
	trap "echo alive \$BASHPID >> \"$log\"" USR1
	(trap "echo alive child >> \"$log\"" USR1; echo child >> "$log"; while :; do sleep 1 & wait; done) &
	until grep -q child "$log"; do :; done
	echo ready >> "$log"
	while :; do wait; done'

scenario_no_gpu_process() {
	no_machine
	talk_dump_restore
}

scenario_no_gpu_process_beside_gpus() { # long
	machine eight
	talk_dump_restore
}

talk_dump_restore() {
	local before

	log=$work/talk.log start talk.log bash -c "$talker"
	wait_line talk.log ready
	before=$(fds "$pid")
	dump img "$pid"
	gone "$pid"
	has_line img/dump.log "amdgpu_plugin"
	restore img
	[ "$(fds "$pid")" = "$before" ] || fail "fds differ: $(fds "$pid")"
	kill -USR1 -- "-$pid"
	wait_line talk.log "alive $pid"
	wait_line talk.log "alive child"
	! grep -q 'Error (amdgpu_plugin)' img/*.log || fail "the plugin complains"
}

# Without the package CRIU works as before, and no file of the package is left.
scenario_package_removed() {
	local left

	no_machine
	dpkg --purge criu-plugin-amdgpu
	left=$(find /etc /usr /var -xdev \( -name '*amdgpu_plugin*' -o -name '*criu*amdgpu*' \))
	[ -z "$left" ] || fail "left of the package: $left"
	start sleep.log sleep 1000
	dump img "$pid"
	gone "$pid"
	restore img
	alive "$pid" || fail "the process did not come back"
	! grep amdgpu_plugin img/*.log || fail "CRIU still knows the plugin"
	kill -9 "$pid"
	gone "$pid"
	rm -r img
	/opt/vm/guest/install-package
	talk_dump_restore
}
