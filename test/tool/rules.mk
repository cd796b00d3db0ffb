# SPDX-License-Identifier: GPL-2.0-only
# Images for the tests of criu-amdgpu. The tool's stand-in for CRIU serves here, too.
$(BUILD)/tool/make_image: test/tool/make_image.c test/unit/foreign_image.h test/unit/wire.h $(BUILD)/tools/host.o $(BUILD)/objects.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -I. -Itest/unit $(CPPFLAGS) $(CFLAGS) -o $@ $< $(BUILD)/tools/host.o $(BUILD)/objects.a $(LIBS)

$(BUILD)/tool/other_kernel.so: test/tool/other_kernel.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -fvisibility=default -shared -o $@ $<
