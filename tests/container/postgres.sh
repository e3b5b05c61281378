#!/bin/sh
# Stands in for the entry point of the official image of PostgreSQL.
set -eu
data=/var/lib/postgresql/data
as() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
install -d -o postgres -g postgres -m 0700 "$data"
install -d -o postgres -g postgres /var/run/postgresql
if [ ! -s "$data/PG_VERSION" ]; then
    password=$(mktemp)
    echo "$POSTGRES_PASSWORD" >"$password"
    chown postgres "$password"
    as initdb --pgdata="$data" --encoding=UTF8 --locale=C.UTF-8 \
        --username="$POSTGRES_USER" --pwfile="$password" --auth-host=scram-sha-256
    rm "$password"
    echo "CREATE DATABASE $POSTGRES_DB;" | as postgres --single -D "$data" postgres
    echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -D "$data" -c listen_addresses='*'
