# SPDX-License-Identifier: GPL-2.0-only
#
# Streamed images: criu dump --stream and criu restore --stream, with a strict streamer (tools/streamer.c).

# come_back with streams: the image directory has no file of the plugin, and each image was read to its end.
stream_back() {
	streams=$((${streams:-0} + 1))
	store=store$streams come_back "$@"
	! compgen -G "img$trips/amdgpu-*" > /dev/null || fail "not streamed: $(echo img"$trips"/amdgpu-*)"
	! grep 'left before' streamer.log || fail "an image was not read to its end"
	[ "$(grep -c 'captured [1-9]' streamer.log)" = "$streams" ] || fail "not every dump was streamed"
}

scenario_stream_one_gpu() {
	machine one
	start_client --sizes medium
	stream_back
	finish
}

# The pages image of each GPU is larger than a pipe.
scenario_stream_eight_gpus() { # long
	machine eight
	start_client --sizes small
	stream_back
	finish
}

# Both tasks read their images at the same time.
scenario_stream_tree_moves() { # long
	machine eight
	start_client --tree 2 --gpus 0,3
	then_machine=eight-other stream_back
	stream_back
	finish
}

# CRIU meets a render node before the KFD file of the process, at the dump and at the restore. It is once the compute
# file of the process, and once another file, on a machine with eight possible GPUs.
scenario_stream_render_first() { # long
	machine eight
	start_client --render-first --gpus 5
	then_machine=eight-other stream_back
	finish
}

scenario_stream_compute_first() { # long
	machine one
	start_client --compute-first
	come_back
	stream_back
	stream_back
	finish
}

scenario_stream_second_kfd() {
	machine one
	start_client --second-kfd --kernel
	stream_back
	finish
}

# leave_socket DIR: leaves the socket of a dead streamer in DIR.
leave_socket() {
	local pid

	mkdir "$1"
	start streamer.log /opt/vm/bin/streamer capture "$work/$1" "$work/$1" "$work/streamer.log"
	wait_line streamer.log "streamer $pid ready"
	kill -9 "$pid"
	gone "$pid"
	[ -S "$1/streamer-capture.sock" ] || fail "the streamer left no socket"
}

# Streamed images work as files, and files work as streams. The socket of a dead streamer is ignored.
scenario_stream_to_files() {
	machine one
	start_client
	store=img dump img "$pid"
	gone "$pid"
	nothing_left
	restore img
	runs
	verify
	leave_socket img-files
	dump img-files "$pid"
	compgen -G 'img-files/amdgpu-kfd-*.img' > /dev/null || fail "a socket without a streamer was streamed to"
	gone "$pid"
	store=img-files restore img-files
	ends_well
}

# copied CMD...: streams from a copy of the images, because the streamer serves each image once.
copied() {
	rm -rf store
	cp -r whole store
	store=store "$@"
}

# An image that ends too early, is too long, or is missing fails the restore. The unit tests have other lengths.
scenario_stream_cut_off() { # long
	local file name size whole

	machine one
	start_client
	mkdir img
	store=whole dump img "$pid"
	gone "$pid"
	nothing_left
	for file in whole/amdgpu-*.img; do
		name=${file##*/}
		whole=$(stat -c %s "$file")
		cp "$file" good
		for size in 5 $((whole / 2)) $((whole - 1)); do
			head -c "$size" good > "$file"
			case $name-$((size >= 8)) in
			amdgpu-pages-*-1) copied restore_fails "cannot load BO.*Input/output error" ;;
			*) copied restore_fails "$name.*Input/output error" ;;
			esac
		done
		(cat good; echo more) > "$file"
		copied restore_fails "$name.*more bytes"
		rm "$file"
		copied restore_stops
		has_line img/restore.log "(amdgpu_plugin): .*$name"
		cp good "$file"
	done
	copied restore img
	ends_well
}

# The disk of the streamer is full, so the streamer dies with half of the images.
scenario_stream_breaks_off() {
	machine one
	start_client
	mkdir img full
	mount -t tmpfs -o size=2m full full
	! store=full try_dump img "$pid" || fail "6 MiB went into 2"
	plugin_error img/dump.log "Broken pipe"
	umount full
	runs
	no_violation
	verify
	stream_back
	finish
}
