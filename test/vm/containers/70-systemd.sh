# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs whose cgroups systemd makes, as podman and docker have it on a host with systemd.

# in_unit PATTERN: systemd has made the job's cgroup.
in_unit() { [[ $(job_cgroup) == /sys/fs/cgroup/$1 ]] || fail "the job is in $(job_cgroup)"; }

# may_open NODE: a process in the job's cgroup can open this node of the host.
may_open() { (echo $BASHPID > "$(job_cgroup)/cgroup.procs" && : <> "$1"); }

# only_gpu NODE: the device cgroup of the job allows this GPU, and no other one.
only_gpu() {
	local node

	sees_gpus 1
	for node in /dev/kfd "$1"; do
		may_open "$node" || fail "the job's cgroup denies $node"
	done
	for node in $(gpu_nodes); do
		[ "$node" = "$1" ] || ! may_open "$node" || fail "the job's cgroup allows $node"
	done
}

# systemd_podman RUNTIME: one GPU of eight. With systemd's cgroups, crun sets the rules before the restore as runc does, so
# the task need not hide GPUs.
systemd_podman() {
	local node=/dev/dri/renderD133

	[ "$1" != crun ] || crun_checkpoints
	machine eight
	podman_image
	podman --runtime "$1" run -d --name job --device /dev/kfd --device "$node" -v "$work/log:/log" gpu:1 /job
	ready podman job
	in_unit 'machine.slice/libpod-*.scope*'
	only_gpu "$node"
	podman container checkpoint job
	stopped
	podman container restore --keep job || fail "restore failed: $(errors /scratch/podman/overlay-containers/*/userdata/restore.log)"
	returned podman job
	in_unit 'machine.slice/libpod-*.scope*'
	only_gpu "$node"
	! grep 'hides' "$(podman_log restore)" || fail "the task saw other GPUs while it was restored"
	finish
}

scenario_container_systemd_podman() { # long
	systemd_podman crun
}

scenario_container_systemd_podman_runc() { # long
	systemd_podman runc
}

scenario_container_systemd_docker() { # long
	local node=/dev/dri/renderD133

	machine eight
	docker_job --device "$node" gpu:1 /job
	in_unit 'system.slice/docker-*.scope*'
	only_gpu "$node"
	docker checkpoint create job one
	docker_stopped
	docker_restored --checkpoint one job
	in_unit 'system.slice/docker-*.scope*'
	only_gpu "$node"
	finish
}

# unit NAME ARG... COMMAND...: a unit whose rules allow /dev/kfd.
unit() { systemd-run -q --unit "$1" -p DevicePolicy=closed -p 'DeviceAllow=/dev/kfd rw' "${@:2}"; }

# A service, dumped by CRIU from outside. CRIU makes its cgroup again without the unit's rules, so the task hides seven GPUs.
# Then CRIU restores it as another unit, which allows two GPUs. The task hides one of them, by a program beside systemd's.
scenario_container_systemd_unit() { # long
	local before

	machine eight
	rocm_before
	: > client.log
	unit job -p StandardOutput=null -p StandardError=null -p 'DeviceAllow=/dev/dri/renderD133 rw' /opt/vm/bin/gpu_client --log "$work/client.log"
	pid=$(systemctl show -P MainPID job)
	started+=("$pid")
	client="client $pid:"
	wait_line client.log "$client ready"
	in_unit 'system.slice/job.service'
	only_gpu /dev/dri/renderD133
	come_back
	in_unit 'system.slice/job.service'
	sees_gpus 1
	has_line img1/restore.log "a program in the task's cgroup hides "
	no_program
	may_open /dev/dri/renderD128 || fail "the unit's rules are back: correct docs/containers.md"
	before=$(state "$pid")
	dump img2 "$pid"
	gone "$pid"
	unit again -p 'DeviceAllow=/dev/dri/renderD130 rw' -p 'DeviceAllow=/dev/dri/renderD133 rw' -p Type=forking \
		criu restore -d -D "$work/img2" -o restore.log -v4 --manage-cgroups=ignore ||
		fail "restore failed: $(errors img2/restore.log)"
	in_unit 'system.slice/again.service'
	same_state "$before"
	sees_gpus 1
	has_line img2/restore.log "a program in the task's cgroup hides .*(renderD130)"
	no_program
	may_open /dev/dri/renderD130 || fail "the unit denies what it allows"
	! may_open /dev/dri/renderD128 || fail "the unit allows what it denies"
	ends_well
}
