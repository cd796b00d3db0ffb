# SPDX-License-Identifier: GPL-2.0-only
# make, make check, make demo, make install: see README.md.

# CRIU looks for plugins in lib/criu below its own prefix.
PREFIX    ?= /usr
BINDIR    ?= $(PREFIX)/bin
LIBDIR    ?= $(PREFIX)/lib
PLUGINDIR ?= $(LIBDIR)/criu
LIBEXECDIR ?= $(PREFIX)/libexec/criu-amdgpu
MANDIR    ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
DOCDIR    ?= $(PREFIX)/share/doc/criu-plugin-amdgpu
BUILD     ?= build
CFLAGS    ?= -O2 -g
include $(if $(SANITIZER),test/sanitizer.mk)

NAME     := amdgpu_plugin
PLUGIN   := $(BUILD)/$(NAME).so
MESSAGES := $(BUILD)/criu-amdgpu.pb-c
SOURCES  := $(wildcard $(NAME)*.c src/*/*.c)
HEADERS  := $(wildcard include/*.h include/*/*.h src/*.h src/*/*.h)
OBJECTS  := $(SOURCES:%.c=$(BUILD)/%.o) $(MESSAGES).o
TOOL	 := $(BUILD)/criu-amdgpu
TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/*.c))
JOB	 := $(BUILD)/selftest-job
JOB_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard selftest/*.c))
SIM      := $(BUILD)/sim
NATIVE   := $(BUILD)/native

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wmissing-prototypes
DRM_CFLAGS := $(shell pkg-config --cflags libdrm_amdgpu 2>/dev/null)
# The C library's own checks want an optimizing compiler, hide calls from sanitizers, and may be chosen already.
FORTIFY  := $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),$(if $(findstring -fsanitize,$(CFLAGS))$(findstring \
	    _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENED := -fstack-protector-strong -fstack-clash-protection $(FORTIFY)
FLAGS    := -std=gnu11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -pthread $(WARNINGS) $(HARDENED) \
	    -Iinclude -Isrc -I$(BUILD) $(DRM_CFLAGS)
LIBS     := -ldrm_amdgpu -ldrm -lprotobuf-c -lxxhash -pthread
# Lazy, so neither -z now nor -z defs: if CRIU or libdrm lacks a function, only its caller fails. A function that is missing
# at dlopen() would fail every dump and restore on that machine, also those of processes without a GPU. The linker
# obeys the last of lazy and now, so LAZY follows the LDFLAGS of the caller.
LINK     := -shared -Wl,--as-needed,-z,relro,-z,noexecstack,-z,text
LAZY     := -Wl,-z,lazy

# One short line a file; V=1 shows the commands.
Q    := $(if $(V),,@)
SHOW  = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-4s %s\n' $(1) $@)

all: $(PLUGIN) $(TOOL) $(JOB)

$(PLUGIN): $(OBJECTS)
	$(call SHOW,LD)
	$(Q)$(CC) $(LINK) $(LDFLAGS) $(LAZY) -o $@ $^ $(LIBS)

# Of the plugin, the tool has only the files whose functions it calls.
$(TOOL): $(TOOL_OBJECTS) $(BUILD)/objects.a
	$(call SHOW,LD)
	$(Q)$(CC) -Wl,--as-needed,-z,relro,-z,now $(LDFLAGS) -o $@ $^ $(LIBS) -larchive -ljson-c

# The tool finds it beside itself, or in LIBEXECDIR.
$(JOB): $(JOB_OBJECTS)
	$(call SHOW,LD)
	$(Q)$(CC) -Wl,--as-needed,-z,relro,-z,now $(LDFLAGS) -o $@ $^ -pthread

$(BUILD)/tools/selftest.o: CPPFLAGS += -DLIBEXECDIR='"$(LIBEXECDIR)"'
$(BUILD)/tools/selftest.o: $(BUILD)/libexecdir
# The value that the object has. make install may have another one.
$(BUILD)/libexecdir: always
	@mkdir -p $(@D)
	@echo '$(LIBEXECDIR)' | cmp -s - $@ || echo '$(LIBEXECDIR)' > $@

# The kernel's header of KFD wants drm/drm.h, which libdrm has elsewhere.
$(JOB_OBJECTS): CPPFLAGS += -I$(BUILD)/selftest -I$(BUILD)/selftest/include
$(JOB_OBJECTS): | $(BUILD)/selftest/march_code.h
$(BUILD)/selftest/march_code.h: selftest/make-kernel test/data/kernels/gfx90a.txt
	@mkdir -p $(@D)/include
	@ln -sfn $(patsubst -I%,%,$(lastword $(DRM_CFLAGS))) $(@D)/include/drm
	$(call SHOW,GEN)
	$(Q)selftest/make-kernel march test/data/kernels/gfx90a.txt > $@

$(BUILD)/%.o: %.c $(MESSAGES).h
	@mkdir -p $(@D)
	$(call SHOW,CC)
	$(Q)$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The package, the tool and the images have one version.
VERSIONED := $(addprefix $(BUILD)/tools/,criu_amdgpu.o selftest.o) $(BUILD)/src/dump/dump_image.o
$(VERSIONED): debian/changelog
$(VERSIONED): CPPFLAGS += -DPLUGIN_VERSION='"$(shell sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)"'

$(MESSAGES).o: $(MESSAGES).c
	$(call SHOW,CC)
	$(Q)$(CC) $(FLAGS) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(MESSAGES).c $(MESSAGES).h &: criu-amdgpu.proto
	@mkdir -p $(BUILD)/unit
	$(call SHOW,GEN)
	$(Q)protoc-c --c_out=$(BUILD) $<

# Each kind of test has its rules beside it.
include $(patsubst %,test/%/rules.mk,unit map native contract bench fuzz faults tool gpu)

# Checks the sources and the manual pages. TOOLS: some of those that test/analyse names.
analyse: $(OBJECTS)
	@BUILD=$(BUILD) test/analyse $(TOOLS)

# Sets up the machine, then runs every test but the long ones below.
check:
	@test/check

# CRIU and its tasks killed at least a hundred times in each scenario (VM_SEED= repeats a run), on three kernels with the
# CRIU of their suite.
check-kills:
	@VM_KILLS=50 test/vm/run -k 6.1 -k 6.12 -k 7.2 killed-while-paused killed-dump killed-last-steps killed-restore killed-task

# All scenarios without containers and ROCm, on each kernel with the CRIU of its suite.
check-driver:
	@test/vm/run

# All scenarios with container runtimes. The first run builds roots with them.
check-containers:
	@test/vm/run -C

# The contract, the scenarios and the benchmark on the GPUs of this machine. docs/hardware.md describes it.
check-hardware:
	@test/hardware/run

demo:
	@test/vm/demo

DOCUMENTS := README.md NEWS.md CONTRIBUTING.md $(wildcard docs/*.md)
# Examples move, and a link to a file of the source that is not installed becomes the name of that file.
INSTALLED_LINKS := -e 's,\]\(examples/,](../examples/,g' -e 's,\[[^]]*\]\((\.\./)?(test/[^)\#]*|[a-z-]*\.proto)[^)]*\),`\2`,g'

install: $(PLUGIN) $(TOOL) $(JOB)
	install -D -m 0644 $(PLUGIN) $(DESTDIR)$(PLUGINDIR)/$(NAME).so
	install -D -m 0755 $(TOOL) $(DESTDIR)$(BINDIR)/criu-amdgpu
	install -D -m 0755 $(JOB) $(DESTDIR)$(LIBEXECDIR)/selftest-job
	install -D -m 0644 tools/criu-amdgpu.bash $(DESTDIR)$(COMPLETIONDIR)/criu-amdgpu
	install -D -m 0644 man/criu-amdgpu.1 $(DESTDIR)$(MANDIR)/man1/criu-amdgpu.1
	install -D -m 0644 man/$(NAME).conf.5 $(DESTDIR)$(MANDIR)/man5/$(NAME).conf.5
	install -D -m 0644 man/$(NAME).7 $(DESTDIR)$(MANDIR)/man7/$(NAME).7
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR) README.md NEWS.md CONTRIBUTING.md
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR)/docs docs/*.md docs/*.svg
	install -D -m 0644 -t $(DESTDIR)$(DOCDIR)/examples docs/examples/*
	sed -i -E $(INSTALLED_LINKS) $(addprefix $(DESTDIR)$(DOCDIR)/,$(DOCUMENTS))

uninstall:
	rm -f $(DESTDIR)$(PLUGINDIR)/$(NAME).so $(DESTDIR)$(BINDIR)/criu-amdgpu $(DESTDIR)$(LIBEXECDIR)/selftest-job
	rm -f $(DESTDIR)$(COMPLETIONDIR)/criu-amdgpu
	rm -f $(DESTDIR)$(MANDIR)/man1/criu-amdgpu.1
	rm -f $(DESTDIR)$(MANDIR)/man5/$(NAME).conf.5 $(DESTDIR)$(MANDIR)/man7/$(NAME).7
	rm -f $(addprefix $(DESTDIR)$(DOCDIR)/,$(DOCUMENTS) $(wildcard docs/*.svg) $(patsubst docs/%,%,$(wildcard docs/examples/*)))
	@tools/package/prune "$(DESTDIR)" $(PLUGINDIR) $(LIBEXECDIR) $(COMPLETIONDIR) $(patsubst %/,%,$(dir $(COMPLETIONDIR))) \
		$(MANDIR)/man1 $(MANDIR)/man5 $(MANDIR)/man7 $(DOCDIR)/docs $(DOCDIR)/examples $(DOCDIR) -- $(BINDIR) $(MANDIR)

# The Debian package of SUITE (that of this machine), built in a minimal root of that suite.
deb:
	@tools/package/deb $(BUILD)/deb

# The package of three suites: built, installed, removed. The first run makes their roots.
check-deb:
	@test/package/suites

# The source archive.
dist:
	@tools/package/dist $(BUILD)/dist

# The Debian package, made with the tools of this machine. Its unit tests are those of `make unit`.
PACKAGE       := $(BUILD)/package/criu-plugin-amdgpu.deb
PACKAGE_FILES := $(SOURCES) $(HEADERS) Makefile $(DOCUMENTS) criu-amdgpu.proto test/data/kernels/gfx90a.txt $(wildcard tools/*.* selftest/* man/* docs/*.svg \
		 docs/examples/* tools/package/* debian/* debian/source/*)

$(PACKAGE): $(PACKAGE_FILES)
	$(call SHOW,DEB)
	$(Q)rm -rf $(@D) && archive=$$(tools/package/dist $(@D)) && \
		DEB_BUILD_OPTIONS=nocheck tools/package/build "$$archive" $(@D)/first > $(@D)/build.log 2>&1 || \
		{ tail -n 25 $(@D)/build.log >&2; exit 1; }
	$(Q)cp $(@D)/first/criu-plugin-amdgpu_*.deb $@

package: $(PACKAGE)

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $(SOURCES) $(HEADERS) $(wildcard tools/*.[ch] selftest/*.[ch]) $(wildcard test/*.h test/*/*.[ch] test/*/*/*.[ch])

-include $(OBJECTS:.o=.d) $(TOOL_OBJECTS:.o=.d) $(JOB_OBJECTS:.o=.d)

.PHONY: all always analyse check check-containers check-deb check-driver check-hardware check-kills deb demo dist install package uninstall clean format
