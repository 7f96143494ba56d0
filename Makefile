# Builds the programs and libraries in C into .venv/lib: the testbed's own, iperf3, ip and tc: `make`,
# which setup.sh calls. The guest's kernel is built by kernel/image.sh.

lib := .venv/lib
objects := .venv/objects

CC := gcc
CFLAGS := -O2 -Wall -Wextra
DEPENDENCIES = -MMD -MP

all:

# $(call program,FILE,SOURCES): a program; $(call library,FILE,SOURCES): a shared library
note = (cd $(lib) && sha256sum $(1) >$(1).sha256)
object_files = $(patsubst %.c,$(objects)/%.o,$(wildcard $(1)))
define link
all: $(lib)/$(1)
$(lib)/$(1): $(call object_files,$(2))
	$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@.new $$(filter %.o,$$^) $$(LDLIBS)
	mv $$@.new $$@
	$(call note,$(1))
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

$(lib)/testbed-medium: LDLIBS += -lm
# without libraries: loading them is half of a start in the guest
$(lib)/testbed-guard $(lib)/testbed-machine $(lib)/testbed-runner: LDFLAGS += -static
# -O3 across files: a tenth of the time in which a capture is read
$(lib)/testbed-capture.so: CFLAGS += -O3 -flto=auto -fno-semantic-interposition -pthread

$(lib)/testbed-openssl.so: testbed/guest/openssl.cnf $(wildcard testbed/traffic/video/*.pem)
all: $(lib)/testbed-openssl.cnf
$(lib)/testbed-openssl.cnf: testbed/guest/openssl.cnf
	cp $< $@

# Built from Debian's sources (foreign/*.list), as what they send must not depend on the machine.
foreign := $(objects)/foreign
unpack = rm -rf $(foreign)/$(1) && mkdir -p $(foreign)/$(1) && \
	tar -x -C $(foreign)/$(1) --strip-components=1 -f "$$(python3 foreign/fetch.py $(2))"
# iperf3 is compiled with Debian's options: it then calls by other names what a preloaded library has.
all: $(lib)/testbed-iperf3 $(lib)/testbed-tc
$(lib)/testbed-iperf3: foreign/iperf3.list $(wildcard foreign/iperf3/*)
	$(call unpack,iperf3,iperf3_3.12.orig.tar.gz)
	for patch in foreign/iperf3/*.patch; do patch -s -p1 -d $(foreign)/iperf3 <$$patch || exit; done
	cd $(foreign)/iperf3/src && rm t_*.c && touch version.h
	$(CC) -O2 -w -std=gnu11 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -s -I foreign/iperf3 -o $@.new $(foreign)/iperf3/src/*.c -lm
	mv $@.new $@
	$(call note,$(@F))
# without the machine's names of protocols and tables (CONFDIR), and its plugins
$(lib)/testbed-tc: foreign/iproute2.list
	$(call unpack,iproute2,iproute2_6.1.0.orig.tar.xz)
	cd $(foreign)/iproute2 && PKG_CONFIG=false ./configure >log
	env -u MAKEFLAGS make -j $(shell nproc) -C $(foreign)/iproute2 SUBDIRS="lib ip tc" SHARED_LIBS=n CONFDIR=/nowhere \
		CC="$(CC)" LDFLAGS=-s CCOPTS="-O2 -w -std=gnu11" >>$(foreign)/iproute2/log
	for name in ip tc; do \
		cp $(foreign)/iproute2/$$name/$$name $(lib)/testbed-$$name && $(call note,testbed-$$name) || exit; \
	done

# what a cluster compares between its machines: the sources of the programs that run in guests
guest_sources := $(filter-out testbed/trial/parts/%,$(sort $(wildcard testbed/guest/*.[ch] testbed/guest/*.cnf \
	testbed/machine/*.c testbed/runner/*.[ch] testbed/traffic/*/*.[ch] testbed/trial/*/*.[ch] foreign/ip*.list foreign/iperf3/*)))
all: $(lib)/testbed-sources
$(lib)/testbed-sources: $(guest_sources)
	sha256sum $(guest_sources) > $@

$(objects)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(DEPENDENCIES) -c -o $@ $<

.PHONY: all

.PHONY: release
release:
	contrib/release.sh
	contrib/papers.sh dist/papers
