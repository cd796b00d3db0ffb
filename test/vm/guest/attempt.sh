# SPDX-License-Identifier: GPL-2.0-only
#
# One scenario after the other, for process 1: of the guest (runner), or of the namespaces on real hardware
# (test/hardware/world).

# attempt NAME SECONDS: runs the scenario in a folder of its own, for so long at most, and ends what it has left running. The
# signal does not reach process 1 and this shell. Sets $code and $why.
attempt() {
	SECONDS=0
	mkdir -p "/scratch/$1"
	timeout -k 5 "$2" setsid -w /opt/vm/guest/scenario "$1" \
		> "/scratch/$1/scenario.log" 2>&1 < /dev/null 3>&- 9>&-
	code=$?
	why=
	[ ! -f "/scratch/$1/why.txt" ] || why=$(< "/scratch/$1/why.txt")
	if [ $code != 0 ] && [[ $1 == container-* ]]; then
		timeout -k 5 120 /opt/vm/guest/containers-fail "/scratch/$1" > /dev/null 2>&1 < /dev/null 3>&- 9>&-
	fi
	kill -9 -1 2> /dev/null # there may be none
	while wait -n 2> /dev/null; [ $? != 127 ]; do :; done
}

# Prints the result of the attempt.
result() { # NAME
	case $code in
	0) echo "ok $1 $SECONDS $(cat "/scratch/$1/seen.txt" 2> /dev/null)" ;;
	77) echo "skip $1 $why" ;;
	124 | 137) echo "failed $1 $SECONDS still at it: $(tail -n 1 "/scratch/$1/scenario.log")" ;;
	*) echo "failed $1 $SECONDS ${why:-$(tail -n 1 "/scratch/$1/scenario.log")}" ;;
	esac
}

# keep_logs NAME DIR: copies all logs of the attempt there, but no images.
keep_logs() {
	mkdir -p "$2"
	(cd "/scratch/$1" && cp -r --parents $(find . -xdev -name '*.log' -o -name '*.err' -o -name '*.txt') "$2/")
	dmesg > "$2/dmesg.txt"
	sync
}
