# SPDX-License-Identifier: GPL-2.0-only
#
# llama.cpp's own test of operations: it computes each case on the emulated GPU and on the processor, and compares. The cases of
# an operation are too many for one machine, so each scenario is a part of them and has a machine of its own. Only cases that
# ROCm supports count.

# ops_agree OPERATIONS [PARAMETERS]: all cases of these operations, which a comma separates. PARAMETERS is a regular expression
# that chooses cases. The line of the scenario has the numbers. Dimensions of 10,000 and more are left out: the emulated machine
# takes minutes for such a case, and llama.cpp computes SOFT_MAX of rows that long in a cooperative kernel, which needs the
# global wave sync that the emulated GPU has not. The model's have some hundred.
ops_agree() {
	local status=0

	machine one
	rocm_before
	GGML_CUDA_DISABLE_GRAPHS=1 timeout 900 /usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-backend-ops test -b ROCm0 \
		-o "$1" -p "^(?!.*[[,=][0-9]{5}).*(${2-})" > ops.txt 2> ops.err || status=$?
	count_cases > seen.txt
	no_violation
	[ $status != 124 ] || fail "cut off after 900 s: $(< seen.txt)"
	[ $status = 0 ] || fail "status $status: $(< seen.txt), $(grep -m 1 FAIL ops.txt || tail -n 1 ops.err)"
	grep -q passed seen.txt || fail "no case ran"
}

# "MUL_MAT: 12 of 12 passed" for each operation. The word behind a case has colours.
count_cases() {
	sed 's/\x1b\[[0-9;]*m//g' ops.txt | awk '
		/: OK$|: FAIL$/ && match($0, /[A-Z0-9_]+\(/) {
			name = substr($0, RSTART, RLENGTH - 1)
			all[name]++
			passed[name] += /: OK$/
		}
		END {
			for (name in all) {
				printf "%s%s: %d of %d passed", separator, name, passed[name], all[name]
				separator = ", "
			}
			print ""
		}'
}

# What the model of 30-llama.sh uses, in its types: F16, F32 and Q8_0. With flash attention it uses FLASH_ATTN_EXT in place of
# SOFT_MAX. Matrices have up to 999 rows, and tensors of CONT up to 999 columns, because the emulated machine takes minutes for
# larger ones.
scenario_rocm_llama_ops_sums() { # long
	ops_agree ADD,MUL
}

scenario_rocm_llama_ops_norm() { # long
	ops_agree RMS_NORM
}

scenario_rocm_llama_ops_rows() { # long
	ops_agree GET_ROWS,SET_ROWS '^type=(f16|f32|q8_0),|type_dst=(f16|f32|q8_0),'
}

scenario_rocm_llama_ops_copies() { # long
	ops_agree CPY,CONT '^type=(f16|f32),ne=.[0-9]{1,3},|type_src=(f16|f32),type_dst=(f16|f32),'
}

scenario_rocm_llama_ops_swiglu() { # long
	ops_agree SWIGLU
}

scenario_rocm_llama_ops_rope() { # long
	ops_agree ROPE 'type=(f16|f32),ne_a=.(128|80),.*,mode=0,'
}

scenario_rocm_llama_ops_soft_max() { # long
	ops_agree SOFT_MAX
}

scenario_rocm_llama_ops_mul_f16() { # long
	ops_agree MUL_MAT 'type_a=f16,type_b=(f16|f32),m=[0-9]{1,3},n=[0-9]{1,2},k=[0-9]{1,4},'
}

scenario_rocm_llama_ops_mul_q8() { # long
	ops_agree MUL_MAT 'type_a=q8_0,type_b=f32,m=[0-9]{1,3},n=[0-9]{1,2},k=[0-9]{1,4},'
}

scenario_rocm_llama_ops_attention() { # long
	ops_agree FLASH_ATTN_EXT 'hsk=64,hsv=64,nh=4,nr23=.1,1.,kv=(113|512),.*type_K=f16'
}
