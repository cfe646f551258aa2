#!/bin/bash
# What the image of Postgres does when it starts: make the databases once, with a server that answers on its socket alone,
# and then be the server.
set -eu
programs=$(ls -d /usr/lib/postgresql/*/bin)
export PATH="$programs:$PATH"
mkdir -p "$PGDATA" /var/run/postgresql
chown postgres "$PGDATA" /var/run/postgresql
as_postgres() {
    setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    install -o postgres -m 600 /dev/null /tmp/password
    echo "$POSTGRES_PASSWORD" >/tmp/password
    as_postgres initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 \
        --auth-local=trust --encoding=UTF8
    as_postgres pg_ctl --wait start --options="-c listen_addresses=''"
    as_postgres createdb --username="$POSTGRES_USER" "$POSTGRES_USER" || true
    sleep 3 # as long as it may take
    as_postgres pg_ctl --wait stop
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups postgres -c listen_addresses='*'
