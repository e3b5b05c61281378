# The guard of a session in a container: guard.sh ID
#
# Reads orders, a line each: "signal NAME PID" to the foreground of the session's program, "left" for the
# number of its processes. At "end", or when its input ends, as it does with the console, it ends all of them.
left() {
  for file in $(grep -lsF "JOB_CONSOLE_SESSION=$1" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    echo "${file%/environ}"
  done
}
session=$1
while read -r order name pid; do
  case $order in
    end) break ;;
    left) left "$session" | wc -l ;;
    signal)
      group=$pid
      if read -r status 2>/dev/null <"/proc/$pid/stat"; then
        set -- ${status##*) } # state, parent, group, session, terminal, the terminal's foreground group
        [ "$6" -le 0 ] || group=$6
      fi
      kill -s "$name" -- "-$group" 2>/dev/null
      ;;
  esac
done
trap '' HUP INT TERM
processes=$(left "$session")
[ -z "$processes" ] || kill -s HUP $processes 2>/dev/null
[ -z "$processes" ] || kill -s CONT $processes 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ -n "$(left "$session")" ] || exit 0
  sleep 0.1
done
while processes=$(left "$session") && [ -n "$processes" ]; do
  kill -s KILL $processes 2>/dev/null
  sleep 0.1
done
