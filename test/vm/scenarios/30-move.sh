# SPDX-License-Identifier: GPL-2.0-only
#
# Processes that come back on other hardware of the same kind: other gpu_ids, another order of the
# nodes, other render minors; and go on from there.

scenario_move() {
	machine one
	start_client
	then_machine=one-other come_back
	finish
}

scenario_move_eight() {
	machine eight
	start_client
	then_machine=eight-other come_back
	finish
}

scenario_move_gpu_5_of_8() {
	machine eight
	start_client --gpus 5
	then_machine=eight-other come_back
	finish
}

scenario_move_tree() {
	machine eight
	start_client --tree 2 --gpus 2,5
	then_machine=eight-other come_back
	finish
}

# A restored process has GPUs whose ids are not the ones it knows them by: it can be dumped where
# it is, and move on, and home.
scenario_move_on() {
	machine one
	start_client
	then_machine=one-other come_back
	come_back
	then_machine=one come_back
	finish
}

scenario_move_on_eight() {
	machine eight
	start_client --gpus 1,6
	then_machine=eight-other come_back
	come_back
	then_machine=eight come_back
	finish
}

# What a container sees: one GPU of eight, and after the restore another one of them.
scenario_move_within() {
	machine eight 0,1,2,3,4,6,7
	start_client
	sees_gpus 1
	then_machine="eight 0,1,3,4,5,6,7" come_back
	finish
}
