# SPDX-License-Identifier: GPL-2.0-only
#
# Stock ROCr and rocminfo of the root's suite: 5.2.3 (CRIU 3.17.1), 6.1.2 (4.1.1) or 6.4.3. The client has
# copies that never rest, a copy that waits over the dump, and a thread that sleeps until it is done.

start_rocr() { program=rocr_client start_client "$@"; }
with_kernels="--kernels /opt/vm/lib/gfx90a.co"

scenario_rocm_rocminfo() { # long
	machine eight
	rocminfo > rocminfo.txt 2> rocminfo.err < /dev/null || fail "rocminfo: status $?: $(tail -n 1 rocminfo.err)"
	[ "$(grep -c '^  Name: *gfx90a' rocminfo.txt)" = 8 ] || fail "rocminfo lists: $(grep '^  Name: ' rocminfo.txt | tr -s ' \n' ' ;')"
	no_violation
}

scenario_rocm_copies() { # long
	machine one
	start_rocr
	come_back
	come_back
	finish
}

# A kernel is in the middle of its loop at each dump. Another one waits behind a barrier.
scenario_rocm_kernels() {
	machine one
	start_rocr $with_kernels
	come_back
	come_back
	finish
}

# ROCr has what kernels, signals and queues need in BOs, which the plugin saves, and not in memory of the process.
scenario_rocm_kernels_in_bos() { # long
	machine one
	HSA_USERPTR_FOR_PAGED_MEM=0 start_rocr $with_kernels
	come_back
	come_back
	finish
}

scenario_rocm_move() { # long
	machine one
	start_rocr $with_kernels
	then_machine=one-other come_back
	then_machine=one come_back
	finish
}

scenario_rocm_move_eight() { # long
	machine eight
	start_rocr $with_kernels
	then_machine=eight-other come_back
	finish
}

# Each process of a job has another variable, and KFD shows all GPUs to each.
scenario_rocm_visible_devices() { # long
	local ranks before any_minor=1 program=rocr_client

	machine eight
	start_ranks 2 'export ROCR_VISIBLE_DEVICES=$((rank + 2))'
	each_rank sees_gpus 8
	ranks_dumped img1 "$pid"
	restore img1
	ranks_run
	ranks_dumped img2 "$pid"
	machine eight-other
	restore img2
	ranks_run
	ranks_finish
}

scenario_rocm_without_root() { # long
	machine eight
	as_user
	ROCR_VISIBLE_DEVICES=5 start_rocr
	come_back
	finish
}

# The second number of ROCr's library: 5 (5.2.3), 13 (6.1.2) or 15 (6.4.3).
rocr_interface() { readlink /usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1 | cut -d . -f 4; }

# start_rocr_sharers RANKS [host]: processes in a ring that share their buffers, or host memory, by ROCr's IPC.
start_rocr_sharers() {
	rocm_before
	start_program rocr_sharer "$@"
}

# By dma-bufs, which the owner sends over a socket.
scenario_rocm_ipc() { # long
	[ "$(rocr_interface)" -ge 15 ] || skip "this ROCr has IPC by share handles only"
	machine one
	HSA_ENABLE_IPC_MODE_LEGACY=0 start_rocr_sharers 2
	come_back
	come_back
	finish
}

# Host memory in BOs, which only kernels that list GEM handles tell from memory of the process.
scenario_rocm_ipc_host() { # long
	with_kernel '7.*' || skip "Linux before 6.18 does not list GEM handles"
	[ "$(rocr_interface)" -ge 15 ] || skip "this ROCr has IPC by share handles only"
	machine one
	HSA_USERPTR_FOR_PAGED_MEM=0 HSA_ENABLE_IPC_MODE_LEGACY=0 start_rocr_sharers 2 host
	come_back
	has_line img1/restore.log "shares 1 BOs, and imports 1"
	come_back
	finish
}

# Memory of the virtual memory API, on a kernel that lists the handles of such memory.
scenario_rocm_vmem() { # long
	with_kernel '7.*' || skip "Linux before 6.18 does not list such handles"
	[ "$(rocr_interface)" -ge 13 ] || skip "this ROCr has no virtual memory API"
	machine one
	start_rocr $with_kernels --vmem
	come_back
	come_back
	finish
}
