#!/bin/sh
# Starts etcd and the control plane of Kubernetes on loopback, with an administrator's kubeconfig.
set -eu
. "$(dirname "$0")/common.sh"
certs=$run/certs
mkdir -p "$certs" "$run/etcd"
chmod 700 "$certs" "$run/etcd"
cd "$run"

certificates() { # one authority, one client certificate for all that the API server calls, a key for tokens
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=sennit-cluster -keyout certs/ca.key -out certs/ca.crt
    openssl req -newkey rsa:2048 -nodes -subj /O=system:masters/CN=apiserver -keyout certs/client.key -out certs/client.csr
    openssl x509 -req -days 30 -in certs/client.csr -CA certs/ca.crt -CAkey certs/ca.key -CAcreateserial -out certs/client.crt
    openssl genrsa -out certs/tokens.key 2048
}

kubeconfig() {
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    umask 077
    echo "$token,admin,admin,system:masters" >certs/tokens.csv
    cat >kubeconfig <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: sennit, cluster: {server: "https://127.0.0.1:$api_port", certificate-authority: $certs/apiserver.crt}}]
users: [{name: admin, user: {token: "$token"}}]
contexts: [{name: sennit, context: {cluster: sennit, user: admin}}]
current-context: sennit
CONFIG
    umask 022
}

keys() {
    client=http://127.0.0.1:$etcd_port peer=http://127.0.0.1:$((etcd_port + 1))
    start etcd etcd --data-dir etcd --unsafe-no-fsync \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
    await 60 etcd curl -fs "$client/health"
}

api_server() {
    start apiserver "$(program kube-apiserver)" --etcd-servers="$client" --cert-dir="$certs" \
        --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$api_port" --endpoint-reconciler-type=none \
        --service-cluster-ip-range=10.96.0.0/16 --allow-privileged --authorization-mode=Node,RBAC \
        --token-auth-file=certs/tokens.csv --client-ca-file=certs/ca.crt \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file=certs/tokens.key --service-account-signing-key-file=certs/tokens.key \
        --requestheader-client-ca-file=certs/ca.crt --requestheader-allowed-names=apiserver \
        --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
        --requestheader-extra-headers-prefix=X-Remote-Extra- \
        --proxy-client-cert-file=certs/client.crt --proxy-client-key-file=certs/client.key \
        --kubelet-client-certificate=certs/client.crt --kubelet-client-key=certs/client.key \
        --kubelet-preferred-address-types=InternalIP
    await 180 apiserver kubectl get --raw /readyz
}

certificates 2>"$run/log/openssl"
kubeconfig
keys
api_server
start controller-manager "$(program kube-controller-manager)" --kubeconfig=kubeconfig --leader-elect=false \
    --bind-address=127.0.0.1 --secure-port=$((api_port + 1)) --use-service-account-credentials \
    --service-account-private-key-file=certs/tokens.key --root-ca-file=certs/apiserver.crt \
    --horizontal-pod-autoscaler-sync-period=5s
start scheduler "$(program kube-scheduler)" --kubeconfig=kubeconfig --leader-elect=false \
    --bind-address=127.0.0.1 --secure-port=$((api_port + 2))
await 60 controller-manager kubectl -n default get serviceaccount default
kubectl apply --server-side -f "$(program keda-crds.yaml)" >"$run/log/crds"
