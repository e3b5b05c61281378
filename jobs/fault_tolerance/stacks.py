"""Stacks of a job's Python processes: collected by py-spy, compared across its ranks.

The collector is a shell line that runs beside a replica, as its user and in its file system, with the py-spy
program on its stdin.  It prints for each Python process of the replica a head and py-spy's JSON.  All of it
may be forged by the job, and is only ever shown as text.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, Self

COLLECT: Final = r"""
umask 077
program=$(mktemp "${TMPDIR:-/tmp}/stacks.XXXXXX") || exit 1
trap 'rm -f "$program"' EXIT
cat >"$program" && chmod 700 "$program" || exit 1
newline='
'
mark=JOB_CONSOLE_REPLICA=$JOB_CONSOLE_REPLICA task=$mark
[ "$JOB_CONSOLE_REPLICA" ] || mark=SLURM_JOB_ID=$SLURM_JOB_ID task=SLURM_PROCID=$SLURM_PROCID
# One program for all processes of the node; where its grep has no -z, each is looked at.
found=$(grep -lzFx -e "$mark" /proc/[0-9]*/environ 2>/dev/null)
for folder in ${found:-/proc/[0-9]*/environ}; do
  folder=${folder%/environ}
  case $(readlink "$folder/exe" 2>/dev/null) in *python*) ;; *) continue ;; esac
  variables=$newline$(tr '\0' '\n' 2>/dev/null <"$folder/environ")$newline
  case $variables in *"$newline$mark$newline"*) ;; *) continue ;; esac
  case $variables in *"$newline$task$newline"*) ;; *) continue ;; esac
  case $variables in *"${newline}JOB_CONSOLE_COMPANION="*) continue ;; esac
  state='' parent=''
  while read -r name value _; do
    case $name in State:) state=$value ;; PPid:) parent=$value ;; esac
  done 2>/dev/null <"$folder/status"
  rank='' local_rank=''
  for name in RANK OMPI_COMM_WORLD_RANK; do
    case $variables in *"$newline$name="*)
      rank=${variables#*"$newline$name="}; rank=${rank%%"$newline"*} ;;
    esac
  done
  case $variables in *"${newline}LOCAL_RANK="*)
    local_rank=${variables#*"${newline}LOCAL_RANK="}; local_rank=${local_rank%%"$newline"*} ;;
  esac
  echo "process ${folder#/proc/} ${parent:-0} ${state:-?} ${rank:--} ${local_rank:--}"
  "$program" dump --nonblocking --json --pid "${folder#/proc/}" 2>&1 </dev/null
  echo
done
"""
"""Without stopping the processes: `--nonblocking` reads their memory as it is."""

MOST_PROCESSES: Final = 64
"""Of one replica."""

MAIN_THREAD: Final = "MainThread"
MOST_FRAMES: Final = 100
MOST_REPORT: Final = 1 << 20
LONGEST_NAME: Final = 200

_HEAD: Final = re.compile(r"^process (\d{1,10}) (\d{1,10}) (\S) (\S{1,20}) (\S{1,20})$", re.MULTILINE)
_PACKAGES: Final = re.compile(r"/(?:site|dist)-packages/")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")

_COLLECTIVES: Final = frozenset(
    {
        "all_gather",
        "all_gather_coalesced",
        "all_gather_into_tensor",
        "all_gather_object",
        "all_reduce",
        "all_reduce_coalesced",
        "all_to_all",
        "all_to_all_single",
        "allgather",
        "allreduce",
        "alltoall",
        "barrier",
        "broadcast",
        "broadcast_object_list",
        "gather",
        "gather_object",
        "monitored_barrier",
        "recv",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "scatter",
        "scatter_object_list",
        "send",
    }
)
_BACKWARD: Final = frozenset({"_engine_run_backward", "backward", "grad"})
_AUTOGRAD: Final = "torch/autograd/"
_LIBRARIES: Final = ("torch/distributed/", "horovod/", "mpi4py/", "deepspeed/comm/", "paddle/distributed/")


@dataclass(frozen=True, slots=True)
class Frame:
    """One call: the function, and where it is."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread and its frames, the innermost first."""

    name: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Process:
    """A Python process.  `state` is the kernel's letter; `problem` says why it has no threads."""

    pid: int
    parent: int = 0
    state: str = "S"
    rank: str = ""
    local_rank: str = ""
    threads: tuple[Thread, ...] = ()
    problem: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether a signal or a debugger has stopped it."""
        return self.state in {"T", "t"}


@dataclass(frozen=True, slots=True)
class ReplicaStacks:
    """The processes of one replica; `problem` says why there are none."""

    role: str
    index: int
    node: str = ""
    processes: tuple[Process, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"


class StackVerdict(StrEnum):
    """The result of a comparison."""

    COLLECTIVE = "collective"
    SUSPECTS = "suspects"
    SAME_PLACE = "same_place"
    DIFFERENT = "different"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A rank that is elsewhere than the others, and where."""

    role: str
    index: int
    node: str
    rank: str
    place: str


@dataclass(frozen=True, slots=True)
class StackComparison:
    """What stacks tell together.

    `place` is where the others wait, `digest` stands for the places of all ranks, and `missing` are replicas
    without stacks with the reason.
    """

    verdict: StackVerdict
    place: str = ""
    suspects: tuple[Suspect, ...] = ()
    ranks: int = 0
    digest: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_hang(self) -> bool:
        """Whether the ranks wait for each other."""
        return self.verdict in {StackVerdict.COLLECTIVE, StackVerdict.SUSPECTS}

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return a stored one."""
        suspects = tuple(Suspect(**each) for each in value["suspects"])
        return cls(**{**value, "verdict": StackVerdict(value["verdict"]), "suspects": suspects})


# --- reading ---------------------------------------------------------------------------------------------


def parse(output: str) -> tuple[Process, ...]:
    """Return the processes in a collector's output."""
    heads = list(_HEAD.finditer(output))[:MOST_PROCESSES]
    ends = [head.start() for head in heads[1:]] + [len(output)]
    texts = (output[head.end() : end] for head, end in zip(heads, ends, strict=True))
    return tuple(_parse_process(head, text) for head, text in zip(heads, texts, strict=True))


def _parse_process(head: re.Match[str], text: str) -> Process:
    pid, parent, state, rank, local_rank = head.groups()
    made = Process(int(pid), int(parent), state, rank.strip("-"), local_rank.strip("-"))
    try:
        return replace(made, threads=tuple(_parse_threads(json.loads(text))))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        lines = text.strip().splitlines() or [""]
        return replace(made, problem=clean(lines[0]))


def _parse_threads(rows: Iterable[Mapping[str, Any]]) -> Iterator[Thread]:
    for row in rows:
        frames = tuple(
            Frame(clean(str(each["name"])), _shorten(str(each["filename"])), int(each["line"]))
            for each in row["frames"][:MOST_FRAMES]
        )
        if frames:
            name = MAIN_THREAD if row.get("os_thread_id") == row.get("pid") else row["thread_name"]
            yield Thread(clean(str(name or "")), frames)


def _shorten(path: str) -> str:
    """Return a file's path from its package on."""
    return clean(_PACKAGES.split(path)[-1])


def clean(text: str) -> str:
    """Return one printable line."""
    return _UNPRINTABLE.sub("�", text)[:LONGEST_NAME]


# --- comparison ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rank:
    replica: ReplicaStacks
    process: Process

    @property
    def collective(self) -> str:
        """The collective operation in which the rank waits, "" for none."""
        for thread in self.process.threads:
            for frame in thread.frames:
                if frame.function.lower() in _COLLECTIVES and any(each in frame.file for each in _LIBRARIES):
                    return frame.function
        return ""

    @property
    def is_in_backward(self) -> bool:
        """Whether the rank computes gradients, or waits there for those of others, which no frame shows."""
        frames = (frame for thread in self.process.threads for frame in thread.frames)
        return any(each.function in _BACKWARD and each.file.startswith(_AUTOGRAD) for each in frames)

    @property
    def place(self) -> str:
        """Where the main thread is."""
        if self.process.is_stopped:
            return "stopped"
        if self.collective:
            return self.collective
        main = [each for each in self.process.threads if each.name == MAIN_THREAD] or self.process.threads
        return str(main[0].frames[0]) if main else ""

    def as_suspect(self) -> Suspect:
        replica = self.replica
        return Suspect(replica.role, replica.index, replica.node, self.process.rank, self.place)


def compare(replicas: Sequence[ReplicaStacks]) -> StackComparison:
    """Compare where the ranks are.

    A rank is a suspect that is stopped, that is in no collective operation while others wait in one, that is
    not in PyTorch's backward pass, where gradients are summed, while others are, or that is with less than
    half of them elsewhere.
    """
    missing = {str(each): each.problem for each in replicas if each.problem}
    ranks = []
    for replica in replicas:
        found = _find_ranks(replica)
        ranks += [rank for rank in found if rank.place]
        if not replica.problem and not any(rank.place for rank in found):
            problem = next((each.problem for each in replica.processes if each.problem), "")
            missing[str(replica)] = problem or "no Python process"
    places = Counter(rank.place for rank in ranks)
    digest = sha256(json.dumps([rank.place for rank in ranks]).encode()).hexdigest()[:16]
    told = StackComparison(StackVerdict.DIFFERENT, ranks=len(ranks), digest=digest, missing=missing)
    if not ranks:
        return StackComparison(StackVerdict.NOTHING, missing=missing)
    waiting = [rank for rank in ranks if rank.collective and not rank.process.is_stopped]
    place, count = places.most_common(1)[0]
    suspects = [rank for rank in ranks if rank.process.is_stopped]
    blocked = waiting or [rank for rank in ranks if rank.is_in_backward]
    if not suspects and 0 < len(blocked) < len(ranks):
        suspects = [rank for rank in ranks if rank not in blocked]
    if not suspects and len(places) > 1 and 2 * count > len(ranks):
        suspects = [rank for rank in ranks if rank.place != place]
    if suspects:
        others = Counter(rank.place for rank in ranks if rank not in suspects)
        where = others.most_common(1)[0][0] if others else ""
        named = tuple(rank.as_suspect() for rank in suspects[:MOST_PROCESSES])
        return replace(told, verdict=StackVerdict.SUSPECTS, place=where, suspects=named)
    if len(places) == 1:
        verdict = StackVerdict.COLLECTIVE if waiting and len(ranks) > 1 else StackVerdict.SAME_PLACE
        return replace(told, verdict=verdict, place=place)
    return told


def _find_ranks(replica: ReplicaStacks) -> list[_Rank]:
    """Return the process of each rank of a replica: by its local rank, else the first Python process.

    Workers of a data loader have the rank of the process that started them, which is the older one.
    """
    processes = sorted(replica.processes, key=lambda each: each.pid)
    first: dict[str, Process] = {}
    for each in processes:
        if each.local_rank:
            first.setdefault(each.local_rank, each)
    return [_Rank(replica, each) for each in (first.values() or processes[:1])]


# --- the report ------------------------------------------------------------------------------------------


def render(replicas: Sequence[ReplicaStacks]) -> str:
    """Return all stacks as text, equal ones once."""
    owners: dict[str, list[str]] = defaultdict(list)
    for replica in replicas:
        if replica.problem:
            owners[f"  {replica.problem}"].append(str(replica))
        for process in replica.processes:
            rank = f" rank {process.rank}" if process.rank else ""
            owners[_render_process(process)].append(f"{replica}{rank} process {process.pid}")
    parts = ["\n".join([", ".join(names) + ":", text, ""]) for text, names in owners.items()]
    text = "\n".join(parts)
    return text if len(text) <= MOST_REPORT else text[:MOST_REPORT] + "\n[cut]\n"


def _render_process(process: Process) -> str:
    lines = ["  stopped by a signal"] if process.is_stopped else []
    lines += [f"  {process.problem}"] if process.problem else []
    for thread in process.threads:
        lines += [f"  {thread.name or 'thread'}", *(f"    {frame}" for frame in thread.frames)]
    return "\n".join(lines)
