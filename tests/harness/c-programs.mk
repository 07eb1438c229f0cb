# Shared by the Makefiles of C programs. A Makefile defines PROGRAMS and, for each NAME of them, NAME_SOURCES, then
# includes this file. Builds build/NAME, which finds the library without LD_LIBRARY_PATH.
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

# Cargo decides whether to rebuild. Programs are relinked only if the library has changed, and replaced at once: another runner may
# start them meanwhile.
$(LIBRARY): FORCE
	@$(ROOT)/tools/c-library $(if $(filter library,$(PROFILE)),--release) > /dev/null
FORCE:

build/%.o: %.c
	@mkdir -p $(dir $@)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

define program
build/$(1): $($(1)_SOURCES:%.c=build/%.o) $(LIBRARY)
	$(CC) -o $$@.new $$(filter %.o,$$^) $(ALL_LDFLAGS) -lmcpline -lm
	@mv -f $$@.new $$@
-include $($(1)_SOURCES:%.c=build/%.d)
endef
$(foreach name,$(PROGRAMS),$(eval $(call program,$(name))))

clean:
	rm -rf build
