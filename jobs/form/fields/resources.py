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
from jobs.spec import Framework, Idle, RestartCondition, When

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
        help=_("Name in the file. Empty: public resources, or the quota selected above."),
        source=f"{BOTH}: resource quota",
    ),
    Field(
        "priority",
        "/priority",
        FieldKind.NUMBER,
        _("Priority"),
        Number(least=1, most=9, optional=True),
        help=_("1 (lowest) to 9, among jobs in the same quota."),
        source=f"{BOTH}: priority",
    ),
    Field(
        "framework",
        "/framework",
        FieldKind.CHOICE,
        _("Framework"),
        choice_of(Framework),
        help=_(
            "Sets the job's roles and how they find each other. Only the launcher of an MPIJob runs the "
            "command."
        ),
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
        help=_("Worker, PS, Chief, Evaluator, GraphLearn, Master or Head, depending on the framework."),
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
        help=_(
            "A predefined size such as ecs.g6.large instead of individual amounts, if the target supports it."
        ),
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
        help=_("Include the unit, e.g. 512 MiB or 2 GiB."),
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
        help=_("Custom images must include the RDMA libraries."),
        source=f"{BOTH}: Lingjun, RDMA",
    ),
    Field(
        "roles-*-min-failed",
        "/roles/*/completion/min_failed",
        FieldKind.NUMBER,
        _("Fail after N failed replicas"),
        Number(least=1, optional=True),
        help=_("Empty: this role never fails the job."),
        source=f"{SCM_MANUAL}: minFailedTaskCount",
    ),
    Field(
        "roles-*-min-succeeded",
        "/roles/*/completion/min_succeeded",
        FieldKind.NUMBER,
        _("Succeed after N succeeded replicas"),
        Number(least=1, optional=True),
        help=_("Empty: when all replicas finish."),
        source=f"{SCM_MANUAL}: minSucceededTaskCount",
    ),
    Field(
        "roles-*-restart-condition",
        "/roles/*/restart/condition",
        FieldKind.CHOICE,
        _("Retry after"),
        choice_of(RestartCondition, none=False),
        options=(
            ("failure", _("any failure")),
            ("exit_code", _("signals and exit codes from 128")),
            ("never", _("no failure of this role")),
        ),
        help=_("Failures of this role that the job's automatic retries are for."),
        source="Kubeflow: restartPolicy",
    ),
    Field(
        "roles-*-restart-limit",
        "/roles/*/restart/limit",
        FieldKind.NUMBER,
        _("Restarts of one replica"),
        Number(optional=True),
        help=_("How often torchrun starts the processes of a replica again, in the same attempt."),
        source="Kubeflow: maxRestarts; OpenPAI: taskRetryCount",
    ),
    Field(
        "roles-*-bid-discount",
        "/roles/*/bid/discount_percent",
        FieldKind.NUMBER,
        _("Bid by discount"),
        Number(least=10, most=90, optional=True),
        unit="%",
        help=_("Maximum share of the market price, 10 % to 90 %, for preemptible resources."),
        source=f"{BOTH}: bid price",
    ),
    Field(
        "roles-*-bid-price",
        "/roles/*/bid/price_micro",
        FieldKind.NUMBER,
        _("Bid by price"),
        Number(MONEY, least=1, optional=True),
        unit=_("per hour"),
        help=_("Maximum price per hour for preemptible resources."),
        source=f"{PAGE_JA}: bid price",
    ),
    Field(
        "roles-*-nodes-only",
        "/roles/*/nodes/only",
        FieldKind.LONG,
        _("Allowed nodes"),
        Lines(loosely=True),
        help=_("Node names, one per line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-never",
        "/roles/*/nodes/never",
        FieldKind.LONG,
        _("Excluded nodes"),
        Lines(loosely=True),
        help=_("Node names, one per line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-labels",
        "/roles/*/nodes/labels",
        FieldKind.LONG,
        _("Required node labels"),
        Pairs(),
        help=_("label=value, one per line."),
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
        cell("count", FieldKind.NUMBER, _("Count"), Number(least=1, none=1, optional=True)),
    ),
    help=_(
        "Each port becomes an address that only you and the workspace admins can reach. "
        "Without a first port, a free one is selected automatically."
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
        help=_("Runs on idle resources of other quotas; the job is stopped when their owners need them."),
        source=f"{BOTH}: idle resources",
        options=(
            ("", _("Quota default")),
            ("forbid", _("Never")),
            ("accept", _("Allow borrowing idle resources")),
            ("force", _("Idle resources only")),
        ),
    ),
    Field(
        "cpu-affinity",
        "/cpu_affinity",
        FieldKind.FLAG,
        _("CPU affinity"),
        Flag(),
        help=_(
            "Binds processes to cores. Reduces cache misses and context switches for sensitive workloads."
        ),
        source=f"{BOTH}: CPU affinity",
    ),
    Field(
        "time-limit",
        "/time_limit_s",
        FieldKind.NUMBER,
        _("Time limit"),
        Number(HOUR, least=1, optional=True),
        unit=HOURS,
        help=_("The job is stopped after this time. Empty: no limit; the PAI console defaults to 30 hours."),
        source=f"{PAGE_ZH}: longest running time",
    ),
    Field(
        "end-signal",
        "/end_signal/signal",
        FieldKind.CHOICE,
        _("Warning signal"),
        Choice({"": "", **{each: each for each in ("USR1", "USR2", "INT", "HUP", "TERM")}}),
        help=_("Sent to the job's processes so that they can save their state."),
        source="JobSpec",
        options=(("", _("None")), *((each, f"SIG{each}") for each in ("USR1", "USR2", "INT", "HUP", "TERM"))),
    ),
    Field(
        "end-signal-before",
        "/end_signal/seconds_before",
        FieldKind.NUMBER,
        _("Time before the end"),
        Number(optional=True, none=300),
        unit=_("seconds"),
        help=_("Empty: 300."),
        source="JobSpec",
    ),
    Field(
        "grace",
        "/grace_s",
        FieldKind.NUMBER,
        _("Grace period"),
        Number(most=3600),
        unit=_("seconds"),
        help=_("Time between the stop request and forced termination."),
        source="CreateJob: TerminationGracePeriodSeconds",
    ),
    Field(
        "keep-for",
        "/reserve_after/seconds",
        FieldKind.NUMBER,
        _("Retention"),
        Number(MINUTE, least=1, optional=True),
        unit=_("minutes"),
        help=_("Files of the ended job are retained this long, then the job is deleted permanently."),
        source=f"{PAGE_ZH}: retention",
    ),
    Field(
        "keep-when",
        "/reserve_after/when",
        FieldKind.CHOICE,
        _("Retain when"),
        Choice({each: each for each in ("always", "failed", "succeeded")}),
        source=f"{PAGE_ZH}: retention",
        options=(
            ("always", _("the job ends (any result)")),
            ("failed", _("the job fails")),
            ("succeeded", _("the job succeeds")),
        ),
    ),
    Field(
        "keep-failed",
        "/keep_failed_s",
        FieldKind.NUMBER,
        _("Retain failed replicas"),
        Number(MINUTE, none=0, optional=True),
        unit=_("minutes"),
        help=_("Their folders and containers are retained this long for debugging."),
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
        _("Earliest start"),
        PlainText(
            fits=r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?", wrong="no_time"
        ),
        help=_("Date and time, e.g. 2027-01-31T22:00:00+08:00."),
        source="JobSpec",
    ),
    Field(
        "retries",
        "/retry/limit",
        FieldKind.NUMBER,
        _("Automatic retries"),
        Number(optional=True),
        help=_("Empty = unlimited"),
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
            _("Condition"),
            choice_of(When, none=False),
            options=(
                ("succeeded", _("succeeded")),
                ("ended", _("ended (any result)")),
                ("failed", _("failed")),
            ),
        ),
    ),
    help=_(
        "ID of a job, or name of one of your own jobs. The job waits until every job listed "
        "meets its condition."
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
            "Without a VPC, the job reaches the internet through a shared gateway, which may be "
            "slow. A CPFS dataset needs the VPC of its file system."
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
        help=_("CIDR blocks, one per line."),
        source="CreateJob: UserVpc.ExtendedCIDRs",
    ),
    Field(
        "gateway",
        "/network/gateway",
        FieldKind.CHOICE,
        _("Internet access gateway"),
        Choice({"": "", "eth0": "eth0", "eth1": "eth1"}),
        help=_(
            "The public gateway is shared and slows down under heavy use; a dedicated gateway has "
            "its own bandwidth."
        ),
        source=f"{BOTH}: internet access gateway",
        options=(
            ("", _("Default")),
            ("eth0", _("Public gateway")),
            ("eth1", _("Dedicated gateway")),
        ),
    ),
)


def _option(setting: Setting) -> Field:
    """An advanced setting of the framework, under the name that the pages have for it."""
    options: tuple[tuple[str, Words], ...] = (
        ("", _("Default")),
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
        help=_("These and other settings as text: key=value, one per line or comma-separated, or JSON."),
        source=f"{BOTH}: advanced framework settings",
        placeholder="createSvcForAllWorkers=true,customPortNumPerWorker=100",
    ),
)
