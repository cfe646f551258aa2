#!/bin/sh
# Builds a program that the go.mod of a folder pins, for this machine.
# go-build.sh FOLDER PACKAGE TARGET [LINKER-FLAGS]; TARGET is an absolute path.
set -eu
cd "$1"
package=$2 target=$3
needed=$(sed -n 's/^go //p' go.mod)

if ! command -v go >/dev/null; then
    echo "Go is not installed; $needed or newer is needed"
    exit 1
fi
unset GOOS GOARCH # whatever a person cross-compiles for in this shell
export GOWORK=off CGO_ENABLED=0
if ! go build -mod=readonly -trimpath -o "$target" -ldflags "-s -w ${4:-}" "$package"; then
    echo "$(cd / && go version) did not build it; Go $needed or newer is needed"
    exit 1
fi
