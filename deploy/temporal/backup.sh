#!/bin/sh
# Backs up Temporal's databases and the artifact store, while server and workers go on: backup.sh STORE BACKUP.
# PGHOST, PGPORT, PGUSER and PGPASSWORD say where Postgres is. `sennit gc` must not run meanwhile.
set -eu
store=$1 backup=$2
[ -e "$store/.store-id" ] || { echo "there is no store at $store: it has no .store-id" >&2; exit 1; }
[ ! -e "$backup" ] || { echo "$backup is there already; name a new folder" >&2; exit 1; }
rm -rf "$backup.part"
mkdir -p "$backup.part"

# Runs first, then the list of them, then what runs refer to: each is at least as new as the one before.
pg_dump --format=custom --file="$backup.part/temporal" temporal
pg_dump --format=custom --file="$backup.part/temporal_visibility" temporal_visibility
# 1 says that a file went while tar ran. Files appear whole, under their last name, and those never change.
tar --create --file="$backup.part/artifacts.tar" --directory="$store" . || [ $? = 1 ]
mv "$backup.part" "$backup"
