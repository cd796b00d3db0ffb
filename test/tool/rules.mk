# SPDX-License-Identifier: GPL-2.0-only
# Images for the tests of criu-amdgpu. The tool's stand-in for CRIU serves here, too.
TOOL_HOST := $(patsubst %,$(BUILD)/tools/%.o,host image_archive tar) $(BUILD)/objects.a

$(BUILD)/tool/make_image: test/tool/make_image.c test/unit/foreign_image.h test/unit/wire.h $(TOOL_HOST)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -I. -Itest/unit $(CPPFLAGS) $(CFLAGS) -o $@ $< $(TOOL_HOST) $(LIBS) -larchive

$(BUILD)/tool/other_kernel.so: test/tool/other_kernel.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -fvisibility=default -shared -o $@ $<
