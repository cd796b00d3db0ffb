# SPDX-License-Identifier: GPL-2.0-only
# Measures on the simulator how near the plugin comes to the slower of copy engine and storage (test/bench).
BENCH_BIN   := $(BUILD)/bench/bench
BENCH_PARTS := $(filter-out %/stub_cuda.c %/below.c,$(wildcard test/bench/*.c)) $(addprefix test/native/,client.c client_vmem.c simulator.c task.c workload.c) $(addprefix test/lib/,criu_stub.c raw_gem.c) selftest/raw_kfd.c selftest/raw_aql.c
BENCH_WRAPS := -Wl,--wrap=amdgpu_create_bo_from_user_mem,--wrap=sdma_open

$(BENCH_BIN): $(BENCH_PARTS) $(wildcard test/lib/*.h test/bench/*.h test/native/*.h selftest/raw_*.h) $(BUILD)/objects.a
	@mkdir -p $(@D)/include
	ln -sfn $(patsubst -I%,%,$(lastword $(DRM_CFLAGS))) $(@D)/include/drm
	$(CC) -I$(@D)/include $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Itest/native -Itest/lib -Iselftest -o $@ \
		$(BENCH_PARTS) $(BUILD)/objects.a $(BENCH_WRAPS) $(LIBS) -ldl

# In place of a CUDA device, for machines without one.
$(BUILD)/bench/stub/libcuda.so.1: test/bench/stub_cuda.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -shared -Wl,-soname,libcuda.so.1 -o $@ $<

# Tells the time of the plugin from that of the simulator.
$(BUILD)/bench/below.so: test/bench/below.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -shared -o $@ $< -ldl

bench: native $(BENCH_BIN) $(BUILD)/bench/below.so
	@BUILD=$(BUILD) test/bench/run
	$(if $(BENCH),,@BUILD=$(BUILD) test/bench/parallel restore)
	$(if $(BENCH),,@BUILD=$(BUILD) test/bench/parallel dump)
	$(if $(BENCH),,@BUILD=$(BUILD) test/bench/sharing)

bench-smoke: native $(BENCH_BIN) $(BUILD)/bench/stub/libcuda.so.1
	@BUILD=$(BUILD) test/bench/smoke

# With the copy engine of a CUDA device.
bench-cuda: sim $(BENCH_BIN)
	@BUILD=$(BUILD) test/bench/cuda

.PHONY: bench bench-cuda bench-smoke
