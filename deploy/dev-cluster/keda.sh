#!/bin/sh
# Starts KEDA on this machine, outside of the cluster, with the right to scale what is inside.
set -eu
. "$(dirname "$0")/common.sh"
keda=$run/keda
metrics_port=26451 # of the adapter, which the API server asks
internal_port=26452 # of the operator, which the adapter asks
mkdir -p "$keda"
cd "$keda"

registration() { # the API server reaches the adapter by a name that stands for this machine
    cat <<YAML
apiVersion: v1
kind: Namespace
metadata: {name: keda}
---
apiVersion: v1
kind: Service
metadata: {name: adapter, namespace: keda}
spec: {type: ExternalName, externalName: localhost, ports: [{port: $metrics_port}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  service: {name: adapter, namespace: keda, port: $metrics_port}
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
YAML
}

certificate() { # both sides of the connection between adapter and operator
    printf 'subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n' >extensions
    openssl req -newkey rsa:2048 -nodes -subj /CN=keda -keyout tls.key -out tls.csr
    openssl x509 -req -days 30 -in tls.csr -CA "$run/certs/ca.crt" -CAkey "$run/certs/ca.key" -CAcreateserial \
        -extfile extensions -out tls.crt
    cp "$run/certs/ca.crt" ca.crt
}

available() {
    kubectl wait apiservice/v1beta1.external.metrics.k8s.io --for=condition=Available --timeout=1s
}

registration | kubectl apply --server-side -f - >"$run/log/keda"
certificate 2>>"$run/log/openssl"
export POD_NAMESPACE=keda KEDA_CLUSTER_OBJECT_NAMESPACE=keda WATCH_NAMESPACE=
start keda-operator "$(program keda-operator)" --kubeconfig="$KUBECONFIG" --cert-dir="$keda" \
    --metrics-service-bind-address=127.0.0.1:$internal_port --metrics-bind-address=0 --health-probe-bind-address=0
start keda-adapter "$(program keda-adapter)" --kubeconfig="$KUBECONFIG" --lister-kubeconfig="$KUBECONFIG" \
    --authentication-kubeconfig="$KUBECONFIG" --authorization-kubeconfig="$KUBECONFIG" \
    --bind-address=127.0.0.1 --secure-port=$metrics_port --port=$((metrics_port + 2)) \
    --metrics-service-address=localhost:$internal_port --cert-dir="$keda" \
    --tls-cert-file=tls.crt --tls-private-key-file=tls.key
await 60 keda-adapter available
