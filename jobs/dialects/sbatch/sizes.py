"""The size of a component: Slurm's nodes, tasks, CPUs, memory and GPUs ↔ replicas and resources of each.

A replica is a node's share of the job, since Slurm runs a script once, on the first node, and what the
script starts is its own affair: `--nodes=2 --ntasks-per-node=8 --cpus-per-task=4` are two replicas of 32
CPUs.  Where nodes are not told, the tasks are counted as if they ran on one node.  Only in scripts that
the console wrote for several roles a replica is a task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs.dialects.fields import MOST_CPUS, MOST_GPUS, MOST_MEMORY_MIB, MOST_REPLICAS
from jobs.dialects.sbatch import amounts, hosts
from jobs.dialects.sbatch.amounts import Devices
from jobs.spec import Resources

DEFAULT: Final = Resources()

COUNTS: Final = {
    "ntasks": MOST_CPUS,
    "ntasks-per-node": MOST_CPUS,
    "cpus-per-task": MOST_CPUS,
    "cpus-per-gpu": MOST_CPUS,
    "mincpus": MOST_CPUS,
    "ntasks-per-gpu": MOST_CPUS,
}
"""Options that are counts, and the most of each."""

MEMORIES: Final = ("mem", "mem-per-cpu", "mem-per-gpu")
DEVICES: Final = ("gpus-per-node", "gpus-per-task", "gpus")
OPTIONS: Final = ("nodes", *COUNTS, *MEMORIES, *DEVICES, "gres")
"""The options whose values are read here."""

MOST: Final = {"nodes": MOST_REPLICAS, **COUNTS, **dict.fromkeys(MEMORIES, MOST_MEMORY_MIB)}
MOST_DEVICES: Final = MOST_GPUS
EXAMPLES: Final = {
    "nodes": "2",
    **dict.fromkeys(COUNTS, "4"),
    **dict.fromkeys(MEMORIES, "16G"),
    **dict.fromkeys(DEVICES, "a100:4"),
    "gres": "gpu:a100:4",
}


@dataclass(frozen=True, slots=True)
class Size:
    """`replicas` of so much each."""

    replicas: int = 1
    cpu_milli: int = DEFAULT.cpu_milli
    memory_mib: int = DEFAULT.memory_mib
    gpus: int = 0
    gpu_type: str = ""


def read(options: Mapping[str, str], *, by_task: bool) -> Size:
    """Return the size that `options` say; what can't be read counts as not said."""
    return _read_by_task(options) if by_task else _read_by_node(options)


def write(size: Size, said: Mapping[str, str], *, by_task: bool) -> dict[str, str]:
    """Return the options for `size`: those `said` where they say it, else with as few changes as will do."""
    own = {name: value for name, value in said.items() if name in OPTIONS}
    if read({**said}, by_task=by_task) == size:
        return own
    without = {name: value for name, value in said.items() if name not in OPTIONS}
    if not by_task:
        changed = _change_options(size, said)
        if read({**without, **changed}, by_task=False) == size:
            return changed
    others = _list_other_gres(said)
    return {**write_anew(size, by_task=by_task), **({"gres": ",".join(others)} if others else {})}


def number(options: Mapping[str, str], name: str) -> int:
    """Return a count, 0 when it is not said or can't be read."""
    found = amounts.count(options.get(name, ""))
    return min(found, MOST.get(name, MOST_CPUS)) if found else 0


def nodes(options: Mapping[str, str]) -> int:
    """The least number of nodes: said, or what the tasks or the named nodes take; 0 when nothing tells."""
    said = amounts.nodes(options.get("nodes", ""))
    if said:
        return min(said[0], MOST_REPLICAS)
    per_node = number(options, "ntasks-per-node")
    tasks = number(options, "ntasks")
    named = hosts.expand(options["nodelist"]) if options.get("nodelist") else None
    return min(max(math.ceil(tasks / per_node) if per_node else 0, len(named or ())), MOST_REPLICAS)


def _tasks_per_node(options: Mapping[str, str], on: int) -> int:
    per_node = number(options, "ntasks-per-node")
    tasks = number(options, "ntasks")
    if per_node:
        return min(per_node, tasks) if tasks and on == 1 else per_node
    if tasks:
        return math.ceil(tasks / on)
    per_task = amounts.devices(options.get("gpus-per-task", ""))
    total = amounts.devices(options.get("gpus", ""))
    if per_task and per_task.count and total:
        return max(1, math.ceil(total.count / per_task.count / on))
    return 1


def _read_by_node(options: Mapping[str, str]) -> Size:
    on = max(nodes(options), 1)
    tasks = _tasks_per_node(options, on)
    devices = _read_devices(options, on, tasks)
    if per_gpu := number(options, "ntasks-per-gpu"):
        tasks = max(tasks, per_gpu * devices.count)
    per_task = number(options, "cpus-per-task")
    per_gpu = 0 if per_task else number(options, "cpus-per-gpu") * devices.count
    cpus = min(max(tasks * max(per_task, 1), per_gpu, number(options, "mincpus")), MOST_CPUS)
    return _make_size(options, on, cpus, devices)


def _read_by_task(options: Mapping[str, str]) -> Size:
    """Scripts of ours: so many tasks, and what each is given."""
    devices = amounts.devices(options.get("gpus-per-task", "")) or Devices()
    return _make_size(options, number(options, "ntasks") or 1, number(options, "cpus-per-task") or 1, devices)


def _make_size(options: Mapping[str, str], replicas: int, cpus: int, devices: Devices) -> Size:
    gpus = min(devices.count, MOST_GPUS)
    each = (
        _read_memory(options, "mem"),
        _read_memory(options, "mem-per-cpu") * cpus,
        _read_memory(options, "mem-per-gpu") * gpus,
    )
    memory = next((mib for mib in each if mib), DEFAULT.memory_mib)
    return Size(
        replicas=replicas,
        cpu_milli=cpus * 1000,
        memory_mib=min(memory, MOST_MEMORY_MIB),
        gpus=gpus,
        gpu_type=devices.type if gpus else "",
    )


def _read_memory(options: Mapping[str, str], name: str) -> int:
    return min(amounts.memory(options.get(name, "")) or 0, MOST_MEMORY_MIB)


def _read_devices(options: Mapping[str, str], on: int, tasks: int) -> Devices:
    """Return the GPUs of one node, from whichever option tells."""
    each = amounts.devices(options.get("gpus-per-node", ""))
    if each:
        return each
    generic = amounts.gres(options.get("gres", ""))
    if generic and generic[0].count:
        return generic[0]
    each = amounts.devices(options.get("gpus-per-task", ""))
    if each:
        return replace(each, count=each.count * tasks)
    total = amounts.devices(options.get("gpus", ""))
    return replace(total, count=math.ceil(total.count / on)) if total else Devices()


def _list_other_gres(said: Mapping[str, str]) -> tuple[str, ...]:
    """Return the generic resources of --gres beside GPUs."""
    found = amounts.gres(said.get("gres", ""))
    return found[1] if found else ()


def write_anew(size: Size, *, by_task: bool) -> dict[str, str]:
    """Return the plainest options for a size."""
    cpus = math.ceil(size.cpu_milli / 1000)
    gpus = Devices(size.gpus, size.gpu_type)
    if by_task:
        each = math.ceil(size.memory_mib / cpus)
        return {
            "ntasks": str(size.replicas),
            "cpus-per-task": str(cpus),
            "mem-per-cpu": amounts.memory_to_text(each),
            **({"gpus-per-task": gpus.written} if size.gpus else {}),
        }
    return {
        "nodes": str(size.replicas),
        "cpus-per-task": str(cpus),
        "mem": amounts.memory_to_text(size.memory_mib),
        **({"gpus-per-node": gpus.written} if size.gpus else {}),
    }


def _change_options(size: Size, said: Mapping[str, str]) -> dict[str, str]:
    """Return the options said, with only those changed that say something else."""
    before = _read_by_node(said)
    own = {name: value for name, value in said.items() if name in OPTIONS}
    tasks = _tasks_per_node(said, max(nodes(said), 1))
    if size.replicas != before.replicas:
        own["nodes"] = str(size.replicas)
        if "ntasks" in own:
            own["ntasks"] = str(tasks * size.replicas)
    if "gpus" in own and (size.replicas, size.gpus) != (before.replicas, before.gpus):
        own["gpus"] = Devices(size.gpus * size.replicas, size.gpu_type).written
    if (size.gpus, size.gpu_type) != (before.gpus, before.gpu_type):
        _change_gpus(own, Devices(size.gpus, size.gpu_type), tasks)
    if size.cpu_milli != before.cpu_milli:
        own.pop("cpus-per-gpu", None)
        own["cpus-per-task"] = str(max(1, size.cpu_milli // 1000 // tasks))
    if _read_by_node({**said, **own}).memory_mib != size.memory_mib:
        for name in ("mem-per-cpu", "mem-per-gpu"):
            own.pop(name, None)
        own["mem"] = amounts.memory_to_text(size.memory_mib)
    return own


def _change_gpus(own: dict[str, str], wanted: Devices, tasks: int) -> None:
    """Other GPUs in the option that told them so far."""
    if "gres" in own and "gpus-per-node" not in own:
        others = _list_other_gres(own)
        own["gres"] = amounts.gres_to_text(wanted, others)
    elif "gpus-per-task" in own and wanted.count % tasks == 0 and wanted.count:
        own["gpus-per-task"] = replace(wanted, count=wanted.count // tasks).written
    elif "gpus" not in own:
        own["gpus-per-node"] = wanted.written
    for name in ("gres", "gpus-per-node", "gpus-per-task", "gpus"):
        if name in own and (not own[name] or (not wanted.count and name != "gres")):
            del own[name]
