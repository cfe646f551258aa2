#!/bin/sh
# Installs the Debian packages that the cluster and the test of compose.yaml need and that are missing.
set -eu
. "$(dirname "$0")/common.sh"

missing() {
    while read -r file package; do
        ls /usr/bin/$file /usr/sbin/$file /usr/lib/$file 2>/dev/null | grep -q . || echo "$package"
    done <<'TABLE'
etcd etcd-server
openssl openssl
curl curl
ip iproute2
iptables iptables
ipset ipset
containerd containerd
runc runc
cni/bridge containernetworking-plugins
postgresql/*/bin/initdb postgresql
buildah buildah
mmdebstrap mmdebstrap
dockerd docker.io
TABLE
}

packages=$(missing)
[ -n "$packages" ] || exit 0
command -v apt-get >/dev/null || fail "these are not installed, and there is no apt-get:" $packages
say "installing" $packages "..."
{
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $packages
} >"$run/log/apt-get" 2>&1 </dev/null || fail "apt-get could not install" $packages "(log $run/log/apt-get)"
