# SPDX-License-Identifier: GPL-2.0-only
# make SANITIZER=address|thread|fuzzer ...: all is built so, in a folder of its own.
ADDRESS := -fsanitize=address,undefined -fno-sanitize-recover=undefined

DETECTS_address := $(ADDRESS)
DETECTS_thread	:= -fsanitize=thread
DETECTS_fuzzer	:= $(ADDRESS)
LINKS_fuzzer	:= -fsanitize=fuzzer
BUILDS_fuzzer	:= -fsanitize=fuzzer-no-link

ifeq ($(DETECTS_$(SANITIZER)),)
$(error SANITIZER=$(SANITIZER): address, thread or fuzzer)
endif
ifeq ($(SANITIZER),fuzzer)
CC	  := clang
FUZZ_MAIN :=
endif

BUILD	:= build/$(SANITIZER)
LDFLAGS := $(strip $(DETECTS_$(SANITIZER)) $(LINKS_$(SANITIZER)))
# Exported as what comes from the command line is: a test compiles programs of its own as the plugin was.
export CFLAGS := $(strip -O1 -g -fno-omit-frame-pointer $(DETECTS_$(SANITIZER)) $(BUILDS_$(SANITIZER)))
