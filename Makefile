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
base   := error log memory text rng perm clock crc file stop work
config := option value quote ini print config check describe
data   := schema names number layout labels lines csv_row csv text idx libsvm hdf5 h5 h5_names format paths \
          holdout source pack survey stats cursor plan order gather readahead loader table rows json_row fd scatter \
          shard_file shard
model  := blas kernel spec network net activation dropout softmax loss optimizer schedule metrics
comm   := mpi world cores board watch talk agree gate tree exchange exchange_share exchange_stream slots slots_bank slots_worker window async
state  := image tree field array contents export checkpoint dir folder snapshot writer lock version inspect
report := json record progress
train  := train setup machine keeper records meeting measure verdict evaluate evaluator desk gradient budget \
          sync async async_update async_bank async_worker
cli    := main commands configure kernel help model \
          cmd_train cmd_eval cmd_predict cmd_shard cmd_inspect cmd_options

ROOMS   := base config data model comm state report train
LIBSRC  := $(foreach room,$(ROOMS),$($(room):%=src/$(room)/%.c))
CLISRC  := $(cli:%=src/cli/%.c)
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
LDLIBS   += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lhdf5_hl -ldnnl -lgomp -lm -pthread
ALLFLAGS = $(if $(FOUND),,$(error libraries are missing: scripts/setup.sh installs them))$\
	-std=c11 -D_GNU_SOURCE -DDT_VERSION='"$(VERSION)"' $(INCLUDES) $(CPPFLAGS) \
	-march=$(ARCH) $(WARN) $(CFLAGS) $(SANITIZE) -pthread -MMD -MP

# Short lines; V=1 shows the commands.
say = $(if $(V),,@echo '  $(1) $@';)

all: dtrain

dtrain: $(BUILD)/dtrain
	@ln -sf $< $@

$(BUILD)/dtrain: $(CLIOBJ) $(LIB)
	$(call say,link)$(MPICC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIB): $(LIBOBJ)
	$(call say,ar  )rm -f $@ && ar rcs $@ $^

$(BUILD)/src/comm/%.o $(BUILD)/tests/mpi/%.o: CC := $(MPICC)

# Kernels: let loops with sqrt and selections use vectors; results stay IEEE, and the same for every
# compiler (clang would contract a * b + c).
$(BUILD)/src/model/%.o: ALLFLAGS += -fno-math-errno -fno-trapping-math -ffp-contract=off

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc  )$(CC) $(ALLFLAGS) -c -o $@ $<

# A unit test that defines __wrap_NAME has the library's calls of NAME.
$(UNIT): %: %.o $(LIB)
	$(call say,link)$(CC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS) $$(pkg-config --libs check) \
	  $$(nm $< | sed -n 's/.* T __wrap_/-Wl,--wrap=/p')

# Measuring programs: build/scripts/bench/net_speed, sgemm_peak.
$(BUILD)/scripts/bench/%: $(BUILD)/scripts/bench/%.o $(LIB)
	$(call say,link)$(CC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(MPI): %: %.o $(LIB)
	$(call say,link)$(MPICC) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS)

tests: $(BUILD)/dtrain $(UNIT) $(MPI)

# Each of these brings what it needs, then runs; the second make sees the libraries just installed.
AGAIN = @scripts/setup.sh && $(MAKE) --no-print-directory -j$(JOBS) all tests WERROR=$(WERROR)
JOBS  ?= $(shell nproc)

demo:
	@scripts/setup.sh && $(MAKE) --no-print-directory -j$(JOBS) dtrain
	@scripts/demo.sh

check:
	$(AGAIN)
	@BUILD=$(BUILD) tests/run.sh unit mpi e2e

check-all:
	$(AGAIN)
	@BUILD=$(BUILD) tests/run.sh unit mpi e2e long

unit: $(UNIT)
	@BUILD=$(BUILD) tests/run.sh unit

bench: dtrain
	@scripts/bench/bench.sh

lint: dtrain
	@BUILD=$(BUILD) scripts/lint.sh

format:
	clang-format -i $(wildcard src/*/*.[ch] include/dtrain/*.h tests/*/*.[ch])

readme: dtrain
	@scripts/readme.sh

# Builds of their own below build/. Open MPI leaks by design: leaks are looked for without it.
asan: SANITIZE := -fsanitize=address
asan: export LSAN_OPTIONS = suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0
ubsan: SANITIZE := -fsanitize=undefined -fno-sanitize-recover=all
asan ubsan:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build/$@ SANITIZE="$(SANITIZE)" \
	  CFLAGS='-O1 -g -fno-omit-frame-pointer' tests
	@BUILD=build/$@ SECS=600 CK_TIMEOUT_MULTIPLIER=5 tests/run.sh unit
	@BUILD=build/$@ ASAN_OPTIONS=detect_leaks=0 tests/run.sh mpi

valgrind:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build/$@ ARCH=x86-64-v3 CFLAGS='-O1 -g' tests
	@BUILD=build/$@ SECS=1800 CK_TIMEOUT_MULTIPLIER=50 OPENBLAS_CORETYPE=Haswell \
	  RUNNER='valgrind -q --error-exitcode=9 --leak-check=full --suppressions=$(CURDIR)/tests/valgrind.supp' \
	  tests/run.sh unit

coverage:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build/$@ SANITIZE=--coverage CFLAGS='-O1 -g' tests
	@BUILD=build/$@ SECS=600 CK_TIMEOUT_MULTIPLIER=5 tests/run.sh unit e2e || true
	@gcov -n $$(find build/$@/src -name '*.gcda') | awk -F"[':%]" '/^File .src/ {f = $$2} \
	  /^Lines/ && f {print $$2 "%\t" f; f = ""}' | sort -n

install: dtrain
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/dtrain
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib $(LIB)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/dtrain include/dtrain/*.h
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/dtrain scripts/recipes/*.ini scripts/slurm/*

uninstall:
	rm -rf $(addprefix $(DESTDIR)$(PREFIX)/,bin/dtrain lib/libdtrain.a include/dtrain share/dtrain)

clean:
	rm -rf $(BUILD) dtrain

help:
	@echo 'make             build dtrain and libdtrain.a (ARCH=native WERROR=0 BUILD=build)'
	@echo 'make demo        install what is missing, build, train Fashion-MNIST, draw the curves'
	@echo 'make check       install what is missing, build, run the tests; check-all: the long ones too'
	@echo 'make bench       measure speed, against PyTorch where it is installed (QUICK=1 SECTIONS=)'
	@echo 'make lint        house rules, cppcheck, clang-tidy; format: clang-format; readme: its table'
	@echo 'make asan        unit and MPI tests under AddressSanitizer; also ubsan, valgrind, coverage'
	@echo 'make install     into PREFIX=/usr/local (DESTDIR); uninstall; clean'

.PHONY: all tests demo check check-all unit bench lint format readme asan ubsan valgrind coverage \
	install uninstall clean help
.SECONDARY: $(TESTOBJ)
-include $(LIBOBJ:.o=.d) $(CLIOBJ:.o=.d) $(TESTOBJ:.o=.d)
