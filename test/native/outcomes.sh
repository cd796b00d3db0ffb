# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# What test/native/run expects of the kinds of its rows: dump_fails() of "dump fails", and so on. A row's columns are in
# $from, $to, $workload, $dump_arguments, $restore_arguments, $words and $inject; the log is in $work/log.

# host_says MACHINE ARGUMENTS...: those of the form AMDGPU_...= and KFD_...= are options of the plugin. ONE_PROCESSOR: the
# plugin calls the driver in the order of its work, as it starts no threads for it.
host_says() {
	local simulated=$1 argument options=() arguments=() pin=()

	shift
	for argument; do
		case $argument in
		ONE_PROCESSOR) pin=(taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')") ;;
		AMDGPU_*=* | KFD_*=*) options+=("$argument") ;;
		*) arguments+=("$argument") ;;
		esac
	done
	echo "AMDGPU_SIM_MACHINE=$simulated LD_PRELOAD=$preload ${options[*]} ${pin[*]} ${host[*]} ${arguments[*]}" >> "$work/log"
	AMDGPU_SIM_MACHINE=$simulated timeout -k 5 "$limit" env LD_PRELOAD="$preload" "${options[@]}" "${pin[@]}" "${host[@]}" \
		"${arguments[@]}" >> "$work/log" 2>&1 < /dev/null
}

dump() {
	host_says "$from" "${dump_arguments[@]}" "$@" dump "$work/images" "$workload"
}

restore() {
	host_says "$to" "${restore_arguments[@]}" "$@" restore "$work/images" "$workload"
}

# The number that the program said last behind $1.
said() {
	sed -n "s/^$1 \([0-9-]*\).*/\1/p" "$work/log" | tail -n 1
}

logged() {
	grep -q -- "$1" "$work/log"
}

# failed STATUS WORDS: the error comes out, and a line with these words
failed() {
	[ "$1" -eq 1 ] && [ "$(said result)" -lt 0 ] && [ "$(said violations)" = 0 ] && logged "Error (amdgpu_plugin): .*$2"
}

has_images() { # PREFIX
	[ -n "$(compgen -G "$work/images/$1*")" ]
}

# A dump and a restore, where every byte is looked at. Violations and what is left behind are failures of the program
# itself. The dump misses no process.
cycle() {
	dump "${inject[@]}" && restore "${inject[@]}" && ! logged "more holders"
}

# Contents are written after CRIU has let the task go, which then writes to its buffers.
behind() {
	dump "${inject[@]}" && logged '^behind' && restore
}

# Storage fails then.
late_fails() {
	dump AMDGPU_HOST_FULL=1
	failed $? "$words" && logged '^behind' && ! logged '^left' && ! has_images amdgpu-kfd-
}

# CRIU is to kill the tasks after the dump, and no queue runs before.
stands_still() {
	dump -x && logged '^stopped$' && ! logged ': unpaused process' && restore
}

# A dump fails and is made again at once, and the second is restored.
again() {
	dump -a "${inject[@]}" && [ "$(said first)" -lt 0 ] && restore
}

# The processes are as they were, no image is left that could be taken for a complete one, and no post-dump script has run.
dump_fails() {
	dump "${inject[@]}"
	failed $? "$words" && ! logged '^left\|^script' && ! has_images amdgpu-kfd-
}

# The process runs on, has all that it had, and nothing was copied. With AMDGPU_FORCE the same dump goes through.
refused() {
	dump
	failed $? "$words" && ! logged '^left\|^script' && ! has_images amdgpu- &&
		dump AMDGPU_FORCE=1 && logged "Warn  (amdgpu_plugin): .*$words"
}

warned() {
	dump "${inject[@]}" && logged "Warn  (amdgpu_plugin): .*$words"
}

# Nothing is stopped.
not_begun() {
	dump
	failed $? "$words" && ! logged '^left\|stopped\|paused' && ! has_images amdgpu-
}

# The driver stops queues and does not say so. No line promises that the job runs on.
stays_stopped() {
	dump
	failed $? "$words.*may stay stopped" && ! logged unpaused && ! has_images amdgpu-kfd-
}

dump_breaks() {
	dump "${inject[@]}"
	[ $? -eq 1 ] && ! has_images amdgpu-kfd-
}

restore_breaks() {
	dump || return 1
	restore
	[ $? -eq 1 ]
}

# What the task has then dies with the task.
restore_fails() {
	dump && rm "$work/log" || return 1
	restore "${inject[@]}"
	failed $? "$words" && ! logged '^left running'
}

# The restore does nothing that is forbidden.
not_restored() {
	restore_fails && ! logged '^left\|^amdgpu_sim: .*oops'
}

# A byte of the last pages file changes between dump and restore.
damage_fails() {
	local page

	dump && rm "$work/log" || return 1
	page=$(printf '%s\n' "$work"/images/amdgpu-pages-* | tail -n 1)
	printf 'wrong' | dd of="$page" bs=1 seek=16391 conv=notrunc status=none
	restore
	failed $? "$words"
}

# With AMDGPU_FORCE the same restore goes through.
restore_refused() {
	dump && rm "$work/log" || return 1
	restore
	failed $? "$words" && restore AMDGPU_FORCE=1 && logged "Warn  (amdgpu_plugin): .*$words"
}

# What rows of the kind "call" run.

# What the plugin needs of memory does not follow the size of buffers, and what was never written takes none. Not with
# sanitizers, which need more themselves.
large_buffer_takes_little_memory() {
	host_says one -k poison_vram=0 dump "$work/images" 1x5G,1x4K:M,zero=99,map=0 &&
		host_says one -k poison_vram=0 restore "$work/images" 1x5G,1x4K:M,zero=99,map=0 &&
		[ "$(said gpu_kib)" -lt 65536 ] && [ "$(said peak_rss_kib)" -lt 262144 ]
}

# behind_without_statistics CRIU: a directory has the name of CRIU's statistics. CRIU would not call the plugin before it
# reports its result, so all is written before CRIU lets the task go.
behind_without_statistics() {
	mkdir -p "$work/here/stats-dump"
	(cd "$work/here" && host_says one AMDGPU_DUMP_MEMORY=4M -c "$1" dump "$work/images" tasks=2,3x1M) && ! logged '^behind' &&
		logged 'stands still until its contents are written' && host_says one -c "$1" restore "$work/images" tasks=2,3x1M
}

# Both copies of the contents would be in memory.
behind_in_memory() {
	local images

	images=$(mktemp -d -p /dev/shm)
	host_says one AMDGPU_DUMP_MEMORY=4M dump "$images" tasks=2,3x1M && ! logged '^behind' &&
		logged 'of no use in this dump: the images are in memory' && host_says one restore "$images" tasks=2,3x1M
	set -- $?
	rm -rf "$images"
	return "$1"
}

# A second task with the same contents. Where the file system of the images cannot share blocks, all is written.
on_a_base() {
	local workload=tasks=2,5x1M,3x700K,1x8K:G

	mkdir -p "$work/new" "$work/base" "$work/images"
	host_says one AMDGPU_BASE=../new "$@" dump "$work/base" $workload && logged 'shares 0 of .* with the base' &&
		host_says one AMDGPU_BASE=../base "$@" dump "$work/images" $workload &&
		{ logged 'shares [1-9][0-9]* of .* with the base' || logged 'cannot share blocks of the base'; } &&
		rm -r "$work/base" && host_says one restore "$work/images" $workload
}

# before IMAGE [MACHINE]: a reader that does not know shared buffers. It is not built with sanitizers.
before() {
	AMDGPU_SIM_MACHINE=${2:-one} LD_PRELOAD=$preload build/native/before "$1" >> "$work/log" 2>&1
}

# A reader that does not know shared buffers or GEM handles must not make copies, or leave mappings out: the driver
# refuses its RESTORE.
readers_of_before() {
	local image at=$work/images

	mkdir "$at"
	host_says one dump "$at/shared" "tasks=2,shared=2,3x64K" && host_says one dump "$at/alone" 3x64K &&
		host_says one -k kernel=7.3 dump "$at/vmem" 1x64K:N &&
		host_says one -k kernel=7.3 dump "$at/host" "tasks=2,owner=0,host=1,shared=1,2x64K:H" || return 1
	for image in shared/amdgpu-kfd-1 shared/amdgpu-kfd-3 host/amdgpu-kfd-1 host/amdgpu-kfd-3 vmem/amdgpu-kfd-1; do
		before "$at/$image.img" && [ "$(said before)" = -22 ] || return 1
	done
	before "$at/alone/amdgpu-kfd-1.img" && [ "$(said before)" = 0 ]
}

# This kernel saves no control stacks, and takes MQDs of several XCCs in another form than it saves them. The images are
# those of a kernel without these bugs, so that readers that repair nothing can restore them.
repaired_for_others() { # KERNEL WORKLOAD
	local at=$work/images size

	mkdir "$at"
	host_says one -k "kernel=$1" dump "$at/lacks" "$2" &&
		host_says one -k "kernel=$1" -k no_ctl_stack=0 dump "$at/has" "$2" || return 1
	before "$at/has/amdgpu-kfd-1.img" && size=$(said private) && before "$at/lacks/amdgpu-kfd-1.img" &&
		[ "$(said private)" = "$size" ] || return 1
	find_machine eight-xcc
	host_says "$machine" -k "kernel=$1" dump "$at/xccs" "$2" &&
		AMDGPU_SIM_KNOBS="kernel=$1" before "$at/xccs/amdgpu-kfd-1.img" "$machine" && [ "$(said before)" = 0 ]
}

holders=tasks=3,owner=1,shared=2,2x1M,1x4K,zero=0,legacy=1

# Contents of a shared buffer are saved by its owner only: importers have one page of their own.
saved_once() {
	local sizes

	host_says one -k kernel=dkms dump "$work/images" $holders || return 1
	# each pages file has eight bytes before the contents
	sizes=$(stat -c '%n %s' "$work"/images/amdgpu-pages-* | sed 's/.*pages-//;s/-.*img / /' | sort -n | tr '\n' ' ')
	echo "sizes $sizes" >> "$work/log"
	[ "$sizes" = "1 4104 3 2101256 5 4104 " ]
}

# Each of the three images has two of these buffers, and the flags of imports are in none.
holders_have_the_owners_flags() {
	local id

	host_says one -k kernel=dkms dump "$work/images" $holders || return 1
	for id in 1 3 5; do
		before "$work/images/amdgpu-kfd-$id.img"
	done
	[ "$(grep -c '^flags 0xe0000001' "$work/log")" = 9 ] && ! logged '^flags 0xc0000001'
}

share_handle() {
	sed -n 's/^share_handle //p' "$work/log" | tail -n 1
}

# has_share_handle yes|no WORKLOAD: whether the first image of a dump by force has the share handle that was exported last
has_share_handle() {
	local found=no handle

	host_says one -k kernel=dkms AMDGPU_FORCE=1 dump "$work/images" "$2" || return 1
	handle=$(share_handle | sed 's/\(..\)\(..\)\(..\)\(..\)/\4\3\2\1/g')
	[ ${#handle} = 32 ] || return 1
	od -An -v -tx1 "$work/images/amdgpu-kfd-1.img" | tr -d ' \n' | grep -q "$handle" && found=yes
	[ $found = "$1" ]
}

# beside_an_original FORCE files|streams
beside_an_original() {
	local with=(-k kernel=dkms) jobs=tasks=2,owner=0,legacy=1,shared=1,3x64K handle status

	[ "$2" = files ] || with+=(-s)
	host_says one "${with[@]}" dump "$work/images" $jobs || return 1
	handle=$(share_handle)
	rm "$work/log"
	host_says one AMDGPU_FORCE="$1" "${with[@]}" -o "$handle" restore "$work/images" $jobs
	status=$?
	! logged "its memory has changed" || return 1
	case $1 in
	0) failed $status "a process that is not restored has a BO with its share handle" ;;
	1) [ $status = 0 ] && logged "Warn  (amdgpu_plugin): .* gets a new share handle" ;;
	esac
}

# beside_the_same_pid WORKLOAD: a pid tells nothing
beside_the_same_pid() {
	host_says one -k kernel=dkms dump "$work/images" "$1" && host_says one -k kernel=dkms -o none restore "$work/images" "$1"
}
