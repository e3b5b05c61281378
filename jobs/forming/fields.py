"""Every field of the form: what it is called, what it means, and which JobSpec path it fills.

The sections, fields and their help follow the PAI-DLC page in both its editions (seeds 000 and 003) and
the SCM manual (seed 002, section 2); `source` says which.  `path` is a JSON pointer into a JobSpec, with
`*` for the number of a task role; a field without one is read by the list that it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from jobs.forming import arguments
from jobs.forming.measures import Choice, Flag, Lines, Measure, Number, Pairs, Text
from jobs.forming.rules.advanced import SETTINGS, Setting
from jobs.forming.within import Argument, Member, Within
from jobs.spec import Framework, Idle, MountPurpose, Visibility, When

Words = str | Promise

WORDS: Final = Text()
CPU: Final = 1000
GIB: Final = 1024
MINUTE: Final = 60
HOUR: Final = 3600
MONEY: Final = 1_000_000


class Section(StrEnum):
    """The parts of the form, in the order of the page."""

    BASIC = "basic"
    ENVIRONMENT = "environment"
    RESOURCES = "resources"
    FAULTS = "faults"
    ROLES = "roles"


class Kind(StrEnum):
    """What the field looks like."""

    TEXT = "text"
    LONG = "long"
    COMMAND = "command"
    NUMBER = "number"
    CHOICE = "choice"
    FLAG = "flag"
    SECRET = "secret"  # noqa: S105 what a field looks like
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Field:
    """One field.  `key` is its form name with `*` for numbers: `roles-*-command`.

    `short`: it belongs to the short mode.  `options` are the choices, with what each is called.
    `within`: it is one part of the value at `path`.
    """

    key: str
    section: Section
    path: str
    kind: Kind
    label: Words
    measure: Measure = WORDS
    help: Words = ""
    unit: Words = ""
    source: str = ""
    short: bool = False
    options: tuple[tuple[str, Words], ...] = ()
    placeholder: Words = ""
    within: Within | None = None

    @property
    def slug(self) -> str:
        """How templates call it: without the role's number."""
        return self.key.rpartition("*-")[2].replace("-", "_")


@dataclass(frozen=True, slots=True)
class Rows:
    """A list whose elements are rows of fields; `key` with `*` for a role's number."""

    key: str
    section: Section
    path: str
    label: Words
    cells: tuple[Field, ...]
    help: Words = ""
    source: str = ""
    short: bool = False

    @property
    def slug(self) -> str:
        """How templates call it."""
        return self.key.rpartition("*-")[2].replace("-", "_")


GPUS: Final = _("GPUs")
CORES: Final = _("cores")
HOURS: Final = _("hours")
SEED_ZH, SEED_JA, SEED_SCM = "seed 000", "seed 003", "seed 002"
BOTH: Final = f"{SEED_ZH}, {SEED_JA}"


def _options(known: type[StrEnum], none: bool = True) -> Choice:
    return Choice({**({"": None} if none else {}), **{each.value: each for each in known}})


B, E, R, F, P = Section.BASIC, Section.ENVIRONMENT, Section.RESOURCES, Section.FAULTS, Section.ROLES

BASIC: Final = (
    Field(
        "name",
        B,
        "/name",
        Kind.TEXT,
        _("Job name"),
        Text(required=True, longest=256),
        help=_("Best from letters, digits, “-”, “_” and “.”: every system takes those."),
        source=f"{BOTH}, {SEED_SCM}: basic information",
        short=True,
    ),
    Field(
        "description",
        B,
        "/description",
        Kind.LONG,
        _("Description"),
        Text(strip=False),
        help=_("What this run is about, for whoever finds it later."),
        source="CreateJob: Description",
    ),
    Field(
        "workspace",
        B,
        "/workspace",
        Kind.TEXT,
        _("Workspace, as the file names it"),
        help=_("The workspace's id where the file goes. Where the job runs here is chosen above."),
        source=f"{BOTH}: target workspace",
    ),
    Field(
        "visibility",
        B,
        "/visibility",
        Kind.CHOICE,
        _("Visibility"),
        _options(Visibility, none=False),
        help=_("Others in the workspace always see name, state and resources; the rest if you let them."),
        source="CreateJob: Accessibility",
        options=(
            ("private", _("Only I and the workspace's admins see its file, log and files")),
            ("public", _("Everybody in the workspace sees its file, log and files")),
        ),
    ),
)

ENVIRONMENT: Final = (
    Field(
        "roles-*-image",
        E,
        "/roles/*/image",
        Kind.TEXT,
        _("Node image"),
        Text(fits=r"\S*", wrong="no_image_name"),
        help=_(
            "What the nodes start from: an official or custom image, or the address of one in a registry "
            "that the nodes can reach, or a .sqsh file where the cluster takes those. An image in a private "
            "registry needs a user name and a password."
        ),
        source=f"{BOTH}: node image",
        short=True,
        placeholder="registry.example.com/team/image:tag",
    ),
    Field(
        "roles-*-accelerated",
        E,
        "",
        Kind.FLAG,
        _("Image acceleration"),
        Flag(),
        help=_("The accelerated edition of an image in Alibaba's registry, which starts while it is pulled."),
        source=f"{BOTH}: image acceleration",
    ),
    Field(
        "registry-registry",
        E,
        "/registry_auth/registry",
        Kind.TEXT,
        _("Registry"),
        help=_("Empty: the registry of the image."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-username",
        E,
        "/registry_auth/username",
        Kind.TEXT,
        _("Registry user name"),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-secret",
        E,
        "/registry_auth/password",
        Kind.CHOICE,
        _("Registry password"),
        Text(),
        help=_("One of your saved secrets. The file only names it."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-password",
        E,
        "",
        Kind.SECRET,
        _("New registry password"),
        Text(strip=False),
        help=_("It is saved among your secrets, and only its name is written into the file."),
        source=f"{BOTH}: private image",
    ),
    Field(
        "registry-file",
        E,
        "/registry_auth/file_uri",
        Kind.TEXT,
        _("Authentication file"),
        help=_("A file that the engine can read, with the registry's address, user and password."),
        source=f"{SEED_SCM}: authFile",
    ),
    Field(
        "roles-*-command",
        E,
        "/roles/*/command",
        Kind.COMMAND,
        _("Start command"),
        Text(required=True, strip=False),
        help=_(
            "A shell command, as in python train.py. What the console puts into the environment is there "
            "as $NAME; type $ to see the names. Results written where a dataset is mounted stay."
        ),
        source=f"{BOTH}: start command",
        short=True,
    ),
    Field(
        "libraries",
        E,
        "/requirements/packages",
        Kind.LONG,
        _("Third-party libraries"),
        Lines(),
        help=_("Python packages that are installed before the command, one a line."),
        source=f"{SEED_ZH}: third-party libraries, list",
        placeholder="transformers==4.44.0",
    ),
    Field(
        "libraries-folder",
        E,
        "/requirements/directory",
        Kind.TEXT,
        _("Folder of requirements.txt"),
        help=_("Instead of a list: the folder inside the job where a requirements.txt is."),
        source=f"{SEED_ZH}: third-party libraries, directory",
        placeholder="/root/code",
    ),
    Field(
        "modules",
        E,
        "/software/modules",
        Kind.LONG,
        _("Environment modules"),
        Lines(),
        help=_("Loaded with module load before the command, one a line, where the cluster has them."),
        source="JobSpec",
        placeholder="cuda/12.4",
    ),
    Field(
        "conda",
        E,
        "/software/conda",
        Kind.TEXT,
        _("conda environment"),
        help=_("The environment's folder where the job runs. A job has this or a venv."),
        source="JobSpec",
        placeholder="/opt/conda/envs/train",
    ),
    Field(
        "venv",
        E,
        "/software/venv",
        Kind.TEXT,
        _("Python venv"),
        help=_("The venv's folder where the job runs."),
        source="JobSpec",
        placeholder="/home/me/venv",
    ),
    Field(
        "code-id",
        E,
        "/code/id",
        Kind.TEXT,
        _("Registered code"),
        help=_("The id of a code source that the workspace keeps."),
        source=f"{SEED_ZH}: code, online",
    ),
    Field(
        "code-uri",
        E,
        "/code/uri",
        Kind.TEXT,
        _("Repository"),
        help=_("The address of a git repository that you may read. It is fetched before the command."),
        source=f"{SEED_ZH}: code, online",
        placeholder="https://git.example.com/team/code.git",
    ),
    Field(
        "code-branch",
        E,
        "/code/branch",
        Kind.TEXT,
        _("Branch"),
        help=_("Empty: the repository's own."),
        source=f"{SEED_ZH}: code, online",
    ),
    Field(
        "code-commit",
        E,
        "/code/commit",
        Kind.TEXT,
        _("Commit"),
        help=_("Empty: the newest of the branch."),
        source=f"{SEED_ZH}: code, online",
    ),
    Field(
        "code-path",
        E,
        "/code/path",
        Kind.TEXT,
        _("Where the code appears"),
        help=_("The folder inside the job. Empty: /root/code."),
        source=f"{SEED_ZH}: code, mount path",
        placeholder="/root/code",
    ),
)


def _option(setting: Setting) -> Field:
    """An advanced setting of the framework, under the name that the pages have for it."""
    options: tuple[tuple[str, Words], ...] = (
        ("", _("As the target has it")),
        *((value, value) for value in setting.values),
    )
    choice = Choice({"": "", **{value: value for value in setting.values}})
    return Field(
        f"option-{setting.key}",
        R,
        "/framework_options",
        Kind.CHOICE if setting.values else Kind.TEXT,
        setting.key,
        choice if setting.values else Text(),
        help=_(setting.help),
        source=f"{SEED_JA}: advanced parameters",
        options=options if setting.values else (),
        within=Member(setting.key),
    )


_ARGUMENTS: Final = {
    "job-execution-mode": _("How the job runs"),
    "enable-job-restart": _("Start the job again"),
    "max-num-of-job-restart": _("Restarts at most"),
    "job-restart-timeout": _("Longest time of a restart (seconds)"),
    "enable-job-hang-detection": _("Find out when it hangs (Sync only)"),
    "job-hang-interval": _("It hangs after (seconds)"),
    "enable-c4d-hang-detection": _("C4D finds out when it hangs"),
    "enable-log-hang-detection": _("The log tells when it hangs"),
    "enable-local-detection": _("Look for faults on the node"),
    "enable-perftracker": _("Track performance"),
    "fault-tolerant-policy": _("Start again"),
    "sanity-check-timing": _("When it is done"),
    "sanity-check-timeout-ops": _("When it takes too long"),
}
_WORDS: Final = {
    "Sync": _("Synchronous"),
    "Async": _("Asynchronous"),
    "True": _("Yes"),
    "False": _("No"),
    "OnFailure": _("After every failure"),
    "ExitCodeAndErrorMsg": _("By exit code and error message"),
}


def _argument(prefix: str, path: str, each: arguments.Argument) -> Field:
    """An argument as a field of its own."""
    options: tuple[tuple[str, Words], ...] = (
        ("", _("As the target has it")),
        *((value, _WORDS[value]) for value in each.options),
    )
    measure: Measure = Text(fits=r"[0-9]{1,9}", wrong="no_number") if each.number else Text()
    if each.options:
        measure = Choice({"": "", **{value: value for value in each.options}})
    return Field(
        f"{prefix}-{each.name}",
        F,
        path,
        Kind.CHOICE if each.options else Kind.NUMBER if each.number else Kind.TEXT,
        _ARGUMENTS[each.name],
        measure,
        source="AIMaster" if prefix == "fault" else "SanityCheck",
        options=options if each.options else (),
        placeholder=each.usual,
        within=Argument(each.name),
    )


RESOURCES: Final = (
    Field(
        "quota",
        R,
        "/quota",
        Kind.TEXT,
        _("Resource quota"),
        help=_("As the file names it. Empty: public resources, or the quota that was chosen above."),
        source=f"{BOTH}: resource quota",
    ),
    Field(
        "priority",
        R,
        "/priority",
        Kind.NUMBER,
        _("Priority"),
        Number(least=1, most=9, optional=True),
        help=_("From 1 to 9 among the jobs of one quota; 1 is the lowest."),
        source=f"{BOTH}: priority",
    ),
    Field(
        "framework",
        R,
        "/framework",
        Kind.CHOICE,
        _("Framework"),
        _options(Framework),
        help=_("Which roles the job has, and what is told to each so that they find each other."),
        source=f"{BOTH}: framework",
        options=(
            ("", _("None: plain processes")),
            ("tensorflow", "TensorFlow"),
            ("pytorch", "PyTorch"),
            ("elasticbatch", "ElasticBatch"),
            ("xgboost", "XGBoost"),
            ("oneflow", "OneFlow"),
            ("mpi", "MPIJob"),
            ("slurm", "Slurm"),
            ("ray", "Ray"),
            ("datajuicer", "DataJuicer"),
        ),
    ),
    Field(
        "roles-*-name",
        R,
        "/roles/*/name",
        Kind.TEXT,
        _("Role"),
        Text(required=True, longest=255),
        help=_("Worker, PS, Chief, Evaluator, GraphLearn, Master or Head, as the framework has it."),
        source=f"{BOTH}: job resources",
    ),
    Field(
        "roles-*-replicas",
        R,
        "/roles/*/replicas",
        Kind.NUMBER,
        _("Number of nodes"),
        Number(least=1),
        source=f"{BOTH}: number of nodes",
        short=True,
    ),
    Field(
        "roles-*-spec",
        R,
        "/roles/*/resources/instance_type",
        Kind.TEXT,
        _("Resource specification"),
        help=_("A ready-made size instead of amounts, where the target has them, as ecs.g6.large."),
        source=f"{BOTH}: resource specification",
    ),
    Field(
        "roles-*-gpus",
        R,
        "/roles/*/resources/gpus",
        Kind.NUMBER,
        _("GPU"),
        Number(),
        unit=GPUS,
        source=f"{BOTH}: GPU (cards)",
        short=True,
    ),
    Field(
        "roles-*-gpu-type",
        R,
        "/roles/*/resources/gpu_type",
        Kind.TEXT,
        _("GPU type"),
        help=_("Empty: any."),
        source=f"{SEED_SCM}: GPU type",
        short=True,
    ),
    Field(
        "roles-*-cpu",
        R,
        "/roles/*/resources/cpu_milli",
        Kind.NUMBER,
        _("CPU"),
        Number(CPU, least=1),
        unit=CORES,
        source=f"{BOTH}: CPU (cores)",
        short=True,
    ),
    Field(
        "roles-*-memory",
        R,
        "/roles/*/resources/memory_mib",
        Kind.NUMBER,
        _("Memory"),
        Number(GIB, least=1),
        unit="GiB",
        source=f"{BOTH}: memory (GiB)",
        short=True,
    ),
    Field(
        "roles-*-shm",
        R,
        "/roles/*/resources/shm_mib",
        Kind.NUMBER,
        _("Shared memory"),
        Number(GIB),
        unit="GiB",
        source=f"{BOTH}: shared memory (GiB)",
    ),
    Field(
        "roles-*-disk",
        R,
        "/roles/*/resources/disk_mib",
        Kind.NUMBER,
        _("Disk"),
        Number(GIB, none=0, optional=True),
        unit="GiB",
        source=f"{SEED_SCM}: storage",
    ),
    Field(
        "roles-*-rdma",
        R,
        "/roles/*/resources/rdma",
        Kind.FLAG,
        _("RDMA network"),
        Flag(),
        help=_("A custom image has to bring the RDMA libraries itself."),
        source=f"{BOTH}: Lingjun, RDMA",
    ),
    Field(
        "roles-*-min-failed",
        R,
        "/roles/*/completion/min_failed",
        Kind.NUMBER,
        _("The job fails after so many failed"),
        Number(least=1, optional=True),
        help=_("Empty: the job does not fail because of this role."),
        source=f"{SEED_SCM}: minFailedTaskCount",
    ),
    Field(
        "roles-*-min-succeeded",
        R,
        "/roles/*/completion/min_succeeded",
        Kind.NUMBER,
        _("The job succeeds after so many succeeded"),
        Number(least=1, optional=True),
        help=_("Empty: when all have ended."),
        source=f"{SEED_SCM}: minSucceededTaskCount",
    ),
    Field(
        "roles-*-bid-discount",
        R,
        "/roles/*/bid/discount_percent",
        Kind.NUMBER,
        _("Bid by discount"),
        Number(least=10, most=90, optional=True),
        unit="%",
        help=_("At most so much of the market price, from 10 % to 90 %, for preemptible resources."),
        source=f"{BOTH}: bid price",
    ),
    Field(
        "roles-*-bid-price",
        R,
        "/roles/*/bid/price_micro",
        Kind.NUMBER,
        _("Bid by price"),
        Number(MONEY, least=1, optional=True),
        unit=_("an hour"),
        help=_("At most this price an hour, for preemptible resources."),
        source=f"{SEED_JA}: bid price",
    ),
    Field(
        "roles-*-nodes-only",
        R,
        "/roles/*/nodes/only",
        Kind.LONG,
        _("Only on these nodes"),
        Lines(loosely=True),
        help=_("Names of nodes, one a line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-never",
        R,
        "/roles/*/nodes/never",
        Kind.LONG,
        _("Never on these nodes"),
        Lines(loosely=True),
        help=_("Names of nodes, one a line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-labels",
        R,
        "/roles/*/nodes/labels",
        Kind.LONG,
        _("Only on nodes with these labels"),
        Pairs(),
        help=_("A label and its value, label=value, one a line."),
        source="JobSpec",
    ),
    *(_option(setting) for setting in SETTINGS),
    Field(
        "options",
        R,
        "/framework_options",
        Kind.LONG,
        _("All advanced framework settings"),
        Pairs(),
        help=_("The same and any others as text: key=value, one a line or parted by commas, or JSON."),
        source=f"{BOTH}: advanced framework settings",
        placeholder="createSvcForAllWorkers=true,customPortNumPerWorker=100",
    ),
    Field(
        "idle",
        R,
        "/idle",
        Kind.CHOICE,
        _("Idle resources"),
        _options(Idle),
        help=_("Runs on what other quotas leave idle; it is ended when they want it back."),
        source=f"{BOTH}: idle resources",
        options=(
            ("", _("As the quota says")),
            ("forbid", _("Never")),
            ("accept", _("Also on idle resources")),
            ("force", _("Only on idle resources")),
        ),
    ),
    Field(
        "cpu-affinity",
        R,
        "/cpu_affinity",
        Kind.FLAG,
        _("CPU affinity"),
        Flag(),
        help=_("Binds processes to cores: fewer cache misses and switches, for what is sensitive to them."),
        source=f"{BOTH}: CPU affinity",
    ),
    Field(
        "time-limit",
        R,
        "/time_limit_s",
        Kind.NUMBER,
        _("Longest running time"),
        Number(HOUR, least=1, optional=True),
        unit=HOURS,
        help=_("After that the job is ended. Empty: no limit; the PAI page begins with 30 hours."),
        source=f"{SEED_ZH}: longest running time",
    ),
    Field(
        "end-signal",
        R,
        "/end_signal/signal",
        Kind.CHOICE,
        _("Signal before the end"),
        Choice({"": "", **{each: each for each in ("USR1", "USR2", "INT", "HUP", "TERM")}}),
        help=_("A warning to the job's processes, so that they can save what they have."),
        source="JobSpec",
        options=(("", _("None")), *((each, f"SIG{each}") for each in ("USR1", "USR2", "INT", "HUP", "TERM"))),
    ),
    Field(
        "end-signal-before",
        R,
        "/end_signal/seconds_before",
        Kind.NUMBER,
        _("How long before the end"),
        Number(optional=True, none=300),
        unit=_("seconds"),
        help=_("Empty: 300."),
        source="JobSpec",
    ),
    Field(
        "grace",
        R,
        "/grace_s",
        Kind.NUMBER,
        _("Time to end by itself"),
        Number(most=3600),
        unit=_("seconds"),
        help=_("Between the request to end and the end by force."),
        source="CreateJob: TerminationGracePeriodSeconds",
    ),
    Field(
        "keep-for",
        R,
        "/reserve_after/seconds",
        Kind.NUMBER,
        _("Retention"),
        Number(MINUTE, least=1, optional=True),
        unit=_("minutes"),
        help=_("A kept job goes on holding its resources after its end; then it is deleted for good."),
        source=f"{SEED_ZH}: retention",
    ),
    Field(
        "keep-when",
        R,
        "/reserve_after/when",
        Kind.CHOICE,
        _("Keep it when it"),
        Choice({each: each for each in ("always", "failed", "succeeded")}),
        source=f"{SEED_ZH}: retention",
        options=(
            ("always", _("has ended, however")),
            ("failed", _("has failed")),
            ("succeeded", _("has succeeded")),
        ),
    ),
    Field(
        "keep-failed",
        R,
        "/keep_failed_s",
        Kind.NUMBER,
        _("Keep what a failed task left"),
        Number(MINUTE, none=0, optional=True),
        unit=_("minutes"),
        help=_("Its folder and container stay for so long, to look into."),
        source=f"{SEED_SCM}: jobEnvs.isDebug",
    ),
    Field(
        "hold",
        R,
        "/hold",
        Kind.FLAG,
        _("Submit on hold"),
        Flag(),
        help=_("The job waits until you release it."),
        source="JobSpec",
    ),
    Field(
        "not-before",
        R,
        "/not_before",
        Kind.TEXT,
        _("Not before"),
        Text(fits=r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?", wrong="no_time"),
        help=_("A date and a time, as 2027-01-31T22:00:00+08:00."),
        source="JobSpec",
    ),
    Field(
        "vpc",
        R,
        "/network/vpc",
        Kind.TEXT,
        _("VPC"),
        help=_(
            "Without one, the job reaches the internet through a shared gateway, which may be slow. "
            "A CPFS dataset needs the VPC that its file system is in."
        ),
        source=f"{BOTH}: VPC",
    ),
    Field("switch", R, "/network/switch", Kind.TEXT, _("vSwitch"), source=f"{BOTH}: VPC"),
    Field(
        "security-group", R, "/network/security_group", Kind.TEXT, _("Security group"), source=f"{BOTH}: VPC"
    ),
    Field(
        "cidrs",
        R,
        "/network/cidrs",
        Kind.LONG,
        _("Extended network segments"),
        Lines(loosely=True),
        help=_("CIDR blocks, one a line."),
        source="CreateJob: UserVpc.ExtendedCIDRs",
    ),
    Field(
        "gateway",
        R,
        "/network/gateway",
        Kind.CHOICE,
        _("Internet access gateway"),
        Choice({"": "", "eth0": "eth0", "eth1": "eth1"}),
        help=_(
            "The public gateway is shared and slow when many use it; a dedicated one has its own bandwidth."
        ),
        source=f"{BOTH}: internet access gateway",
        options=(
            ("", _("As the target has it")),
            ("eth0", _("Public gateway")),
            ("eth1", _("Dedicated gateway")),
        ),
    ),
    Field(
        "retries",
        R,
        "/retry/limit",
        Kind.NUMBER,
        _("Automatic retries"),
        Number(optional=True),
        help=_("Empty: again and again."),
        source=f"{SEED_SCM}: retryCount",
    ),
)

FAULTS: Final = (
    Field(
        "fault-tolerance",
        F,
        "/fault_tolerance/enabled",
        Kind.FLAG,
        _("Automatic fault tolerance"),
        Flag(),
        help=_(
            "Watches the job for errors of the algorithm and works around them. Its own instance takes "
            "1 CPU core and 1 GiB of memory of the quota, or an ecs.c6.large of public resources."
        ),
        source=f"{BOTH}: automatic fault tolerance",
    ),
    *(_argument("fault", "/fault_tolerance/arguments", each) for each in arguments.AIMASTER),
    Field(
        "fault-arguments",
        F,
        "/fault_tolerance/arguments",
        Kind.TEXT,
        _("All arguments of fault tolerance"),
        help=_("The same and any others as they stand in the file."),
        source=f"{BOTH}: automatic fault tolerance",
        placeholder="--enable-job-restart=True --max-num-of-job-restart=3",
    ),
    Field(
        "sanity-check",
        F,
        "/sanity_check/enabled",
        Kind.FLAG,
        _("Sanity check"),
        Flag(),
        help=_(
            "Examines the nodes before training and sets faulty ones aside. Only for PyTorch jobs with GPUs "
            "on a Lingjun quota."
        ),
        source=f"{BOTH}: sanity check",
    ),
    *(_argument("sanity", "/sanity_check/arguments", each) for each in arguments.SANITY_CHECK),
    Field(
        "sanity-arguments",
        F,
        "/sanity_check/arguments",
        Kind.TEXT,
        _("All arguments of the sanity check"),
        source=f"{BOTH}: sanity check",
    ),
    Field(
        "tensorboard",
        F,
        "/tensorboard/enabled",
        Kind.FLAG,
        "TensorBoard",
        Flag(),
        help=_("A TensorBoard runs beside the job."),
        source="JobSpec",
    ),
    Field(
        "tensorboard-path",
        F,
        "/tensorboard/log_path",
        Kind.TEXT,
        _("Folder of the TensorBoard"),
        source="JobSpec",
        placeholder="/root/logs",
    ),
)

ROLES: Final = (
    Field(
        "instance-role",
        P,
        "/instance_role",
        Kind.TEXT,
        _("Instance RAM role"),
        help=_(
            "Empty: no role. “default”: PAI's own, which reaches MaxCompute as you do and the workspace's "
            "default OSS bucket. Or the ARN of a custom role."
        ),
        source=f"{BOTH}: instance RAM role",
        placeholder="acs:ram::123456:role/training",
    ),
)


def _cell(key: str, kind: Kind, label: Words, measure: Measure = WORDS, **more: Any) -> Field:
    return Field(key, E, "", kind, label, measure, **more)


WAS: Final = _cell("was", Kind.HIDDEN, "")
"""Which element of the file's list the row was, so that it keeps what the form does not show."""

TAGS: Final = Rows(
    "tags",
    B,
    "/tags",
    _("Tags"),
    (_cell("name", Kind.TEXT, _("Name")), _cell("value", Kind.TEXT, _("Value"))),
    source=f"{BOTH}: tags",
)

ENV: Final = Rows(
    "env",
    E,
    "/env",
    _("Environment variables"),
    (
        _cell("name", Kind.TEXT, _("Name")),
        _cell("value", Kind.TEXT, _("Value"), Text(strip=False)),
        _cell("secret", Kind.CHOICE, _("or one of my secrets")),
    ),
    help=_("Settings for the command, as names and values. PAI-DLC takes up to 20."),
    source=f"{SEED_ZH}: environment variables",
)

MOUNTS: Final = Rows(
    "mounts",
    E,
    "/mounts",
    _("Direct mounts"),
    (
        WAS,
        _cell(
            "uri",
            Kind.TEXT,
            _("What is mounted"),
            placeholder="oss://bucket.oss-cn-hangzhou.aliyuncs.com/data/",
        ),
        _cell("path", Kind.TEXT, _("Mount path"), placeholder="/mnt/data"),
        _cell(
            "purpose",
            Kind.CHOICE,
            _("What it is for"),
            _options(MountPurpose, none=False),
            options=(("data", _("Data")), ("output", _("Output")), ("code", _("Code"))),
        ),
        _cell("read-only", Kind.FLAG, _("Read-only"), Flag()),
        _cell("options", Kind.TEXT, _("Advanced settings"), Pairs(), placeholder='{"mountType":"ossfs"}'),
    ),
    help=_(
        "OSS as oss://bucket.endpoint/folder/, general NAS as nas://id.region/folder/, extreme NAS as "
        "nas://extreme-id.region/folder/, CPFS as cpfs://id.region/folder/, BMCPFS as bmcpfs://id/folder/, "
        "PFS as pfs://id/folder/, or a folder of the host, as /data/set, where the cluster lends it."
    ),
    source=f"{BOTH}: direct mounts",
)

DATASETS: Final = Rows(
    "datasets",
    E,
    "/mounts",
    _("Datasets"),
    (
        WAS,
        _cell("id", Kind.TEXT, _("Dataset")),
        _cell("path", Kind.TEXT, _("Mount path"), placeholder="/mnt/data"),
        _cell("read-only", Kind.FLAG, _("Read-only"), Flag()),
        _cell("options", Kind.TEXT, _("Advanced settings"), Pairs()),
    ),
    help=_("By the id under which the workspace keeps them. The command finds each at its mount path."),
    source=f"{BOTH}: datasets",
)

PORTS: Final = Rows(
    "roles-*-ports",
    R,
    "/roles/*/ports",
    _("Ports"),
    (
        _cell("label", Kind.TEXT, _("Label"), placeholder="tensorboard"),
        _cell("begin", Kind.NUMBER, _("First port"), Number(most=65535, none=0, optional=True)),
        _cell("count", Kind.NUMBER, _("How many"), Number(least=1, none=1, optional=True)),
    ),
    help=_(
        "Each becomes an address that only you and the workspace's admins reach. "
        "Without a first port, a free one is chosen."
    ),
    source=f"{SEED_SCM}: ports",
    short=True,
)

AFTER: Final = Rows(
    "after",
    R,
    "/after",
    _("Start after other jobs"),
    (
        _cell("job", Kind.TEXT, _("Job"), placeholder="9f2k4m7q1x3z"),
        _cell(
            "when",
            Kind.CHOICE,
            _("once it has"),
            _options(When, none=False),
            options=(("succeeded", _("succeeded")), ("ended", _("ended, however")), ("failed", _("failed"))),
        ),
    ),
    help=_(
        "The id of a job, or the name of one of your own. The job waits until all of them have come so far."
    ),
    source="JobSpec",
)

FIELDS: Final = MappingProxyType(
    {each.key: each for each in (*BASIC, *ENVIRONMENT, *RESOURCES, *FAULTS, *ROLES)}
)
"""Every field that stands by itself, by its key."""

ROWS: Final = MappingProxyType({each.key: each for each in (TAGS, ENV, DATASETS, MOUNTS, PORTS, AFTER)})
"""Every list of rows, by its key."""

MOST_ROWS: Final = 50
MOST_ROLES: Final = 16
"""A file with more of either is shown up to here, and the rest is in the file alone."""


def of_section(section: Section) -> tuple[Field, ...]:
    """The fields of one section, in the order of the page."""
    return tuple(each for each in FIELDS.values() if each.section is section)
