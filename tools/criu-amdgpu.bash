# SPDX-License-Identifier: GPL-2.0-only
#
# Completion of criu-amdgpu for bash.

_criu_amdgpu() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		check | show | verify | fit | selftest) command=${COMP_WORDS[i]} && break ;;
		esac
	done
	case $before in
	-D | --images-dir | -L | --libdir | -t | --topology)
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		return
		;;
	esac
	case $command:$word in
	:-*) mapfile -t COMPREPLY < <(compgen -W "--help --version" -- "$word") ;;
	:*) mapfile -t COMPREPLY < <(compgen -W "check show verify fit selftest" -- "$word") ;;
	check:-*) mapfile -t COMPREPLY < <(compgen -W "--images-dir --libdir --quiet" -- "$word") ;;
	check:*) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word") ;;
	show:-*) mapfile -t COMPREPLY < <(compgen -W "--json" -- "$word") ;;
	verify:-*) mapfile -t COMPREPLY < <(compgen -W "--quiet" -- "$word") ;;
	selftest:-*)
		mapfile -t COMPREPLY < <(compgen -W "--images-dir --libdir --gpu --size --limit --report --keep --quick --force --json" -- "$word")
		;;
	fit:-*) mapfile -t COMPREPLY < <(compgen -W "--topology --quiet" -- "$word") ;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	esac
}

complete -o filenames -F _criu_amdgpu criu-amdgpu
