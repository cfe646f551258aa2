#!/bin/sh
# Runs the tests of tests/cluster against the cluster of up.sh; arguments go to pytest. When all of them passed on a
# clean tree, or all but those of autoscaling, which may be left out, the digest of what they test is written into
# `verified`, to be committed.
set -eu
. "$(dirname "$0")/common.sh"

clean() {
    [ -z "$(git status --porcelain)" ]
}

[ -d "$run/pids" ] || fail "there is no cluster; make cluster-up starts one"
cd "$deploy/.."
clean && tested=$(sh deploy/dev-cluster/tested.sh) || tested=
export CLUSTER_STATE="$run" CLUSTER_KUBECTL="$(program kubectl)" CLUSTER_TEMPORAL="$gateway:$temporal_port" CLUSTER_INTERNET="$internet"
PYTHONDONTWRITEBYTECODE= .venv/bin/pytest -vs -rs --durations=0 --durations-min=1 --no-header "$@" tests/cluster
if [ $# = 0 ] && [ -n "$tested" ] && [ ! -f "$run/no-node" ]; then
    echo "$tested" >deploy/dev-cluster/verified
fi
