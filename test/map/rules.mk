# SPDX-License-Identifier: GPL-2.0-only
# Parts of the mapper tests: synthetic machines, pairs of captured machines, and an oracle.
MAP_PARTS := $(wildcard test/map/*.c)
TREES	  := $(BUILD)/topologies/pairs.tsv

$(BUILD)/unit/test_map_%: test/unit/map/test_map_%.c $(UNIT_PARTS) $(UNIT_HEADERS) $(MAP_PARTS) \
		$(wildcard test/map/*.h) $(BUILD)/objects.a | $(TREES) $(MACHINES)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(UNIT_FLAGS) -Itest/map -DTREES='"$(BUILD)/topologies"' \
		-o $@ $< $(UNIT_PARTS) $(MAP_PARTS) $(BUILD)/objects.a $(LIBS) -lcmocka

$(TREES): test/data/topologies/trees.tar.zst test/data/topologies/pairs.tsv
	@mkdir -p $(@D)
	tar --zstd -xf $< -C $(@D)
	cp test/data/topologies/pairs.tsv $@
