# Builds the testbed's programs and libraries in C into .venv/lib: `make`, which setup.sh calls.
# The guest's kernel is built by kernel/image.sh.

lib := .venv/lib
objects := .venv/objects

CC := gcc
CFLAGS := -O2 -Wall -Wextra
DEPENDENCIES = -MMD -MP

all:

# $(call program,FILE,SOURCES): a program; $(call library,FILE,SOURCES): a shared library
object_files = $(patsubst %.c,$(objects)/%.o,$(wildcard $(1)))
define link
all: $(lib)/$(1)
$(lib)/$(1): $(call object_files,$(2))
	$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@.new $$^ $$(LDLIBS)
	mv $$@.new $$@
	cd $(lib) && sha256sum $(1) >$(1).sha256
-include $(patsubst %.o,%.d,$(call object_files,$(2)))
endef
program = $(eval $(call link,$(1),$(2)))
library = $(eval $(lib)/$(1): CFLAGS += -fPIC)$(eval $(lib)/$(1): LDFLAGS += -shared)$(program)

$(call program,testbed-confine,testbed/guest/confine.c)
$(call program,testbed-machine,$(addprefix testbed/guest/,machine.c judge.c namespaces.c observer.c sampler.c))
$(call program,testbed-runner,testbed/runner/*.c)
$(call library,testbed-spoken-netlink.so,testbed/runner/preload/*.c)
$(call program,testbed-guard,testbed/machine/guard.c)
$(call program,testbed-medium,testbed/trial/medium/*.c)
$(call program,testbed-workload,testbed/traffic/workload/*.c)
$(call program,testbed-call,testbed/traffic/call/*.c)
$(call library,testbed-capture.so,analysis/captures/core/*.c)
iperf3 := testbed/traffic/iperf3
$(call library,testbed-iperf3.so,$(iperf3)/pace.c $(iperf3)/combined_calls.c $(iperf3)/template.c)
$(call library,testbed-openssl.so,testbed/guest/openssl_random.c)
$(call library,testbed-packetdrill.so,testbed/guest/packetdrill_calls.c)
$(call library,testbed-on-off.so,$(iperf3)/on_off.c)
$(call library,testbed-control.so,$(iperf3)/control.c)
$(call library,testbed-pcapng.so,testbed/trial/parts/pcapng.c)
$(call library,testbed-samples.so,testbed/trial/parts/sample_rows.c)

# iperf3 sends from threads since 3.16
ifneq ($(shell dpkg-query -Wf '$${Version}' iperf3 | xargs dpkg --compare-versions 3.16 le && echo yes),)
$(call library,testbed-limit.so,$(iperf3)/limit.c)
endif

$(lib)/testbed-medium: LDLIBS += -lm
# without libraries: loading them is half of a start in the guest
$(lib)/testbed-guard $(lib)/testbed-machine $(lib)/testbed-runner: LDFLAGS += -static
# -O3 across files: a tenth of the time in which a capture is read
$(lib)/testbed-capture.so: CFLAGS += -O3 -flto=auto -fno-semantic-interposition -pthread

all: $(lib)/testbed-openssl.cnf
$(lib)/testbed-openssl.cnf: testbed/guest/openssl.cnf Makefile
	sed 's#= LIBRARY#= $(abspath $(lib))/testbed-openssl.so#' $< > $@

# what a cluster compares between its machines: the sources of the programs that run in guests
guest_sources := $(filter-out testbed/trial/parts/%,$(sort $(wildcard testbed/guest/*.[ch] testbed/guest/*.cnf \
	testbed/machine/*.c testbed/runner/*.[ch] testbed/traffic/*/*.[ch] testbed/trial/*/*.[ch])))
all: $(lib)/testbed-sources
$(lib)/testbed-sources: $(guest_sources)
	sha256sum $(guest_sources) > $@

$(objects)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(DEPENDENCIES) -c -o $@ $<

.PHONY: all

# dist/: the wheel and what it is made of (contrib/sbom.py); the same commit gives the same bytes
# on a machine, whatever the user's umask and the files' times are. Root's tar keeps the archive's modes,
# which git makes group-writable.
.PHONY: release
release:
	rm -rf dist
	umask 022 && mkdir dist && source=$$(mktemp -d) && trap 'rm -rf $$source' EXIT && \
	export SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} && \
	git -c tar.umask=0022 -c core.autocrlf=false -c core.attributesFile=/dev/null archive HEAD | \
		tar -x -C $$source && \
	.venv/bin/python $$source/contrib/sbom.py >dist/sbom.json && \
	.venv/bin/python -m pip wheel -q --no-deps --no-build-isolation -w dist $$source
