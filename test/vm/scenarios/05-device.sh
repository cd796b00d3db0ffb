# SPDX-License-Identifier: GPL-2.0-only
#
# Tests that the driver keeps the kernel contract: test/contract has the rules. No CRIU.

# contract MOST: at most MOST rules may be skipped because of what they need of the machine. The report of the machine
# has the rules that differ from the native simulator, or that are not tried.
contract() {
	local status=0

	/opt/vm/bin/contract > contract.log 2>&1 || status=$?
	sed -n 's/^\(differs\|not tried\)/driver contract: \1/p' contract.log > /dev/ttyS1
	[ $status = 0 ] || fail "$(grep '^not ok' contract.log | head -n 3 | tr '\n' ' ')$(tail -n 1 contract.log)"
	has_line contract.log '^[1-9][0-9]* passed, 0 failed$'
	[ "$(grep -c '^skip .*: needs' contract.log)" -le "$1" ] || fail "$(grep '^skip .*: needs' contract.log | tr '\n' ' ')"
	forget_contract
}

scenario_device_contract() {
	machine one
	contract 5
}

scenario_device_contract_eight() { # long
	machine eight
	contract 2
}

# All GPUs are partitions of one device.
scenario_device_contract_partitions() { # long
	machine mi300x-cpx
	contract 2
}
