#!/bin/sh
# Builds the Temporal CLI that go.mod pins, for this machine: build.sh RELEASE TARGET.
set -eu
release=$1 target=$2
cd "$(dirname "$0")"
needed=$(sed -n 's/^go //p' go.mod)

if ! command -v go >/dev/null; then
    echo "Go is not installed; $needed or newer is needed"
    exit 1
fi
unset GOOS GOARCH # whatever a person cross-compiles for in this shell
export GOWORK=off
if ! go build -mod=readonly -o "$target" \
    -ldflags "-s -w -X github.com/temporalio/cli/internal/temporalcli.Version=${release#v}" \
    github.com/temporalio/cli/cmd/temporal; then
    echo "$(cd / && go version) did not build it; Go $needed or newer is needed"
    exit 1
fi
