# SPDX-License-Identifier: GPL-2.0-only
#
# Dumps, kills and restores processes that use GPUs. The restored processes verify their state. Failures
# and moves to other machines have files of their own.

# Without CRIU: the client finds no mistake of the device.
scenario_client_alone() {
	machine eight
	start_client --gpus 0,7
	runs
	verify
	no_violation
	finish
}

scenario_one_gpu() { # on each kernel
	machine one
	start_client --sizes medium
	come_back
	finish
}

# A kernel of a compute queue is in the middle of its loop at each dump, and goes on where it was. Where the driver would lose
# its waves, the dump waits for its end.
scenario_compute_queue() { # on each kernel
	machine one
	start_client --kernel
	come_back
	come_back
	finish
}

# A kernel that does not end is not lost, either: the dump fails when its time is over, and the kernel runs on.
scenario_endless_kernel() { # on each kernel
	loses_waves || skip "this driver keeps waves"
	machine one
	MARCH_ROUNDS='' start_client --kernel
	export AMDGPU_DRAIN=2
	dump_fails img "has running waves, and was saved without its control stack"
	has_line img/dump.log "has waves that this kernel would not restore; the queues of the dump run on for up to 2 s"
	verify
	finish
}

# The GPU has room for one of two processes. A restore waits until the other one has ended and the driver has freed its
# memory.
scenario_restore_at_once() {
	local job other

	machine one-small
	start_client --sizes medium
	job=$pid
	go_away img
	start_client --sizes medium
	other=$pid
	start criu.txt sh -c 'criu restore -D img -o restore.log -v4 -d; echo $? > status'
	until_true grep -qs 'waiting up to' img/restore.log || fail "no wait: $(errors img/restore.log)"
	[ ! -e status ] || fail "the restore did not wait"
	kill -9 "$other"
	gone "$pid"
	[ "$(cat status)" = 0 ] || fail "restore failed: $(errors img/restore.log)"
	pid=$job
	client="client $pid:"
	has_line img/restore.log 'has enough VRAM now'
	ends_well
}

scenario_eight_gpus() {
	machine eight
	start_client --sizes small --kernel
	come_back
	finish
}

# More buffers than a process may have open files. A dump and a restore open a file for each.
scenario_many_buffers() { # long
	machine eight
	start_client --sizes medium --gpus 0,2,3,5,7
	come_back
	finish
}

scenario_large_buffers() { # long
	machine one
	start_client --sizes full
	come_back
	finish
}

scenario_process_tree() {
	machine eight
	start_client --tree 2 --gpus 0,3 --kernel
	come_back
	finish
}

scenario_gpu_5_of_8() {
	machine eight
	start_client --gpus 5
	come_back
	finish
}

scenario_render_first() {
	machine one
	start_client --render-first
	come_back
	finish
}

scenario_second_kfd() {
	machine one
	start_client --second-kfd
	come_back
	finish
}

scenario_forked_child() {
	machine one
	start_client --fork-child
	come_back
	finish
}

# The plugin may not use descriptors that the task has free or in use. This task has its device files
# in place of standard input and output.
scenario_low_fds() {
	machine one
	start_client --close-standard-files
	[[ $(fds "$pid") == "0 /dev/"[kd]* ]] || fail "not what this is about: $(fds "$pid")"
	come_back
	finish
}

scenario_dumped_again() {
	machine one
	start_client --kernel
	come_back
	come_back
	come_back
	finish
}

# CRIU copies memfds and unlinked files when it begins with a task, long before it shows /dev/kfd. The engine changes them
# until its queue is stopped, however long that takes. Restored shared anonymous memory is a memfd, so there are two dumps.
scenario_memory_that_gpus_write() { # on each kernel
	machine one
	huge_pages 2
	start_program gpu_files memfd huge unlinked shared private
	if [ "$criu_version" = 3.17.1 ]; then # which has no hook before it copies
		give_work
		dump_fails img "has memory of a memfd or an unlinked file that a GPU may write"
		ask_gpu "speed 0"
	else
		dump_at_work img
		restore img
		dump_at_work again --leave-running
		verify
		kill -9 "$pid"
		gone "$pid"
		restore again
	fi
	verify
	finish
	huge_pages 0
}

# The engine of gpu_files has work for much longer than CRIU takes to let the plugin stop the queues.
give_work() {
	ask_gpu "speed 100000"
	verify
}

# dump_at_work DIR [ARG...]: gives work, and dumps before it is done.
dump_at_work() {
	local dir=$1 job=$pid

	shift
	give_work
	mkdir "$dir"
	start criu.txt sh -c "criu dump -t $job -D $dir -o dump.log -v4 $*; echo \$? > status-$dir"
	until_true grep -qsE 'its queues are stopped|Error' "$dir/dump.log" || fail "the queues do not stop"
	ask_gpu "speed 0"
	until_true [ -s "status-$dir" ] || fail "no end of the dump"
	[ "$(cat "status-$dir")" = 0 ] || fail "dump failed: $(errors "$dir/dump.log")"
	pid=$job
	[[ $* = *--leave-running* ]] || gone "$pid"
}

# The original runs on, and its image restores.
scenario_leave_running() { # on each kernel
	local before

	machine one
	start_client --sizes medium --kernel
	before=$(state "$pid")
	dump img "$pid" --leave-running
	same_state "$before"
	runs
	verify
	no_violation
	finish
	restore img
	same_state "$before"
	ends_well
}

scenario_leave_running_tree() { # long
	local before

	machine eight
	start_client --tree 2 --gpus 1,2
	before=$(state "$pid")
	dump img "$pid" --leave-running
	same_state "$before"
	runs
	verify
	no_violation
	finish
	restore img
	same_state "$before"
	ends_well
}

# post_dump COMMAND: CRIU's script after a dump, while CRIU holds the job. CRIU before 4.0 has ended the plugin, CRIU
# 4.0 and newer end it later.
post_dump() {
	cat > post-dump.sh <<- end
		#!/bin/bash
		[ "\$CRTOOLS_SCRIPT_ACTION" = post-dump ] || exit 0
		. /opt/vm/guest/driver.sh
		! queues_stopped $pid || : > $work/stopped
		: > $work/post-dump.txt
		$1
	end
	chmod +x post-dump.sh
}

stood_still() {
	! sees_queues || rm stopped || fail "the queues run after the dump"
}

runs_on() { until_true queues_run "$pid" && runs && verify && no_violation; }

# Until CRIU has killed the job its queues do not run. They run again if CRIU does not kill it: because it is killed
# itself, or because its script fails.
scenario_queues_after_dump() { # on each kernel
	local before

	machine one
	start_client
	before=$(state "$pid")
	post_dump 'pkill -9 -x criu'
	! try_dump killed "$pid" --action-script "$work/post-dump.sh" || fail "nothing was killed"
	stood_still
	runs_on
	post_dump 'exit 3'
	! try_dump failed "$pid" --action-script "$work/post-dump.sh" || fail "the failure of the script is lost"
	stood_still
	runs_on
	same_state "$before"
	post_dump 'exit 0'
	dump img "$pid" --action-script "$work/post-dump.sh"
	stood_still
	gone "$pid"
	nothing_left
	until_true no_guard || fail "a guard stays"
	restore img
	same_state "$before"
	ends_well
}

no_guard() { ! pgrep -x amdgpu_guard > /dev/null; }

# As when a timer expires while the plugin saves contents: CRIU has saved the signals of the process before, so the
# restored process does not get this one. The log says so.
scenario_signal_during_dump() { # on each kernel
	local job

	machine one
	start_client
	job=$pid
	export AMDGPU_PARALLEL_DUMP=0
	ask_gpu "speed 500000"
	mkdir img
	start criu.txt sh -c "criu dump -t $job -D img -o dump.log -v4; echo \$? > status"
	until_true grep -qs 'amdgpu_plugin: kfd .*: paused process' img/dump.log
	kill -ALRM "$job"
	ask_gpu "speed 0"
	until_true [ -s status ]
	[ "$(cat status)" = 0 ] || fail "dump failed: $(errors img/dump.log)"
	has_line img/dump.log "Warn  (amdgpu_plugin): kfd .*: process $job got signal 14"
	gone "$job"
	pid=$job
	restore img
	ends_well
}

# CRIU's script copies the images, and nothing else is left of them. The job is two processes with a buffer each, and a
# parent that keeps dma-bufs of both.
scenario_post_dump_script() { # on each kernel
	machine one
	start_sharers 2 0 keep
	post_dump "cp -r $work/img $work/copy"
	dump img "$pid" --action-script "$work/post-dump.sh"
	[ -e post-dump.txt ] || fail "the script did not run"
	gone "$pid"
	rm -r img
	restore copy
	ends_well
}
