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

# docker_cycle: checkpoints, restores and ends the job.
docker_cycle() {
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

# docker writes to any folder, and starts from its own folder only.
scenario_container_docker_checkpoint_dir() { # long
	machine one
	docker_job --device /dev/dri gpu:1 /job
	docker checkpoint create --checkpoint-dir "$work/saved" job one
	docker_stopped
	! docker start --checkpoint one --checkpoint-dir "$work/saved" job 2> said.txt || fail "docker has learned it: correct docs/containers.md"
	has_line said.txt 'custom checkpointdir is not supported'
	cp -r saved/one "$(docker_checkpoints job)/"
	docker_restored --checkpoint one job
	finish
}

# Some versions of docker need the namespace of the network before CRIU has restored it. Then another container can have the
# job.
scenario_container_docker_other_network() { # long
	machine one
	docker_daemon
	docker run -d --name job --network none --device /dev/kfd --device /dev/dri -v "$work/log:/log" gpu:1 /job
	ready docker job
	docker checkpoint create job one
	docker_stopped
	if docker start --checkpoint one job 2> said.txt; then
		echo "this docker restores the network" > seen.txt
		returned docker job
	else
		has_line said.txt 'bind-mount /proc/0/ns/net'
		nothing_left
		docker create --name other --network host --device /dev/kfd --device /dev/dri -v "$work/log:/log" gpu:1 /job
		cp -r "$(docker_checkpoints job)/one" "$(docker_checkpoints other)/"
		docker_restored --checkpoint one other
	fi
	finish
}

scenario_container_docker_gpu_5_of_8() { # long
	machine eight
	docker_job --device /dev/dri/renderD133 gpu:1 /job
	sees_gpus 1
	docker checkpoint create job one
	docker_stopped
	docker_restored --checkpoint one job
	sees_gpus 1
	no_program
	finish
}

# Two processes, with the options that AMD's documents give for jobs of several.
scenario_container_docker_ipc_host() { # long
	machine one
	docker_job --device /dev/dri --ipc=host --cap-add=SYS_PTRACE gpu:1 /job --tree 2
	docker_cycle
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

# A job that was given one node by name. On the other machine that node is another driver's.
scenario_container_docker_wrong_node() { # long
	machine one
	docker_job --device /dev/dri/renderD128 gpu:1 /job
	docker_keeps_log
	docker checkpoint create job one
	docker_stopped
	machine one-other
	! docker start --checkpoint one job || fail "restored onto a forbidden GPU"
	has_line docker.log 'the image has 1 GPUs, but the task can use 0'
	nothing_left
	no_violation
	machine one
	docker_restored --checkpoint one job
	finish
}

# A refused job continues, and docker names the log that has the reason.
scenario_container_docker_refused() { # long
	local log

	machine one
	docker_job --device /dev/dri gpu:1 /job --gem-bo
	! docker checkpoint create job one 2> said.txt || fail "docker saved what cannot be saved"
	log=$(grep -o '/run/[^ ]*/criu-dump.log' said.txt) || fail "docker names no log: $(cat said.txt)"
	has_line "$log" "$gem"
	runs
	verify
	docker kill -s USR2 job
	wait_line client.log "client 1: dropped"
	before=$(job_state)
	docker_cycle
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

# The daemon as it is without a word in its configuration.
scenario_container_docker_not_experimental() { # long
	machine one
	docker_daemon --argjson experimental false
	docker run -d --name job --network host --device /dev/kfd --device /dev/dri -v "$work/log:/log" gpu:1 /job
	ready docker job
	! docker checkpoint create job one 2> said.txt || fail "docker needs no experimental features any more: correct README.md"
	has_line said.txt 'only supported on a Docker daemon with experimental features enabled'
	unchanged
	finish
}
