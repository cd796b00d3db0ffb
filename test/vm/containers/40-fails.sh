# SPDX-License-Identifier: GPL-2.0-only
#
# Checkpoints and restores of containers that must fail. The runtime's exit status reports the failure, the user reads
# the plugin's reason, and no part of a job is left.

gem='Error (amdgpu_plugin): .*GEM'

# user_reads RUNTIME FILE LOG PATTERN: the runtime must have printed the line. An older runtime prints only the path of
# CRIU's log.
user_reads() {
	case $(command "$1" --version) in
	'runc version 1.1.'* | 'crun version 1.21'*)
		has_line "$2" "$3"
		has_line "$3" "$4"
		;;
	*) has_line "$2" "$4" ;;
	esac
}

# A refused job continues, and can be checkpointed as soon as it has removed the reason.
scenario_container_refused() {
	machine one
	bundle job
	job_args job --gem-bo
	runc_run
	ready runc job
	! runc checkpoint --image-path "$work/images" --work-path "$work/logs" job || fail "runc saved what cannot be saved"
	user_reads runc runc.log "$work/logs/dump.log" "$gem"
	runs
	verify
	runc kill job USR2
	wait_line client.log "client 1: dropped"
	before=$(job_state)
	runc_cycle
	finish
}

podman_refused() { # RUNTIME
	machine one
	podman_job "$1" -- --gem-bo
	! podman container checkpoint job 2> said.txt || fail "podman saved what cannot be saved"
	user_reads "$1" said.txt "$(podman_log dump)" "$gem"
	ends_well
}

scenario_container_podman_refused() { # long
	crun_checkpoints
	podman_refused crun
}

scenario_container_podman_runc_refused() { # long
	podman_refused runc
}

# The file of options is on the host. podman does not pass its environment to CRIU at a checkpoint.
scenario_container_options() { # long
	crun_checkpoints
	machine one
	podman_job crun
	mkdir -p /etc/criu
	echo 'fw-ver-check = perhaps' > /etc/criu/amdgpu_plugin.conf
	! podman container checkpoint job 2> said.txt || fail "a wrong option is overlooked"
	user_reads crun said.txt "$(podman_log dump)" 'option /etc/criu/amdgpu_plugin.conf:1: fw-ver-check: "perhaps" is not a switch'
	echo 'parallel-restore = 0' > /etc/criu/amdgpu_plugin.conf
	unchanged
	podman container checkpoint job
	stopped
	podman container restore --keep job
	returned podman job
	filled_by task "$(podman_log restore)"
	rm /etc/criu/amdgpu_plugin.conf
	finish
}

# restore_refused PATTERN: the restore from the images of a job of runc must fail with this line.
restore_refused() {
	! runc_restore || fail "this restore cannot have succeeded"
	has_line logs/restore.log "Error (amdgpu_plugin): .*$1"
	gone "$pid"
	nothing_left
	no_violation
	runc delete -f job || true
}

scenario_container_broken_image() { # long
	local image

	machine one
	runc_job
	runc_checkpoint
	damage images
	restore_refused 'cannot load BO .*checksum mismatch'
	cp good "$image"
	runc_restore
	returned runc job
	finish
}

# An archive without one of the plugin's images.
scenario_container_incomplete_archive() { # long
	crun_checkpoints
	machine one
	podman_job crun
	podman container checkpoint --export "$work/job.tar.zst" job
	stopped
	podman rm -f job
	mkdir archive
	tar -C archive --zstd -xf job.tar.zst
	rm archive/checkpoint/amdgpu-pages-*
	tar -C archive --zstd -cf incomplete.tar.zst .
	! podman --runtime crun container restore --import "$work/incomplete.tar.zst" 2> said.txt || fail "restored without contents"
	user_reads crun said.txt "$(podman_log restore)" 'amdgpu-pages-'
	nothing_left
	no_violation
	podman rm -f -a
	podman --runtime crun container restore --import "$work/job.tar.zst"
	returned podman job
	finish
}

# config.json of the restore differs from that of the dump: the cgroup does not allow /dev/kfd, or allows another number, or does
# not allow the GPU.
scenario_container_wrong_rules() { # long
	local major forbidden

	machine one
	major=$((0x$(stat -c %t /dev/kfd)))
	forbidden="/dev/kfd: cannot open; the device cgroup must allow c $major:0 rw"
	runc_job
	runc_checkpoint
	cp job/config.json good.json
	no_rule job /dev/kfd
	restore_refused "$forbidden"
	cp good.json job/config.json
	edit job '(.linux.resources.devices[] | select(.major == $major)).major = 511' --argjson major $major
	restore_refused "$forbidden"
	cp good.json job/config.json
	no_rule job /dev/dri/renderD128
	restore_refused 'the image has 1 GPUs, but the task can use 0'
	cp good.json job/config.json
	runc_restore
	returned runc job
	finish
}

# while_killed LOG WORDS CMD...: kills CRIU when its log has these words. The runtime must report a failure.
while_killed() {
	local log=$1 words=$2 runtime

	rm -f "$log" status
	("${@:3}" && echo 0 > status || echo 1 > status) &
	runtime=$!
	until_true grep -q -s "$words" "$log" || fail "no \"$words\" in $log"
	pkill -9 -x criu || fail "CRIU has ended already: $(tail -n 1 "$log")"
	gone "$runtime"
	[ "$(cat status)" != 0 ] || fail "the runtime says that all is well"
}

# CRIU is killed in the plugin's hook, where the parasite waits for commands, so that the job cannot be lost
# (scenarios/55-killed.sh). The engine is so slow that the hook does not end before.
scenario_container_killed_dump() {
	machine one
	runc_job
	ask_gpu "speed 300000"
	AMDGPU_PARALLEL_DUMP=0 while_killed logs/dump.log ': paused process' \
		runc checkpoint --image-path "$work/images" --work-path "$work/logs" job
	! grep -q 'its contents are saved while CRIU goes on' logs/dump.log || fail "runc did not pass its environment to CRIU"
	lives_on
	ask_gpu "speed 0"
	! compgen -G 'images/amdgpu-kfd-*.img' > /dev/null || fail "a killed dump left $(echo images/amdgpu-kfd-*.img)"
	unchanged
	rm -r images
	runc_cycle
	finish
}

scenario_container_killed_restore() { # long
	machine one
	runc_job
	runc_checkpoint
	ask_gpu "speed 3000000"
	while_killed logs/restore.log 'amdgpu_plugin: map: saved' runc_restore
	nothing_left
	no_violation
	ask_gpu "speed 0"
	runc delete -f job || true
	runc_restore
	returned runc job
	finish
}

# A GPU with another minor needs a node that the restored /dev lacks, and the task cannot make it.
scenario_container_read_only_dev() { # long
	local other

	machine one
	bundle job
	edit job '(.mounts[] | select(.destination == "/dev")).options += ["ro"]'
	runc_run
	ready runc job
	runc_checkpoint
	machine one-other
	gets_other_node
	restore_refused "$other: cannot make the node.*/dev is read-only; mount"
}

# The container's /dev is a directory of the host's disk, so CRIU makes no nodes there. The task must make the node, which
# fails if CRIU has no CAP_MKNOD.
scenario_container_no_mknod() { # long
	local any_minor=1 other

	machine one
	bundle job
	dev_folder job
	runc_run
	ready runc job
	runc_checkpoint
	machine one-other
	gets_other_node
	without=(setpriv --bounding-set -mknod)
	restore_refused "$other: cannot make the node.*: CRIU has no CAP_MKNOD; run CRIU with it, or mount"
	without=()
	runc_restore
	returned runc job
	has_line logs/restore.log "$other: .*made the node"
	finish
}

# dev_folder NAME: config.json mounts a tmpfs with the present nodes as /dev. With a mounted /dev, runc gives the job
# the host's /dev/null.
dev_folder() {
	mkdir dev
	mount -t tmpfs -o mode=755 dev dev
	trap 'umount -l dev' EXIT
	mkdir dev/{pts,shm,mqueue}
	cp -a /dev/{null,zero,full,random,urandom,tty,kfd,dri} dev/
	edit "$1" '.process.args = ["/bin/sh", "-c", "exec /job < /dev/null > /dev/null 2>&1"] |
		(.mounts[] | select(.destination == "/dev")) |=
		{ destination: "/dev", type: "none", source: $dev, options: ["bind", "rw"] }' --arg dev "$work/dev"
}

# At the restore the cgroup allows all eight GPUs, and the container's /dev has one. The task must hide the other seven,
# without a /sys/fs/cgroup.
scenario_container_no_cgroup_mount() { # long
	needs_svm
	machine eight
	bundle job /dev/dri/renderD133
	edit job 'del(.mounts[] | select(.destination == "/sys/fs/cgroup"))'
	runc_run
	ready runc job
	sees_gpus 1
	runc_checkpoint
	cp job/config.json good.json
	device job /dev/dri/renderD12[89] /dev/dri/renderD13[0-24-5]
	restore_refused 'the image has 1 GPUs, and the task also sees .*, as the task does not see its cgroup (cgroup v2); hide them'
	cp good.json job/config.json
	runc_restore
	returned runc job
	sees_gpus 1
	finish
}

# The original still runs, so a restored copy cannot get the same queues.
scenario_container_original_runs() { # long
	machine one
	runc_job
	runc checkpoint --leave-running --image-path "$work/images" --work-path "$work/logs" job
	unchanged
	cp -a job copy
	! runc restore --bundle copy --image-path "$work/images" --work-path "$work/copy-logs" --detach copy < /dev/null \
		> /dev/null 2>&1 || fail "two jobs have the same queues"
	has_line copy-logs/restore.log "$busy"
	runc delete -f copy || true
	unchanged
	runc_back_after_its_end
}

busy='Error (amdgpu_plugin): .*another process has an SDMA queue with the same number .* the original, which still runs.*; end it'

# podman prints only the last error that crun found in CRIU's log, and the plugin repeats its reason there. crun 1.21
# does not read the log, which exists until the container is removed.
scenario_container_podman_original_runs() { # long
	crun_checkpoints
	machine one
	podman_job crun
	podman container checkpoint --leave-running --export "$work/job.tar.zst" job
	unchanged
	! podman --runtime crun container restore --import "$work/job.tar.zst" --name copy 2> said.txt ||
		fail "two jobs have the same queues"
	has_line "$(podman_log restore)" "$busy"
	case $(crun --version) in
	'crun version 1.21'*) ;;
	*) has_line said.txt "${busy#* }" ;;
	esac
	unchanged
	podman rm -f copy
	finish
}

# The archive's cgroup rules name the old minor. podman cannot change them, and runc sets them before the restore.
scenario_container_podman_runc_import_elsewhere() { # long
	machine one
	podman_job runc
	podman container checkpoint --export "$work/job.tar.zst" job
	stopped
	podman rm -f job
	machine one-other
	! podman --runtime runc container restore --keep --import "$work/job.tar.zst" 2> said.txt || fail "restored onto a forbidden GPU"
	has_line said.txt 'criu failed'
	has_line "$(podman_log restore)" 'the image has 1 GPUs, but the task can use 0'
	nothing_left
	no_violation
	podman rm -f job
	machine one
	podman --runtime runc container restore --import "$work/job.tar.zst"
	returned podman job
	finish
}
