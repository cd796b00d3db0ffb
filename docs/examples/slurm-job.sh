#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A job of Slurm that goes on where it was: sbatch --gres=gpu:1 slurm-job.sh PROGRAM ARGUMENT...
# Two minutes before its time is over, Slurm sends SIGUSR1 to this script. The script dumps the program and puts the job
# back into the queue. The next run restores the program. docs/slurm.md has the rest.
#SBATCH --requeue --signal=B:USR1@120 --open-mode=append
images=$SLURM_SUBMIT_DIR/images-$SLURM_JOB_ID

# CRIU compares the sizes of open files, and Slurm appends to the file of this script. So the program has its own.
begin() {
	setsid "$@" < /dev/null > "$SLURM_SUBMIT_DIR/output-$SLURM_JOB_ID" 2>&1 &
	child=$! pid=$!
}

# This CRIU is the parent of the program, and ends with it.
go_on() {
	pid=$(cat "$images/pid")
	criu restore --unprivileged -D "$images" -o restore.log -v3 &
	child=$!
}

# If the dump fails, the program runs on. If Slurm does not requeue the job, this run restores the program.
dump() {
	rm -rf "$images.new"
	mkdir "$images.new"
	echo "$pid" > "$images.new/pid"
	criu dump --unprivileged -t "$pid" -D "$images.new" -o dump.log -v3 || return
	rm -rf "$images"
	mv "$images.new" "$images"
	scontrol requeue "$SLURM_JOB_ID" && exec sleep infinity # until Slurm ends this run
	echo "Slurm did not requeue job $SLURM_JOB_ID, so the program goes on in this run"
	wait "$child" # the restore needs its pid
	go_on
}

trap dump USR1
if [ -e "$images/pid" ]; then
	go_on
else
	begin "$@"
fi
# A signal ends a wait, so the status is asked for when the program has ended.
while kill -0 "$child" 2> /dev/null; do
	wait "$child"
done
wait "$child"
status=$?
[ "$status" != 0 ] || rm -rf "$images"
exit "$status"
