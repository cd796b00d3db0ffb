# SPDX-License-Identifier: GPL-2.0-only
#
# The same with podman, over crun, which is its default on Debian, and over runc.

# podman_cycle RUNTIME [ARG...]: a job in podman is checkpointed, restored, and verifies.
podman_cycle() {
	podman_image
	podman_devices
	podman --runtime "$1" run -d --name job "${@:2}" "${devices[@]}" -v "$work/log:/log" gpu:1 /job
	ready podman job
	podman container checkpoint job
	stopped
	podman container restore job
	returned podman job
	finish
}

scenario_container_podman_crun() { # in make check
	machine one
	podman_cycle crun
}

scenario_container_podman_runc() {
	machine one
	podman_cycle runc
}
