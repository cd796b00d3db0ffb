# SPDX-License-Identifier: GPL-2.0-only
#
# Checks many files with many tools, on all processors. Scripts in bash read this file. They define
# look TOOL FILE, whose exit status is the verdict and whose output is the reason, and export its
# variables. A tool that is not installed fails.

try_all() { # TOOL FILE TOOL FILE...
	local log

	while [ $# -gt 0 ]; do
		log=$work/$1-${2//\//-}.log
		if look "$1" "$2" > "$log" 2>&1; then
			echo passed
		else
			echo failed
			{
				echo "$name: $1 $2: failed"
				sed 's/^/    /' "$log"
			} >&2
		fi
		shift 2
	done
}

# check_all NAME: reads lines of a tool and a file, each of which is one test. Prints the reasons of those
# that fail, and at the end one line of counts.
check_all() {
	local passed failed status

	export name=$1 work=$(mktemp -d)
	export -f look try_all
	trap 'rm -rf "$work"' EXIT
	xargs -P "$(nproc)" -n 16 bash -c 'try_all "$@"' try_all > "$work/verdicts"
	status=$?
	passed=$(grep -c passed "$work/verdicts")
	failed=$(grep -c failed "$work/verdicts")
	echo "$passed passed, $failed failed"
	[ $status -eq 0 ] && [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
