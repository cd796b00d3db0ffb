# SPDX-License-Identifier: GPL-2.0-only
#
# A user dumps and restores own jobs. The user is a member of the group of the GPUs' nodes, and of the group that may
# run the copy of CRIU that has CAP_CHECKPOINT_RESTORE (docs/without-root.md).

render_group=2000
criu_group=3000
user="setpriv --reuid 1000 --regid 1000 --groups $render_group,$criu_group"
criu_of_user=/run/bin/criu

install_criu() {
	install -D -m 0750 -g "$criu_group" "$(type -P criu)" "$criu_of_user"
	setcap cap_checkpoint_restore+eip "$criu_of_user"
	# setpriv itself has all capabilities until its program runs
	! setpriv --reuid 1001 --regid 1001 --groups "$render_group" sh -c "$criu_of_user --version" ||
		fail "a user outside the group can run $criu_of_user"
}

# What follows on this machine is done by the user. Only members of the group may open the nodes, as udev has it.
as_user() {
	[ "$criu_version" != 3.17.1 ] || skip "CRIU has had --unprivileged since 3.18"
	install_criu
	chgrp "$render_group" /dev/kfd /dev/dri/renderD*
	chmod 0660 /dev/kfd /dev/dri/renderD*
	rocm_before
	chmod 0666 /dev/shm/*
	mkdir img img1 img2
	: > client.log > client.log.err
	chown -R 1000:1000 .
	as=$user
	criu() { $user "$criu_of_user" "$@" --unprivileged; }
}

# CRIU cannot take capabilities from a bounding set without CAP_SETPCAP. So the job has the whole set, or may gain no
# privileges.
scenario_without_root() {
	machine one
	as_user
	start_client --sizes medium
	come_back
	finish
	as+=" --bounding-set=-all --no-new-privs"
	start_client --sizes medium
	come_back
	finish
}

scenario_without_root_two_gpus() { # long
	machine eight
	as_user
	start_client --tree 2 --gpus 2,5
	come_back
	finish
}

scenario_without_root_sharing() {
	machine one
	as_user
	start_sharers 2
	come_back
	finish
}

# As in a job of Slurm: the device cgroup shows one GPU of eight, and another one at the restore.
scenario_without_root_hidden_gpus() {
	machine eight 0,1,2,3,4,6,7
	as_user
	start_client
	sees_gpus 1
	come_back
	then_machine="eight 0,1,3,4,5,6,7" come_back
	sees_gpus 1
	finish
}

# CRIU itself has no capability. Then the user may not open KFD's node, or the node of the GPU.
scenario_without_root_fails() {
	machine eight 0,1,2,3,4,6,7
	as_user
	start_client
	criu-amdgpu() { $user "$(type -P criu-amdgpu)" "$@"; }
	tool 1 "cannot checkpoint: the kernel requires CAP_CHECKPOINT_RESTORE .*; run CRIU there, as root or with this capability" check "$pid"
	criu_of_user=$(type -P criu) try_dump img "$pid" 2> criu.txt && fail "the dump succeeded" || true
	has_line criu.txt "CAP_CHECKPOINT_RESTORE"
	runs
	verify
	go_away img
	chmod 0600 /dev/kfd
	restore_fails "/dev/kfd: cannot open; run this as root, or as a member of the node's group"
	chmod 0660 /dev/kfd
	chmod 0600 /dev/dri/renderD133
	restore_fails "with a render node that the task can open (cannot open: renderD133)"
	chmod 0660 /dev/dri/renderD133
	restore img
	ends_well
}
