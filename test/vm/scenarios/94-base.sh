# SPDX-License-Identifier: GPL-2.0-only
#
# Dumps whose files share blocks with those of an older dump (AMDGPU_BASE), on file systems that can do so. The image
# directories are disk/first, disk/second and so on. Their logs are not on the disk, so that they are kept.

# sharing_disk xfs|btrfs: mounts an empty disk with this file system at disk. It is unmounted when the scenario ends.
sharing_disk() {
	mkdir -p disk
	mount_sharing_disk "$1" disk
	trap 'umount -l disk' EXIT
	rm -rf disk/*
}

# first_dump xfs|btrfs: a job runs, and has a dump without a base on such a disk.
first_dump() {
	machine one
	sharing_disk "$1"
	start_client
	mkdir disk/none
	dump_on none first --leave-running
}

# dump_on BASE DIR [ARG...]: a dump of the job to DIR whose base is BASE, both on the disk.
dump_on() {
	dump_log=../../$2.log
	AMDGPU_BASE=../$1 dump "disk/$2" "$pid" "${@:3}"
}

# shares_with_base DIR: the dump to DIR shares contents with its base. Sets $shared and $size, in bytes.
shares_with_base() {
	read -r shared size < <(sed -n 's/.*amdgpu_plugin: GPU .*: shares \([0-9]*\) of \([0-9]*\) bytes with the base$/\1 \2/p' "$1.log")
	[ "${shared:-0}" -gt 0 ] || fail "the dump to $1 shares nothing: $(grep 'option base' "$1.log" | tail -n 1)"
}

# Files that share a block need it once. Sets $used to the bytes of all files.
disk_used() {
	sync
	used=$(($(df --output=used -B 1 disk | tail -n 1)))
}

# The job comes back from its last dump.
back_from() { # DIR
	gone "$pid"
	nothing_left
	restore_log=../../restore.log
	restore "disk/$1"
	runs
	verify
	no_violation
}

# The first dump is still as good as before: it verifies, and is the base of the next dump, from which the job comes back.
first_is_good() {
	dump_on first second
	shares_with_base second
	tool 0 "as they were saved" verify disk/first
	rm -r disk/first
	back_from second
	finish
}

# Three dumps, each with the one before as its base. The first two are deleted before the third is restored. The job has
# changed a third of its buffers before the third dump.
base_chain() { # xfs|btrfs
	local shared size used before all

	first_dump "$1"
	disk_used
	before=$used
	dump_on first second --leave-running
	shares_with_base second
	disk_used
	all=$(du -s -B 1 disk/second | cut -f 1)
	[ $((used - before + shared / 2)) -lt "$all" ] || fail "of $all bytes $shared are shared, but the disk has $((used - before)) more"
	verify
	dump_on second third
	shares_with_base third
	[ "$shared" -lt "$size" ] || fail "the job has changed its buffers, and all $size bytes are shared"
	rm -r disk/first disk/second
	tool 0 "as they were saved" verify disk/third
	back_from third
	finish
}

scenario_base_xfs() {
	base_chain xfs
}

scenario_base_btrfs() {
	base_chain btrfs
}

# fill_disk BYTES: leaves so many bytes of the disk free.
fill_disk() {
	sync
	fallocate -l $(($(df --output=avail -B 1 disk | tail -n 1) - $1)) disk/filler
	sync
}

# Sets $blocks to the bytes of all blocks of the GPUs' contents, also of those that are shared.
count_blocks() { # DIR
	blocks=$(du -c -B 1 "disk/$1"/amdgpu-pages-* | tail -n 1 | cut -f 1)
}

# The disk fills up in the middle of a dump: chunks that are equal need no room, and those that the job has changed do. The
# older dump is as good as before.
base_disk_full() { # xfs|btrfs
	local room=1500000 blocks

	first_dump "$1"
	verify
	fill_disk $room
	export AMDGPU_PARALLEL_DUMP=0 # so that CRIU has not written the memory of the job by then
	dump_log=../../full.log
	! AMDGPU_BASE=../first try_dump disk/full "$pid" || fail "a changed job went into a full disk"
	plugin_error full.log "write to the image: No space left"
	no_good_image disk/full
	count_blocks full
	[ "$blocks" -gt $room ] || fail "the disk was full before chunks were shared: the contents have $blocks bytes"
	runs
	verify
	rm -r disk/full disk/filler
	first_is_good
}

scenario_base_disk_full_xfs() { # long
	base_disk_full xfs
}

scenario_base_disk_full_btrfs() { # long
	base_disk_full btrfs
}

# CRIU is killed while it shares. The older dump is as good as before, and the base of the next dump. In the hook of the
# plugin, the job is not at risk.
killed_on_base() { # xfs|btrfs
	local n blocks shared size halfway=0

	read_kills
	first_dump "$1"
	ask_gpu "speed 2000000" # so that two engines copy for more than a second, in which all kills come
	for ((n = 0; n < kills; n++)); do
		random 600
		AMDGPU_BASE=../first AMDGPU_PARALLEL_DUMP=0 kill_at 1 ': paused process' $((400 + number)) 0 dump disk/img -t "$pid" --leave-running
		count_blocks img
		[ "$status" = 0 ] || [ "$blocks" = 0 ] || halfway=1
		lives_on
		no_torn_image disk/img
		no_violation
		runs
		rm -r disk/img
	done
	killed_in_time
	[ $halfway = 1 ] || fail "no dump had shared anything before it was killed"
	ask_gpu "speed 0"
	verify
	first_is_good
}

scenario_killed_base_xfs() { # long
	killed_on_base xfs
}

scenario_killed_base_btrfs() { # long
	killed_on_base btrfs
}

# The older dump is deleted while it is the base of another one, whose descriptors keep the files until its end. Later
# there is no base, and all is written.
base_deleted() { # xfs|btrfs
	local shared size job dumper

	first_dump "$1"
	ask_gpu "speed 3000000"
	mkdir disk/second
	job=$pid
	: > second.log
	AMDGPU_BASE=../first start criu.txt sh -c '"$@"; echo $? > status' - criu dump -t "$pid" -D disk/second -o ../../second.log -v4 \
		--leave-running
	dumper=$pid
	wait_line second.log "option base: \"../first\" has "
	rm -r disk/first
	alive "$dumper" || fail "the dump has ended before its base is deleted"
	gone "$dumper"
	pid=$job
	[ "$(cat status)" = 0 ] || fail "the dump failed: $(errors second.log)"
	shares_with_base second
	ask_gpu "speed 0"
	dump_on first third --leave-running
	has_line third.log 'option base: cannot open the directory "../first".*: No such file or directory; all contents are written'
	kill -9 "$pid"
	rm -r disk/third
	back_from second
	finish
}

scenario_base_deleted_xfs() { # long
	base_deleted xfs
}

scenario_base_deleted_btrfs() { # long
	base_deleted btrfs
}
