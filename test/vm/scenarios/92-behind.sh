# SPDX-License-Identifier: GPL-2.0-only
#
# Contents that are written while the job runs again (AMDGPU_DUMP_MEMORY).

# Mounts the small disk at disk, for the images. A scenario can freeze or fill it, and logs are not on it. It is unmounted
# when the scenario ends.
small_disk() {
	mkdir disk
	mount_small_disk disk
	trap 'fsfreeze -u disk || true; umount -l disk' EXIT
	rm -rf disk/*
}

# start_behind DIR: a dump whose post-dump script is post-dump.sh. Sets $criu.
start_behind() {
	local job=$pid

	mkdir -p "$1"
	: > dump.log
	AMDGPU_DUMP_MEMORY=64M start criu.txt sh -c '"$@"; echo $? > status' - criu dump -t "$pid" -D "$1" -W "$work" \
		-o "$work/dump.log" -v4 --leave-running --action-script "$work/post-dump.sh"
	criu=$pid
	pid=$job
}

# The dump that start_behind started ends, and has succeeded.
ends_behind() {
	gone "$criu"
	[ "$(cat status)" = 0 ] || fail "dump failed: $(errors dump.log)"
}

# A job, and a dump to disk/img that cannot be written to its end before written_behind: the disk is frozen when CRIU has
# written its own images. The job runs again.
dump_to_frozen_disk() {
	machine one
	small_disk
	start_client
	post_dump "fsfreeze -f $work/disk"
	start_behind disk/img
	wait_line dump.log "Writing stats"
	runs
}

written_behind() {
	alive "$criu" || fail "CRIU has ended before all is written"
	fsfreeze -u disk
	ends_behind
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
	! compgen -G 'disk/img/amdgpu-kfd-*.img' > /dev/null || fail "a state image before all contents"
	written_behind
	has_line dump.log 'amdgpu_plugin: dump: .*queues stopped for .* to copy'
	no_violation
	verify
	killed_and_back disk/img
	no_violation
	finish
}

# A second dump begins and ends while the first is still written. The images of each are those of its own moment.
scenario_behind_twice() {
	dump_to_frozen_disk
	dump second "$pid" --leave-running
	runs
	verify
	written_behind
	no_violation
	killed_and_back second
	killed_and_back disk/img
	no_violation
	finish
}

# The disk is full when CRIU has written its own images. Only a disk, because no memory is taken for images on a tmpfs.
scenario_behind_fails() {
	machine one
	small_disk
	start_client
	post_dump "mkdir $work/disk/fill; i=0
		for size in 16M 1M 64K 4K; do
			while fallocate -l \$size $work/disk/fill/\$((i++)); do :; done
		done"
	start_behind disk/img
	gone "$criu"
	rm -rf disk/fill
	[ "$(cat status)" != 0 ] || fail "all images went into a full file system"
	plugin_error dump.log "No space left"
	has_line dump.log "Unfreezing tasks"
	no_good_image disk/img
	runs
	verify
	come_back
	finish
}

# CRIU cannot make the file of its statistics, so the plugin waits before CRIU lets the job go.
scenario_behind_without_statistics() {
	machine one
	mkdir stats-dump
	start_client
	post_dump true
	start_behind img
	ends_behind
	has_line dump.log "the job stands still until its contents are written, because CRIU cannot write"
	verify
	killed_and_back img
	finish
}

# Each dump begins while the job still has the effects of the one before.
scenario_behind_three_times() {
	local n

	machine one
	start_client
	post_dump true
	for n in 1 2 3; do
		start_behind img$n
		ends_behind
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
