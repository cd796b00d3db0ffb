# SPDX-License-Identifier: GPL-2.0-only
#
# Restores on other hardware of the same kind: other gpu_ids, another order of the nodes, other render
# minors. The processes are dumped again there.

scenario_move() { # on each kernel
	machine one
	start_client --kernel
	then_machine=one-other come_back
	finish
}

scenario_move_eight() { # long
	machine eight
	start_client
	then_machine=eight-other come_back
	finish
}

scenario_move_gpu_5_of_8() { # long
	machine eight
	start_client --gpus 5
	then_machine=eight-other come_back
	finish
}

scenario_move_tree() { # long
	machine eight
	start_client --tree 2 --gpus 2,5
	then_machine=eight-other come_back
	finish
}

# render_ids DIR GPU_ID: each render node of the image begins with this gpu_id, a tag and a varint, by which CRIU's own
# plugin finds the GPU.
render_ids() {
	local image rest=$(($2)) want=' 08' got

	while [ "$rest" -ge 128 ]; do
		want+=$(printf ' %02x' $((rest & 127 | 128)))
		rest=$((rest >> 7))
	done
	want+=$(printf ' %02x' "$rest")
	for image in "$1"/amdgpu-renderD-*.img; do
		got=$(od -An -tx1 -j8 -N$((${#want} / 3)) "$image")
		[ "$got" = "$want" ] || fail "$image begins with$got, not$want"
	done
}

# A restored process knows its GPUs by other ids than the driver. It can be dumped again, move on, and
# move home.
scenario_move_on() { # long
	local gpu_id

	machine one
	gpu_id=$(gpu_ids)
	start_client
	then_machine=one-other come_back
	come_back
	then_machine=one come_back
	# It is the id on the first machine and on the last.
	render_ids img1 "$gpu_id"
	render_ids img2 "$gpu_id"
	render_ids img3 "$gpu_id"
	finish
}

scenario_move_on_eight() { # long
	machine eight
	start_client --gpus 1,6
	then_machine=eight-other come_back
	come_back
	then_machine=eight come_back
	finish
}

# A container sees one GPU of eight, and after the restore another one.
scenario_move_within() { # long
	machine eight 0,1,2,3,4,6,7
	start_client
	sees_gpus 1
	then_machine="eight 0,1,3,4,5,6,7" come_back
	finish
}

# The process has the first of eight GPUs, and comes back on the second, as AMDGPU_DEVICE_MAP says. It sees both then,
# and knows the second by the id of the first. KFD would refuse that if there were SVM ranges, so there are none.
beside_another() { # HIDDEN: the GPUs with these indices are hidden from the restored process
	export HSA_USE_SVM=0

	machine eight 1,2,3,4,5,6,7
	id=$(gpu_ids)
	start_client
	sees_gpus 1
	then_machine="eight ${1-}" AMDGPU_DEVICE_MAP=renderD128=renderD129 come_back
	has_line img1/restore.log "map: saved GPU $id (.*) -> 0x[0-9a-f]* (.*renderD129), by device-map"
}

# In the root cgroup the task cannot hide the other seven. KFD holds their render nodes, but the process does not, so the
# next dump takes them for GPUs without a VM.
scenario_move_beside_another() { # long
	local id

	beside_another
	has_line img1/restore.log "the task also sees $id (renderD128) .*; .* as the task is in the root cgroup"
	sees_gpus 8
	AMDGPU_FORCE=1 AMDGPU_DEVICE_MAP=$id=renderD129 come_back
	finish
}

scenario_move_hides_another() { # long
	local id

	beside_another 2,3,4,5,6,7
	has_line img1/restore.log "a program in the task's cgroup hides $id (renderD128) "
	sees_gpus 1
	AMDGPU_DEVICE_MAP=$id=renderD129 come_back
	finish
}
