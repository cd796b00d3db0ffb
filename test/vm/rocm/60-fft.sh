# SPDX-License-Identifier: GPL-2.0-only
#
# Stock rocFFT 6.1.2 on stock HIP 5.7.1. The library compiles its kernels for the GPU when the client makes its plan. Each transform of a
# row is of what the one before has left, so the end of the row shows whether one was lost, or done twice.

scenario_rocm_fft() { # long
	! loses_waves || skip "this driver loses waves"
	machine one
	program=fft_client start_client --transforms 700
	come_back
	then_machine=one-other come_back
	finish
}
