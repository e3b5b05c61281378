"""The quota, the nodes, the times, the network and the framework's advanced settings."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import (
    BOTH,
    PAGE_JA,
    PAGE_ZH,
    SCM_MANUAL,
    Field,
    FieldKind,
    Rows,
    Words,
    cell,
    choice_of,
)
from jobs.form.measures import Choice, Flag, Lines, MemorySize, Number, Pairs, PlainText
from jobs.form.rules.advanced import SETTINGS, Setting
from jobs.form.subfields import MapMember
from jobs.spec import Framework, Idle, When

CPU: Final = 1000
MONEY: Final = 1_000_000
GPUS: Final = _("GPUs")
CORES: Final = _("cores")

RESOURCES: Final = (
    Field(
        "quota",
        "/quota",
        FieldKind.TEXT,
        _("Resource quota"),
        help=_("As the file names it. Empty: public resources, or the quota that was chosen above."),
        source=f"{BOTH}: resource quota",
    ),
    Field(
        "priority",
        "/priority",
        FieldKind.NUMBER,
        _("Priority"),
        Number(least=1, most=9, optional=True),
        help=_("From 1 to 9 among the jobs of one quota; 1 is the lowest."),
        source=f"{BOTH}: priority",
    ),
    Field(
        "framework",
        "/framework",
        FieldKind.CHOICE,
        _("Framework"),
        choice_of(Framework),
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
        "/roles/*/name",
        FieldKind.TEXT,
        _("Role"),
        PlainText(required=True, longest=255),
        help=_("Worker, PS, Chief, Evaluator, GraphLearn, Master or Head, as the framework has it."),
        source=f"{BOTH}: job resources",
    ),
    Field(
        "roles-*-replicas",
        "/roles/*/replicas",
        FieldKind.NUMBER,
        _("Number of nodes"),
        Number(least=1),
        source=f"{BOTH}: number of nodes",
    ),
    Field(
        "roles-*-spec",
        "/roles/*/resources/instance_type",
        FieldKind.TEXT,
        _("Resource specification"),
        help=_("A ready-made size instead of amounts, where the target has them, as ecs.g6.large."),
        source=f"{BOTH}: resource specification",
    ),
    Field(
        "roles-*-gpus",
        "/roles/*/resources/gpus",
        FieldKind.NUMBER,
        _("GPU"),
        Number(),
        unit=GPUS,
        source=f"{BOTH}: GPU (cards)",
    ),
    Field(
        "roles-*-gpu-type",
        "/roles/*/resources/gpu_type",
        FieldKind.TEXT,
        _("GPU type"),
        help=_("Empty: any."),
        source=f"{SCM_MANUAL}: GPU type",
    ),
    Field(
        "roles-*-cpu",
        "/roles/*/resources/cpu_milli",
        FieldKind.NUMBER,
        _("CPU"),
        Number(CPU, least=1),
        unit=CORES,
        source=f"{BOTH}: CPU (cores)",
    ),
    Field(
        "roles-*-memory",
        "/roles/*/resources/memory_mib",
        FieldKind.NUMBER,
        _("Memory"),
        MemorySize(least=1),
        unit="GiB",
        source=f"{BOTH}: memory (GiB)",
    ),
    Field(
        "roles-*-shm",
        "/roles/*/resources/shm_mib",
        FieldKind.NUMBER,
        _("Shared memory"),
        MemorySize(named=True),
        help=_("With its unit, such as 512 MiB or 2 GiB."),
        source=f"{BOTH}: shared memory (GiB)",
    ),
    Field(
        "roles-*-disk",
        "/roles/*/resources/disk_mib",
        FieldKind.NUMBER,
        _("Disk"),
        MemorySize(none=0, optional=True),
        unit="GiB",
        source=f"{SCM_MANUAL}: storage",
    ),
    Field(
        "roles-*-rdma",
        "/roles/*/resources/rdma",
        FieldKind.FLAG,
        _("RDMA network"),
        Flag(),
        help=_("A custom image has to bring the RDMA libraries itself."),
        source=f"{BOTH}: Lingjun, RDMA",
    ),
    Field(
        "roles-*-min-failed",
        "/roles/*/completion/min_failed",
        FieldKind.NUMBER,
        _("The job fails after so many failed"),
        Number(least=1, optional=True),
        help=_("Empty: the job does not fail because of this role."),
        source=f"{SCM_MANUAL}: minFailedTaskCount",
    ),
    Field(
        "roles-*-min-succeeded",
        "/roles/*/completion/min_succeeded",
        FieldKind.NUMBER,
        _("The job succeeds after so many succeeded"),
        Number(least=1, optional=True),
        help=_("Empty: when all have ended."),
        source=f"{SCM_MANUAL}: minSucceededTaskCount",
    ),
    Field(
        "roles-*-bid-discount",
        "/roles/*/bid/discount_percent",
        FieldKind.NUMBER,
        _("Bid by discount"),
        Number(least=10, most=90, optional=True),
        unit="%",
        help=_("At most so much of the market price, from 10 % to 90 %, for preemptible resources."),
        source=f"{BOTH}: bid price",
    ),
    Field(
        "roles-*-bid-price",
        "/roles/*/bid/price_micro",
        FieldKind.NUMBER,
        _("Bid by price"),
        Number(MONEY, least=1, optional=True),
        unit=_("an hour"),
        help=_("At most this price an hour, for preemptible resources."),
        source=f"{PAGE_JA}: bid price",
    ),
    Field(
        "roles-*-nodes-only",
        "/roles/*/nodes/only",
        FieldKind.LONG,
        _("Only on these nodes"),
        Lines(loosely=True),
        help=_("Names of nodes, one a line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-never",
        "/roles/*/nodes/never",
        FieldKind.LONG,
        _("Never on these nodes"),
        Lines(loosely=True),
        help=_("Names of nodes, one a line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-labels",
        "/roles/*/nodes/labels",
        FieldKind.LONG,
        _("Only on nodes with these labels"),
        Pairs(),
        help=_("A label and its value, label=value, one a line."),
        source="JobSpec",
    ),
)

PORTS: Final = Rows(
    "roles-*-ports",
    "/roles/*/ports",
    _("Ports"),
    (
        cell("label", FieldKind.TEXT, _("Label"), placeholder="tensorboard"),
        cell("begin", FieldKind.NUMBER, _("First port"), Number(most=65535, none=0, optional=True)),
        cell("count", FieldKind.NUMBER, _("How many"), Number(least=1, none=1, optional=True)),
    ),
    help=_(
        "Each becomes an address that only you and the workspace's admins reach. "
        "Without a first port, a free one is chosen."
    ),
    source=f"{SCM_MANUAL}: ports",
)


MINUTE: Final = 60
HOUR: Final = 3600
HOURS: Final = _("hours")

RUNNING: Final = (
    Field(
        "idle",
        "/idle",
        FieldKind.CHOICE,
        _("Idle resources"),
        choice_of(Idle),
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
        "/cpu_affinity",
        FieldKind.FLAG,
        _("CPU affinity"),
        Flag(),
        help=_("Binds processes to cores: fewer cache misses and switches, for what is sensitive to them."),
        source=f"{BOTH}: CPU affinity",
    ),
    Field(
        "time-limit",
        "/time_limit_s",
        FieldKind.NUMBER,
        _("Longest running time"),
        Number(HOUR, least=1, optional=True),
        unit=HOURS,
        help=_("After that the job is ended. Empty: no limit; the PAI page begins with 30 hours."),
        source=f"{PAGE_ZH}: longest running time",
    ),
    Field(
        "end-signal",
        "/end_signal/signal",
        FieldKind.CHOICE,
        _("Signal before the end"),
        Choice({"": "", **{each: each for each in ("USR1", "USR2", "INT", "HUP", "TERM")}}),
        help=_("A warning to the job's processes, so that they can save what they have."),
        source="JobSpec",
        options=(("", _("None")), *((each, f"SIG{each}") for each in ("USR1", "USR2", "INT", "HUP", "TERM"))),
    ),
    Field(
        "end-signal-before",
        "/end_signal/seconds_before",
        FieldKind.NUMBER,
        _("How long before the end"),
        Number(optional=True, none=300),
        unit=_("seconds"),
        help=_("Empty: 300."),
        source="JobSpec",
    ),
    Field(
        "grace",
        "/grace_s",
        FieldKind.NUMBER,
        _("Time to end by itself"),
        Number(most=3600),
        unit=_("seconds"),
        help=_("Between the request to end and the end by force."),
        source="CreateJob: TerminationGracePeriodSeconds",
    ),
    Field(
        "keep-for",
        "/reserve_after/seconds",
        FieldKind.NUMBER,
        _("Retention"),
        Number(MINUTE, least=1, optional=True),
        unit=_("minutes"),
        help=_("A kept job goes on holding its resources after its end; then it is deleted for good."),
        source=f"{PAGE_ZH}: retention",
    ),
    Field(
        "keep-when",
        "/reserve_after/when",
        FieldKind.CHOICE,
        _("Keep it when it"),
        Choice({each: each for each in ("always", "failed", "succeeded")}),
        source=f"{PAGE_ZH}: retention",
        options=(
            ("always", _("has ended, however")),
            ("failed", _("has failed")),
            ("succeeded", _("has succeeded")),
        ),
    ),
    Field(
        "keep-failed",
        "/keep_failed_s",
        FieldKind.NUMBER,
        _("Keep what a failed task left"),
        Number(MINUTE, none=0, optional=True),
        unit=_("minutes"),
        help=_("Its folder and container stay for so long, to look into."),
        source=f"{SCM_MANUAL}: jobEnvs.isDebug",
    ),
    Field(
        "hold",
        "/hold",
        FieldKind.FLAG,
        _("Submit on hold"),
        Flag(),
        help=_("The job waits until you release it."),
        source="JobSpec",
    ),
    Field(
        "not-before",
        "/not_before",
        FieldKind.TEXT,
        _("Not before"),
        PlainText(
            fits=r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?", wrong="no_time"
        ),
        help=_("A date and a time, as 2027-01-31T22:00:00+08:00."),
        source="JobSpec",
    ),
    Field(
        "retries",
        "/retry/limit",
        FieldKind.NUMBER,
        _("Automatic retries"),
        Number(optional=True),
        help=_("Empty: again and again."),
        source=f"{SCM_MANUAL}: retryCount",
    ),
)

AFTER: Final = Rows(
    "after",
    "/after",
    _("Start after other jobs"),
    (
        cell("job", FieldKind.TEXT, _("Job"), placeholder="9f2k4m7q1x3z"),
        cell(
            "when",
            FieldKind.CHOICE,
            _("once it has"),
            choice_of(When, none=False),
            options=(("succeeded", _("succeeded")), ("ended", _("ended, however")), ("failed", _("failed"))),
        ),
    ),
    help=_(
        "The id of a job, or the name of one of your own. The job waits until all of them have come so far."
    ),
    source="JobSpec",
)


NETWORK: Final = (
    Field(
        "vpc",
        "/network/vpc",
        FieldKind.TEXT,
        _("VPC"),
        help=_(
            "Without one, the job reaches the internet through a shared gateway, which may be slow. "
            "A CPFS dataset needs the VPC that its file system is in."
        ),
        source=f"{BOTH}: VPC",
    ),
    Field("switch", "/network/switch", FieldKind.TEXT, _("vSwitch"), source=f"{BOTH}: VPC"),
    Field(
        "security-group",
        "/network/security_group",
        FieldKind.TEXT,
        _("Security group"),
        source=f"{BOTH}: VPC",
    ),
    Field(
        "cidrs",
        "/network/cidrs",
        FieldKind.LONG,
        _("Extended network segments"),
        Lines(loosely=True),
        help=_("CIDR blocks, one a line."),
        source="CreateJob: UserVpc.ExtendedCIDRs",
    ),
    Field(
        "gateway",
        "/network/gateway",
        FieldKind.CHOICE,
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
        "/framework_options",
        FieldKind.CHOICE if setting.values else FieldKind.TEXT,
        setting.key,
        choice if setting.values else PlainText(),
        help=_(setting.help),
        source=f"{PAGE_JA}: advanced parameters",
        options=options if setting.values else (),
        subfield=MapMember(setting.key),
    )


ADVANCED: Final = (
    *(_option(setting) for setting in SETTINGS),
    Field(
        "options",
        "/framework_options",
        FieldKind.LONG,
        _("All advanced framework settings"),
        Pairs(),
        help=_("The same and any others as text: key=value, one a line or parted by commas, or JSON."),
        source=f"{BOTH}: advanced framework settings",
        placeholder="createSvcForAllWorkers=true,customPortNumPerWorker=100",
    ),
)
