# SPDX-License-Identifier: GPL-2.0-only
#
# What driver.sh asks of the emulated GPU, asked of a real one, whose driver this test neither loads nor unloads. What
# cannot be asked is skipped, or is in $not_asked. test/hardware/world makes the namespaces; /run/host-proc is the /proc outside.

memory_slack=$((4 << 20)) # bytes: other programs of the machine may show something meanwhile

# Scenarios go on where these cannot be asked. test/hardware/world prints them.
not_asked=(
	"what the hardware does wrong in silence (the emulated GPU counts such violations)"
	"whether queues stand still or run at a moment (the jobs verify what their queues have done)"
	"memory of up to $((memory_slack >> 20)) MiB that stays in use after a job"
)

nodes() { grep -Hv '^0$' "$kfd"/topology/nodes/*/gpu_id | cut -d : -f 1 | sort -V; }
property() { sed -n "s/^$2 //p" "${1%/gpu_id}/properties"; } # NODE NAME
selftest_said() { grep -q "$1" /opt/vm/selftest.txt; }

gpu_devices() {
	local node

	for node in $(nodes); do
		node=$(readlink -f "/sys/class/drm/renderD$(property "$node" drm_render_minor)/device")
		echo "${node##*/}"
	done
}

# The machine has so many GPUs at least; the others are hidden.
machine() { # NAME [HIDDEN]
	local wanted here others=${2-} hidden

	hidden=(${others//,/ })
	[ $machines != 0 ] || forget_kernel_log
	machines=$((machines + 1))
	case $1 in
	one) wanted=1 ;;
	two) wanted=2 ;;
	eight) wanted=8 ;;
	*) skip "needs another machine, $1" ;;
	esac
	! selftest_said 'no known kernel restores queues' || skip "no known kernel restores queues of gfx11 or newer"
	show_gpus
	here=$(nodes | wc -l)
	[ "$here" -ge "$wanted" ] || skip "needs $wanted GPUs"
	[ "$wanted" != 8 ] || first_nodes 8 || skip "needs eight GPUs with the nodes renderD128 to renderD135"
	gpus_of "$1"
	mapfile -t -O ${#hidden[@]} hidden < <(seq "$wanted" $((here - 1)))
	[ ${#hidden[@]} = 0 ] || [ -f /sys/fs/cgroup/cgroup.procs ] || skip "needs cgroup v2 to hide GPUs"
	[ ${#hidden[@]} = 0 ] || hide_gpus "${hidden[@]}"
	[ -f /run/memory ] || tell_memory > /run/memory
	echo "$1" > /run/gpus
}
gpus_of() { mapfile -t gpus < <(seq 0 $(($(nodes | wc -l) - 1))); } # all, whatever the machine

first_nodes() { # COUNT
	local node minor=128

	for node in $(nodes | head -n "$1"); do
		[ "$(property "$node" drm_render_minor)" = $((minor++)) ] || return 1
	done
}

has_device() { [ -f /run/memory ]; }
no_machine() { skip "needs a machine without a GPU"; }
load_driver() { skip "needs a driver that can be loaded anew"; }
unload_driver() { skip "needs a driver that can be unloaded"; }
ask_gpu() { [ "$1" = "speed 0" ] || skip "needs a command of the emulated GPU: $1"; } # 0: as fast as it can
huge_pages() { skip "would change the huge pages of the machine"; }
mount_small_disk() { skip "needs a disk that can be frozen"; }
mount_sharing_disk() { skip "needs an empty disk with $1"; }

# Kernels are sorted under those whose behaviour scenarios know.
with_kernel() { # PATTERN
	local major minor release

	IFS=.- read -r major minor _ < <(uname -r)
	case $((major * 1000 + minor)) in
	[1-5]??? | 600[0-7]) release=6.1.0 ;;
	6*) [ "$minor" -ge 18 ] && release=7.0.0 || release=6.12.0 ;;
	*) release=$(uname -r) ;;
	esac
	[[ $release == $1 ]]
}
needs_dma_bufs() { ! with_kernel '6.1.*' || skip "KFD has had dma-bufs since Linux 6.8"; }
svm_capability=$((1 << 27)) # HSA_CAP_SVMAPI_SUPPORTED of kfd_sysfs.h
needs_svm() {
	(($(property "$(nodes | head -n 1)" capability) & svm_capability)) || skip "this kernel has no SVM ranges"
}
loses_waves() { selftest_said 'does not restore waves'; }
needs_march() {
	! selftest_said ': a compute queue, because' || skip "this kernel does not restore compute queues"
	! selftest_said 'there is no kernel for this GPU' || skip "there is no kernel for this GPU"
}

needs_kfd_pids() { skip "needs the pids by which KFD names processes"; }

# KFD names processes by their pids outside.
find_process() { # PID
	local directory

	process_dir=$kfd/proc/none
	for directory in "$kfd"/proc/[0-9]*; do
		[ "$(pid_inside "${directory##*/}")" != "$1" ] || process_dir=$directory
	done
}

# Prints the pid that a process has in this pid namespace, or 0 if it has none here. The fields of NSpid are the pids in the namespace
# outside, in this one, and in those inside.
pid_inside() { # PID OUTSIDE
	local outside=/run/host-proc/$1 pid

	pid=$(awk '/^NSpid:/ { print $3 }' "$outside/status" 2> /dev/null) || true
	[ -n "$pid" ] && [ "$(readlink "$outside/ns/pid")" = "$(readlink "/proc/$pid/ns/pid")" ] || pid=0
	echo "$pid"
}

gpu_processes() { # SESSION
	local directory process

	processes=()
	for directory in "$kfd"/proc/[0-9]*; do
		process=$(pid_inside "${directory##*/}")
		[ "$process" = 0 ] || ! in_session "$1" "$process" || processes+=("$process")
	done
}

# The GPU does not say which queues it runs.
sees_queues() { false; }
process_runs() { :; }
queues_run() { :; }
no_process_paused() { :; }
queues_stopped() { skip "needs a GPU that tells which queues it runs"; }
note_violations() { :; }
forget_violations() { :; }
no_violation() { :; }

holds_nothing() {
	local directory before now i

	for directory in "$kfd"/proc/[0-9]*; do
		[ ! -d "$directory" ] || [ "$(pid_inside "${directory##*/}")" = 0 ] || return 1
	done
	mapfile -t before < /run/memory
	mapfile -t now < <(tell_memory)
	for i in "${!now[@]}"; do
		[ "${now[i]}" -le $((before[i] + memory_slack)) ] || return 1
	done
}

# The kernel's log is not emptied. What it had before the scenario's first machine is left out.
kernel_log() {
	[ ! -f "$work/log-mark" ] || dmesg | MARK=$(< "$work/log-mark") awk '
		{ text = text $0 "\n" }
		$0 == ENVIRON["MARK"] { text = "" }
		END { printf "%s", text }'
}
forget_kernel_log() { dmesg | tail -n 1 > "$work/log-mark"; }

device_state() { held; }
