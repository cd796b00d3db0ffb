# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs in containers of containerd, which runs runc.

# ctr freezes the job while CRIU saves it. The restore is a new container.
containerd_cycle() {
	ctr containers checkpoint --rw --image --task job saved:1
	unchanged
	finish
	nothing_left
	containerd_removed
	ctr containers restore --rw --live job saved:1
	returned containerd job
	ctr images rm saved:1
}

scenario_container_containerd() {
	machine one
	containerd_job --device /dev/dri/renderD128
	containerd_cycle
	finish
}

scenario_container_containerd_gpu_5_of_8() { # long
	machine eight
	containerd_job --device /dev/dri/renderD133
	sees_gpus 1
	containerd_cycle
	sees_gpus 1
	no_program
	finish
}

# On a busy machine containerd may answer that the program beside the ended container has gone. The kubelet asks again.
pod_stops() { # POD
	ask_cri StopPodSandbox "pod_sandbox_id: '$1'"
	grep -q '^grpc-status: 0' headers.txt
}

# What the kubelet asks of containerd: a checkpoint as an archive, and a pod with a container whose image is the archive.
scenario_container_containerd_pod() { # long
	local pod container

	machine one
	pod_daemon
	pod one localhost:5000/gpu:1 /dev/dri/renderD128
	ready containerd "$container"
	cri CheckpointContainer "container_id: '$container' location: '$work/job.tar'"
	unchanged
	finish
	nothing_left
	until_true pod_stops "$pod" || fail "the pod does not stop: $(cat headers.txt)"
	cri RemovePodSandbox "pod_sandbox_id: '$pod'"
	pod two "$work/job.tar" /dev/dri/renderD128
	returned containerd "$container"
	finish
}
