# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs in containers that are restored with other device nodes: another GPU, another number of /dev/kfd, more GPUs
# than the job has. If the /dev that CRIU restores lacks a node, the task makes it.

# checkpointed DIR: checkpoints the job of runc, and waits until the device is free. The file nodes has the job's nodes.
checkpointed() {
	job_nodes > nodes
	runc checkpoint --image-path "$work/$1" --work-path "$work/$1-logs" job
	stopped
}

# restored DIR: restores from these images. The nodes of the host must not change.
restored() {
	local nodes

	nodes=$(host_nodes)
	try_runc_restore "$1" || fail "restore failed ($?): $(errors "$1-logs/restore.log")"
	returned runc job
	[ "$(host_nodes)" = "$nodes" ] || fail "nodes of the host were $nodes and are $(host_nodes)"
}

try_runc_restore() {
	runc restore --bundle job --image-path "$work/$1" --work-path "$work/$1-logs" --detach job < /dev/null > /dev/null 2>&1
}

host_nodes() { stat -c '%n %i %t:%T %a %Z' /dev/kfd /dev/dri /dev/dri/*; }

# made DIR NODE...: the restore must have made these nodes and no others.
made() {
	local log=$1-logs/restore.log node

	[ "$(grep -c 'made the node' "$log")" = $(($# - 1)) ] || fail "made: $(grep 'made the node' "$log" | tr '\n' ' ')"
	for node in "${@:2}"; do
		has_line "$log" "$node: .*made the node"
	done
	gained "${@:2}"
}

# gained NODE...: the job has the nodes that it had at the checkpoint and these, and no others. Each of these has the number
# of the host's node, and the mode of the job's nodes in config.json.
gained() {
	local node

	for node; do
		sed -i "\\,^$node ,d" nodes
		stat -c '%n %t:%T 666' "$node" >> nodes
	done
	job_nodes | diff <(sort nodes) - > differences || fail "nodes of the job: $(tr '\n' ' ' < differences)"
}

job_nodes() { nsenter -t "$pid" -m /bin/busybox find /dev -type c -exec /bin/busybox stat -c '%n %t:%T %a' {} + | sort; }

run_job() { # [NODE...]
	bundle job "$@"
	runc run --bundle job --detach job < /dev/null > /dev/null 2>&1
	ready runc job
}

# A job is checkpointed, and its bundle gets the GPU's node of another machine.
job_moves_away() {
	machine one
	run_job
	checkpointed away
	machine one-other
	gets_other_node
}

# The job has one GPU, and another machine has the GPU under another minor.
scenario_container_other_machine() {
	local any_minor=1 other

	job_moves_away
	restored away
	made away "$other"
	checkpointed home
	no_device job "$other"
	machine one
	device job /dev/dri/renderD128
	restored home
	made home
	finish
}

# The job moves to another GPU of eight, and then to a third one.
scenario_container_other_gpu() { # long
	local any_minor=1

	machine eight
	run_job /dev/dri/renderD133
	sees_gpus 1
	checkpointed away
	no_device job /dev/dri/renderD133
	device job /dev/dri/renderD130
	machine eight # another GPU of it is another machine for the process
	restored away
	sees_gpus 1
	made away /dev/dri/renderD130
	checkpointed on
	no_device job /dev/dri/renderD130
	device job /dev/dri/renderD135
	restored on
	made on /dev/dri/renderD135
	finish
}

# config.json of the restore has the cgroup rule for another GPU, but not its node. The task makes the node.
scenario_container_rule_without_node() { # long
	local any_minor=1 other

	job_moves_away
	edit job 'del(.linux.devices[] | select(.path == $path))' --arg path "$other"
	restored away
	made away "$other"
	finish
}

# Another task makes the node while this task makes it. The task removes its own.
scenario_container_other_task_is_faster() { # long
	local any_minor=1 other

	job_moves_away
	LD_PRELOAD=/opt/vm/lib/faster.so restored away
	! grep 'made the node' away-logs/restore.log || fail "the other task was not faster"
	gained "$other"
	finish
}

# The host's /dev/dri is mounted, so no node is missing, and the task makes none.
scenario_container_mounted_nodes() { # long
	local any_minor=1

	machine eight
	another_gpu=1
	bundle job /dev/dri/renderD133
	bind job /dev/dri
	edit job 'del(.linux.devices[] | select(.path == "/dev/dri/renderD133"))'
	runc run --bundle job --detach job < /dev/null > /dev/null 2>&1
	ready runc job
	checkpointed away
	edit job '(.linux.resources.devices[] | select(.minor == 133)).minor = 130'
	restored away
	made away
	finish
}

# /dev/kfd has another number, as after a reboot, and then its old number again.
scenario_container_other_major() { # long
	machine one
	run_job
	checkpointed away
	no_device job /dev/kfd
	machine one+other-major
	device job /dev/kfd
	restored away
	made away /dev/kfd
	checkpointed again
	restored again
	made again
	checkpointed home
	no_device job /dev/kfd
	machine one
	device job /dev/kfd
	restored home
	made home /dev/kfd
	finish
}

# crun sets the device cgroup after the restore, so the task sees eight GPUs at first. The job has SVM ranges, so KFD must
# give the process one GPU.
scenario_container_podman_gpu_5_of_8() { # long
	local log

	crun_checkpoints
	machine eight
	podman_image
	podman_devices /dev/dri/renderD133
	podman --runtime crun run -d --name job "${devices[@]}" -v "$work/log:/log" gpu:1 /job
	ready podman job
	sees_gpus 1
	podman container checkpoint job
	stopped
	podman container restore --keep job || fail "restore failed: $(errors /scratch/podman/overlay-containers/*/userdata/restore.log)"
	returned podman job
	sees_gpus 1
	log=$(podman_log restore)
	has_line "$log" "a program in the task's cgroup hides "
	no_program
	podman_there_and_back
	finish
}

# A BPF link lasts as long as its descriptors. systemd has links, but none of type BPF_CGROUP_DEVICE.
no_program() {
	local links

	links=$(grep -l '^attach_type:\s6$' /proc/[0-9]*/fdinfo/* 2> /dev/null) || true
	[ -z "$links" ] || fail "the program is still attached: $links"
}

# A podman archive on a machine where the GPU has another minor. The restored job can be checkpointed again.
scenario_container_podman_import_elsewhere() { # long
	local any_minor=1

	crun_checkpoints
	machine one
	podman_image
	podman_devices
	podman --runtime crun run -d --name job "${devices[@]}" -v "$work/log:/log" gpu:1 /job
	ready podman job
	podman container checkpoint --export "$work/job.tar.zst" job
	stopped
	podman rm -f job
	machine one-other
	podman --runtime crun container restore --keep --import "$work/job.tar.zst"
	returned podman job
	has_line "$(podman_log restore)" "$(gpu_nodes): .*made the node"
	podman_there_and_back
	finish
}
