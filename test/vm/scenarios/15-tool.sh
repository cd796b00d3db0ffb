# SPDX-License-Identifier: GPL-2.0-only
#
# The program criu-amdgpu beside a job: before its dump, on its images, and without a GPU.

# tool STATUS WORDS ARG...: the program ends with this status, and a line of its output has WORDS.
tool() {
	local got=0

	criu-amdgpu "${@:3}" > tool.log 2>&1 < /dev/null || got=$?
	[ "$got" = "$1" ] || fail "criu-amdgpu ${*:3}: status $got, not $1: $(tail -n 3 tool.log)"
	has_line tool.log "$2"
}

scenario_tool() {
	no_machine
	tool 3 "this machine has no AMD GPU" check
	machine eight
	start sleep.log sleep 1000
	tool 3 "process $pid and its descendants use no AMD GPU" check "$pid"
	start_client --gpus 0,7
	# A number of hooks may stand for several releases: "4.0 or 4.1".
	tool 0 "CRIU: .*/criu, release .*${criu_version:0:3}.* ([0-9]* hooks)" check -D .
	has_line tool.log "plugin: $plugins/amdgpu_plugin.so loads"
	has_line tool.log "driver: amdgpu of the kernel, KFD .*, can checkpoint"
	has_line tool.log "renderD135, gfx90a, [0-9.]* GiB: contents can be copied"
	tool 0 "process $pid (gpu_client): has /dev/kfd open" check -D . "$pid"
	has_line tool.log "renderD128 .*iB"
	has_line tool.log "contents: about .* MiB, which take"
	runs
	verify
	dump img "$pid"
	gone "$pid"
	has_line img/dump.log "dump: 1 processes on .* GPUs, .* MiB of contents in .* s, .* MiB/s, limited by .*, with checksums"
	tool 0 "process $pid, 8 GPUs" show img
	tool 0 "as they were saved" verify img
	tool 0 "process $pid (kfd .*): fits" fit img
	machine eight 7
	tool 1 "process $pid (kfd .*): does not fit" fit img
	machine eight
	restore img
	has_line img/restore.log "restore: 1 processes on .* GPUs, .* MiB of contents in .* s, .* MiB/s, limited by .*, verified"
	runs
	verify
	tool 0 "process $pid (gpu_client): has /dev/kfd open" check "$pid"
	finish
}

# hold FILE...: like start, a process that has these.
hold() {
	rm -f hold.log
	start hold.log /opt/vm/bin/hold "$work/hold.log" "$@"
	wait_line hold.log ready
}

# Jobs that a dump would refuse, and the same after the remedy that the program names. If the kernel lists GEM objects, only
# the dump can tell whether it must refuse them: they may be those of KFD's BOs.
scenario_tool_refusals() {
	local status=1 words="has GEM objects" node

	[[ $(uname -r) != 7.* ]] || status=0 words="may be refused: it has GEM objects"
	machine one
	needs_kfd_pids
	node=$(first_node)
	hold gem "/dev/dri/$node"
	tool "$status" "process $pid: descriptor [0-9]*: $node $words .*; have the process free them" check "$pid"
	kill -9 "$pid"
	gone "$pid"
	start_client --gem-bo
	tool "$status" "process $pid: descriptor [0-9]*: $node $words " check "$pid"
	kill -USR2 "$pid"
	wait_line client.log "client $pid: dropped"
	tool 0 "process $pid (gpu_client)" check "$pid"
	kill -9 "$pid"
	gone "$pid"
	hold gem-mapping "/dev/dri/$node"
	tool 1 "process $pid: maps memory of a GPU, but does not have /dev/kfd open, .*; have the process keep /dev/kfd open" check "$pid"
	has_line tool.log "$node .* 4.0 KiB *1\$"
	kill -9 "$pid"
	gone "$pid"
	hold open "/dev/dri/$node"
	tool 0 "process $pid (hold): has /dev/kfd not open" check "$pid"
}
