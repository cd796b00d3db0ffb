# SPDX-License-Identifier: GPL-2.0-only
#
# An MI300X, which has eight XCCs, in one partition or in eight.

# A copy queue belongs to one engine, so it has one MQD. Linux 7.2 and 7.3 count one for each XCC, and take back one.
scenario_mi300x() { # long
	[[ $(uname -r) != 6.1.* ]] || skip "amdgpu of Linux 6.1 does not know the MI300X"
	machine mi300x
	start_client --sizes medium
	come_back
	come_back
	come_back
	finish
}

# Linux 6.12 saves what the first XCC has of a compute queue. Linux 7.2 and 7.3 save it of all XCCs, but not their waves.
scenario_mi300x_compute() {
	[[ $(uname -r) != 6.1.* ]] || skip "amdgpu of Linux 6.1 does not know the MI300X"
	machine mi300x
	start_client --kernel
	if loses_waves; then
		come_back
		has_line img1/dump.log "has waves that this kernel would not restore"
		come_back
		come_back
	else
		dump_fails img 'of type 0 .* runs on several XCCs, and this kernel has not saved all of them'
		verify
	fi
	finish
}

# Linux 7.2 writes behind its buffer when it rebuilds a compute queue on one of several partitions.
scenario_mi300x_partitions() { # long
	machine mi300x-cpx
	start_client $(loses_waves || echo --kernel)
	come_back
	finish
}
