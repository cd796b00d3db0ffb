# SPDX-License-Identifier: GPL-2.0-only
#
# The examples of the manual page are real output: runs their commands, and compares. Read by run.

# The page's commands, each with its output. The page folds long lines; four blanks continue one.
man_examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/{/^\.Bd/,/^\.Ed/{/^\./d; p}}' man/criu-amdgpu.1 |
		sed ':more; N; $!b more; s/\n    \{1,\}\([^ ]\)/ \1/g'
}

# What is different on each machine and in each run. libhsakmt's shared file is there if something has used it before.
same_everywhere() {
	sed -e '/hsakmt_shared_mem: /d' -e "s,$work/bin/criu,/usr/sbin/criu,; s,$PWD/build/amdgpu_plugin.so,/usr/lib/criu/amdgpu_plugin.so," \
		-e "s/\<process $holder\>/process 4242/; s/Linux [0-9][^ ]*/Linux RELEASE/; s/([0-9.]* s, [^)]*\/s)/(TIME)/" \
		-e "s/taken [0-9-]* [0-9:]* UTC/taken TIME/; s/plugin [0-9][0-9.]*$/plugin VERSION/"
}

page_workload=2x1M,3x12K:G,1x64K:U,1x1M:W,1x4K:Q,events=2

# The directories and the process that the page names: "images" of a dump, "damaged" ones, the topology of
# "other-machine", and process 4242, which has several KFD contexts.
make_examples() {
	mkdir "$work/page" && cd "$work/page" || exit 1
	(cd "$OLDPWD" && on one dump "$work/page/images" "$page_workload") || exit 1
	files_img 16 1 2 > images/files.img
	cp -r images damaged
	printf '\1' | dd of=damaged/amdgpu-pages-1-07cd.img bs=1 seek=$((8 + 1048576 + 17)) conv=notrunc status=none
	cd "$OLDPWD" || exit 1
	topology one-other
	ln -s "$tree" "$work/page/other-machine"
	cp "$work/hold" "$work/python3"
}

# run_example COMMAND: runs the command as a user with the installed package would type it
run_example() {
	local shell=(bash -c "${1//4242/$holder}") tree=$work/one

	[[ $1 != *" check "*4242* ]] || tree=$work/tree
	(cd "$work/page" && PATH=$work/bin:$OLDPWD/build:$PATH CRIU_LIBS_DIR=$OLDPWD/build AMDGPU_SIM_MACHINE=$tree AMDGPU_SIM_KNOBS=kernel=6.18 \
		LD_PRELOAD=$OLDPWD/build/sim/libamdgpu_sim.so "${shell[@]}") 2>&1 < /dev/null
}

examples() {
	local command

	topology one
	edited_machine tree ''
	make_examples
	hold_by "$work/python3" "$work/kfd" "$work/node"
	kfd_process "$work/tree" "$holder"
	mkdir "$kfd/context_1"
	while read -r command; do
		echo "$ $command"
		run_example "$command"
	done < <(man_examples | sed -n 's/^\$ //p') | same_everywhere > "$work/page/output"
	man_examples | same_everywhere > "$work/page/expected"
	release
	# A page without examples would agree.
	if [ "$(grep -c '^\$ criu-amdgpu [a-z]' "$work/page/expected")" -ge 7 ] && diff "$work/page/expected" "$work/page/output"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "tool: the output (>) is not that of the examples in man/criu-amdgpu.1"
	fi
}
