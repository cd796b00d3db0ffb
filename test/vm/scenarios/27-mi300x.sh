# SPDX-License-Identifier: GPL-2.0-only
#
# An MI300X, which has eight XCCs, in one partition or in eight.

# A copy queue belongs to one engine, so it has one MQD, and comes back. But some kernels count one for each XCC, and
# refuse to rebuild the queue. There the dump fails, and the process runs on.
scenario_mi300x() { # long
	machine mi300x
	start_client --sizes medium
	if refuses_xccs; then
		dump_fails img 'queue 1 of type 1 .* cannot be rebuilt by this kernel'
		verify
	else
		come_back
		come_back
	fi
	finish
}

# Linux 6.12 saves what the first XCC has of a compute queue. Linux 7.2 and 7.3 save it of all XCCs, and do not take it back.
scenario_mi300x_compute() {
	local why='of type 0 .* runs on several XCCs, and this kernel has not saved all of them'

	! loses_waves || why='of type 0 .* cannot be rebuilt by this kernel'
	machine mi300x
	start_client --kernel
	dump_fails img "$why"
	verify
	finish
}

# Linux 7.2 writes behind its buffer when it rebuilds a compute queue on one of several partitions.
scenario_mi300x_partitions() {
	machine mi300x-cpx
	start_client $(loses_waves || echo --kernel)
	come_back
	finish
}
