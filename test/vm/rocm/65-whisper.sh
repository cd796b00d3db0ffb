# SPDX-License-Identifier: GPL-2.0-only
#
# Stock whisper.cpp 1.9.5 on stock HIP 6.4.3, with a model of tools/make-whisper.c. Its text depends on the sound and on all that it
# has written before, so the end of a text shows whether parts of the model or of the context are lost.

scenario_rocm_whisper() { # long
	machine one
	/opt/vm/bin/make-whisper model.bin
	GGML_CUDA_DISABLE_GRAPHS=1 program=whisper_client start_client --model model.bin --texts 2
	come_back
	then_machine=one-other come_back
	finish
}
