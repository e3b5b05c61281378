"""The script that runs several roles, or a role of several replicas: an srun for each role.

Slurm runs a script once, on its first node; what runs everywhere has to be started by srun.  The text is
always the same but for its last lines, one for each role, by which it is recognised again.  Sizes come
from the options by way of Slurm's own variables, so that nothing is said twice.  A role may end the job:
when one of its replicas fails (`fails`), or when all of them have succeeded (`ends`).  Ranks and the
master's address are set as the DLC page has them, the master's or chief's replicas first.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.dialects import shell_words

LEADERS: Final = ("master", "chief")
FAILS: Final = "fails"
ENDS: Final = "ends"
NEVER: Final = "-"

PREAMBLE: Final = r"""# Roles of the job: each is started by an srun of its own, in its own part of the nodes.
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

"""
EARLIER: Final = PREAMBLE.replace(
    '"--gpus-per-task=${gpus##*:}") # with its type, Slurm 22.05 gives none',
    '"--gpus-per-task=$gpus")',
)
"""As earlier releases wrote it, and people keep it."""

EPILOGUE: Final = "finish"

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Started:
    """One role as the script starts it; `options` go to its srun."""

    name: str
    command: str
    fails: bool = True
    ends: bool = False
    options: Sequence[str] = ()
    env: dict[str, str] = field(default_factory=dict)


def written(roles: Sequence[Started]) -> str:
    """The script."""
    lines = [f"lead {leader([role.name for role in roles])}", *map(_line, roles), EPILOGUE]
    return PREAMBLE + "\n".join(lines)


def read(script: str) -> tuple[Started, ...] | None:
    """The roles of a script that `written` made, also when their lines were changed; None for any other."""
    if script.startswith(EARLIER):
        script = PREAMBLE + script.removeprefix(EARLIER)
    if not script.startswith(PREAMBLE):
        return None
    try:
        words = shell_words.split(script[len(PREAMBLE) :])
    except ValueError:
        return None
    if words[:1] != ["lead"] or words[-1:] != [EPILOGUE] or len(words) < 8:
        return None
    roles = tuple(_roles(words[2:-1]))
    return roles if roles and written(roles) == script.rstrip("\n") else None


def leader(names: Iterable[str]) -> int:
    """The place of the role with rank 0: the master, the chief, or else the first (DLC page)."""
    lower = [name.lower() for name in names]
    return next((lower.index(name) for name in LEADERS if name in lower), 0)


def _line(role: Started) -> str:
    """One role, every word of a person's quoted."""
    env = "".join(f"{name}={shlex.quote(value)} " for name, value in role.env.items())
    failing, ending = FAILS if role.fails else NEVER, ENDS if role.ends else NEVER
    words = [role.name, failing, ending, *role.options, "--", role.command]
    return f"{env}role {' '.join(map(shlex.quote, words))}"


def _roles(words: Sequence[str]) -> Iterator[Started]:
    """The roles as the shell would see them; nothing more where they can't be read on."""
    position = 0
    while position < len(words):
        env: dict[str, str] = {}
        while position < len(words) and (match := _ASSIGNMENT.fullmatch(words[position])):
            env[match[1]] = match[2]
            position += 1
        if words[position : position + 1] != ["role"] or len(words) - position < 6:
            return
        name, failing, ending = words[position + 1 : position + 4]
        position += 4
        if "--" not in words[position:-1]:
            return
        stop = words.index("--", position)
        yield Started(
            name,
            words[stop + 1],
            failing == FAILS,
            ending == ENDS,
            tuple(words[position:stop]),
            env,
        )
        position = stop + 2
