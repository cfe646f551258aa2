#!/bin/sh
# Starts KEDA and metrics-server on this machine, outside of the cluster, with the right to see and scale what is inside.
set -eu
. "$(dirname "$0")/common.sh"
keda=$run/keda
adapter_port=26451 # of KEDA's adapter, which the API server asks
internal_port=26452 # of the operator, which the adapter asks
metrics_port=26454 # of metrics-server, which the API server asks
mkdir -p "$keda"
cd "$keda"

register() { # GROUP PORT: the API server reaches what serves the group by a name that stands for this machine
    kubectl apply --server-side -f - <<YAML
apiVersion: v1
kind: Service
metadata: {name: ${1%%.*}, namespace: keda}
spec: {type: ExternalName, externalName: localhost, ports: [{port: $2}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.$1}
spec:
  service: {name: ${1%%.*}, namespace: keda, port: $2}
  group: $1
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
YAML
}

available() { # GROUP
    kubectl wait "apiservice/v1beta1.$1" --for=condition=Available --timeout=1s
}

certificate() { # both sides of the connection between adapter and operator
    printf 'subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n' >extensions
    openssl req -newkey rsa:2048 -nodes -subj /CN=keda -keyout tls.key -out tls.csr
    openssl x509 -req -days 30 -in tls.csr -CA "$run/certs/ca.crt" -CAkey "$run/certs/ca.key" -CAcreateserial \
        -extfile extensions -out tls.crt
    cp "$run/certs/ca.crt" ca.crt
}

keda() {
    certificate 2>>"$run/log/openssl"
    export POD_NAMESPACE=keda KEDA_CLUSTER_OBJECT_NAMESPACE=keda WATCH_NAMESPACE=
    start keda-operator "$(program keda-operator)" --kubeconfig="$KUBECONFIG" --cert-dir="$keda" \
        --metrics-service-bind-address=127.0.0.1:$internal_port --metrics-bind-address=0 --health-probe-bind-address=0
    start keda-adapter "$(program keda-adapter)" --kubeconfig="$KUBECONFIG" --lister-kubeconfig="$KUBECONFIG" \
        --authentication-kubeconfig="$KUBECONFIG" --authorization-kubeconfig="$KUBECONFIG" \
        --bind-address=127.0.0.1 --secure-port=$adapter_port --port=$((adapter_port + 2)) \
        --metrics-service-address=localhost:$internal_port --cert-dir="$keda" \
        --tls-cert-file=tls.crt --tls-private-key-file=tls.key
}

metrics_server() {
    start metrics-server "$(program metrics-server)" --kubeconfig="$KUBECONFIG" \
        --authentication-kubeconfig="$KUBECONFIG" --authorization-kubeconfig="$KUBECONFIG" \
        --bind-address=127.0.0.1 --secure-port=$metrics_port --cert-dir="$run/metrics-server" \
        --kubelet-use-node-status-port --kubelet-preferred-address-types=InternalIP --kubelet-insecure-tls \
        --metric-resolution=10s --kubelet-request-timeout=5s
}

{
    kubectl create namespace keda
    register external.metrics.k8s.io $adapter_port
    register metrics.k8s.io $metrics_port
} >"$run/log/registration"
keda
metrics_server
await 60 keda-adapter available external.metrics.k8s.io
await 60 metrics-server available metrics.k8s.io
