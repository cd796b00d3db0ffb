# SPDX-License-Identifier: GPL-2.0-only
#
# Steps of the tests of the Debian package.

passed=0
failed=0

# proves SENTENCE COMMAND...: one test.
proves() {
	local sentence=$1 log=$logs/$((passed + failed)).log

	shift
	if "$@" > "$log" 2>&1 < /dev/null; then
		passed=$((passed + 1))
		echo "ok $sentence"
	else
		failed=$((failed + 1))
		echo "FAILED $sentence"
		tail -n 25 "$log" | sed 's/^/    /'
	fi
}

sum_up() {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# same_packages A B: both folders have the same packages, byte by byte.
same_packages() {
	local package

	[ "$(cd "$1" && ls ./*.deb)" = "$(cd "$2" && ls ./*.deb)" ] || return
	for package in "$1"/*.deb; do
		cmp "$package" "$2/${package##*/}" || return
	done
}

# installs FILE...: the package has these files.
installs() { # PACKAGE FILE...
	local package=$1 list file status=0

	shift
	list=$(dpkg-deb --fsys-tarfile "$package" | tar --list)
	for file; do
		grep -qx "\.$file" <<< "$list" || { echo "not in the package: $file"; status=1; }
	done
	return $status
}
