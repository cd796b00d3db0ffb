# SPDX-License-Identifier: GPL-2.0-only
# make, make check, make demo, make install: see README.md.

PREFIX    ?= /usr
PLUGINDIR ?= $(PREFIX)/lib/criu
BUILD     ?= build
CFLAGS    ?= -O2 -g

NAME     := amdgpu_plugin
PLUGIN   := $(BUILD)/$(NAME).so
MESSAGES := $(BUILD)/criu-amdgpu.pb-c
SOURCES  := $(wildcard $(NAME)*.c)
OBJECTS  := $(SOURCES:%.c=$(BUILD)/%.o) $(MESSAGES).o
TESTS    := $(patsubst test/unit/%.c,$(BUILD)/unit/%,$(wildcard test/unit/test_*.c))

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wmissing-prototypes
DRM_CFLAGS := $(shell pkg-config --cflags libdrm_amdgpu 2>/dev/null)
# The C library's own checks want an optimizing compiler, hide calls from sanitizers, and may be chosen already.
FORTIFY  := $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),$(if $(findstring -fsanitize,$(CFLAGS))$(findstring \
	    _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENED := -fstack-protector-strong -fstack-clash-protection $(FORTIFY)
FLAGS    := -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -pthread $(WARNINGS) $(HARDENED) \
	    -Iinclude -I$(BUILD) $(DRM_CFLAGS)
LIBS     := -ldrm_amdgpu -ldrm -lprotobuf-c -lxxhash -pthread
# Lazy, so neither -z now nor -z defs: a CRIU or libdrm that lacks a function is noticed by who calls it. Missed at
# dlopen(), it would fail every dump and restore on that machine, also those of processes without a GPU.
LINK     := -shared -Wl,--as-needed,-z,lazy,-z,relro,-z,noexecstack,-z,text

all: $(PLUGIN)

$(PLUGIN): $(OBJECTS)
	$(CC) $(LINK) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/%.o: %.c $(MESSAGES).h
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(MESSAGES).o: $(MESSAGES).c
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(MESSAGES).c $(MESSAGES).h: criu-amdgpu.proto
	@mkdir -p $(BUILD)/unit
	protoc-c --c_out=$(BUILD) $<

# Each unit test is linked with the whole plugin, and with a CRIU of its own (test/unit/host.c).
$(BUILD)/unit/%: test/unit/%.c test/unit/host.c $(wildcard test/unit/*.h) $(BUILD)/objects.a
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -Itest/unit -o $@ $< test/unit/host.c \
		-Wl,--whole-archive $(BUILD)/objects.a -Wl,--no-whole-archive $(LIBS) -lcmocka

$(BUILD)/objects.a: $(OBJECTS)
	rm -f $@
	$(AR) crs $@ $^

# What the tests of the mapper share: machines, pairs of them, and another way to find the answer.
MAP_PARTS := $(filter-out test/map/map_pairs.c test/map/bench.c test/map/host.c,$(wildcard test/map/*.c))
TREES	  := $(BUILD)/topologies/pairs.tsv

$(BUILD)/unit/test_map_%: test/unit/test_map_%.c test/unit/host.c test/unit/host.h $(MAP_PARTS) \
		$(wildcard test/map/*.h) $(BUILD)/objects.a | $(TREES)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -Itest/unit -Itest/map -DTREES='"$(BUILD)/topologies"' \
		-o $@ $< test/unit/host.c $(MAP_PARTS) $(BUILD)/objects.a $(LIBS) -lcmocka

$(BUILD)/map-pairs: test/map/map_pairs.c
$(BUILD)/bench-map: test/map/bench.c
$(BUILD)/map-pairs $(BUILD)/bench-map: test/map/host.c $(MAP_PARTS) $(wildcard test/map/*.h) $(BUILD)/objects.a
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -Itest/map -o $@ $(filter %.c %.a,$^) $(LIBS)

$(TREES): test/data/topologies/trees.tar.zst test/data/topologies/pairs.tsv
	@mkdir -p $(@D)
	tar --zstd -xf $< -C $(@D)
	cp test/data/topologies/pairs.tsv $@

# Time and attempts of every pair of machines, and of random machines.
bench-map: $(BUILD)/bench-map $(TREES)
	$(BUILD)/bench-map $(BUILD)/topologies

# The native front end of the simulator, and a CRIU that loads the plugin there (test/native).
SIM	:= $(BUILD)/sim
NATIVE	:= $(BUILD)/native
CRIUS	:= $(patsubst %,$(NATIVE)/criu-%.so,3.17.1 4.1.1 4.2.1 4.3)
NATIVE_PARTS := $(filter-out test/native/criu_version.c test/native/pidfd.c test/native/test_%,$(wildcard test/native/*.c))

$(NATIVE)/criu-3.17.1.so: VERSION_FLAGS := -DHOOKS=10
$(NATIVE)/criu-4.1.1.so: VERSION_FLAGS := -DHOOKS=12 -DHAS_INVENTORY
$(NATIVE)/criu-4.2.1.so: VERSION_FLAGS := -DHOOKS=13 -DHAS_INVENTORY
$(NATIVE)/criu-4.3.so: VERSION_FLAGS := -DHOOKS=17 -DHAS_INVENTORY -DHAS_OPTIONS

$(CRIUS): test/native/criu_version.c test/native/criu_exports.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -fvisibility=hidden,$(FLAGS)) $(CFLAGS) $(VERSION_FLAGS) -shared -o $@ $<

# For valgrind.
$(NATIVE)/pidfd.so: test/native/pidfd.c $(NATIVE)/pidfd-helper
	$(CC) $(FLAGS) $(CFLAGS) -shared -o $@ $< -ldl

$(NATIVE)/pidfd-helper: test/native/pidfd.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CFLAGS) -DHELPER -o $@ $<

# The kernel's header wants drm/drm.h, which libdrm has elsewhere.
BUILD_HOST = @mkdir -p $(@D)/include; ln -sfn $(patsubst -I%,%,$(lastword $(DRM_CFLAGS))) $(@D)/include/drm; \
	$(CC) -I$(@D)/include $(filter-out -fvisibility=hidden,$(FLAGS)) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -rdynamic \
	-o $@ $(NATIVE_PARTS)

$(NATIVE)/host: $(NATIVE_PARTS) $(wildcard test/native/*.h)
	$(BUILD_HOST) -ldl

# With the simulator in it instead of preloaded: sanitizers want to come before every library.
$(NATIVE)/host-linked: $(NATIVE_PARTS) $(wildcard test/native/*.h) $(SIM)/amdgpu_sim.a
	$(BUILD_HOST) -Wl,--whole-archive $(SIM)/amdgpu_sim.a -Wl,--no-whole-archive -ldl

# The front end by itself, under libdrm.
$(NATIVE)/test_sim: test/native/test_sim.c test/native/sim_gpu.h test/sim/native/amdgpu_sim.h $(SIM)/amdgpu_sim.a
	@mkdir -p $(@D)
	$(CC) $(filter-out -fvisibility=hidden,$(FLAGS)) -Itest/sim/native $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -rdynamic \
		-o $@ $< -Wl,--whole-archive $(SIM)/amdgpu_sim.a -Wl,--no-whole-archive -ldrm_amdgpu -ldrm -lcmocka -ldl

$(SIM)/amdgpu_sim.a: sim

# Contents at the speed of the slower of copy engine and storage: measured on the simulator (test/bench).
BENCH_BIN   := $(BUILD)/bench/bench
BENCH_PARTS := $(wildcard test/bench/*.c) $(addprefix test/native/,client.c task.c workload.c) test/map/host.c
BENCH_WRAPS := -Wl,--wrap=amdgpu_create_bo_from_user_mem,--wrap=gpu_open

$(BENCH_BIN): $(BENCH_PARTS) $(wildcard test/bench/*.h test/native/*.h) $(BUILD)/objects.a
	@mkdir -p $(@D)/include
	ln -sfn $(patsubst -I%,%,$(lastword $(DRM_CFLAGS))) $(@D)/include/drm
	$(CC) -I$(@D)/include $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Itest/native -Itest/map -o $@ \
		$(BENCH_PARTS) $(BUILD)/objects.a $(BENCH_WRAPS) $(LIBS) -ldl

bench: native $(BENCH_BIN)
	@BUILD=$(BUILD) test/bench/run
	@BUILD=$(BUILD) test/bench/parallel

bench-smoke: sim $(BENCH_BIN)
	@BUILD=$(BUILD) test/bench/smoke

# Readers of bytes from outside, each with a target for libFuzzer; without a fuzzer, files are given to it (test/fuzz).
FUZZ_TARGETS := $(patsubst test/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_MAIN    ?= test/fuzz/replay.c

$(BUILD)/fuzz/%: test/fuzz/fuzz_%.c test/fuzz/host.c test/fuzz/mutate.c test/fuzz/replay.c \
		$(wildcard test/fuzz/*.h test/unit/*.h) $(BUILD)/objects.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Itest/fuzz -Itest/unit -rdynamic -o $@ $< test/fuzz/host.c \
		test/fuzz/mutate.c $(FUZZ_MAIN) -Wl,--whole-archive $(BUILD)/objects.a -Wl,--no-whole-archive \
		$(LIBS) -lcmocka

fuzz-targets: $(FUZZ_TARGETS)

# Each for FUZZ_SECONDS (60), one after the other.
fuzz:
	@test/fuzz/run

fuzz-replay:
	@test/fuzz/replay

sim:
	@$(MAKE) --no-print-directory -s -C test/sim/native O=$(abspath $(SIM)) CFLAGS="$(CFLAGS)" LDFLAGS="$(LDFLAGS)"

native: $(PLUGIN) sim $(NATIVE)/host $(NATIVE)/test_sim $(CRIUS)
native-linked: $(PLUGIN) sim $(NATIVE)/host-linked $(NATIVE)/test_sim $(CRIUS)
native-valgrind: native-linked $(NATIVE)/pidfd.so

unit: $(PLUGIN) $(TESTS)
	@test/unit/run $(TESTS)

# Compiles, but does not link, for machines that this one is not.
cross: $(MESSAGES).h
	@test/unit/cross $(SOURCES)

# Looks through the sources. TOOLS: some of cppcheck, gcc, clang-tidy.
analyse: $(MESSAGES).h
	@BUILD=$(BUILD) test/analyse $(TOOLS)

# Every call of the plugin fails once (test/faults). Calls are told apart by their lines, so none is inlined,
# and by their names, which checked ones have not.
FAULTS := $(BUILD)/faults

FAULTS_PARTS := $(filter-out test/faults/inject.c,$(wildcard test/faults/*.c))

$(FAULTS)/inject.so: test/faults/inject.c $(wildcard test/faults/*.h) include/kfd_criu.h $(NATIVE)/host
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -fPIC $(WARNINGS) -Iinclude $(DRM_CFLAGS) -I$(NATIVE)/include -O2 -g -shared -o $@ $<

$(FAULTS)/explore: $(FAULTS_PARTS) $(wildcard test/faults/*.h) $(BUILD)/$(NAME)_util.o
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^)

faults: native $(FAULTS)/inject.so $(FAULTS)/explore
	@$(MAKE) --no-print-directory -s BUILD=$(FAULTS) \
		CFLAGS="-O1 -g -fno-inline -fno-optimize-sibling-calls -D_FORTIFY_SOURCE=0" all

check-faults: faults
	@BUILD=$(BUILD) test/faults/run

# Sets up the machine, then runs every test: units here, the rest in the virtual machine.
check:
	@test/check

# CRIU and its tasks killed a hundred times and more (VM_SEED=, SEED= repeat a run).
check-kills:
	@test/native/kill 300 $(SEED)
	@VM_KILLS=100 VM_LIMIT=30000 test/vm/run killed-while-paused killed-dump killed-restore killed-task

demo:
	@test/setup
	@$(MAKE) all
	@test/vm/demo

install: $(PLUGIN)
	install -D -m 0755 $(PLUGIN) $(DESTDIR)$(PLUGINDIR)/$(NAME).so

uninstall:
	rm -f $(DESTDIR)$(PLUGINDIR)/$(NAME).so

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $(SOURCES) include/*.h test/unit/*.[ch] test/map/*.[ch] test/native/*.[ch] test/bench/*.[ch] test/fuzz/*.[ch] test/faults/*.[ch] test/sim/native/*.[ch]

-include $(OBJECTS:.o=.d)

.PHONY: all faults check-faults fuzz fuzz-replay fuzz-targets unit sim native native-linked native-valgrind cross analyse bench bench-smoke \
	bench-map check check-kills demo install uninstall clean format
