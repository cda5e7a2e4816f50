# SPDX-License-Identifier: Apache-2.0
#
# The door. Meson and ninja do the work; build-aux/ holds the scripts. Every target
# installs the Debian packages it lacks (or says which), builds, and does its job.
#
#   make                       build
#   make run ARGS="run -- ls"  build and run stet in the directory make was called in
#   make test                  every test; ends with "N passed, N failed"
#   make quick                 meta, the unit tests and the policy's rows with one build, and about
#                              a hundred fault points: less than a minute; for all the time
#   make torture               fault points of commit, undo and the rest, made to fail; a
#                              sample, or all of them with STET_TORTURE=full
#   make long                  what `make test` does for a moment: editors that save during a
#                              commit, readers of what is replaced, a look at every directory
#   make race                  100,000 execs whose arguments change meanwhile
#   make fuzz [SECONDS=60]     libFuzzer on what parses what others wrote
#   make policy-report [CORPUS=DIR]
#                              rates of the built-in policy, as text and run for real with
#                              canaries outside; writes docs/policy-report.md
#   make powercut              a logged disk, cut off at many points (root)
#   make vm [TESTS="test_limits"]
#                              the live and unit tests on Debian 12's own kernel, in a virtual
#                              machine with cgroups of version 2 (root)
#   make fidelity              every pair of objects through commit, undo, redo
#   make matrix [CELLS=all] [SEED=N] [CELL="COMMAND | EDIT | SEQUENCE"]
#                              every command inside x edit of the host x moment; a sample of it,
#                              all (hours), or some; and random sequences
#   make model                 checkpoints against plain copies, thousands of random steps
#   make sanitized             the cli and live tests with the sanitizers as root (root; as an
#                              ordinary user they are part of `make test`)
#   make install PREFIX=/usr/local DESTDIR=
#   make bench                 the benchmarks; writes bench/RESULTS.md
#   make fmt                   clang-format on all sources
#   make clean
#
# `make -f DIR/Makefile run` works from any directory.

PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=

ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
AUX := $(ROOT)/build-aux

# Taken as it was typed: a `$` in ARGS is the shell's, not make's.
export STET_ARGS = $(value ARGS)

all:
	@"$(AUX)/deps" build
	@"$(AUX)/build" release >/dev/null

run:
	@"$(AUX)/deps" build
	@"$(AUX)/door" run

test:
	@"$(AUX)/deps" build test
	@"$(ROOT)/tests/run"

long:
	@"$(AUX)/deps" build test
	@STET_LONG=1 "$(ROOT)/tests/run" live -- -k \
		"editor_during or readers_never or swapped_for_a_link or find_has_no_more or \
		every_path_known"

race:
	@"$(AUX)/deps" build test
	@"$(ROOT)/tests/race/run"

fuzz:
	@"$(AUX)/deps" build test
	@"$(ROOT)/tests/fuzz/run" $(or $(SECONDS),60)

policy-report:
	@"$(AUX)/deps" build test
	@"$(AUX)/build" release tests >/dev/null
	@"$(ROOT)/tests/policy/report" --output "$(ROOT)/docs/policy-report.md" \
		$(if $(CORPUS),--corpus "$(abspath $(CORPUS))")

quick torture powercut fidelity model sanitized:
	@"$(AUX)/deps" build test
	@"$(ROOT)/tests/run" $@

matrix:
	@"$(AUX)/deps" build test
	@STET_MATRIX="$(CELLS)" STET_MATRIX_SEED="$(SEED)" STET_MATRIX_CELL="$(CELL)" \
		"$(ROOT)/tests/run" $@

vm:
	@"$(AUX)/deps" build test vm
	@"$(ROOT)/tests/vm/run" $(TESTS)

install:
	@"$(AUX)/deps" build
	@"$(AUX)/door" install "$(PREFIX)" "$(DESTDIR)"

bench:
	@"$(AUX)/deps" build bench
	@"$(AUX)/door" bench

fmt:
	@"$(AUX)/deps" format
	@cd "$(ROOT)" && find src tests bench -name '*.[ch]' -exec clang-format-14 -i {} +

clean:
	@"$(AUX)/door" clean

.PHONY: all run test quick long race fuzz policy-report torture powercut fidelity model matrix sanitized vm install bench fmt clean
