# SPDX-License-Identifier: GPL-2.0-only
#
# What the steps ask of the kernel's own amdgpu on the emulated GPU. simulated.sh has the same functions for the
# simulated GPU. A step that only the simulated GPU can do skips the scenario.
kfd=/sys/class/kfd/kfd

# Without PSP, SMU and display (ip_block_mask), and with firmware loaded by the driver itself (fw_load_type), because the
# emulated GPU has none of these. A ring may take longer on a busy host than the driver allows by default.
options="ip_block_mask=0x1f fw_load_type=0 dpm=0 ras_enable=0 audio=0 lockup_timeout=120000"

# machine NAME [HIDDEN]: loads the driver, unless it is loaded. The machine has one GPU, like the simulated machine "one".
machine() {
	[ "$1" = one ] && [ -z "${2-}" ] || skip "needs machine $*"
	[ -z "${kernel:-}" ] || skip "needs the simulated GPU's kernel $kernel"
	[ -f /run/memory ] || load_machine
	knob engine_bytes_per_s 0
}

load_machine() {
	local device devices

	devices=$(grep -l 0x1002 /sys/bus/pci/devices/*/vendor) || fail "the emulated GPU is not on the PCI bus"
	mkdir -p /lib/firmware
	cp -r /opt/vm/firmware/. /lib/firmware/
	modprobe amdgpu $options || fail "Linux $(uname -r) does not load amdgpu: $(dmesg | tail -n 1)"
	for device in $devices; do
		[ -e "${device%/*}/driver" ] || fail "amdgpu does not bind the emulated GPU: $(dmesg | grep -E 'amdgpu.*(ERROR|rror|ailed)' | tail -n 1)"
	done
	until_true has_render_node || fail "amdgpu has made no render node: $(dmesg | grep amdgpu | tail -n 1)"
	grep -qvx 0 "$kfd"/topology/nodes/*/gpu_id || fail "KFD does not list the GPU: $(dmesg | grep kfd | tail -n 1)"
	tell_memory > /run/memory
	echo "driver amdgpu $(dmesg | sed -n 's/.*Initialized amdgpu \([0-9.]*\).*/\1/p') of Linux $(uname -r)," \
		"$(uname -v | grep -o 'Debian [^ ]*')" > /dev/ttyS1
}
has_render_node() { [ -c /dev/dri/renderD128 ] && [ -c /dev/kfd ]; }

# The driver stays loaded: Linux 6.1 oopses when amdgpu is unloaded, because it resets the GPU through the SMU.
no_machine() { ! has_device || skip "needs a machine without a driver"; }

has_device() { [ -d /sys/module/amdgpu ]; }

fault() { skip "needs the simulated GPU: fault $*"; }
knob() {
	[ "$1" = engine_bytes_per_s ] || skip "needs the simulated GPU: knob $*"
	ask_gpu "speed $2"
}
needs_dma_bufs() { [[ $(uname -r) != 6.1.* ]] || skip "KFD has had dma-bufs since Linux 6.8"; }
# mqd_manager_init_v9() of these kernels takes the size of the control stack from a CPU's node, so CHECKPOINT saves none.
loses_waves() { [[ $(uname -r) == 7.[23][.-]* ]]; }
object() { skip "needs the simulated GPU: count of $1"; }

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
	until_true queues_run "$1" || fail "queues of $1 are stopped"
	before=$queues
	until_true moves_on "$1" "$before" || fail "queues of $1 do nothing"
}
moves_on() {
	no_failed_client
	mapped_queues "$1"
	[ -n "$queues" ] && [ "$queues" != "$2" ]
}

queues_run() { mapped_queues "$1" && [ -n "$queues" ]; }
queues_stopped() { mapped_queues "$1" && [ -z "$queues" ]; }
no_process_paused() {
	local file

	for file in "$kfd"/proc/[0-9]*; do
		queues_run "${file##*/}" || return 1
	done
}

sees_gpus() { # COUNT: that many are there for the client
	set -- "$1" "$kfd/proc/$pid"/vram_*
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

# Prints complaints of the kernel. Linux 6.1 calls it an error that ip_block_mask leaves out the SMU.
complaints() {
	dmesg | grep -v 'disabled ip block' |
		grep -E 'WARNING:|BUG:|Oops|refcount_t|amdgpu.*(page fault|\*ERROR\*|timeout|GPU reset|\<hang)' || true
}

# The emulated GPU counts violations since its start. Each fails the scenario that finds it, and not the later ones.
no_violation() {
	local answer known=0

	read -r known 2> /dev/null < /run/violations || true
	ask_gpu violations
	echo "${answer%%:*}" > /run/violations
	[ "${answer%%:*}" = "$known" ] || fail "device: ${answer:0:300}"
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
