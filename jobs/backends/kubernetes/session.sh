# A session's program in a container: session.sh ID KIND FRAMED TERM NAME=VALUE... -- ARGUMENTS
#
# Says its process id on its first line of output, or "-" and why not, and becomes the program. The variable
# by which its processes are found is theirs alone. Before Kubernetes 1.30 only the connection's end ends an
# input: then it comes in frames, each behind a line with its length, and one of no length is its end.
export JOB_CONSOLE_SESSION="$1"
kind=$2 framed=$3
[ -z "$4" ] || export TERM="$4"
shift 4
while [ "$1" != -- ]; do
  eval "[ -n \"\${${1%%=*}+set}\" ]" || export "${1?}" # the job's own variables stay
  shift
done
shift
[ -x /bin/bash ] && shell=/bin/bash || shell=/bin/sh
case $kind in
  shell) set -- "$shell" ;;
  line) set -- "$shell" -c "$1" ;;
  files)
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
      echo '- the image has no Python 3.11 or newer'
      exit 127
    }
    set -- python3 -I -S -c "$@"
    ;;
esac
command -v -- "$1" >/dev/null || {
  echo "- there is no $1"
  exit 127
}
if [ "$framed" = 1 ]; then
  for base in /dev/shm /tmp .; do
    folder=$(mktemp -d "$base/session.XXXXXX" 2>/dev/null) && break
  done
  mkfifo "$folder/input" || {
    echo '- no folder can be written to'
    exit 126
  }
  exec 3<&0
  (
    trap '' HUP INT QUIT TERM
    while read -r length && [ "$length" -gt 0 ]; do
      dd bs="$length" count=1 iflag=fullblock 2>/dev/null
    done <&3 >"$folder/input" 2>/dev/null &
  )
  exec 3<&- <"$folder/input"
  rm -r "$folder"
fi
echo "$$"
exec "$@"
