# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of criu-amdgpu with archives of container runtimes. test/tool/run reads this file.

# pack ARCHIVE: as podman and the CRI plugin of containerd export it, from $work/packed/checkpoint
pack() { tar -C "$work/packed" --sort=name -caf "$1" checkpoint; }

# An image of a container with the files of directory $1 as a blob, as ctr and podman save it.
oci_image() { # DIR ARCHIVE
	local blobs=$work/layout/blobs/sha256 layer=$work/layer.tar.gz

	rm -rf "$work/layout" && mkdir -p "$blobs"
	tar -C "$1" -czf "$layer" .
	echo '{"schemaVersion": 2}' > "$work/layout/index.json"
	cp "$work/layout/index.json" "$blobs/$(sha256sum < "$work/layout/index.json" | cut -d ' ' -f 1)"
	mv "$layer" "$blobs/$(sha256sum < "$layer" | cut -d ' ' -f 1)"
	tar -C "$work/layout" -cf "$2" .
}

# The same as docker before release 25 saves it.
docker_image() { # DIR ARCHIVE
	local id

	id=$(echo layer | sha256sum | cut -d ' ' -f 1)
	rm -rf "$work/layout" && mkdir -p "$work/layout/$id"
	echo '[{"Layers": []}]' > "$work/layout/manifest.json"
	tar -C "$1" -cf "$work/layout/$id/layer.tar" .
	tar -C "$work/layout" -cf "$2" manifest.json "$id"
}

# has_same NAME COMMAND... ARCHIVE: the tool prints what it prints for the directory.
has_same() {
	local name=$1

	shift
	expect "$name, directory" 0 . "${@:1:$#-1}" "$work/images"
	mv "$work/output" "$work/of-directory"
	expect "$name" 0 . "$@"
	same_output "$name"
}

# The last output is that of the directory.
same_output() { # NAME
	if cmp -s "$work/output" "$work/of-directory"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "tool: $1 failed: not what it prints for the directory:"
	diff "$work/of-directory" "$work/output" | head -n 5
}

archives() {
	local end archive

	rm -rf "$work/packed" && mkdir "$work/packed" && cp -r "$work/images" "$work/packed/checkpoint"
	topology eight
	for end in tar tar.gz tar.zst; do
		archive=$work/job.$end
		pack "$archive"
		has_same "show, $end" show "$archive"
		has_same "fit, $end" fit -t "$tree" "$archive"
		expect "verify, $end" 0 "^28 BOs, 12.2 MiB: as they were saved" verify "$archive"
	done
	archives_with_holes
	has_same "show, as JSON, tar" show --json "$work/job.tar"
	tar -C "$work/images" -cf "$work/unsorted.tar" --sort=none .
	expect "verify, tar in the order of the directory" 0 "^28 BOs" verify "$work/unsorted.tar"
	oci_image "$work/packed" "$work/oci.tar"
	has_same "show, podman's image" show "$work/oci.tar"
	oci_image "$work/images" "$work/oci.tar.zst" && zstd -qf "$work/oci.tar.zst" -o "$work/oci.zst"
	expect "verify, ctr's image" 0 "^28 BOs" verify "$work/oci.zst"
	docker_image "$work/packed" "$work/docker.tar"
	expect "verify, docker's image" 0 "^28 BOs" verify "$work/docker.tar"
	archives_with_files
	archives_of_pods
	archives_that_differ
	archives_that_are_bad
	complains "an error of an archive" verify "$work/short"
}

# docs/inference.md advises tar -S.
archives_with_holes() {
	local format

	for format in gnu pax; do
		tar -C "$work/images" --format=$format -cSf "$work/holes.tar" .
		expect "verify, holes, $format" 0 "^28 BOs, 12.2 MiB: as they were saved" verify "$work/holes.tar"
	done
	damage "$pages" $((8 + 1048576))
	tar -C "$work/damaged" -cSf "$work/holes.tar" .
	expect "verify, holes, first byte of the second BO" 1 "image $pages: BO 1 .* at offset 1048584) .*: its contents are not" \
		verify "$work/holes.tar"
	truncate -s -1M "$work/damaged/$pages" && truncate -s +1M "$work/damaged/$pages"
	expect "verify, a hole at the end, directory" 1 . verify "$work/damaged"
	mv "$work/output" "$work/of-directory"
	tar -C "$work/damaged" -cSf "$work/holes.tar" .
	expect "verify, a hole at the end" 1 "^criu-amdgpu: .*its contents are not" verify "$work/holes.tar"
	same_output "verify, a hole at the end"
	truncate -s 1M "$work/damaged/files.img" && tar -C "$work/damaged" -cSf "$work/holes.tar" .
	expect "verify, a hole in another image" 2 "image files.img has holes, which only images of contents may have; pack" verify "$work/holes.tar"
}

# The image of a render node is lost, and CRIU's list of files tells.
archives_with_files() {
	files_img 16 $(ls "$work/images" | sed -n 's/^amdgpu-\(kfd\|renderD\)-\([0-9]*\).img$/\2/p') > "$work/packed/checkpoint/files.img"
	pack "$work/files.tar"
	expect "verify, archive with CRIU's list" 0 "as they were saved" verify "$work/files.tar"
	has_not "files.img in an archive" "have no files.img"
	rm "$work/packed/checkpoint/amdgpu-renderD-2.img"
	pack "$work/files.tar.zst"
	expect "verify, archive without a render node" 1 "images: file 2, which CRIU saved by a plugin, has no image" \
		verify "$work/files.tar.zst"
	rm "$work/packed/checkpoint/files.img"
	cp "$work/images/amdgpu-renderD-2.img" "$work/packed/checkpoint"
}

# The archive of a pod, of whose containers one uses GPUs.
archives_of_pods() {
	rm -rf "$work/pod" && mkdir -p "$work/pod/a/checkpoint" "$work/pod/z/checkpoint"
	files_img 16 100 | tee "$work/pod/a/checkpoint/files.img" > "$work/pod/z/checkpoint/files.img"
	cp -r "$work/packed/checkpoint" "$work/pod/job"
	tar -C "$work/pod" --sort=name -cf "$work/pod.tar" .
	expect "verify, archive of a pod" 0 "as they were saved" verify "$work/pod.tar"
	expect "the list of another container" 0 "warning: the images have no files.img" verify "$work/pod.tar"
	cp "$work/pod/a/checkpoint/files.img" "$work/pod/job"
	tar -C "$work/pod" --sort=name -cf "$work/pod.tar" .
	expect "verify, archive of a pod, CRIU's list" 1 "images: file 100, which CRIU saved by a plugin, has no image" \
		verify "$work/pod.tar"
	cp "$work/pod/job"/amdgpu-* "$work/pod/z/checkpoint"
	tar -C "$work/pod" --sort=name -cf "$work/pod.tar" .
	expect "show, archive of a pod with two jobs" 2 "has images of AMD GPUs in job and in z/checkpoint; unpack it" show "$work/pod.tar"
	rm -r "$work/pod"
}

archives_that_differ() {
	local large=$work/packed/checkpoint/$pages

	damage "$pages" $((8 + 1048576))
	tar -C "$work/damaged" -cf "$work/damaged.tar" .
	expect "verify, archive, first byte of the second BO" 1 "image $pages: BO 1 .* at offset 1048584) .*: its contents are not" \
		verify "$work/damaged.tar"
	damage "$state" 300
	tar -C "$work/damaged" -cf "$work/damaged.tar" .
	expect "verify, archive, a byte of a message" 1 "image $state: " verify "$work/damaged.tar"
	truncate -s -1 "$large" && pack "$work/damaged.tar"
	expect "verify, archive, a byte of contents too few" 1 "image $pages: damaged: it has [0-9]* bytes" verify "$work/damaged.tar"
	write_length 7 > "$large" && tail -c +9 "$work/images/$pages" >> "$large" && pack "$work/damaged.tar"
	expect "verify, archive, another length of contents" 1 "image $pages: damaged: its header says 7 bytes" verify "$work/damaged.tar"
	rm "$large" && pack "$work/damaged.tar"
	expect "verify, archive, contents that are lost" 1 "image $pages is not in the archive" verify "$work/damaged.tar"
	cp "$work/images/$pages" "$large"
}

archives_that_are_bad() {
	local bytes name

	# between two entries, in the head of an entry, in the contents, and in the end of the archive
	for bytes in 512 700 4000 1000000 -10000; do
		head -c "$bytes" "$work/job.tar" > "$work/short"
		expect "show, archive of $bytes bytes" 2 "archive $work/short: .*cut short" show "$work/short"
	done
	for name in gz zst; do
		head -c 4000 "$work/job.tar.$name" > "$work/short"
		expect "show, the begin of a $name" 2 "archive $work/short: damaged or cut short (.*); copy" show "$work/short"
		head -c -9 "$work/job.tar.$name" > "$work/short"
		expect "verify, most of a $name" 2 "archive $work/short: damaged or cut short (.*); copy" verify "$work/short"
	done
	xz -c "$work/job.tar" > "$work/job.tar.xz"
	expect "show, another compression" 2 "neither a tar nor one that gzip or zstd has compressed; unpack it" show "$work/job.tar.xz"
	: > "$work/no.tar"
	expect "show, an empty file" 2 "neither a tar" show "$work/no.tar"
	mkfifo "$work/fifo"
	expect "show, a pipe" 2 "cannot open $work/fifo: neither a directory nor a file; .* save it to a file$" show "$work/fifo"
	expect "show, standard input" 2 "cannot open -: .* save it to a file$" show -
	tar -C "$work" -cf "$work/no.tar" of-directory
	expect "verify, archive without images" 2 "has no images of AMD GPUs: its job used none, .*another directory (images-dir" verify "$work/no.tar"
	archives_in_archives
	expect "check, an archive" 2 "cannot open directory" check -D "$work/no.tar"
	archives_with_traps
}

# The archive of a pod has one for each container, and other things of a container are archives, too.
archives_in_archives() {
	local outer=$work/outer

	mkdir -p "$outer/containers" && cp "$work/job.tar" "$outer/containers/$(printf 'server\033.tar')"
	tar -C "$outer" -cf "$work/outer.tar" .
	expect "show, an archive in an archive" 2 "has no images of AMD GPUs, but another archive, containers/server?.tar; unpack it" \
		show "$work/outer.tar"
	mv "$outer/containers"/* "$outer/rootfs-diff.tar" && tar -C "$outer" -cf "$work/outer.tar" .
	expect "show, the changed files of a container" 2 "its job used none, " show "$work/outer.tar"
	cp -r "$work/images" "$outer/checkpoint" && cp "$work/no.tar" "$outer/a.tar" && tar -C "$outer" --sort=name -cf "$work/outer.tar" .
	expect "show, an archive beside the images" 0 "process" show "$work/outer.tar"
}

archives_with_traps() {
	local archive=$work/trap.tar

	truncate -s 2G "$work/packed/checkpoint/amdgpu-kfd-999.img" && tar -C "$work/packed" -cSf "$archive" checkpoint
	expect "verify, a huge hole" 2 "its images of state have more than 1 GiB" verify "$archive"
	rm "$work/packed/checkpoint/amdgpu-kfd-999.img"
	mv "$work/packed/checkpoint/$state" "$work/packed/other"
	ln -s ../other "$work/packed/checkpoint/$state" && pack "$archive"
	expect "show, a link to a file" 2 "image $state is not a regular file" show "$archive"
	ln -f "$work/packed/other" "$work/packed/checkpoint/$state" && tar -C "$work/packed" -cf "$archive" other checkpoint
	expect "show, a second name of a file" 2 "image $state is not a regular file" show "$archive"
	rm "$work/packed/checkpoint/$state" && mknod "$work/packed/checkpoint/$state" p && pack "$archive"
	expect "show, a pipe in an archive" 2 "image $state is not a regular file" show "$archive"
	rm "$work/packed/checkpoint/$state" && cp "$work/packed/other" "$work/packed/checkpoint/$state" && pack "$archive"
	cp "$work/packed/other" "$work/packed/$state" && tar -C "$work/packed" -rf "$archive" "$state"
	expect "show, two dumps" 2 "has images of AMD GPUs in checkpoint and in \.; unpack it" show "$archive"
	pack "$archive" && tar -C "$work/packed" -rf "$archive" "checkpoint/$state"
	expect "show, an image twice" 2 "has image $state twice" show "$archive"
}
