# The everyday commands; the build itself is CMake's (CMakePresets.json).
#   make run PROMPT="..."   install, build, and let the default model answer
#   make help               all commands

PROMPT ?= What is a will-o'-the-wisp? Answer in two sentences.
# As typed: neither make nor the shell expands it.
export WISP_PROMPT = $(value PROMPT)
export PATH := $(HOME)/.cargo/bin:$(PATH)

FORMATTED = git ls-files -co --exclude-standard '*.cpp' '*.h'

.DEFAULT_GOAL := build
.PHONY: build run test check format clean distclean help

# Ninja re-runs CMake when a CMakeLists.txt changes, so one configuration is enough.
CONFIGURE = test -f build/release/build.ninja || cmake --preset release

build:  ## build build/release/wisp, installing what it needs
	@tools/setup.sh build
	@$(CONFIGURE)
	@cmake --build --preset release --target wisp

run:  ## let the default model answer PROMPT
	@tools/setup.sh build model
	@$(CONFIGURE)
	@cmake --build --preset release --target wisp
	@build/release/wisp run -p "$$WISP_PROMPT"

test:  ## build and run all tests
	@tools/setup.sh build model test checks
	@$(CONFIGURE)
	@cmake --build --preset release
	@tools/run_tests.py build/release

check:  ## format, lint, layering, sizes, orphans
	@tools/setup.sh build checks
	@$(CONFIGURE)
	@cmake --build --preset release
	@tools/check.py

format:  ## format the C++ files in place
	@tools/setup.sh checks
	@$(FORMATTED) | xargs -r clang-format-14 -i

clean:  ## remove build results, keep what was fetched
	@rm -rf build/release build/debug build/asan build/fuzz build/cargo build/ci

distclean:  ## remove build/ whole
	@rm -rf build

help:  ## this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20
