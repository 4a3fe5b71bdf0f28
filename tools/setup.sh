#!/usr/bin/env bash
# Installs and fetches what the project needs; whatever is there already is left alone.
#   tools/setup.sh PART...
#     build     compilers, libraries, cargo, the WebGPU headers, the Rust crates
#     model     the default model, into build/models
#     test      what `make test` needs on top of build: a CPU Vulkan driver
#     checks    what tools/check.py and .ci/run need: clang, its tools, ccache
#     python    build/venv with tools/requirements.txt, for the scripts that make test data
# Debian packages come through apt-get (as root or through sudo); everything else is pinned by
# version and hash and lands under build/. Failures are one line on stderr and exit 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PATH="$HOME/.cargo/bin:$PATH"

build_packages=(build-essential cmake ninja-build git ca-certificates python3 python3-pip
  libhwy-dev nlohmann-json3-dev libcli11-dev libfmt-dev libgtest-dev libvulkan1)
check_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev ccache)
python_packages=(python3-venv)
cargo_minimum=1.87

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# Prints the packages among the arguments that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    case "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)" in
      ii*) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done
}

unreachable='[Cc]ould ?n.t (connect|resolve)|Could not (connect|resolve)|[Tt]imed? ?out|curl'

# One line about why apt-get failed, from its log.
apt_reason() {
  if grep -qE "$unreachable|Unable to locate package|has no installation candidate" "$1"; then
    printf 'the Debian package archive cannot be reached, or lacks them'
  elif grep -q 'Packages need to be removed' "$1"; then
    printf 'they conflict with installed packages; remove those first'
  else
    grep -E '^E: ' "$1" | tail -n 1 || true
  fi
}

install_packages() {
  command -v dpkg-query >/dev/null || {
    say "no Debian packages on this system: taking for granted: $*"
    return
  }
  local missing log root=()
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "missing packages: ${missing[*]} (you are not root and" \
      "there is no sudo: ask an administrator to apt-get install them)"
    sudo -n true 2>/dev/null || [ -t 0 ] || die "missing packages: ${missing[*]} (sudo wants a" \
      "password and there is no terminal: run 'sudo apt-get install ${missing[*]}')"
    root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  mkdir -p build
  log=build/setup-apt.log
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300
    -o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20)
  # A third-party archive that fails to update must not stop the install; apt-get says if one is
  # needed.
  "${apt[@]}" update >"$log" 2>&1 || true
  "${apt[@]}" install -y --no-install-recommends --no-remove "${missing[@]}" >>"$log" 2>&1 ||
    die "cannot install ${missing[*]}: $(apt_reason "$log") (details: $log)"
}

# The version of the cargo on PATH as 1.87, or nothing.
cargo_version() {
  cargo --version 2>/dev/null | sed -nE 's/^cargo ([0-9]+\.[0-9]+).*/\1/p' || true
}

# Whether version $1 is at least $2.
at_least() { [ -n "$1" ] && [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

install_cargo() {
  at_least "$(cargo_version)" "$cargo_minimum" && return 0
  install_packages cargo-web
  hash -r
  at_least "$(cargo_version)" "$cargo_minimum" ||
    die "cargo $cargo_minimum or newer is needed, $(command -v cargo || echo 'no cargo') says" \
      "'$(cargo --version 2>&1 | head -n 1 || true)'"
}

# One line about why cargo failed, from its log.
crate_reason() {
  if grep -qE "$unreachable|spurious network error" "$1"; then
    printf 'the crate registry cannot be reached'
  else
    grep -E '^error' "$1" | head -n 1 || true
  fi
}

# Downloads the crates of the lock file that this system needs once, so that the build itself needs
# no network.
fetch_crates() {
  local lock=Cargo.lock host stamp log=build/setup-cargo.log
  [ -f "$lock" ] || return 0
  stamp=build/deps/crates-$(sha256sum "$lock" | cut -c 1-16)
  [ -f "$stamp" ] && return 0
  say "fetching the Rust crates of $lock"
  host=$(rustc -vV | sed -n 's/^host: //p')
  CARGO_NET_RETRY=1 CARGO_HTTP_TIMEOUT=20 cargo fetch --locked --target "$host" >"$log" 2>&1 ||
    die "cannot fetch the crates of $lock: $(crate_reason "$log") (details: $log)"
  rm -f build/deps/crates-*
  touch "$stamp"
}

# Runs tools/$1 DEST; the script checks the hash, does nothing where DEST is up to date, and says
# in one line what failed.
fetch() { "tools/$1" "$2" || exit 1; }

setup_build() {
  install_packages "${build_packages[@]}"
  install_cargo
  fetch fetch_wgpu.sh build/deps/wgpu
  fetch_crates
}

setup_model() { fetch fetch_model.sh build/models/smollm2-135m-instruct.gguf; }

setup_test() {
  local packages
  read -ra packages <<<"$(tools/fetch_lavapipe.sh --packages)"
  install_packages "${packages[@]}"
  fetch fetch_lavapipe.sh build/deps/mesa
}

setup_checks() { install_packages "${check_packages[@]}"; }

setup_python() {
  local stamp log=build/setup-python.log
  stamp=build/venv/done-$(sha256sum tools/requirements.txt | cut -c 1-16)
  [ -f "$stamp" ] && return 0
  install_packages "${python_packages[@]}"
  say "making build/venv with tools/requirements.txt"
  rm -rf build/venv
  python3 -m venv build/venv >"$log" 2>&1 || die "python3 -m venv failed (details: $log)"
  build/venv/bin/pip install --timeout 20 --retries 2 --no-deps --require-hashes \
    --only-binary :all: -r tools/requirements.txt >>"$log" 2>&1 ||
    die "cannot install tools/requirements.txt: $(grep -E '^ERROR' "$log" | tail -n 1)" \
      "(details: $log)"
  touch "$stamp"
}

(($#)) || die "say which parts: build, model, test, checks, python"
for part in "$@"; do
  case "$part" in
    build | model | test | checks | python) ;;
    *) die "unknown part '$part' (build, model, test, checks, python)" ;;
  esac
done
mkdir -p build/deps build/models
for part in "$@"; do "setup_$part"; done
