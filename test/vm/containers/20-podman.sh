# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs in containers of podman, with crun (the default on Debian) and with runc.

scenario_container_podman() {
	crun_checkpoints
	machine one
	podman_image
	podman run -d --name job --device /dev/kfd --device /dev/dri -v "$work/log:/log" gpu:1 /job
	ready podman job
	podman_there_and_back
	finish
}

# podman_cycle RUNTIME [ARG...]: checkpoints and restores a job in podman, and verifies it.
podman_cycle() {
	[ "$1" != crun ] || crun_checkpoints
	machine one
	podman_job "$@"
	podman container checkpoint --keep job
	stopped
	podman container restore --keep job
	returned podman job
	finish
}

scenario_container_podman_no_network() { # long
	podman_cycle crun --network none --read-only
}

scenario_container_podman_runc() { # long
	podman_cycle runc
}

scenario_container_podman_runc_no_network() { # long
	podman_cycle runc --network none
}

scenario_container_podman_terminal() { # long
	podman_cycle runc -t
}

# The original continues. After it has ended, the same checkpoint restores it.
podman_leave_running() { # RUNTIME
	[ "$1" != crun ] || crun_checkpoints
	machine one
	podman_job "$1"
	podman container checkpoint --leave-running job
	unchanged
	podman_back_after_its_end
}

scenario_container_podman_leave_running() { # long
	podman_leave_running crun
}

scenario_container_podman_runc_leave_running() { # long
	podman_leave_running runc
}

# Through an archive, as for a move to another machine.
podman_export() { # RUNTIME
	[ "$1" != crun ] || crun_checkpoints
	machine one
	podman_job "$1"
	podman container checkpoint --export "$work/job.tar.zst" job
	stopped
	podman rm -f job
	podman --runtime "$1" container restore --import "$work/job.tar.zst"
	returned podman job
	finish
}

scenario_container_podman_export() { # long
	podman_export crun
}

scenario_container_podman_runc_export() { # long
	podman_export runc
}

# One GPU of eight. runc sets the cgroup before the restore.
scenario_container_podman_runc_gpu_5_of_8() { # long
	machine eight
	podman_image
	podman --runtime runc run -d --name job --device /dev/kfd --device /dev/dri/renderD133 -v "$work/log:/log" gpu:1 /job
	ready podman job
	sees_gpus 1
	podman_there_and_back
	sees_gpus 1
	finish
}

# A limit of processes with room for the job and CRIU. runc has CRIU in the job's cgroup, where threads of the plugin would
# take the room of the job's threads. The GPUs are so slow that threads which load contents would still be there then.
# Without a hook in CRIU's main process the tasks load their contents with any limit, and no warning is due.
scenario_container_podman_runc_pids_limit() { # long
	local most log=/scratch/podman/overlay-containers/*/userdata/restore.log

	command podman update --help | grep pids-limit || skip "this podman cannot change the limit of a container"
	machine eight
	podman_job runc
	most=$(($(cat "$(job_cgroup)/pids.current") + 4))
	podman update --pids-limit "$most" job
	podman container checkpoint job
	stopped
	ask_gpu "speed 500000"
	start podman.txt sh -c 'podman container restore --keep job; echo $? > status'
	until_true sh -c "[ -s status ] || grep -qs 'contents: one thread loads them' $log"
	[ -s status ] || ask_gpu "speed 0"
	until_true [ -s status ]
	[ "$(cat status)" = 0 ] || fail "restore failed: $(errors $log)"
	returned podman job
	has_line "$(echo $log)" "contents: one thread loads them"
	! has_main_hook ||
		has_line "$(echo $log)" "Warn  (amdgpu_plugin): contents: a limit of processes leaves little room"
	[ "$(cat "$(job_cgroup)/pids.max")" = "$most" ] || fail "the limit is not there any more"
	finish
}

scenario_container_podman_no_gpu() { # long
	crun_checkpoints
	no_machine
	podman_image
	podman run -d --name job -v "$work/log:/log" gpu:1 /bin/sh -c "$no_gpu_script"
	podman_pid job
	started+=("$pid")
	wait_line client.log "waits"
	podman container checkpoint job
	gone "$pid"
	podman container restore job
	podman_pid job
	started+=("$pid")
	answers_without_gpu
}
