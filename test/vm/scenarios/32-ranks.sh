# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs whose processes see different GPUs: each is in a device cgroup of its own, as Slurm and launchers of MPI have them.

# rank_groups INDEX...: a cgroup for each rank, which shows this GPU of the machine, or none with "-". On the next machine
# the cgroups have the same paths.
rank_groups() {
	local machine gpus shown index hidden rank=0

	read -r machine < /run/gpus
	gpus_of "$machine"
	for shown; do
		rmdir "/sys/fs/cgroup/rank-$rank" 2> /dev/null || true
		hidden=()
		for index in "${!gpus[@]}"; do
			[ "$index" = "$shown" ] || hidden+=("$index")
		done
		gpu_cgroup "/sys/fs/cgroup/rank-$rank" "${hidden[@]}"
		rank=$((rank + 1))
	done
}

# start_ranks COUNT SETUP: a process without GPU, and its children, each of which runs the command SETUP with its $rank and
# becomes a client. Sets $ranks.
start_ranks() {
	rocm_before
	start client.log bash -c 'for ((rank = 0; rank < $1; rank++)); do
			(eval "$2"; exec "$3" --log "$0/client.log") &
		done
		wait' "$work" "$1" "$2" "/opt/vm/bin/${program:-gpu_client}"
	until_true has_ranks "$1" || fail "not $1 clients: $(cat client.log)"
	mapfile -t ranks < <(pgrep -P "$pid")
}
to_own_cgroup='echo $BASHPID > "/sys/fs/cgroup/rank-$rank/cgroup.procs"'
has_ranks() { no_failed_client && [ "$(grep -c ': ready' client.log)" = "$1" ]; }

each_rank() { # COMMAND...
	local pid client

	for pid in "${ranks[@]}"; do
		client="client $pid:"
		"$@"
	done
}

shown_gpus() {
	local rank

	for rank in "${ranks[@]}"; do
		find_process "$rank"
		ls "$process_dir" | grep vram_
	done | sort -u
}
# Each rank sees one GPU, which no other one sees.
other_gpus() {
	each_rank sees_gpus 1
	[ "$(shown_gpus | wc -l)" = ${#ranks[@]} ] || fail "the ranks see: $(shown_gpus | tr '\n' ' ')"
}

ranks_dumped() {
	before=$(state "$pid")
	dump "$@"
	gone "$pid"
	nothing_left
}

ranks_run() {
	same_state "$before"
	runs
	each_rank verify
	no_violation
}

ranks_finish() {
	each_rank finish
	gone "$pid"
}

# Two ranks on GPUs 2 and 5, in a cgroup each.
start_two_ranks() {
	rank_groups 2 5
	start_ranks 2 "$to_own_cgroup"
	other_gpus
}

# The same cgroups, then another machine, where CRIU finds cgroups with these paths that show other GPUs, and home again.
scenario_ranks() {
	local ranks before any_minor=1

	machine eight
	start_two_ranks
	ranks_dumped img1 "$pid"
	restore img1
	ranks_run
	other_gpus
	ranks_dumped img2 "$pid"
	machine eight-other
	rank_groups 0 6
	restore img2
	ranks_run
	other_gpus
	ranks_dumped img3 "$pid"
	machine eight
	rank_groups 6 1
	restore img3
	ranks_run
	other_gpus
	ranks_finish
}

# The new job is one cgroup with two GPUs for all ranks. Each rank gets one of them and hides the other.
scenario_ranks_in_one_cgroup() { # long
	local ranks before any_minor=1

	machine eight
	start_two_ranks
	ranks_dumped img "$pid"
	machine eight-other 1,2,3,4,5,7
	restore img --manage-cgroups=ignore
	ranks_run
	other_gpus
	ranks_finish
}

# The second rank sees no GPU. Then it sees that of the first, where a queue of the first has the same number.
scenario_ranks_without_gpu() { # long
	local ranks before any_minor=1

	machine eight
	another_gpu=1
	start_two_ranks
	ranks_dumped img "$pid"
	rank_groups 2 -
	restore_fails "needed: 1 more, in this machine, in the device cgroup"
	rank_groups 2 2
	restore_fails "SDMA queue with the same number on that GPU, such as .* another process of this restore"
	has_line img/restore.log "replaces saved GPU .* and, in another process, saved GPU .*: both share its memory and its speed"
	rank_groups 2 5
	restore img
	ranks_run
	ranks_finish
}
