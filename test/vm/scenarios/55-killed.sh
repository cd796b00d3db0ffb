# SPDX-License-Identifier: GPL-2.0-only
#
# Kills CRIU or a task at random moments (VM_KILLS, VM_SEED). After a killed dump the job and its queues run on, and no
# state image of an incomplete dump is left. After a killed restore no incomplete task runs.
#
# The plugin cannot mend the following. CRIU runs code of its own in tasks (the parasite). If CRIU dies while it injects
# or removes the parasite, the task is lost: it runs into a breakpoint or into unmapped memory. At other times the
# parasite ends by itself when its socket to CRIU closes.

# Sets $kills. The seed gives the moments. $early counts the kills before the end.
read_kills() {
	local seed

	early=0
	read -r kills seed < /opt/vm/kills
	RANDOM=$seed
}

# random N: sets $number to 1 to N.
random() { number=$((RANDOM * $1 / 32768 + 1)); }

# The guard has ended, and so has CRIU, except for the multi-threaded reader that CRIU 4.3 leaves behind when it fails.
nothing_of_criu() {
	local name process threads -

	set +x
	for process in /proc/[0-9]*; do
		read -r name 2> /dev/null < "$process/comm" || continue
		case $name in
		amdgpu_guard) return 1 ;;
		criu)
			threads=("$process"/task/*)
			[ ${#threads[@]} -gt 1 ] || return 1
			;;
		esac
	done
}

# If a task dies in its last steps, CRIU may wait for it forever: for its end, though CRIU itself must reap its other
# threads, or for the end of a step. Then this ends CRIU. (A plain FUTEX_WAIT is CRIU's own. The C library, and so the
# plugin, uses other operations.)
end_criu() {
	local process number first second rest

	for process in $(pgrep -x criu); do
		read -r number first second rest < "/proc/$process/syscall" || continue
		case $number in
		61) [ $((first)) -gt 1 ] && dead "$((first))" ;; # wait4() of one process
		202) [ $((second)) = 0 ] && dead "$pid" ;;       # futex()
		*) false ;;
		esac && kill -9 "$process"
	done || true
}

# kill_at COUNT WORDS MS PID dump|restore DIR ARG...: runs CRIU, and kills it (or process PID, if not 0) MS after its
# log has COUNT lines with WORDS. Sets $status, and expects CRIU and its children to end.
kill_at() {
	local outer job=$pid what=$5 dir=$6

	rm -f status "$6/$5.log"
	mkdir -p "$6"
	start criu.txt sh -c '"$@"; echo $? > status' - /opt/vm/bin/kill-at "$6/$5.log" "$1" "$2" "${3}000" "$4" \
		criu "$5" -D "$6" -o "$5.log" -v4 "${@:7}"
	outer=$pid
	pid=$job
	# A process that it ends too early counts as killed.
	limit=20 until_true dead "$outer" || end_criu
	until_true dead "$outer" || end_criu
	until_true dead "$outer" || { autopsy "CRIU does not end"; fail "CRIU does not end"; }
	# Before CRIU loads plugins, it has children that test the kernel. They do not die with CRIU.
	if grep -q amdgpu_plugin "$6/$5.log" 2> /dev/null && ! until_true nothing_of_criu; then
		autopsy "CRIU has ended"
		fail "left of CRIU: $(pgrep -a -x 'criu|amdgpu_guard')"
	fi
	pkill -9 -x criu || true
	status=$(cat status)
	[ "$status" = 0 ] || early=$((early + 1))
	[ -f "$6/$5.log" ] || : > "$6/$5.log"
}

killed_in_time() { [ "$early" -gt 0 ] || fail "nothing was killed before its end"; }

dead_or_not_paused() { dead "$pid" || queues_run "$pid"; }

# A job that has ended has no queues.
none_stopped() { until_true dead_or_not_paused || fail "the job's queues are stopped"; }

lives_on() {
	none_stopped
	alive "$pid" || fail "the job has ended"
}

# The job answers within a shorter time limit. A lost job does not answer.
answers() {
	local end=$((SECONDS + 40)) said -

	lines client.log
	kill -USR1 "$pid" 2> /dev/null || return 1
	set +x
	until mapfile -t -s "$lines" said < client.log && [[ ${said[*]} == *"$client verified"* ]]; do
		[[ ${said[*]} != *FAILED* ]] || fail "$(grep -m 1 FAILED client.log)"
		alive "$pid" && [ $SECONDS -lt $end ] || return 1
		nap
	done
}

# A state image means that the dump was complete.
no_torn_image() { # [DIR]
	local dir=${1:-img}

	has_no_main_image() { ! compgen -G "$dir/amdgpu-kfd-*.img" > /dev/null; }
	grep -q 'amdgpu_plugin: kfd .*: unpaused process\|amdgpu_plugin: dump: .* stay stopped' "$dir/dump.log" || has_no_main_image ||
		fail "a killed dump left $(echo "$dir"/amdgpu-kfd-*.img)"
}

new_client() {
	kill -9 "$pid" 2> /dev/null || true
	gone "$pid"
	nothing_left
	start_client
}

# CRIU is killed while the queues of the job are stopped. In the hook, the parasite waits for commands meanwhile, so only
# the GPU is at risk. In the background, CRIU uses and removes the parasite meanwhile, so the task may be lost.
killed_in_hook() { # MS
	AMDGPU_PARALLEL_DUMP=0 kill_at 1 ': paused process' "$1" 0 dump img -t "$pid" --leave-running
	lives_on
	no_torn_image
	runs
	verify
}

killed_in_background() { # MS
	kill_at 1 ': paused process' "$1" 0 dump img -t "$pid" --leave-running
	none_stopped
	no_torn_image
	answers && runs && return
	echo "lost $1 ms after its queues were stopped: $(tail -n 1 img/dump.log)" >> lost.txt
	new_client
}

scenario_killed_while_paused() {
	local n

	read_kills
	machine one
	start_client
	ask_gpu "speed 3000000" # so that copying takes two seconds
	for ((n = 0; n < kills; n++)); do
		random 400
		if [ $((n % 2)) = 0 ]; then killed_in_hook "$number"; else killed_in_background "$number"; fi
		no_violation
		rm -r img
	done
	killed_in_time
	ask_gpu "speed 0"
	come_back
	finish
}

scenario_killed_dump() {
	local all n lost=0

	read_kills
	machine one
	start_client
	dump img "$pid" --leave-running
	all=$(wc -l < img/dump.log)
	for ((n = 0; n < kills; n++)); do
		rm -r img
		random "$all"
		kill_at "$number" '' 0 0 dump img -t "$pid" --leave-running
		no_torn_image
		none_stopped
		no_violation
		answers && runs && continue
		echo "lost at line $number of $all: $(tail -n 1 img/dump.log)" >> lost.txt
		lost=$((lost + 1))
		new_client
	done
	killed_in_time
	[ "$lost" -lt "$kills" ] || fail "CRIU has lost the job each time: $(tail -n 1 lost.txt)"
	come_back
	finish
}

# The job is killed while a dump waits for the end of its kernels.
scenario_killed_while_kernels_run() { # long
	local early=0

	loses_waves || skip "this driver keeps waves"
	machine one
	MARCH_ROUNDS='' start_client --kernel
	AMDGPU_DRAIN=3600 kill_at 1 'the queues of the dump run on' 100 "$pid" dump img -t "$pid"
	[ "$status" != 0 ] || fail "the dump of a killed process ends with 0"
	plugin_error img/dump.log "cannot \(look at its queues\|checkpoint\), the process has ended"
	gone "$pid"
	nothing_left
}

# The dump is to end the job, and CRIU is killed in its last steps: before, while or after it kills the job. Whatever
# lives on has queues that run. The steps have names, because the number of lines before them differs from dump to dump.
scenario_killed_last_steps() { # long
	local n steps=('Dumping pstree' 'Running post-dump scripts' 'stay stopped until CRIU has killed it' 'Unfreezing tasks into')

	read_kills
	machine one
	start_client
	for ((n = 0; n < kills; n++)); do
		random 20
		kill_at 1 "${steps[n % 4]}" "$number" 0 dump img -t "$pid"
		no_torn_image
		none_stopped
		no_violation
		! alive "$pid" || { answers && runs; } ||
			echo "lost $number ms after '${steps[n % 4]}': $(tail -n 1 img/dump.log)" >> lost.txt
		new_client
		rm -r img
	done
	killed_in_time
	come_back
	finish
}

# When the queues of the last task run, the plugin's part is complete, whatever CRIU reports.
is_resumed() { grep -q 'amdgpu_plugin: process .*: resumed' img/restore.log; }

# Checks what an incomplete restore leaves.
nothing_restored() {
	until_true holds_nothing || { autopsy "a restore has ended, but not all of it"; fail "half a task holds $(held)"; }
	gone "$pid"
	criu_ends
}

# No process starts it again, so it must work as it is.
is_whole() {
	! alive "$pid" || answers || echo "does not answer after $(tail -n 1 img/restore.log)" >> lost.txt
	kill -9 "$pid" 2> /dev/null || true
	gone "$pid"
	nothing_left
}

# After CRIU was killed. A task that ran without its contents for a moment may have said so.
whole_or_nothing() {
	if is_resumed; then is_whole; else nothing_restored; fi
	no_violation
	no_failed_client
}

# After all kills, the images are as good as before.
restored_at_last() {
	killed_in_time
	ask_gpu "speed 0"
	restore img
	ends_well
}

dumped_once() {
	machine one
	start_client
	go_away img
	restore img
	all=$(wc -l < img/restore.log)
	kill -9 "$pid"
	gone "$pid"
	nothing_left
}

# Every second time the task is a sibling of CRIU, as container runtimes want it.
scenario_killed_restore() { # on each kernel
	local all n as=('' --restore-sibling)

	read_kills
	dumped_once
	for ((n = 0; n < kills; n++)); do
		random "$all"
		kill_at "$number" '' 0 0 restore img -d ${as[n % 2]}
		whole_or_nothing
	done
	restored_at_last
}

# CRIU is killed while its tasks stand and wait for their contents. None of them may see its GPU memory without them. In the
# moment before the plugin binds them to CRIU's life they may, until the guard kills them.
scenario_killed_late() { # long
	local n

	read_kills
	dumped_once
	ask_gpu "speed 1000000" # so that copying takes seconds, in which most kills come
	for ((n = 0; n < kills; n++)); do
		random 200
		kill_at 1 'end with CRIU until their queues run' "$number" 0 restore img -d
		whole_or_nothing
	done
	restored_at_last
}

# start_many: starts a job of a process with a GPU, $child, and of four with many threads each. $tree has all.
start_many() {
	local n

	rocm_before
	: > threads.log
	start client.log bash -c 'for n in 1 2 3 4; do /opt/vm/bin/threads 50 "$0/threads.log" & done
		/opt/vm/bin/gpu_client --log "$0/client.log" & wait' "$work"
	wait_line client.log ready
	for n in 1 2 3 4; do
		wait_line threads.log ready $((n - 1))
	done
	tree=($(pgrep -s "$pid"))
	child=$(pgrep -s "$pid" gpu_client)
	client="client $child:"
	[ ${#tree[@]} = 6 ] || fail "the job has processes ${tree[*]}"
}

# count_alive: sets $count.
count_alive() {
	local process

	count=0
	for process in "${tree[@]}"; do
		! alive "$process" || count=$((count + 1))
	done
}

# Not even a zombie, which would keep a pid from the next restore.
none_left() { ! ps -p "${tree[*]}" > /dev/null; }

# Either the GPU's process works and all others are there, or none is.
all_or_none() {
	if pid=$child answers; then
		count_alive
		[ "$count" = ${#tree[@]} ] || fail "$count of ${#tree[@]} processes run"
		runs
		kill -9 "${tree[@]}"
	fi
	until_true none_left || fail "of the job there is: $(ps -o pid=,stat=,comm= -p "${tree[*]}" | tr '\n' ';')"
}

# CRIU is killed while it lets go of the tasks, one after the other.
scenario_killed_detach() {
	local n child count tree early=0

	machine one
	start_many
	dump img "$pid"
	gone "$pid"
	for n in 0 1 2 3 4 6 8 12; do
		nothing_left
		kill_at 1 'Running pre-resume scripts' "$n" 0 restore img -d
		all_or_none
		no_violation
		no_failed_client
	done
	killed_in_time
	restore img
	runs
	pid=$child
	verify
	finish
}

# CRIU is killed while it forks the tasks, or soon after that. The root of the tree has no GPU.
scenario_killed_fork() { # long
	local n child early=0

	machine one
	rocm_before
	start client.log bash -c '/opt/vm/bin/gpu_client --log "$0/client.log" & wait' "$work"
	client='client '
	wait_line client.log ready
	child=$(pgrep -P "$pid")
	dump img "$pid"
	gone "$pid"
	for n in 0 20 40 80; do
		nothing_left
		kill_at 1 'Forking task with' "$n" 0 restore img -d
		gone "$child"
		gone "$pid"
		no_violation
	done
	[ "$early" -gt 0 ] || fail "nothing was killed before its end"
	restore img
	runs
}

# Kills the task. CRIU ends by itself and reports a failure. Every second kill is while the contents are copied, by the
# main process or by the task.
scenario_killed_task() {
	local all n task

	read_kills
	dumped_once
	ask_gpu "speed 10000000"
	for ((n = 0; n < kills; n++)); do
		random "$all"
		task=$number
		random 500
		case $((n % 2)) in
		0) kill_at 1 'amdgpu_plugin: map: saved' "$number" "$pid" restore img -d ;;
		1) kill_at "$task" '' 0 "$pid" restore img -d ;;
		esac
		if [ "$status" != 0 ]; then
			nothing_restored
		else
			is_resumed || fail "CRIU says that it has restored what was killed before"
			is_whole
		fi
		no_violation
	done
	restored_at_last
}

# Tasks share buffers, and one is killed before or while it shares them again. The others wait until their limit, so the
# restore fails and none of them runs. The engine is slow, so no restore is over before the kill.
scenario_killed_sharer() {
	local ranks n rank early=0

	machine one
	start_sharers 3
	ranks=($(pgrep -P "$pid"))
	dump img "$pid"
	gone "$pid"
	ask_gpu "speed 100000"
	for n in 0 1 2; do
		nothing_left
		kill_at 1 'amdgpu_plugin: map: saved' $((3 * n)) "${ranks[n]}" restore img -d
		[ "$status" != 0 ] || fail "the restore succeeded without process ${ranks[n]}"
		for rank in "$pid" "${ranks[@]}"; do
			gone "$rank"
		done
	done
	ask_gpu "speed 0"
	nothing_left
	no_violation
	restore img
	ends_well
}
