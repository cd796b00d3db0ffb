# SPDX-License-Identifier: GPL-2.0-only
#
# What scenarios are written in: start a program, wait for a line of its log, dump, kill, restore,
# compare. Each function ends the scenario by itself when its step goes wrong; none of them knows
# what any scenario is about.

criu_version=$(cat /opt/vm/criu)
limit=60 # seconds for one event; many times what a slow emulated machine needs

why() { echo "$*" > "$work/why.txt"; }
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

# start LOG CMD...: runs it in a session of its own, as a service would; sets $pid.
start() {
	local log=$1

	shift
	: >> "$log"
	setsid "$@" < /dev/null > /dev/null 2>> "$log.err" &
	pid=$!
	disown "$pid"
}

alive() { # PID: there, and not a zombie
	local stat

	stat=$(cat "/proc/$1/stat" 2> /dev/null) || return 1
	case ${stat##*) } in [ZX]*) return 1 ;; esac
}

gone() { # PID: returns when it is gone
	timeout "$limit" tail --pid="$1" -f /dev/null || fail "process $1 does not end"
}

# wait_line LOG PATTERN [FROM]: the first line after line FROM that holds PATTERN; sets $line.
# A line that says FAILED ends the wait, so does the death of $pid.
wait_line() {
	local log=$1 pattern=$2 from=${3:-0} reader

	exec {reader}< <(exec timeout "$limit" tail -n "+$((from + 1))" -f -s 0.2 --pid="$pid" "$log" \
		2> /dev/null)
	while IFS= read -r line <&"$reader"; do
		case $line in
		*FAILED*) fail "$line" ;;
		*$pattern*)
			exec {reader}<&-
			return 0
			;;
		esac
	done
	exec {reader}<&-
	alive "$pid" || fail "process $pid died before \"$pattern\": $(tail -n 2 "$log" "$log.err" 2>&1)"
	fail "no \"$pattern\" from process $pid in $limit s"
}

lines() { wc -l < "$1"; }

# --- CRIU -------------------------------------------------------------------------------------

# Plugin lines that name an error, for the reason of a failure.
errors() { grep -h 'Error' "$@" 2> /dev/null | tail -n 3 | tr '\n' ' '; }

# dump DIR PID [ARG...]: must succeed.
dump() {
	try_dump "$@" || fail "dump failed ($?): $(errors "$1/dump.log")"
}

try_dump() {
	local dir=$1 target=$2

	shift 2
	mkdir -p "$dir"
	timeout "$limit" criu dump -t "$target" -D "$dir" -o "${dump_log:-dump.log}" -v4 "$@"
}

# restore DIR [ARG...]: must succeed; the task is on its own afterwards.
restore() {
	try_restore "$@" || fail "restore failed ($?): $(errors "$1/restore.log")"
}

try_restore() {
	local dir=$1

	shift
	timeout "$limit" criu restore -D "$dir" -o "${restore_log:-restore.log}" -v4 -d "$@"
}

# What a process has open: restored, it must be the same.
fds() {
	local fd

	for fd in "/proc/$1/fd"/*; do
		echo "${fd##*/} $(readlink "$fd")"
	done | sort -n
}

has_line() { # FILE PATTERN
	grep -q -- "$2" "$1" || fail "no line with \"$2\" in ${1##*/}: $(errors "$1")"
}

# --- the end ----------------------------------------------------------------------------------

# Nothing is left behind: run after every scenario that came to its end.
settled() {
	! dmesg | grep -E 'WARNING:|BUG:|Oops' || fail "the kernel complains: see dmesg"
}
