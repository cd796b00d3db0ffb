# SPDX-License-Identifier: GPL-2.0-only
# The tests of src/FOLDER are in test/unit/FOLDER, those of the files at the top are in test/unit.
TESTS := $(patsubst %.c,$(BUILD)/unit/%,$(notdir $(wildcard test/unit/test_*.c test/unit/*/test_*.c)))
vpath test_%.c test/unit $(sort $(dir $(wildcard test/unit/*/test_*.c)))

# Each unit test is linked with the whole plugin, and with a CRIU of its own (test/unit/host.c).
$(BUILD)/unit/test_%: test_%.c test/unit/host.c test/criu_symbols.h $(wildcard test/unit/*.h) $(BUILD)/objects.a
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -Itest/unit -o $@ $< test/unit/host.c \
		-Wl,--whole-archive $(BUILD)/objects.a -Wl,--no-whole-archive $(LIBS) -lcmocka

$(BUILD)/objects.a: $(OBJECTS)
	rm -f $@
	$(AR) crs $@ $^

unit: $(PLUGIN) $(TESTS)
	@test/unit/run $(TESTS)

# Compiles, but does not link, for machines that this one is not.
cross: $(MESSAGES).h
	@test/unit/cross $(SOURCES)

.PHONY: unit cross
