# SPDX-License-Identifier: GPL-2.0-only
#
# Contents that are written while a container runs again (dump-memory): the runtime waits for the result of CRIU. The
# option is in the file of options, because podman does not pass its environment to CRIU.

has_log() { dump_log=$("$@") && [ -s "$dump_log" ]; }

# begin_behind STATISTICS LOG COMMAND...: a checkpoint that CRIU cannot end, because its file of statistics is a FIFO
# without a reader. LOG: a command that prints the name of CRIU's log. Returns when the job runs. Sets $runtime.
begin_behind() {
	local job=$pid

	rm -f status
	start checkpoint.txt sh -c '"$@"; echo $? > status' - "${@:3}"
	runtime=$pid
	until_true has_log "$2" || fail "CRIU has no log"
	wait_line "$dump_log" "Writing stats"
	pid=$job
	runs
	verify
	alive "$runtime" || fail "the runtime has ended before all is written"
}

# behind IMAGES STATISTICS LOG COMMAND...: CRIU is killed before it has completed its images, and then it completes them.
behind() {
	local images=$1 statistics=$2

	mkdir -p /etc/criu "${statistics%/*}"
	echo 'dump-memory = 64M' > /etc/criu/amdgpu_plugin.conf
	mkfifo "$statistics"
	begin_behind "${@:2}"
	pkill -9 -x criu
	gone "$runtime"
	[ "$(cat status)" != 0 ] || fail "the runtime takes a killed CRIU for a success"
	! compgen -G "$images/amdgpu-kfd-*.img" > /dev/null || fail "a killed dump left a state image"
	lives_on
	rm -f "$dump_log"
	begin_behind "${@:2}"
	! compgen -G "$images/amdgpu-kfd-*.img" > /dev/null || fail "a state image before the end"
	cat "$statistics" > /dev/null
	gone "$runtime"
	[ "$(cat status)" = 0 ] || fail "the checkpoint failed: $(errors "$dump_log")"
	compgen -G "$images/amdgpu-kfd-*.img" > /dev/null || fail "the runtime has not waited for the state image"
	# runc leaves the FIFO. podman removes CRIU's statistics after a checkpoint.
	rm -f "$statistics" /etc/criu/amdgpu_plugin.conf
	unchanged
}

runc_log() { echo "$work/logs/dump.log"; }

scenario_container_runc_behind() { # long
	machine one
	runc_job
	behind "$work/images" "$work/logs/stats-dump" runc_log runc checkpoint --leave-running --image-path "$work/images" --work-path "$work/logs" job
	runc_back_after_its_end
}

dump_log_of_podman() { podman_log dump; }

# podman_behind RUNTIME
podman_behind() {
	local userdata

	[ "$1" != crun ] || crun_checkpoints
	machine one
	podman_job "$1"
	userdata=$(echo /scratch/podman/overlay-containers/*/userdata)
	behind "$userdata/checkpoint" "$userdata/stats-dump" dump_log_of_podman \
		podman container checkpoint --leave-running job
	podman_back_after_its_end
}

scenario_container_podman_behind() { # long
	podman_behind crun
}

scenario_container_podman_runc_behind() { # long
	podman_behind runc
}
