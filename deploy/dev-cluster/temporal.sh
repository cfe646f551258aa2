#!/bin/sh
# Starts Temporal on a Postgres of its own: temporal.sh [server]. With `server`, only the server, on what is there.
set -eu
. "$(dirname "$0")/common.sh"
state=$run/temporal
postgres=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
export SQL_PLUGIN=postgres12 SQL_HOST=127.0.0.1 SQL_PORT=$postgres_port SQL_USER=temporal SQL_PASSWORD=temporal

database() { # Postgres refuses to run as root
    install -d -o postgres -g postgres -m 700 "$state/postgres"
    echo "$SQL_PASSWORD" >"$state/password"
    as_postgres "$postgres/initdb" -D "$state/postgres" -U "$SQL_USER" --pwfile="$state/password" -A scram-sha-256 \
        -E UTF8 >"$run/log/initdb"
    start postgres setpriv --reuid=postgres --regid=postgres --clear-groups "$postgres/postgres" -D "$state/postgres" \
        -p "$postgres_port" -c listen_addresses="$SQL_HOST" -c unix_socket_directories="$state/postgres" \
        -c max_connections=200
    await 60 postgres "$postgres/pg_isready" -q -h "$SQL_HOST" -p "$postgres_port"
}

as_postgres() {
    setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}

schema() { # DATABASE NAME
    tool="$(program temporal-sql-tool) --db $1"
    $tool create-database
    $tool setup-schema -v 0.0
    $tool update-schema --schema-name "postgresql/v12/$2"
}

datastore() { # DATABASE: an entry of the configuration
    echo "{sql: {pluginName: $SQL_PLUGIN, databaseName: $1, connectAddr: '$SQL_HOST:$postgres_port',
      connectProtocol: tcp, user: $SQL_USER, password: $SQL_PASSWORD, maxConns: 20, maxIdleConns: 20, maxConnLifetime: 1h}}"
}

service() { # PORT: an entry of the configuration
    echo "{rpc: {grpcPort: $1, membershipPort: $(($1 + 100)), bindOnIP: $gateway}}"
}

configuration() {
    cat <<CONFIG
log: {stdout: true, level: warn}
persistence:
  defaultStore: default
  visibilityStore: visibility
  numHistoryShards: 4
  datastores:
    default: $(datastore temporal)
    visibility: $(datastore temporal_visibility)
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: $gateway}
services:
  frontend: $(service "$temporal_port")
  matching: $(service $((temporal_port + 1)))
  history: $(service $((temporal_port + 2)))
  worker: $(service $((temporal_port + 3)))
clusterMetadata:
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: '$gateway:$temporal_port'}
dcRedirectionPolicy: {policy: noop}
dynamicConfigClient: {filepath: '$deploy/temporal/dynamic-config.yaml', pollInterval: 1m}
CONFIG
}

if [ "${1:-}" != server ]; then
    mkdir -p "$state"
    database
    schema temporal temporal >"$run/log/schema" 2>&1
    schema temporal_visibility visibility >>"$run/log/schema" 2>&1
    configuration >"$state/config.yaml"
fi
start temporal-server "$(program temporal-server)" --config-file "$state/config.yaml" --allow-no-auth start
await 60 temporal-server "$deploy/../.venv/bin/sennit" setup --address "$gateway:$temporal_port"
