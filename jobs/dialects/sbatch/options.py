"""The options of `#SBATCH` lines: how each is written, and which field of a JobSpec it fills.

Names, letters and kinds of argument are those of sbatch(1) and of Slurm's own table of options; those
that begin with `container` beyond Slurm's own are Pyxis', the plugin that runs images.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

from jobs.dialects.fields import CONSOLE, AnyKey, Choice, Flag, Records, Text

SBATCH: Final = "sbatch(1)"
PYXIS: Final = "Pyxis"


class Takes(Enum):
    """Return whether an option has a value."""

    NOTHING = auto()
    VALUE = auto()
    MAYBE = auto()
    """Only behind `=`, or right behind its letter."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option, its letter ("" for none), and whether it has a value."""

    rule: AnyKey
    letter: str
    takes: Takes

    @property
    def name(self) -> str:
        """Return its long name."""
        return self.rule.key


def _value(
    name: str, about: str, path: str = "", letter: str = "", takes: Takes = Takes.VALUE, source: str = SBATCH
) -> Option:
    return Option(Text(key=name, source=source, help=about, path=path, blank=True), letter, takes)


def _flag(name: str, about: str, path: str = "", letter: str = "", source: str = SBATCH) -> Option:
    return Option(Flag(key=name, source=source, help=about, path=path), letter, Takes.NOTHING)


_maybe: Final = partial(_value, takes=Takes.MAYBE)
_image: Final = partial(_value, source=PYXIS)


def _word(name: str, about: str, *words: str) -> Option:
    rule = Choice(key=name, source=SBATCH, help=about, meanings=dict.fromkeys(words, ""))
    return Option(rule, "", Takes.VALUE)


_CPU: Final = "roles[].resources.cpu_milli"
_MEMORY: Final = "roles[].resources.memory_mib"
_GPU_TYPE: Final = "roles[].resources.gpu_type"
_GPUS: Final = "roles[].resources.gpus"

NEUTRAL: Final = (
    _value("job-name", "Name of the job.", "name", "J"),
    _value("comment", "A remark about the job.", "description"),
    _value("partition", "Partition, or several with commas between.", "quota", "p"),
    _value("nodes", "How many nodes, or least-most.", "roles[].replicas", "N"),
    _value("ntasks", "How many tasks srun starts in all.", _CPU, "n"),
    _value("ntasks-per-node", "How many of the tasks on each node.", _CPU),
    _value("cpus-per-task", "CPUs of each task.", _CPU, "c"),
    _value("cpus-per-gpu", "CPUs for each GPU.", _CPU),
    _value("mincpus", "Least CPUs of a node.", _CPU),
    _value("ntasks-per-gpu", "Tasks for each GPU.", _CPU),
    _value("mem", "Memory of each node, 16G; 0 for all that it has.", _MEMORY),
    _value("mem-per-cpu", "Memory for each CPU, 4G.", _MEMORY),
    _value("mem-per-gpu", "Memory for each GPU, 32G.", _MEMORY),
    _value("gpus", "GPUs of the whole job, 8 or a100:8.", _GPUS, "G"),
    _value("gpus-per-node", "GPUs of each node, 4 or a100:4.", _GPUS),
    _value("gpus-per-task", "GPUs of each task, 1 or a100:1.", _GPUS),
    _value("gres", "Generic resources of each node: gpu:a100:4, with commas between.", _GPU_TYPE),
    _value("tmp", "Temporary disk of each node, at least.", "roles[].resources.disk_mib"),
    _value("constraint", "Features the nodes must have: a100&ib.", "roles[].nodes.labels", "C"),
    _value("nodelist", "Nodes the job must have: gpu[1-3].", "roles[].nodes.only", "w"),
    _value("exclude", "Nodes the job must not have.", "roles[].nodes.never", "x"),
    _value("time", "Longest running time: minutes, h:mm:ss or d-hh:mm:ss; 0 for none.", "time_limit_s", "t"),
    _value("signal", "Signal before the end: [B:]USR1@300.", "end_signal"),
    _value("begin", "Not before this time.", "not_before", "b"),
    _value("dependency", "Jobs to wait for: afterok:…, afterany:…, afternotok:…", "after", "d"),
    _flag("hold", "Held until it is released.", "hold", "H"),
    _flag("no-requeue", "Never started again after a failed node or a preemption.", "retry.fancy"),
    _maybe("requeue", "Started again after a failed node or a preemption.", "retry.fancy"),
    _value("export", "ALL, NONE, or variables: ALL,NAME=value.", "env"),
    _image("container-image", "Image, registry#name:tag, or a file of it.", "roles[].image"),
    _image("container-mounts", "Places to mount, /from:/to[:flags], commas between.", "mounts"),
)
"""The options that say something of a JobSpec."""

KEPT: Final = (
    _value("account", "Account that pays for the job.", letter="A"),
    _value("acctg-freq", "How often usage is sampled."),
    _value("array", "Indexes of a job array, 0-9%2: a sweep with a job for each.", letter="a"),
    _value("batch", "Features of the node that the script runs on."),
    _value("bb", "Burst buffer."),
    _value("bbf", "File that describes the burst buffer."),
    _value("chdir", "Working directory.", letter="D"),
    _value("cluster-constraint", "Features of the cluster."),
    _value("clusters", "Clusters to choose from.", letter="M"),
    _value("container", "OCI bundle to run in."),
    _value("container-id", "Id of the OCI container."),
    _flag("contiguous", "Nodes beside each other."),
    _value("core-spec", "Cores kept for the system.", letter="S"),
    _value("cores-per-socket", "Least cores of a socket."),
    _value("cpu-freq", "Frequency of the CPUs."),
    _value("deadline", "Removed when it can't end before."),
    _value("delay-boot", "How long to wait before nodes are booted anew."),
    _value("distribution", "How tasks are spread.", letter="m"),
    _value("error", "File of the script's standard error.", letter="e"),
    _maybe("exclusive", "Whole nodes."),
    _value("export-file", "File of variables."),
    _value("extra", "Site's own data."),
    _value("extra-node-info", "Sockets, cores and threads.", letter="B"),
    _maybe("get-user-env", "The environment of a login."),
    _value("gid", "Group to run as."),
    _value("gpu-bind", "How tasks are bound to GPUs."),
    _value("gpu-freq", "Frequency of the GPUs."),
    _value("gpus-per-socket", "GPUs of each socket."),
    _value("gres-flags", "How generic resources are bound."),
    _flag("help", "Show help.", letter="h"),
    _value("hint", "What the tasks are limited by."),
    _flag("ignore-pbs", "Ignore #PBS lines."),
    _value("input", "File of the script's standard input.", letter="i"),
    _word("kill-on-invalid-dep", "Ended when its dependency can't come true.", "yes", "no"),
    _value("licenses", "Licences.", letter="L"),
    _value("mail-type", "When to write a mail."),
    _value("mail-user", "Whom to write mails."),
    _value("mcs-label", "Label of a multi-category security plugin."),
    _value("mem-bind", "How tasks are bound to memory."),
    _value("network", "Network of the interconnect."),
    _maybe("nice", "Lower priority by this much."),
    _maybe("no-kill", "Go on when a node fails.", letter="k"),
    _value("nodefile", "File of node names.", letter="F"),
    _value("ntasks-per-core", "Most tasks on each core."),
    _value("ntasks-per-socket", "Most tasks on each socket."),
    _maybe("oom-kill-step", "End the whole step when one task runs out of memory."),
    _word("open-mode", "How output files are opened.", "append", "truncate"),
    _value("output", "File of the script's output.", letter="o"),
    _flag("overcommit", "More tasks than CPUs.", letter="O"),
    _flag("oversubscribe", "Nodes shared with other jobs.", letter="s"),
    _flag("parsable", "Print the job's number only."),
    _value("power", "Power management."),
    _value("prefer", "Features that nodes should have."),
    _value("priority", "The site's own priority."),
    _value("profile", "What usage is sampled in detail."),
    _maybe("propagate", "Limits taken from the submitting shell."),
    _value("qos", "Quality of service.", letter="q"),
    _flag("quiet", "Print less.", letter="Q"),
    _flag("reboot", "Boot the nodes first."),
    _value("reservation", "Reservation to run in."),
    _value("segment", "Nodes in a block."),
    _value("sockets-per-node", "Least sockets of a node."),
    _flag("spread-job", "Over as many nodes as possible."),
    _flag("stepmgr", "Manage steps on the first node."),
    _value("switches", "Most leaf switches."),
    _flag("test-only", "Only say when it would start."),
    _value("thread-spec", "Threads kept for the system."),
    _value("threads-per-core", "Threads of each core to use."),
    _value("time-min", "Least running time."),
    _value("tres-bind", "How tasks are bound to resources."),
    _value("tres-per-task", "Resources of each task."),
    _value("uid", "User to run as."),
    _flag("usage", "Show a short help."),
    _flag("use-min-nodes", "The least nodes of a range."),
    _flag("verbose", "Print more.", letter="v"),
    _flag("version", "Show the version.", letter="V"),
    _flag("wait", "Return when the job has ended.", letter="W"),
    _value("wait-all-nodes", "Begin when all nodes are ready."),
    _value("wckey", "Key of the workload."),
    _value("wrap", "Command in place of a script."),
    _image("container-name", "Name of the container."),
    _image("container-save", "Where to save the container."),
    _image("container-workdir", "Working directory in the container."),
    _image("container-env", "Variables of the image that stay."),
    _flag("container-mount-home", "Mount the home directory.", source=PYXIS),
    _flag("container-writable", "Let the container be written to.", source=PYXIS),
    _flag("container-remap-root", "Be root in the container.", source=PYXIS),
)
"""The options that stay in the script, and mean nothing in a JobSpec."""

_ROLE: Final = (
    Text(key="name", source=CONSOLE, path="roles[].name", help="Name of the role."),
    Text(key="fails", source=CONSOLE, path="roles[].completion", help="A failed task fails all."),
    Text(key="ends", source=CONSOLE, path="roles[].completion", help="Its success ends all."),
    Text(key="env", source=CONSOLE, path="roles[].env", help="Variables in front of the line."),
    Text(key="command", source=CONSOLE, path="roles[].command", help="The command of each task."),
)
PARTS: Final = (
    Text(key="interpreter", source=SBATCH, help="The program of the first line.", required=True),
    Text(key="script", source=SBATCH, path="roles[].command", help="The commands behind the options."),
    Records(
        key="role",
        source=CONSOLE,
        path="roles",
        keys=_ROLE,
        identity="name",
        most=1000,
        help="The lines of a script that the console wrote for several roles.",
    ),
)
"""What a script is made of beside its options."""

OTHER_NAMES: Final = {"tasks-per-node": "ntasks-per-node", "share": "oversubscribe", "workdir": "chdir"}
"""Spellings that sbatch takes as well, or took before."""

OPTIONS: Final = {option.name: option for option in (*NEUTRAL, *KEPT)}
BY_LETTER: Final = {option.letter: option for option in OPTIONS.values() if option.letter}
RULES: Final = tuple(option.rule for option in (*NEUTRAL, *KEPT))


def resolve(name: str) -> tuple[str, ...]:
    """The options that a long name may stand for: itself, or all that begin with it, as getopt has it."""
    if name in OPTIONS:
        return (name,)
    if name in OTHER_NAMES:
        return (OTHER_NAMES[name],)
    if not name:
        return ()
    spellings = (*OPTIONS, *OTHER_NAMES)
    found = (OTHER_NAMES.get(each, each) for each in spellings if each.startswith(name))
    return tuple(dict.fromkeys(found))
