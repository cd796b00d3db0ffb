# SPDX-License-Identifier: GPL-2.0-only
#
# What criu-amdgpu selftest says and leaves behind, with stand_in.c for CRIU and for the job: the machine is simulated, so
# nothing here uses a GPU. Scenarios of test/vm have the true CRIU and drivers. Read by run.

# try NAME STATUS WORDS ARGUMENTS...: like expect, with the stand-ins. $mistake is what they do wrong. Nothing may stay behind.
try() {
	rm -rf "$work/images-dir" "$work/reached"
	mkdir -p "$work/images-dir"
	MISTAKE=${mistake-} REACHED=$work/reached LD_PRELOAD=$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=${machine-one} \
		AMDGPU_SIM_KNOBS="kernel=${kernel-6.18}" PATH=$work/stand-in:$PATH tool=$work/stand-in/criu-amdgpu \
		expect "selftest, $1" "$2" "$3" selftest -L build -D "$work/images-dir" "${@:4}"
	leaves_nothing "$1"
}

count() { # NAME TRUTH...: one more test
	if "${@:2}"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "tool: selftest, $1 failed: $(ls -A "$work/images-dir") $(pgrep -a -f "$work/stand-in"); the output:"
	sed 's/^/    /' "$work/output"
}

is_empty() { [ -z "$(ls -A "$work/images-dir")" ]; }
has_no_process() { ! pgrep -f "$work/stand-in/" > /dev/null; }
# Processes that were killed end soon.
until_so() {
	local end=$((SECONDS + 60))

	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}
leaves_nothing() {
	count "$1, no file" is_empty
	count "$1, no process" has_no_process
}

stand_ins() {
	mkdir -p "$work/stand-in"
	cc -O1 -Wall -Wextra -Werror -rdynamic -o "$work/stand-in/criu" test/tool/stand_in.c || exit 1
	cp "$work/stand-in/criu" "$work/stand-in/selftest-job"
	cp build/criu-amdgpu "$work/stand-in/"
}

# streamer MISTAKE: a stand-in for criu-image-streamer, which keeps words for the stream.
streamer() {
	cat > "$work/stand-in/criu-image-streamer" <<-END
		#!/bin/sh
		[ "$1" != silent ] || exec sleep 60
		[ "$1" != dies ] || exit 1
		[ "\$1" = -D ] && [ -d "\$2" ] || exit 1
		echo "socket-init" >&2
		[ "\$3" != capture ] || exec echo words
		[ "\$(cat)" = words ] || exec sleep 60
	END
	chmod +x "$work/stand-in/criu-image-streamer"
}

# With the program of that name, without it, and with one that fails.
selftest_streams() {
	try "no streamer" 0 "^not tried  --stream, because criu-image-streamer is not in PATH$"
	streamer right
	try "a streamed dump" 0 "^    dump: .*, streamed$"
	try "a streamed restore" 0 "^    restore: .*, streamed$"
	count "a streamed trip" grep -q "^ok  GPU 0x07cd: job streamed, trip 1: dumped .*, restored in .*; compared 7 bytes$" "$work/output"
	count "nothing but a streamer" [ "$(grep '^not tried' "$work/output")" = "not tried  GPU 0x07cd: a restore on another GPU, because this machine has one GPU" ]
	streamer silent
	try "a streamer that hangs" 1 "^FAILED  GPU 0x07cd: job streamed, trip 1: the start of criu-image-streamer has not ended in 1 s$" --limit 1
	streamer dies
	try "a streamer that dies" 1 "^FAILED  GPU 0x07cd: job streamed, trip 1: criu-image-streamer has ended before it was ready$"
	rm "$work/stand-in/criu-image-streamer"
}

# Each kind of machine, each result, and each mistake of a step.
selftest_results() {
	expect "selftest, no GPU" 3 "^criu-amdgpu: selftest: this machine has no AMD GPU$" selftest
	try "one GPU" 0 "^All that was tried is right.$"
	try "two trips" 0 "^ok  GPU 0x07cd: job, trip 2: dumped .* restored in .*; compared 7 bytes$"
	try "the copy engine alone" 0 "^GPU 0x07cd: engine alone: 7 MiB/s$"
	try "storage alone" 0 "^storage alone: one thread writes [1-9][0-9]* MiB/s to the page cache and [1-9]"
	try "a running kernel" 0 "^GPU 0x07cd: gfx90a, 64.0 GiB, firmware"
	try "a job that runs on" 0 "^ok  GPU 0x07cd: job left running, trip 1: dumped .*, left running; compared 7 bytes$"
	try "the last images of a job that ran on" 0 "^ok  GPU 0x07cd: job left running, trip 3: dumped .*, restored in .*; compared 7 bytes$"
	try "shared buffers" 0 "^ok  GPU 0x07cd: two processes that share buffers, trip 2: dumped .* restored in .*; compared 7 bytes$"
	mistake=start-unable try "no shared buffers" 0 "^not tried  GPU 0x07cd: two processes that share buffers, because this driver shares no memory$" -Q
	try "what the plugin says of a dump" 0 "^    dump: 1 processes, 6.0 MiB of contents in 1 s$"
	try "what the plugin says of a restore" 0 "^    restore: 1 processes, 6.0 MiB of contents in 1 s$"
	try "contents that are written later" 0 "^    dump: 1 processes, 6.0 MiB of contents in 1 s, dump-memory [1-9][0-9]*$"
	machine=eight try "eight GPUs" 0 "^ok  GPU 0x579d: job, trip 1" -Q
	machine=eight try "a process on eight GPUs" 0 "^ok  all GPUs: job, trip 1: dumped" -Q
	machine=eight try "buffers that two GPUs share" 0 "^ok  two GPUs: two processes that share buffers, trip 1: dumped" -Q
	# Whether GPUs can be hidden depends on the machine.
	machine=eight try "a move" 0 "^\(ok  GPU 0x07cd: job restored on GPU 0x.*restored in\|not tried  GPU 0x07cd: a restore on another GPU, because GPUs cannot be hidden from a job: \)" -Q
	try "no move on a machine with one GPU" 0 "^not tried  GPU 0x07cd: a restore on another GPU, because this machine has one GPU$" -Q
	machine=eight try "no move from the only GPU that is asked for" 0 "^not tried  GPU 0x07cd: a restore on another GPU, because --gpu asks for this one only$" -Q -g 0
	machine=eight try "no job on all GPUs if one is asked for" 0 "^not tried  all GPUs: a job on all of them, .*, because --gpu asks for one only$" -Q -g 0
	machine=eight try "a GPU by its number" 0 "^ok  GPU 0x07cd" -Q -g 0
	! grep '^ok' "$work/output" | grep -v "GPU 0x07cd: "
	count "one GPU of eight" [ $? = 0 ]
	machine=eight try "a GPU by its id" 0 "^ok  GPU 0x579d" -Q --gpu 0x579d
	try "no such GPU" 2 "selftest: there is no GPU 9$" --gpu 9
	mistake=start-fails try "a job that does not start" 1 "^FAILED  GPU 0x07cd: job, trip 0: cannot open the GPUs$"
	mistake=dump-fails try "a dump that fails" 1 "^    (00.1) Error (amdgpu_plugin): kfd 7: cannot save BO 12$"
	mistake=dump-leaves try "a dump that does not end the job" 1 "trip 1: the job has not ended in 1 s$" --limit 1
	mistake=restore-fails try "a restore that fails" 1 "trip 1: criu restore has failed$"
	mistake=restore-leaks try "a descriptor too many" 1 "trip 1: new: descriptor [0-9]*: /dev/null$"
	mistake=restore-lies try "a restore of nothing" 1 "trip 1: the state of the job: No such "
	mistake=verify-fails try "wrong contents" 1 "trip 1: buffer 3 differs at 0x10$"
	mistake=verify-dies try "a job that dies" 1 "trip 1: the job has died$"
}

selftest_limits() {
	local step words

	while read -r step words; do
		mistake=$step-hangs try "a step that hangs, $step" 1 "^FAILED .*$words has not ended in 1 s\$" --limit 1
	done <<-END
		start the start of the job
		dump dump
		restore restore
		verify the comparison in the job
	END
	try "a limit of no time" 2 "selftest: --limit 0 is no number" --limit 0
	try "a word instead of a size" 2 "selftest: --size big is no size" --size big
	try "no room" 2 "images: $work/images-dir has room for .*, and the contents need about" --size 1000000G
	expect "selftest, another argument" 2 "selftest takes no argument" selftest 1
}

selftest_reports() {
	try "JSON" 0 '"right":true' --json
	json "of the selftest" '.results | length == 10 and all(.[]; .gpus == "GPU 0x07cd" and .compared == "compared 7 bytes")'
	json "of the selftest, the machine" '.CRIU == "4.3" and .plugin != "" and .failures == []'
	mistake=verify-fails try "JSON of a failure" 1 '"right":false' --json
	json "of the selftest, a failure" '.failures[0].failure == "buffer 3 differs at 0x10"'
	try "a report" 0 "right" --report "$work/report"
	count "the report has the lines" cmp -s "$work/report" "$work/output"
	! grep -q "$(hostname)" "$work/report"
	count "the report has no host name" [ $? = 0 ]
	try "a report that cannot be written" 2 "cannot write the report /nowhere/report: No such file" --report /nowhere/report
	rm -rf "$work/images-dir" && mkdir "$work/images-dir"
	MISTAKE='' LD_PRELOAD=$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=one AMDGPU_SIM_KNOBS=kernel=6.18 PATH=$work/stand-in:$PATH \
		tool=$work/stand-in/criu-amdgpu expect "selftest, images that stay" 0 "images and logs are in $work/images-dir/criu-amdgpu-selftest-" \
		selftest -L build -D "$work/images-dir" --keep
	count "images that stay" test -f "$work"/images-dir/*/gpu-0-job-1/task.img
}

# interrupted STEP HOW: the selftest is at this step when a signal, or the death of one of its two processes, ends it.
interrupted() {
	local how=$2 pid worker status

	rm -rf "$work/images-dir" "$work/reached"
	mkdir -p "$work/images-dir"
	MISTAKE=$1-hangs REACHED=$work/reached LD_PRELOAD=$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=one AMDGPU_SIM_KNOBS=kernel=6.18 \
		PATH=$work/stand-in:$PATH "$work/stand-in/criu-amdgpu" selftest -L build -D "$work/images-dir" > "$work/output" 2>&1 < /dev/null &
	pid=$!
	until_so test -e "$work/reached"
	worker=$(pgrep -P "$pid")
	[ "$1-$how" != start-INT ] || another
	case $how in
	worker) kill -9 "$worker" ;;
	*) kill -"$how" "$pid" ;;
	esac
	wait "$pid" 2> /dev/null
	status=$?
	case $how in
	INT | TERM) count "$how at $1" [ $status = 2 ] && count "$how at $1, a line" grep -q "ended by a signal; nothing is left of it" "$work/output" ;;
	worker) count "a killed worker at $1" [ $status = 2 ] ;;
	esac
	count "$how at $1, no process" until_so has_no_process
	count "$how at $1, no file" until_so is_empty
}

# Beside a selftest that runs.
another() {
	LD_PRELOAD=$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=one AMDGPU_SIM_KNOBS=kernel=6.18 PATH=$work/stand-in:$PATH \
		tool=$work/stand-in/criu-amdgpu expect "selftest, a second one" 2 "another selftest runs" selftest -L build -D "$work"
}

selftest_interrupted() {
	local step how

	for step in start dump restore verify; do
		for how in INT TERM KILL worker; do
			interrupted $step $how
		done
	done
}

# CRIU and a plugin with which a selftest has no sense.
selftest_needs() {
	local version

	version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
	mkdir -p "$work/old-plugin"
	LC_ALL=C sed "s/\x00$version\x00/\x00${version//[0-9]/x}\x00/g" build/amdgpu_plugin.so > "$work/old-plugin/amdgpu_plugin.so"
	try "a plugin of another version" 2 "is of another version than this program, which is $version; install both from one package" \
		-L "$work/old-plugin"
	try "no plugin" 2 "plugin: cannot read $work/none/amdgpu_plugin.so" -L "$work/none"
	try "no directory" 2 "cannot open directory $work/none: No such file" -D "$work/none"
	mv "$work/stand-in/criu" "$work/stand-in/kept"
	cc -shared -fPIC -x c -o "$work/stand-in/criu" - <<< 'int nothing;'
	try "CRIU without plugins" 2 "CRIU: .* loads no plugins"
	mv "$work/stand-in/kept" "$work/stand-in/criu"
	rm "$work/stand-in/selftest-job"
	try "no job" 2 "selftest: cannot run .*/selftest-job; install the package again"
	cp "$work/stand-in/criu" "$work/stand-in/selftest-job"
}

stand_ins_and() { stand_ins; "$@"; }
selftests() {
	stand_ins
	selftest_results
	selftest_streams
	selftest_limits
	selftest_reports
	selftest_needs
	selftest_interrupted
}
