# SPDX-License-Identifier: GPL-2.0-only
#
# Kernels with different drivers: a process is dumped, restored, moved and refused under each of them. $kernel
# is the kernel of the simulated machines, see test/sim/README.md.

# refused_gfx11: queues of gfx11 cannot be rebuilt, so the dump fails and the process runs on.
refused_gfx11() {
	cp -r /opt/vm/machines/one newer
	sed -i 's/^gfx_target_version .*/gfx_target_version 110000/' newer/nodes/*/properties
	machine "$work/newer"
	start_client
	dump_fails gfx11 "gfx11 or newer"
	verify
	finish
}

# A dump fails. The next dump succeeds only if the queues were started as often as they were stopped.
fails_then_comes_back() {
	machine one
	start_client --sizes medium
	fault kfd:CRIU_CHECKPOINT 1 5
	dump_fails failed "cannot checkpoint"
	come_back
}

scenario_kernel_6_12_111() { # oldest and newest, long
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
	# A GPU with the same id, another node and another render node.
	then_machine="eight-other 0,1,2,4,5,6,7" come_back
	sees_gpus 1
	come_back
	finish
}

# For doorbells this kernel accepts the gpu_id that the process knows. The new GPU has another gpu_id.
scenario_kernel_7_3_other_id() { # oldest and newest
	local kernel=7.3

	machine one
	start_client
	then_machine=one-other come_back
	come_back
	then_machine=one come_back
	finish
}

scenario_kernel_dkms() { # oldest and newest, long
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

# The device does not know this kernel: the new module is not loaded, and the present one stays as it is.
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
