# SPDX-License-Identifier: GPL-2.0-only
#
# Stock HIP of the root's suite: 5.2.3 (CRIU 3.17.1), 5.7.1 (4.1.1) or 6.4.3. The client has streams, events,
# copies that never rest, and a kernel in the middle of its loop for which another stream waits.

start_hip() { program=hip_client start_client --kernels /opt/vm/lib/gfx90a.co; }

scenario_rocm_hip() { # long
	machine one
	start_hip
	come_back
	come_back
	finish
}

scenario_rocm_hip_move() { # long
	machine one
	start_hip
	then_machine=one-other come_back
	finish
}

scenario_rocm_hip_eight() { # long
	machine eight
	start_hip
	then_machine=eight-other come_back
	finish
}
