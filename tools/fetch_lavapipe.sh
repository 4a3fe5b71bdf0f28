#!/bin/sh
# Usage: tools/fetch_lavapipe.sh DEST | tools/fetch_lavapipe.sh --packages
# Unpacks Mesa's CPU Vulkan driver of Debian bookworm-backports (Mesa 25.0: f16, subgroups of 8; that
# of bookworm itself is too old) into DEST and writes DEST/lvp_icd.json, to be named by
# VK_DRIVER_FILES. The system's packages and package lists stay as they are; no root is needed.
# --packages prints the Debian packages that the driver needs installed at run time.
set -eu

VERSION=25.0.7-2~bpo12+1
# What the driver links with. Those of bookworm do, although the package asks for a newer libdrm.
PACKAGES="libvulkan1 libllvm15 libdrm2 libexpat1 libxcb1 libxcb-randr0 libx11-xcb1 libxcb-dri3-0
libxcb-present0 libxcb-xfixes0 libxcb-sync1 libxcb-shm0 libxshmfence1 libwayland-client0 libzstd1
zlib1g"

[ $# -eq 1 ] || { echo "usage: $0 DEST | --packages" >&2; exit 2; }
if [ "$1" = --packages ]; then echo $PACKAGES; exit 0; fi

case "$(dpkg --print-architecture 2>/dev/null || uname -m)" in
  amd64) SHA256=3899f1800424c60a05df5d6913076a526ca8fdbabec43672cd397563d1ca3263 ;;
  *) echo "fetch_lavapipe: no pinned driver for this processor; GPU tests need a Vulkan driver" \
          "of Mesa 25 or newer, named by VK_DRIVER_FILES" >&2; exit 1 ;;
esac

mkdir -p "$1"
DEST=$(cd "$1" && pwd)
LIBRARY=usr/lib/x86_64-linux-gnu/libvulkan_lvp.so
STAMP="mesa $VERSION $DEST"
if [ "$(cat "$DEST/stamp" 2>/dev/null || true)" = "$STAMP" ]; then exit 0; fi

WORK=$(mktemp -d "${TMPDIR:-/tmp}/fetch_lavapipe.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
# The suite, read through the mirror that this system already uses for bookworm.
MIRROR=$(sed -n 's/^URIs: *\([^ ]*\/debian\)\/*$/\1/p; s/^deb  *\(\[[^]]*\] *\)\?\(http[^ ]*\/debian\)\/* bookworm .*/\2/p' \
  /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
  head -n 1)
mkdir -p "$WORK/lists/partial" "$WORK/cache/archives/partial" "$WORK/none"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
     "${MIRROR:-http://deb.debian.org/debian} bookworm-backports main" > "$WORK/sources.list"
apt_private() {
  tool=$1; shift
  "$tool" -qq -oDir::Etc::sourcelist="$WORK/sources.list" -oDir::Etc::sourceparts="$WORK/none" \
    -oDir::State::lists="$WORK/lists" -oDir::Cache="$WORK/cache" -oAPT::Sandbox::User="$(id -un)" \
    -oAcquire::Languages=none -oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
    -oAPT::Update::Post-Invoke-Success::= -oAcquire::Retries=2 "$@"
}
if ! (cd "$WORK" && apt_private apt-get update && \
      apt_private apt-get download "mesa-vulkan-drivers=$VERSION") > "$WORK/log" 2>&1; then
  echo "fetch_lavapipe: cannot download mesa-vulkan-drivers $VERSION of bookworm-backports from" \
       "${MIRROR:-deb.debian.org}: is the Debian mirror reachable?" >&2
  tail -n 5 "$WORK/log" >&2
  exit 1
fi
DEB=$(echo "$WORK"/mesa-vulkan-drivers_*.deb)
if ! echo "$SHA256  $DEB" | sha256sum --check --quiet - >&2; then
  echo "fetch_lavapipe: $(basename "$DEB") does not have the pinned hash" >&2
  exit 1
fi
dpkg-deb --extract "$DEB" "$WORK/root"
mkdir -p "$DEST/$(dirname $LIBRARY)"
cp "$WORK/root/$LIBRARY" "$DEST/$LIBRARY"
cat > "$DEST/lvp_icd.json" <<JSON
{"file_format_version": "1.0.0", "ICD": {"library_path": "$DEST/$LIBRARY", "api_version": "1.4.305"}}
JSON
MISSING=$(ldd "$DEST/$LIBRARY" | sed -n 's/^\s*\(\S*\) => not found/\1/p' | tr '\n' ' ')
if [ -n "$MISSING" ]; then
  echo "fetch_lavapipe: the driver lacks $MISSING: install these Debian packages:" $PACKAGES >&2
  exit 1
fi
echo "$STAMP" > "$DEST/stamp"
