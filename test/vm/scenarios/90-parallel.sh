# SPDX-License-Identifier: GPL-2.0-only
#
# CRIU's main process loads the contents while the tasks restore the rest, if this CRIU has the hooks. The tasks load
# them if the user wants that. And a dump saves contents while CRIU goes on, if this CRIU waits for them at its end.

# filled_by main|task LOG: that process logs that it loaded contents. Lines of a task begin with its pid.
filled_by() {
	local stamp='^([0-9.]*)' task='  *[0-9]*:'

	[ "$1" = main ] && task=
	grep -q "$stamp$task amdgpu_plugin: GPU .* loaded" "$2" || fail "contents were not filled in by the $1"
}

has_parallel() { has_main_hook || skip "this CRIU has no hook for its main process"; }

scenario_parallel() {
	has_parallel
	machine one
	start_client --kernel
	come_back
	filled_by main img1/restore.log
	finish
}

scenario_parallel_off() { # long
	machine eight
	start_client --gpus 3,6
	export AMDGPU_PARALLEL_RESTORE=0
	come_back
	filled_by task img1/restore.log
	finish
}

scenario_parallel_tree() { # long
	has_parallel
	machine eight
	start_client --tree 4 --gpus 1,6
	come_back
	filled_by main img1/restore.log
	[ "$(grep -c ' amdgpu_plugin: GPU .* loaded .* BOs' img1/restore.log)" -ge 8 ] || fail "not all GPUs of all tasks"
	finish
}

# One process with VM_BOS buffers. The task passes a descriptor for each to the main process.
scenario_parallel_many() { # long
	local bos limit

	has_parallel
	read -r bos < /opt/vm/bos
	limit=$((130 + bos / 50))
	machine one
	start_client --many "$bos"
	[[ $line == *" in $((bos + 43)) buffers "* ]] || fail "not what this is about: $line"
	go_away img
	restore img
	filled_by main img/restore.log
	[[ $(< img/restore.log) =~ " loaded "([0-9]+)" BOs" ]] && [ "${BASH_REMATCH[1]}" -gt "$bos" ] || fail "not all are loaded"
	runs
	verify
	no_violation
}

# One of several images is wrong. Only the main process finds out, and the whole restore fails.
scenario_parallel_fails() { # long
	local image

	has_parallel
	machine eight
	start_client --tree 2 --gpus 1,6
	dump img "$pid"
	gone "$pid"
	damage img
	! try_restore img || fail "this restore cannot have succeeded"
	plugin_error img/restore.log "cannot load BO .*checksum mismatch"
	has_line img/restore.log '^([0-9.]*) Error (amdgpu_plugin): .*cannot load BO'
	gone "$pid"
	nothing_left
	no_violation
	cp good "$image"
	restore img
	ends_well
}

# A task in namespaces of its own shares with CRIU's main process only what it inherits. The scenarios own-mounts also
# have mounts and a network of their own.
scenario_parallel_namespaces() { # long
	local outer

	has_parallel
	machine one
	rocm_before
	start client.log unshare --pid --fork --ipc --uts setsid /opt/vm/bin/gpu_client \
		--log "$work/client.log"
	outer=$pid
	client='client 1:'
	wait_line client.log "$client ready"
	pid=$(pgrep -P "$outer")
	dump img "$pid"
	gone "$pid"
	gone "$outer"
	nothing_left
	restore img --pidfile "$work/restored"
	pid=$(cat restored)
	started+=("$pid")
	filled_by main img/restore.log
	runs
	verify
	no_violation
	finish
}

# CRIU 4.3.
has_dump_finish() {
	case $criu_version in
	3.* | 4.[0-2]*) skip "this CRIU does not wait for the plugin after the last task" ;;
	esac
}

# All files and all memory of the tasks are saved while the engine, which is slow, copies the contents.
scenario_parallel_dump() {
	local went_on first

	has_dump_finish
	machine eight
	start_client --tree 4 --gpus 1,6
	ask_gpu "speed 8000000"
	dump img "$pid"
	ask_gpu "speed 0"
	[ "$(grep -c 'amdgpu_plugin: .* saved while CRIU goes on' img/dump.log)" = 4 ] || fail "CRIU did not go on"
	[ "$(grep -c 'amdgpu_plugin: GPU .* saved .* BOs' img/dump.log)" -ge 8 ] || fail "not all GPUs of all tasks"
	first=$(grep -n -m 1 'amdgpu_plugin: GPU .* saved .* BOs' img/dump.log | cut -d : -f 1)
	went_on=$(grep -n 'Dumping task (pid: ' img/dump.log | tail -n 1 | cut -d : -f 1)
	[ "$went_on" -lt "$first" ] || fail "a task waited for the contents of others"
	gone "$pid"
	restore img
	ends_well
}

scenario_parallel_dump_off() { # long
	has_dump_finish
	machine eight
	start_client --gpus 3,6
	export AMDGPU_PARALLEL_DUMP=0
	come_back
	! grep -q 'saved while CRIU goes on' img1/dump.log || fail "CRIU went on"
	finish
}

# A copy of one GPU takes five seconds. CRIU has saved all tasks when it finds out, and the dump fails.
scenario_parallel_dump_fails() { # long
	has_dump_finish
	machine eight
	start_client --tree 2 --gpus 1,6
	ask_gpu "gpu 6 speed 200000"
	! KFD_COPY_TIMEOUT=2 try_dump img "$pid" || fail "this dump cannot have succeeded"
	ask_gpu "gpu 6 speed 0"
	has_line img/dump.log "Error (amdgpu_plugin): .*a copy does not finish"
	has_line img/dump.log 'amdgpu_plugin: .* saved while CRIU goes on'
	! compgen -G "img/amdgpu-kfd-*.img" > /dev/null || fail "a failed dump left state images"
	runs
	verify
	come_back
	finish
}
