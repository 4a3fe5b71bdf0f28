# The everyday commands; the build itself is CMake's (CMakePresets.json).
#   make run PROMPT="..."   install, build, and let the default model answer
#   make help               all commands

PROMPT ?= What is a will-o'-the-wisp? Answer in two sentences.
# As typed: neither make nor the shell expands it.
export WISP_PROMPT = $(value PROMPT)
export PATH := $(HOME)/.cargo/bin:$(PATH)

FORMATTED = git ls-files -co --exclude-standard '*.cpp' '*.h'

.DEFAULT_GOAL := build
.PHONY: build all run test check format clean distclean help

build: build/release/build.ninja  ## build build/release/wisp, installing what it needs
	@cmake --build --preset release --target wisp

all: build/release/build.ninja  ## build everything: program, tests, benchmarks
	@cmake --build --preset release

# Configured once; Ninja re-runs CMake when a CMakeLists.txt changes.
build/release/build.ninja: setup-build
	@test -f $@ || cmake --preset release

.PHONY: setup-build
setup-build:
	@tools/setup.sh build

run: build  ## let the default model answer PROMPT
	@tools/setup.sh model
	@build/release/wisp run -p "$$WISP_PROMPT"

test: all  ## build and run all tests
	@tools/setup.sh model test checks
	@tools/run_tests.py build/release

check: all  ## format, lint, layering, sizes, orphans
	@tools/setup.sh checks
	@tools/check.py

format:  ## format the C++ files in place
	@tools/setup.sh checks
	@$(FORMATTED) | xargs -r clang-format-14 -i

clean:  ## remove build results, keep what was fetched
	@rm -rf build/release build/debug build/asan build/clang build/fuzz build/ci

distclean:  ## remove build/ whole
	@rm -rf build

help:  ## this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20
