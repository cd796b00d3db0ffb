# SPDX-License-Identifier: GPL-2.0-only
# Every call of the plugin fails once (test/faults). Lines identify calls, so nothing is inlined. Names identify them, too,
# so _FORTIFY_SOURCE, which renames functions, is off.
FAULTS	     := $(BUILD)/faults
INJECT_PARTS := test/faults/inject.c test/faults/left.c
FAULTS_PARTS := $(filter-out $(INJECT_PARTS),$(wildcard test/faults/*.c))

$(FAULTS)/inject.so: $(INJECT_PARTS) $(wildcard test/faults/*.h) include/kernel/kfd.h $(NATIVE)/host
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) -Iinclude $(DRM_CFLAGS) \
		-I$(NATIVE)/include -O2 -g -shared -o $@ $(INJECT_PARTS)

$(FAULTS)/explore: $(FAULTS_PARTS) $(wildcard test/faults/*.h) $(BUILD)/$(NAME)_util.o
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^)

faults: native $(FAULTS)/inject.so $(FAULTS)/explore
	@$(MAKE) --no-print-directory -s BUILD=$(FAULTS) \
		CFLAGS="-O1 -g -fno-inline -fno-optimize-sibling-calls -D_FORTIFY_SOURCE=0" all

check-faults: faults
	@BUILD=$(BUILD) test/faults/run

.PHONY: faults check-faults
