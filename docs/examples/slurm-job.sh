#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A job of Slurm that goes on where it was: sbatch --gres=gpu:1 slurm-job.sh PROGRAM ARGUMENT...
# Two minutes before its time is over, Slurm sends SIGUSR1 to this script. The script dumps the program and puts the job
# back into the queue. The next run restores the program. docs/slurm.md has the rest.
#SBATCH --requeue --signal=B:USR1@120 --open-mode=append
all=$SLURM_SUBMIT_DIR/images-$SLURM_JOB_ID # each dump has a directory of its own: $all.0001 and so on
exit_status=$SLURM_SUBMIT_DIR/status-$SLURM_JOB_ID
output=$SLURM_SUBMIT_DIR/output-$SLURM_JOB_ID # of the program

# Sets $images to the directory of the last complete dump, or to nothing, and $next to that of the next dump. A killed
# dump has no such line in its log.
find_images() {
	local directory last=.0

	images=
	for directory in "$all".[0-9][0-9][0-9][0-9]; do
		[ -d "$directory" ] || continue
		last=$directory
		! grep -qs 'Dumping finished successfully' "$directory/dump.log" || images=$directory
	done
	printf -v next '%s.%04d' "$all" $((10#${last##*.} + 1))
}

# CRIU compares the sizes of open files, and Slurm appends to the file of this script. So the program has its own.
# `criu restore` ends with 0 however the program ends. So a shell, which is dumped with the program, writes its status.
begin() {
	setsid sh -c '"$@"; status=$?; echo "$status" > "$0"; exit "$status"' "$exit_status" "$@" \
		< /dev/null > "$output" 2>&1 &
	child=$! pid=$!
}

# CRIU wants the output as long as it was at the dump. A program that went on from these images has written more, and so has
# its shell if it crashed. At the first restore from them the output has that size. This CRIU is the parent of that shell, and
# ends with it.
go_on() {
	[ -s "$images/output-size" ] || stat -c %s "$output" > "$images/output-size"
	truncate -s "$(cat "$images/output-size")" "$output"
	pid=$(cat "$images/pid")
	criu restore --unprivileged -D "$images" -o restore.log -v3 &
	child=$!
}

# If the dump fails, the program runs on. If Slurm does not requeue the job, this run restores the program. The images
# of former dumps are removed last. Those that cannot be removed do no harm.
dump() {
	find_images
	mkdir "$next" && echo "$pid" > "$next/pid" || return
	criu dump --unprivileged -t "$pid" -D "$next" -o dump.log -v3 || return
	images=$next
	for old in "$all".*; do
		[ "$old" = "$images" ] || rm -rf "$old"
	done
	scontrol requeue "$SLURM_JOB_ID" && exec sleep infinity # until Slurm ends this run
	echo "Slurm did not requeue job $SLURM_JOB_ID, so the program goes on in this run"
	wait "$child" # the restore needs its pid
	go_on
}

trap dump USR1
rm -f "$exit_status" || exit
find_images
if [ "$images" ]; then
	go_on
else
	begin "$@"
fi
# A signal ends a wait, so the status is asked for when the program has ended.
while kill -0 "$child" 2> /dev/null; do
	wait "$child"
done
status=$(cat "$exit_status") || exit # not restored, or killed together with its shell
[ "$status" != 0 ] || rm -rf "$all".* "$exit_status"
exit "$status"
