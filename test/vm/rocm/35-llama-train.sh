# SPDX-License-Identifier: GPL-2.0-only
#
# Training by llama.cpp's own program: it computes gradients of all weights on the GPU, and changes the weights there (AdamW).
# Each step depends on all steps before it, so the weights at the end show whether parts of the model, of the gradients or of
# the optimizer's moments are lost.

steps=16

# Writes 130 words, always the same, of 7 tokens each. A context has 256 tokens, and begins 128 behind the one before: four
# contexts are for the training, in four steps each, and the fifth is for the validation.
write_text() {
	awk 'BEGIN {
		split("ba de fi go ku la me ni po ru sa te vi wo zu", s)
		for (x = 1; i < 130; i++) {
			x = (x * 1103 + 12345) % 65536
			printf "%s%s ", s[int(x / 16) % 15 + 1], s[int(x / 256) % 15 + 1]
		}
	}' > text.txt
}

start_training() { # WEIGHTS
	rocm_before
	GGML_CUDA_DISABLE_GRAPHS=1 start "$1.log" llama-finetune -m model.gguf -f text.txt -o "$1" -ngl 99 -fa off -fit off \
		-c 256 -b 64 -ub 64 -t 1 -epochs 1 -lr 1e-3
}
# The line of the progress has returns in place of ends.
has_done() { grep -q "train: .*data=0*$(($1))/" "$2.log.err"; } # STEP WEIGHTS
weights_end() { # WEIGHTS
	gone "$pid"
	no_violation
	[ -s "$1" ] || fail "no weights: $(tail -c 300 "$1.log.err")"
}

# Killed in the middle, and restored.
scenario_rocm_llama_train() { # long
	machine one
	/opt/vm/bin/make-model f32 model.gguf
	write_text
	start_training whole
	weights_end whole
	! cmp -s model.gguf whole || fail "the weights have not changed"
	start_training weights
	until_true unless_dead has_done steps/2 weights || fail "no step $((steps / 2)): $(tail -c 300 weights.log.err)"
	go_away img
	! has_done steps-1 weights || fail "the training was almost complete before the dump"
	restore img
	weights_end weights
	cmp whole weights || fail "other weights than without an interruption"
}
