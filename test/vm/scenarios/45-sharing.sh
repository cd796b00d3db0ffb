# SPDX-License-Identifier: GPL-2.0-only
#
# Processes that share GPU memory by dma-bufs of KFD come back, and it is shared again.

# start_sharers RANKS [GPU [keep|host]]: processes in a ring, each of which owns a buffer that the next one imports,
# for GPU (an index). With keep, their parent, which has no /dev/kfd, keeps a dma-buf of each buffer. With host,
# the buffers are in host memory, and each importer has a GEM handle instead of a BO of KFD.
start_sharers() {
	needs_dma_bufs
	start_program gpu_sharer "$@"
}

# dump_refused WORDS: the dump fails with these words, and the processes run on.
dump_refused() {
	! try_dump img "$pid" || fail "the dump succeeded"
	plugin_error img/dump.log "$1"
	runs
	verify
}

# Two processes, each owner and importer: there, and back again.
scenario_sharing_two() { # on each kernel
	machine one
	start_sharers 2
	come_back
	come_back
	finish
}

# Eight at once, on another machine, and home again. Kernels have had dma-bufs of KFD since Linux 6.8.
scenario_sharing_ring() { # long
	needs_dma_bufs
	machine one
	start_sharers 8
	then_machine=one-other come_back
	then_machine=one come_back
	finish
}

# The imports are for another GPU than that of the buffers, there, and back again.
scenario_sharing_peer() { # long
	needs_hive_imports
	machine eight
	start_sharers 3 1
	then_machine=eight-other come_back
	then_machine=eight come_back
	finish
}

# A process without /dev/kfd keeps the dma-bufs of all buffers, and sees what their owners write.
scenario_sharing_broker() { # long
	machine one
	start_sharers 2 0 keep
	then_machine=one-other come_back
	then_machine=one come_back
	finish
}

# Memory of the virtual memory API: GEM handles with holes, one of them mapped twice and for the CPU. There, on another machine
# and back again: 300 handles, as expandable segments have. Then a kernel that does not list them: the dump fails, and the
# process runs on.
scenario_sharing_vmem() { # on each kernel
	needs_dma_bufs
	if with_kernel '7.*'; then
		machine one
		start_program gpu_gem vmem 300
		then_machine=one-other come_back
		then_machine=one come_back
		finish
	fi
	if with_kernel '6.*'; then
		machine one
		start_program gpu_gem vmem 4
		dump_refused "does not list such mappings; use Linux 6.18"
		finish
	fi
}

# VRAM of which ROCr 7.2 would have made IPC handles: GEM handles with holes, and metadata. There, on another machine, where the
# process cannot make a handle once more, and back again.
scenario_sharing_ipc() { # on each kernel
	local rests=1

	needs_dma_bufs
	machine one
	start_program gpu_gem ipc 12
	come_back
	has_line client.log "$client made 12 handles again"
	! grep -q "more holders" img1/dump.log || fail "$(grep "more holders" img1/dump.log)"
	then_machine=one-other come_back
	then_machine=one come_back
	finish
}

# Host memory that the importer has by a GEM handle only: there, on another machine and back again. Then a kernel that does
# not list GEM handles: the dump fails, and the processes run on.
scenario_sharing_host() {
	if with_kernel '7.*'; then
		machine one
		start_sharers 2 0 host
		then_machine=one-other come_back
		has_line img1/restore.log "made 1 GEM handles of GPU 0x[0-9a-f]*, with 1 fillers"
		then_machine=one come_back
		finish
	fi
	if with_kernel '6.*'; then
		machine one
		start_sharers 2 0 host
		dump_refused "GEM handle [0-9]*, which the program may have mapped, has GEM objects that are no BOs of KFD.*on Linux 6.18 or newer"
		finish
	fi
}

# A dump leaves the job running, and what the processes do later reaches the others.
scenario_sharing_leave_running() {
	machine one
	start_sharers 3
	dump img "$pid" --leave-running
	runs
	verify
	no_violation
	finish
}

# A rank alone imports from a process outside the dump, so the dump fails and all run on. With force the plugin warns. A
# dump of all ranks has no such line.
scenario_sharing_outside() {
	local rank

	machine one
	start_sharers 3
	rank=$(pgrep -P "$pid" | head -n 1)
	! try_dump img "$rank" --shell-job || fail "the dump succeeded"
	plugin_error img/dump.log "imported from a process outside the dump"
	runs
	verify
	AMDGPU_FORCE=1 dump forced "$rank" --shell-job --leave-running
	has_line forced/dump.log "Warn  (amdgpu_plugin): .*imported from a process outside the dump"
	has_line forced/dump.log "Warn  (amdgpu_plugin): .*more holders than the dump knows"
	runs
	verify
	come_back
	! grep -q "holders" img1/dump.log || fail "$(grep holders img1/dump.log)"
	finish
}

# The engines of three processes count in one buffer, and the process that made it has freed it.
scenario_sharing_owner_gone() {
	machine one
	needs_dma_bufs
	start_client --tree 3 --shared --depth 64 --filler 256 --gpus 0
	dump img "$pid"
	gone "$pid"
	restore img
	counts_in_one_buffer 3
	finish
}
