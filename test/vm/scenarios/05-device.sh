# SPDX-License-Identifier: GPL-2.0-only
#
# Tests that the simulated device keeps the kernel contract. All other scenarios rest on that. No CRIU.

# accept MOST: at most MOST tests may skip because this machine is too small for them.
accept() {
	/opt/vm/bin/kfd_accept > accept.log 2>&1 ||
		fail "$(grep '^not ok' accept.log | head -n 3 | tr '\n' ' ')$(tail -n 1 accept.log)"
	has_line accept.log '^[1-9][0-9]* passed, 0 failed$'
	[ "$(grep -c '^skip ' accept.log)" -le "$1" ] || fail "$(grep '^skip ' accept.log | tr '\n' ' ')"
}

scenario_device_contract() { # oldest
	machine one
	accept 3
}

scenario_device_contract_eight() { # oldest, long
	machine eight
	accept 1
}

# The second GPU is a partition of the first one's device.
scenario_device_contract_partitions() { # oldest, long
	cp -r /opt/vm/machines/eight partitions
	sed -i 's/^location_id 17152$/location_id 25345/' partitions/nodes/*/properties
	machine "$work/partitions"
	accept 0
}
