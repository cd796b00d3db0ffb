# SPDX-License-Identifier: GPL-2.0-only
#
# The plugin beside other drivers and plugins: it touches only what belongs to AMD GPUs.

# CRIU itself cannot dump such files, so the dump fails with CRIU's own message. The process runs on.
not_ours() {
	start hold.log /opt/vm/bin/hold "$work/hold.log" "$@"
	wait_line hold.log ready
	! try_dump img "$pid" || fail "CRIU dumped what it cannot dump: $*"
	! grep 'Error (amdgpu_plugin)' img/dump.log || fail "the plugin objects"
	has_line img/dump.log "Error (criu/"
	kill -USR1 "$pid"
	wait_line hold.log alive
	kill -9 "$pid"
	gone "$pid"
	rm -r img hold.log
}

# The first render node of this machine is that of vgem.
scenario_foreign_files() {
	machine one-other
	not_ours open "$(vgem_node render)"
	not_ours dumb "$(vgem_node card)"
	with_kernel '6.1.*' || not_ours udmabuf # Debian builds Linux 6.1 without it
}

scenario_foreign_files_without_kfd() {
	no_machine
	modprobe vgem
	not_ours open "$(vgem_node render)"
	not_ours dumb "$(vgem_node card)"
	with_kernel '6.1.*' || not_ours udmabuf # Debian builds Linux 6.1 without it
	rmmod vgem
}

# vgem_node card|render: prints the node of vgem of that kind.
vgem_node() {
	local node

	for node in /sys/class/drm/"$1"*; do
		case $(readlink -f "$node/device") in
		*vgem*) echo "/dev/dri/${node##*/}" ;;
		esac
	done
}

# A process with a GPU and a render node of another vendor, and a plugin for each.
scenario_neighbour() {
	machine one-other
	asks_neighbours || skip "this CRIU asks one plugin only, so no process can have files of two"
	beside_neighbour first
	beside_neighbour second
}

beside_neighbour() {
	plugin_folder "$1"
	exec 9<> /dev/dri/renderD128
	start_client
	exec 9>&-
	NEIGHBOUR_DEVICE=/dev/dri/renderD128 come_back
	has_line "img$trips/dump.log" "neighbour: dumped"
	has_line "img$trips/restore.log" "neighbour: restored"
	finish
}

# Runtimes let CRIU freeze the cgroup of a container. CRIU then also stops foreign processes in this cgroup, and
# lets them go again.
scenario_frozen_beside() {
	local group=/sys/fs/cgroup/job other

	machine eight
	mkdir "$group"
	start_client --gpus 1
	other=$pid
	start_client --gpus 2
	echo "$other" > "$group/cgroup.procs"
	echo "$pid" > "$group/cgroup.procs"
	dump img "$pid" --leave-running --freeze-cgroup "$group"
	compgen -G 'img/amdgpu-kfd-*.img' > /dev/null || fail "the dump has no image"
	! grep -q "process $other: its queues are stopped" img/dump.log || fail "a process that is not dumped was paused"
	finish
	pid=$other
	client="client $pid:"
	finish
	rmdir "$group"
}

both_are_ready() { [ "$(grep -c ' ready' client.log)" = 2 ]; }

# A launcher and its two jobs are in one cgroup. One of the jobs is dumped.
scenario_frozen_above() {
	local group=/sys/fs/cgroup/jobs launcher jobs

	machine eight
	rocm_before
	mkdir "$group"
	start client.log bash -c 'for gpu in 1 2; do
		setsid /opt/vm/bin/gpu_client --log "$0" --gpus $gpu & done; wait' "$work/client.log"
	launcher=$pid
	until_true both_are_ready || fail "the jobs do not begin: $(tail -n 2 client.log client.log.err)"
	jobs=($(pgrep -P "$launcher"))
	for pid in "$launcher" "${jobs[@]}"; do
		echo "$pid" > "$group/cgroup.procs"
	done
	pid=${jobs[1]}
	client="client $pid:"
	dump img "$pid" --leave-running --freeze-cgroup "$group"
	compgen -G 'img/amdgpu-kfd-*.img' > /dev/null || fail "the dump has no image"
	for pid in "${jobs[@]}"; do
		client="client $pid:"
		runs
		finish
	done
	gone "$launcher"
	rmdir "$group"
}

# The other plugin answers for all tasks, and CRIU then asks no further plugin.
scenario_neighbour_resumes() {
	machine one
	asks_neighbours || skip "this CRIU does not ask the plugin for anything"
	plugin_folder first
	start_client
	go_away img
	! NEIGHBOUR_RESUMES=1 try_restore img || fail "restored without queues"
	plugin_error img/restore.log 'CRIU has not asked for the queues of any process'
	gone "$pid"
	until_true holds_nothing || fail "a restore that is not whole has left something"
}

# The process has no AMD GPU, only the device of the other plugin.
scenario_neighbour_alone() {
	local turn

	no_machine
	modprobe vgem
	for turn in first second; do
		[ $turn = first ] || asks_neighbours || continue
		plugin_folder $turn
		NEIGHBOUR_DEVICE=$(vgem_node render)
		export NEIGHBOUR_DEVICE
		start hold.log /opt/vm/bin/hold "$work/hold.log" open "$NEIGHBOUR_DEVICE"
		wait_line hold.log "hold $pid: ready"
		dump "img-$turn" "$pid"
		gone "$pid"
		restore "img-$turn"
		kill -USR1 "$pid"
		wait_line hold.log "hold $pid: alive"
		has_line "img-$turn/restore.log" "neighbour: restored"
		kill -9 "$pid"
		gone "$pid"
	done
	rmmod vgem
}

# plugin_folder first|second: a folder with both plugins, the other plugin in that place. CRIU loads plugins in
# the order of the folder, and a tmpfs lists files by time of creation.
plugin_folder() {
	local libs=$work/libs-$1 neighbour=/opt/vm/lib/neighbour.so amdgpu_plugin=$plugins/amdgpu_plugin.so
	local files file order

	mkdir "$libs"
	mount -t tmpfs libs "$libs"
	for files in "neighbour amdgpu_plugin" "amdgpu_plugin neighbour"; do
		rm -f "$libs"/*
		for file in $files; do
			cp "${!file}" "$libs/"
		done
		order=$(ls -U "$libs" | head -n 1)
		case $1-$order in
		first-neighbour.so | second-amdgpu_plugin.so)
			export CRIU_LIBS_DIR=$libs
			return
			;;
		esac
	done
	fail "cannot have the neighbour $1"
}

# CRIU before 4.0 calls only the first plugin of a hook, whatever the answer.
asks_neighbours() { [ "$criu_version" != 3.17.1 ]; }

# The driver has found no GPU, but it has a /dev/kfd. Linux 7.2 lets no process open it then (kfd_create_process() in
# kfd_process.c).
scenario_kfd_without_gpus() {
	no_machine
	load_driver
	[ -c /dev/kfd ] || fail "no /dev/kfd"
	talk_dump_restore
	[[ $(uname -r) == 7.* ]] || kfd_comes_back
	rmmod amdgpu
}

kfd_comes_back() {
	start hold.log /opt/vm/bin/hold "$work/hold.log" open /dev/kfd
	wait_line hold.log ready
	dump img-kfd "$pid"
	gone "$pid"
	restore img-kfd
	kill -USR1 "$pid"
	wait_line hold.log alive
	kill -9 "$pid"
	gone "$pid"
}

scenario_bad_option() {
	machine one
	start_client
	refuses_value KFD_FW_VER_CHECK maybe
	refuses_value KFD_NUMA_CHECK 2
	refuses_value KFD_MAX_BUFFER_SIZE 12x
	refuses_value KFD_MAX_BUFFER_SIZE ""
	runs
	verify
	KFD_FW_VER_CHECK=No KFD_CAPABILITY_CHECK=yes KFD_VRAM_SIZE_CHECK=0 KFD_MAX_BUFFER_SIZE=2M come_back
	! KFD_NUM_GWS_CHECK=perhaps try_restore img1 2> /dev/null || fail "restored with a bad option"
	plugin_error img1/restore.log "KFD_NUM_GWS_CHECK.*perhaps"
	finish
}

refuses_value() { # NAME VALUE
	! env "$1=$2" criu dump -t "$pid" -D . -o "dump-$1.log" -v4 || fail "dumped with $1=$2"
	plugin_error "dump-$1.log" "$1.*$2"
}
