# SPDX-License-Identifier: GPL-2.0-only
#
# criu-amdgpu selftest: on each machine, with plugins that are wrong on purpose, and killed at any moment. test/tool has
# its mistakes of use.

# selftest STATUS [ARG...]: its lines are in selftest.txt and report.txt. Nothing may stay behind.
selftest() {
	local status=$1 code=0

	mkdir -p dir
	criu-amdgpu selftest -D dir --limit "$limit" --report report.txt "${@:2}" > selftest.txt 2>&1 || code=$?
	[ $code = "$status" ] || fail "status $code, not $status: $(grep -h -A 6 -E 'FAILED|^criu-amdgpu' selftest.txt | head -n 9)"
	selftest_leaves_nothing
}

selftest_runs() { pgrep -f 'selftest-job|criu-amdgpu selftest' > /dev/null; }
selftest_ended() { ! selftest_runs; }
selftest_leaves_nothing() {
	until_true selftest_ended || fail "processes are left: $(pgrep -a -f 'selftest')"
	criu_ends
	[ -n "${client-}" ] || nothing_left
	[ -z "$(ls -A dir)" ] || fail "files are left: $(find dir)"
	! grep -q criu-amdgpu-selftest /proc/mounts || fail "mounts are left"
}

# What the report must say of this machine, whatever the result.
selftest_names_machine() {
	has_line report.txt "^kernel: Linux $(uname -r)\$"
	has_line report.txt "^CRIU: ${criu_version%%-*}"
	has_line report.txt "^GPU 0x[0-9a-f]*: gfx90a, "
	has_line report.txt "^GPU 0x[0-9a-f]*: engine alone: [1-9][0-9]* MiB/s from VRAM, [1-9][0-9]* MiB/s to it"
	has_line report.txt "^storage alone: one thread writes [1-9]"
	! grep -q "$(hostname)" report.txt || fail "the report has the host's name"
}

# What this machine, kernel or CRIU cannot restore is listed, and nothing else is.
selftest_lists_the_rest() { # GPUS MORE: so many lines for the whole machine
	local expected=$2

	[ "$1" != 1 ] || {
		expected=$((expected + 1))
		has_line report.txt "^not tried  GPU 0x.*: a restore on another GPU, because this machine has one GPU"
	}

	! loses_waves || expected=$((expected + $1))
	[[ $criu_version != 3.* ]] || expected=$((expected + $1))
	with_kernel '6.1.*' && expected=$((expected + ($1 > 1 ? 2 : 1))) || true
	[ "$(grep -c '^not tried' report.txt)" = "$expected" ] || fail "not tried: $(grep '^not tried' report.txt | head -n 4)"
	! loses_waves || has_line report.txt "^not tried  GPU 0x.*: a running kernel, because this driver does not restore waves"
	[[ $criu_version != 3.* ]] || has_line report.txt "^not tried  GPU 0x.*: user memory of memfds .* needs CRIU 4.0"
	! with_kernel '6.1.*' || has_line report.txt "^not tried  GPU 0x.*: two processes that share buffers, because this driver shares no memory of KFD by dma-bufs"
}

# A cgroup in which a program can hide GPUs, which is not possible in the root.
leave_root_cgroup() {
	gpu_group=/sys/fs/cgroup/shown-$$-$RANDOM
	mkdir "$gpu_group"
	echo $$ > "$gpu_group/cgroup.procs"
}

# shares LABEL TRIPS: two processes share buffers, if the kernel has dma-bufs of KFD.
shares() {
	with_kernel '6.1.*' || [ "$(grep -c "^ok  $1: two processes that share buffers, trip .*; compared 131072 bytes in 2 buffers" report.txt)" = "$2" ] ||
		fail "not $2 trips of shared buffers of $1"
}

scenario_selftest_quick() {
	machine one
	selftest 0 --quick
	has_line report.txt "^All that was tried is right.\$"
	# The engine may have done all packets at the moment of the comparison.
	has_line report.txt "^ok  GPU 0x[0-9a-f]*: job, trip 1: .*compared [0-9]* bytes in 4[0-9] buffers, [1-9][0-9]* packets, 32 events; [0-9]* bytes of packets were in flight\$"
	shares "GPU 0x[0-9a-f]*" 1
	has_line report.txt "^not tried  dumps that leave the job running, .*, because of --quick"
	selftest_names_machine
	selftest_lists_the_rest 1 1
}

# A criu-image-streamer for PATH: tools/streamer.c with a folder below the images, of which tar makes one stream.
install_streamer() {
	mkdir bin
	cat > bin/criu-image-streamer <<-'END'
		#!/bin/bash
		set -eu
		# -D DIR capture|serve
		store=$2/store-$3
		mkdir "$store"
		[ "$3" != serve ] || tar -x -C "$store"
		: > "$store.log"
		/opt/vm/bin/streamer "$3" "$2" "$store" "$store.log" &
		tail -n +1 -f --pid=$! -s 0.1 "$store.log" | grep -m 1 -q ready
		echo socket-init >&2
		wait $!
		[ "$3" != capture ] || tar -c -C "$store" .
	END
	chmod +x bin/criu-image-streamer
}

scenario_selftest() { # long
	machine one
	install_streamer
	PATH=$work/bin:$PATH selftest 0 --size 64M
	[ "$(grep -c '^ok  GPU 0x.*: job, trip' report.txt)" = 2 ] || fail "not two trips"
	[ "$(grep -c '^ok  GPU 0x.*: job left running, trip [1-3]: .*, left running; compared' report.txt)" = 3 ] || fail "not three dumps of a job that runs on"
	has_line report.txt "^ok  GPU 0x.*: job left running, trip 3: .*, restored in .*; compared"
	has_line report.txt "^ok  GPU 0x.*: job left running with dump-memory, trip 1: .*, restored in .*; compared"
	has_line report.txt "^    dump: 1 processes on 1 GPUs, .* MiB/s, limited by"
	has_line report.txt "^ok  GPU 0x.*: job streamed, trip 1: .*, restored in .*; compared"
	shares "GPU 0x[0-9a-f]*" 2
	selftest_names_machine
	selftest_lists_the_rest 1 0
}

scenario_selftest_eight() { # long
	another_gpu=1
	machine eight
	leave_root_cgroup
	selftest 0 --quick
	[ "$(grep -c '^ok  GPU 0x[0-9a-f]*: job, ' report.txt)" = 8 ] || fail "not eight GPUs"
	has_line report.txt "^ok  all GPUs: job, trip 1: "
	shares "GPU 0x[0-9a-f]*" 1
	shares "two GPUs" 1
	has_line report.txt "^ok  GPU 0x[0-9a-f]*: job restored on GPU 0x[0-9a-f]*, trip 1: .*restored in .*; compared"
	selftest_names_machine
	selftest_lists_the_rest 8 1
}

# A job of others is not touched.
scenario_selftest_beside() { # long
	machine two
	start_client --gpus 0
	selftest 2 --quick
	has_line selftest.txt "another process uses GPU of this machine"
	selftest 0 --quick --gpu 1
	selftest 0 --quick --force --gpu 0
	verify
	finish
}

# Two GPUs: a job moves to the other one, unless it is in the root cgroup, or a plugin leaves it where it was.
scenario_selftest_two() { # long
	another_gpu=1
	machine two
	selftest 0 --quick
	has_line report.txt "^not tried  GPU 0x[0-9a-f]*: a restore on another GPU, because GPUs cannot be hidden from a job: .*root cgroup"
	leave_root_cgroup
	selftest 0 --quick
	has_line report.txt "^ok  GPU 0x[0-9a-f]*: job restored on GPU 0x[0-9a-f]*, trip 1: .*restored in .*; compared"
	shares "two GPUs" 1
	broken place "$limit" "lost: descriptor [0-9]*: /dev/dri/renderD" "job restored on GPU 0x[0-9a-f]*"
}

# broken NAME SECONDS WORDS [PART]: the selftest with this plugin fails at this part ("job"), and says why. A step may take so
# long. What the emulated GPU and the kernel have seen of it is forgotten.
broken() {
	selftest 1 --quick --limit "$2" -L "/opt/vm/lib/broken/$1"
	has_line report.txt "^FAILED  GPU 0x[0-9a-f]*: ${4-job}, trip [01]: $3"
	has_line report.txt "^The selftest has FAILED.\$"
	forget_violations
	forget_complaints "$page_faults"
}

# Two GPUs that do not reach each other's VRAM, as most do: each has all of its memory, and the job on both restores.
scenario_selftest_apart() { # long
	another_gpu=1
	machine two-apart
	selftest 0 --quick
	has_line report.txt "^ok  all GPUs: job, trip 1: .*restored in .*; compared"
	shares "GPU 0x[0-9a-f]*" 1
	with_kernel '6.1.*' ||
		has_line report.txt "^not tried  two GPUs: two processes that share buffers, because GPU [01] does not reach the memory of GPU [01]"
}

# Each plugin breaks one promise of a restore.
scenario_selftest_broken() { # long
	machine one
	broken contents "$limit" ".*differs"
	broken offset "$limit" ".*\(differs\|expected\|woke its waiter\)"
	broken event "$limit" "\(quiet\|held\|latched\) event"
	broken descriptor "$limit" "new: descriptor 400: /dev/kfd"
	with_kernel '6.1.*' || has_line report.txt "^FAILED  GPU 0x[0-9a-f]*: two processes .*, trip 1: new: process [0-9]*: descriptor 400: /dev/kfd"
	with_kernel '6.1.*' || broken shared "$limit" "rank [01]: the process that shares its buffer does not see what it writes" "two processes that share buffers"
	broken pause 120 ".*\(hangs\|stands still\|has not ended\|never\|is lost\|read pointer\)"
	! has_main_hook || broken queue "$limit" ".*\(chain broken\|expected\|differs\|hangs\|read pointer\|woke its waiter\)"
}

scenario_selftest_killed() { # long
	local kill victim moment

	machine one
	for kill in $(seq 20); do
		mkdir -p dir
		start selftest.txt criu-amdgpu selftest -D dir --limit "$limit" --quick
		victim=$pid
		# From the start of the job to the end of its comparison.
		moment=$((kill * 400 + RANDOM % 400))
		sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
		[ $((kill % 3)) != 0 ] || victim=$(pgrep -P "$pid") || victim=$pid
		kill -9 "$victim" 2> /dev/null || true
		gone "$pid"
		selftest_leaves_nothing
	done
	selftest 0 --quick
}
