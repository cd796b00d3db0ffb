# SPDX-License-Identifier: GPL-2.0-only
#
# Processes that share no namespace with CRIU, as in a container. They have mounts, pids, IPC, UTS and network
# of their own, and a small root file system that they entered with pivot_root.

# The root has the files that the client opens. It is a mount, because CRIU must find it again at a restore.
small_root() { # DIR
	local root=$1 file node

	mkdir -p "$root"/{proc,sys,tmp,run,old,log,dev/dri,dev/shm}
	mount --bind "$root" "$root"
	mount --make-private "$root"
	for file in /opt/vm/bin/{busybox,gpu_client,gpu_files,rocm-before} \
		$(ldd /opt/vm/bin/{gpu_client,gpu_files,rocm-before} | grep -o '/[^ )]*\.so[^ )]*' | sort -u); do
		mkdir -p "$root${file%/*}"
		cp -L "$file" "$root$file"
	done
	for node in /dev/null /dev/zero /dev/random /dev/urandom /dev/kfd /dev/dri/renderD*; do
		cp -a "$node" "$root$node"
	done
	chroot "$root" /opt/vm/bin/rocm-before
}

# start_contained ARG...: starts the client, or $program, in namespaces and a root of its own.
start_contained() {
	local outer

	small_root "$work/root"
	ln -s root/log/client.log client.log
	start root/log/client.log unshare --mount --pid --fork --ipc --uts --net /opt/vm/bin/busybox sh -c '
		cd "$0" || exit
		busybox() { /opt/vm/bin/busybox "$@"; }
		busybox pivot_root . old
		busybox mount -t proc proc /proc
		busybox mount -t sysfs sysfs /sys
		busybox mount -t tmpfs tmpfs /run
		busybox umount -l /old
		exec /opt/vm/bin/busybox setsid "$@" < /dev/null > /dev/null 2>&1' \
		"$work/root" ${program-/opt/vm/bin/gpu_client --log} /log/client.log "$@"
	outer=$pid
	client='client 1:'
	case $* in *--tree*) client=tree ;; esac
	wait_line client.log "$client ready"
	pid=$(pgrep -P "$outer")
	started+=("$pid")
}

# contained_comes_back: dump, death, restore into the same root. CRIU stays outside.
contained_comes_back() {
	go_away img --root "$work/root" --network-lock nftables
	no_violation
	restore img --root "$work/root" --pidfile "$work/restored"
	pid=$(cat restored)
	started+=("$pid")
	runs
	verify
	no_violation
}

# CRIU saves System V memory and files of tmpfs with the namespaces, after all tasks.
scenario_own_memory_that_gpus_write() {
	local program=/opt/vm/bin/gpu_files

	machine one
	start_contained memfd unlinked shared private named segment
	dump_at_work img --root "$work/root" --network-lock nftables
	restore img --root "$work/root" --pidfile "$work/restored"
	pid=$(cat restored)
	started+=("$pid")
	verify
	finish
}

filled_by_main() { ! has_main_hook || filled_by main img/restore.log; }

scenario_own_mounts() {
	machine one
	start_contained
	contained_comes_back
	filled_by_main
	finish
}

scenario_own_mounts_tree() { # long
	machine eight
	start_contained --tree 2 --gpus 3,6
	contained_comes_back
	filled_by_main
	[ "$(grep -c ' amdgpu_plugin: GPU .* loaded .* BOs' img/restore.log)" -ge 4 ] || fail "not both GPUs of both tasks"
	finish
}
