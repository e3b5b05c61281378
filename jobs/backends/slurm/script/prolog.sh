# The prolog of a replica: stages code, packages and mounts on its node.
#
# It runs as the job's user, once on each node; the other replicas there wait for it.  Its progress and errors
# are written into the run's folder.  Mounts at other paths are made in a mount namespace of the replica,
# without root where the node allows user namespaces (`unshare`); the job keeps its own user id in it.  `staged`,
# `installed`, `settled`, `placed`, and others follow it (`jobs.backends.slurm.script.staging`).
step() { # CAUSE ABOUT COMMAND…: run one step; its output is in the replica's log
  local cause=$1 about=$2 log=$run/logs/$name.output from
  shift 2
  written "$run/steps/$name" "$cause $about"
  from=$(stat -c %s "$log")
  "$@" && return
  [ ! -e "$stage.failed" ] || return
  written "$stage.failed" "$cause $(tail -c "+$((from + 1))" "$log" | tail -c 1000 | tr -s '\n' ' ')"
  return 1
}

failure=''
prevented() { # write why the command is not started
  local how=image detail=''
  heard
  [ ! -e "$run/ending" ] || how=told
  if [ "$how" != told ] && [ -n "$failure" ]; then
    how=init detail=$failure
  elif [ "$how" != told ] && [ -e "$stage.failed" ]; then
    read -r how detail <"$stage.failed"
  elif [ "$how" != told ] && [ "${#view[@]}" -gt 0 ]; then
    how=$viewing detail=$(tail -c 1000 "$run/logs/$name.output" | tr -s '\n' ' ')
  fi
  [ "$how" = init ] || code=1
  written "$run/ends/$name" "$code $(now) $how $detail"
  gone 1
}

copied() { # FOLDER TARGET: copy what is in it
  cp -R -P --preserve=mode,timestamps -- "$1/." "$2/"
}

unpacked() ( # ARCHIVE FOLDER: unpack an upload, fetched by the relay if need be
  set -o pipefail
  if [ -e "$folder/$1" ]; then cat "$folder/$1"; else carry fetch "$1"; fi |
    tar -x --no-same-owner -C "$2" -f -
)

linked() { # SOURCE PATH: below the replica's own folder
  mkdir -p "$(dirname "$PWD/$2")" && ln -s -n "$1" "$PWD/$2"
}

places=()
place() { # SOURCE PATH MODE: add a mount, `ro` or `rw`, or `memory:<MiB>` without a source
  places+=("$1" "$2" "$3")
}

cover() { # FOLDER: replace a folder by a copy of its entries in which mount points can be made
  local new each name
  new=$(mktemp -d "$mark.XXXXXX") && mount -t tmpfs -o mode=755 tmpfs "$new" || return
  for each in "${1%/}"/* "${1%/}"/.[!.]*; do
    name=$new/${each##*/}
    if [ -L "$each" ]; then
      cp -P "$each" "$name"
    elif [ -d "$each" ]; then
      mkdir "$name" && mount --rbind "$each" "$name" || return
    elif [ -e "$each" ]; then
      : >"$name" && mount --bind "$each" "$name" || return
    fi
  done
  if [ "$1" = / ]; then
    mkdir "$new/.before" && cd "$new" && pivot_root . .before && umount -l /.before && rmdir /.before
  else
    mount --move "$new" "$1" 2>/dev/null || mount --rbind "$new" "$1"
  fi
}

seat() { # PATH: make a mount point
  local around
  [ -d "$1" ] && return
  around=$(dirname "$1")
  while [ ! -d "$around" ]; do around=$(dirname "$around"); done
  if [ "${covered[$around]:-}" = "" ]; then
    cover "$around" || return
    covered[$around]=yes
  fi
  mkdir -p "$1"
}

lay() { # SOURCE PATH MODE
  local options
  seat "$2" || return
  case $3 in
    memory:*) mount -t tmpfs -o "size=${3#memory:}m,mode=700" tmpfs "$2" ;;
    rw) mount --rbind "$1" "$2" ;;
    ro)
      mount --rbind "$1" "$2" || return
      options=$(findmnt --noheadings --output VFS-OPTIONS --mountpoint "$2" | tail -n 1)
      mount -o "remount,bind,ro${options#rw}" "$2"
      ;;
  esac
}

seen() { # FOLDER MARK UID GID MOUNTS… -- COMMAND…: run the command with these mounts
  local work=$1 mark=$2 uid=$3 gid=$4
  local -A covered
  shift 4
  while [ "$1" != -- ]; do
    lay "$1" "$2" "$3" || { echo "$2 can't be laid there" >&2; exit 1; }
    shift 3
  done
  shift
  cd "$work" && : >"$mark" || exit 1
  [ "$uid" -ne 0 ] || exec "$@"
  exec unshare --user --map-user="$uid" --map-group="$gid" "$@"
}

in_image() { # run the command by Apptainer
  local at=0 mode binds=(--bind "$folder") script=': >"$1"; shift; exec "$@"'
  [ -n "${image:-}" ] || return 1
  viewing=image
  for ((; at < ${#places[@]}; at += 3)); do
    mode=${places[at + 2]}
    binds+=(--bind "${places[at]}:${places[at + 1]}:$mode")
  done
  # shellcheck disable=SC2206 # without GPUs it is no word
  view=(apptainer exec $nvidia "${binds[@]}" --pwd "$PWD" "$image" sh -c "$script" sh "$run/views/$name")
}

viewed() { # run the command in a mount namespace of its own
  local map=()
  in_image && return
  [ "${#places[@]}" -gt 0 ] || return 0
  viewing=mount
  [ "$(id -u)" -eq 0 ] || map=(--user --map-root-user)
  view=(unshare "${map[@]}" --mount --propagation=private bash -c
    "shopt -s nullglob; $(declare -f cover seat lay seen); seen \"\$@\"" bash
    "$PWD" "$run/views/$name" "$(id -u)" "$(id -g)" "${places[@]}" --)
}

in_view() { # COMMAND…: run it once with the mounts that the job's command will have; an image has its own
  local view=() viewing='' code
  [ -n "$mode${image:-}" ] || viewed
  "${view[@]}" "$@"
  code=$?
  [ "${#view[@]}" -eq 0 ] || rm "$run/views/$name" ||
    written "$stage.failed" "mount $(tail -c 1000 "$run/logs/$name.output" | tr -s '\n' ' ')"
  return "$code"
}

serve_credentials() { # PROVIDER PYTHON…: start the server that gives the replica credentials of the job's role
  local provider=$1 tries=0 url token=$PWD/.job-console-role-token served
  shift
  # The console writes them while the job is started; a program that begins sooner asks again.
  while [ ! -e "$folder/role-credentials" ] && [ "$((tries += 1))" -le 100 ]; do sleep 0.2; done
  exec {served}< <(unset SLURM_PROCID; exec "$@" -c "$(print_credential_server)" "$provider" "$folder/role-credentials" "$token")
  credential_server=$!
  if ! read -r -t 60 url <&"$served"; then
    written "$stage.failed" 'start The server for credentials of the role does not start'
    return 1
  fi
  exec {served}<&-
  if [ "$provider" = aws ]; then
    : "${AWS_CONTAINER_CREDENTIALS_FULL_URI=$url}" "${AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$token}"
    export AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
  else
    : "${ALIBABA_CLOUD_CREDENTIALS_URI=$url}" "${ALIBABA_CLOUD_ECS_METADATA_DISABLED=true}"
    export ALIBABA_CLOUD_CREDENTIALS_URI ALIBABA_CLOUD_ECS_METADATA_DISABLED
  fi
}

labelled() { # NAME: what a container of the replica writes, for the replica's log; signals reach all of its processes
  trap '' HUP INT QUIT TERM USR1 USR2
  exec sed -u -e "s/^/[$1] /" -e '$a\' # and a line break at the end
}

contained() { # NAME VARIABLES IMAGE FOLDER COMMAND…: become a container of the replica
  local name=$name.$1 image=${3:-${image:-}} view=() viewing='' at=$4
  "$2"
  shift 4
  trap - HUP INT QUIT TERM USR1 USR2
  [ -n "$mode" ] || viewed
  exec ${leading:+setsid} "${view[@]}" sh -c 'cd "$0" && exec "$@"' "$at" "$@"
}

initialize() { # NAME VARIABLES IMAGE FOLDER COMMAND…: run an init container
  local log=$run/logs/$name.output from
  written "$run/steps/$name" "init $1"
  from=$(stat -c %s "$log")
  (contained "$@") 2>&1 | labelled "$1"
  code=${PIPESTATUS[0]}
  [ "$code" -ne 0 ] || return 0
  failure="$1 $(tail -c "+$((from + 1))" "$log" | tail -c 1000 | tr -s '\n' ' ')"
  return 1
}

sidecars=()
accompany() { # NAME VARIABLES IMAGE FOLDER COMMAND…: start a sidecar, which leads a session of its own
  (leading=yes && contained "$@") > >(labelled "$1") 2>&1 &
  sidecars+=($!)
}

signal_sidecars() { # SIGNAL: to those that are left
  local each left=1
  for each in "${sidecars[@]}"; do kill -s "$1" "$each" 2>/dev/null && left=0; done
  return "$left"
}

dismiss() { # SECONDS: end what runs beside the command; sidecars have some time for it
  local each tries=0
  [ -z "$credential_server" ] || kill -KILL "$credential_server" 2>/dev/null
  signal_sidecars TERM
  while signal_sidecars 0 && [ "$((tries += 1))" -le "$(($1 * 10))" ]; do sleep 0.1; done
  signal_sidecars KILL
  for each in "${sidecars[@]}"; do kill -KILL -- "-$each" 2>/dev/null; done
}

before() { # the whole prolog; its functions without arguments differ from job to job
  stage=$run/stage/${SLURMD_NODENAME:-$(hostname)}
  [ -z "$mode" ] || stage=$run/stage/all
  [ "$mode" != run ] || { settled && initialized && accompanied; return; }
  mkdir -p "$stage" && exec 8>"$stage.lock" && flock 8 || return
  if [ ! -e "$stage.done" ]; then
    [ ! -e "$stage.failed" ] && staged && placed && installed && written "$stage.done" '' || return
    exec 8>&-
  else
    exec 8>&-
    placed || return
  fi
  settled
  [ -n "$mode" ] || { viewed && provided && initialized && accompanied; }
}
