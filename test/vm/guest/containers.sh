# SPDX-License-Identifier: GPL-2.0-only
#
# Steps of the scenarios with containers: a bundle for runc, an image for podman and docker, a job in a container,
# and its end. They come on top of lib.sh's steps; the commands a user types are in the scenarios.

# What runc prints on standard error goes to runc.log. $without: a command that takes something away from it.
# A runtime that hangs ends like a CRIU that hangs: with the state of every process on the console.
without=()
runc() { bounded env "${without[@]}" runc --log "$work/runc.log" "$@"; }
podman() { bounded command podman "$@"; }

# The job's log is in a folder that containers mount as /log. log is client.log's place for lib.sh.
job_log() {
	[ -d log ] || { mkdir log && : > log/client.log && ln -s log/client.log client.log; }
}

# Prints the render nodes of the GPUs. Another driver may have render nodes, too.
gpu_nodes() { sed -n 's,^drm_render_minor \([1-9].*\),/dev/dri/renderD\1,p' /sys/class/kfd/kfd/topology/nodes/*/properties; }

# --- runc -------------------------------------------------------------------------------------

# bundle NAME [NODE...]: a bundle for runc whose job may use /dev/kfd and these render nodes, or all. bookworm's jq rounds
# numbers beyond 2^53, such as "unlimited".
bundle() {
	local name=$1 nodes=("${@:2}")

	[ ${#nodes[@]} -gt 0 ] || ! has_device || nodes=($(gpu_nodes))
	job_log
	mkdir "$name"
	cp -a /scratch/rootfs "$name/rootfs"
	command runc spec --bundle "$name"
	edit "$name" '
		.process.terminal = false | .process.args = ["/job"] | .root.readonly = false |
		.process.rlimits = [
			{ type: "RLIMIT_NOFILE", soft: 65536, hard: 65536 },
			{ type: "RLIMIT_MEMLOCK", soft: $most, hard: $most } ] |
		.mounts += [{ destination: "/log", type: "none", source: $log, options: ["bind", "rw"] }]' \
		--arg log "$work/log" --argjson most $((1 << 40))
	[ ! -e /dev/kfd ] || device "$name" /dev/kfd "${nodes[@]}"
}

# edit NAME FILTER [ARG...]: changes config.json with jq.
edit() {
	jq "$2" "$1/config.json" "${@:3}" > config.part
	mv config.part "$1/config.json"
}

# device NAME NODE...: config.json has the runtime make the nodes, and its cgroup allows them.
device() {
	local name=$1 node

	for node in "${@:2}"; do
		edit "$name" '
			.linux.devices += [{ path: $path, type: "c", major: $major, minor: $minor, fileMode: 438 }] |
			.linux.resources.devices += [
				{ allow: true, type: "c", major: $major, minor: $minor, access: "rwm" }]' \
			--arg path "$node" --argjson major $((0x$(stat -c %t "$node"))) \
			--argjson minor $((0x$(stat -c %T "$node")))
	done
}

# no_device NAME NODE...: takes both out again.
no_device() {
	local name=$1 node

	for node in "${@:2}"; do
		no_rule "$name" "$node"
		edit "$name" 'del(.linux.devices[] | select(.path == $path))' --arg path "$node"
	done
}

# The bundle job has been on machine one, and gets the GPU's node of this machine. Sets $other, the node.
gets_other_node() {
	no_device job /dev/dri/renderD128
	other=$(gpu_nodes)
	device job "$other"
}

# no_rule NAME NODE: the runtime makes the node, but its cgroup does not allow it.
no_rule() {
	edit "$1" '(.linux.devices[] | select(.path == $path)) as $device |
		del(.linux.resources.devices[] |
			select(.major == $device.major and .minor == $device.minor and .allow))' --arg path "$2"
}

# bind NAME PATH: config.json mounts what the host has there.
bind() {
	edit "$1" '.mounts += [{ destination: $path, type: "none", source: $path, options: ["rbind", "rw"] }]' \
		--arg path "$2"
}

job_args() { # NAME ARG...: of the client
	edit "$1" '.process.args = ["/job"] + $ARGS.positional' --args -- "${@:2}"
}

runc_run() { runc run --bundle job --detach job < /dev/null > /dev/null 2>&1; }

runc_job() { # a job that may use all GPUs, ready
	bundle job
	runc_run
	ready runc job
}

runc_checkpoint() {
	runc checkpoint --image-path "$work/images" --work-path "$work/logs" job
	stopped
}

runc_restore() {
	runc restore --bundle job --image-path "$work/images" --work-path "$work/logs" --detach job < /dev/null > /dev/null 2>&1
}

runc_cycle() {
	runc_checkpoint
	runc_restore
	returned runc job
}

# The job that ran on ends. Then its images restore.
runc_back_after_its_end() {
	finish
	nothing_left
	runc delete -f job
	runc_restore
	returned runc job
	finish
}

# --- podman -----------------------------------------------------------------------------------

# The image gpu:1, made once a machine.
podman_image() {
	job_log
	podman image exists gpu:1 || tar -C /scratch/rootfs -c . | command podman import -q - gpu:1
}

podman_devices() { # [NODE...]: sets $devices to podman's options for /dev/kfd and these render nodes, or all
	local node

	[ $# -gt 0 ] || set -- $(gpu_nodes)
	devices=(--device /dev/kfd)
	for node in "$@"; do
		devices+=(--device "$node")
	done
}

# podman_job RUNTIME [ARG...] [-- CLIENTARG...]: a job that may use all GPUs, ready.
podman_job() {
	local runtime=$1 options=() devices

	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	podman_image
	podman_devices
	podman --runtime "$runtime" run -d --name job "${options[@]}" "${devices[@]}" -v "$work/log:/log" gpu:1 /job "${@:2}"
	ready podman job "${@:2}"
}

podman_there_and_back() {
	podman container checkpoint job
	stopped
	podman container restore job
	returned podman job
}

# The job that ran on ends. Then its checkpoint restores.
podman_back_after_its_end() {
	finish
	nothing_left
	podman wait job
	podman container restore job
	returned podman job
	finish
}

podman_log() { ls -t /scratch/podman/overlay-containers/*/userdata/"$1".log | head -n 1; }

# --- docker -----------------------------------------------------------------------------------

docker() { bounded command docker "$@"; }

# daemon NAME WORDS CMD...: starts a daemon, which has said these words when this returns.
daemon() {
	: > "$1.log.err"
	start "$1.log" "${@:3}"
	wait_line "$1.log.err" "$2"
}

# docker_daemon [KEY=VALUE...]: containerd and docker as Debian starts them, and the image gpu:1, made once a machine.
# Networks of docker's own cost time, and CRIU does not save them.
docker_daemon() {
	job_log
	mkdir -p /etc/docker
	rm -f /run/docker.pid # of a killed daemon, whose number another process may have now
	jq -n '{ bridge: "none", iptables: false, ip6tables: false, experimental: true } + $ARGS.named' "$@" > /etc/docker/daemon.json
	daemon containerd 'containerd successfully booted' containerd
	daemon dockerd 'API listen on' dockerd --containerd=/run/containerd/containerd.sock
	command docker image inspect gpu:1 > /dev/null 2>&1 || tar -C /scratch/rootfs -c . | command docker import - gpu:1
}

# docker_job ARG... IMAGE COMMAND...: runs the job, ready. docker 28 cannot restore a container with a network of its own.
docker_job() {
	docker_daemon
	docker run -d --name job --network host --device /dev/kfd -v "$work/log:/log" "$@"
	ready docker job "$@"
}

# The checkpoint has ended the job, and docker has noticed it. Until then, `docker start` believes that the job runs.
docker_stopped() {
	stopped
	docker wait job
}

# docker_restored ARG... CONTAINER: as `docker start` does it. docker cannot upload a checkpoint as long as containerd has
# the copy that the checkpoint left. containerd deletes the copy later.
docker_restored() {
	until_true docker_started "$@"
	returned docker "${@:$#}"
}
docker_started() {
	docker start "$@" 2> said.txt && return
	grep -q 'upload checkpoint.*already exists' said.txt || fail "restore failed: $(cat said.txt) $(errors docker.log)"
	return 1
}

docker_checkpoints() { echo "/var/lib/docker/containers/$(command docker inspect -f '{{.Id}}' "$1")/checkpoints"; } # CONTAINER: prints their folder

# containerd deletes CRIU's log of a restore that fails, unless it is elsewhere. docker.log has that of the last dump or restore.
docker_keeps_log() { mkdir -p /etc/criu && echo "log-file $work/docker.log" > /etc/criu/runc.conf; }

# --- containerd -------------------------------------------------------------------------------

ctr() { bounded command ctr "$@"; }

# containerd alone, and the image gpu:1, made once a machine.
containerd_daemon() {
	job_log
	daemon containerd 'containerd successfully booted' containerd
	[ -n "$(command ctr images ls -q name==docker.io/library/gpu:1)" ] || docker_archive | command ctr images import -
}

# Prints an archive of the image as `docker save` makes it.
docker_archive() {
	mkdir image
	tar -C /scratch/rootfs -cf image/layer.tar .
	jq -n '{ architecture: "amd64", os: "linux", config: { Cmd: ["/bin/busybox", "sleep", "inf"] }, rootfs: { type: "layers", diff_ids: ["sha256:" + $sum] } }' \
		--arg sum "$(sha256sum < image/layer.tar | cut -d ' ' -f 1)" > image/config.json
	echo '[{ "Config": "config.json", "RepoTags": ["gpu:1"], "Layers": ["layer.tar"] }]' > image/manifest.json
	tar -C image -c .
}

# containerd_job ARG...: a job with these devices, ready.
containerd_job() {
	containerd_daemon
	ctr run -d --null-io --device /dev/kfd "$@" --mount "type=bind,src=$work/log,dst=/log,options=rbind:rw" \
		docker.io/library/gpu:1 job /job
	ready containerd job
}

# Removes the container, whose job has ended.
containerd_removed() {
	ctr task rm -f job || true # it says the exit status of the job
	ctr containers rm job
}

# --- Kubernetes' interface to containerd -------------------------------------------------------

# ask_cri CALL TEXT: makes a call as the kubelet does, by HTTP/2 with five bytes and a protobuf message.
ask_cri() {
	local size

	(cd /opt/vm/guest && protoc --encode "runtime.v1.$1Request" cri.proto) <<< "$2" > request
	size=$(printf %08x "$(stat -c %s request)")
	{ printf '\0%b' "\x${size:0:2}\x${size:2:2}\x${size:4:2}\x${size:6:2}" && cat request; } > call
	curl -sS -m "$limit" --http2-prior-knowledge --unix-socket /run/containerd/containerd.sock -H 'te: trailers' \
		-H 'content-type: application/grpc' --data-binary @call -D headers.txt -o answer "http://localhost/runtime.v1.RuntimeService/$1"
}

# cri CALL TEXT: the call must succeed. Sets $id to the only field of the answer.
cri() {
	ask_cri "$@"
	grep -q '^grpc-status: 0' headers.txt || fail "$1: $(grep grpc-message headers.txt)"
	id=$(tail -c +6 answer | (cd /opt/vm/guest && protoc --decode "runtime.v1.$1Response" cri.proto) | cut -d '"' -f 2)
}

# The images of a pod are in containerd's namespace of Kubernetes. containerd 2.1 asks the registry of a checkpoint's image for
# its manifest, also when it has it. So a registry on this machine answers this question.
pod_daemon() {
	local digest reply=$work/registry

	export CONTAINERD_NAMESPACE=k8s.io
	containerd_daemon
	ask_cri CheckpointContainer "container_id: 'none'"
	! grep -q '^grpc-status: 12' headers.txt || skip "this containerd has no CheckpointContainer"
	digest=$(command ctr images ls name==docker.io/library/gpu:1 | awk 'NR == 2 { print $3 }')
	ctr images tag docker.io/library/gpu:1 localhost:5000/gpu:1 "localhost:5000/gpu@$digest" \
		"$(containerd config dump | sed -n "s/^ *sandbox = '\(.*\)'/\1/p")"
	cat > "$reply" <<-EOF
		#!/bin/sh
		while read -r line && [ "\${line%?}" ]; do :; done
		printf '%s\r\n' 'HTTP/1.1 200 OK' 'Content-Type: application/vnd.docker.distribution.manifest.v2+json' \
			'Content-Length: $(command ctr content get "$digest" | wc -c)' 'Docker-Content-Digest: $digest' 'Connection: close' ''
	EOF
	chmod 755 "$reply"
	start registry.log busybox nc -ll -p 5000 -e "$reply"
}

# pod NAME IMAGE NODE: starts a pod in the host's network, and a container in it. Sets $pod and $container.
pod() {
	local id node devices= linux='linux { security_context { namespace_options { network: 2 pid: 1 } } }' config

	config="metadata { name: '$1' uid: '$1' namespace: 'default' } log_directory: '$work/pods' $linux"
	for node in /dev/kfd "$3"; do
		devices+=" devices { container_path: '$node' host_path: '$node' permissions: 'rwm' }"
	done
	cri RunPodSandbox "config { $config }"
	pod=$id
	cri CreateContainer "pod_sandbox_id: '$pod' sandbox_config { $config } config {
		metadata { name: 'job' } image { image: '$2' } command: '/job' log_path: 'job.log' $devices $linux
		mounts { container_path: '/log' host_path: '$work/log' } }"
	container=$id
	cri StartContainer "container_id: '$container'"
}

crun_checkpoints() { [ "$criu_version" != 3.17.1 ] || skip "the crun of this Debian is built without CRIU"; }

# --- the job ----------------------------------------------------------------------------------

# Sets $pid to the container's first process, as the host numbers it.
runc_pid() { pid=$(command runc state "$1" | jq .pid); }
# podman takes seconds to say it: the newest container's is in a file.
podman_pid() { pid=$(cat "$(ls -t /run/podman/overlay-containers/*/userdata/pidfile | head -n 1)"); }

docker_pid() { pid=$(command docker inspect -f '{{.State.Pid}}' "$1"); }
containerd_pid() { pid=$(command ctr task ls | awk -v name="$1" '$1 == name { print $2 }'); }

# Prints the folder of the job's cgroup.
job_cgroup() { echo "/sys/fs/cgroup$(cut -d : -f 3 "/proc/$pid/cgroup")"; }

# ready runc|podman|docker|containerd NAME [ARG...]: the job, which has these arguments, is ready; sets $pid, and $before.
ready() {
	"$1_pid" "$2"
	started+=("$pid")
	client='client 1:'
	case $* in *--tree*) client=tree ;; esac
	wait_line client.log "$client ready"
	before=$(job_state)
}

# What a restore must bring back; the host's numbers of processes and of the runtime's pipes are others afterwards.
job_state() { state "$pid" | sed 's/^process .*/process/; s/ pipe:.*/ pipe/'; }

# stopped: the checkpoint has ended the job, and the device holds nothing of it.
stopped() {
	gone "$pid"
	nothing_left
	no_violation
}

# returned runc|podman|docker|containerd NAME: the restored job has what it had, its queues run, and it verifies every byte.
returned() {
	"$1_pid" "$2"
	started+=("$pid")
	unchanged
}

unchanged() {
	local now

	now=$(job_state)
	[ "$now" = "$before" ] || fail "not as before: $(diff <(echo "$before") <(echo "$now") | grep '^[<>]' | head -n 4)"
	runs
	verify
	no_violation
}

# A job without a GPU: it answers SIGUSR1 into the log.
no_gpu_script='trap "echo answers >> /log/client.log" USR1; echo waits >> /log/client.log; while :; do sleep 1 & wait; done'

answers_without_gpu() {
	kill -USR1 "$pid"
	wait_line client.log answers
	kill -9 "$pid"
	gone "$pid"
}

# --- the end ----------------------------------------------------------------------------------

remove_containers() {
	local name mount

	rm -f /etc/criu/runc.conf
	# A killed CRIU leaves its view of the cgroups mounted.
	for mount in $(grep -o '/[^ ]*/\.criu\.[^ ]*' /proc/mounts | sort -ru); do
		umount -l "$mount"
	done
	for name in $(command runc list -q); do
		command runc delete -f "$name" || true
	done
	[ ! -d /scratch/podman/overlay-containers ] || command podman rm -f -a -t 0 || true
	! pidof -q dockerd || command docker ps -aq | xargs -r docker rm -f || true
	! pidof -q containerd || for name in $(command ctr containers ls -q); do
		command ctr task rm -f "$name" || true
		command ctr containers rm "$name"
	done
}

# Run after every scenario with containers that came to its end.
no_containers() {
	remove_containers
	[ -z "$(command runc list -q)" ] || fail "runc has containers left: $(command runc list -q)"
	criu_ends
}
