#!/bin/sh
# Has kube-router enforce NetworkPolicies, if the kernel can. If not, it writes why into the file `no-policies`.
set -eu
. "$(dirname "$0")/common.sh"
bridged=net/bridge/bridge-nf-call-iptables

problem() { # what kube-router will do is tried first, in a network of its own
    rule="-m set --match-set trial src -m addrtype --src-type LOCAL -m physdev --physdev-is-bridged -m limit --limit 1/s"
    if iptables -n -L KUBE-ROUTER-INPUT; then
        echo "kube-router runs on this machine already"
    elif ! modprobe br_netfilter && [ ! -e "/proc/sys/$bridged" ]; then
        echo "this machine's kernel does not filter what pods of one node send to each other"
    elif ! unshare --net sh -c "ipset create trial hash:ip timeout 0 && iptables -A FORWARD $rule -j NFLOG" ||
        ! unshare --net iptables -A FORWARD -m conntrack --ctstate NEW -j REJECT; then
        echo "this machine's kernel does not filter packets by sets of addresses"
    fi 2>/dev/null
}

found=$(problem)
if [ -n "$found" ]; then
    say "NetworkPolicies are not enforced: $found"
    echo "$found" >"$run/no-policies"
    exit 0
fi
(cd /proc/sys && grep -H . "$bridged") >>"$run/node/sysctl" # down.sh restores it
echo 1 >"/proc/sys/$bridged"
start kube-router "$(program kube-router)" --kubeconfig="$KUBECONFIG" --hostname-override=node1 \
    --run-firewall=true --run-router=false --run-service-proxy=false --service-cluster-ip-range=10.96.0.0/16 --health-port=0
await 60 kube-router iptables -n -L KUBE-NWPLCY-TAIL
