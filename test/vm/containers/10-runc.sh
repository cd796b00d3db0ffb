# SPDX-License-Identifier: GPL-2.0-only
#
# A job in a container of runc, with namespaces of its own for network, mounts, processes, IPC, host name
# and cgroups, is checkpointed and restored with the commands that a user types.

scenario_container_runc() { # in make check
	machine one
	bundle job
	runc run --bundle job --detach job < /dev/null > /dev/null 2>&1
	ready runc job
	runc checkpoint --image-path "$work/images" --work-path "$work/logs" job
	stopped
	runc restore --bundle job --image-path "$work/images" --work-path "$work/logs" --detach job < /dev/null > /dev/null 2>&1
	returned runc job
	finish
}
