# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs of Slurm on one node: a user without root submits docs/examples/slurm-job.sh as docs/slurm.md has it.

# A name and an address of this machine, other than 127.0.0.1, which Slurm does not take, and the user.
one_time() { # NODE
	hostname "$1"
	ip address add 10.0.0.1/32 dev lo
	echo "10.0.0.1 $1" >> /etc/hosts
	groupadd -g "$render_group" gpus
	groupadd -g "$criu_group" criu
	useradd -M -u 1000 -G gpus,criu user
}

# A cluster of this machine, whose device cgroups show each job its own GPUs. as_user() has prepared the GPUs' nodes.
cluster() {
	local node=vm nodes=(/dev/dri/renderD*)

	id user || one_time "$node"
	mkdir -p /etc/slurm /run/munge "$work"/slurm/{state,spool}
	cat > /etc/slurm/slurm.conf <<-EOF
		ClusterName=vm
		SlurmctldHost=$node
		SlurmUser=root
		StateSaveLocation=$work/slurm/state
		SlurmdSpoolDir=$work/slurm/spool
		SlurmctldPidFile=/run/slurmctld.pid
		SlurmdPidFile=/run/slurmd.pid
		ProctrackType=proctrack/cgroup
		TaskPlugin=task/cgroup
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		GresTypes=gpu
		JobRequeue=1
		ReturnToService=2
		NodeName=$node CPUs=2 Gres=gpu:${#nodes[@]} State=UNKNOWN
		PartitionName=main Nodes=$node Default=YES
	EOF
	printf 'Name=gpu File=%s\n' "${nodes[@]}" > /etc/slurm/gres.conf
	printf '%s\n' CgroupPlugin=cgroup/v2 IgnoreSystemd=yes ConstrainDevices=yes > /etc/slurm/cgroup.conf
	start munge.log munged --foreground --force
	start slurmctld.log slurmctld -D -v
	start slurmd.log slurmd -D -v
	until_true node_is_idle || fail "the node: $(sinfo -N -o %T%E -h)"
}
node_is_idle() { [ "$(sinfo -h -o %T)" = idle ]; }

# submit ARG...: as the user, in the work folder. Prints the number of the job, which has commands of its own.
submit() { PATH=$work/bin:${criu_of_user%/*}:$PATH $user sbatch --parsable --gres=gpu:1 "$@"; }

# The command rm of a job kills the run once, if there is a file for that.
deadly_rm() {
	mkdir -p bin
	cat > bin/rm <<-'EOF'
		#!/bin/bash
		[ ! -e kill-run ] || { /usr/bin/rm kill-run; kill -KILL 0; }
		exec /usr/bin/rm "$@"
	EOF
	chmod +x bin/rm
}

# The next run, now.
start_again() { # JOB
	scontrol update PartitionName=main State=UP
	job_is "$1" PENDING || scontrol requeue "$1"
	in_state "$1" PENDING
	scontrol update JobId="$1" StartTime=now
}

job_is() { scontrol -o show job "$1" | grep -q "JobState=$2 "; } # JOB STATE
in_state() { until_true job_is "$@" || fail "$(scontrol -o show job "$1")"; }

has_program() { pid=$(pgrep -x gpu_client); }

# Sets $pid to the program of the job, $session to the shell that has started it, and $shown to its GPU.
program_of_job() {
	until_true has_program || fail "no program: $(cat slurm-*.out)"
	session=$(($(ps -o sid= -p "$pid")))
	client="client $pid:"
	wait_line client.log "$client ready"
	sees_gpus 1
	shown=$(cd "$kfd/proc/$pid" && echo vram_*)
}

signal_job() { $user scancel --batch --signal=USR1 "$1"; }
has_failed() { grep -q 'Dumping FAILED' "images-$1.0001/dump.log"; }
is_restored() { grep -qs 'Restore finished successfully' "$1/restore.log"; }
restored_after_requeue() { until_true is_restored "$1" || fail "not restored: $(cat slurm-*.out) $(errors "$1/restore.log")"; } # IMAGES

# The first dump is refused, and the program runs on. The second one succeeds, and Slurm gives the next run another GPU,
# which another job had before. This run is killed when its dump is complete and the older images are still there. The
# next one begins with the dump, and its program crashes. Another one begins there again.
scenario_slurm_requeue() {
	local job other session shown before any_minor=1

	machine eight
	as_user
	cluster
	deadly_rm
	other=$(submit --wrap 'exec sleep inf')
	in_state "$other" RUNNING
	job=$(submit /opt/vm/lib/slurm-job.sh /opt/vm/bin/gpu_client --log "$work/client.log" --gem-bo)
	program_of_job
	signal_job "$job"
	until_true has_failed "$job" || fail "the dump was not refused: $(cat slurm-*.out)"
	has_line "images-$job.0001/dump.log" 'Error (amdgpu_plugin): .*GEM'
	criu_ends
	pid=$session runs
	verify
	job_is "$job" RUNNING
	[ ! -e "images-$job.0002" ] || fail "a dump without a signal"
	lines client.log
	kill -USR2 "$pid"
	wait_line client.log "$client dropped" "$lines"
	before=$(state "$session")
	scontrol update PartitionName=main State=DOWN
	signal_job "$job"
	gone "$pid"
	in_state "$job" PENDING
	nothing_left
	scancel "$other"
	in_state "$other" CANCELLED
	machine eight # another GPU of it is another machine for the process
	start_again "$job"
	restored_after_requeue "images-$job.0002"
	set -- "$shown"
	program_of_job
	[ "$shown" != "$1" ] || fail "the job has the GPU of its first run"
	pid=$session same_state "$before"
	pid=$session runs
	verify
	cmp "/proc/$pid/cgroup" "/proc/$(pgrep -x criu)/cgroup" || fail "the program is in $(cat "/proc/$pid/cgroup")"
	before=$(state "$session")
	$user touch kill-run
	signal_job "$job"
	gone "$pid"
	in_state "$job" FAILED
	[ -e "images-$job.0002" ] || fail "the run was killed too late"
	start_again "$job"
	restored_after_requeue "images-$job.0003"
	program_of_job
	pid=$session same_state "$before"
	verify
	kill -SEGV "$pid"
	in_state "$job" FAILED
	rm "images-$job.0003/restore.log"
	start_again "$job"
	restored_after_requeue "images-$job.0003"
	program_of_job
	pid=$session same_state "$before"
	verify
	finish
	in_state "$job" COMPLETED
	! compgen -G "images-$job*" || fail "the images are still there"
}
