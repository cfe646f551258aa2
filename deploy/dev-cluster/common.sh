# Sourced by the scripts of this folder: where things are, and how processes are started, awaited and ended.
here=$(cd "$(dirname "$0")" && pwd)
deploy=$(dirname "$here")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sennit
run=${CLUSTER_STATE:-/var/lib/sennit-dev} # not below /root, which Postgres and the pods cannot enter

bridge=sennit0
gateway=${CLUSTER_GATEWAY:-10.244.0.1} # the machine as pods see it, and the node as the control plane sees it
internet=203.0.113.1 # the machine again, where a test wants a server on the internet
temporal_port=${CLUSTER_TEMPORAL_PORT:-7233} # and the three after it, and these plus 100
etcd_port=26379
api_port=26443
kubelet_port=26250
postgres_port=${CLUSTER_POSTGRES_PORT:-26432}
export KUBECONFIG=$run/kubeconfig

say() {
    echo "cluster: $*"
}

fail() {
    echo "cluster: $*" >&2
    exit 1
}

module() { # PROGRAM: the folder whose go.mod pins it
    case $1 in
    keda-* | kube-router | metrics-server) echo "$here/addons" ;;
    kube*) echo "$here/kubernetes" ;;
    pause) echo "$here/pause" ;;
    temporal-*) echo "$here/temporal" ;;
    esac
}

program() { # NAME: where it is once it is built
    folder=$(module "$1")
    key=$(uname -m | cat - "$folder"/* "$deploy/go-build.sh" "$here/build.sh" | sha256sum | cut -c -16)
    echo "$cache/$1-$key"
}

kubectl() {
    "$(program kubectl)" "$@"
}

start() { # NAME COMMAND...; the variable tells the processes of this cluster from all others
    name=$1
    shift
    SENNIT_CLUSTER=$run setsid "$@" >>"$run/log/$name" 2>&1 </dev/null &
    echo $! >"$run/pids/$name"
}

await() { # SECONDS NAME COMMAND...: until the command succeeds; NAME is the process it asks
    left=$(($1 * 4)) name=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        if [ $left -lt 0 ] || ! kill -0 "$(cat "$run/pids/$name")" 2>/dev/null; then
            tail -n 20 "$run/log/$name" >&2
            fail "$name is not up; the end of its log is above"
        fi
        sleep 0.25
    done
}

belongs() { # PID: whether it is a living process of this cluster
    grep -qzx "SENNIT_CLUSTER=$run" "/proc/$1/environ" 2>/dev/null
}
