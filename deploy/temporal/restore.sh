#!/bin/sh
# Restores what backup.sh has saved: restore.sh STORE BACKUP. Server and workers are stopped, and neither the databases
# nor the store are there. A store that has survived stays as it is.
set -eu
store=$1 backup=$2
[ -d "$backup" ] || { echo "there is no backup at $backup" >&2; exit 1; }
for each in temporal temporal_visibility; do
    createdb "$each"
    pg_restore --exit-on-error --no-owner --dbname="$each" "$backup/$each"
done
if [ -n "$(ls -A "$store" 2>/dev/null | grep -vx '\.store-id')" ]; then
    echo "the store at $store is there, and stays as it is"
else
    mkdir -p "$store"
    tar --extract --preserve-permissions --file="$backup/artifacts.tar" --directory="$store"
fi
