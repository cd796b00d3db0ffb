# SPDX-License-Identifier: GPL-2.0-only
#
# Kernels whose drivers differ: a process is dumped and restored, moves, and is refused, under each of them. $kernel is
# the one that the machines have, see test/sim/README.md.

# refused_gfx11: its queues cannot be rebuilt, so the dump fails and the process runs on.
refused_gfx11() {
	cp -r /opt/vm/machines/one newer
	sed -i 's/^gfx_target_version .*/gfx_target_version 110000/' newer/nodes/*/properties
	machine "$work/newer"
	start_client
	dump_fails gfx11 "gfx11 or newer"
	verify
	finish
}

# A dump that fails, and the next one, which needs the queues to have been started as often as they were stopped.
fails_then_comes_back() {
	machine one
	start_client --sizes medium
	fault kfd:CRIU_CHECKPOINT 1 5
	dump_fails failed "cannot checkpoint"
	come_back
}

scenario_kernel_6_12_111() { # oldest and newest
	local kernel=6.12.111

	refused_gfx11
	fails_then_comes_back
	then_machine=one-other come_back
	come_back
	finish
}

scenario_kernel_7_3() { # oldest and newest
	local kernel=7.3

	refused_gfx11
	fails_then_comes_back
	# a GPU with the same id, another node and another render node
	then_machine="eight-other 0,1,2,4,5,6,7" come_back
	sees_gpus 1
	come_back
	finish
}

# This kernel takes the id that the process knows for doorbells, and the new GPU has another.
scenario_kernel_7_3_other_id() { # oldest and newest
	local kernel=7.3

	machine one
	start_client
	then_machine=one-other come_back
	come_back
	then_machine=one come_back
	finish
}

scenario_kernel_dkms() { # oldest and newest
	local kernel=dkms

	refused_gfx11
	fails_then_comes_back
	then_machine=one-other come_back
	come_back
	finish
}

# An image of another kernel, whose records of buffers have another size.
scenario_kernel_of_another_size() { # oldest and newest
	local kernel=6.12.111

	machine one
	dumped_client
	kernel=6.1 machine one
	restore_fails "cannot rebuild"
	kernel=7.2 machine one
	restore img
	runs
	verify
	finish
}

# A kernel that the device does not know: the module is not loaded, and the one that is there goes on as it was.
scenario_kernel_unknown() { # oldest and newest
	machine one
	! echo 6.11 > "$sim/kernel" || fail "the device knows Linux 6.11"
	[ "$(cat "$sim/kernel")" = default ] || fail "the device is $(cat "$sim/kernel") now"
	no_machine
	! insmod /opt/vm/module/amdgpu_sim.ko machine=one kernel=6.11 2> insmod.log || fail "the module knows Linux 6.11"
	has_line insmod.log "Invalid"
	machine one
	start_client
	runs
	finish
}
