# SPDX-License-Identifier: GPL-2.0-only
#
# CRIU and the plugin in a privileged container, where they dump and restore a process beside them. The host has no plugin.

inside() { podman exec box "$@"; }

# Starts the container. Its file system is an overlay over the guest's, from which the plugin was removed, and its first
# process reaps ended jobs.
privileged_box() {
	job_log
	mkdir log/images
	dpkg -r criu-plugin-amdgpu
	podman run -d --name box --privileged --init -v "$work/log:/log" --rootfs /:O sleep inf
}

# A job in the container, ready. Sets $pid, and $inner to its number in the container.
box_job() {
	inside sh -c 'setsid /opt/vm/bin/gpu_client --log /log/client.log < /dev/null > /dev/null 2>&1 &'
	until_true box_pid || fail "no job in the container"
	started+=("$pid")
	client="client $inner:"
	wait_line client.log "$client ready"
	before=$(job_state)
}
box_pid() {
	pid=$(pgrep -x -o gpu_client) || return 1
	inner=$(sed -n 's/^NSpid:.*\t//p' "/proc/$pid/status")
}

box_dump() {
	inside criu dump -t "$inner" -D /log/images -o dump.log -v4 --link-remap || fail "dump failed: $(errors log/images/dump.log)"
	stopped
	until_true has_no_number "$pid"
}

box_restore() {
	inside criu restore -d -D /log/images -o restore.log -v4 || fail "restore failed: $(errors log/images/restore.log)"
	box_pid
	started+=("$pid")
	unchanged
}

# CRIU looks for the plugin in the container only.
scenario_container_privileged() { # long
	machine one
	privileged_box
	box_job
	! inside criu dump -t "$inner" -D /log/images -o none.log -v4 || fail "dumped without the plugin"
	has_line log/images/none.log 'handle_device_vma plugin failed'
	unchanged
	inside /opt/vm/guest/install-package
	[ ! -e /usr/lib/criu/amdgpu_plugin.so ] || fail "the host has the plugin, too"
	box_dump
	box_restore
	finish
	/opt/vm/guest/install-package
}

# The image has one GPU of eight. All eight are in the container's /dev, and the task hides the others in its own cgroup.
scenario_container_privileged_gpu_of_8() { # long
	local any_minor=1

	machine one
	privileged_box
	inside /opt/vm/guest/install-package
	box_job
	box_dump
	podman rm -f -t 0 box
	machine eight-other
	podman run -d --name box --privileged --init -v "$work/log:/log" --rootfs /:O sleep inf
	inside /opt/vm/guest/install-package
	box_restore
	sees_gpus 1
	has_line log/images/restore.log "a program in the task's cgroup hides "
	no_program
	finish
	/opt/vm/guest/install-package
}
