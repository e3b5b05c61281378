# The common part of job scripts, behind their options.
#
# It runs on the first node of the allocation.  It claims the attempt, finds the node of each replica, starts
# every role by an srun of its own, and checks once a second whether the ends so far decide the job or its end
# was requested.  It writes status files on the shared file system.  The lines behind it
# (`jobs.backends.slurm.script.job_script`) name the job's folder and its roles.
shopt -s nullglob
umask 077

# One copy of the job runs, however often it was submitted; Slurm itself may start it again.
claim() {
  (set -C; echo "$SLURM_JOB_ID" >"$folder/claim") 2>/dev/null && return
  [ "$(cat "$folder/claim")" = "$SLURM_JOB_ID" ] || exit 0
}

now() { # without a program where the shell has it; some locales write a comma
  local at=${EPOCHREALTIME:-$(date +%s.%N)}
  echo "${at/,/.}"
}

# Where nodes share no folder with the console (relay_url), the node relay copies files there and back.
carry() { # VERB…: see jobs.node.relay
  COURIER_TOKEN=$relay_token "$relay_python" ISOLATED -c "$relay_program" "$relay_url" "$folder" \
    "$SLURM_JOB_ID" "${run##*/run-}" "$relay_start" "$@"
}

watching() { # one relay runs on each node; one that was killed is replaced
  trap '' HUP INT QUIT TERM USR1 USR2
  while :; do
    flock 8 && carry watch
    [ "$?" -ne 77 ] || exec sleep infinity # the console accepts nothing any more; but the folder is in use
    sleep 1
  done 8>>"$folder/courier" >/dev/null 2>&1
}

heard() { # fetch requests and files of other nodes, if need be
  [ -z "$relay_url" ] || carry look 2>/dev/null
}

gone() { # CODE: end a replica once the console has its files
  [ -z "$relay_url" ] || left "$name"
  exit "$1"
}

left() { # NAME
  kill -KILL "$watcher" 2>/dev/null
  cd /
  carry leave "$1"
}

claim_by_relay() { # claim the run by the relay
  local code
  relay_program=$(print_relay_program)
  relay_start=$(od -An -N 16 -tx1 /dev/urandom | tr -d ' \n')
  export relay_url relay_python relay_token relay_program relay_start
  carry begin
  code=$?
  case $code in
    0) exec >>"$run/slurm.output" 2>&1 ;;
    3) exit 0 ;;
    *) exit "$code" ;;
  esac
}

written() { # FILE TEXT: write a file atomically
  printf '%s\n' "$2" >"$1.new" && mv "$1.new" "$1"
}

of() { # Slurm's variable $1 for the role at place $2
  local name=$1${SLURM_HET_SIZE:+_HET_GROUP_$2}
  echo "${!name:-${3:-}}"
}

names=() sizes=() fails=() enough=() wants=() told=() commands=()
role() { # NAME-IN-FILES REPLICAS FAILURES-THAT-END-THE-JOB SUCCESSES-THAT-DO PORTS ENVIRONMENT COMMAND
  names+=("$1") sizes+=("$2") fails+=("$3") enough+=("$4") wants+=("$5") told+=("$6") commands+=("$7")
}

declare -A answered doors
start_listeners() { # start session listeners that the console requests
  local each name asked python archive node place
  for each in "$folder"/enter-*; do
    name=${each##*/enter-}
    { read -r asked python archive <"$each"; } 2>/dev/null || continue
    [ "${answered[$name]:-}" != "$asked" ] || continue
    [ -z "${doors[$name]:-}" ] || ! kill -0 "${doors[$name]}" 2>/dev/null || continue
    for place in "${!names[@]}"; do
      [ "${names[place]}" = "${name%-*}" ] || continue
      node=${node_of[$place.${name##*-}]:-}
      [ -n "$node" ] || continue
      answered[$name]=$asked
      door "$name" "$place" "$node" "$asked" "$python" "$archive" &
      doors[$name]=$!
    done
  done
}

door() { # NAME PLACE NODE REQUEST PYTHON BUNDLE: a session listener; the job does not wait for it
  local keys='' # the relay may bring the listener's keys a moment later
  [ -z "$relay_url" ] || keys='for n in $(seq 100); do [ ! -e "$0/door" ] || break; sleep 0.1; done; '
  env -i PATH="$PATH" ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} srun BESIDE "--jobid=$SLURM_JOB_ID" \
    "--nodelist=$3" ${SLURM_HET_SIZE:+"--het-group=$2"} --input=none \
    sh -c "${keys}exec \"\$@\"" "$folder" "$5" ISOLATED "$6" door "$folder" \
    "${run##*/}" "$1" "$4" "${address[$3]:-$3}" "${span[@]}" </dev/null >"$run/doors/$1.said" 2>&1
  written "$run/doors/$1" "- $4"
}

places() { # PLACE: the node of each replica of a role, in order
  local spread each times tasks node left=${sizes[$1]} nodes
  nodes=("$(of SLURM_JOB_NODELIST "$1")")
  [[ ${nodes[0]} != *[],[]* ]] || mapfile -t nodes < <(scontrol show hostnames "${nodes[0]}")
  spread=$(of SLURM_TASKS_PER_NODE "$1" 1)
  for each in ${spread//,/ }; do
    tasks=${each%%(*} times=1
    [[ $each =~ \(x([0-9]+)\) ]] && times=${BASH_REMATCH[1]}
    while [ "$times" -gt 0 ]; do
      node=${nodes[0]} nodes=("${nodes[@]:1}") times=$((times - 1))
      for ((; tasks > 0 && left > 0; tasks--, left--)); do echo "$node"; done
      tasks=${each%%(*}
    done
  done
  for ((; left > 0; left--)); do echo "$node"; done
}

declare -A address
addresses() { # the address of each node of the job
  local name at
  while read -r name at; do
    address[$name]=$at
  done < <(scontrol --oneliner show node | sed -n 's/^NodeName=\([^ ]*\) .* NodeAddr=\([^ ]*\) .*/\1 \2/p')
}

declare -A hosts node_of
write_hosts() { # write the node and address of every replica
  local place index node
  addresses
  for place in "${!names[@]}"; do
    index=0
    while read -r node; do
      hosts[$place.$index]=${address[$node]:-$node} node_of[$place.$index]=$node
      echo "${names[place]}-$index $node ${address[$node]:-$node}"
      index=$((index + 1))
    done < <(places "$place")
  done >"$run/hosts.new"
  mv "$run/hosts.new" "$run/hosts"
}

listening() { # the ports on which something listens on this node
  local at state rest
  grep -h ' 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r _ at _ state rest; do
    [ "$state" != 0A ] || echo "$SLURMD_NODENAME $((16#${at##*:}))"
  done
}

looked() { # the same on every node of the job; ports of a node that does not answer count as free
  local place
  [ "$(printf '%s\n' "${node_of[@]}" | sort -u)" != "$SLURMD_NODENAME" ] || { listening; return; }
  for place in "${!names[@]}"; do
    # shellcheck disable=SC2046 # the nodes are words
    timeout 20 srun --overlap ${SLURM_HET_SIZE:+"--het-group=$place"} --ntasks-per-node=1 --cpus-per-task=1 \
      "--ntasks=$(printf '%s\n' $(places "$place") | sort -u | wc -l)" --input=none --quiet \
      bash -c "$(declare -f listening); listening" </dev/null 2>/dev/null
  done
}

# Each job tries other ports in an order of its own.
ports=()
chosen() { # choose the ports of each replica; a requested number is kept, also when it is taken
  local place index node want number tries which=0 span_=$((span[1] - span[0] + 1))
  local -A taken
  while read -r node number; do taken[$node.$number]=1; done < <(looked)
  RANDOM=$((SLURM_JOB_ID % 32768))
  for place in "${!names[@]}"; do
    for ((index = 0; index < ${sizes[place]}; index++)); do
      node=${node_of[$place.$index]}
      for want in ${wants[place]}; do
        number=$want tries=0
        if [ "$want" = 0 ]; then
          number=$((span[0] + (SLURM_JOB_ID * STRIDE + which) % span_))
          while [ -n "${taken[$node.$number]:-}" ] && [ "$((tries += 1))" -le 1000 ]; do
            number=$((span[0] + (RANDOM * 32768 + RANDOM) % span_))
          done
        elif [ -n "${taken[$node.$number]:-}" ]; then
          echo "$which" >>"$run/taken"
        fi
        [ "$want" != 0 ] || taken[$node.$number]=1
        ports[which]=$number which=$((which + 1))
      done
    done
  done
  written "$run/ports" "${ports[*]}"
}

is_complete() { # NAME: whether a checkpoint of that name is there, and not empty
  case $1 in '' | .* | *.tmp | */* | latest | *[[:cntrl:]]*) return 1 ;; esac
  [ ! -L "$checkpoints/$1" ] || return 1
  if [ -d "$checkpoints/$1" ]; then [ -n "$(ls -A "$checkpoints/$1")" ]; else [ -s "$checkpoints/$1" ]; fi
}

print_checkpoint_variables() { # the checkpoint that `latest` names, or else the newest (jobs.node.supervisor.checkpoints)
  local name='' each
  printf 'export CHECKPOINT_DIR=%q\n' "$checkpoints"
  if [ -L "$checkpoints/latest" ]; then
    name=$(readlink "$checkpoints/latest")
  elif [ -f "$checkpoints/latest" ]; then
    read -r name <"$checkpoints/latest" || :
  fi
  if ! is_complete "$name"; then
    name=''
    for each in "$checkpoints"/*; do
      is_complete "${each##*/}" || continue
      [ -n "$name" ] && [ ! "$each" -nt "$checkpoints/$name" ] || name=${each##*/}
    done
  fi
  [ -n "$name" ] || return 0
  printf 'export RESUME_FROM=%q\n' "$checkpoints/$name"
  written "$run/resumed" "$(stat -c %.Y "$checkpoints/$name") $name"
}

provide_python() { # a command `python`, the last on PATH, where the node has only python3
  local bin=$run/bin
  { command -v python3 && ! command -v python; } >/dev/null || return 0
  mkdir -p "$bin" && printf '%s\n' '#!/bin/sh' 'exec python3 "$@"' >"$bin/$name" &&
    chmod 755 "$bin/$name" && mv "$bin/$name" "$bin/python" && PATH=$PATH:$bin
}

timing() { # LOG INDEX: write when the log grew, as jobs.node.wrapper.log_times; until SIGRTMIN
  unset SLURM_PROCID # what looks for the job's Python processes passes over it
  exec python3 ISOLATED -c 'import os, signal, struct, sys, time
for each in "HUP", "INT", "QUIT", "TERM", "USR1", "USR2":
    signal.signal(getattr(signal, "SIG" + each), signal.SIG_IGN)
is_over, parent, due = [], os.getppid(), 0
signal.signal(signal.SIGRTMIN, lambda *_: is_over.append(1))
file = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
kept = os.fstat(file).st_size
at = os.stat(sys.argv[1]).st_size if kept else 0
while True:
    last, now, size = bool(is_over), time.time_ns() // 1000000, os.stat(sys.argv[1]).st_size
    if size > at and (now >= due or last):
        kept += os.write(file, struct.pack(">QQ", at, now))
        at, due = size, now + (0 if kept < 8 << 20 else 1000 if kept < 16 << 20 else 60000)
    if last or os.getppid() != parent:
        break
    time.sleep(0.1)
' "$1" "$2" </dev/null >/dev/null 2>&1
}

stop_timing() { # PID INDEX: end `timing` once it has seen the whole log
  until [ -e "$2" ] || ! kill -0 "$1"; do sleep 0.05; done 2>/dev/null
  while kill -RTMIN "$1"; do sleep 0.05; done 2>/dev/null
}

is_restarted() { # NUMBER CODE: wait for the console's order about a failed start, where the job has such orders
  local order word=''
  [ -n "$restarts" ] && [ "$2" -ne 0 ] && [ ! -e "$run/ending" ] || return
  written "$run/failed/$name" "$1 $2 $(now)"
  until [ -n "$word" ]; do
    [ ! -e "$run/ending" ] || return
    sleep 1
    for order in "$folder/restart-${run##*/run-}-$name.$1"*; do # a pattern, so that the folder is read again
      [ "${order##*.}" != "$1" ] || read -r word <"$order"
    done
  done
  [ "$word" = restart ] || return
  printf '\n%s %s\n' 'RESTART_TEXT' "$(($1 + 1))"
  written "$run/failed/$name" "$(($1 + 1))"
}

task() { # FOLDER RUN NAME-IN-FILES ENVIRONMENT COMMAND MODE RESTARTS: one replica, on its node
  local folder=$1 run=$2 name=$3-$SLURM_PROCID code how=itself view=() mode=${6:-} credential_server='' timer
  local restarts=${7:-} number=0
  if [ -n "${relay_url:=}" ]; then
    export -n relay_url relay_python relay_token relay_program relay_start
    carry bring "$([ "$mode" = bring ] || echo "$name")" 2>/dev/null || exit
    watching </dev/null &
    watcher=$!
    disown
  fi
  [ ! -e "$run/ending" ] || gone 0
  [ ! -e "$run/ends/$name" ] || gone 1
  mkdir -p "$run/work/$name" && cd "$run/work/$name" || exit 1
  exec </dev/null >>"$run/logs/$name.output" 2>&1
  . "$run/peers"
  eval "$4"
  [ ! -e "$folder/secrets" ] || . "$folder/secrets"
  trap : HUP INT QUIT TERM USR1 USR2
  [ ! -e "$run/before" ] || { . "$run/before" && before; } || prevented
  [ "$mode" != bring ] || { [ -z "$relay_url" ] || kill -KILL "$watcher"; exit 0; }
  provide_python
  timing "$run/logs/$name".{output,times} &
  timer=$!
  disown "$timer" # of one that Slurm kills the shell would tell in the log
  written "$run/started/$name" "${SLURMD_NODENAME:-$(hostname)} $(now) $BASHPID"
  while :; do
    number=$((number + 1))
    { "${view[@]}" bash -c "$5" 2>&9 9>&-; } 9>&2 2>/dev/null
    code=$?
    is_restarted "$number" "$code" || break
  done
  [ ! -e "$run/before" ] || dismiss "$dismissing"
  stop_timing "$timer" "$run/logs/$name.times"
  [ "${#view[@]}" -eq 0 ] || [ -e "$run/views/$name" ] || prevented
  heard
  [ ! -e "$run/ending" ] || how=told
  written "$run/ends/$name" "$code $(now) $how"
  gone "$code"
}

start() { # PLACE SRUN-OPTION…: run a role until its last replica has ended
  local place=$1 code child box=()
  shift
  trap 'kill -TERM "$child" 2>/dev/null' TERM
  [ -z "$engine" ] || boxed "$place"
  if [ "${#box[@]}" -gt 0 ]; then
    [ -z "$laid" ] || run_step "$place" bring "$@"
    run_step "$place" run "$@" "${box[@]}"
  else
    run_step "$place" '' "$@"
  fi
  echo "$place $code" >&"$woken"
}

run_step() { # PLACE MODE SRUN-OPTION…: repeated where slurmctld was away and nothing has begun
  local said tries=0
  while :; do
    said=$(stat -Lc %s /dev/stderr)
    # The step has a name for accounting, which its programs shall not take for the job's.
    srun "--job-name=role-$1" "${@:3}" bash -c "$(printf 'SLURM_JOB_NAME=%q' "$SLURM_JOB_NAME")
      $(declare -f now written carry watching heard gone left provide_python timing stop_timing is_restarted task); task \"\$@\"" \
      bash "$folder" "$run" "${names[$1]}" "${told[$1]}" "${commands[$1]}" "$2" "$restarts" </dev/null &
    child=$!
    while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done
    [ "$code" -ne 0 ] && [ ! -e "$run/ending" ] && [ "$((tries += 1))" -le 60 ] || return
    if has_printed "$said" 'Job is pending execution|Invalid job id specified'; then
      written "$folder/rewound" "$(now)" # slurmctld crashed, and has forgotten that the job has begun
      return
    fi
    [ -z "$(echo "$run/work/${names[$1]}"-*)" ] && has_printed "$said" 'contact slurm controller' || return
    sleep 1
  done
}

has_printed() { # SIZE PATTERN: whether stderr has it behind so many bytes
  [ -f /dev/stderr ] && tail -c "+$(($1 + 1))" /dev/stderr | grep -Eq "$2"
}

board=
start_tensorboard() { # PLACE LOG-PATH COMMAND: a step of its own, which the job does not wait for
  local name=${names[$1]}-0
  until [ -e "$run/started/$name" ]; do
    [ ! -e "$run/ends/$name" ] && [ ! -e "$run/ending" ] || return
    sleep 1
  done
  exec srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=1 --mem=0 --gres=none --mpi=none --input=none \
    "--nodelist=${node_of[$1.0]}" ${SLURM_HET_SIZE:+"--het-group=$1"} --export=ALL --quiet \
    bash -c "$(declare -f listening show_tensorboard); show_tensorboard \"\$@\"" bash \
    "$folder" "$run" "$name" "${told[$1]}" "$2" "$3" "${span[@]}"
}

show_tensorboard() { # FOLDER RUN NAME ENVIRONMENT LOG-PATH COMMAND FIRST-PORT LAST-PORT: on the replica's node
  local folder=$1 run=$2 name=$3 path=$5 command=$6 stage=$2/stage/${SLURMD_NODENAME:-$(hostname)} pid each tries
  read -r _ _ pid <"$run/started/$name"
  cd "$run/work/$name" || return
  # A process counts as the replica's, by which it may be reached, if it has these variables of its own.
  unset SLURM_JOB_ID SLURM_STEP_ID SLURM_PROCID
  while IFS= read -r -d '' each; do
    case $each in SLURM_JOB_ID=* | SLURM_STEP_ID=* | SLURM_PROCID=*) export "${each?}" ;; esac
  done <"/proc/$pid/environ"
  . "$run/peers"
  eval "$4"
  [ ! -e "$run/before" ] || { . "$run/before" && settled; }
  eval "export AIHC_TENSORBOARD_LOG_PATH=$path"
  export TMPDIR=$PWD JOB_CONSOLE_COMPANION=tensorboard
  trap '' HUP INT USR1 USR2 # signals of the job reach all of its steps
  each=${PAI_CONTAINER_HOST_tensorboard_PORT_LIST:-}
  for tries in 1 2 3; do # another process may take the port meanwhile
    export PAI_CONTAINER_HOST_tensorboard_PORT_LIST=$each
    while [ -z "$PAI_CONTAINER_HOST_tensorboard_PORT_LIST" ]; do
      PAI_CONTAINER_HOST_tensorboard_PORT_LIST=$(($7 + (RANDOM * 32768 + RANDOM) % ($8 - $7 + 1)))
      ! listening | grep -q " $PAI_CONTAINER_HOST_tensorboard_PORT_LIST$" ||
        PAI_CONTAINER_HOST_tensorboard_PORT_LIST=
    done
    bash -c "$command" tensorboard && return
  done
}

starters=()
start_alone() { # a script that Slurm runs once, on the first node: its own srun calls reach the others
  set -m
  printf '%s\n' "${commands[0]}" >"$run/script"
  (SLURM_PROCID=0 task "$folder" "$run" "${names[0]}" "${told[0]}" "$(printf 'exec bash %q' "$run/script")") &
  starters=($!)
  set +m
}

started() {
  local place gpus options
  for place in "${!names[@]}"; do
    options=(--kill-on-bad-exit=0 --wait=0 --distribution=block --input=none --export=ALL)
    options+=("--ntasks=${sizes[place]}" "--cpus-per-task=$(of SLURM_CPUS_PER_TASK "$place" 1)")
    gpus=$(of SLURM_GPUS_PER_TASK "$place")
    # Without the type, which the allocation has: with it Slurm 22.05 gives the tasks no GPU.
    [ -z "$gpus" ] || options+=("--gpus-per-task=${gpus##*:}")
    [ -z "${SLURM_HET_SIZE:-}" ] || options+=("--het-group=$place")
    start "$place" "${options[@]}" &
    starters+=($!)
  done
}

declare -A counted
failed=() succeeded=() status=() ending='' verdict=succeeded deadline=0 warn_at=0 result=1
counts() { # count the replicas that have ended since the last call
  local end name code place
  for end in "$run"/ends/*; do
    name=${end##*/}
    [ "${name%.new}" = "$name" ] && [ -z "${counted[$name]:-}" ] || continue
    read -r code _ <"$end"
    counted[$name]=1
    for place in "${!names[@]}"; do
      [ "${names[place]}" = "${name%-*}" ] || continue
      if [ "$code" -eq 0 ]; then
        succeeded[place]=$((${succeeded[place]:-0} + 1))
      else
        failed[place]=$((${failed[place]:-0} + 1))
        status[place]=${status[place]:-$code}
      fi
    done
  done
}

timed() { # the job ends when its time is up, with a signal before if it asks for one
  [ -n "$limit" ] || return
  if [ -n "$warning" ] && [ "$SECONDS" -ge $((limit - warned)) ]; then
    signal_replicas "$warning"
    warning=''
  fi
  if [ "$SECONDS" -ge "$limit" ]; then
    verdict=failed
    finish time TERM "$grace"
  fi
}

decided() { # the job ends when the ends so far are what a role waits for
  local place
  counts
  for place in "${!names[@]}"; do
    if [ "${fails[place]}" != - ] && [ "${failed[place]:-0}" -ge "${fails[place]}" ]; then
      verdict=failed result=${status[place]}
      finish decided TERM "$grace"
      return
    fi
  done
  for place in "${!names[@]}"; do
    if [ "${enough[place]}" != - ] && [ "${succeeded[place]:-0}" -ge "${enough[place]}" ]; then
      finish decided TERM "$grace"
      return
    fi
  done
}

asked() { # end the job when the console requests it
  local each signal seconds
  for each in "$folder"/sto[p]; do # a pattern, so that the folder is read again
    read -r signal seconds _ <"$each"
    finish asked "$signal" "$seconds"
  done
}

finish() { # WHY SIGNAL SECONDS: signal what still runs, and kill it after that time
  ending=$1 deadline=$((SECONDS + $3))
  written "$run/ending" "$1 $(now)"
  [ -z "$relay_url" ] || carry sync 5
  if [ "$2" = KILL ]; then deadline=$SECONDS; else signal_replicas "$2"; fi
  if [ "$2" != TERM ]; then warn_at=$((deadline - ($3 / 10 < 30 ? $3 / 10 : 30))); fi
}

signal_replicas() { # SIGNAL: to every replica
  [ -z "$alone" ] || kill -s "$1" -- "-${starters[0]}" 2>/dev/null
  scancel --quiet --signal="$1" "$SLURM_JOB_ID" 2>/dev/null
}

killed() {
  [ -z "$alone" ] || kill -s KILL -- "-${starters[0]}" 2>/dev/null
  kill -TERM "${starters[@]}" 2>/dev/null
}

enforce_deadline() {
  if [ "$warn_at" -gt 0 ] && [ "$SECONDS" -ge "$warn_at" ]; then
    warn_at=0
    signal_replicas TERM
  fi
  [ "$SECONDS" -lt "$deadline" ] || killed
}

closed() { # PLACE CODE: a role's last replica has ended; write the ends of those that could not
  local index end code=$2 how=lost
  [ "$code" -ne 0 ] || code=137
  [ -z "$ending" ] || how=told
  heard
  for ((index = 0; index < ${sizes[$1]}; index++)); do
    end=$run/ends/${names[$1]}-$index
    [ -e "$end" ] || written "$end" "$code $(now) $how"
  done
}

spread() { # CODE: every replica of such a script ends as the script did
  local place index how=itself
  [ -z "$ending" ] || how=told
  for place in "${!names[@]}"; do
    for ((index = 0; index < ${sizes[place]}; index++)); do
      [ -e "$run/ends/${names[place]}-$index" ] ||
        written "$run/ends/${names[place]}-$index" "$1 $(now) $how"
    done
  done
}

watched() {
  local left=${#names[@]} place code
  while [ "$left" -gt 0 ]; do
    if read -r -t 1 -u "$woken" place code; then
      left=$((left - 1))
      closed "$place" "$code"
    fi
    if [ -n "$alone" ] && ! kill -0 "${starters[0]}" 2>/dev/null; then
      wait "${starters[0]}"
      spread $?
      left=0
    fi
    start_listeners
    [ -n "$ending" ] || decided
    [ -n "$ending" ] || asked
    [ -n "$ending" ] || timed
    [ -z "$ending" ] || enforce_deadline
  done
  [ -z "$board" ] || kill -TERM "$board" 2>/dev/null
  written "$run/end" "$(now)"
  rm -f "$folder"/{secrets,role-credentials,{dir-,bucket-,}login,{dir-,}code-key,door,door-key} "$folder"/enter-*
  [ -z "$by_hand" ] || tail -n +1 "$run"/logs/*.output
  [ -z "$relay_url" ] || left script
  [ "$verdict" = succeeded ] || exit "$result"
}

begin() {
  local fifo signal each
  run=$folder/run-$((${SLURM_RESTART_COUNT:-0} + 1))
  if [ -n "${relay_url:=}" ]; then
    claim_by_relay
  else
    claim
    for each in "$folder"/rewoun[d]; do exit 1; done # a pattern, so that the folder is read again
    # Slurm forgot that it had started this run, and killed it; its files are there.
    mkdir "$run" || { written "$folder/rewound" "$(now)"; exit 1; }
  fi
  mkdir "$run"/{started,ends,logs,work,steps,views,doors,failed}
  fifo=$(mktemp -u) && mkfifo -m 600 "$fifo" && exec {woken}<>"$fifo" && rm "$fifo" || exit 1
  write_hosts
  chosen
  peers >"$run/peers"
  [ -z "$checkpoints" ] || print_checkpoint_variables >>"$run/peers"
  [ -z "$laid" ] || before >"$run/before"
  if [ -n "$relay_url" ]; then
    watching </dev/null &
    watcher=$!
    disown
    carry sync 600 || exit
  fi
  trap : TERM
  # shellcheck disable=SC2064 # this signal, not the last
  for signal in HUP INT USR1 USR2; do trap "signal_replicas $signal" "$signal"; done
  asked
  if [ -n "$ending" ]; then
    written "$run/end" "$(now)"
    [ -z "$relay_url" ] || left script
    exit 0
  fi
  if [ -n "$alone" ]; then start_alone; else started; fi
  if [ "${#tensorboard[@]}" -gt 0 ]; then
    start_tensorboard "${tensorboard[@]}" </dev/null >"$run/tensorboard" 2>&1 &
    board=$!
  fi
  watched
}
