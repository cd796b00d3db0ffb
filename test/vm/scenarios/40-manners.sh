# SPDX-License-Identifier: GPL-2.0-only
#
# The plugin beside others: what is not an AMD GPU's is none of its business, whatever state the
# machine is in.

# CRIU itself cannot dump such files, so the dump fails; but with CRIU's own words, and the process
# goes on.
not_ours() {
	start hold.log /opt/vm/bin/hold "$work/hold.log" "$@"
	wait_line hold.log ready
	! try_dump img "$pid" || fail "CRIU dumped what it cannot dump: $*"
	! grep 'amdgpu_plugin: .*Error\|Error.*amdgpu_plugin' img/dump.log || fail "the plugin objects"
	has_line img/dump.log "Error (criu/"
	kill -USR1 "$pid"
	wait_line hold.log alive
	kill -9 "$pid"
	gone "$pid"
	rm -r img hold.log
}

scenario_foreign_files() {
	machine one-other
	modprobe vgem
	not_ours open /dev/dri/renderD128
	not_ours open "$(vgem_node render)"
	not_ours dumb "$(vgem_node card)"
	not_ours udmabuf
	rmmod vgem
}

scenario_foreign_files_without_kfd() {
	no_machine
	modprobe vgem
	not_ours open "$(vgem_node render)"
	not_ours dumb "$(vgem_node card)"
	not_ours udmabuf
	rmmod vgem
}

# vgem_node card|render: its node of that kind.
vgem_node() {
	local node

	for node in /sys/class/drm/"$1"*; do
		case $(readlink -f "$node/device") in
		*vgem*) echo "/dev/dri/${node##*/}" ;;
		esac
	done
}

scenario_neighbour() {
	machine one-other
	neighbour_first a
	neighbour_first z
}

# Both plugins in one process: ours has the GPU, the neighbour another vendor's render node. CRIU
# asks them in the order of the folder, so both orders are tried.
neighbour_first() {
	local libs=$work/libs-$1

	mkdir "$libs"
	case $1 in
	a) cp /opt/vm/lib/neighbour.so "$libs/a.so"; cp /usr/lib/criu/amdgpu_plugin.so "$libs/" ;;
	z) cp /usr/lib/criu/amdgpu_plugin.so "$libs/"; cp /opt/vm/lib/neighbour.so "$libs/z.so" ;;
	esac
	export CRIU_LIBS_DIR=$libs NEIGHBOUR_DEVICE=/dev/dri/renderD128
	exec 9<> "$NEIGHBOUR_DEVICE"
	start_client
	exec 9>&-
	come_back
	has_line "img$trips/dump.log" "neighbour: dumped"
	has_line "img$trips/restore.log" "neighbour: restored"
	finish
	unset CRIU_LIBS_DIR
}

# The kernel's own driver: it has no GPU to find here, but it has a /dev/kfd.
scenario_real_amdgpu() {
	no_machine
	modprobe amdgpu
	[ -c /dev/kfd ] || fail "no /dev/kfd"
	talk_dump_restore
	start hold.log /opt/vm/bin/hold "$work/hold.log" open /dev/kfd
	wait_line hold.log ready
	dump img-kfd "$pid"
	gone "$pid"
	restore img-kfd
	kill -USR1 "$pid"
	wait_line hold.log alive
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
	has_line img1/restore.log "amdgpu_plugin: .*KFD_NUM_GWS_CHECK.*perhaps"
	finish
}

refuses_value() { # NAME VALUE
	! env "$1=$2" criu dump -t "$pid" -D . -o "dump-$1.log" -v4 || fail "dumped with $1=$2"
	has_line "dump-$1.log" "amdgpu_plugin: .*$1.*$2"
}
