# SPDX-License-Identifier: GPL-2.0-only
#
# Options that CRIU passes to the plugin, and options in the file. These scenarios test that they arrive. The unit
# tests test their effects.

# The plugin refuses before CRIU dumps anything, and the process runs on.
try_options() { # WORDS ARGUMENT...: the dump of any process fails, and says this
	local words=$1

	shift
	start sleep.log sleep 1000
	! try_dump img "$pid" "$@" || fail "a wrong option is overlooked"
	has_line img/dump.log "$words"
	alive "$pid" || fail "the process has ended"
	kill -9 "$pid"
	gone "$pid"
	rm -rf img
}

scenario_plugin_options() {
	criu --help 2>&1 | grep -q -- --plugin-option || skip "this CRIU has no options for plugins"
	try_options 'Error (amdgpu_plugin): option --plugin-option: numa-check: "maybe" is not a switch' \
		--plugin-option amdgpu_plugin.numa-check=maybe
	try_options 'Error (amdgpu_plugin): option --plugin-option: there is no option "no-such"' \
		--plugin-option amdgpu_plugin.no-such=1
	try_options 'Error (amdgpu_plugin): option --plugin-option: "amdgpu_plugin.numa-check" has no value' \
		--plugin-option amdgpu_plugin.numa-check
	try_options 'Error (amdgpu_plugin): option --plugin-option: copy-timeout: "1T" is not a number' \
		--plugin-option amdgpu_plugin.numa-check=0 --plugin-option other.numa-check=maybe \
		--plugin-option amdgpu_plugin.copy-timeout=1T
}

scenario_options_file() {
	mkdir -p /etc/criu
	printf 'numa-check = 0\nfw-ver-check = perhaps\n' > /etc/criu/amdgpu_plugin.conf
	try_options 'Error (amdgpu_plugin): option /etc/criu/amdgpu_plugin.conf:2: fw-ver-check: "perhaps" is not a switch'
	rm /etc/criu/amdgpu_plugin.conf
}

# The plugin follows a device-map in the file: the process gets a GPU that the mapper would not choose. The process
# has none of the GPUs on which it comes back, so its gpu_ids are not exchanged.
scenario_device_map() {
	machine eight 4,5,6,7
	start_client --gpus 1
	mkdir -p /etc/criu
	echo 'device-map = renderD128=renderD134' > /etc/criu/amdgpu_plugin.conf
	then_machine="eight 0,1,2,3" come_back
	has_line img1/restore.log 'amdgpu_plugin: map: saved GPU .*renderD128) -> .*renderD134)'
	rm /etc/criu/amdgpu_plugin.conf
	finish
}
