#!/bin/sh
# Makes this machine a node of the cluster: containerd with the images, and a kubelet. Works with either version of cgroups.
set -eu
. "$(dirname "$0")/common.sh"
node=$run/node
socket=$node/containerd.sock

runtime() { # version 2 of the configuration is read by containerd 1 and 2
    cat >"$node/containerd.toml" <<CONFIG
version = 2
root = "$node/images"
state = "$node/run"
[grpc]
address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:dev"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$node/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
CONFIG
    start containerd containerd -c "$node/containerd.toml"
    await 60 containerd ctr -a "$socket" version
}

note_system() { # what will be changed or made outside of our folder, for down.sh to put right
    (cd /proc/sys && grep -H . vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_max*) >"$node/sysctl"
    for each in /run/containerd /var/lib/cni /var/lib/kubelet /var/log/containers; do
        [ -e "$each" ] || echo "$each"
    done >"$node/absent"
}

kubelet() {
    cat >"$node/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: $run/certs/ca.crt}}
address: $gateway
port: $kubelet_port
healthzPort: 0
failSwapOn: false
failCgroupV1: false
cgroupDriver: cgroupfs
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix://$socket
podLogsDir: $node/pods
evictionHard: {nodefs.available: 1%, imagefs.available: 1%, memory.available: 50Mi}
CONFIG
    start kubelet "$(program kubelet)" --config="$node/kubelet.yaml" --kubeconfig="$KUBECONFIG" \
        --root-dir="$node/kubelet" --cert-dir="$node/kubelet/pki" --hostname-override=node1 --node-ip="$gateway"
    await 120 kubelet ready
}

ready() {
    kubectl get node node1 | grep -q ' Ready'
}

install -d -o 10001 -g 10001 "$run/artifacts" # the volume of overlays/local
note_system
runtime
sh "$here/image.sh"
kubelet
