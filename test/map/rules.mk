# SPDX-License-Identifier: GPL-2.0-only
# Parts of the mapper tests: synthetic machines, pairs of captured machines, and an oracle.
MAP_PARTS := $(filter-out test/map/map_pairs.c test/map/bench.c,$(wildcard test/map/*.c))
TREES	  := $(BUILD)/topologies/pairs.tsv

$(BUILD)/unit/test_map_%: test/unit/map/test_map_%.c $(UNIT_PARTS) $(UNIT_HEADERS) $(MAP_PARTS) \
		$(wildcard test/map/*.h) $(BUILD)/objects.a | $(TREES)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -Itest/unit -Itest/lib -Itest/map -DTREES='"$(BUILD)/topologies"' \
		-o $@ $< $(UNIT_PARTS) $(MAP_PARTS) $(BUILD)/objects.a $(LIBS) -lcmocka

$(BUILD)/map-pairs: test/map/map_pairs.c
$(BUILD)/bench-map: test/map/bench.c
$(BUILD)/map-pairs $(BUILD)/bench-map: test/lib/criu_stub.c $(MAP_PARTS) $(wildcard test/lib/*.h test/map/*.h) \
		$(BUILD)/objects.a
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -Itest/lib -Itest/map -o $@ $(filter %.c %.a,$^) $(LIBS)

$(TREES): test/data/topologies/trees.tar.zst test/data/topologies/pairs.tsv
	@mkdir -p $(@D)
	tar --zstd -xf $< -C $(@D)
	cp test/data/topologies/pairs.tsv $@

# Prints time and attempts of each pair of machines, and of synthetic machines.
bench-map: $(BUILD)/bench-map $(TREES)
	$(BUILD)/bench-map $(BUILD)/topologies

.PHONY: bench-map
