# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs in containers of docker, whose daemon has the experimental features. docker runs runc by way of containerd.

# The options are those that AMD's documents give.
scenario_container_docker() {
	machine one
	docker_daemon
	docker run -d --name job --network host --device /dev/kfd --device /dev/dri --group-add video \
		--security-opt seccomp=unconfined -v "$work/log:/log" gpu:1 /job
	ready docker job
	docker checkpoint create job one
	docker_stopped
	docker_restored --checkpoint one job
	finish
}

# The original continues, and its checkpoint's name is taken. After it has ended, the checkpoint restores it.
scenario_container_docker_leave_running() { # long
	machine one
	docker_job --device /dev/dri gpu:1 /job
	docker checkpoint create --leave-running job one
	unchanged
	! docker checkpoint create job one 2> said.txt || fail "docker replaced a checkpoint"
	has_line said.txt 'checkpoint with name one already exists'
	unchanged
	finish
	nothing_left
	docker wait job
	docker_restored --checkpoint one job
	finish
}

# docker says nothing about the reason of a failed restore.
scenario_container_docker_broken_image() { # long
	local image

	machine one
	docker_job --device /dev/dri gpu:1 /job
	docker_keeps_log
	docker checkpoint create job one
	docker_stopped
	damage "$(docker_checkpoints job)/one"
	! docker start --checkpoint one job || fail "this restore cannot have succeeded"
	has_line docker.log 'Error (amdgpu_plugin): .*cannot load BO .*checksum mismatch'
	nothing_left
	no_violation
	cp good "$image"
	docker_restored --checkpoint one job
	finish
}

# docker gives the restored job the present nodes of /dev/dri. The /dev that CRIU restores lacks the new one.
scenario_container_docker_other_machine() { # long
	local any_minor=1

	machine one
	docker_job --device /dev/dri gpu:1 /job
	docker_keeps_log
	docker checkpoint create job one
	docker_stopped
	machine one-other
	docker_restored --checkpoint one job
	has_line docker.log "$(gpu_nodes): .*made the node"
	finish
}
