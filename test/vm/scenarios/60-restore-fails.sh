# SPDX-License-Identifier: GPL-2.0-only
#
# Restores that cannot succeed. The log says why, CRIU's exit status is an error, and no task and no object of the
# device is left.

# restore_fails PATTERN [COUNT]: a restore from img fails with COUNT error lines that have PATTERN.
restore_fails() {
	restore_stops
	plugin_error img/restore.log "$@"
}

restore_stops() {
	local code=0 size

	rm -f img/restore.log
	size=$(stat -c %s client.log)
	try_restore img ${at_restore:-} || code=$?
	[ $code != 0 ] || fail "this restore cannot have succeeded"
	# Rarely, stock CRIU (3.17.1 and 4.2.1, so far) does not end after this message, and must be killed.
	[ $code != 137 ] || has_line img/restore.log 'Restoring FAILED'
	! grep "killed by signal [^9]" img/restore.log || fail "crashed: $(grep -m 1 "killed by signal [^9]" img/restore.log)"
	gone "$pid" # CRIU kills it, but does not wait for its end
	[ "$(stat -c %s client.log)" = "$size" ] || fail "a task of a failed restore ran: $(tail -n 1 client.log)"
	nothing_left
	no_violation
}

dumped_client() {
	start_client "$@"
	go_away img
}

# Each image is missing, too short, too long, has a wrong length field, or has other bytes.
scenario_damaged_images() { # long
	local file name

	machine one
	dumped_client
	for file in img/amdgpu-kfd-*.img img/amdgpu-pages-*.img img/amdgpu-renderD-*.img; do
		name=${file##*/}
		cp "$file" good
		rm "$file"
		# A file without an image may belong to another plugin, so the plugin logs no error.
		restore_stops
		has_line img/restore.log "(amdgpu_plugin): .*$name"
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
		amdgpu-pages-*) restore_fails "cannot load BO .*checksum mismatch" ;;
		*) restore_fails "$name" ;;
		esac
		cp good "$file"
	done
	restore img
	ends_well
}

# With lazy memory the queues would start before the memory is there, and the driver does not wait for it. The daemon
# stands still from before it sends memory by itself, so the memory is incomplete when the queues start.
scenario_lazy_restore() { # on each kernel
	local daemon code=0

	machine one
	dumped_client
	lazy_daemon
	try_restore img --lazy-pages --action-script "$PWD/stop-daemon" || code=$?
	[ $code != 0 ] || fail "this restore cannot have succeeded"
	plugin_error img/restore.log "memory that the GPU uses may be missing; restore without --lazy-pages"
	gone "$pid"
	nothing_left
	no_violation
	kill -CONT "$daemon"
	kill "$daemon" || true
	gone "$daemon"
	restore img
	ends_well
}

# Starts the daemon, sets $daemon, and returns when it listens. ./stop-daemon stops it when all tasks are restored.
lazy_daemon() {
	local pid

	start lazy.log criu lazy-pages -D img -o lazy.log -v4
	daemon=$pid
	until_true test -S img/lazy-pages.socket || fail "no process listens: $(tail -n 1 img/lazy.log)"
	printf '#!/bin/sh\n[ "$CRTOOLS_SCRIPT_ACTION" != post-restore ] || kill -STOP %d\n' "$daemon" > stop-daemon
	chmod +x stop-daemon
}

# All tasks are restored, and then CRIU has another file in the place of /dev/kfd. So RESUME, which starts the queues of a
# task, fails.
resume_fails() {
	printf '#!/bin/sh\n[ "$CRTOOLS_SCRIPT_ACTION" != post-restore ] || mount --bind /dev/null /dev/kfd\n' > replace-kfd
	chmod +x replace-kfd
	criu() { unshare --mount criu "$@" --action-script "$work/replace-kfd"; }
	restore_fails "not the device of the KFD driver"
	unset -f criu
}

# No queue starts after the first failure.
scenario_resume_fails() {
	machine eight
	dumped_client --tree 2 --gpus 4,5
	resume_fails
	restore img
	ends_well
}

# The root of the tree has no GPU, and writes to a file all the time. CRIU before 4.3 lets the tasks go one after the other
# until it comes to a dead one, beginning with the root.
scenario_root_does_not_run() {
	local image size

	machine one
	rocm_before
	start client.log bash -c '/opt/vm/bin/gpu_client --log "$0/client.log" &
		while :; do echo >> "$0/count"; read -r -t 0.05 <> /run/never; done' "$work"
	client='client '
	wait_line client.log ready
	dump img "$pid"
	gone "$pid"
	size=$(stat -c %s count)
	resume_fails
	damage img
	restore_fails "cannot load BO .*checksum mismatch"
	[ "$(stat -c %s count)" = "$size" ] || fail "the root of a failed restore ran"
	cp good "$image"
	restore img
	counts_on() { [ "$(stat -c %s count)" -gt "$size" ]; }
	until_true counts_on || fail "the root does not run"
	runs
}

# The first process of a pid namespace is a shell, and its child fails. CRIU kills the shell and waits for its end, which
# comes after the end of all others in the namespace.
scenario_child_of_init_fails() {
	local image outer

	machine one
	rocm_before
	start client.log unshare --pid --fork --ipc --uts setsid bash -c \
		'/opt/vm/bin/gpu_client --log "$0/client.log" & wait' "$work"
	outer=$pid
	wait_line client.log 'client 2: ready'
	pid=$(pgrep -P "$outer")
	started+=("$pid")
	dump img "$pid"
	gone "$pid"
	gone "$outer"
	limit=100 resume_fails
	damage img
	limit=100 restore_fails "cannot load BO .*checksum mismatch"
	criu_ends
	! pgrep -a gpu_client || fail "a task of a failed restore is left"
	cp good "$image"
	restore img --pidfile "$work/restored"
	pid=$(cat restored)
	started+=("$pid")
	runs
}

# The GPU takes five seconds for a copy.
scenario_restore_copy_hangs() { # long
	local begin

	machine one
	dumped_client
	ask_gpu "speed 200000"
	criu() {
		local code=0

		command criu "$@" || code=$?
		ask_gpu "speed 0"
		return "$code"
	}
	begin=$SECONDS
	KFD_COPY_TIMEOUT=3 restore_fails "not finish"
	[ $((SECONDS - begin)) -ge 2 ] || fail "gave up before its time"
	unset -f criu
	restore img
	ends_well
}

# CRIU gives the task the clock of the dump. The kernel measures deadlines by its own clock. The time limit of a
# copy must be the same after a year.
scenario_restore_later() {
	export KFD_COPY_TIMEOUT=2

	machine one
	dumped_client
	sleep 3
	ask_gpu "speed 4000000"
	restore img
	ask_gpu "speed 0"
	ends_well
}

# refused_map NEEDED ROW...: no mapping exists and the plugin changes nothing. The log has a table of exactly these
# rows, and one error line with NEEDED.
refused_map() {
	local needed=$1 row

	shift
	restore_fails "map: .*$needed"
	has_line img/restore.log \
		"Warn  (amdgpu_plugin): map: | saved GPU | present GPU | mismatch | relaxed by |$"
	for row in "$@"; do
		has_line img/restore.log "Warn  (amdgpu_plugin): map: $row$"
	done
	[ "$(grep -c 'Warn  (amdgpu_plugin): map: |' img/restore.log)" = $(($# + 1)) ] || fail "rows: $(grep 'Warn  (amdgpu_plugin): map: |' img/restore.log)"
	! grep 'map: saved GPU 0x' img/restore.log || fail "mapped and refused"
}

# The process has eight GPUs, and the other machine shows seven. Each fits, but one is missing.
scenario_gpu_hidden() { # long
	local saved all shown hidden

	machine eight
	saved=$(gpu_ids)
	dumped_client --gpus 0,5
	machine eight-other
	all=$(gpu_ids)
	machine eight-other 5
	shown=$(gpu_ids)
	hidden=$(diff <(echo "$all") <(echo "$shown") | sed -n 's/^< //p') || true
	refused_map "the image has 8 GPUs, but the task can use 7; needed: 1 more, in this machine, in the device cgroup" \
		"| ${saved//$'\n'/ } | ${shown//$'\n'/ } | fits | |"
	! grep -F "$hidden" img/restore.log || fail "names the hidden GPU"
	machine eight-other
	restore img
	ends_well
}

# KFD wants attributes of SVM ranges for each GPU that the task sees, and the image has one GPU. So the others must be
# hidden. In the root cgroup the task cannot hide them itself.
scenario_svm_beside_another() {
	needs_svm
	[ "$criu_version" != 3.17.1 ] || skip "its libhsakmt has no SVM ranges"
	machine eight 1,2,3,4,5,6,7
	dumped_client
	machine eight
	restore_fails "the task also sees 0x.* (renderD135); .* SVM ranges .* the task is in the root cgroup; .* (podman: --runtime runc)"
	machine eight 1,2,3,4,5,6,7
	restore img
	ends_well
}

# In a cgroup of its own the task hides the second GPU while it opens /dev/kfd. Afterwards the cgroup is as before.
scenario_svm_hides_another() {
	needs_svm
	[ "$criu_version" != 3.17.1 ] || skip "its libhsakmt has no SVM ranges"
	machine eight 1,2,3,4,5,6,7
	dumped_client
	machine eight 2,3,4,5,6,7
	restore img
	has_line img/restore.log "a program in the task's cgroup hides 0x.* (renderD129) "
	! grep -l link_type /proc/[0-9]*/fdinfo/* || fail "the program is still attached"
	sees_gpus 1
	runs
	verify
	come_back
	sees_gpus 1
	finish
}

# A process with eight GPUs does not fit on a machine with one.
scenario_too_few_gpus() { # long
	machine eight
	dumped_client
	machine one
	restore_fails "the image has 8 GPUs, but the task can use 1;"
	no_machine
	! try_restore img || fail "restored without any GPU"
	plugin_error img/restore.log "this machine has no KFD driver"
	gone "$pid" # CRIU kills it, but does not wait for its end
	machine eight
	restore img
	ends_well
}
