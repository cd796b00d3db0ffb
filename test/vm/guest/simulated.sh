# SPDX-License-Identifier: GPL-2.0-only
#
# What the steps ask of the simulated GPU: a kernel module in place of amdgpu, with its state in debugfs. true.sh has
# the same functions for the kernel's own driver.
sim=/sys/kernel/debug/amdgpu_sim

# machine NAME [HIDDEN]: loads the simulated machine NAME instead of the present one. NAME may be the
# absolute path of a folder that describes a machine. NAME+other-major: /dev/kfd has another major
# number. No process sees the GPUs with the indices HIDDEN. The driver is that of $kernel, if set.
machine() {
	local now=

	read -r now 2> /dev/null < /run/machine || true
	[ "$now" = "$1" ] || load_machine "$1"
	knob kernel "${kernel:-default}"
	knob hidden "${2-}"
}

load_machine() { # NAME
	local name=${1%+other-major} parameters

	parameters=("machine=$name")
	no_machine
	case $name in
	/*)
		sh /opt/vm/machines/caches.sh "$name"
		sh /opt/vm/machines/mkbundle.sh "$name" > "$work/bundle"
		parameters=("machine_file=$work/bundle")
		;;
	esac
	[ "$name" = "$1" ] || parameters+=(other_kfd_major=1)
	[ -z "${kernel:-}" ] || parameters+=("kernel=$kernel")
	insmod /opt/vm/module/amdgpu_sim.ko "${parameters[@]}" || fail "no machine $1: $(dmesg | tail -n 1)"
	echo "$1" > /run/machine
}

# Removes all GPU drivers.
no_machine() {
	local module

	for module in amdgpu_sim amdgpu; do
		# The guard of a dump may live a moment longer than the job.
		[ ! -d "/sys/module/$module" ] || until_true rmmod "$module" || fail "cannot unload $module"
	done
	rm -f /run/machine
}

has_device() { [ -d "$sim" ]; }

# fault CALL N ERRNO: the N-th call from now on fails.
fault() { echo "$1 $2 -$3" > "$sim/faults"; }
knob() { echo "$2" > "$sim/$1"; }
# with_kernel KERNEL PATTERN: the next machine has the driver of this kernel. The true driver has that of its own kernel,
# and does what is meant for kernels like PATTERN.
with_kernel() { kernel=$1; }
needs_dma_bufs() { :; }
needs_svm() { :; }
loses_waves() { false; }

# sim_process PID FIELD: sets $value to the device's count for a process. Fails if the device does not
# know the process.
sim_process() {
	local line -

	set +x
	while read -r line; do
		case $line in
		"pid=$1 "*)
			value=${line##* "$2"=}
			value=${value%% *}
			return 0
			;;
		esac
	done < "$sim/processes"
	return 1
}

# Sets $processes: the processes of the session that the device knows.
gpu_processes() { # SESSION
	local line

	processes=()
	while read -r line; do
		line=${line#pid=}
		! in_session "$1" "${line%% *}" || processes+=("${line%% *}")
	done < "$sim/processes"
}

# The queues of the process run: no pause is left, and the engine completes packets. A process that has ended has none.
process_runs() { # PID
	local value packets

	sim_process "$1" packets || return 0
	packets=$value
	queues_run "$1" || fail "queues of $1 are stopped"
	sim_process "$1" blocked && [ "$value" = 0 ] || fail "process $1 was not resumed"
	until_true more_packets "$1" "$packets" || fail "queues of $1 do nothing"
}
more_packets() {
	no_failed_client
	sim_process "$1" packets && [ "$value" -gt "$2" ]
}

queues_run() { sim_process "$1" evicted && [ "$value" = 0 ] && sim_process "$1" paused && [ "$value" = 0 ]; }
queues_stopped() { sim_process "$1" evicted && [ "$value" != 0 ] && sim_process "$1" paused && [ "$value" = 1 ]; }
no_process_paused() { ! grep -q 'paused=1' "$sim/processes"; }

complaints() { dmesg | grep -E 'WARNING:|BUG:|Oops|refcount_t' || true; }

no_violation() {
	local count

	read -r count < "$sim/violations"
	[ "$count" = 0 ] || fail "device: $(tr '\n' ';' < "$sim/violations")"
}

sees_gpus() { # COUNT: that many are there for the client
	sim_process "$pid" gpus && [ "$value" = "$1" ] || fail "process $pid sees ${value-no} GPUs, not $1"
}

# object NAME: prints the number of such objects in the device.
object() { sed -n "s/^$1 //p" "$sim/objects"; }

holds_nothing() {
	local line

	while read -r line; do
		[[ $line == *' 0' ]] || return 1
	done < "$sim/objects"
}
held() { sed '/ 0$/d' "$sim/objects" | tr '\n' ' '; }

device_state() { tail -n +1 "$sim"/{processes,objects,stats,violations}; }
