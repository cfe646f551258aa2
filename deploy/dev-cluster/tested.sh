#!/bin/sh
# Prints the digest of all committed files that the cluster's tests depend on.
set -eu
cd "$(dirname "$0")/../.."
git ls-files -s -- deploy sennit workers workflows activities starter tests/cluster requirements.lock ':!deploy/dev-cluster/verified' |
    sha256sum | cut -d ' ' -f 1
