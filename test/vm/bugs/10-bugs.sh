# SPDX-License-Identifier: GPL-2.0-only
#
# Bugs of true drivers. Most are shown by a program of test/gpu/bugs. A scenario passes if its bug shows, and is skipped on a
# kernel that is sound. Each has a boot of its own, because a process that oopses may keep locks of the driver.

# shows PATTERN PROGRAM [ARG...]: runs the program, until it ends or the kernel oopses. The bug shows if what they say
# has the pattern.
shows() {
	local said

	echo 0 > /proc/sys/kernel/panic_on_oops
	/opt/vm/bin/"${@:2}" > said.log 2>&1 < /dev/null &
	until_true ended_or_oopsed $! || echo "the program does not end" >> said.log
	oopses >> said.log || true
	said=$(tr '\n' ' ' < said.log)
	[[ $said =~ $1 ]] || skip "the bug does not show: $said"
	echo "$said" > seen.txt
}

oopses() { dmesg | grep -E 'BUG:|RIP: 0010' | head -n 2 | sed 's/^\[[^]]*\] //'; }
ended_or_oopsed() { dead "$1" || [ -n "$(oopses)" ]; }

scenario_bug_waves_lost() { # long
	machine one
	shows 'its control stack is lost' waves_lost
}

scenario_bug_unpause_without_vm() { # long
	machine one
	shows 'RIP: .*amdgpu_amdkfd_gpuvm_get_process_page_dir' unpause_without_vm
}

scenario_bug_checkpoint_without_vm() { # long
	machine eight
	shows 'RIP: .*amdgpu_amdkfd_bo_mapped_to_dev' checkpoint_without_vm
}

# The copy engines stand still until the queue's buffers are mapped, so the page directory is cleared late. A kernel that is
# sound waits for that before it maps anything.
scenario_bug_clear_after_map() { # long
	! with_kernel '6.1.*' || skip "Linux 6.1 tests its copy engines meanwhile, and oopses because they stand still"
	options=${options/ vm_update_mode=3/}
	machine one
	mkfifo go
	exec 8<> go
	ask_gpu "hang on"
	/opt/vm/bin/clear_after_map 0 < go > said.log 2>&1 8>&- &
	pid=$!
	until_true mapped_or_waits || fail "the program neither maps its buffers nor waits: $(< said.log)"
	ask_gpu "hang off"
	echo go >&8
	gone "$pid"
	grep '1 of 1 queues did not run' said.log > seen.txt || skip "the bug does not show: $(tail -n 1 said.log)"
}
mapped_or_waits() { grep -q mapped said.log || grep -qs dma_fence /proc/$(pgrep -P "$pid")/stack; }

# The emulated GPU leaves such a copy out, and counts it.
scenario_bug_copy_of_nothing() { # long
	local answer

	options=${options/ vm_update_mode=3/}
	machine one
	/opt/vm/bin/copy_of_nothing > said.log 2>&1 || fail "$(< said.log)"
	# The close of the render node has waited for the copies.
	ask_gpu violations
	[ "${answer%%:*}" != "$known_violations" ] || skip "the bug does not show"
	[[ $answer = *"the driver copies 0 bytes"* ]] || fail "device: $answer"
	echo "$answer" > seen.txt
	forget_violations
}

# NUMA balancing moves pages of SVM ranges while RESUME maps them. Without it, restores succeed: all other scenarios.
scenario_bug_pages_move() { # long
	local n knobs=/sys/kernel/debug/sched/numa_balancing

	needs_svm
	machine one
	dumped_client
	echo 1 > /proc/sys/kernel/numa_balancing
	echo 1 > $knobs/scan_delay_ms
	echo 10 > $knobs/scan_period_min_ms
	echo 100 > $knobs/scan_period_max_ms
	for ((n = 0; n < 50; n++)); do
		if ! try_restore img; then
			plugin_error img/restore.log "cannot resume the queues, because the kernel has moved pages .*kernel.numa_balancing=0"
			return
		fi
		kill -9 "$pid"
		gone "$pid"
		nothing_left
	done
	skip "the bug does not show"
}
