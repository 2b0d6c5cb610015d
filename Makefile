# SPDX-License-Identifier: BSD-2-Clause
# warmpath: kernel-side fast-path router for LLM replicas.
#
#   make deps     install what building, testing and the demo need (Debian 12, root)
#   make          build build/warmpath, build/warmpathd and the BPF objects
#   make demo     the main job on real traffic, in network namespaces (root)
#   make experiment  bounded against llm-aware on the real data path, with tables and pictures (root)
#   make test     everything; needs root for BPF and namespaces
#   make test-sanitize  unit and end-to-end tests with everything in user space under AddressSanitizer and its like
#   make analyze  clang's static analyzer and cppcheck
#   make check    formatting, static analysis, shell scripts
#   make test-kubernetes  discovery and manifests against a real kube-apiserver, which is built the first time (root, slow)
#   make kernels  load and test every program in stock Debian kernels under emulation (needs qemu)
#   make bench    benchmarks: ratios and medians, side by side
#   make deb      the Debian package, build/deb/warmpath_*.deb; make test-deb also installs it on a clean root, runs and removes it
#   make install  DESTDIR, PREFIX, SYSCONFDIR, UNITDIR, COMPLETIONDIR: programs, unit, example, manual pages, completion
#
# Sources are found by their place: bpf/NAME.bpf.c becomes an object and a skeleton, user/lib/ a library, user/cli/ the CLI,
# user/agent/ the agent, tools/NAME.c or tools/NAME/ with a main.c a program each (tools/lib/ is what they share), tests/unit/test_*.c and
# tests/datapath/test_*.c a test program each.

PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/lib,$(SYSCONFDIR))/systemd/system
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
BUILD ?= build
CLANG ?= clang
CC ?= cc
FUZZ_CLANG ?= clang
BPFTOOL ?= bpftool
VERSION := 0.1.0

ARCH := $(shell uname -m | sed -e 's/x86_64/x86/' -e 's/aarch64/arm64/')
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
# for the targets that do everything by themselves
JOBS ?= $(shell nproc)

WARNINGS := -Wall -Wextra -Werror
CFLAGS ?= -O2 -g
CPPFLAGS += -Iinclude -Iuser -I$(BUILD)/bpf -D_GNU_SOURCE -DWARMPATH_VERSION='"$(VERSION)"'
ALL_CFLAGS = -std=gnu11 $(WARNINGS) $(CFLAGS) -MMD -MP
LIBS := -lbpf -lxdp -luv -ljansson -lyaml -lmnl -lcap-ng -lcurl -lmicrohttpd -lcares -lresolv -lsystemd -lm
CLI_LIBS := $(LIBS) -lcairo -lncursesw
TOOLS_LIBS := $(LIBS) -lhttp_parser -lz

BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter \
	-Wno-missing-declarations -Wno-address-of-packed-member -D__TARGET_ARCH_$(ARCH) \
	-Iinclude -Ibpf -I$(BUILD) $(if $(MULTIARCH),-idirafter /usr/include/$(MULTIARCH)) -MMD -MP

BPF_SOURCES := $(wildcard bpf/*.bpf.c)
BPF_OBJECTS := $(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
BPF_SKELETONS := $(BPF_OBJECTS:.bpf.o=.skel.h)
TEST_BPF_SOURCES := $(wildcard tests/datapath/*.bpf.c)
TEST_BPF_OBJECTS := $(TEST_BPF_SOURCES:%.bpf.c=$(BUILD)/%.bpf.o)
TEST_BPF_SKELETONS := $(TEST_BPF_OBJECTS:.bpf.o=.skel.h)

LIB_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard user/lib/*.c))
CLI_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard user/cli/*.c))
AGENT_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard user/agent/*.c))
# what tests may link of the agent: all of it but main
AGENT_TESTABLE := $(filter-out %/main.o,$(AGENT_OBJECTS))
# and of the CLI: what has no part in the command line itself
CLI_TESTABLE := $(patsubst %,$(BUILD)/user/cli/%.o,bar client event_line frame style subcommand top_model top_pages top_screen)
PLAIN_TOOLS := $(patsubst %.c,$(BUILD)/%,$(filter-out %.bpf.c,$(wildcard tools/*.c)))
TOOLS_BPF_SKELETONS := $(patsubst %.bpf.c,$(BUILD)/%.skel.h,$(wildcard tools/*.bpf.c))
TOOLS_BPF_OBJECTS := $(patsubst %.bpf.c,$(BUILD)/%.bpf.o,$(wildcard tools/*.bpf.c))
FOLDER_TOOLS := $(patsubst tools/%/main.c,%,$(wildcard tools/*/main.c))
TOOLS := $(PLAIN_TOOLS) $(FOLDER_TOOLS:%=$(BUILD)/tools/%)
TOOLS_LIB_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/lib/*.c))
UNIT_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
DATAPATH_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/datapath/test_*.c))
DATAPATH_BENCHES := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/datapath/bench_*.c))
DATAPATH_COMMON := $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/datapath/test_% tests/datapath/bench_%,$(filter-out %.bpf.c,$(wildcard tests/datapath/*.c))))
E2E_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/e2e/*.c))
FUZZ_TARGETS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
TEST_PROGRAMS := $(UNIT_TESTS) $(DATAPATH_TESTS) $(DATAPATH_BENCHES) $(E2E_PROGRAMS) $(FUZZ_TARGETS)

PROGRAMS := $(if $(CLI_OBJECTS),$(BUILD)/warmpath) $(if $(AGENT_OBJECTS),$(BUILD)/warmpathd)

MANUAL_PAGES := $(patsubst docs/man/%.in,%,$(wildcard docs/man/*.in))

.PHONY: help manual deb test-deb test-sanitize analyze kernels all programs tools test-programs deps demo experiment test check format bench install clean
.DELETE_ON_ERROR:
.SECONDARY:

all: programs tools manual
programs: $(PROGRAMS) $(BPF_OBJECTS)
manual: $(MANUAL_PAGES:%=$(BUILD)/man/%)
tools: $(TOOLS) $(TOOLS_BPF_OBJECTS)
test-programs: $(TEST_PROGRAMS)

# --- BPF ---------------------------------------------------------------------------------------------------
$(BUILD)/vmlinux.h:
	@mkdir -p $(@D)
	$(BPFTOOL) btf dump file /sys/kernel/btf/vmlinux format c > $@

$(BUILD)/%.bpf.o: %.bpf.c $(BUILD)/vmlinux.h
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MT $@ -MF $(@:.o=.d) -c $< -o $@.full
	$(BPFTOOL) gen object $@ $@.full
	@rm -f $@.full

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $(subst -,_,$(notdir $*))_bpf > $@

# --- user space --------------------------------------------------------------------------------------------
$(PLAIN_TOOLS:%=%.o): | $(TOOLS_BPF_SKELETONS)
$(PLAIN_TOOLS:%=%.o): CPPFLAGS += -I$(BUILD)/tools

$(BUILD)/%.o: %.c | $(BPF_SKELETONS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/libwarmpath.a: $(LIB_OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/warmpath: $(CLI_OBJECTS) $(BUILD)/libwarmpath.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

$(BUILD)/warmpathd: $(AGENT_OBJECTS) $(BUILD)/libwarmpath.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libtools.a: $(TOOLS_LIB_OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

$(PLAIN_TOOLS): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/libtools.a $(BUILD)/libwarmpath.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TOOLS_LIBS)

# The objects of a folder's program lie beside it in NAME.objects/, as NAME is the program.
define tool_folder
$$(BUILD)/tools/$(1).objects/%.o: tools/$(1)/%.c | $$(BPF_SKELETONS)
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS) $$(ALL_CFLAGS) -c $$< -o $$@

$$(BUILD)/tools/$(1): $$(patsubst tools/$(1)/%.c,$$(BUILD)/tools/$(1).objects/%.o,$$(wildcard tools/$(1)/*.c)) $$(BUILD)/libtools.a $$(BUILD)/libwarmpath.a
	$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(TOOLS_LIBS)
endef
$(foreach tool,$(FOLDER_TOOLS),$(eval $(call tool_folder,$(tool))))

# stands in for a machine that is out of memory
$(BUILD)/tests/unit/test_health_schedule: LDFLAGS += -Wl,--wrap=health_check_new

$(UNIT_TESTS): $(BUILD)/%: $(BUILD)/%.o $(AGENT_TESTABLE) $(CLI_TESTABLE) $(BUILD)/libtools.a $(BUILD)/libwarmpath.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS) -lz

$(DATAPATH_TESTS:%=%.o) $(DATAPATH_BENCHES:%=%.o) $(DATAPATH_COMMON): $(BUILD)/tests/datapath/%.o: tests/datapath/%.c | $(BPF_SKELETONS) $(TEST_BPF_SKELETONS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -I$(BUILD)/tests/datapath $(ALL_CFLAGS) -c $< -o $@

$(DATAPATH_TESTS) $(DATAPATH_BENCHES): $(BUILD)/%: $(BUILD)/%.o $(DATAPATH_COMMON) $(AGENT_TESTABLE) $(BUILD)/libtools.a $(BUILD)/libwarmpath.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS) -lz

$(E2E_PROGRAMS): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/libwarmpath.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# libFuzzer and the sanitizers are clang's; a target is one file over headers, or with the files of the agent that it is about.
FUZZ_FLAGS := -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

$(BUILD)/%.fuzz.o: %.c | $(BPF_SKELETONS)
	@mkdir -p $(@D)
	$(FUZZ_CLANG) $(CPPFLAGS) $(ALL_CFLAGS) $(FUZZ_FLAGS) -c $< -o $@

$(BUILD)/tests/fuzz/fuzz_kubernetes: $(patsubst %,$(BUILD)/user/agent/%.fuzz.o,kubernetes_slices kubernetes_json line_reader)
# what it decides with lies in the library: built once more, so that it is watched, too
$(BUILD)/tests/fuzz/fuzz_decide: $(patsubst %,$(BUILD)/user/lib/%.fuzz.o,decide_core decide_events decide_text engine engine_user recency_table)
$(BUILD)/tests/fuzz/fuzz_dns: $(patsubst %,$(BUILD)/user/agent/%.fuzz.o,dns_answer dns_members)
$(BUILD)/tests/fuzz/fuzz_configuration: $(patsubst %.c,$(BUILD)/%.fuzz.o,$(wildcard user/lib/config*.c))
$(BUILD)/tests/fuzz/fuzz_control: $(patsubst %,$(BUILD)/user/lib/%.fuzz.o,control policy error)

$(FUZZ_TARGETS): $(BUILD)/%: $(BUILD)/%.fuzz.o $(BUILD)/libwarmpath.a
	$(FUZZ_CLANG) $(FUZZ_FLAGS) -o $@ $(filter %.o,$^) $(BUILD)/libwarmpath.a $(LIBS)

# The pages say what the programs say of themselves.
$(BUILD)/man/%: docs/man/%.in tools/manual deploy/warmpath.yaml $(PROGRAMS)
	@mkdir -p $(@D)
	./tools/manual $* >$@

# --- what people run ---------------------------------------------------------------------------------------
deps:
	./tools/deps

# The list at the top of this file.
help:
	@sed -n 's/^#   \(make .*\)/\1/p' $(firstword $(MAKEFILE_LIST))

demo: deps
	$(MAKE) -j$(JOBS) all
	./tools/demo

experiment: deps
	$(MAKE) -j$(JOBS) all
	./tools/experiment --policy bounded --policy llm-aware --profile quick --seeds 1-10 \
		--model tools/models/qwen-0.5b-cpu.json --slots 1 --out $(BUILD)/experiment

test: deps
	$(MAKE) -j$(JOBS) all test-programs
	./tests/run

# Everything in user space once more, in a folder of its own, with sanitizers that end a program at the first fault. SANITIZE_TESTS: levels or files.
# (gcc warns of less and of more in instrumented code: warnings are for the ordinary build.)
SANITIZE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-error
SANITIZE_TESTS ?= unit e2e

# (UBSan's library writes its reports into files only if it is linked statically.)
test-sanitize:
	$(MAKE) BUILD=build/sanitize CFLAGS="$(SANITIZE)" LDFLAGS="$(LDFLAGS) -static-libubsan" all test-programs
	BUILD=build/sanitize CFLAGS="$(SANITIZE)" LDFLAGS="$(LDFLAGS) -static-libubsan" ./tests/sanitize $(SANITIZE_TESTS)

analyze: all
	./tools/analyze-code

# A real API server: built once, from Debian's sources (tests/kubernetes/server says what that takes).
test-kubernetes: deps
	$(MAKE) -j$(JOBS) all
	./tests/kubernetes/server
	TEST_TIMEOUT=1800 ./tests/run tests/kubernetes/run.sh

kernels: all test-programs
	./tests/kernels/run

bench: all test-programs
	./tools/bench

C_FILES := $(wildcard bpf/*.c bpf/lib/*.h include/warmpath/*.h user/*/*.c user/*/*.h tools/*.c tools/*.h tests/*/*.c tests/*/*.h)

check: all test-programs
	./tools/check $(C_FILES)

format:
	clang-format -i $(C_FILES)

# The configuration is the operator's: only the example is installed.
install: programs manual
	install -D -m 0755 $(BUILD)/warmpath $(DESTDIR)$(PREFIX)/bin/warmpath
	install -D -m 0755 $(BUILD)/warmpathd $(DESTDIR)$(PREFIX)/sbin/warmpathd
	install -d -m 0755 $(DESTDIR)$(SYSCONFDIR)/warmpath $(DESTDIR)$(UNITDIR)
	sed -e 's|/usr/local/|$(PREFIX)/|g' -e 's|/etc/warmpath|$(SYSCONFDIR)/warmpath|g' deploy/warmpathd.service \
		>$(DESTDIR)$(UNITDIR)/warmpathd.service
	chmod 0644 $(DESTDIR)$(UNITDIR)/warmpathd.service
	$(foreach page,$(MANUAL_PAGES),install -D -m 0644 $(BUILD)/man/$(page) \
		$(DESTDIR)$(PREFIX)/share/man/man$(lastword $(subst ., ,$(page)))/$(page) &&) true
	install -D -m 0644 deploy/warmpath.bash-completion $(DESTDIR)$(COMPLETIONDIR)/warmpath
	install -D -m 0644 deploy/warmpath.yaml $(DESTDIR)$(PREFIX)/share/doc/warmpath/examples/warmpath.yaml
	install -m 0644 deploy/examples/*.yaml $(DESTDIR)$(PREFIX)/share/doc/warmpath/examples/
	install -D -m 0644 README.md $(DESTDIR)$(PREFIX)/share/doc/warmpath/README.md
	install -D -m 0644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/warmpath/LICENSE

deb:
	./tools/package

test-deb: deb all
	./tests/run package

clean:
	rm -rf $(BUILD)

# not what lies in copies of sources and in roots of their own
-include $(shell find $(BUILD) -path $(BUILD)/kubernetes -prune -o -path $(BUILD)/deb -prune -o -path $(BUILD)/package -prune -o -type f -name '*.d' -print 2>/dev/null)
