# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs in containers of runc, with namespaces of their own for network, mounts, processes, IPC, host name and
# cgroups. The commands are those that a user types; the first scenario is the example in README.

scenario_container_runc() {
	machine one
	bundle job
	(cd job && runc run --detach job < /dev/null > /dev/null 2>&1)
	ready runc job
	(cd job && runc checkpoint --image-path "$work/images" --work-path "$work/logs" job)
	stopped
	(cd job && runc restore --image-path "$work/images" --work-path "$work/logs" --detach job < /dev/null > /dev/null 2>&1)
	returned runc job
	finish
}

# Three times, and without paths: runc then uses directories below the current one and the bundle.
scenario_container_runc_again() { # long
	local turn

	machine one
	bundle job
	(cd job && runc run --detach job < /dev/null > /dev/null 2>&1)
	ready runc job
	for turn in 1 2 3; do
		(cd job && runc checkpoint job)
		stopped
		(cd job && runc restore --detach job < /dev/null > /dev/null 2>&1)
		returned runc job
		rm -r job/checkpoint
	done
	finish
}

# The original continues. After it has ended, its images restore.
scenario_container_runc_leave_running() { # long
	machine one
	runc_job
	runc checkpoint --leave-running --image-path "$work/images" --work-path "$work/logs" job
	unchanged
	runc_back_after_its_end
}

# Two processes; the cgroup gives the job two of eight GPUs.
scenario_container_runc_tree() { # long
	machine eight
	bundle job /dev/dri/renderD130 /dev/dri/renderD134
	job_args job --tree 2
	runc_run
	ready runc job --tree
	runc_cycle
	finish
}

# Three processes share a buffer of the GPU. Before CRIU 4.2 a task loads its contents while CRIU restores the threads of
# the others, whose ids it must not take.
scenario_container_runc_sharing() { # long
	needs_dma_bufs
	machine one
	bundle job
	job_args job --tree 3 --shared --depth 64 --gpus 0
	runc_run
	ready runc job --tree
	runc_cycle
	counts_in_one_buffer 3
	rm -r images
	runc_cycle
	counts_in_one_buffer 3
	finish
}

scenario_container_runc_gpu_5_of_8() { # long
	machine eight
	bundle job /dev/dri/renderD133
	runc_run
	ready runc job
	sees_gpus 1
	runc_cycle
	sees_gpus 1
	finish
}

# A memory limit, a network namespace that exists before the container, and cgroups that CRIU does not manage.
scenario_container_runc_limits() { # long
	local cgroups=()

	# runc 1.1 does not know this mode.
	! command runc checkpoint --help | grep -q 'manage-cgroups-mode.*ignore' || cgroups=(--manage-cgroups-mode ignore)
	machine one
	bundle job
	ip netns add job
	edit job '.linux.resources.memory.limit = 96 * 1024 * 1024 |
		(.linux.namespaces[] | select(.type == "network")).path = "/run/netns/job"'
	runc_run
	ready runc job
	runc checkpoint "${cgroups[@]}" --image-path "$work/images" --work-path "$work/logs" job
	stopped
	runc restore "${cgroups[@]}" --bundle job --image-path "$work/images" --work-path "$work/logs" \
		--detach job < /dev/null > /dev/null 2>&1
	returned runc job
	[ "$(cat "/sys/fs/cgroup$(cut -d : -f 3 "/proc/$pid/cgroup")/memory.max")" = 100663296 ] || fail "the limit is not there any more"
	finish
	ip netns del job
}

# A container without a GPU, with the plugin installed.
scenario_container_runc_no_gpu() { # long
	no_machine
	bundle job
	edit job '.process.args = ["/bin/sh", "-c", $script]' --arg script "$no_gpu_script"
	runc_run
	runc_pid job
	started+=("$pid")
	wait_line client.log "waits"
	runc checkpoint --image-path "$work/images" --work-path "$work/logs" job
	gone "$pid"
	runc_restore
	runc_pid job
	started+=("$pid")
	answers_without_gpu
}
