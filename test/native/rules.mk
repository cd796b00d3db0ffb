# SPDX-License-Identifier: GPL-2.0-only
# The native front end of the simulator, and a CRIU that loads the plugin there (test/native).
CRIUS	:= $(patsubst %,$(NATIVE)/criu-%.so,3.17.1 3.18 3.19 4.0 4.1.1 4.2.1 4.3 newer strange)
NATIVE_PARTS := $(filter-out test/native/before.c test/native/criu_version.c test/native/test_%,$(wildcard test/native/*.c)) \
		$(addprefix test/lib/,criu_stub.c streamer.c raw_gem.c) selftest/raw_kfd.c selftest/raw_aql.c

$(NATIVE)/criu-3.17.1.so: VERSION_FLAGS := -DHOOKS=10
$(NATIVE)/criu-3.18.so: VERSION_FLAGS := -DHOOKS=10
$(NATIVE)/criu-3.19.so: VERSION_FLAGS := -DHOOKS=10 -DTAKES_MAPPING_FD
$(NATIVE)/criu-4.0.so: VERSION_FLAGS := -DHOOKS=12 -DTAKES_MAPPING_FD
$(NATIVE)/criu-4.1.1.so: VERSION_FLAGS := -DHOOKS=12 -DTAKES_MAPPING_FD -DHAS_INVENTORY
$(NATIVE)/criu-4.2.1.so: VERSION_FLAGS := -DHOOKS=13 -DTAKES_MAPPING_FD -DHAS_INVENTORY
$(NATIVE)/criu-4.3.so: VERSION_FLAGS := -DHOOKS=17 -DTAKES_MAPPING_FD -DHAS_INVENTORY -DHAS_OPTIONS
$(NATIVE)/criu-newer.so: VERSION_FLAGS := -DHOOKS=19 -DTAKES_MAPPING_FD -DHAS_INVENTORY -DHAS_OPTIONS
# Its table is one of something else.
$(NATIVE)/criu-strange.so: VERSION_FLAGS := -DHOOKS=10 -DTABLE_SIZE=8

SIM_TESTS := $(patsubst test/native/%.c,$(NATIVE)/%,$(wildcard test/native/test_*.c))

$(CRIUS): test/native/criu_version.c test/native/criu_exports.h test/lib/criu_symbols.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -fvisibility=hidden,$(FLAGS)) $(CFLAGS) $(VERSION_FLAGS) -Itest/lib -shared -o $@ $<

# The kernel's header wants drm/drm.h, which libdrm has elsewhere.
KERNEL_DRM = $(patsubst -I%,%,$(lastword $(DRM_CFLAGS)))
BUILD_HOST = @mkdir -p $(@D)/include; ln -sfn $(KERNEL_DRM) $(@D)/include/drm; \
	$(CC) -I$(@D)/include $(filter-out -fvisibility=hidden,$(FLAGS)) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Itest/lib -Iselftest \
	-rdynamic -o $@ $(NATIVE_PARTS)

$(NATIVE)/host: $(NATIVE_PARTS) $(wildcard test/native/*.h test/lib/*.h selftest/raw_*.h)
	$(BUILD_HOST) -ldl

# A reader of images that does not know the fields of shared buffers.
$(NATIVE)/criu-amdgpu-before.proto: criu-amdgpu.proto
	@mkdir -p $(@D)
	sed '/ object = 1001;/d;/ owner_pid = 1002;/d;/ gem_handles = 1004;/d;/ by_share_handle = 1004;/d' $< > $@

$(NATIVE)/criu-amdgpu-before.pb-c.c: $(NATIVE)/criu-amdgpu-before.proto
	protoc-c --proto_path=$(@D) --c_out=$(@D) $<

$(NATIVE)/before: test/native/before.c $(NATIVE)/criu-amdgpu-before.pb-c.c $(wildcard selftest/raw_kfd.*)
	@mkdir -p $(@D)/include; ln -sfn $(KERNEL_DRM) $(@D)/include/drm
	$(CC) $(filter-out -fvisibility=hidden,$(FLAGS)) -Itest/lib -Iselftest -I$(@D) -I$(@D)/include $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< \
		$(NATIVE)/criu-amdgpu-before.pb-c.c selftest/raw_kfd.c -lprotobuf-c

# With the simulator in it instead of preloaded: sanitizers want to come before every library.
$(NATIVE)/host-linked: $(NATIVE_PARTS) $(wildcard test/native/*.h test/lib/*.h selftest/raw_*.h) $(SIM)/amdgpu_sim.a
	$(BUILD_HOST) -Wl,--whole-archive $(SIM)/amdgpu_sim.a -Wl,--no-whole-archive -ldl -lm

# The simulator by itself, under libdrm and under plain ioctls.
$(NATIVE)/test_%: test/native/test_%.c test/native/sim_test.h test/sim/native/amdgpu_sim.h \
		$(wildcard test/lib/tests.* selftest/raw_kfd.*) $(SIM)/amdgpu_sim.a
	@mkdir -p $(@D)/include; ln -sfn $(KERNEL_DRM) $(@D)/include/drm
	$(CC) $(filter-out -fvisibility=hidden,$(FLAGS)) -Itest/sim/native -Itest/lib -Iselftest -I$(@D)/include $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) \
		-rdynamic -o $@ $< test/lib/tests.c selftest/raw_kfd.c -Wl,--whole-archive $(SIM)/amdgpu_sim.a -Wl,--no-whole-archive \
		-ldrm_amdgpu -ldrm -lcmocka -ldl -lm

# With a recipe, make looks at the archive again after it was made.
$(SIM)/amdgpu_sim.a: sim ;

sim: $(MACHINES)
	@$(MAKE) --no-print-directory -s -C test/sim/native O=$(abspath $(SIM)) TOPOLOGIES=$(abspath $(MACHINES)) CFLAGS="$(CFLAGS)" LDFLAGS="$(LDFLAGS)"

native: $(PLUGIN) sim $(NATIVE)/host $(NATIVE)/before $(SIM_TESTS) $(NATIVE)/contract $(CRIUS)
native-linked: $(PLUGIN) sim $(NATIVE)/host-linked $(SIM_TESTS) $(NATIVE)/contract $(CRIUS)

# Stock ROCm programs with dumps and restores on the true drivers; the first run builds roots with ROCm.
check-rocm:
	@test/setup
	@test/vm/run -R -k 6.1 -k 6.12 -k 7.2

.PHONY: check-rocm sim native native-linked
