#!/bin/sh
# Builds the programs of the cluster that the go.mod files here pin, and those of autoscaling if asked to: build.sh [keda].
# `build.sh temporal` builds Temporal alone.
# What was built before stays. Nothing is built twice at once, and a killed build leaves no half program.
set -eu
. "$(dirname "$0")/common.sh"

build() { # NAME PACKAGE [LINKER-FLAGS]
    target=$(program "$1")
    exec 9>"$cache/$1.lock"
    flock 9
    [ -x "$target" ] && return
    began=$(date +%s)
    say "building $1 ..."
    if ! nice -n 15 sh "$deploy/go-build.sh" "$(module "$1")" "$2" "$target.part" "${3:-}" >"$cache/$1.log" 2>&1; then
        tail -n 20 "$cache/$1.log" >&2
        fail "$1 could not be built; the end of $cache/$1.log is above"
    fi
    mv "$target.part" "$target"
    say "built $1 in $(($(date +%s) - began)) s"
}

kubernetes() {
    release=$(sed -n 's/^\tk8s.io\/kubernetes \([^ ]*\).*/\1/p' "$here/kubernetes/go.mod")
    minor=${release#v1.}
    version=k8s.io/component-base/version
    for each in kubectl kube-apiserver kube-controller-manager kube-scheduler kubelet; do
        build $each k8s.io/kubernetes/cmd/$each \
            "-X $version.gitVersion=$release -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"
    done
}

crds() { # KEDA's own kinds, without which no manifest that uses them can be applied
    target=$(program keda-crds.yaml)
    [ -f "$target" ] && return
    keda=$(cd "$here/addons" && GOWORK=off go mod download -json github.com/kedacore/keda/v2 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    kubectl kustomize "$keda/config/crd" >"$target.part"
    mv "$target.part" "$target"
}

temporal() {
    build temporal-server go.temporal.io/server/cmd/server
    build temporal-sql-tool go.temporal.io/server/cmd/tools/sql
}

mkdir -p "$cache"
if [ "${1:-}" = temporal ]; then
    temporal
    exit
fi
kubernetes
crds
build pause cluster-pause
temporal
build kube-router github.com/cloudnativelabs/kube-router/v2/cmd/kube-router
if [ "${1:-}" = keda ]; then
    build keda-operator github.com/kedacore/keda/v2/cmd/operator
    build keda-adapter github.com/kedacore/keda/v2/cmd/adapter
    build metrics-server sigs.k8s.io/metrics-server/cmd/metrics-server
fi
