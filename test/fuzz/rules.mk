# SPDX-License-Identifier: GPL-2.0-only
# Readers of bytes from outside, each with a target for libFuzzer; without a fuzzer, files are given to it (test/fuzz).
FUZZ_TARGETS := $(patsubst test/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_MAIN    ?= test/fuzz/replay.c

$(BUILD)/fuzz/%: test/fuzz/fuzz_%.c $(UNIT_PARTS) test/fuzz/host.c test/fuzz/mutate.c test/fuzz/replay.c \
		$(wildcard test/fuzz/*.h) $(UNIT_HEADERS) $(BUILD)/objects.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Itest/fuzz -Itest/unit -Itest/lib -rdynamic -o $@ $< $(UNIT_PARTS) test/fuzz/host.c \
		test/fuzz/mutate.c $(FUZZ_MAIN) -Wl,--whole-archive $(BUILD)/objects.a -Wl,--no-whole-archive \
		$(LIBS) -lcmocka

fuzz-targets: $(FUZZ_TARGETS)

# Each for FUZZ_SECONDS (60), one after the other.
fuzz:
	@test/fuzz/run

fuzz-replay:
	@test/fuzz/replay

.PHONY: fuzz fuzz-replay fuzz-targets
