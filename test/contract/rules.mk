# SPDX-License-Identifier: GPL-2.0-only
# The rules of the contract on the native simulator. test/vm/client builds them for the virtual machine.
CONTRACT_PARTS := $(filter-out %/machine.c,$(wildcard test/contract/*.c)) selftest/raw_kfd.c test/lib/raw_gem.c

$(NATIVE)/contract: $(CONTRACT_PARTS) $(wildcard test/contract/*.h test/lib/raw_*.h selftest/raw_*.h) test/sim/native/amdgpu_sim.h $(SIM)/amdgpu_sim.a
	@mkdir -p $(@D)/include; ln -sfn $(KERNEL_DRM) $(@D)/include/drm
	$(CC) $(filter-out -fvisibility=hidden,$(FLAGS)) -Itest/sim/native -Itest/lib -Iselftest -I$(@D)/include $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) \
		-rdynamic -o $@ $(CONTRACT_PARTS) -Wl,--whole-archive $(SIM)/amdgpu_sim.a -Wl,--no-whole-archive \
		-ldrm_amdgpu -ldrm -ldl -lm
