# SPDX-License-Identifier: GPL-2.0-only
#
# Dumps that cannot succeed. The log says why, the process runs on, and no state image is left.

# dump_fails DIR PATTERN [ARG...]: the dump fails with a line that has PATTERN.
dump_fails() {
	local dir=$1 pattern=$2

	shift 2
	! try_dump "$dir" "$pid" "$@" || fail "this dump cannot have succeeded"
	plugin_error "$dir/dump.log" "$pattern"
	no_good_image "$dir"
	runs
	no_violation
}

no_good_image() {
	! compgen -G "$1/amdgpu-kfd-*.img" > /dev/null || fail "a failed dump left $(echo "$1"/amdgpu-kfd-*)"
}

scenario_disk_full() {
	machine one
	start_client
	mkdir small
	mount -t tmpfs -o size=2m small small
	dump_log=../dump.log
	post_dump true
	! try_dump small "$pid" --action-script "$work/post-dump.sh" || fail "6 MiB went into 2"
	plugin_error dump.log "No space left"
	[ ! -e post-dump.txt ] || fail "the post-dump script ran for a dump that failed"
	no_good_image small
	umount small
	runs
	verify
	unset dump_log
	come_back
	finish
}

# The disk fills up later, when CRIU writes its own images.
scenario_disk_full_late() {
	local all gpu

	machine one
	start_client
	dump whole "$pid" --leave-running
	all=$(du -k whole | cut -f 1)
	gpu=$(cat whole/amdgpu-* | wc -c)
	rm -r whole
	mkdir small
	# The GPU images and half of the rest fit.
	mount -t tmpfs -o "size=$(((all + gpu / 1024) / 2))k" small small
	dump_log=../dump.log
	! try_dump small "$pid" || fail "everything went into half of the room"
	has_line dump.log "amdgpu_plugin: .*paused"
	no_good_image small
	umount small
	ends_well
}

# After the GPU is saved, CRIU meets a file that it cannot dump.
scenario_undumpable_file() {
	machine one
	start_client --undumpable
	! try_dump img "$pid" || fail "CRIU dumped a userfaultfd"
	has_line img/dump.log "Error (criu/"
	runs
	verify
	kill -USR2 "$pid"
	wait_line client.log "client $pid: dropped"
	come_back
	finish
}

scenario_gem_buffer() { # on each kernel
	machine one
	start_client --gem-bo
	dump_fails img GEM
	verify
	kill -USR2 "$pid"
	wait_line client.log "client $pid: dropped"
	come_back
	finish
}

# The engines of three processes count in one buffer, and have seconds of work in their rings. This kernel cannot give
# the processes one buffer again. Each process gets a copy of the buffer. The copies must have the same counts, so the
# dump took them at the same moment.
scenario_shared_buffer() { # long
	local copy words=() own=() seen i j

	with_kernel '6.1.*' || skip "this kernel can give processes one buffer again"
	machine one
	ask_gpu "speed 8000000"
	start_client --tree 3 --shared --depth 64 --filler 256 --gpus 0
	dump_fails img "shared"
	AMDGPU_FORCE=1 dump img "$pid"
	has_line img/dump.log "Warn  (amdgpu_plugin): .*shared"
	ask_gpu "speed 0"
	gone "$pid"
	restore img
	runs
	verify
	for i in 1 2 3; do
		copy=$(grep ": shared $i " client.log | tail -n 1)
		read -r -a seen <<< "${copy##*: shared "$i" }"
		own[i]=${seen[i - 1]}
		for j in 1 2 3; do
			[ $j != $i ] || continue
			[ "${words[j]:=${seen[j - 1]}}" = "${seen[j - 1]}" ] ||
				fail "copies of another moment: $(grep ': shared ' client.log | tail -n 3 | tr '\n' ';')"
		done
	done
	# VRAM is not zero at first, and the counts are more than the shell can compare.
	for i in 1 2 3; do
		[ "${own[i]}" != "${words[i]}" ] || fail "client $i counts no more: ${own[i]}"
	done
	finish
}

# The process has given KFD the VM of one of eight GPUs. CHECKPOINT of Linux 7.3 would crash. Linux 6.1 crashes whenever the
# queues of such a process start again, also 100 ms after CRIU has closed its copy of a render file.
scenario_one_vm() {
	with_kernel '7.*' || with_kernel '6.12*' || skip "Linux 6.1 crashes as soon as CRIU has closed a copy of the render file"
	machine eight
	start_program gpu_one_vm
	sees_gpus 8
	dump_fails img "sees a GPU whose render node it has not opened"
	ends_well
}

# The process has opened /dev/kfd, and no render node. Linux 6.1 would crash at the end of a pause.
scenario_no_vm() {
	machine one
	mkfifo stays
	start client.log bash -c 'exec 3<> /dev/kfd 4<> "$1"; echo ready >> "$2"; read -r _ <&4' - "$work/stays" "$work/client.log"
	wait_line client.log ready
	sees_gpus 1
	if with_kernel '6.1.*'; then
		! try_dump img "$pid" || fail "this dump cannot have succeeded"
		plugin_error img/dump.log "has /dev/kfd open and no VM of a GPU"
		no_good_image img
	else
		dump img "$pid"
		gone "$pid"
		restore img
		sees_gpus 1
	fi
	kill -KILL "$pid" || fail "the process is not there any more"
	gone "$pid"
}

# The GPU takes five seconds for a copy. The dump fails after its time limit, and ends when the GPU has made its copies.
scenario_copy_hangs() {
	machine one
	start_client
	ask_gpu "speed 200000"
	export KFD_COPY_TIMEOUT=2
	! try_dump img "$pid" || fail "dumped although no copy was ever finished"
	ask_gpu "speed 0"
	plugin_error img/dump.log "not finish"
	no_good_image img
	runs
	verify
	come_back
	finish
}

scenario_incremental() {
	machine one
	start_client
	dump first "$pid" --leave-running --track-mem
	dump_fails second "it is incremental" --track-mem --prev-images-dir ../first
	verify
	finish
}

scenario_lazy_pages() {
	[ "$criu_version" = 3.17.1 ] || skip "this CRIU ends plugins when all memory has left"
	machine one
	start_client
	dump_fails img "it is lazy" --lazy-pages --port 9876
	printf '%s\n' lazy-pages 'port 9876' > lazy.conf
	CRIU_CONFIG_FILE=$work/lazy.conf dump_fails img "it is lazy"
	verify
	finish
}

scenario_split_mapping() {
	machine one
	start_client --split-mapping
	dump_fails img "begins inside the BO"
	verify
	finish
}

# Another plugin takes the /dev/kfd of one of two processes, so its state is in no image. The plugin learns this at
# the end, from CRIU 4.0 to 4.2 after the post-dump script. CRIU before 4.3 ignores an error there and kills the tasks.
scenario_dump_fails_at_its_end() {
	[ "$criu_version" != 3.17.1 ] || skip "this CRIU asks one plugin only"
	machine one
	plugin_folder first
	start_client --tree 2 --gpus 0
	! NEIGHBOUR_DEVICE=/dev/kfd NEIGHBOUR_SKIPS=1 try_dump img "$pid" || fail "this dump cannot have succeeded"
	plugin_error img/dump.log "was not saved"
	no_good_image img
	until_true no_process_paused || fail "the queues stay stopped"
	runs
	no_violation
	verify
	export CRIU_LIBS_DIR=$plugins
	come_back
	finish
}
