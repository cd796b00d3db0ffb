# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of criu-amdgpu fit. test/tool/run reads this file.

fits() {
	expect "fit, no KFD" 2 "this machine has no KFD driver" fit "$work/images"
	expect "fit, no tree" 2 "cannot read $work/none" fit -t "$work/none" "$work/images"
	cp -r build/machines/eight "$work/copied"
	: > "$work/copied/nodes/3/gpu_id"
	expect "fit, a hidden GPU" 1 "but the task can use 7" fit -t "$work/copied" "$work/images"
	rm "$work/copied/nodes/3/gpu_id"
	expect "fit, a copy without a gpu_id" 2 "$work/copied is no whole topology: nodes/3/gpu_id is missing; copy all files of its nodes" \
		fit -t "$work/copied" "$work/images"
	expect "fit, a directory without nodes" 2 "is no topology: it has no nodes" fit -t "$work" "$work/images"
	topology one
	expect "fit, too few GPUs" 1 "the image has 8 GPUs, but the task can use 1" fit -t "$tree" "$work/images"
	topology eight
	expect "fit, the same machine" 0 "0x07cd (renderD128) -> 0x07cd (renderD128)" fit -t "$tree" "$work/images"
	has_not "the render nodes of processes" "^render node"
	AMDGPU_DEVICE_MAP=wrong expect "fit, options" 1 "device-map" fit -t "$tree" "$work/images"
	AMDGPU_DEVICE_MAP=0x07cd=0xdfd4,0xdfd4=0x07cd expect "fit, exchanged gpu_ids" 1 \
		"its GPUs exchange their gpu_ids" fit -t "$tree" "$work/images"
	AMDGPU_FORCE=1 AMDGPU_DEVICE_MAP=0x07cd=0xdfd4,0xdfd4=0x07cd expect "fit, exchanged gpu_ids by force" 0 \
		"its GPUs exchange their gpu_ids" fit -t "$tree" "$work/images"
	mkdir "$work/renders" && cp "$work/images"/amdgpu-renderD-*.img "$work/renders"
	expect "fit, render nodes only" 0 "^render node [0-9]*: fits" fit -t "$tree" "$work/renders"
	topology one
	expect "fit, two processes on one GPU" 0 "both would share its memory" fit -t "$tree" "$work/renders"
	mkdir -p "$work/empty/nodes"
	expect "fit, render nodes only, no GPU" 1 "^render node [0-9]*: does not fit" fit -t "$work/empty" "$work/renders"
	fits_xnack
	fits_state
	fits_xccs
	fits_layout
	fits_driver
	topology eight-other
	expect "fit, quiet" 0 "" fit --quiet --topology "$tree" "$work/images"
	expect "fit, another machine" 0 "another gpu_id" fit -t "$tree" "$work/images"
	agrees_with_restore
}

# A fit after the mapping: the queues, and BOs that processes share.
fits_state() {
	local words="would be on a partition with another number"

	edited_machine first 's/^gfx_target_version 9.*/gfx_target_version 90402/;s/^location_id [1-9].*/location_id 25344/'
	edited_machine second 's/^gfx_target_version 9.*/gfx_target_version 90402/;s/^location_id [1-9].*/location_id 25345/'
	on "$work/first" dump "$work/copies" 2x1M,1x4K:P
	expect "fit, a copy queue" 0 "^process .*: fits$" fit -t "$work/topology-first" "$work/copies"
	expect "fit, a copy queue on another partition" 1 "$words" fit -t "$work/topology-second" "$work/copies"
	expect "fit, the mapping of a copy queue" 1 "^process .*: does not fit, with this mapping$" fit -t "$work/topology-second" "$work/copies"
	AMDGPU_FORCE=1 expect "fit, a copy queue by force" 0 "$words" fit -t "$work/topology-second" "$work/copies"
	on eight dump "$work/related" tasks=2,gpus=2,shared=2,peer=1,2x1M
	topology eight
	expect "fit, BOs shared by two cards" 0 "^process 101 .*: fits$" fit -t "$tree" "$work/related"
	cp -r "$tree" "$work/one-card"
	sed -i 's/^location_id [1-9].*/location_id 25344/' "$work/one-card"/nodes/*/properties
	expect "fit, BOs shared by one card" 1 "share buffers, and no mapping keeps them .* on different PCI devices" \
		fit -t "$work/one-card" "$work/related"
}

# The driver would read queues where the plugin cannot.
fits_layout() {
	local words="a layout that this plugin does not know, so it cannot check the queues in them"

	topology one
	build/tool/make_image "$tree" "$work/layout" new
	expect "fit, an unknown layout" 1 "$words" fit -t "$tree" "$work/layout"
	AMDGPU_FORCE=1 expect "fit, an unknown layout by force" 0 "$words" fit -t "$tree" "$work/layout"
}

# An image says under which driver it was taken.
fits_driver() {
	local command="env LD_PRELOAD=$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=$work/driver"
	local module=$work/driver/sys/module/amdgpu

	edited_machine driver ""
	mkdir -p "$module/parameters"
	echo 6.12.12 > "$module/version"
	echo 0123ABC > "$module/srcversion"
	echo 1 > "$module/parameters/cwsr_enable"
	echo -1 > "$module/parameters/noretry"
	on "$work/driver" -k kernel=6.18 dump "$work/taken" 2x1M
	expect "show, the driver" 0 "^  taken 20.* UTC on Linux $(uname -r), KFD 1.18, amdgpu 6.12.12, source 0123ABC, plugin [0-9.]*, cwsr_enable=1, noretry=-1$" \
		show "$work/taken"
	expect "show, the driver, as JSON" 0 '"format":1' show -j "$work/taken"
	json "the driver" '.processes[0].saved_on | .kfd_minor == 18 and .time > 1700000000 and .driver_version == "6.12.12" and .driver_source == "0123ABC" and .parameters == {"cwsr_enable": 1, "noretry": -1} and (.kernel | length > 0) and (.plugin | length > 0)'
	on "$work/driver" -k kernel=7.3 -k running_kernels=2 dump "$work/drained" 2x1M,1x1M:W,2x4K:Q
	expect "show, a dump that waited" 0 "^  taken .*, noretry=-1, after [0-9]* ms in which kernels ended$" show "$work/drained"
	expect "show, a dump that waited, as JSON" 0 '"format":1' show -j "$work/drained"
	json "a dump that waited" '.processes[0].saved_on.drained_ms >= 30'
	fields_are_documented
	AMDGPU_SIM_KNOBS=kernel=6.18 expect "fit, the same driver" 0 "^process .*: fits$" fit "$work/taken"
	has_not "the same driver" "taken under another driver"
	AMDGPU_SIM_KNOBS=kernel=6.12 expect "fit, another driver" 0 \
		"^  taken under another driver: Linux .*, KFD 1.18, amdgpu 6.12.12; here: Linux .*, KFD 1.17, amdgpu 6.12.12$" fit "$work/taken"
	AMDGPU_SIM_KNOBS=kernel=6.1 expect "fit, records of another size" 1 "has saved 272 bytes for each BO, .* reads records of another size" \
		fit "$work/taken"
	rm "$module/srcversion"
	AMDGPU_SIM_KNOBS=kernel=6.18 expect "fit, another source of the driver" 0 "taken under another driver" fit "$work/taken"
}

# Drivers restore one XCC or all.
fits_xccs() {
	local command="env LD_PRELOAD=$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=$work/xccs"
	local one="saved with all XCCs, and this kernel restores one XCC" fewer="saved with fewer XCCs than this GPU has"

	edited_machine xccs 's/^gfx_target_version 9.*/gfx_target_version 90402/;s/^num_xcc .*/num_xcc 8/'
	on "$work/xccs" -k kernel=6.18 dump "$work/all-xccs" 1x1M:W,1x4K:Q
	AMDGPU_FORCE=1 on "$work/xccs" -k kernel=6.12 dump "$work/one-xcc" 1x1M:W,1x4K:Q
	AMDGPU_SIM_KNOBS=kernel=6.18 expect "fit, all XCCs" 0 "^process .*: fits$" fit "$work/all-xccs"
	AMDGPU_FORCE=1 AMDGPU_SIM_KNOBS=kernel=6.12 expect "fit, all XCCs, a driver that restores one" 1 "$one" fit "$work/all-xccs"
	AMDGPU_FORCE=1 AMDGPU_SIM_KNOBS=kernel=6.18 expect "fit, one XCC, a driver that restores all" 1 "$fewer" fit "$work/one-xcc"
	AMDGPU_FORCE=1 AMDGPU_SIM_KNOBS=kernel=6.12 expect "fit, one XCC, a driver that restores one" 0 "$fewer" fit "$work/one-xcc"
	AMDGPU_SIM_KNOBS="faults=kfd:OPEN 1 -13" expect "fit, no right to open" 1 "/dev/kfd: cannot open" fit "$work/all-xccs"
	expect "fit, all XCCs, another machine" 0 "not checked: whether the driver there restores compute queues" \
		fit -t "$work/xccs/sys/class/kfd/kfd/topology" "$work/all-xccs"
}

# Two machines with a GPU of gfx908, one with amdgpu's parameter.
fits_xnack() {
	local words="saved with XNACK on, which GPU 0x07cd does not support (gfx10 or newer, or amdgpu.noretry=1)"
	local command="env LD_PRELOAD=$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=$work/gfx908"

	edited_machine gfx908 's/^gfx_target_version 9.*/gfx_target_version 90008/'
	tree=$work/gfx908/sys/class/kfd/kfd/topology
	on "$work/gfx908" -k noretry=0 dump "$work/xnack" xnack=1,2x1M
	on "$work/gfx908" dump "$work/no-xnack" 2x1M
	expect "fit, XNACK, another machine" 0 "not checked: whether amdgpu has noretry=0 there" fit -t "$tree" "$work/xnack"
	expect "fit, XNACK, no parameter" 1 "$words" fit "$work/xnack"
	expect "fit, no XNACK" 0 "^process .*: fits$" fit "$work/no-xnack"
	mkdir -p "$work/gfx908/sys/module/amdgpu/parameters"
	echo 0 > "$work/gfx908/sys/module/amdgpu/parameters/noretry"
	expect "fit, XNACK, noretry=0" 0 "^process .*: fits$" fit "$work/xnack"
	expect "fit, XNACK, quiet" 0 "" fit -q -t "$tree" "$work/xnack"
	echo 1 > "$work/gfx908/sys/module/amdgpu/parameters/noretry"
	expect "fit, XNACK, noretry=1" 1 "$words" fit "$work/xnack"
	topology one
	on one dump "$work/xnack-mode" xnack=1,2x1M
	expect "fit, XNACK for each process" 0 "^process .*: fits$" fit -t "$tree" "$work/xnack-mode"
}

# The GPUs of the last output are those that a restore takes.
agrees_with_restore() {
	sed -n 's/^  \(0x[0-9a-f]*\) .* -> \(0x[0-9a-f]*\) .*/\1 \2/p' "$work/output" | sort > "$work/mapped"
	on eight-other restore "$work/images" $workload
	sed -n 's/.*map: saved GPU \(0x[0-9a-f]*\) .* -> \(0x[0-9a-f]*\) .*/\1 \2/p' "$work/host.log" | sort > "$work/restored"
	if [ -s "$work/mapped" ] && cmp -s "$work/mapped" "$work/restored"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "tool: fit and restore differ:"
		diff "$work/mapped" "$work/restored"
	fi
}

# pair_fits ID SOURCE DESTINATION ENVIRONMENT OUTCOME MAPPING: fit gives the answer of the file, GPU by GPU.
pair_fits() {
	local status=1 got expected=

	[ -d "$work/trees/images-of-$2" ] || build/tool/make_image "$work/trees/$2" "$work/trees/images-of-$2" 2> /dev/null
	env $4 build/criu-amdgpu fit -t "$work/trees/$3" "$work/trees/images-of-$2" > "$work/output" 2>&1
	got=$?
	case $5 in
	mapped*)
		expected=$(tr ' ' '\n' <<< "$6" | sort)
		# The mapper accepts this, and a restore does not.
		grep -q "its GPUs exchange their gpu_ids" "$work/output" || status=0
		;;
	# Such a machine can make no image that passes the checks of the reader.
	malformed) [ $got != 2 ] || status=2 ;;
	esac
	[ $got -eq $status ] && [ "$(sed -n 's/^  0x0*\([0-9a-f]*\) .* -> 0x0*\([0-9a-f]*\) .*/\1:\2/p' "$work/output" | sort)" = "$expected" ]
}

# All pairs of captured machines: the tool answers as the mapper does.
pairs_fit() {
	local id source destination environment outcome mapping rest pairs=0

	mkdir "$work/trees" && tar -C "$work/trees" -xf test/data/topologies/trees.tar.zst || exit 1
	while IFS=$'\x1f' read -r id source destination environment outcome mapping rest; do
		[ "$id" != id ] || continue
		# A process without GPUs has no state, so nothing is mapped.
		[ "$outcome $mapping" != "mapped " ] || continue
		pairs=$((pairs + 1))
		if pair_fits "$id" "$source" "$destination" "$environment" "$outcome" "$mapping"; then
			passed=$((passed + 1))
			continue
		fi
		failed=$((failed + 1))
		echo "tool: fit, pair $id, $source to $destination: expected $outcome, \"$mapping\"; the output:"
		sed 's/^/    /' "$work/output"
	done < <(tr '\t' '\037' < test/data/topologies/pairs.tsv)
	expect "fit, a GPU without render node" 1 "cannot open renderD0" fit -t "$work/trees/mi350x-1gpu--no-minor" \
		"$work/trees/images-of-mi350x-1gpu"
	sed -i 's/^drm_render_minor 0$/drm_render_minor 4294967295/' "$work/trees/mi350x-1gpu--no-minor"/nodes/*/properties
	expect "fit, a GPU with the render minor -1" 1 "cannot open renderD4294967295" fit -t "$work/trees/mi350x-1gpu--no-minor" \
		"$work/trees/images-of-mi350x-1gpu"
	[ $pairs -gt 100 ] || { echo "tool: fit: only $pairs pairs"; failed=$((failed + 1)); }
}
