# SPDX-License-Identifier: GPL-2.0-only
#
# Restores on other hardware of the same kind: other gpu_ids, another order of the nodes, other render
# minors. The processes are dumped again there.

scenario_move() { # true driver
	machine one
	start_client
	then_machine=one-other come_back
	finish
}

scenario_move_eight() { # oldest and newest, long, true driver
	machine eight
	start_client
	then_machine=eight-other come_back
	finish
}

scenario_move_gpu_5_of_8() { # newest, true driver
	machine eight
	start_client --gpus 5
	then_machine=eight-other come_back
	finish
}

scenario_move_tree() { # oldest and newest, true driver
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
scenario_move_on() { # oldest and newest, true driver
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

scenario_move_on_eight() { # newest, true driver
	machine eight
	start_client --gpus 1,6
	then_machine=eight-other come_back
	come_back
	then_machine=eight come_back
	finish
}

# A container sees one GPU of eight, and after the restore another one.
scenario_move_within() { # oldest and newest, true driver
	machine eight 0,1,2,3,4,6,7
	start_client
	sees_gpus 1
	then_machine="eight 0,1,3,4,5,6,7" come_back
	finish
}

# maps LOG SAVED:PRESENT...: the log has exactly these lines, in the order of the saved nodes.
maps() {
	local log=$1 got

	shift
	got=$(sed -n 's/.*map: saved GPU 0x\([0-9a-f]*\) (.*) -> 0x\([0-9a-f]*\) (.*), another$/\1:\2/p' "$log" | tr '\n' ' ')
	[ "$got" = "$* " ] || fail "mapped $got, not $*"
	[ "$(grep -c 'map: saved GPU' "$log")" = $# ] || fail "not one line a GPU: $(grep 'map: saved GPU' "$log" | tail -n 3)"
}

# Seven GPUs of two hives, three and four, move to a machine whose first hive has four. A mapper that takes
# one GPU after the other would have no hive left for the second.
scenario_move_to_fewer() { # newest
	machine eight 3
	start_client --gpus 0,2,6
	sees_gpus 7
	then_machine="eight-other 5" come_back
	sees_gpus 7
	maps img1/restore.log 07cd:ee6a dfd4:78b6 2fe5:15b9 a7ac:9d13 7fb5:23d5 8f84:cd08 579d:07cd
	finish
}

# Six GPUs come to where seven are visible. The hive of four must leave the hive that has 0x07cd now. So 0x07cd is an
# extra GPU, and the process knows another GPU by this id. KFD would refuse that if there were SVM ranges, so there are
# none. KFD_NUMA_CHECK=0 leaves the CPU nodes aside: the links alone keep the two hives apart.
beside_another() {
	export HSA_USE_SVM=0 KFD_NUMA_CHECK=0

	machine eight 6,7
	start_client --gpus 0,5
	sees_gpus 6
	then_machine="eight-other 2" come_back
	maps img1/restore.log 07cd:ee6a dfd4:43c1 2fe5:78b6 a43f:15b9 a7ac:9d13 7fb5:23d5
}

# In the root cgroup the task cannot hide 0x07cd. KFD holds its render node, but the process does not, so the next
# dump takes it for a GPU without a VM.
scenario_move_beside_another() { # newest
	beside_another
	has_line img1/restore.log "the task also sees 0x07cd (renderD136); .* as the task is in the root cgroup"
	sees_gpus 7
	AMDGPU_FORCE=1 come_back
	finish
}

scenario_move_hides_another() { # newest
	local group=/sys/fs/cgroup/job

	mkdir "$group"
	echo $$ > "$group/cgroup.procs"
	beside_another
	has_line img1/restore.log "a program in the task's cgroup hides 0x07cd (renderD136) "
	sees_gpus 6
	come_back
	finish
	echo $$ > /sys/fs/cgroup/cgroup.procs
	rmdir "$group"
}

# BO records of 296 bytes, as AMD's out-of-tree driver writes them. A second GPU is visible at the restore, so the
# plugin inserts a device before these records. The device refuses RESTORE if a byte behind the known fields changed.
scenario_long_bo_records() { # newest
	local kernel=dkms
	export HSA_USE_SVM=0

	machine eight 1,2,3,4,5,6,7
	start_client
	sees_gpus 1
	then_machine="eight 2,3,4,5,6,7" come_back
	sees_gpus 2
	has_line img1/restore.log "the task also sees"
	finish
}
