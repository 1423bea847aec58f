# dtrain: `make help` lists the targets.
VERSION := 0.1.0
CC      ?= cc
MPICC   ?= mpicc
BUILD   ?= build
PREFIX  ?= /usr/local
ARCH    ?= native
WERROR  ?= 0

PKGS    := openblas inih jansson zlib
PKGS    += $(shell pkg-config --exists hdf5-serial 2>/dev/null && echo hdf5-serial || echo hdf5)

# One line a room: its files, without .c.
base   := error log memory text rng perm clock crc file stop
config := config
data   := schema
model  := blas
comm   := mpi world watch agree
state  := checkpoint
report := record
train  := train
cli    := main

ROOMS   := base config data model comm state report train
LIBSRC  := $(wildcard $(foreach room,$(ROOMS),$($(room):%=src/$(room)/%.c)))
CLISRC  := $(wildcard $(cli:%=src/cli/%.c))
UNIT    := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
MPI     := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/mpi/*.c))
LIBOBJ  := $(LIBSRC:%.c=$(BUILD)/%.o)
CLIOBJ  := $(CLISRC:%.c=$(BUILD)/%.o)
TESTOBJ := $(UNIT:%=%.o) $(MPI:%=%.o)
LIB     := $(BUILD)/libdtrain.a

# SANITIZE goes to the compiler and the linker: sanitizers, coverage.
CFLAGS  ?= -O3 -g
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(WERROR),1)
WARN    += -Werror
endif
FOUND    := $(shell pkg-config --exists $(PKGS) 2>/dev/null && echo yes)
INCLUDES := -Iinclude -Isrc -Itests $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LDLIBS   += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lhdf5_hl -lm -pthread
ALLFLAGS = $(if $(FOUND),,$(error libraries are missing: scripts/setup.sh installs them))$\
	-std=c11 -D_GNU_SOURCE -DDT_VERSION='"$(VERSION)"' $(INCLUDES) $(CPPFLAGS) \
	-march=$(ARCH) $(WARN) $(CFLAGS) $(SANITIZE) -pthread -MMD -MP

all: dtrain

dtrain: $(BUILD)/dtrain
	@ln -sf $< $@

$(BUILD)/dtrain: $(CLIOBJ) $(LIB)
	$(MPICC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIB): $(LIBOBJ)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/src/comm/%.o $(BUILD)/tests/mpi/%.o: CC := $(MPICC)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALLFLAGS) -c -o $@ $<

# A unit test that defines __wrap_NAME has the library's calls of NAME.
$(UNIT): %: %.o $(LIB)
	$(CC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS) $$(pkg-config --libs check) \
	  $$(nm $< | sed -n 's/.* T __wrap_/-Wl,--wrap=/p')

$(MPI): %: %.o $(LIB)
	$(MPICC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS)

unit: $(UNIT)
	@BUILD=$(BUILD) tests/run.sh unit

clean:
	rm -rf $(BUILD) dtrain

.PHONY: all unit clean
.SECONDARY: $(TESTOBJ)
-include $(LIBOBJ:.o=.d) $(CLIOBJ:.o=.d) $(TESTOBJ:.o=.d)
