# Roles of the job: each is started by an srun of its own, in its own part of the nodes.
fifo=$(mktemp -u) && mkfifo -m 600 "$fifo" && exec {ended}<>"$fifo" && rm "$fifo" || exit 1
count=0 leader=0 failing=() ending=()

of() { # Slurm's variable $1 for the role at place $2
  local name=$1${SLURM_HET_SIZE:+_HET_GROUP_$2}
  echo "${!name:-${3:-}}"
}

lead() { # the role at place $1 has the lowest ranks
  leader=$1
  local place
  WORLD_SIZE=0
  for ((place = 0; place < ${SLURM_HET_SIZE:-1}; place++)); do
    WORLD_SIZE=$((WORLD_SIZE + $(of SLURM_NTASKS "$place" 1)))
  done
  MASTER_ADDR=${MASTER_ADDR:-$(scontrol show hostnames "$(of SLURM_JOB_NODELIST "$leader")" | head -n 1)}
  MASTER_PORT=${MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))}
  export WORLD_SIZE MASTER_ADDR MASTER_PORT
}

role() { # NAME FAILING ENDING [OPTION OF SRUN]... -- COMMAND
  local place=$count options=() other rank=0 gpus
  failing[place]=$2 ending[place]=$3
  shift 3
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  if [ "$place" -ne "$leader" ]; then
    rank=$(of SLURM_NTASKS "$leader" 1)
    for ((other = 0; other < place; other++)); do
      [ "$other" -eq "$leader" ] || rank=$((rank + $(of SLURM_NTASKS "$other" 1)))
    done
  fi
  gpus=$(of SLURM_GPUS_PER_TASK "$place")
  [ -z "$gpus" ] || options+=("--gpus-per-task=${gpus##*:}") # with its type, Slurm 22.05 gives none
  [ -z "${SLURM_HET_SIZE:-}" ] || options+=("--het-group=$place")
  [ "${failing[place]}" = fails ] && options+=(--kill-on-bad-exit=1) || options+=(--kill-on-bad-exit=0)
  options+=("--ntasks=$(of SLURM_NTASKS "$place" 1)" "--cpus-per-task=$(of SLURM_CPUS_PER_TASK "$place" 1)")
  {
    FIRST_RANK=$rank srun "${options[@]}" bash -c \
      'export RANK=$((FIRST_RANK + SLURM_PROCID)); exec bash -c "$1"' bash "$2"
    echo "$place $?" >&"$ended"
  } &
  count=$((count + 1))
}

finish() { # the job ends as its roles say
  local left=$count place code
  while [ "$left" -gt 0 ] && read -r -u "$ended" place code; do
    left=$((left - 1))
    if [ "$code" -ne 0 ] && [ "${failing[place]}" = fails ]; then exit "$code"; fi
    if [ "$code" -eq 0 ] && [ "${ending[place]}" = ends ]; then exit 0; fi
  done
  exit 0
}
