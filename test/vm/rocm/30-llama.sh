# SPDX-License-Identifier: GPL-2.0-only
#
# Stock llama.cpp 0.7.0 on stock HIP 6.4.3, with a model of tools/make-model.c. At temperature 0 its text is always the same,
# and each word depends on all words before it. So the text shows whether parts of the model or of the context are lost.

words=100 # of a whole text; the prompt is the first one

# start_llama TYPE TEXT [ARG...]: llama.cpp writes to TEXT. It reads the prompt token by token, because that needs the simplest
# kernels, unless an ARG is another -ub.
start_llama() {
	/opt/vm/bin/make-model "$1" model.gguf
	rocm_before
	GGML_CUDA_DISABLE_GRAPHS=1 start "$2.log" bash -c 'exec llama-completion "$@" > "$0"' "$2" -m model.gguf -ngl 99 \
		-fa off -fit off -c 4096 -ub 1 -t 1 --no-warmup --temp 0 -no-cnv -n $((words - 1)) -p a "${@:3}"
	until_true exists "$2"
}
exists() { [ -e "$1" ]; }

# writes TEXT COUNT: TEXT has so many words.
writes() { until_true unless_dead has_words "$@" || fail "$1 has $(wc -w < "$1") words: $(tail -n 1 "$1.log.err")"; }
has_words() { [ "$(wc -w < "$1")" -ge "$2" ]; }
unless_dead() {
	"$@" && return 0
	no_violation
	alive "$pid" || fail "llama.cpp ended: $(tail -qn 1 ./*.err)"
	return 1
}

# ends TEXT: llama.cpp writes the whole text, and ends.
ends() {
	gone "$pid"
	no_violation
	[ "$(wc -w < "$1")" = $words ] || fail "$1 has $(wc -w < "$1") words: $(tail -n 1 "$1.log.err")"
}

same_text() { cmp -s "$1" "$2" || fail "$1 is \"$(< "$1")\", $2 is \"$(< "$2")\""; } # TEXT TEXT

# The text of a run without interruption, in the file "whole".
write_whole() { # TYPE [ARG...]
	start_llama "$1" whole "${@:2}"
	ends whole
	has_varied_text whole
}
has_varied_text() { [ "$(tr ' ' '\n' < "$1" | sort -u | wc -l)" -gt $((words / 2)) ] || fail "the text repeats itself: $(< "$1")"; }

# Dumps and kills llama.cpp in the middle of its text.
stop_in_text() { # [ARG...]
	writes text 8
	go_away img "$@"
	in_text text
}
in_text() { ! has_words "$1" $words || fail "the text was complete before the dump"; }

now() { echo "${EPOCHREALTIME/./}"; } # in microseconds

# Killed after about eight words, and restored.
scenario_rocm_llama() { # long
	local cold back before
	machine one
	write_whole f16
	cold=$(now)
	start_llama f16 text
	writes text 2
	cold=$(($(now) - cold))
	stop_in_text
	before=$(wc -w < text)
	back=$(now)
	restore img
	writes text $((before + 1))
	back=$(($(now) - back))
	ends text
	same_text whole text
	echo "a word $((cold / 1000)) ms after the start, $((back / 1000)) ms after the restore" > seen.txt
}

# Killed in the middle of the text, and restored, perhaps on $then_machine: the text is that of a run without interruption.
interrupted_llama() { # TYPE [ARG...]
	machine one
	write_whole "$@"
	start_llama "$1" text "${@:2}"
	stop_in_text
	[ -z "${then_machine-}" ] || machine "$then_machine"
	restore img
	ends text
	same_text whole text
}

scenario_rocm_llama_quantised() { # long
	interrupted_llama q8_0
}

# A prompt of 20 words is read at once, which needs matrix instructions: rocBLAS has the kernels for F16. llama.cpp prints the
# prompt as one word.
prompt="bade figo kula meni poru sate viwo zuha baha deba figu kufi lago menu pola ruba sasa tego viwu zuni"
scenario_rocm_llama_prompt() { # long
	local words=41

	interrupted_llama f16 -ub 512 -p "$prompt"
}

# On another GPU, with another gpu_id.
scenario_rocm_llama_move() { # long
	then_machine=one-other interrupted_llama f16
}

# The job runs on after the dump, and so does its copy when the job has ended. A copy needs the files as they were.
scenario_rocm_llama_leave_running() { # long
	machine one
	start_llama f16 text
	writes text 8
	keep_files
	dump img "$pid" --leave-running --action-script "$work/keep-files"
	in_text kept/text
	ends text
	cp text whole
	has_varied_text whole
	nothing_left
	put_files
	restore img
	ends text
	same_text whole text
}

# Writes the action script that keeps the files of llama.cpp as they are at the dump.
keep_files() {
	mkdir kept
	printf '#!/bin/sh\n[ "$CRTOOLS_SCRIPT_ACTION" != post-dump ] || cp %s/text %s/text.log.err %s/kept\n' \
		"$work" "$work" "$work" > keep-files
	chmod +x keep-files
}
put_files() { cat kept/text > text && cat kept/text.log.err > text.log.err; }

# A page of the context is lost: with checksums the restore is refused, without them the text is another one.
scenario_rocm_llama_context() { # long
	machine one
	start_llama f16 text
	keep_files
	stop_in_text --action-script "$work/keep-files"
	image=$(echo img/amdgpu-pages-*)
	restore img
	ends text
	cp text whole
	find_context
	put_files
	dd if=/dev/zero of="$image" bs=4096 seek="$context" oflag=seek_bytes count=1 conv=notrunc status=none
	! try_restore img || fail "a restore without a page of the context"
	plugin_error img/restore.log "cannot load BO .*checksum mismatch"
	nothing_left
	AMDGPU_CHECKSUM=0 restore img
	ends text
	! cmp -s whole text || fail "the text is the same without a page of the context"
}

# Sets $context to the place of the keys and values in $image. They are so large, 4096 tokens with 128 halves in 2 layers,
# that they have a BO of their own. The tool tells place and size of a BO that has another byte.
find_context() {
	local at=8 said good # behind the header

	while [ $at -lt "$(stat -c %s "$image")" ]; do
		good=$(dd if="$image" bs=1 skip=$at count=1 status=none | od -An -tu1)
		flip $((good ^ 255))
		said=$(criu-amdgpu verify img 2>&1) && fail "the tool sees no difference at $at"
		flip "$good"
		[[ $said =~ ([0-9]+)\ bytes,\ at\ offset\ ([0-9]+) ]] || fail "the tool says: $said"
		context=${BASH_REMATCH[2]}
		[ "${BASH_REMATCH[1]}" != $((4096 * 128 * 2 * 2 * 2)) ] || return 0
		at=$((BASH_REMATCH[2] + BASH_REMATCH[1]))
	done
	fail "no BO has the size of the context"
}
flip() { printf "\\x$(printf %x "$1")" | dd of="$image" bs=1 seek="$at" conv=notrunc status=none; } # BYTE

# The layers are on two GPUs, one each, and the context with them.
scenario_rocm_llama_two() { # long
	local before

	machine two
	write_whole f16
	start_llama f16 text
	stop_in_text
	before=("$(dispatches 0)" "$(dispatches 1)")
	restore img
	ends text
	[ "$(dispatches 0)" -gt "${before[0]}" ] && [ "$(dispatches 1)" -gt "${before[1]}" ] || fail "only one GPU computes"
	same_text whole text
}
dispatches() { # GPU
	ask_gpu "gpu $1 counters"
	[[ $answer =~ dispatches=([0-9]+) ]]
	echo "${BASH_REMATCH[1]}"
}

# A server is dumped between two requests, and gives the same answer to the same request.
scenario_rocm_llama_server() { # long
	local words=40

	machine one
	start_server
	ask_server first
	has_varied_text first
	go_away img
	restore img
	ask_server second
	no_violation
	same_text first second
}

# In the middle of an answer to a client that stays connected. The client is not in the dump, and gets the rest of its answer.
scenario_rocm_llama_server_connected() { # long
	local words=60 reader

	machine one
	start_server
	ask_server whole
	http "POST /completion" "$(request ',"stream":true')" > answer.txt &
	reader=$!
	until_true has_pieces 10 || fail "no answer: $(head -c 300 answer.txt)"
	go_away img --tcp-established --network-lock nftables
	! has_pieces $words || fail "the answer was complete before the dump"
	restore img --tcp-established
	wait "$reader" || fail "the connection is lost: $(tail -c 300 answer.txt)"
	no_violation
	pieces | tr -d '\n' > answer
	echo >> answer
	same_text whole answer
}
# The server sends a word at a time.
pieces() { grep -o '"content":"[^"]*"' answer.txt | sed 's/.*:"//; s/"$//'; }
has_pieces() { [ "$(pieces | grep -c .)" -ge "$1" ]; } # COUNT

# The client closes its connection in the middle of the dump. Another program then has the server's port, so a restore fails until
# that ends. The server comes back, finds the connection closed, and answers the next client.
scenario_rocm_llama_server_left() { # long
	local words=60 reader dump server listener at_restore=--tcp-established

	machine one
	start_server
	server=$pid
	ask_server first
	http "POST /completion" "$(request ',"stream":true')" > answer.txt &
	reader=$!
	until_true has_pieces 10 || fail "no answer: $(head -c 300 answer.txt)"
	dump img "$pid" --tcp-established --network-lock nftables &
	dump=$!
	until_true grep -qs 'amdgpu_plugin: .*its queues are stopped' img/dump.log || fail "the dump does not stop the queues"
	pkill -P "$reader" timeout || fail "the answer has ended before the dump"
	wait "$dump"
	! has_pieces $words || fail "the answer was complete before the dump"
	gone "$pid"
	nothing_left
	take_port
	listener=$pid pid=$server
	restore_stops
	has_line img/restore.log "Can't bind"
	kill "$listener"
	gone "$listener"
	restore img $at_restore
	ask_server second
	no_violation
	same_text first second
}
take_port() {
	start client.log perl -MIO::Socket::INET -e \
		'my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8080", ReuseAddr => 1, Listen => 1) or die $!; sleep'
	until_true unless_dead listens || fail "nothing listens"
}
listens() { grep -q ' 0100007F:1F90 00000000:0000 0A ' /proc/net/tcp; }

start_server() {
	/opt/vm/bin/make-model f16 model.gguf
	rocm_before
	GGML_CUDA_DISABLE_GRAPHS=1 start server.log llama-server -m model.gguf -ngl 99 -fa off -fit off -c 4096 -np 1 -t 1 \
		--no-warmup --host 127.0.0.1 --port 8080
	until_true unless_dead serves || fail "the server is not ready: $(tail -n 1 server.log.err)"
}
serves() { [[ $(http "GET /health") = *'"ok"'* ]]; }

# http REQUEST [BODY]: prints the answer, at whose end the server closes the connection.
http() {
	local body=${2-} connection

	exec {connection}<> /dev/tcp/127.0.0.1/8080 || return 1
	printf '%s HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$1" "${#body}" "$body" >&"$connection"
	timeout "$limit" cat <&"$connection"
	exec {connection}>&-
} 2> /dev/null

request() { echo '{"prompt":"'"$prompt"'","n_predict":'"$words"',"temperature":0,"cache_prompt":false'"${1-}}"; } # [MORE]

ask_server() { # TEXT
	local answer

	answer=$(http "POST /completion" "$(request)")
	[[ $answer =~ \"content\":\"([^\"]*)\" ]] || fail "the server says: $answer"
	echo "${BASH_REMATCH[1]}" > "$1"
	[ "$(wc -w < "$1")" = $words ] || fail "an answer of $(wc -w < "$1") words: $(< "$1")"
}
