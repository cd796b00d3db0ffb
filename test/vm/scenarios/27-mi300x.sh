# SPDX-License-Identifier: GPL-2.0-only
#
# An MI300X, which has eight XCCs, in one partition or in eight.

# A copy queue belongs to one engine, so it comes back in all modes.
scenario_mi300x() {
	machine mi300x
	start_client --sizes medium
	come_back
	come_back
	finish
}

# Linux 6.12 saves what the first XCC has of a compute queue. Linux 7.2 and 7.3 save all, and refuse to rebuild it.
scenario_mi300x_compute() {
	machine mi300x
	start_client --kernel
	dump_fails img 'XCCs'
	verify
	finish
}

# Linux 7.2 writes behind its buffer when it rebuilds a compute queue on one of several partitions.
scenario_mi300x_partitions() {
	machine mi300x-cpx
	start_client $(kernel_if_kept)
	come_back
	finish
}
