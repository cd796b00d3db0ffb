# SPDX-License-Identifier: GPL-2.0-only
#
# What demonstrations begin with. They are told on the second serial port. Every step is one of lib.sh's, so a
# step that fails ends the demonstration.
work=/scratch/demo
mkdir -p "$work"
cd "$work" || exit 1
exec > scenario.log 2>&1
. /opt/vm/guest/lib.sh
set -eEu
trap 'why "${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND"' ERR
PS4='+ ${EPOCHREALTIME: -9:6} ${FUNCNAME[0]-}:$LINENO: '
set -x

tell() { echo "$*" > /dev/ttyS1; } # not held open: the process would inherit it
client_says() { tell "    $line"; }
# What the plugin itself logged, less CRIU's time stamps and process ids, and less the render nodes.
plugin_says() {
	sed -n '/render node/d; s/^([0-9.]*) *\([0-9]*: \)\?\(amdgpu_plugin: .*\)/    \2/p' "$1" > /dev/ttyS1
}

# The images of a dump, the end of the process, and its return.
dump_and_restore() {
	local before

	before=$(state "$pid")
	tell "criu dump -t $pid"
	dump img "$pid"
	gone "$pid"
	plugin_says img/dump.log
	tell "Images of GPUs that it used:"
	find img -name 'amdgpu-[kp]*.img' -size +8c -printf '    %s bytes  %f\n' > /dev/ttyS1
	nothing_left
	tell "The process is dead, and the device holds nothing of it."
	tell
	tell "criu restore"
	restore img
	plugin_says img/restore.log
	same_state "$before"
	tell "It is back as process $pid with the same files and mappings."
}
