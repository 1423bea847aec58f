# dtrain: `make help` lists the targets.
VERSION := 0.3.0
CC      ?= cc
MPICC   ?= mpicc
BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
# Of the compiler's choice: the baseline, on which hot loops choose their instructions as the program
# starts (src/base/clones.h). native, x86-64-v3 ...: all code needs them.
ARCH    ?=
WERROR  ?= 0

HDF5    := $(shell pkg-config --exists hdf5-serial 2>/dev/null && echo hdf5-serial || echo hdf5)
PKGS    := inih jansson zlib libzstd

# Loaded when they are first used (src/base/load.c), not linked; with them oneDNN, which pkg-config does not know.
LOADED  := openblas libmicrohttpd $(HDF5)

# Rooms from the lowest floor up; a room's files are those of its folder.
ROOMS   := base config hdf5 text model comm table data state report predict train search
LIBSRC  := $(wildcard $(ROOMS:%=src/%/*.c) src/model/layers/*.c)
CLISRC  := $(wildcard src/cli/*.c)
UNIT    := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
MPI     := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/mpi/*.c))
FUZZ    := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
LIBOBJ  := $(LIBSRC:%.c=$(BUILD)/%.o)
CLIOBJ  := $(CLISRC:%.c=$(BUILD)/%.o)
TESTOBJ := $(UNIT:%=%.o) $(MPI:%=%.o)
LIB     := $(BUILD)/libdtrain.a
SHARED  := $(BUILD)/libdtrain.so.$(VERSION)
# While the first number is 0, functions may change with the second: programs of another one must not load it.
SONAME  := libdtrain.so.$(basename $(VERSION))

# -g1: places in the sources, for a backtrace; CFLAGS='-O1 -g' has variables too.
# SANITIZE goes to the compiler and the linker: sanitizers, coverage. -ffp-contract=off: the same bits of
# every compiler, in every room (clang would contract a * b + c).
CFLAGS  ?= -O3 -g1
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(WERROR),1)
WARN    += -Werror
endif
FOUND    := $(shell pkg-config --exists $(PKGS) $(LOADED) 2>/dev/null && echo yes)
INCLUDES := -Iinclude -Isrc -I$(BUILD)/src -Itests $(shell pkg-config --cflags $(PKGS) $(LOADED) 2>/dev/null)
LDLIBS   += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lgomp -lm -ldl -pthread
ALLFLAGS = $(if $(FOUND),,$(error libraries are missing: scripts/setup.sh installs them))$\
	-std=c11 -D_GNU_SOURCE -DDT_VERSION='"$(VERSION)"' $(INCLUDES) $(CPPFLAGS) \
	$(ARCH:%=-march=%) $(WARN) $(CFLAGS) -ffp-contract=off -fPIC -fno-semantic-interposition $(SANITIZE) -pthread -MMD -MP

# Short lines; V=1 shows the commands.
say = $(if $(V),,@echo '  $(1) $@';)

# mpicc of Open MPI and of MPICH, with the compiler that is asked for.
MPI_CC   = OMPI_CC="$(CC)" MPICH_CC="$(CC)" $(MPICC)
wraps    = $$(nm $< | sed -n 's/.* T __wrap_/-Wl,--wrap=/p')
link     = $(call say,link)$(1) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(wraps)

all: dtrain

# A link of another BUILD would look up to date.
dtrain: $(BUILD)/dtrain FORCE
	@ln -sf $< $@

$(BUILD)/dtrain: $(CLIOBJ) $(LIB)
	$(call link,$(MPI_CC))

$(LIB): $(LIBOBJ)
	$(call say,ar  )rm -f $@ && $(AR) rcs $@ $^

# Exports what scripts/libdtrain.symbols lists, nothing else.
$(SHARED): $(LIBOBJ) scripts/libdtrain.symbols
	$(call say,link)sed '1i {global:' scripts/libdtrain.symbols | sed '1!s/$$/;/; $$a local: *;};' >$(BUILD)/exports.map
	@$(MPI_CC) $(CFLAGS) -shared -Wl,-soname,$(SONAME),--version-script=$(BUILD)/exports.map,-z,defs \
	  $(SANITIZE) $(LDFLAGS) -o $@ $(LIBOBJ) $(LDLIBS)

# What pkg-config tells of the installed library.
$(BUILD)/dtrain.pc: FORCE
	@{ echo 'prefix=$(PREFIX)'; echo 'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)'; \
	  echo 'Name: dtrain'; echo 'Version: $(VERSION)'; \
	  echo 'Description: trains neural networks on CPU clusters'; \
	  echo 'Requires.private: $(if $(findstring mpich,$(shell $(MPICC) -show 2>/dev/null)),mpich,ompi-c)'; \
	  echo 'Cflags: -I$${prefix}/include'; echo 'Libs: -L$${libdir} -Wl,-rpath,$${libdir} -ldtrain'; \
	  echo 'Libs.private: $(LDLIBS)'; } >$@

# Those with exchange.h need the header of MPI, not a job.
$(BUILD)/src/comm/%.o $(BUILD)/tests/mpi/%.o $(BUILD)/tests/unit/test_layout.o $(BUILD)/tests/unit/test_sums.o: compile = $(MPI_CC)

# Kernels: let loops with sqrt and selections use vectors; results stay IEEE.
$(BUILD)/src/model/%.o: ALLFLAGS += -fno-math-errno -fno-trapping-math

# What a link with the loaded libraries would load: names by the linker's own path, then where they are now.
FILES := $(BUILD)/src/base/library_files
$(BUILD)/src/base/load.o: $(FILES).h
$(FILES).h: Makefile
	@mkdir -p $(@D)
	@$(CC) -shared -nostdlib $(LDFLAGS) -o $(FILES).so -Wl,--no-as-needed $(shell pkg-config --libs $(LOADED)) -ldnnl
	@for dir in '' $(addsuffix /,$(sort $(shell pkg-config --variable=libdir $(LOADED)))); do \
	  readelf -d $(FILES).so | sed -n "s,.*(NEEDED).*\[\(.*\)\],\"$$dir\1\"\,,p"; done >$@

# Texts that are part of the program: src/base/embed.h.
$(BUILD)/src/report/page.o: src/report/page.html
$(BUILD)/src/config/describe.o: src/config/manual.roff
$(BUILD)/src/cli/help.o: $(addprefix src/cli/,help.txt commands.txt manual.roff completion.bash completion.zsh)

# Tests compute little, and each is compiled for one run. Those that include sources of the library have loops of it.
$(BUILD)/tests/unit/%.o: ALLFLAGS += -O0
$(BUILD)/tests/unit/test_slots.o $(BUILD)/tests/mpi/%.o: ALLFLAGS += -O1

compile = $(CC)
$(BUILD)/%.o: %.c Makefile
	$(if $(wildcard $(@D)),,@mkdir -p $(@D))
	$(call say,cc  )$(compile) $(ALLFLAGS) -c -o $@ $<

# Programs that measure; `make tests` builds them, so that they do not fall behind the library.
BENCH := $(patsubst %.c,$(BUILD)/%,$(wildcard scripts/bench/*.c))
$(BENCH): %: %.o $(LIB)
	$(call link,$(MPI_CC))

# A test that wraps calls links the archive; the others link the shared object: 0.05 s of CPU rather than 0.08 (test_train).
TESTLIBS := -Wl,--as-needed $(shell pkg-config --libs check $(HDF5) 2>/dev/null) $(LDLIBS)
TESTLIB := $(BUILD)/tests/libdtrain.so
$(TESTLIB): $(LIBOBJ)
	@mkdir -p $(@D)
	$(call say,link)$(MPI_CC) $(CFLAGS) -shared -Wl,-soname,$(@F) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(UNIT) $(MPI): %: %.o $(LIB) $(TESTLIB)
	$(call say,link)wraps="$(wraps)"; \
	  $(MPI_CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ $< $${wraps:+$$wraps $(LIB)} \
	  $${wraps:-$(TESTLIB) -Wl,-rpath,'$$ORIGIN/..'} $(TESTLIBS)
$(FUZZ): $(BUILD)/%: $(BUILD)/tests/fuzz/%.o $(LIB)
	$(call link,$(CC) -fsanitize=fuzzer)

programs: $(UNIT) $(MPI)
tests: $(BUILD)/dtrain programs $(BENCH)
fuzzers: $(FUZZ)

# Each of these brings what it needs, then runs; the second make sees the libraries just installed.
AGAIN = @scripts/setup.sh && $(MAKE) --no-print-directory -j$(JOBS) WERROR=$(WERROR)
JOBS  ?= $(shell nproc)

demo:
	@scripts/setup.sh && $(MAKE) --no-print-directory -j$(JOBS) dtrain
	@scripts/demo.sh

# From the inner loop to all tests; tests/run.sh says what a group is.
quick:
	$(AGAIN) programs
	@BUILD=$(BUILD) tests/run.sh unit mpi

check:
	$(AGAIN) all programs
	@BUILD=$(BUILD) tests/run.sh unit mpi core

check-all:
	$(AGAIN) all tests
	@BUILD=$(BUILD) tests/run.sh unit mpi mpi_long core e2e
	@BUILD=$(BUILD) tests/run.sh -j $(JOBS) long
	@$(MAKE) --no-print-directory fuzz

unit: $(UNIT)
	@BUILD=$(BUILD) tests/run.sh unit

# COUNT: of changes that a script makes by itself; SEED says which.
mutants: all tests
	@tests/mutants/run.sh
	@BUILD=$(BUILD) tests/mutants/machine.py -n $(or $(COUNT),40) $(if $(SEED),-s $(SEED))

bench: dtrain
	@scripts/bench/bench.sh

lint: dtrain
	@BUILD=$(BUILD) scripts/lint.sh

# What the sources are compiled with, for tools that read them.
flags:
	@echo '$(INCLUDES) -std=c11 -D_GNU_SOURCE -DDT_VERSION=""'

format:
	clang-format -i $(wildcard src/*/*.[ch] src/*/*/*.[ch] include/dtrain/*.h tests/*/*.[ch])

# Builds of their own below build/; MPI_GROUPS=mpi: without the long MPI tests. Open MPI leaks by design: leaks are looked for without it.
asan: SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
asan: export LSAN_OPTIONS = suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0
ubsan: SANITIZE := -fsanitize=undefined -fno-sanitize-recover=all
asan ubsan:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build/$@ SANITIZE="$(SANITIZE)" \
	  CFLAGS='-O1 -g -fno-omit-frame-pointer' tests
	@BUILD=build/$@ SECS=1200 CK_TIMEOUT_MULTIPLIER=10 tests/run.sh unit
	@BUILD=build/$@ ASAN_OPTIONS=detect_leaks=0 tests/run.sh $(or $(MPI_GROUPS),mpi mpi_long)
	@BUILD=build/$@ ASAN_OPTIONS=detect_leaks=0 ALONE=1 tests/run.sh -k '^e2e/random' e2e

# All sizes of src/base/limits.h at their least.
tiny: export CPPFLAGS += -DDT_TINY
tiny:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build/$@ tests
	@BUILD=build/$@ tests/run.sh unit mpi mpi_long core e2e

# SECS: of each fuzzer.
fuzz: dtrain
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/fuzz CC=clang CFLAGS='-O1 -g' \
	  SANITIZE='-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined' fuzzers
	@BUILD=$(BUILD) SECS=$(or $(SECS),20) tests/run.sh -j $(JOBS) fuzz

# The same program on clusters that SimGrid simulates: scripts/sim.
sim:
	@command -v smpirun >/dev/null || { echo 'make sim: needs SimGrid: apt-get install libsimgrid-dev'; exit 1; }
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/sim MPICC='$(CC)' \
	  CPPFLAGS='$(CPPFLAGS) -I/usr/include/smpi -include $(CURDIR)/scripts/sim/sim.h' sim-program

SIMULATED := dt__exchange_need dt__exchange_ready dt__exchange_advance dt__network_gradient dt__ranks_move dt__save \
	dt__message_begin
$(BUILD)/scripts/sim/links.o: scripts/sim/links.cpp scripts/sim/links.h
	@mkdir -p $(@D)
	$(call say,c++ )$(CXX) -std=c++17 -O1 -fPIC -Wall -Wextra -c -o $@ $<
sim-program: $(CLIOBJ) $(BUILD)/scripts/sim/sim.o $(BUILD)/scripts/sim/links.o $(LIB)
	$(call say,link)$(CC) -shared $(SANITIZE) $(LDFLAGS) -o $(BUILD)/dtrain $^ $(LDLIBS) -lsimgrid -lstdc++ -Wl,-z,defs \
	  $(SIMULATED:%=-Wl,--wrap=%)

valgrind:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build/$@ CFLAGS='-O1 -g' tests
	@BUILD=build/$@ SECS=1800 CK_TIMEOUT_MULTIPLIER=50 OPENBLAS_CORETYPE=Haswell \
	  RUNNER='valgrind -q --error-exitcode=9 --leak-check=full --suppressions=$(CURDIR)/tests/valgrind.supp' \
	  tests/run.sh unit

coverage:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build/$@ SANITIZE=--coverage CFLAGS='-O1 -g' tests
	@BUILD=build/$@ SECS=1200 CK_TIMEOUT_MULTIPLIER=10 tests/run.sh unit core e2e || true
	@gcov -n $$(find build/$@/src -name '*.gcda') | awk -F"[':%]" '/^File .src/ {f = $$2} \
	  /^Lines/ && f {print $$2 "%\t" f; f = ""}' | sort -n

# Manual pages and completions come from the tables of commands and options.
MANUAL := $(addprefix $(BUILD)/,dtrain.1 dtrain-config.5 dtrain.bash _dtrain)
$(BUILD)/dtrain.1: generate = help --man
$(BUILD)/dtrain-config.5: generate = options --man
$(BUILD)/dtrain.bash: generate = help --bash
$(BUILD)/_dtrain: generate = help --zsh
$(MANUAL): $(BUILD)/dtrain
	$(call say,make)$(BUILD)/dtrain $(generate) >$@

man: $(MANUAL)

# Texts that are installed name the installed places: recipes and README work when they are pasted.
SHARE := $(PREFIX)/share/dtrain
install: dtrain $(SHARED) $(BUILD)/dtrain.pc $(MANUAL)
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/dtrain
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(LIB) $(SHARED)
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libdtrain.so
	install -D -m 644 -t $(DESTDIR)$(LIBDIR)/pkgconfig $(BUILD)/dtrain.pc
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/dtrain include/dtrain/*.h include/dtrain/*.f90
	install -D -m 644 -t $(DESTDIR)$(SHARE) scripts/recipes/*.ini hostfile.example scripts/plot*.awk
	install -D -m 644 -t $(DESTDIR)$(SHARE)/data scripts/recipes/data/*
	install -D -t $(DESTDIR)$(SHARE) scripts/recipes/*-data.* scripts/plot.sh scripts/plot_examples.sh scripts/slurm/*
	install -D -m 644 -t $(DESTDIR)$(SHARE)/examples scripts/examples/*
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/dtrain README.md LICENSE scripts/doc/*
	sed -i -e 's,\.\./\.\./README,README,g; s,scripts/doc/,,g; s,scripts/\(recipes\|slurm\),$(SHARE),g; s,\./dtrain\>,dtrain,g' \
	  -e 's,scripts/\(plot\.sh\|examples\),$(SHARE)/\1,g; s,hostfile\.example,$(SHARE)/&,g' \
	  $(DESTDIR)$(SHARE)/*.ini $(DESTDIR)$(SHARE)/*-data.* $(DESTDIR)$(PREFIX)/share/doc/dtrain/*.md
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(BUILD)/dtrain.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(BUILD)/dtrain-config.5
	install -D -m 644 $(BUILD)/dtrain.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/dtrain
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(BUILD)/_dtrain

uninstall:
	rm -rf $(addprefix $(DESTDIR)$(LIBDIR)/,libdtrain.a libdtrain.so* pkgconfig/dtrain.pc)
	rm -rf $(addprefix $(DESTDIR)$(PREFIX)/,bin/dtrain include/dtrain share/dtrain share/doc/dtrain \
	  share/man/man1/dtrain.1 share/man/man5/dtrain-config.5 share/bash-completion/completions/dtrain \
	  share/zsh/site-functions/_dtrain)

# What is installed, tried: penguins on three ranks.
installcheck:
	@scripts/packaging/installcheck.sh $(DESTDIR)$(PREFIX) $(filter-out ./,$(dir $(MPICC)))$(subst mpicc,mpirun,$(notdir $(MPICC)))

# The last commit's files: the same bytes wherever they are packed.
DIST := $(BUILD)/dtrain-$(VERSION).tar.gz
dist:
	@mkdir -p $(BUILD)
	@git archive --prefix=dtrain-$(VERSION)/ HEAD | gzip -9n >$(DIST)
	@cd $(BUILD) && sha256sum $(notdir $(DIST)) | tee $(notdir $(DIST)).sha256

# Debian packages of the last commit, in build/deb.
deb: dist
	@scripts/packaging/deb.sh $(DIST) $(VERSION)

clean:
	rm -rf $(BUILD) dtrain

help:
	@echo 'make             build dtrain and libdtrain.a (ARCH= WERROR=0 BUILD=build)'
	@echo 'make demo        install what is missing, build, train Fashion-MNIST, draw the curves'
	@echo 'make check       install what is missing, build, test each promise once; quick: the library alone; check-all: all tests'
	@echo 'make bench       measure speed, against PyTorch where it is installed (QUICK=1 SECTIONS=)'
	@echo 'make lint        house rules, cppcheck, clang-tidy; format: clang-format'
	@echo 'make asan        unit and MPI tests, random configurations under AddressSanitizer and UBSan; ubsan: that alone; also valgrind, coverage'
	@echo 'make tiny        all tests with blocks, buffers and tables at their least (src/base/limits.h)'
	@echo 'make mutants     tests against planted bugs, and against COUNT=40 lines changed at random (SEED=)'
	@echo 'make sim         the program for clusters that SimGrid simulates (scripts/sim/sim.py runs it)'
	@echo 'make fuzz        parsers against arbitrary bytes, under clang (SECS=20 each)'
	@echo 'make man         manual pages and completions, into $(BUILD)'
	@echo 'make install     into PREFIX=/usr/local (DESTDIR); uninstall; clean'
	@echo 'make installcheck  tries what is installed; dist: the sources as a tarball with its checksum'
	@echo 'make deb         Debian packages of the last commit, into build/deb'

.PHONY: FORCE all programs tests fuzzers demo quick check check-all fuzz sim sim-program tiny mutants unit bench lint flags format asan ubsan valgrind coverage \
	man install uninstall installcheck dist deb clean help
.DELETE_ON_ERROR:
.SECONDARY: $(TESTOBJ) $(BENCH:=.o)
-include $(BUILD)/scripts/sim/sim.d $(LIBOBJ:.o=.d) $(CLIOBJ:.o=.d) $(TESTOBJ:.o=.d) $(wildcard $(BUILD)/tests/fuzz/*.d)
