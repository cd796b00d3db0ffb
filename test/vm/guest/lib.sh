# SPDX-License-Identifier: GPL-2.0-only
#
# The steps of scenarios: start a program, wait for a line of its log, dump, kill, restore, compare. A
# step that fails ends the scenario. What the steps ask of the GPU and its driver is in driver.sh.
#
# In an emulated machine the start of a program takes tenths of a second, and a traced line costs time,
# too. So the shell itself does what is frequent, and loops that wait are not traced.

read -r criu_version < /opt/vm/criu
# In CRIU 4.2 and later the main process has a hook and loads the contents.
has_main_hook() { [[ $criu_version != 3.* && $criu_version != 4.1* ]]; }
. /opt/vm/guest/driver.sh
plugins=${CRIU_LIBS_DIR:-/usr/lib/criu}
limit=390 # seconds for one event, on a busy host: the client gives up after 120 and logs what it lacks

# why REASON: writes the reason and the state of the device to the report and to the logs.
why() {
	echo "$*" > "$work/why.txt"
	! has_device || device_state > "$work/device.txt" 2>&1 || true
}
fail() {
	trap - ERR
	why "$*"
	exit 1
}
skip() {
	trap - ERR
	why "$*"
	exit 77
}

# --- programs ---------------------------------------------------------------------------------

started=()

# start LOG CMD... [--close-standard-files]: runs the command in a session of its own, like a service.
# Sets $pid.
start() {
	local log=$1

	shift
	: >> "$log"
	case $* in
	*' --close-standard-files')
		setsid "${@:1:$#-1}" <&- >&- 2>&- &
		;;
	*)
		setsid "$@" < /dev/null > /dev/null 2>> "$log.err" &
		;;
	esac
	pid=$!
	started+=("$pid")
	disown "$pid"
}

alive() { # PID: there, and not a zombie
	local stat

	read -r stat 2> /dev/null < "/proc/$1/stat" || return 1
	case ${stat##*) } in [ZX]*) return 1 ;; esac
}

# The time between two looks. No process writes to that pipe.
nap() { read -r -t 0.05 <> /run/never || true; }

# until_true CMD...: returns as soon as the command succeeds. For events without a log line.
until_true() {
	local end=$((SECONDS + limit)) -

	set +x
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		nap
	done
}

dead() { ! alive "$1"; }
gone() { until_true dead "$1" || fail "process $1 does not end"; }

# A zombie still has its pid, and so does a process whose other threads have not ended yet.
has_no_number() { [ ! -e "/proc/$1" ]; }

# wait_line LOG PATTERN [FROM]: waits for a line with PATTERN after line FROM, and sets $line. A line
# with FAILED ends the wait, and so do the death of $pid and a violation that the emulated GPU reports.
wait_line() {
	local log=$1 pattern=$2 from=${3:-0} end=$((SECONDS + limit)) ask=$((SECONDS + 5)) at=0 part= dies= reader -

	set +x
	exec {reader}< "$log"
	while [ -z "$dies" ] && [ $SECONDS -lt $end ]; do
		[ "$at" = 0 ] || nap
		[ $SECONDS -lt $ask ] || { no_violation && ask=$((SECONDS + 5)); }
		alive "$pid" || dies=1 # and what it still said is read
		while IFS= read -r line <&"$reader" || { part+=$line && false; }; do
			line=$part$line part=
			[ $((++at)) -gt "$from" ] || continue
			case $line in
			*FAILED*) fail "$line" ;;
			*$pattern*)
				exec {reader}<&-
				return 0
				;;
			esac
		done
	done
	exec {reader}<&-
	[ -z "$dies" ] || fail "process $pid died before \"$pattern\": $(tail -n 2 "$log" "$log.err" 2>&1)"
	# The kernel functions in which it waits.
	(cd "/proc/$pid/task" && tail -n +1 */comm */syscall */stack) > stacks.txt 2>&1 || true
	fail "no \"$pattern\" from process $pid in $limit s"
}

lines() { # FILE: sets $lines
	mapfile -t lines < "$1"
	lines=${#lines[@]}
}

# --- CRIU -------------------------------------------------------------------------------------

# Plugin lines that name an error, for the reason of a failure.
errors() { grep -h 'Error' "$@" 2> /dev/null | tail -n 3 | tr '\n' ' '; }

# Writes the stacks of all processes to the scenario's folder, and to the console, whose log is always
# kept.
autopsy() { # WHY
	local file command

	{
		echo "autopsy: $*"
		for file in /proc/[0-9]*/task/*; do
			command=$(tr '\0' ' ' < "$file/cmdline") || true
			[ -n "$command" ] || continue # the kernel's own
			echo "--- $file $command"
			grep -E '^(Name|State|PPid|TracerPid|Sig|Shd)' "$file/status" || true
			(cd "$file" && tail -n +1 wchan syscall stack) || true
		done
	} 2>&1 | tee -a "$work/autopsy.txt" > /dev/console
}

# bounded criu ARG...: with a time limit. A CRIU that does not end after SIGTERM is killed; its status is
# 137.
bounded() {
	local end code=137 criu

	exec {end}< <(code=0; "$@" 1>&2 || code=$?; echo $code)
	criu=$!
	if ! read -r -t "$limit" code <&"$end"; then
		autopsy "no end of: $*"
		criu=$(pgrep -P "$criu") || true
		kill "$criu" || true
		read -r -t 10 code <&"$end" || kill -9 "$criu" || true
		code=137
	fi
	exec {end}<&-
	return "$code"
}

# dump DIR PID [ARG...]: the dump must succeed.
dump() {
	try_dump "$@" || fail "dump failed ($?): $(errors "$1/dump.log")"
}

try_dump() {
	local dir=$1 target=$2

	shift 2
	[ -d "$dir" ] || mkdir -p "$dir"
	streaming capture bounded criu dump -t "$target" -D "$dir" \
		-o "${dump_log:-dump.log}" -v4 "$@"
}

# A connection that has ended keeps its port for a minute (TIME-WAIT), and a listening socket that has the same port cannot be
# restored meanwhile.
no_port_waits() { ! awk '$4 == "06"' /proc/net/tcp | grep -q .; }

# restore DIR [ARG...]: the restore must succeed. The task then runs without CRIU.
restore() {
	[[ " $* " != *" --tcp-established "* ]] || until_true no_port_waits || fail "ports are still in use: $(cat /proc/net/tcp)"
	try_restore "$@" || fail "restore failed ($?): $(errors "$1/restore.log")"
}

try_restore() {
	local dir=$1

	# CRIU gives the task its old pid.
	! dead "${pid:-0}" || until_true has_no_number "${pid:-0}" ||
		fail "process $pid is a zombie: its parent does not wait for it"
	shift
	streaming serve bounded criu restore -D "$dir" -o "${restore_log:-restore.log}" -v4 -d "$@"
}

# streaming capture|serve CRIU...: with $store set, CRIU streams the images, and the streamer keeps them in
# $store. Otherwise they are files. Expects $dir. On success the streamer has ended and all images are
# complete.
streaming() {
	local how=$1 pid lines

	shift
	if [ -z "${store:-}" ]; then
		"$@"
		return
	fi
	mkdir -p "$store"
	: >> streamer.log
	lines streamer.log
	start streamer.log /opt/vm/bin/streamer "$how" "$work/$dir" "$work/$store" "$work/streamer.log"
	wait_line streamer.log "streamer $pid ready" "$lines"
	if "$@" --stream; then
		wait_line streamer.log "streamer $pid ${how}d" "$lines"
		gone "$pid"
	else
		set -- $?
		kill -9 "$pid" 2> /dev/null || true # CRIU may not even have come to it
		gone "$pid"
		return "$1"
	fi
}

# Lists the open files of a process. They must be the same after a restore.
fds() { find "/proc/$1/fd" -mindepth 1 -printf '%f %l\n' | sort -n; }

has_line() { # FILE PATTERN
	grep -q -- "$2" "$1" || fail "no line with \"$2\" in ${1##*/}: $(errors "$1")"
}

# damage DIR: writes to the contents of one GPU in the images of this folder, and keeps the good file. Sets $image. GPUs
# without contents have smaller images.
damage() {
	image=$(ls -S "$1"/amdgpu-pages-* | head -n 1)
	cp "$image" good
	printf 'wrong' | dd of="$image" bs=1 seek=100000 conv=notrunc status=none
}

# plugin_error FILE PATTERN [COUNT]: exactly COUNT (1) error lines of the plugin match PATTERN, and there
# are no others. The end of a restore that has failed repeats the first one, which does not count.
plugin_error() {
	local lines

	lines=$(grep 'Error (amdgpu_plugin): ' "$1" | grep -v ': restore failed: ') || true
	has_line "$1" "Error (amdgpu_plugin): .*$2"
	[ "$(grep -c . <<< "$lines")" = "${3:-1}" ] || fail "not ${3:-1} error lines: ${lines//$'\n'/ }"
}

# --- the GPU client ---------------------------------------------------------------------------

# Makes the machine one on which a ROCm program has run before.
rocm_before() { [ -e /dev/shm/sem.hsakmt_semaphore ] || /opt/vm/bin/rocm-before; }

# start_client ARG...: the client is ready when this returns. $pid is the client or the parent of a tree.
# $program is another client than gpu_client. $as is a command that starts it, for example as another user.
start_client() {
	[[ " $* " != *" --kernel "* ]] || needs_march
	rocm_before
	start client.log ${as-} "/opt/vm/bin/${program:-gpu_client}" --log "$work/client.log" "$@"
	client="client $pid:"
	case $* in *--tree*) client=tree ;; esac
	wait_line client.log "$client ready"
}

# start_program NAME ARG...: a client with its log as the first argument, ready. $as as above.
start_program() {
	start client.log ${as-} "/opt/vm/bin/$1" "$work/client.log" "${@:2}"
	client="client $pid:"
	wait_line client.log "$client ready"
}

# Asks the client (or the whole tree) to verify its memory and queues, and to go on.
verify() {
	lines client.log
	kill -USR1 "$pid" || fail "the client is not there any more"
	wait_line client.log "$client verified" "$lines"
}

# shared_counts AFTER: what the clients saw in the buffer since line AFTER of client.log, a line each.
shared_counts() { tail -n "+$(($1 + 1))" client.log | sed -n 's/.*: shared [0-9]* //p'; }

# counts_in_one_buffer COUNT: the engines of the tree's COUNT processes (--shared) count in one buffer, so no process
# reads a lower count than one of them has read before.
counts_in_one_buffer() {
	local count=$1 before after

	runs
	lines client.log
	before=$lines
	verify
	lines client.log
	after=$lines
	runs
	verify
	{ shared_counts "$before" | head -n "$count"; shared_counts "$after" | tail -n "$count"; } > counts.txt
	awk -v n="$count" 'NR <= n { for (i = 1; i <= n; i++) if ($i > most[i]) most[i] = $i }
	     NR > n { for (i = 1; i <= n; i++) if ($i < most[i] || !$i) exit 1 }
	     END { if (NR != 2 * n) exit 1 }' counts.txt || fail "not one buffer: $(tr '\n' ';' < counts.txt)"
}

# The client verifies everything once more and exits.
finish() {
	lines client.log
	kill -TERM "$pid" || fail "the client is not there any more"
	wait_line client.log "$client finished ok" "$lines"
	gone "$pid"
}

# The queues run, and the client verifies everything twice and exits.
ends_well() {
	runs
	verify
	finish
}

# Prints what must be the same before and after, for each process of the session. Another machine has
# other render minors; then $any_minor is set.
state() { /opt/vm/bin/state ${any_minor:+-m} "$1"; }

same_state() { # BEFORE
	local now

	now=$(state "$pid")
	[ "$now" = "$1" ] || fail "not as before: $(diff <(echo "$1") <(echo "$now") | grep '^[<>]' |
		head -n 4)"
}

in_session() { # SESSION PID
	local stat

	read -r stat 2> /dev/null < "/proc/$2/stat" || return 1
	stat=${stat##*) } # state, parent, group, session
	stat=${stat#* * * }
	[ "${stat%% *}" = "$1" ]
}

# The queues of each process of the session run.
runs() {
	local process processes

	gpu_processes "$pid"
	[ ${#processes[@]} -gt 0 ] || fail "KFD knows no process of session $pid"
	for process in "${processes[@]}"; do
		process_runs "$process"
	done
}

# Prints the gpu_ids of the GPUs that this process may see, in the order of their nodes.
gpu_ids() {
	local file id

	for file in /sys/class/kfd/kfd/topology/nodes/*/gpu_id; do
		id=$(cat "$file" 2> /dev/null) || continue # a hidden GPU
		[ "$id" = 0 ] || printf '0x%04x\n' "$id"
	done
}

no_failed_client() {
	local text

	read -r -d '' text < client.log || true
	[[ $text != *FAILED* ]] || fail "$(grep -m 1 FAILED client.log)"
}

nothing_left() { until_true holds_nothing || fail "left in the device: $(held)$(holders)"; }

# What may hold it: the processes other than those of the kernel and of this test, each with its state.
holders() { ps -o pid=,ppid=,stat=,wchan=,comm= --ppid 2 -p 2 -N | grep -vE '\<(runner|systemd|bash|ps|sleep|timeout|tail)$' | tr -s ' \n' ' ;'; }

nothing_of_criu_runs() { ! pgrep -x 'criu|amdgpu_guard' > /dev/null; }
# Also the helper process of CRIU 4.3.
criu_ends() { until_true nothing_of_criu_runs || fail "left of CRIU: $(pgrep -a -x 'criu|amdgpu_guard')"; }

# go_away DIR [ARG...]: dump and death. The device then holds nothing of the client.
go_away() {
	dump "$1" "$pid" "${@:2}"
	gone "$pid"
	nothing_left
}

# come_back [ARG...]: dump, death, restore, and the same state as before. $then_machine changes the
# machine in between: its name, and the hidden GPUs if any. $at_restore has arguments of the restore.
# With $rests, the queues of the client have work only while it verifies.
come_back() {
	local before dir=img$((++trips)) any_minor=${then_machine:-}

	before=$(state "$pid")
	go_away "$dir" "$@"
	no_violation
	[ -z "${then_machine:-}" ] || machine $then_machine
	restore "$dir" ${at_restore:-}
	same_state "$before"
	[ -n "${rests:-}" ] || runs
	verify
	no_violation
}
trips=0

# --- the end ----------------------------------------------------------------------------------

# Runs after each completed scenario. It kills all processes that still run. Objects that the device then
# still has are leaks.
settled() {
	local process

	for process in "${started[@]}"; do
		kill -9 -- "-$process" 2> /dev/null || continue
	done
	for process in "${started[@]}"; do
		gone "$process"
	done
	if has_device; then
		nothing_left
		no_violation
	fi
	no_complaint
}
