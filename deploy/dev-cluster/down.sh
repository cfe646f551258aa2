#!/bin/sh
# Ends the cluster and leaves nothing of it: processes, pods, mounts, network, control groups, files.
# Safe to run at any time, also after a start that failed or was killed half-way.
. "$(dirname "$0")/common.sh"
node=$run/node

pods() { # they outlive the kubelet and containerd
    for each in $(pod_groups); do
        for pid in $(find "$each" -name cgroup.procs -exec cat {} +); do kill -KILL "$pid" 2>/dev/null || true; done
    done
}

pod_groups() {
    [ -d "$node" ] || return 0
    find /sys/fs/cgroup -maxdepth 2 -name kubepods -type d
}

rest() { # what lost its parent, and what a killed script could not write down
    grep -lzx "SENNIT_CLUSTER=$run" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3 | while read -r pid; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

network() {
    tasks=$node/run/io.containerd.runtime.v2.task
    for each in $(grep -rhos '/[a-z/]*/netns/cni-[^"]*' "$tasks" --include=config.json | sort -u); do
        umount "$each" 2>/dev/null || true
        rm -f "$each"
    done
    rm -f /var/lib/cni/results/sennit-*
    if ip link show "$bridge" >/dev/null 2>&1; then ip link del "$bridge"; fi
}

mounts() {
    awk -v run="$run/" 'index($2, run) == 1 { print $2 }' /proc/mounts | sort -r | while read -r each; do
        umount -l "$each"
    done
}

groups() {
    for each in $(pod_groups); do find "$each" -depth -type d -exec rmdir {} +; done
}

kernel() {
    [ -f "$node/sysctl" ] || return 0
    while IFS=: read -r name value; do echo "$value" >"/proc/sys/$name"; done <"$node/sysctl"
}

for each in keda-adapter keda-operator kubelet containerd temporal-server; do stop $each; done
stop postgres INT
for each in scheduler controller-manager apiserver etcd; do stop $each; done
pods
rest
if [ "$(id -u)" = 0 ]; then
    network
    mounts
    groups
    kernel
fi
rm -rf "$run"
say "down"
