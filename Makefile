# dtrain: `make help` lists the targets.
VERSION := 0.1.0
CC      ?= cc
MPICC   ?= mpicc
BUILD   ?= build
PREFIX  ?= /usr/local
ARCH    ?= native

PKGS    := openblas inih jansson zlib
HDF5    := $(shell pkg-config --exists hdf5-serial 2>/dev/null && echo hdf5-serial || echo hdf5)
PKGS    += $(HDF5)

# One line a room: its files, without .c.
base   := error log memory rng clock crc file stop
config := config
data   := schema
model  := blas
comm   := world
state  := checkpoint
report := record
train  := train
cli    := main

ROOMS   := base config data model comm state report train
LIBSRC  := $(foreach room,$(ROOMS),$($(room):%=src/$(room)/%.c))
CLISRC  := $(cli:%=src/cli/%.c)
LIBOBJ  := $(LIBSRC:%.c=$(BUILD)/%.o)
CLIOBJ  := $(CLISRC:%.c=$(BUILD)/%.o)

CFLAGS  ?= -O3 -g
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(WERROR),1)
WARN    += -Werror
endif
CPPFLAGS += -Iinclude -Isrc -D_GNU_SOURCE -DDT_VERSION='"$(VERSION)"' $(shell pkg-config --cflags $(PKGS))
ALLFLAGS = -std=c11 -march=$(ARCH) $(WARN) $(CFLAGS) $(SANITIZE) -pthread -MMD -MP
LDLIBS  += $(shell pkg-config --libs $(PKGS)) -lhdf5_hl -lm -pthread

all: dtrain

dtrain: $(CLIOBJ) $(BUILD)/libdtrain.a
	$(MPICC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libdtrain.a: $(LIBOBJ)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/src/comm/%.o: src/comm/%.c
	@mkdir -p $(@D)
	$(MPICC) $(CPPFLAGS) $(ALLFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALLFLAGS) -c -o $@ $<

clean:
	rm -rf $(BUILD) dtrain

.PHONY: all clean
-include $(LIBOBJ:.o=.d) $(CLIOBJ:.o=.d)
