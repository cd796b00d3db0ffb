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
}

scenario_container_containerd() {
	machine one
	containerd_job --device /dev/dri/renderD128
	containerd_cycle
	finish
}
