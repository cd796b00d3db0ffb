# SPDX-License-Identifier: GPL-2.0-only
# The tests of src/FOLDER are in test/unit/FOLDER, those of the files at the top are in test/unit. Those in
# test/unit/sim are of the simulator, those in test/unit/tools of the tool.
TESTS := $(patsubst %.c,$(BUILD)/unit/%,$(notdir $(wildcard test/unit/test_*.c test/unit/*/test_*.c)))
vpath test_%.c test/unit $(sort $(dir $(wildcard test/unit/*/test_*.c)))

# Each unit test is linked with the whole plugin, and with what stands in for CRIU.
UNIT_PARTS   := $(addprefix $(BUILD)/test/,unit/host.o lib/tests.o lib/criu_stub.o lib/streamer.o)
UNIT_HEADERS := $(wildcard test/unit/*.h test/lib/*.h)
MACHINES     := $(BUILD)/machines
UNIT_FLAGS   := -Itest/unit -Itest/lib -DMACHINES='"$(MACHINES)"'

$(MACHINES): test/data/make-machines
	$(call SHOW,GEN)
	$(Q)$< $@

# The fake kernel, and its copy engine in the place of sdma.c.
FAKES := $(addprefix $(BUILD)/test/unit/,fake_kernel.o fake_kfd.o fake_gpu.o)
comma := ,
WRAP_ENGINE := $(addprefix -Wl$(comma)--wrap=sdma_,open stop close slot_memory bo_import bo_release submit wait check_faults)
# The programs that include it.
FAKED := $(patsubst %.c,$(BUILD)/unit/%,$(notdir $(shell grep -lE '"(fake_|dump_t|restore_task|preflight_task).*\.h"' test/unit/*/test_*.c)))

$(UNIT_PARTS) $(FAKES): CPPFLAGS += $(UNIT_FLAGS)
$(UNIT_PARTS) $(FAKES): $(UNIT_HEADERS)

$(BUILD)/unit/test_%: test_%.c $(UNIT_PARTS) $(UNIT_HEADERS) $(BUILD)/objects.a | $(MACHINES)
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(UNIT_FLAGS) -o $@ $< $(UNIT_PARTS) $(PARTS) \
		-Wl,--whole-archive $(BUILD)/objects.a -Wl,--no-whole-archive $(LIBS) -lcmocka

$(FAKED): $(FAKES)
$(FAKED): PARTS := $(FAKES) $(WRAP_ENGINE) -Wl,--wrap=proc_in_initial_pid_namespace

$(BUILD)/unit/test_util: LIBS += -Wl,--wrap=realloc -Wl,--wrap=open -Wl,--wrap=openat

$(BUILD)/unit/test_resume: LIBS += -Wl,--wrap=kfd_resume -Wl,--wrap=reap_kill -Wl,--wrap=cgroup_room_has_threads

$(BUILD)/unit/test_resume_killed: LIBS += -Wl,--wrap=kfd_resume -Wl,--wrap=ptrace

$(BUILD)/unit/test_task_image: LIBS += $(addprefix -Wl$(comma)--wrap=,topology_read node_can_make_render node_make_render render_node_open)

$(BUILD)/unit/test_image_pages: LIBS += -Wl,--wrap=fstatvfs

$(BUILD)/unit/test_slots: LIBS += -Wl,--wrap=cgroup_find_memory

$(BUILD)/unit/test_dump_stop: LIBS += -Wl,--wrap=opendir

# CRIU lets the plugin work on after the dump.
$(BUILD)/unit/test_writeback: LIBS += -Wl,--wrap=after_tasks_is_possible -Wl,--wrap=pool_new -Wl,--wrap=nanosleep

# The plugin finds CRIU's options by their name.
$(BUILD)/unit/test_dump_guard: LIBS += -Wl,--export-dynamic-symbol=opts

# The plugin finds out whether CRIU calls DUMP_FINISH, and waits in these functions.
$(BUILD)/unit/test_background: LIBS += -Wl,--export-dynamic-symbol=cr_plugin_ctl -Wl,--wrap=pthread_cond_timedwait \
	-Wl,--wrap=pthread_join -Wl,--wrap=sem_wait -Wl,--wrap=unshare -Wl,--wrap=fstatvfs \
	-Wl,--wrap=cgroup_room_has_threads

# The interpreter of GPU code, by itself.
GCN_UNITS   := $(addprefix $(BUILD)/unit/,test_gcn_decode test_gcn_float test_gcn_run test_gcn_vector)
GCN_SOURCES := $(wildcard test/gpu/gcn/*.c)

$(GCN_UNITS): $(BUILD)/unit/%: %.c $(GCN_SOURCES) test/sim/native/sim_env.h test/unit/sim/gcn_machine.h $(wildcard test/lib/*.h) test/lib/tests.c \
		$(wildcard test/gpu/gcn/*.h)
	$(CC) $(FLAGS) $(CFLAGS) -Itest/sim/native -Itest/gpu/gcn -Itest/lib -o $@ $< test/lib/tests.c $(GCN_SOURCES) -lcmocka -lm

# Of the tool, a test has the file that it tests.
# Private: elsewhere tools/elf.h would stand for <elf.h>.
$(BUILD)/unit/test_foresee: private CPPFLAGS += -Itools
$(BUILD)/unit/test_foresee: LIBS += -Wl,--wrap=proc_get_fd $(BUILD)/tools/foresee.o $(BUILD)/tools/survey.o
$(BUILD)/unit/test_foresee: $(BUILD)/tools/foresee.o $(BUILD)/tools/survey.o

# Contents are copied by the simulated GPUs.
SIM_UNITS   := $(addprefix $(BUILD)/unit/,test_content test_content_checksum test_content_io test_content_threads \
		test_content_base test_content_pool test_content_parts test_content_tmpfs test_content_upload)
SIM_SOURCES := $(wildcard test/sim/model/*.[ch] test/sim/native/*.[ch])

$(BUILD)/unit/test_content: WRAPS := -Wl,--wrap=stat
$(BUILD)/unit/test_content_base: WRAPS := -Wl,--wrap=xioctl
$(BUILD)/unit/test_await: LIBS += -Wl,--wrap=proc_is_missing -Wl,--wrap=host_is_streaming
$(BUILD)/unit/test_dmabufs: LIBS += -Wl,--wrap=kfd_is_dmabuf -Wl,--wrap=render_node_open -Wl,--wrap=render_node_gem_read

DRM_CALLS   := $(BUILD)/test/unit/drm_calls.o

$(DRM_CALLS): CPPFLAGS += $(UNIT_FLAGS) -Itest/sim/native
$(DRM_CALLS): $(UNIT_HEADERS)
$(SIM_UNITS): $(BUILD)/unit/%: %.c $(UNIT_PARTS) $(DRM_CALLS) $(UNIT_HEADERS) $(BUILD)/objects.a $(SIM_SOURCES) \
		| $(SIM)/amdgpu_sim.a
	$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) $(UNIT_FLAGS) -Itest/sim/native -rdynamic -o $@ $< $(UNIT_PARTS) \
		$(DRM_CALLS) $(WRAPS) -Wl,--whole-archive $(BUILD)/objects.a $(SIM)/amdgpu_sim.a -Wl,--no-whole-archive \
		-Wl,--no-as-needed $(LIBS) -lcmocka -ldl -lm

$(BUILD)/objects.a: $(OBJECTS)
	$(call SHOW,AR)
	$(Q)rm -f $@ && $(AR) crs $@ $^

unit: $(PLUGIN) $(TESTS)
	@test/unit/run $(TESTS)

# Compiles, but does not link, for machines that this one is not.
cross: $(MESSAGES).h
	@test/unit/cross $(SOURCES) $(wildcard tools/*.c)

.PHONY: unit cross
