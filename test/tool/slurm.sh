# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of docs/examples/slurm-job.sh, with programs that stand in for CRIU, Slurm and the job. test/tool/run reads
# this file. The shell says on stderr which jobs were killed.

# CRIU's stand-in keeps the command of the program and ends the program, and starts it again, if its output is as long as it
# was at the dump. Like CRIU, it ends with 0 however a restored program ends. A dump fails if there is a file "refuse". Each other command of a run adds a line to
# "steps", and the one whose number is in "kill-at" kills the run instead.
slurm_programs() {
	local name

	mkdir -p "$work/slurm/bin"
	cat > "$work/slurm/bin/criu" <<-'EOF'
		#!/bin/bash
		action=$1
		for argument; do
			[ "$before" != -D ] || images=$argument
			before=$argument
		done
		if [ "$action" = restore ]; then
			[ "$(stat -c %s output-7)" = "$(cat "$images/expected")" ] || { echo 'output-7 has bad size'; exit 1; }
			RESTORED=$(cat "$images/number") xargs -0 -a "$images/command" setsid -w sh -c 'exec "$0" "$@" >> output-7 2>&1'
			exit 0
		fi
		[ ! -e refuse ] || { echo 'Dumping FAILED.' > "$images/dump.log"; exit 1; }
		pid=$(echo $(cat group)) # a restored program would have the pid of -t
		cp "/proc/$pid/cmdline" "$images/command"
		number=$(($(cat dumps 2> /dev/null) + 1))
		echo $number > "$images/number" && echo $number > dumps
		kill -KILL -- "-$pid"
		stat -c %s output-7 > "$images/expected"
		echo 'Dumping finished successfully' > "$images/dump.log"
	EOF
	cat > "$work/slurm/bin/step" <<-'EOF'
		#!/bin/bash
		name=${0##*/}
		echo "$name" >> steps
		[ "$(wc -l < steps)" != "$(cat kill-at 2> /dev/null)" ] || kill -KILL 0
		PATH=${PATH#*:}
		case $name in
		rm) [ ! -e cannot-remove ] && exec rm "$@" ;;
		scontrol) [ ! -e no-requeue ] ;;
		*) exec "$name" "$@" ;;
		esac
	EOF
	cat > "$work/slurm/bin/program" <<-'EOF'
		#!/bin/bash
		ps -o pgid= $$ > group
		echo "${RESTORED:-begun}" >> starts
		echo "prints, ${RESTORED:-begun}"
		end=end-$(wc -l < starts)
		until [ -e "$end" ]; do sleep 0.02; done
		. "./$end"
	EOF
	chmod +x "$work/slurm/bin"/*
	for name in rm mkdir mv ln scontrol; do
		ln -s step "$work/slurm/bin/$name"
	done
}

# What follows is a new job, in a folder of its own.
slurm_job() { # NAME
	slurm_name=$1
	cd "$(mktemp -d -p "$work/slurm")" || exit 1
}

slurm_until() { # COMMAND...
	local i

	for ((i = 0; i < 500; i++)); do
		! "$@" || return 0
		sleep 0.02
	done
	slurm_is "$*" "at last" "never"
}
slurm_has_starts() { [ "$(cat starts 2> /dev/null | wc -l)" -ge "$1" ]; }
slurm_has_ended() { [ ! -e "/proc/$slurm_pid" ] || [ "$(cat "/proc/$slurm_pid/comm")" = sleep ]; }
slurm_has_failed() { grep -qs FAILED images-7*/dump.log; }

# The next run, which starts the program.
slurm_run() {
	local starts

	starts=$(cat starts 2> /dev/null | wc -l)
	PATH=$work/slurm/bin:$PATH SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=7 setsid "$checkout/docs/examples/slurm-job.sh" program >> out 2>&1 &
	slurm_pid=$!
	slurm_until slurm_has_starts $((starts + 1))
}

# The run gets the signal, and ends. Slurm kills all of it.
slurm_requeue() {
	kill -USR1 "$slurm_pid"
	slurm_until slurm_has_ended
	kill -KILL -- "-$slurm_pid" "-$(echo $(cat group))" 2> /dev/null
	wait "$slurm_pid" 2> /dev/null
}

# The program ends with COMMAND, and the run with STATUS.
slurm_ends() { # COMMAND STATUS
	echo "$1" > "end-$(wc -l < starts)"
	wait "$slurm_pid"
	slurm_is "the status of the run" "$2" "$?"
}

slurm_is() { # WHAT EXPECTED FOUND
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "tool: slurm-job.sh, $slurm_name failed: $1: \"$3\", expected \"$2\"; its output:"
	sed 's/^/    /' out
}

slurm_starts() { slurm_is "the starts of the program" "$1" "$(echo $(cat starts))"; }
slurm_images() { slurm_is "complete images" "$1" "$(cat images-7*/dump.log 2> /dev/null | grep -c finished)"; }

# The second dump is killed at each of its steps. The next run goes on where one of the two dumps was.
slurm_kills() {
	local step=0

	until [ "$step" -gt 1 ] && [ "$(wc -l < steps)" -lt "$step" ]; do
		slurm_job "killed at step $((++step))"
		slurm_run
		slurm_requeue
		slurm_run
		: > steps && echo "$step" > kill-at
		slurm_requeue
		mv kill-at killed-at
		slurm_run
		slurm_is "the third start" "$(cat dumps)" "$(tail -n 1 starts)"
		slurm_ends "exit 0" 0
	done
	slurm_is "steps" true "$([ "$step" -gt 3 ] && echo true)"
}

slurm_jobs() {
	local checkout=$PWD

	slurm_programs
	slurm_job "no signal"
	slurm_run
	slurm_ends "exit 3" 3

	slurm_job "two dumps"
	slurm_run
	slurm_requeue
	slurm_run
	slurm_requeue
	slurm_images 1
	slurm_run
	slurm_ends "exit 0" 0
	slurm_starts "begun 1 2"
	slurm_images 0

	slurm_job "a crash after the restore"
	slurm_run
	slurm_requeue
	slurm_run
	slurm_ends 'kill -SEGV $$' 139
	slurm_images 1
	slurm_run
	slurm_ends "exit 0" 0
	slurm_starts "begun 1 1"

	slurm_job "a program that is killed with its shell"
	slurm_run
	slurm_requeue
	slurm_run
	slurm_ends 'kill -KILL $PPID $$' 1
	slurm_images 1

	slurm_job "a dump that fails"
	slurm_run
	touch refuse
	kill -USR1 "$slurm_pid"
	slurm_until slurm_has_failed
	rm refuse
	slurm_requeue
	slurm_run
	slurm_ends "exit 0" 0
	slurm_starts "begun 1"

	slurm_job "no requeue"
	slurm_run
	touch no-requeue
	kill -USR1 "$slurm_pid"
	slurm_until slurm_has_starts 2
	slurm_ends "exit 0" 0
	slurm_starts "begun 1"

	slurm_job "old images that cannot be removed"
	slurm_run
	slurm_requeue
	slurm_run
	touch cannot-remove
	slurm_requeue
	rm cannot-remove
	slurm_run
	slurm_ends "exit 0" 0
	slurm_starts "begun 1 2"

	slurm_kills
	cd "$checkout" || exit 1
}
