#!/bin/sh
# Runs the tests of tests/cluster against the cluster of up.sh; arguments go to pytest. When all of them passed on a
# clean tree, the commit is written into the file `verified`, to be committed.
. "$(dirname "$0")/common.sh"

clean() {
    [ -z "$(git status --porcelain)" ]
}

[ -d "$run/pids" ] || fail "there is no cluster; make cluster-up starts one"
cd "$deploy/.."
clean && commit=$(git rev-parse HEAD) || commit=
export CLUSTER_STATE="$run" CLUSTER_KUBECTL="$(program kubectl)" CLUSTER_TEMPORAL="$gateway:$temporal_port"
PYTHONDONTWRITEBYTECODE= .venv/bin/pytest -vs -rs --durations=0 --durations-min=1 --no-header "$@" tests/cluster
if [ $# = 0 ] && [ -n "$commit" ] && clean && ls "$run/pids/keda-operator" >/dev/null 2>&1; then
    echo "$commit" >deploy/dev-cluster/verified
fi
