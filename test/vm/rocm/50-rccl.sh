# SPDX-License-Identifier: GPL-2.0-only
#
# Stock RCCL 5.4.3 on stock HIP 5.7.1, in one process with two GPUs, or in two with one each. The client queues a row of
# all-reduces that is not done when the dump stops the GPUs, nor when the client looks after the restore. README.md of the
# client says how it knows that none was lost. Kernels of both GPUs wait for each other in memory that both reach: by links
# (P2P), or shared memory of the host.

# RCCL keeps TCP connections to itself, whose both ends are in the dump.
network="--tcp-established --network-lock nftables"

# Kernels of a row begin one after the other, so a dump that waits for their end waits for the row.
keeps_waves() { ! loses_waves || skip "this driver loses waves"; }

# start_rccl TRANSPORT ARG...: what RCCL says of its channels has the transport.
start_rccl() {
	keeps_waves
	machine two
	NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$work/nccl.log program=rccl_client start_client "${@:2}"
	has_line nccl.log " via $1"
}

# Without a verification in between.
scenario_rocm_rccl() { # long
	start_rccl P2P --collectives 200
	dump img "$pid" $network
	gone "$pid"
	nothing_left
	restore img --tcp-established
	at_restore=--tcp-established come_back $network
	finish
}

# To GPUs with other PCI addresses, gpu_ids and render nodes, while the client waits in a collective.
scenario_rocm_rccl_move() { # long
	start_rccl P2P --collectives 100
	then_machine=two-other at_restore=--tcp-established come_back $network
	finish
}

# In unlinked files of /dev/shm, which CRIU saves if they are no larger than its limit. The row lasts for longer than a dump, so
# GPUs that are stopped late have changed the files since CRIU copied them.
scenario_rocm_rccl_shared_memory() { # long
	NCCL_P2P_DISABLE=1 start_rccl SHM --collectives 300
	at_restore=--tcp-established come_back $network --ghost-limit 64M
	finish
}

# A process for each GPU, as frameworks have them. A dump stops both before it saves one of them.
scenario_rocm_rccl_processes() { # long
	local ranks before

	keeps_waves
	machine two
	NCCL_P2P_DISABLE=1 NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$work/nccl.%p.log start_ranks 2 \
		'exec /opt/vm/bin/rccl_client --log "$0/client.log" --collectives 300 --rank $rank --id "$0/id"'
	ranks_dumped img "$pid" $network --ghost-limit 64M
	restore img --tcp-established
	same_state "$before"
	runs
	all_ranks USR1 verified
	no_violation
	all_ranks TERM "finished ok"
	gone "$pid"
}
# all_ranks SIGNAL ANSWER: at once, because each needs the other.
all_ranks() {
	local rank

	lines client.log
	kill "-$1" "${ranks[@]}" || fail "a rank is not there any more"
	for rank in "${ranks[@]}"; do
		wait_line client.log "client $rank: $2" "$lines"
	done
}

# No collective is there at the dump, so no queue moves.
scenario_rocm_rccl_between() { # long
	start_rccl P2P
	dump img "$pid" $network
	gone "$pid"
	nothing_left
	restore img --tcp-established
	verify
	finish
}

# The job runs on after the dump, and so does its copy when the job has ended. RCCL writes to its log at the end, and the copy
# needs the log as it was.
scenario_rocm_rccl_leave_running() { # long
	local log_size

	start_rccl P2P --collectives 100
	log_size=$(stat -c %s nccl.log)
	dump img "$pid" $network --leave-running
	verify
	finish
	nothing_left
	truncate -s "$log_size" nccl.log
	restore img --tcp-established
	runs
	verify
	finish
}
