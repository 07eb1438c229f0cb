# What the Makefiles of C programs in this tree have in common; a Makefile names its PROGRAMS, and for each NAME of them its
# NAME_SOURCES, then includes this. Leaves build/NAME, which finds the library without LD_LIBRARY_PATH.
#
#   make [PROFILE=debug|library]

ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/../..)
PROFILE ?= debug
CARGO_TARGET_DIR ?= $(ROOT)/target
export CARGO_TARGET_DIR

STAGE := $(CARGO_TARGET_DIR)/$(PROFILE)/mcpline-c
LIBRARY := $(STAGE)/lib/libmcpline.so
CFLAGS ?= -O2 -g
ALL_CFLAGS := -std=c11 -Wall -Wextra -Wpedantic -Werror -pthread -I$(ROOT)/bindings-c/include -MMD -MP $(CFLAGS)
ALL_LDFLAGS := -pthread -L$(STAGE)/lib -Wl,-rpath,$(STAGE)/lib $(LDFLAGS)

.PHONY: all clean FORCE
all: $(PROGRAMS:%=build/%)

# Cargo knows whether there is anything to do. Programs are only linked anew if the library has changed.
$(LIBRARY): FORCE
	@$(ROOT)/tools/c-library $(if $(filter library,$(PROFILE)),--release) > /dev/null
FORCE:

build/%.o: %.c
	@mkdir -p $(dir $@)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

define program
build/$(1): $($(1)_SOURCES:%.c=build/%.o) $(LIBRARY)
	$(CC) -o $$@ $$(filter %.o,$$^) $(ALL_LDFLAGS) -lmcpline -lm
-include $($(1)_SOURCES:%.c=build/%.d)
endef
$(foreach name,$(PROGRAMS),$(eval $(call program,$(name))))

clean:
	rm -rf build
