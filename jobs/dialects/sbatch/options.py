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
    _value("comment", "Comment on the job.", "description"),
    _value("partition", "Partition, or several partitions, comma-separated.", "quota", "p"),
    _value("nodes", "Number of nodes, or min-max.", "roles[].replicas", "N"),
    _value("ntasks", "Total number of tasks that srun starts.", _CPU, "n"),
    _value("ntasks-per-node", "Number of tasks per node.", _CPU),
    _value("cpus-per-task", "CPUs per task.", _CPU, "c"),
    _value("cpus-per-gpu", "CPUs per GPU.", _CPU),
    _value("mincpus", "Minimum CPUs per node.", _CPU),
    _value("ntasks-per-gpu", "Tasks per GPU.", _CPU),
    _value("mem", "Memory per node, e.g. 16G; 0 for all memory of the node.", _MEMORY),
    _value("mem-per-cpu", "Memory per CPU, e.g. 4G.", _MEMORY),
    _value("mem-per-gpu", "Memory per GPU, e.g. 32G.", _MEMORY),
    _value("gpus", "GPUs of the whole job, e.g. 8 or a100:8.", _GPUS, "G"),
    _value("gpus-per-node", "GPUs per node, e.g. 4 or a100:4.", _GPUS),
    _value("gpus-per-task", "GPUs per task, e.g. 1 or a100:1.", _GPUS),
    _value("gres", "Generic resources per node, e.g. gpu:a100:4, comma-separated.", _GPU_TYPE),
    _value("constraint", "Required node features, e.g. a100&ib.", "roles[].nodes.labels", "C"),
    _value("nodelist", "Required nodes, e.g. gpu[1-3].", "roles[].nodes.only", "w"),
    _value("exclude", "Excluded nodes.", "roles[].nodes.never", "x"),
    _value("time", "Time limit: minutes, h:mm:ss or d-hh:mm:ss; 0 for no limit.", "time_limit_s", "t"),
    _value("signal", "Warning signal before the end, e.g. [B:]USR1@300.", "end_signal"),
    _value("begin", "Earliest start.", "not_before", "b"),
    _value("dependency", "Jobs to wait for: afterok:…, afterany:…, afternotok:…", "after", "d"),
    _flag("hold", "Hold the job until released.", "hold", "H"),
    _flag("no-requeue", "Don't restart after a node failure or preemption.", "retry.fancy"),
    _maybe("requeue", "Restart after a node failure or preemption.", "retry.fancy"),
    _value("export", "ALL, NONE, or variables: ALL,NAME=value.", "env"),
    _image("container-image", "Image as registry#name:tag, or an image file.", "roles[].image"),
    _image("container-mounts", "Mounts as /from:/to[:flags], comma-separated.", "mounts"),
)
"""The options that say something of a JobSpec."""

KEPT: Final = (
    _value("account", "Account charged for the job.", letter="A"),
    _value("acctg-freq", "Sampling interval of usage data."),
    _value("array", "Indexes of a job array, e.g. 0-9%2: run as a sweep with one job per index.", letter="a"),
    _value("batch", "Features of the node that runs the script."),
    _value("bb", "Burst buffer."),
    _value("bbf", "Burst buffer specification file."),
    _value("chdir", "Working directory.", letter="D"),
    _value("cluster-constraint", "Features of the cluster."),
    _value("clusters", "Candidate clusters.", letter="M"),
    _value("container", "OCI bundle to run in."),
    _value("container-id", "OCI container ID."),
    _flag("contiguous", "Contiguous nodes."),
    _value("core-spec", "Cores reserved for the system.", letter="S"),
    _value("cores-per-socket", "Minimum cores per socket."),
    _value("cpu-freq", "CPU frequency."),
    _value("deadline", "Cancel the job if it can't end by this time."),
    _value("delay-boot", "Time to wait before rebooting nodes."),
    _value("distribution", "Distribution of tasks.", letter="m"),
    _value("error", "File for the script's standard error.", letter="e"),
    _maybe("exclusive", "Exclusive use of nodes."),
    _value("export-file", "File with environment variables."),
    _value("extra", "Site-specific data."),
    _value("extra-node-info", "Sockets, cores and threads.", letter="B"),
    _maybe("get-user-env", "Login environment."),
    _value("gid", "Group to run as."),
    _value("gpu-bind", "Binding of tasks to GPUs."),
    _value("gpu-freq", "GPU frequency."),
    _value("gpus-per-socket", "GPUs per socket."),
    _value("gres-flags", "Binding of generic resources."),
    _flag("help", "Show help.", letter="h"),
    _value("hint", "Resource that limits the tasks, as scheduling hint."),
    _flag("ignore-pbs", "Ignore #PBS lines."),
    _value("input", "File for the script's standard input.", letter="i"),
    _word("kill-on-invalid-dep", "Cancel the job if its dependency can't be met.", "yes", "no"),
    _value("licenses", "Licences.", letter="L"),
    _value("mail-type", "Events to e-mail about."),
    _value("mail-user", "E-mail recipient."),
    _value("mcs-label", "Label of the multi-category security plugin."),
    _value("mem-bind", "Binding of tasks to memory."),
    _value("network", "Interconnect network."),
    _maybe("nice", "Lower the priority by this amount."),
    _maybe("no-kill", "Continue when a node fails.", letter="k"),
    _value("nodefile", "File with node names.", letter="F"),
    _value("ntasks-per-core", "Maximum tasks per core."),
    _value("ntasks-per-socket", "Maximum tasks per socket."),
    _maybe("oom-kill-step", "Kill the whole step when a task runs out of memory."),
    _word("open-mode", "Open mode of output files.", "append", "truncate"),
    _value("output", "File for the script's output.", letter="o"),
    _flag("overcommit", "Allow more tasks than CPUs.", letter="O"),
    _flag("oversubscribe", "Share nodes with other jobs.", letter="s"),
    _flag("parsable", "Print only the job ID."),
    _value("power", "Power management."),
    _value("prefer", "Preferred node features."),
    _value("priority", "Site-specific priority."),
    _value("profile", "Types of detailed usage data to sample."),
    _maybe("propagate", "Limits to take over from the submitting shell."),
    _value("qos", "Quality of service.", letter="q"),
    _flag("quiet", "Print less.", letter="Q"),
    _flag("reboot", "Reboot nodes first."),
    _value("reservation", "Reservation to use."),
    _value("segment", "Nodes per block."),
    _value("sockets-per-node", "Minimum sockets per node."),
    _flag("spread-job", "Spread over as many nodes as possible."),
    _flag("stepmgr", "Manage steps on the first node."),
    _value("switches", "Maximum number of leaf switches."),
    _flag("test-only", "Only show the estimated start."),
    _value("thread-spec", "Threads reserved for the system."),
    _value("threads-per-core", "Threads to use per core."),
    _value("time-min", "Minimum time limit."),
    _value("tmp", "Minimum temporary disk that each node must have."),
    _value("tres-bind", "Binding of tasks to resources."),
    _value("tres-per-task", "Resources per task."),
    _value("uid", "User to run as."),
    _flag("usage", "Show short help."),
    _flag("use-min-nodes", "Use the minimum number of nodes of a range."),
    _flag("verbose", "Print more.", letter="v"),
    _flag("version", "Show the version.", letter="V"),
    _flag("wait", "Return when the job has ended.", letter="W"),
    _value("wait-all-nodes", "Start when all nodes are ready."),
    _value("wckey", "Workload key."),
    _value("wrap", "Command to run instead of a script."),
    _image("container-name", "Name of the container."),
    _image("container-save", "Path for saving the container."),
    _image("container-workdir", "Working directory in the container."),
    _image("container-env", "Image variables to keep."),
    _flag("container-mount-home", "Mount the home directory.", source=PYXIS),
    _flag("container-writable", "Make the container writable.", source=PYXIS),
    _flag("container-remap-root", "Run as root in the container.", source=PYXIS),
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
