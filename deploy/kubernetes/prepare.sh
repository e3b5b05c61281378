#!/bin/sh
# Prepares the folder of one pod's console: keys from the Secret, whose files others could read, and on a web
# pod static files.  Waits until the Job job-console-migrate has brought the database up to date.
set -eu
umask 077
mkdir -p "$CONSOLE_HOME/keys" "$CONSOLE_HOME/run/timings"
cp -f /keys/* "$CONSOLE_HOME/keys/"   # also over those of a start that failed
case "${1:-}" in
bootstrap)
  exec job-console-server bootstrap
  ;;
web)
  job-console-server collectstatic --noinput --verbosity 0
  ;;
esac
until job-console-server migrate --check >/dev/null 2>"$CONSOLE_HOME/run/prepare.log"; do
  tail -n 1 "$CONSOLE_HOME/run/prepare.log" >&2
  sleep 2
done
