# SPDX-License-Identifier: GPL-2.0-only
#
# make check-hardware, for which the emulated GPU is a real one: it has no commands for it, and does not load its driver anew.
# The guest has no compiler, so the parts come from the host.

# hardware STATUS [ARG...]: its lines are in hardware.txt. Nothing may stay behind.
hardware() {
	local status=$1 code=0

	mkdir -p dir
	HARDWARE_MIB=8 HARDWARE_ROUNDS=1 /opt/vm/hardware/run -p /opt/vm -D dir -o out "${@:2}" > hardware.txt 2>&1 || code=$?
	[ $code = "$status" ] || fail "status $code, not $status: $(grep -h '^FAILED\|^check-hardware' hardware.txt | head -n 5)"
	hardware_leaves_nothing
}

hardware_leaves_nothing() {
	criu_ends
	nothing_left
	! pgrep -a 'contract|world|unshare|selftest-job|gpu_' > processes.txt || fail "processes are left: $(< processes.txt)"
	[ -z "$(ls -A dir)" ] || fail "files are left: $(find dir)"
	! grep criu-amdgpu-hardware /proc/mounts || fail "mounts are left"
	! compgen -G '/sys/fs/cgroup/criu-amdgpu-hardware-*' || fail "a cgroup is left"
}

scenario_hardware() { # long
	machine one
	hardware 0 contract one-gpu benchmark
	cp out/report.txt .
	has_line report.txt "^kernel: Linux $(uname -r)\$"
	has_line report.txt '^contract: [1-9][0-9]* rules hold$'
	has_line report.txt '^ok  one-gpu '
	has_line report.txt '^ok  benchmark big, restore, disk: '
	has_line report.txt '^not asked  '
	has_line report.txt '^[1-9][0-9]* passed, 0 failed'
	! grep "$(hostname)" report.txt || fail "the report has the host's name"
	forget_contract
}

# With several GPUs a scenario for one has the others hidden.
scenario_hardware_eight() { # long
	another_gpu=1
	machine eight
	hardware 0 one-gpu process-tree move-within ranks
	has_line hardware.txt '^ok  one-gpu '
	has_line hardware.txt '^ok  move-within '
}

# Another plugin, which leaves out contents, fails. A kernel without a row in the table of kernels is compared with the row of another
# one, and what differs is printed.
scenario_hardware_broken() { # long
	machine one
	# Linux 6.1 oopses at a rule of that row.
	with_kernel '6.1.*' || export HARDWARE_ROW=6.18
	hardware 1 -L /opt/vm/lib/broken/contents contract one-gpu
	has_line hardware.txt '^FAILED  GPU 0x'
	has_line hardware.txt '^FAILED  one-gpu .*differs'
	if [ -n "${HARDWARE_ROW-}" ]; then
		has_line hardware.txt '^differs  contract: restore_refuses_an_event_of_an_unknown_type_or_leaves_it_out: holds with event_types=1 '
		has_line hardware.txt '^column of Linux .*: as 6.18 .*event_types=1'
	fi
	has_line hardware.txt '^[1-9][0-9]* passed, 2 failed'
	[ -s out/logs/one-gpu/client.log ] || fail "no log is kept"
	forget_violations
	forget_contract
}

# ended_at SIGNAL COMMAND...: the command ends by this signal to the whole group, as by ^C, when COMMAND succeeds. Nothing may stay behind.
ended_at() {
	local run

	mkdir -p dir
	rm -rf out
	start hardware.txt env --default-signal=INT HARDWARE_MIB=8 /opt/vm/hardware/run -p /opt/vm -D dir -o out contract one-gpu benchmark
	run=$pid
	until_true "${@:2}" || fail "it did not come to: ${*:2}"
	kill "-$1" -- "-$run"
	gone "$run"
	hardware_leaves_nothing
}
says() { grep -qs "$1" out/report.txt; }
runs_program() { pgrep -x "$1" > /dev/null; }

scenario_hardware_ended() { # long
	machine one
	ended_at INT says '^kernel'
	ended_at TERM runs_program selftest-job
	ended_at INT runs_program contract
	ended_at HUP runs_program gpu_client
	ended_at INT runs_program criu
	ended_at TERM runs_program bench
	hardware 0 one-gpu
	forget_violations
	forget_contract
}

# It is refused beside a job of others, and where there is no GPU.
scenario_hardware_refused() {
	machine one
	start_client
	hardware_refuses 2 "another process uses the GPU: $pid (gpu_client); wait for its end"
	verify
	finish
	no_machine
	hardware_refuses 3 "this machine has no AMD GPU"
}

hardware_refuses() { # STATUS WORDS
	local code=0

	/opt/vm/hardware/run -p /opt/vm > refused.txt 2>&1 || code=$?
	[ $code = "$1" ] && [ "$(cat refused.txt)" = "check-hardware: $2" ] || fail "status $code: $(tail -n 2 refused.txt)"
}
