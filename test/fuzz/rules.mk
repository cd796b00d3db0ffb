# SPDX-License-Identifier: GPL-2.0-only
# A libFuzzer target for each reader of outside bytes. Without a fuzzer, replay.c gives it files (test/fuzz).
FUZZ_TARGETS := $(patsubst test/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_MAIN    ?= test/fuzz/replay.c

$(BUILD)/fuzz/%: test/fuzz/fuzz_%.c $(UNIT_PARTS) test/fuzz/host.c test/fuzz/mutate.c test/fuzz/replay.c \
		$(wildcard test/fuzz/*.h) $(UNIT_HEADERS) $(BUILD)/objects.a | $(MACHINES)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Itest/fuzz $(UNIT_FLAGS) -rdynamic -o $@ $< $(filter-out %/tests.o,$(UNIT_PARTS)) $(PARTS) test/fuzz/host.c \
		test/fuzz/mutate.c $(FUZZ_MAIN) -Wl,--whole-archive $(BUILD)/objects.a -Wl,--no-whole-archive \
		$(LIBS) -lcmocka

FUZZ_FAKED   := $(patsubst test/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(shell grep -lE '"(fake_gpu|restore)\.h"' test/fuzz/fuzz_*.c))

$(FUZZ_FAKED): $(FAKES)
$(FUZZ_FAKED): PARTS := $(FAKES) $(WRAP_ENGINE)

# Parts of the tool.
FUZZ_ARCHIVE := $(patsubst %,$(BUILD)/tools/%.o,image_archive tar)

$(BUILD)/fuzz/archive: $(FUZZ_ARCHIVE)
$(BUILD)/fuzz/archive: PARTS := $(FUZZ_ARCHIVE) -larchive

fuzz-targets: $(FUZZ_TARGETS)

# Each target for FUZZ_SECONDS (60), one after the other.
fuzz:
	@test/fuzz/run

fuzz-replay:
	@test/fuzz/replay

.PHONY: fuzz fuzz-replay fuzz-targets
