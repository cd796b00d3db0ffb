# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs of Slurm on one node: a user without root submits docs/examples/slurm-job.sh as docs/slurm.md has it.

# A name and an address of this machine, other than 127.0.0.1, which Slurm does not take, and the user.
one_time() { # NODE
	hostname "$1"
	ip address add 10.0.0.1/32 dev lo
	echo "10.0.0.1 $1" >> /etc/hosts
	groupadd -g "$render_group" gpus
	useradd -M -u 1000 -G gpus user
	setcap cap_checkpoint_restore+eip /usr/sbin/criu
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

# submit ARG...: as the user, in the work folder. Prints the number of the job.
submit() { $user sbatch --parsable --gres=gpu:1 "$@"; }

job_is() { scontrol -o show job "$1" | grep -q "JobState=$2 "; } # JOB STATE
in_state() { until_true job_is "$@" || fail "$(scontrol -o show job "$1")"; }

has_program() { pid=$(pgrep -x gpu_client); }

# Sets $pid to the program of the job, and $shown to its GPU.
program_of_job() {
	until_true has_program || fail "no program: $(cat slurm-*.out)"
	client="client $pid:"
	wait_line client.log "$client ready"
	sees_gpus 1
	shown=$(cd "$kfd/proc/$pid" && echo vram_*)
}

signal_job() { $user scancel --batch --signal=USR1 "$1"; }
has_failed() { grep -q 'Dumping FAILED' "images-$1.new/dump.log"; }
has_restored() { grep -q 'Restore finished successfully' "images-$1/restore.log"; }

# The first dump is refused, and the program runs on. The second one succeeds, and Slurm gives the next run another GPU,
# which another job had before.
scenario_slurm_requeue() {
	local job other shown before any_minor=1

	machine eight
	as_user
	cluster
	other=$(submit --wrap 'exec sleep inf')
	in_state "$other" RUNNING
	job=$(submit /opt/vm/lib/slurm-job.sh /opt/vm/bin/gpu_client --log "$work/client.log" --gem-bo)
	program_of_job
	signal_job "$job"
	until_true has_failed "$job" || fail "the dump was not refused: $(cat slurm-*.out)"
	has_line "images-$job.new/dump.log" 'Error (amdgpu_plugin): .*GEM'
	criu_ends
	runs
	verify
	job_is "$job" RUNNING
	[ ! -e "images-$job" ] || fail "a refused dump left images"
	lines client.log
	kill -USR2 "$pid"
	wait_line client.log "$client dropped" "$lines"
	before=$(state "$pid")
	scontrol update PartitionName=main State=DOWN
	signal_job "$job"
	gone "$pid"
	in_state "$job" PENDING
	nothing_left
	scancel "$other"
	in_state "$other" CANCELLED
	machine eight # another GPU of it is another machine for the process
	scontrol update PartitionName=main State=UP
	scontrol update JobId="$job" StartTime=now
	until_true has_restored "$job" || fail "not restored: $(cat slurm-*.out) $(errors "images-$job/restore.log")"
	set -- "$shown"
	program_of_job
	[ "$shown" != "$1" ] || fail "the job has the GPU of its first run"
	same_state "$before"
	runs
	verify
	cmp "/proc/$pid/cgroup" "/proc/$(pgrep -x criu)/cgroup" || fail "the program is in $(cat "/proc/$pid/cgroup")"
	finish
	in_state "$job" COMPLETED
	[ ! -e "images-$job" ] || fail "the images are still there"
}
