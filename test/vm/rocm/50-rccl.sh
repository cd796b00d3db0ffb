# SPDX-License-Identifier: GPL-2.0-only
#
# Stock RCCL on stock HIP. One process has all GPUs, or each process one. The client queues a row of all-reduces that is not
# done when the dump stops the GPUs, nor when the client looks after the restore. README.md of the client says how it knows that
# none was lost. Kernels of the GPUs wait for each other in memory that all reach: by links (P2P), or shared memory of the host.
#
# rocm-rccl7* have RCCL 7.2.4, and the others 5.4.3.

# RCCL keeps TCP connections to itself, whose both ends are in the dump.
network="--tcp-established --network-lock nftables"

# Kernels of a row begin one after the other, so a dump that waits for their end waits for the row.
rccl_on() { # MACHINE
	[ -n "${drained-}" ] || ! loses_waves || skip "this driver loses waves"
	machine "$1"
	export NCCL_DEBUG=INFO
}

# start_rccl TRANSPORT COLLECTIVES: what RCCL says of its channels has the transport.
start_rccl() {
	rccl_on two
	NCCL_DEBUG_FILE=$work/nccl.log program=rccl_client start_client ${drained:+--may-have-ended 1} --collectives "$2"
	has_line nccl.log " via $1"
}

# Without a verification in between.
scenario_rocm_rccl() { # long
	start_rccl P2P 200
	go_away img $network
	restore img --tcp-established
	at_restore=--tcp-established come_back $network
	finish
}

# To GPUs with other PCI addresses, gpu_ids and render nodes, while the client waits in a collective.
scenario_rocm_rccl_move() { # long
	start_rccl P2P 100
	then_machine=two-other at_restore=--tcp-established come_back $network
	finish
}

# In unlinked files of /dev/shm, which CRIU saves if they are no larger than its limit. The row lasts for longer than a dump, so
# GPUs that are stopped late have changed the files since CRIU copied them.
scenario_rocm_rccl_shared_memory() {
	NCCL_P2P_DISABLE=1 start_rccl SHM 200
	! try_dump failed "$pid" $network || fail "CRIU has saved files that are larger than its limit"
	has_line failed/dump.log "increase limit"
	has_line failed/dump.log "Warn .*maps an unlinked file of [0-9]* bytes, which CRIU saves only with a --ghost-limit"
	at_restore=--tcp-established come_back $network --ghost-limit 64M
	finish
}

# start_rccl_ranks MACHINE COUNT TRANSPORT COLLECTIVES: a process for each GPU, as frameworks have them. Sets $ranks.
start_rccl_ranks() {
	local rank

	rccl_on "$1"
	NCCL_DEBUG_FILE=$work/nccl.%p.log start_ranks "$2" "exec /opt/vm/bin/rccl_client --log \"\$0/client.log\" \
		--gpus $2 --collectives $4 --rank \$rank --id \"\$0/id\""
	for rank in "${ranks[@]}"; do
		has_line "nccl.$rank.log" " via $3"
	done
}

# ranks_come_back [ARG...]: like come_back. A dump stops all ranks before it saves one of them.
ranks_come_back() {
	local before dir=img$((++trips))

	ranks_dumped "$dir" "$pid" "$@"
	no_violation
	[ -z "${then_machine:-}" ] || machine "$then_machine"
	restore "$dir" --tcp-established
	same_state "$before"
	runs
	all_ranks USR1 verified
	no_violation
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

end_ranks() {
	all_ranks TERM "finished ok"
	gone "$pid"
}

scenario_rocm_rccl_processes() { # long
	local ranks

	NCCL_P2P_DISABLE=1 start_rccl_ranks two 2 SHM 300
	ranks_come_back $network --ghost-limit 64M
	end_ranks
}

# To four other GPUs.
scenario_rocm_rccl_four() { # long
	local ranks any_minor=1

	NCCL_P2P_DISABLE=1 start_rccl_ranks four 4 SHM 150
	then_machine=four-other ranks_come_back $network --ghost-limit 64M
	end_ranks
}

# A rank has died, and the other one waits for it in a collective, before and after. Where there are fewer GPUs than ranks, nothing
# runs after the restore.
scenario_rocm_rccl_rank_killed() { # long
	local ranks before at_restore=--tcp-established

	NCCL_P2P_DISABLE=1 start_rccl_ranks two 2 SHM 300
	kill -9 "${ranks[1]}"
	gone "${ranks[1]}"
	ranks_dumped img "$pid" $network --ghost-limit 64M
	machine one
	restore_fails "needed: 1 more, in this machine"
	machine two
	restore img $at_restore
	same_state "$before"
	until_true queues_run "${ranks[0]}" || fail "the queues of the other rank are stopped"
	alive "${ranks[0]}" || fail "the other rank has ended"
	no_violation
	kill -9 "${ranks[0]}"
	gone "$pid"
}

# No collective is there at the dump, so no queue moves.
scenario_rocm_rccl_between() { # long
	start_rccl P2P 0
	go_away img $network
	restore img --tcp-established
	verify
	finish
}

# The job runs on after the dump, and so does its copy when the job has ended. RCCL writes to its log at the end, and the copy
# needs the log as it was.
scenario_rocm_rccl_leave_running() { # long
	local log_size

	start_rccl P2P 100
	log_size=$(stat -c %s nccl.log)
	dump img "$pid" $network --leave-running
	verify
	finish
	nothing_left
	truncate -s "$log_size" nccl.log
	restore img --tcp-established
	ends_well
}

# --- RCCL 7.2.4 ---------------------------------------------------------------------------------

# It has unlinked files for its threads, too. A thread that waits looks again after a microsecond, and the emulated processors
# would do nothing else.
begin_rccl7() {
	limit=900
	network+=" --ghost-limit 64M"
	echo 50000000 > /proc/$$/timerslack_ns
}

# In the middle of a collective: with --leave-running, to other GPUs, and back.
scenario_rocm_rccl7() { # long
	local at_restore=--tcp-established

	begin_rccl7
	start_rccl P2P 200
	dump img "$pid" $network --leave-running
	verify
	then_machine=two-other come_back $network
	then_machine=two come_back $network
	finish
}

scenario_rocm_rccl7_shared_memory() { # long
	local at_restore=--tcp-established

	begin_rccl7
	NCCL_P2P_DISABLE=1 start_rccl SHM 300
	come_back $network
	finish
}

# A process for each GPU, to two other GPUs. Without RCCL's own supervision, which has other connections after a while.
scenario_rocm_rccl7_processes() { # long
	local ranks any_minor=1

	begin_rccl7
	export HSA_ENABLE_IPC_MODE_LEGACY=0 NCCL_RAS_ENABLE=0
	start_rccl_ranks two 2 P2P/IPC 200
	then_machine=two-other ranks_come_back $network
	end_ranks
}

# A driver that loses waves: the dump waits for the end of the row. The next row runs after the restore.
scenario_rocm_rccl7_drained() { # long
	local at_restore=--tcp-established drained=1 rests=1

	loses_waves || skip "this driver saves waves"
	begin_rccl7
	export AMDGPU_DRAIN=600
	NCCL_P2P_DISABLE=1 start_rccl SHM 30
	come_back $network
	come_back $network
	finish
}
