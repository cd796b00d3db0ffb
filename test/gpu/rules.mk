# SPDX-License-Identifier: GPL-2.0-only
# The emulated GPU of the virtual machine: build/gpu/amdgpu-device, build/gpu/make-firmware, and build/gpu/gfx90a.co
# with kernels that run on it.
GPU := $(BUILD)/gpu

# Names of registers, packets and tables come from the kernel's source package. LINUX=DIR: another tree.
LINUX_SOURCE := /usr/src/linux-source-6.12.tar.xz
ifdef LINUX
LINUX_TREE   := $(LINUX)
else
LINUX_TREE   := $(GPU)/linux
LINUX_READY  := $(LINUX_TREE)/.ready
endif
AMD          := $(LINUX_TREE)/drivers/gpu/drm/amd
# The headers expect that integer types are known.
GPU_FLAGS    := -std=gnu11 -D_GNU_SOURCE -include stdint.h $(WARNINGS) -Itest/gpu -Itest/gpu/gcn -Itest/sim/native -Itest/lib -I$(GPU) \
		-isystem $(AMD)/include -isystem $(AMD)/amdgpu -isystem $(AMD)/amdkfd

GPU_GCN      := $(patsubst test/gpu/gcn/%.c,$(GPU)/%.o,$(wildcard test/gpu/gcn/*.c))
GPU_MODEL    := $(patsubst test/gpu/%.c,$(GPU)/%.o,$(filter-out test/gpu/main.c test/gpu/make_firmware.c,$(wildcard test/gpu/*.c))) \
		$(GPU_GCN)
vpath %.c test/gpu test/gpu/gcn

# The processor's vector instructions run 64 lanes: those that processors have since 2013, so that the program runs on another
# machine, too. No product and no sum are merged that the GPU's code does not merge, and no flag of an exception is read.
GCN_TARGET   := $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine)),-march=x86-64-v3)
$(GPU_GCN): CFLAGS += -O3 $(GCN_TARGET) -ffp-contract=off -fno-trapping-math

gpu: $(GPU)/amdgpu-device $(GPU)/make-firmware $(GPU)/gfx90a.co

# As make-listing does.
$(GPU)/gfx90a.co: test/data/kernels/gfx90a.cl
	@mkdir -p $(@D)
	$(Q)clang -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -O2 -o $@ $<

$(GPU)/amdgpu-device: $(GPU)/main.o $(GPU_MODEL)
	$(call SHOW,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lm

$(GPU)/make-firmware: $(GPU)/make_firmware.o
	$(call SHOW,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^

$(GPU)/%.o: %.c $(LINUX_READY)
	@mkdir -p $(@D)
	$(call SHOW,CC)
	$(Q)$(CC) $(GPU_FLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(GPU)/asic_mi210.o: $(GPU)/names_mi210.inc
$(GPU)/asic_mi300x.o: $(patsubst %,$(GPU)/names_%.inc,gc_9_4_3 nbio_7_9_0 sdma_4_4_2 mmhub_1_8_0)

# BLOCK:HEADER. A row is { REG(GC, mmCP_HQD_ACTIVE), "mmCP_HQD_ACTIVE" }. Chips of the same name in two blocks have a
# file for each header. Registers in far segments have no names.
$(GPU)/names_mi210.inc: NAMES := GC:gc/gc_9_0 MMHUB:mmhub/mmhub_1_7 NBIO:nbio/nbio_7_4 MP0:mp/mp_13_0_2 \
	OSSSYS:oss/osssys_4_2_0 SDMA0:sdma/sdma_4_4_0
$(GPU)/names_gc_9_4_3.inc: NAMES := XCC:gc/gc_9_4_3
$(GPU)/names_nbio_7_9_0.inc: NAMES := NBIO:nbio/nbio_7_9_0
$(GPU)/names_sdma_4_4_2.inc: NAMES := ENGINE:sdma/sdma_4_4_2
$(GPU)/names_mmhub_1_8_0.inc: NAMES := AID:mmhub/mmhub_1_8_0

$(GPU)/names_%.inc: $(LINUX_READY)
	@mkdir -p $(@D)
	$(call SHOW,GEN)
	$(Q)for name in $(NAMES); do \
		sed -n "s/^#define \(\(mm\|reg\)[A-Za-z0-9_]*\)_BASE_IDX  *[0-3]$$/{ REG($${name%%:*}, \1), \"\1\" },/p" \
			$(AMD)/include/asic_reg/$${name#*:}_offset.h; \
	done > $@

# Only what is needed: all register headers of the driver are 400 MiB.
LINUX_HEADERS := include/*.h include/ivsrcid/*/*.h include/asic_reg/gc/gc_9_0_*.h include/asic_reg/mmhub/mmhub_1_7_*.h \
	include/asic_reg/mp/mp_13_0_2_*.h include/asic_reg/nbio/nbio_7_4_offset.h include/asic_reg/oss/osssys_4_2_0_*.h \
	include/asic_reg/sdma/sdma_4_4_0_*.h include/asic_reg/gc/gc_9_4_3_*.h include/asic_reg/mmhub/mmhub_1_8_0_offset.h \
	include/asic_reg/nbio/nbio_7_9_0_*.h include/asic_reg/sdma/sdma_4_4_2_offset.h amdgpu/soc15d.h amdgpu/vega10_sdma_pkt_open.h amdkfd/kfd_pm4_*.h

$(GPU)/linux/.ready: $(LINUX_SOURCE) test/gpu/rules.mk
	@mkdir -p $(@D)
	$(call SHOW,GEN)
	$(Q)tar -xJf $< -C $(@D) --strip-components=1 --wildcards --no-wildcards-match-slash \
		$(patsubst %,'*/drivers/gpu/drm/amd/%',$(LINUX_HEADERS))
	$(Q)touch $@

$(LINUX_SOURCE):
	@echo "$@ is missing: run test/setup, or give LINUX=DIR with an unpacked kernel" >&2; exit 1

# Tests of the model, without QEMU and without a driver.
GPU_TESTS := $(patsubst test/gpu/unit/%.c,$(GPU)/unit/%,$(wildcard test/gpu/unit/test_*.c))

$(GPU)/unit/test_%: test/gpu/unit/test_%.c $(wildcard test/gpu/unit/*.h test/gpu/*.h test/lib/tests.*) $(GPU_MODEL)
	@mkdir -p $(@D)
	$(call SHOW,CC)
	$(Q)$(CC) $(GPU_FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< test/lib/tests.c $(GPU_MODEL) -lcmocka -lm

gpu-unit: $(GPU_TESTS)
	@test/unit/run $(GPU_TESTS)

-include $(wildcard $(GPU)/*.d)

.PHONY: gpu gpu-unit
