# SPDX-License-Identifier: GPL-2.0-only
#
# CRIU or a task of it is killed, at random moments (VM_KILLS, VM_SEED). After a killed dump the job runs on, its GPU
# included, and no image is left that could be taken for a good one; after a killed restore nothing runs that is not whole.
#
# What is not the plugin's to mend: CRIU has tasks run code of its own (the parasite), and one that is in the middle of
# being given it, or rid of it, when CRIU dies is lost: it runs into a breakpoint, or into memory that is gone. Between these
# moments the parasite ends by itself when its line to CRIU breaks. A restored task that has no GPU state yet
# is left hanging by CRIU.

# Sets $kills; moments follow from the seed. $early counts the kills that came before the end.
read_kills() {
	local seed

	early=0
	read -r kills seed < /opt/vm/kills
	RANDOM=$seed
}

# random N: sets $number, 1 to N.
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

# CRIU waits for a task that has died while it led it through its last steps: for ever, be it for the task's end, as it is
# CRIU that has its other threads to reap, or for the step to be done, which CRIU does not hear of any more then. (A plain
# FUTEX_WAIT is CRIU's own; the C library's, and so the plugin's, are others.) Then it is ended.
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

# kill_at COUNT WORDS MS PID dump|restore DIR ARG...: CRIU runs until it, or process PID if that is not 0, is
# killed: so long after it has written so many lines that hold WORDS. Sets $status, and expects it and what outlives it to end.
kill_at() {
	local outer job=$pid what=$5 dir=$6

	rm -f status "$6/$5.log"
	mkdir -p "$6"
	start criu.txt sh -c '"$@"; echo $? > status' - /opt/vm/bin/kill-at "$6/$5.log" "$1" "$2" "${3}000" "$4" \
		criu "$5" -D "$6" -o "$5.log" -v4 "${@:7}"
	outer=$pid
	pid=$job
	# Whom it ends too early is one more that was killed.
	limit=20 until_true dead "$outer" || end_criu
	until_true dead "$outer" || end_criu
	until_true dead "$outer" || { autopsy "CRIU does not end"; fail "CRIU does not end"; }
	# Before it loads us, CRIU has children by which it finds out what the kernel can: they do not die with it.
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

not_paused() { sim_process "$pid" evicted && [ "$value" = 0 ] && sim_process "$pid" paused && [ "$value" = 0 ]; }

dead_or_not_paused() { dead "$pid" || not_paused; }

# The job's own answer, in less time than it has for others; a lost one gives none.
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

# Whatever became of the dump: a main image means that it was complete.
no_torn_image() {
	has_no_main_image() { ! compgen -G 'img/amdgpu-kfd-*.img' > /dev/null; }
	grep -q 'amdgpu_plugin: kfd .*: unpaused process' img/dump.log || has_no_main_image ||
		fail "a killed dump left $(echo img/amdgpu-kfd-*.img)"
}

new_client() {
	kill -9 "$pid" 2> /dev/null || true
	gone "$pid"
	nothing_left
	start_client
}

# While the plugin works the parasite waits for orders, and so nothing but the GPU stands still.
scenario_killed_while_paused() { # oldest and newest
	local n

	read_kills
	machine one
	start_client
	knob engine_bytes_per_s 3000000 # so that copying takes two seconds
	for ((n = 0; n < kills; n++)); do
		random 400
		kill_at 1 ': paused process' "$number" 0 dump img -t "$pid" --leave-running
		until_true not_paused || fail "the job's queues are stopped"
		no_torn_image
		runs
		verify
		no_violation
		rm -r img
	done
	killed_in_time
	knob engine_bytes_per_s 0
	come_back
	finish
}

scenario_killed_dump() { # oldest and newest
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
		until_true dead_or_not_paused || fail "the job's queues are stopped"
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

# With the last of its tasks' queues running the restore is complete for us, whatever CRIU comes to say.
is_resumed() { grep -q 'amdgpu_plugin: process .*: resumed' img/restore.log; }

# What is left of a restore that is not.
nothing_restored() {
	until_true all_zero || { autopsy "a restore has ended, but not all of it"; fail "half a task holds $(sed '/ 0$/d' "$sim/objects" | tr '\n' ' ')"; }
	# without GPU state CRIU may leave it
	kill -9 "$pid" 2> /dev/null || true
	gone "$pid"
}

# Nobody starts it again, so it has to be well as it is.
is_whole() {
	! alive "$pid" || answers || echo "does not answer after $(tail -n 1 img/restore.log)" >> lost.txt
	kill -9 "$pid" 2> /dev/null || true
	gone "$pid"
	nothing_left
}

dumped_once() {
	machine one
	start_client
	dump img "$pid"
	gone "$pid"
	nothing_left
	restore img
	all=$(wc -l < img/restore.log)
	kill -9 "$pid"
	gone "$pid"
	nothing_left
}

# Every other time the task is CRIU's sibling, as container runtimes want it.
scenario_killed_restore() { # oldest and newest
	local all n as=('' --restore-sibling)

	read_kills
	dumped_once
	for ((n = 0; n < kills; n++)); do
		random "$all"
		kill_at "$number" '' 0 0 restore img -d ${as[n % 2]}
		if is_resumed; then is_whole; else nothing_restored; fi
		no_violation
	done
	killed_in_time
	restore img
	runs
	verify
	finish
}

# The task is killed: CRIU ends by itself, and says that it has failed. Every other one is killed while the main process
# copies its contents, or it does so itself.
scenario_killed_task() { # oldest and newest
	local all n task

	read_kills
	dumped_once
	knob engine_bytes_per_s 10000000
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
	killed_in_time
	knob engine_bytes_per_s 0
	restore img
	runs
	verify
	finish
}
