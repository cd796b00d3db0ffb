# SPDX-License-Identifier: GPL-2.0-only
#
# Restores that cannot succeed: they say why, CRIU's exit status tells, and nothing of the process
# stays behind, neither as a process nor in the device.

# restore_fails PATTERN [COUNT]: from img, with that many error lines that hold PATTERN.
restore_fails() {
	restore_stops
	plugin_error img/restore.log "$@"
}

restore_stops() {
	rm -f img/restore.log
	! try_restore img || fail "this restore cannot have succeeded"
	gone "$pid" # CRIU kills it, but does not wait for its end
	nothing_left
	no_violation
}

dumped_client() {
	start_client "$@"
	dump img "$pid"
	gone "$pid"
	nothing_left
}

# Each image is missing, or too short, or too long, or says a wrong length, or is another thing.
scenario_damaged_images() {
	local file name

	machine one
	dumped_client
	for file in img/amdgpu-kfd-*.img img/amdgpu-pages-*.img img/amdgpu-renderD-*.img; do
		name=${file##*/}
		cp "$file" good
		rm "$file"
		# A file without an image might be another plugin's: no error of ours, but a line.
		restore_stops
		has_line img/restore.log "amdgpu_plugin: .*$name"
		for size in 0 5 8 $(($(stat -c %s good) / 2)) $(($(stat -c %s good) - 1)); do
			[ "$size" -lt "$(stat -c %s good)" ] || continue
			head -c "$size" good > "$file"
			restore_fails "$name"
		done
		(cat good; echo more) > "$file"
		restore_fails "$name"
		(printf '\377\377\377\377\377\377\377\177'; tail -c +9 good) > "$file"
		restore_fails "$name"
		(head -c 8 good; tail -c +9 good | tr '\000-\377' '\377') > "$file"
		case $name in
		amdgpu-pages-*) ;; # any bytes may be the contents of a buffer
		*) restore_fails "$name" ;;
		esac
		cp good "$file"
	done
	restore img
	runs
	verify
	finish
}

scenario_restore_call_fails() {
	local fault

	machine one
	dumped_client
	while read -r fault; do
		echo "$fault" > "$sim/faults"
		restore_fails ""
		[ -z "$(cat "$sim/faults")" ] || fail "nobody called: $fault"
	done <<-EOF
		kfd:OPEN 1 -24
		kfd:CRIU_RESTORE 1 -5
		kfd:CRIU_RESTORE 1 -22
		drm:OPEN 1 -24
		drm:CS 1 -12
		drm:GEM_USERPTR 1 -12
		drm:PRIME_IMPORT 5 -12
		engine:IB 1 -125
		engine:IB 2 -125
		kfd:CRIU_RESUME 1 -12
	EOF
	restore img
	runs
	verify
	finish
}

scenario_resume_fails() {
	local failures

	machine eight
	dumped_client --tree 2 --gpus 4,5
	knob resume_fail 12
	# Both processes fail; a CRIU that heeds the first failure does not come to the second.
	[ "$criu_version" = 4.3 ] && failures=1 || failures=2
	restore_fails "cannot resume" "$failures"
	knob resume_fail 0
	restore img
	runs
	verify
	finish
}

scenario_restore_copy_hangs() {
	local begin

	machine one
	dumped_client
	knob fence_hang 1
	begin=$SECONDS
	KFD_COPY_TIMEOUT=3 restore_fails "not finish"
	[ $((SECONDS - begin)) -ge 2 ] || fail "gave up before its time"
	knob fence_hang 0
	restore img
	runs
	verify
	finish
}

# CRIU gives the task the clock of the time when it was dumped; the kernel's deadlines are by its own.
# A copy may take as long after a year as after a second.
scenario_restore_later() {
	export KFD_COPY_TIMEOUT=2

	machine one
	dumped_client
	sleep 3
	knob engine_latency_us 100000
	restore img
	knob engine_latency_us 100
	runs
	verify
	finish
}

# A process of eight GPUs has nowhere to go on a machine with one.
scenario_too_few_gpus() {
	machine eight
	dumped_client
	machine one
	restore_fails ""
	no_machine
	! try_restore img || fail "restored without any GPU"
	plugin_error img/restore.log ""
	gone "$pid" # CRIU kills it, but does not wait for its end
	machine eight
	restore img
	runs
	verify
	finish
}
