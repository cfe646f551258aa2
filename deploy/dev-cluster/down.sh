#!/bin/sh
# Ends the cluster and leaves nothing of it: processes, pods, mounts, network, control groups, files.
# Safe to run at any time, also after a start that failed or was killed half-way.
set -eu
. "$(dirname "$0")/common.sh"
node=$run/node

processes() { # nothing of theirs is kept, so they are killed; Postgres takes its own children along
    postgres=$(cat "$run/pids/postgres" 2>/dev/null || true)
    if [ -n "$postgres" ] && belongs "$postgres"; then kill -QUIT "$postgres"; fi
    while pids=$(members) && [ -n "$pids" ]; do
        for each in $pids; do
            [ "$each" = "$postgres" ] || kill -KILL "$each" 2>/dev/null || true
        done
        sleep 0.2
    done
}

members() {
    grep -lzx "SENNIT_CLUSTER=$run" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
}

pods() { # they outlive the kubelet and containerd
    for each in $(pod_groups); do
        for pid in $(find "$each" -name cgroup.procs -exec cat {} +); do kill -KILL "$pid" 2>/dev/null || true; done
        until find "$each" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.2; done
    done
}

pod_groups() {
    [ -d "$node/kubelet" ] || return 0
    find /sys/fs/cgroup -maxdepth 2 -name kubepods -type d
}

policies() { # kube-router leaves its rules behind, and its own way to clean up also empties tables of others
    [ -f "$run/pids/kube-router" ] || return 0
    ours='KUBE-\(ROUTER\|POD-FW\|NWPLCY\)-[^ ]*'
    {
        echo "*filter"
        iptables-save -t filter | sed -n "s/^:\($ours\) .*/-F \1/p; s/^-A \([A-Z]* .*-j $ours\)/-D \1/p"
        iptables-save -t filter | sed -n "s/^:\($ours\) .*/-X \1/p"
        echo COMMIT
    } 2>/dev/null | iptables-restore --noflush
    ipset list -n | grep -E '^(KUBE-(SRC|DST)-|kube-router-)' | while read -r each; do
        until ipset destroy "$each" 2>/dev/null; do sleep 0.2; done # rules let go of it a little later
    done
}

network() {
    tasks=$node/run/io.containerd.runtime.v2.task
    for each in $(grep -rhos '/[a-z/]*/netns/cni-[^"]*' "$tasks" --include=config.json | sort -u); do
        umount "$each" 2>/dev/null || true
        rm -f "$each"
    done
    rmdir /run/netns 2>/dev/null || true # unless others use it
    rm -f /var/lib/cni/results/sennit-*
    if ip link show "$bridge" >/dev/null 2>&1; then ip link del "$bridge"; fi
}

mounts() {
    awk -v run="${run:?}/" 'index($2, run) == 1 { print $2 }' /proc/mounts | sort -r | while read -r each; do
        umount -l "$each"
    done
}

system() { # what node.sh wrote down of the machine as it was
    [ -f "$node/absent" ] || return 0
    while IFS=: read -r name value; do echo "$value" >"/proc/sys/$name"; done <"$node/sysctl"
    while read -r each; do rm -rf "$each"; done <"$node/absent"
}

processes
pods
policies
network
mounts
system
rm -rf "${run:?}"
say "down"
