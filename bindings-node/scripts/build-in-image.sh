#!/bin/sh
# Builds and loads the addon within a container image of Node, Debian's or Alpine's, and leaves it as
# addons/PLATFORM.node. For the release workflow; run it at the root of the tree.
set -eu
platform=$1

if [ -f /etc/alpine-release ]; then
  apk add --no-cache build-base rustup
  rustup-init -y --profile minimal --default-toolchain "$RUST"
  # A shared library must not hold a libc of its own.
  export RUSTFLAGS="-C target-feature=-crt-static"
else
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal --default-toolchain "$RUST"
fi
PATH="$HOME/.cargo/bin:$PATH"

cd bindings-node
npm ci --ignore-scripts
npm run build
node -e 'new (require("./").Server)({ name: "loads", version: "1" })'
mkdir -p ../addons
cp dist/mcpline.node "../addons/$platform.node"
