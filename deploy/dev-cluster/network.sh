#!/bin/sh
# Makes the network of the pods, if this machine may run any. If not, it writes why into the file `no-node`.
set -eu
. "$(dirname "$0")/common.sh"
node=$run/node

problem() { # what the kubelet and containerd will do is tried first
    trial=$run/trial
    mkdir -p "$trial/lower" "$trial/upper" "$trial/work" "$trial/merged"
    group=$(find /sys/fs/cgroup -maxdepth 1 -name memory -type d | grep . || echo /sys/fs/cgroup)/sennit-trial
    if find /sys/fs/cgroup -maxdepth 2 -name kubepods | grep -q .; then
        echo "this machine already is a node of a cluster"
    elif ! ip link add "$bridge" type bridge 2>/dev/null; then
        echo "this machine lets nobody make network devices"
    elif ! mount -t overlay overlay -o "lowerdir=$trial/lower,upperdir=$trial/upper,workdir=$trial/work" "$trial/merged"; then
        echo "this machine lets nobody mount an overlay"
    elif ! unshare --net --mount --pid --fork true; then
        echo "this machine lets nobody make namespaces"
    elif ! mkdir "$group"; then
        echo "this machine lets nobody make control groups"
    fi 2>/dev/null
    rmdir "$group" 2>/dev/null || true
    umount "$trial/merged" 2>/dev/null || true
    rm -rf "$trial"
}

network() {
    ip addr add "$gateway/24" dev "$bridge"
    ip addr add "$internet/32" dev "$bridge"
    ip link set "$bridge" up
    mkdir -p "$node/cni"
    cat >"$node/cni/pods.conflist" <<CONFIG
{"cniVersion": "1.0.0", "name": "sennit", "plugins": [
  {"type": "bridge", "bridge": "$bridge", "hairpinMode": true, "ipam": {
    "type": "host-local", "dataDir": "$node/addresses",
    "ranges": [[{"subnet": "${gateway%.*}.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
CONFIG
}

found=$(problem)
if [ -n "$found" ]; then
    say "no node, so no pods: $found"
    echo "$found" >"$run/no-node"
    exit 0
fi
network
