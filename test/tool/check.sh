# SPDX-License-Identifier: GPL-2.0-only
#
# What criu-amdgpu check says of machines: without a GPU, with simulated ones, and with each thing missing. Read by run.

# stand_in HOOKS [FUNCTION...]: a program "criu" with so many hooks, without the FUNCTIONs
stand_in() {
	local hooks=$1 name functions="print_on_level criu_get_image_dir find_unused_fd_pid fdstore_add fdstore_get img_streamer_open"

	mkdir -p "$work/bin"
	for name in "${@:2}"; do
		functions=${functions/$name/}
	done
	{
		echo "char cr_plugin_ctl[$((16 * (hooks + 1)))];"
		echo 'const char libdir[] = "/usr/lib/criu-of-the-test/criu/";'
		for name in $functions; do
			echo "void $name(void); void $name(void) {}"
		done
	} | cc -shared -fPIC -x c -o "$work/bin/criu" -
}

# library FILE SOURCE ARGUMENT...: a shared library, which finds others in its own directory
library() {
	cc -shared -fPIC -Wl,-rpath,'$ORIGIN' -x c -o "$1" - -x none "${@:3}" <<< "$2" || exit 1
}

# has_not NAME WORDS: no line of the last output has WORDS
has_not() {
	if ! has_output "$2"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "tool: check, $1 failed: a line with \"$2\"; the output:"
	sed 's/^/    /' "$work/output"
}

# checked MACHINE NAME STATUS WORDS ARGUMENTS...: like expect, on a simulated machine with the stand-in for CRIU
checked() {
	LD_PRELOAD=${preloaded-}:$PWD/build/sim/libamdgpu_sim.so AMDGPU_SIM_MACHINE=$1 AMDGPU_SIM_KNOBS="kernel=6.18;${AMDGPU_SIM_KNOBS-}" \
		PATH=$work/bin:$PATH expect "check, $2" "$3" "$4" check "${@:5}"
}

checks_criu() {
	stand_in 17
	checked one "CRIU" 0 "^ok  CRIU: $work/bin/criu, release 4.3 (17 hooks)" -L build
	checked one "the plugin" 0 "^ok  plugin: build/amdgpu_plugin.so loads" -L build
	checked one "no plugin" 1 "cannot read /usr/lib/criu-of-the-test/criu/amdgpu_plugin.so, where CRIU looks for it"
	CRIU_LIBS_DIR=$PWD/build checked one "a directory in the environment" 0 "plugin: $PWD/build/amdgpu_plugin.so loads"
	mkdir -p "$work/other" && cp "$work/bin/criu" "$work/other/amdgpu_plugin.so"
	checked one "another plugin" 1 "is another plugin, for example CRIU's own; replace it" -L "$work/other"
	head -c 100000 build/amdgpu_plugin.so > "$work/other/amdgpu_plugin.so"
	checked one "half a plugin" 1 "criu-amdgpu: plugin: " -L "$work/other"
	library "$work/other/libgone.so" 'int gone;'
	library "$work/other/amdgpu_plugin.so" 'extern int gone; int *there = &gone; const char option[] = "AMDGPU_DEVICE_MAP";' -L"$work/other" -lgone
	checked one "a plugin without a descriptor" 1 "is no plugin for this CRIU, so CRIU fails every dump; install it again" -L "$work/other"
	rm "$work/other/libgone.so"
	checked one "a plugin without its library" 1 "cannot load, so CRIU fails every dump: libgone.so: .*; install the libraries that it needs" -L "$work/other"
	stand_in 13
	checked one "CRIU 4.2" 0 "release 4.2 (13 hooks)" -L build
	stand_in 10
	checked one "CRIU 3.17.1" 0 "release 3.17 to 3.19 (10 hooks)" -L build
	stand_in 9
	checked one "an old CRIU" 1 "has 9 hooks for plugins, and 10 are needed; install" -L build
	stand_in 17 fdstore_add
	checked one "CRIU without a function" 1 "lacks the function fdstore_add" -L build
	echo 'int nothing;' | cc -shared -fPIC -x c -o "$work/bin/criu" -
	checked one "CRIU without plugins" 1 "loads no plugins; install" -L build
	echo "#!/bin/sh" > "$work/bin/criu"
	checked one "a script" 1 "cannot examine $work/bin/criu: Exec format error; it must be CRIU's program itself" -L build
	stand_in 17
	truncate -s 3000 "$work/bin/criu"
	checked one "half a CRIU" 1 "loads no plugins" -L build
	rm "$work/bin/criu"
	[ -n "$(command -v criu)" ] || checked one "no CRIU" 1 "CRIU: is not in PATH; install criu" -L build
	stand_in 17
}

checks_machine() {
	expect "check, no number, no GPU" 2 "there is no process 12/x" check 12/x
	PATH=$work/bin:$PATH expect "check, no GPU" 3 "this machine has no AMD GPU, or amdgpu is not loaded" check -L build
	PATH=$work/bin:$PATH expect "check, what a machine needs" 3 "^a machine needs a GPU of gfx9 or gfx10, and amdgpu of Linux 5.18 or newer$" check -L build
	checked one "the next command" 0 "^now run criu-amdgpu selftest, which tries" -L build
	checked one "a GPU" 0 "^ok  GPU 0x07cd: 0000:63:00.0, renderD128, gfx90a, 64.0 GiB: contents can be copied" -L build
	checked eight "eight GPUs" 0 "^ok  GPU 0x579d: .*renderD135" -L build
	checked one "quiet" 0 "" -q -L build
	checked one "the driver" 0 "^ok  driver: amdgpu of the kernel, KFD 1.18, can checkpoint" -L build
	AMDGPU_SIM_KNOBS="kfd_minor=7" checked one "an old driver" 1 "version 1.7 cannot checkpoint; use version 1.8" -L build
	AMDGPU_SIM_KNOBS="faults=kfd:CRIU_UNPAUSE 1 -25;faults=kfd:CRIU_UNPAUSE 2 -25" checked one "a driver without checkpoints" 1 "cannot checkpoint: .*Linux 5.18" -L build
	AMDGPU_SIM_KNOBS="faults=kfd:CRIU_UNPAUSE 1 -13;faults=kfd:CRIU_UNPAUSE 2 -13" checked one "no right" 1 "cannot checkpoint: .*CAP_CHECKPOINT_RESTORE" -L build
	AMDGPU_SIM_KNOBS="faults=kfd:OPEN 1 -13" checked one "no right to open" 1 "cannot open; a security module (SELinux: setsebool container_use_devices=1)" -L build
	AMDGPU_SIM_KNOBS="faults=kfd:OPEN 1 -2" checked one "no node" 1 "cannot open; load the driver amdgpu, or give the container" -L build
	AMDGPU_SIM_KNOBS="faults=kfd:OPEN 1 -1" checked one "no access" 1 "the device cgroup must allow c [0-9]*:[0-9]* rw" -L build
	AMDGPU_SIM_KNOBS="in_reset=1" checked one "a GPU in reset" 1 "GPU 0x07cd: a GPU is in reset.*dump again" -L build
	AMDGPU_SIM_KNOBS="in_reset=1" AMDGPU_FORCE=1 checked one "a GPU in reset, forced" 0 "warning: GPU 0x07cd: a GPU is in reset" -L build
	AMDGPU_SIM_KNOBS="kernel=dkms-6.12" checked one "AMD's driver" 0 "a process may be refused: it cannot be rebuilt by this kernel" -L build
	AMDGPU_SIM_KNOBS="faults=drm:CTX 1 -12" checked one "no copies" 1 "contents cannot be copied: Cannot allocate memory" -L build
	checks_kernels
	checks_rights
	edited_machine gfx12 's/^gfx_target_version .*/gfx_target_version 120000/'
	checked "$work/gfx12" "gfx12" 1 "GPU 0x07cd: .*gfx1200.*: contents cannot be copied: .*packets of its copy engine are unknown" -L build
	checked "$work/gfx12" "BOs of gfx12" 1 "a BO may be refused: it is on a GPU of gfx12" -L build
	edited_machine gfx1154 's/^gfx_target_version .*/gfx_target_version 110504/'
	checked "$work/gfx1154" "gfx11.5.4" 0 "GPU 0x07cd: .*gfx1154.*: contents can be copied" -L build
	edited_machine gfx11 's/^gfx_target_version .*/gfx_target_version 110000/'
	checked "$work/gfx11" "queues of gfx11" 0 "a queue may be refused: it is on a GPU of gfx11 or newer" -L build
	checks_tree
}

# Kernels that the simulator cannot be: other_kernel.c says what they say.
checks_kernels() {
	local error remedy release

	preloaded=$PWD/build/tool/other_kernel.so
	while read -r error remedy; do
		HW_IP_ERROR=$error checked one "copies, error $error" 1 "contents cannot be copied: .*$remedy\$" -L build
	done <<-END
		0 (no SDMA rings); load amdgpu with user_queue=1
		1 ; let the device cgroup of the container allow its render node
		13 ; become a member of the group of its render node, or run this command as root
	END
	LOST=/dev/dri/renderD128 checked one "a lost render node" 1 "contents cannot be copied: No such file or directory; make its render node in /dev/dri$" -L build
	has_not "the memory of a lost render node" "a BO may be refused"
	for release in 6.12.111-amd64 6.12.117+deb13-amd64; do
		RELEASE=$release checked one "Linux $release" 0 "a compute queue may be refused: it cannot be rebuilt by this kernel, .*HSA_USE_SVM=0" -q -L build
	done
	edited_machine xccs 's/^num_xcc .*/num_xcc 8/'
	for release in 6.1.0-40-amd64 6.17.13; do
		RELEASE=$release checked "$work/xccs" "XCCs with Linux $release" 0 "a compute queue may be refused: it runs on several XCCs, .*; use .*Linux 6.18" -q -L build
	done
	for release in 6.18.42 7.2.12; do
		RELEASE=$release checked "$work/xccs" "XCCs with Linux $release" 0 "a compute queue: a dump waits until its kernels have ended, .* this kernel does not restore running waves" -q -L build
	done
	AMDGPU_DRAIN=0 RELEASE=6.18.42 checked "$work/xccs" "XCCs with Linux 6.18.42, no time for kernels" 0 "a compute queue may be refused: it cannot be rebuilt by this kernel on a GPU with several XCCs, .*; dump when .* use .*Linux 6.18 before 6.18.42" -q -L build
	for release in 6.18-amd64 6.18.41 7.1.0; do
		RELEASE=$release checked "$work/xccs" "XCCs with Linux $release" 0 "" -q -L build
	done
	AMDGPU_SIM_KNOBS="kernel=6.12" checked one "memory that a kernel does not list" 0 "a BO may be refused: it is mapped by its render node .*; use Linux 6.18" -q -L build
	for release in 6.12.110-amd64 6.12.118-amd64 6.13.112-amd64 7.12.112-amd64 6.12-amd64; do
		RELEASE=$release checked one "Linux $release" 0 "" -q -L build
	done
	preloaded=
}

# What a user without rights lacks. CRIU may have what the tool does not have.
checks_rights() {
	local user="setpriv --reuid 65534 --regid 65534 --clear-groups" command=
	local words="kernel.yama.ptrace_scope is" no_right="faults=kfd:CRIU_UNPAUSE 1 -13;faults=kfd:CRIU_UNPAUSE 2 -13"

	chmod 711 "$work"
	preloaded=$PWD/build/tool/other_kernel.so
	command=$user AMDGPU_SIM_KNOBS="$no_right" checked one "a user" 1 \
		"cannot checkpoint: .*; run CRIU there, as root or with this capability (docs/without-root.md)" -L build
	file_capabilities $((1 << 8)) # CAP_CHECKPOINT_RESTORE
	command=$user AMDGPU_SIM_KNOBS="$no_right" checked one "a user, and CRIU with a capability" 0 "^ok  driver: .*, can checkpoint$" -L build
	command="$user --no-new-privs" AMDGPU_SIM_KNOBS="$no_right" checked one "no new privileges" 1 "cannot checkpoint: " -L build
	command=$user YAMA=1 checked one "Yama" 1 "ptrace: $words 1, .*; run CRIU as root, or set it to 0 (sysctl)" -L build
	command=$user YAMA=0 checked one "Yama that is off" 0 "" -q -L build
	YAMA=2 checked one "Yama, as root" 0 "" -q -L build
	YAMA=3 checked one "Yama that forbids all" 1 "ptrace: $words 3, so CRIU cannot attach to a job; remove it from sysctl.d and boot again" -L build
	file_capabilities $((1 << 8)) $((1 << 19)) # CAP_SYS_PTRACE
	command=$user YAMA=2 checked one "Yama, and CRIU with the capability" 0 "" -q -L build
	preloaded=
	stand_in 17
}

# file_capabilities HIGH [LOW]: gives these capabilities to the stand-in for CRIU, as setcap does (struct vfs_cap_data)
file_capabilities() {
	perl -e 'my ($file, $high, $low) = @ARGV; my ($name, $value) = ("security.capability", pack("V5", 0x02000001, $low, 0, $high, 0));
		exit(syscall(188, $file, $name, $value, 20, 0) != 0)' "$work/bin/criu" "$1" "${2-0}" || exit 1
}

# What the files of a machine say.
checks_tree() {
	edited_machine tree ''
	mkdir -p "$work/tree/sys/module/amdgpu/parameters"
	echo 0 > "$work/tree/sys/module/amdgpu/parameters/cwsr_enable"
	checked "$work/tree" "no CWSR" 1 "a process cannot be paused, .*; load amdgpu with cwsr_enable=1" -L build
	echo 1 > "$work/tree/sys/module/amdgpu/parameters/cwsr_enable"
	echo 6.10.5 > "$work/tree/sys/module/amdgpu/version"
	checked "$work/tree" "a version" 0 "driver: AMD's out-of-tree amdgpu 6.10.5, KFD 1.18" -L build
	preloaded=$PWD/build/tool/other_kernel.so RELEASE=6.12.112 checked "$work/tree" "another driver than the kernel's" 0 "" -q -L build
	rm -r "$work/tree/sys/class/kfd/kfd/topology/nodes"/[1-9]*
	checked "$work/tree" "no GPU that computes" 3 "KFD shows none here; .* the device cgroup hides it$" -L build
}

checks_room() {
	local none=$work/none

	mkdir -p "$work/room"
	printf '%s\n' '#!/bin/sh' "mount -t tmpfs -o size=4k none $work/full && echo > $work/full/all && exec \"\$@\"" > "$work/with-full"
	chmod +x "$work/with-full"
	checked one "room" 0 "^ok  images: $work/room has room for .*iB" -L build -D "$work/room"
	checked one "room that is not known" 0 "^ok  images: /proc does not tell how much room it has" -L build -D /proc
	mkdir "$work/full"
	command="unshare -m $work/with-full" checked one "no room at all" 1 \
		"images: $work/full has no room; choose another directory" -L build -D "$work/full"
	checked one "no directory" 2 "cannot open directory $none" -L build -D "$none"
	mkdir -m 0555 "$work/fixed"
	command="setpriv --bounding-set -dac_override" checked one "no right to write" 1 \
		"images: cannot write to $work/fixed: Permission denied; choose another directory" -L build -D "$work/fixed"
	ln -s . "$work/room/parent"
	checked one "an incremental dump" 1 "it is incremental, .*remove the link" -L build -D "$work/room"
}

# edited_machine NAME EDIT [MACHINE]: one, with GPU properties changed by a command of sed's
edited_machine() {
	rm -rf "$work/topology-$1"
	cp -r "build/machines/${3-one}" "$work/topology-$1" && chmod -R u+w "$work/topology-$1"
	sed -i "$2" "$work/topology-$1"/nodes/*/properties
	sh test/sim/native/mkroot.sh "$work/topology-$1" "$work/$1"
}

# hold FILE...: starts a process that has the FILEs open, and sets $holder. Ends with release.
hold() {
	[ -x "$work/hold" ] || cc -o "$work/hold" test/tool/hold.c || exit 1
	hold_by "$work/hold" "$@"
}

hold_by() { # PROGRAM FILE...
	coproc HOLDER { exec "$@"; }
	holder=$HOLDER_PID
	read -r _ <&"${HOLDER[0]}" || exit 1
}

release() {
	local input=${HOLDER[1]} process=$holder

	exec {input}>&-
	wait "$process"
}

# kfd_process MACHINE PID: sets $kfd to the directory that KFD's sysfs has of the process, with VRAM of GPU 0x07cd
kfd_process() {
	kfd=$1/sys/class/kfd/kfd/proc/$2
	mkdir -p "$kfd/queues"
	echo 3221225472 > "$kfd/vram_$((0x07cd))"
}

queue() { # ID TYPE: of GPU 0x07cd
	mkdir -p "$kfd/queues/$1"
	echo "$2" > "$kfd/queues/$1/type"
	echo $((0x07cd)) > "$kfd/queues/$1/gpuid"
}

# A process that has the devices open, as /proc and KFD's sysfs show it.
checks_process() {
	mknod "$work/kfd" c 510 0 && mknod "$work/node" c 226 128 || exit 1
	edited_machine tree ''
	hold_by setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "echo ready; cat"
	command="setpriv --bounding-set -dac_override,-dac_read_search,-sys_ptrace" checked "$work/tree" "a process of another user" 2 \
		"process $holder: cannot examine: Permission denied; run this command as root" "$holder"
	release
	hold "$work/node"
	AMDGPU_SIM_KNOBS="kernel=dkms-6.12" checked "$work/tree" "a process without KFD" 0 "" -q "$holder"
	release
	chmod 711 "$work" && chmod 666 "$work/kfd" "$work/node"
	hold_by setpriv --reuid 65534 --regid 65534 --clear-groups "$work/hold" "$work/kfd" "$work/node"
	command="setpriv --reuid 65534 --regid 65534 --clear-groups" checked "$work/tree" "a user's own process" 0 "^process $holder (hold): has /dev/kfd open" "$holder"
	release
	hold
	checked "$work/tree" "a process without GPU" 3 "process $holder and its descendants use no AMD GPU" -q "$holder"
	kfd_process "$work/tree" "$holder"
	checked "$work/tree" "a process that has closed KFD" 3 "process $holder and its descendants have closed /dev/kfd: a dump has nothing" "$holder"
	has_not "a process that has closed KFD" "only the dump can tell"
	rm -r "$kfd"
	release
	hold "$work/kfd" "$work/node"
	kfd_process "$work/tree" "$holder"
	queue 3 0
	queue 4 1
	checked "$work/tree" "a process" 0 "^process $holder (hold): has /dev/kfd open" "$holder"
	checked "$work/tree" "its GPU" 0 "^  0x07cd   renderD128      3.0 GiB          0 B        0" "$holder"
	checked "$work/tree" "its queues" 0 "^  queue 4: SDMA on GPU 0x07cd" "$holder"
	checked "$work/tree" "the estimate of the pause" 0 "^pause of a job that runs on: as long, or 0.15 s with dump-memory" "$holder"
	checked "$work/tree" "the estimate" 0 "^contents: about 3.0 GiB, which take 3.0 s if the storage takes 1 GiB/s" "$holder"
	checked "$work/tree" "what only the dump tells" 0 "^  a BO has flags that this plugin does not know" "$holder"
	has_not "what shows before the dump" "^  a process has several KFD contexts"
	preloaded=$PWD/build/tool/other_kernel.so RELEASE=6.12.117 checked "$work/tree" "a queue that its kernel refuses" 0 \
		"process $holder: queue 3 may be refused: it cannot be rebuilt by this kernel, .*HSA_USE_SVM=0" -q "$holder"
	sed -i 's/^num_xcc .*/num_xcc 8/' "$work/tree/sys/class/kfd/kfd/topology/nodes/1/properties"
	preloaded=$PWD/build/tool/other_kernel.so RELEASE=6.17.13 checked "$work/tree" "a queue on several XCCs" 0 \
		"process $holder: queue 3 may be refused: it runs on several XCCs, .*; use .*Linux 6.18" -q "$holder"
	sed -i 's/^num_xcc .*/num_xcc 1/' "$work/tree/sys/class/kfd/kfd/topology/nodes/1/properties"
	checked "$work/tree" "quiet" 0 "" -q "$holder"
	checked "$work/tree" "its parent" 0 "^process $holder (hold)" $$
	checked "$work/tree" "no process" 2 "there is no process 4194305" 4194305
	checked "$work/tree" "no number" 2 "there is no process 12/x" 12/x
	checked "$work/tree" "two processes" 2 "check takes one process or container" 1 2
	names_of_containers
	refusals_of_process
	release
	cp "$work/hold" "$work/a"$'\033'"[31mb"
	hold_by "$work/a"$'\033'"[31mb" "$work/kfd"
	checked "$work/tree" "a name that would colour a terminal" 0 "^process $holder (a?\[31mb): has /dev/kfd open" "$holder"
	release
	rights_of_process
	files_of_others
}

# The rights of CRIU are those of the tool. A job has lost one that CRIU does not have, either.
rights_of_process() {
	local command="setpriv --bounding-set -setpcap,-net_raw" words="process [0-9]*: lacks capabilities in its bounding set"

	hold_by setpriv --bounding-set -net_raw "$work/hold" "$work/kfd" "$work/node"
	kfd_process "$work/tree" "$holder"
	checked "$work/tree" "a bounding set that CRIU cannot restore" 0 "$words, so only a CRIU with CAP_SETPCAP restores it; run CRIU as root" -q "$holder"
	command= checked "$work/tree" "a bounding set, as root" 0 "" -q "$holder"
	release
	hold_by setpriv --bounding-set -net_raw --no-new-privs "$work/hold" "$work/kfd" "$work/node"
	kfd_process "$work/tree" "$holder"
	checked "$work/tree" "a bounding set, and no new privileges" 0 "" -q "$holder"
	release
}

# runtime NAME: a stand-in for podman or docker that knows container "job.1_a-b" of process $holder, and some others. It keeps its
# arguments.
runtime() {
	cat > "$work/runtimes/$1" <<-EOF
		#!/bin/sh
		echo "\$@" > $work/arguments
		echo "an error of $1" >&2
		case \$6 in
		job.1_a-b) echo $holder ;;
		stopped) echo 0 ;;
		odd) echo 17x ;;
		long) echo 11111111111111111111111111111111111111111111 ;;
		*) exit 125 ;;
		esac
	EOF
	chmod +x "$work/runtimes/$1"
}

names_of_containers() {
	local command="env PATH=$work/runtimes" name

	mkdir "$work/runtimes"
	checked "$work/tree" "no runtime" 2 "there is no process job, and neither podman nor docker to ask .*; give its pid$" job
	for name in podman docker; do
		rm -f "$work/runtimes"/* "$work/arguments"
		runtime $name
		checked "$work/tree" "a container of $name" 0 "^process $holder (hold)" job.1_a-b
		[ "$(cat "$work/arguments")" = "container inspect --format {{.State.Pid}} -- job.1_a-b" ] || { failed=$((failed + 1)) && echo "tool: $name has other arguments"; }
		checked "$work/tree" "an unknown container" 2 "podman and docker know no container of that name for this user; give its pid$" 12x
		checked "$work/tree" "a container that does not run" 2 "container stopped does not run; start it$" stopped
	done
	checked "$work/tree" "an answer that is no pid" 2 "know no container" odd
	checked "$work/tree" "an answer that is too long" 2 "know no container" long
	printf '#!/bin/sh\nexit 125\n' > "$work/runtimes/podman" && chmod +x "$work/runtimes/podman"
	checked "$work/tree" "a container that only docker knows" 0 "^process $holder (hold)" job.1_a-b
	rm "$work/arguments"
	for name in -x --all ../job 'job;id' 'job id' ''; do
		checked "$work/tree" "a word that is no name" 2 "there is no process $name$" -- "$name"
	done
	checked "$work/tree" "a number that is no process" 2 "there is no process 0$" 0
	[ ! -e "$work/arguments" ] || { failed=$((failed + 1)) && echo "tool: a runtime was asked for \"$(cat "$work/arguments")\""; }
}

# Open files that neither CRIU nor the plugin saves.
files_of_others() {
	local file

	mknod "$work/accel0" c 261 0 && mknod "$work/card0" c 226 0 && mknod "$work/other-node" c 226 255 || exit 1
	mknod "$work/disk" b 259 7 && mknod "$work/null" c 1 3 && mknod "$work/tun" c 10 200 && mknod "$work/loop-control" c 10 237 || exit 1
	mknod "$work/tty" c 136 5 || exit 1
	: > "$work/regular"
	hold "$work/kfd" "$work/node" "$work/null" "$work/tun" "$work/tty" "$work/regular"
	kfd_process "$work/tree" "$holder"
	checked "$work/tree" "files that CRIU saves" 0 "" -q "$holder"
	release
	for file in "accel0 261:0" "card0 226:0" "other-node 226:255" "disk 259:7" "loop-control 10:237"; do
		hold "$work/kfd" "$work/node" "$work/${file% *}"
		kfd_process "$work/tree" "$holder"
		checked "$work/tree" "the file ${file% *}" 0 \
			"warning: process $holder: descriptor 5 is $work/${file% *} (${file#* }), which neither .*; have the process close it" -q "$holder"
		release
	done
	hold_by "$work/hold" --anonymous "$work/kfd" "$work/node"
	kfd_process "$work/tree" "$holder"
	checked "$work/tree" "anonymous files" 0 "warning: process $holder: descriptor 3 and 1 more is anon_inode:\[userfaultfd\], which neither" -q "$holder"
	has_not "anonymous files that CRIU saves" "event\|notify\|signal\|timer\|pidfd"
	release
}

# Each refusal that shows before the dump.
refusals_of_process() {
	queue 5 2
	checked "$work/tree" "a queue of unknown type" 1 "queue 5 of type 2 on GPU 0x07cd has a type that this plugin does not know" -q "$holder"
	AMDGPU_FORCE=1 checked "$work/tree" "the same, forced" 0 "warning: process $holder: queue 5" -q "$holder"
	rm -r "$kfd/queues/5"
	checked "$work/tree" "no such queue any more" 0 "" -q "$holder"
	mkdir "$kfd/context_1"
	checked "$work/tree" "KFD contexts" 1 "process $holder: has several KFD contexts" -q "$holder"
	rmdir "$kfd/context_1"
	checked "$work/tree" "one KFD context" 0 "" -q "$holder"
	echo 0 > "$kfd/vram_$((0xdfd4))"
	checked "$work/tree" "no VM" 1 "process $holder, 2 GPUs, 1 opened: sees a GPU whose render node it has not opened" -q "$holder"
	AMDGPU_FORCE=1 checked "$work/tree" "no VM, forced" 0 "warning: process $holder, 2 GPUs, 1 opened: sees a GPU" -q "$holder"
	rm "$kfd/vram_$((0xdfd4))"
	checked "$work/tree" "the other GPU is hidden" 0 "" -q "$holder"
	# the file has another PASID
	echo 32769 > "$kfd/pasid"
	AMDGPU_SIM_KNOBS="kernel=6.1" checked "$work/tree" "no VM, Linux 6.1" 1 "process $holder: has /dev/kfd open and no VM of a GPU" -q "$holder"
	AMDGPU_SIM_KNOBS="kernel=6.12" checked "$work/tree" "no VM, Linux 6.12" 0 "" -q "$holder"
	rm "$kfd/pasid"
	echo 9223372036854775807 > "$kfd/vram_$((0x07cd))"
	checked "$work/tree" "no room" 1 "images: $work has room for .*, and the contents need about 8.0 EiB" -D "$work" "$holder"
	echo 536870912 > "$kfd/vram_$((0x07cd))"
	command="prlimit --fsize=268435456" checked "$work/tree" "a limit of file sizes" 1 \
		"images: no file may be larger than 256 MiB, and the contents of a GPU need about 512 MiB; raise the limit (ulimit -f, LimitFSIZE)" -D "$work" "$holder"
	rm -r "$kfd"
	checked "$work/tree" "an inherited file" 0 "may be refused: it has the open /dev/kfd of another process" -q "$holder"
	AMDGPU_SIM_KNOBS="kernel=dkms-6.12" checked "$work/tree" "no BO" 0 "process $holder: may be refused: it cannot be rebuilt by this kernel" -q "$holder"
	generations_of_process
}

generations_of_process() {
	kfd_process "$work/gfx12" "$holder"
	checked "$work/gfx12" "a BO of gfx12" 1 "process $holder: a BO of GPU 0x07cd is on a GPU of gfx12 or newer" -q "$holder"
	kfd_process "$work/gfx11" "$holder"
	checked "$work/gfx11" "no queue of gfx11" 0 "" "$holder" -q
	queue 3 1
	checked "$work/gfx11" "a queue of gfx11" 1 "queue 3 of type 1 on GPU 0x07cd is on a GPU of gfx11 or newer, .*; have the process destroy its queues" -q "$holder"
	rm -r "$kfd/queues/3"
	checked "$work/gfx11" "the queue is destroyed" 0 "" -q "$holder"
	edited_machine gfx950 's/^gfx_target_version .*/gfx_target_version 90500/'
	kfd_process "$work/gfx950" "$holder"
	checked "$work/gfx950" "another precision" 0 "" -q "$holder"
	release
	export HSA_HIGH_PRECISION_MODE=1
	hold "$work/kfd" "$work/node"
	unset HSA_HIGH_PRECISION_MODE
	kfd_process "$work/gfx950" "$holder"
	checked "$work/gfx950" "high precision" 1 "process $holder: computes on gfx950 with HSA_HIGH_PRECISION_MODE" -q "$holder"
}

# GPU 0xdfd4 has minor 129.
unused_gpus() {
	mknod "$work/node-129" c 226 129 || exit 1
	edited_machine seven-more '' eight
	hold "$work/kfd" "$work/node" "$work/node-129"
	kfd_process "$work/seven-more" "$holder"
	echo 0 > "$kfd/vram_$((0xdfd4))"
	checked "$work/seven-more" "a GPU that is not used" 0 "warning: GPU 0xdfd4: the job sees it and does not use it, but needs it again at each restore" -q "$holder"
	echo 4096 > "$kfd/vram_$((0xdfd4))"
	checked "$work/seven-more" "a GPU that is used" 0 "" -q "$holder"
	has_not "a GPU that is used, no warning" "does not use it"
	release
}

checks() {
	local options_file=/etc/criu/amdgpu_plugin.conf

	[ -e $options_file ] || options_file=
	checks_criu
	checks_machine
	checks_room
	checks_process
	unused_gpus
	AMDGPU_DEVICE_MAP=1=1 checked one "valid options" 0 "^ok  options: valid, from ${options_file:+$options_file and }the environment$" -L build
	KFD_MAX_BUFFER_SIZE=few checked one "an option" 1 "option KFD_MAX_BUFFER_SIZE: \"few\" is not a number" -L build
	expect "check, an argument of others" 2 "check has no option --json" check --json
}
