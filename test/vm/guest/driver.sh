# SPDX-License-Identifier: GPL-2.0-only
#
# What the steps ask of the kernel's own amdgpu, and of the emulated GPU that it drives.
kfd=/sys/class/kfd/kfd

# Without PSP, SMU and display (ip_block_mask), and with firmware loaded by the driver itself (fw_load_type), because the
# emulated GPU has none of these. A ring may take longer on a busy host than the driver allows by default.
options="ip_block_mask=0x1f fw_load_type=0 dpm=0 ras_enable=0 audio=0 lockup_timeout=120000"
# Of these kernels, 6.1 and 7.2 overwrite memory when a copy engine writes page tables: test/gpu/bugs/copy_of_nothing.c. 7.2
# and early 7.3 lose page tables if a copy engine clears them and the CPU writes them: test/gpu/bugs/clear_after_map.c. So
# here the CPU does both.
[[ $(uname -r) != @(6.1|7.2|7.3)[.-]* ]] || options+=" vm_update_mode=3"

# Sets $gpus to the GPUs of a machine, by their places on the PCI bus, in the order in which the driver finds them. All
# MI210s are nodes of one XGMI hive, but those of two-apart have no links. Those of two, four and their others have links with a
# weight. one-small has 160 MiB of video memory. The MI300X is one partition, or one for each XCC.
gpus_of() { # MACHINE
	case ${1%+other-major} in
	one | one-small) gpus=(0) ;;
	one-other) gpus=(8) ;;
	two | two-apart) gpus=(0 1) ;;
	two-other) gpus=(5 2) ;;
	four) gpus=(0 1 2 3) ;;
	four-other) gpus=(5 2 7 4) ;;
	eight) gpus=(0 1 2 3 4 5 6 7) ;;
	eight-other) gpus=(3 5 1 7 2 8 6 4) ;;
	mi300x | mi300x-cpx)
		[[ $(uname -r) != 6.1.* ]] || skip "Linux 6.1 does not know gfx942"
		gpus=(0)
		;;
	*) fail "no such machine: $1" ;;
	esac
}

machines=0 # that the scenario has had
another_gpu= # set by a scenario that restores on another GPU of the same machine

# machine NAME [HIDDEN]: loads the driver for the GPUs of this machine, unless it has them. On machines *-other, another
# driver has the first render node, and on *+other-major another driver has the major number that KFD would get. The
# device cgroup of this scenario and its processes hides the GPUs with the indices HIDDEN.
machine() {
	local now= gpus

	[ $machines != 0 ] || note_violations
	machines=$((machines + 1))
	gpus_of "$1"
	show_gpus
	read -r now 2> /dev/null < /run/gpus || true
	[ "$now" = "$1" ] || change_machine "$1" "${gpus[@]}"
	[ -z "${2-}" ] || hide_gpus ${2//,/ }
	ask_gpu "speed 0"
}

change_machine() { # NAME GPU...
	local devices=() gpu

	unload_driver
	case $1 in
	*-other) modprobe vgem || fail "Linux $(uname -r) does not load vgem" ;;
	*+other-major) modprobe uio || fail "Linux $(uname -r) does not load uio" ;;
	esac
	[[ $1 = *-apart ]] && ask_gpu "links off" || ask_gpu "links on"
	load_driver
	[ "$1" != one-small ] || echo 160 > /sys/module/amdgpu/parameters/vramlimit
	mapfile -t devices < <(gpu_devices)
	for gpu in "${@:2}"; do
		bind_gpu "${devices[gpu]-}"
	done
	[[ $1 != @(two|four)* ]] || weigh_links
	[[ $1 != *-cpx ]] || echo CPX > "/sys/bus/pci/devices/${devices[0]}/current_compute_partition"
	[ -f /run/memory ] || tell_driver
	tell_memory > /run/memory
	echo "$1" > /run/gpus
}

# ROCr lets GPUs reach each other's memory only if the link between them has a weight. The driver makes it of the number of
# hops, 15 for each, which it asks the PSP for. The emulated GPU has no PSP, so all weights are 0.
weigh_links() {
	local link copy=0

	for link in "$kfd"/topology/nodes/*/io_links/*/properties; do
		grep -qx 'type 11' "$link" || continue # XGMI
		copy=$((copy + 1))
		sed 's/^weight 0$/weight 15/' "$link" > /run/link-$copy
		mount --bind /run/link-$copy "$link"
	done
}
forget_links() { awk '$2 ~ "/io_links/" { print $2 }' /proc/mounts | xargs -r umount; }

gpu_devices() { grep -lxE '0x740f|0x74a1' /sys/bus/pci/devices/*/device | sed 's,.*/\([^/]*\)/device,\1,'; }

# The driver does not take the GPUs by itself.
load_driver() {
	gpu_devices | grep -q . || fail "the emulated GPU is not on the PCI bus"
	mkdir -p /lib/firmware
	cp -r /opt/vm/firmware/. /lib/firmware/
	echo 0 > /sys/bus/pci/drivers_autoprobe
	modprobe amdgpu $options || fail "Linux $(uname -r) does not load amdgpu: $(dmesg | tail -n 1)"
}

tell_driver() {
	echo "driver amdgpu $(dmesg | sed -n 's/.*Initialized amdgpu \([0-9.]*\).*/\1/p' | head -n 1) of Linux $(uname -r)," \
		"$(uname -v | grep -o 'Debian [^ ]*')" > /dev/ttyS1
}

bind_gpu() { # DEVICE
	echo "$1" > /sys/bus/pci/drivers/amdgpu/bind ||
		fail "amdgpu does not bind the emulated GPU: $(dmesg | grep -E 'amdgpu.*(ERROR|rror|ailed)' | tail -n 1)"
	until_true has_nodes "$1" || fail "amdgpu has made no render node, or KFD none: $(dmesg | grep -E 'amdgpu|kfd' | tail -n 1)"
}
has_nodes() { # DEVICE
	local node

	for node in "/sys/bus/pci/devices/$1"/drm/renderD*; do
		[ ! -c "/dev/dri/${node##*/}" ] || break
	done
	[ -c "/dev/dri/${node##*/}" ] && grep -qx "drm_render_minor ${node##*/renderD}" "$kfd"/topology/nodes/*/properties
}

# hide_gpus INDEX...: moves the scenario to a cgroup that has no access to these of $gpus.
hide_gpus() {
	show_gpus
	rmdir /sys/fs/cgroup/shown-* 2> /dev/null || true
	gpu_group=/sys/fs/cgroup/shown-$$-$RANDOM
	gpu_cgroup "$gpu_group" "$@"
	echo $$ > "$gpu_group/cgroup.procs"
}

# gpu_cgroup PATH INDEX...: a new cgroup that has no access to these of $gpus.
gpu_cgroup() {
	local devices index node minors=()

	mapfile -t devices < <(gpu_devices)
	for index in "${@:2}"; do
		node=$(echo "/sys/bus/pci/devices/${devices[gpus[index]]}"/drm/renderD*)
		minors+=("${node##*/renderD}")
	done
	mkdir "$1"
	/opt/vm/bin/hide "$1" "${minors[@]}"
}

show_gpus() {
	[ -z "$gpu_group" ] || echo $$ > /sys/fs/cgroup/cgroup.procs
	gpu_group=
}
gpu_group=

# Unbinding a GPU is not enough: up to Linux 6.12 no process can open /dev/kfd then (kfd_is_locked() in kfd_device.c). Linux
# 6.1 oopses when amdgpu is unloaded, because it resets the GPU through the SMU.
unload_driver() {
	local module

	! has_device || [[ $(uname -r) != 6.1.* ]] || skip "needs another machine, and Linux 6.1 cannot unload amdgpu without an SMU"
	rm -f /run/gpus
	forget_links
	for module in amdgpu vgem uio; do
		# The guard of a dump may live a moment longer than the job.
		[ ! -d "/sys/module/$module" ] || until_true rmmod "$module" || fail "cannot unload $module"
	done
}

no_machine() { unload_driver; }

huge_pages() { echo "$1" > /proc/sys/vm/nr_hugepages; } # COUNT
mount_small_disk() { mount -t ext4 -o noatime /dev/vdc "$1"; } # DIR
mount_sharing_disk() { # xfs|btrfs DIR
	case $1 in
	xfs) mount -t xfs -o noatime /dev/vdd "$2" ;;
	btrfs) mount -t btrfs -o noatime /dev/vde "$2" ;;
	esac
}

has_device() { [ -d /sys/module/amdgpu ]; }

with_kernel() { [[ $(uname -r) == $1 ]]; } # PATTERN
needs_dma_bufs() { [[ $(uname -r) != 6.1.* ]] || skip "KFD has had dma-bufs since Linux 6.8"; }
# amdgpu_dma_buf_map() of these kernels warns of VRAM that the GPU reaches by XGMI, and import_obj_create() then keeps a
# reference to the dma-buf: the buffer stays, and amdgpu cannot be unloaded.
needs_hive_imports() { [[ $(uname -r) != 7.[23][.-]* ]] || skip "Linux 7.2 and 7.3 refuse VRAM of another GPU of the hive"; }
needs_svm() { [[ $(uname -r) != 6.* ]] || skip "Debian builds Linux 6.1 and 6.12 without SVM ranges"; }
# mqd_manager_init_v9() of these kernels takes the size of the control stack from a CPU's node, so CHECKPOINT saves none.
loses_waves() { [[ $(uname -r) == 7.[23][.-]* ]]; }
needs_march() { :; }
needs_kfd_pids() { :; }

# Sets $process_dir: what sysfs says of the process.
find_process() { process_dir=$kfd/proc/$1; } # PID

# Sets $processes: the processes of the session that KFD knows.
gpu_processes() { # SESSION
	local file

	processes=()
	for file in "$kfd"/proc/[0-9]*; do
		! in_session "$1" "${file##*/}" || processes+=("${file##*/}")
	done
}

# ask_gpu COMMAND: sends it to the emulated GPU, and sets $answer to the line that comes back. test/gpu/README.md has the
# commands. The port has one user at a time.
ask_gpu() {
	local file port -

	set +x
	file=$(grep -lx gpu /sys/class/virtio-ports/*/name)
	file=${file%/name}
	exec {port}<> "/dev/${file##*/}"
	echo "$*" >&"$port"
	IFS= read -r -t 60 answer <&"$port" || fail "the emulated GPU gives no answer to: $*"
	exec {port}>&-
	[[ $answer != error* ]] || fail "the emulated GPU answers to $*: $answer"
}

# Sets $queues: the queues of the process that the GPU may run, each with the place up to which it has read. Linux 7.x does
# not tell the PASID of a process; then they are those of all processes.
mapped_queues() { # PID
	local pasid=0 queue answer

	queues=
	read -r pasid 2> /dev/null < "$kfd/proc/$1/pasid" || true
	ask_gpu queues
	for queue in $answer; do
		case $queue in
		*,pasid="$pasid",*) queues+="$queue " ;;
		*,pasid=*) [ "$pasid" != 0 ] || queues+="$queue " ;;
		esac
	done
}

# The queues of the process run. The driver itself stops them for moments, when memory of the process moves. A process that
# has ended has none.
process_runs() { # PID
	local queues before

	[ -d "$kfd/proc/$1" ] || return 0
	until_true unless_broken queues_run "$1" || fail "queues of $1 are stopped"
	before=$queues
	until_true unless_broken moves_on "$1" "$before" || fail "queues of $1 do nothing"
}
# The client, the kernel or the emulated GPU says at once that the wait will not end: after a page fault the driver stops all
# queues of the process, and a queue whose waves are lost stands still.
unless_broken() {
	no_failed_client
	"$@" || {
		no_complaint
		no_violation
		return 1
	}
}
moves_on() {
	mapped_queues "$1"
	[ -n "$queues" ] && [ "$queues" != "$2" ]
}

sees_queues() { :; }
queues_run() { mapped_queues "$1" && [ -n "$queues" ]; }
queues_stopped() { mapped_queues "$1" && [ -z "$queues" ]; }
no_process_paused() {
	local file

	for file in "$kfd"/proc/[0-9]*; do
		queues_run "${file##*/}" || return 1
	done
}

# Prints the name of the render node of the first GPU that this process may see.
first_node() {
	sed -n 's/^drm_render_minor \([1-9].*\)/renderD\1/p' "$kfd"/topology/nodes/*/properties 2> /dev/null | head -n 1
}

sees_gpus() { # COUNT: that many are there for the client
	find_process "$pid"
	set -- "$1" "$process_dir"/vram_*
	[ $(($# - 1)) = "$1" ] || fail "process $pid sees $(($# - 1)) GPUs, not $1"
}

# Prints the bytes that are in use of each memory.
tell_memory() { cat /sys/bus/pci/drivers/amdgpu/*/mem_info_{vram,gtt}_used; }

# No process has /dev/kfd open, and the driver uses no more memory than after it was loaded.
holds_nothing() {
	! compgen -G "$kfd/proc/[0-9]*" > /dev/null && [ "$(tell_memory)" = "$(< /run/memory)" ]
}
held() {
	echo "processes $(ls "$kfd/proc" | tr '\n' ' ')memory $(tell_memory | tr '\n' ' '), at first $(tr '\n' ' ' < /run/memory)"
}

no_complaint() { # [EXPECTED]
	complaints | grep -v "${1:-^\$}" > complaints.txt || true
	[ ! -s complaints.txt ] || fail "the kernel complains: $(head -n 1 complaints.txt)"
}

# For a scenario that provokes them: these complaints, and no others.
forget_complaints() { # PATTERN
	no_complaint "$1"
	forget_kernel_log
}
# Of queues that reach memory that is not there.
page_faults='no-retry page fault'

# For a scenario that provokes them.
forget_violations() {
	ask_gpu forget
	note_violations
}

kernel_log() { dmesg; }
forget_kernel_log() { dmesg -C; }

# For the contract, one of whose rules lets a queue reach memory that is not there. Linux 6.1 also warns at the import
# of an object that KFD and DRM have exported, each with a dma-buf of its own.
forget_contract() { forget_complaints "$page_faults\|drm_gem_prime_fd_to_handle"; }

# Prints complaints of the kernel. Linux 6.1 calls it an error that ip_block_mask leaves out the SMU, and warns often
# that the CPU sees more VRAM than one-small has (amdgpu_gmc_vram_full_visible() in amdgpu_gmc.h). Linux 6.1 to 7.3 warn
# when a process ends that was restored on a GPU with another gpu_id: by the id in the handle of its event page, KFD does not
# find the GPU on which the page must be unpinned (kfd_process_kunmap_signal_bo() in kfd_process.c).
complaints() {
	local moved='^$'

	[ "$machines" -lt 2 ] && [ -z "$another_gpu" ] || moved='WARNING: .*(ttm_bo_release|ttm_bo_unpin)'
	kernel_log | grep -v 'disabled ip block\|amdgpu_gmc.h:' | grep -vE "$moved" |
		grep -E 'WARNING:|BUG:|Oops|refcount_t|amdgpu.*(page fault|\*ERROR\*|timeout|GPU reset|\<hang)' || true
}

# The emulated GPU counts violations since its start. Those from before the first machine of a scenario belong to an
# earlier scenario.
note_violations() {
	local answer

	ask_gpu violations
	known_violations=${answer%%:*}
}

no_violation() {
	local answer

	[ $machines != 0 ] || return 0
	ask_gpu violations
	[ "${answer%%:*}" = "$known_violations" ] || fail "device: ${answer:0:300}"
}

device_state() {
	local answer

	held
	ask_gpu counters
	echo "$answer"
	ask_gpu queues
	echo "$answer"
	tail -n +1 /sys/kernel/debug/kfd/{mqds,rls} /sys/kernel/debug/dri/*/amdgpu_gem_info
}

# Process 1 of test/hardware has the report of the selftest on real GPUs there.
[ ! -f /opt/vm/selftest.txt ] || . /opt/vm/guest/hardware.sh

# There a dump waits for the end of kernels, so those of the clients have one.
! loses_waves || export MARCH_ROUNDS=20000
