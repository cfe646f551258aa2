#!/bin/sh
# Starts a Kubernetes cluster of one node on this machine, with Temporal on Postgres beside it: up.sh [keda].
# All of it is built from source or comes from Debian. What this machine has no right to is left out; the tests say why.
set -eu
. "$(dirname "$0")/common.sh"

step() { # NAME SCRIPT...
    began=$(date +%s) name=$1 script=$2
    shift 2
    sh "$here/$script" "$@"
    say "$name: $(($(date +%s) - began)) s"
}

if [ -d "$run/pids" ]; then fail "it is up, or was not ended well; make cluster-down ends it"; fi
if [ "$(id -u)" != 0 ]; then fail "only root can start it"; fi
mkdir -p "$run/pids" "$run/log"
trap '[ $? = 0 ] || sh "$here/down.sh"' EXIT
trap 'exit 130' INT TERM
step packages packages.sh
step programs build.sh "$@"
step "control plane" control-plane.sh
step network network.sh
if [ -f "$run/no-node" ]; then exit 0; fi
step Temporal temporal.sh
step node node.sh
step policies policies.sh
if [ "${1:-}" = keda ]; then step autoscaling autoscaling.sh; fi
