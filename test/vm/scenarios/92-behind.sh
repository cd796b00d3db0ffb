# SPDX-License-Identifier: GPL-2.0-only
#
# Contents that are written while the job runs again (AMDGPU_DUMP_MEMORY).

# Sets $logs: CRIU's log and statistics, the client's log and the trace are there, and not on the file system of the images.
behind_logs() {
	logs=/run/behind
	rm -rf $logs
	mkdir $logs
	: > $logs/client.log
	: > $logs/dump.log
	ln -s $logs/client.log client.log
	exec > $logs/scenario.log 2>&1
}

# start_behind DIR: a dump whose post-dump script is post-dump.sh. Sets $criu.
start_behind() {
	local job=$pid

	mkdir -p "$1"
	: > $logs/dump.log
	AMDGPU_DUMP_MEMORY=64M start criu.txt sh -c '"$@"; echo $? > /run/behind/status' - criu dump -t "$pid" -D "$1" -W $logs \
		-o dump.log -v4 --leave-running --action-script "$work/post-dump.sh"
	criu=$pid
	pid=$job
}

# A job, and a dump to img that cannot be written to its end before written_behind: the disk is frozen when CRIU has
# written its own images. The job runs again.
dump_to_frozen_disk() {
	! with_kernel '6.1.*' || skip "Linux 6.1 waits for a frozen disk even to open a link there that leads elsewhere"
	machine one
	behind_logs
	start_client
	post_dump "fsfreeze -f /scratch"
	trap 'fsfreeze -u /scratch || true' EXIT
	start_behind img
	wait_line $logs/dump.log "Writing stats"
	runs
}

written_behind() {
	alive "$criu" || fail "CRIU has ended before all is written"
	fsfreeze -u /scratch
	trap - EXIT
	gone "$criu"
	[ "$(cat $logs/status)" = 0 ] || fail "dump failed: $(errors $logs/dump.log)"
}

# killed_and_back IMAGES: the job that ran on is killed, and comes back from the images.
killed_and_back() {
	kill -9 "$pid"
	gone "$pid"
	nothing_left
	restore "$1"
	runs
	verify
}

# The job runs, changes its buffers, and verifies them. It comes back as it was when it stood still.
scenario_behind() {
	dump_to_frozen_disk
	verify
	! compgen -G 'img/amdgpu-kfd-*.img' > /dev/null || fail "a state image before all contents"
	written_behind
	has_line $logs/dump.log 'amdgpu_plugin: dump: .*queues stopped for .* to copy'
	no_violation
	verify
	killed_and_back img
	no_violation
	finish
}

# A second dump begins and ends while the first is still written. The images of each are those of its own moment.
scenario_behind_twice() {
	dump_to_frozen_disk
	dump $logs/second "$pid" --leave-running
	runs
	verify
	written_behind
	no_violation
	killed_and_back $logs/second
	killed_and_back img
	no_violation
	finish
}

# The disk is full when CRIU has written its own images. Only a disk, because no memory is taken for images on a tmpfs.
scenario_behind_fails() {
	machine one
	behind_logs
	start_client
	post_dump "mkdir /scratch/fill; i=0
		for size in 1G 64M 4M 256K 4K; do
			while fallocate -l \$size /scratch/fill/\$((i++)); do :; done
		done"
	trap 'rm -rf /scratch/fill' EXIT
	start_behind img
	gone "$criu"
	rm -rf /scratch/fill
	trap - EXIT
	[ "$(cat $logs/status)" != 0 ] || fail "all images went into a full file system"
	plugin_error $logs/dump.log "No space left"
	has_line $logs/dump.log "Unfreezing tasks"
	no_good_image img
	runs
	verify
	rm -r img
	come_back
	finish
}

# CRIU cannot make the file of its statistics, so the plugin waits before CRIU lets the job go.
scenario_behind_without_statistics() {
	machine one
	behind_logs
	mkdir $logs/stats-dump
	start_client
	post_dump true
	start_behind img
	gone "$criu"
	[ "$(cat $logs/status)" = 0 ] || fail "dump failed: $(errors $logs/dump.log)"
	has_line $logs/dump.log "the job stands still until its contents are written, because CRIU cannot write"
	verify
	killed_and_back img
	finish
}

# Each dump begins while the job still has the effects of the one before.
scenario_behind_three_times() {
	local n

	machine one
	behind_logs
	start_client
	post_dump true
	for n in 1 2 3; do
		start_behind img$n
		gone "$criu"
		[ "$(cat $logs/status)" = 0 ] || fail "dump $n failed: $(errors $logs/dump.log)"
		runs
		verify
		no_violation
	done
	killed_and_back img3
	finish
}

# CRIU is killed when the tasks run and contents may still have to be written.
scenario_behind_killed() {
	local n

	read_kills
	machine one
	start_client --sizes medium
	export AMDGPU_DUMP_MEMORY=256M
	for ((n = 0; n < kills; n++)); do
		random 20
		kill_at 1 'Writing stats' "$number" 0 dump img -t "$pid" --leave-running
		lives_on
		runs
		verify
		no_violation
		rm -r img
	done
	unset AMDGPU_DUMP_MEMORY
	come_back
	finish
}
