"""Out of which quota, on how many nodes of which size, and on which of them."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from jobs.form.fields.base import BOTH, SEED_JA, SEED_SCM, Field, Kind, Rows, cell, choice_of
from jobs.form.measures import Flag, Lines, Memory, Number, Pairs, Text
from jobs.spec import Framework

CPU: Final = 1000
MONEY: Final = 1_000_000
GPUS: Final = _("GPUs")
CORES: Final = _("cores")

RESOURCES: Final = (
    Field(
        "quota",
        "/quota",
        Kind.TEXT,
        _("Resource quota"),
        help=_("As the file names it. Empty: public resources, or the quota that was chosen above."),
        source=f"{BOTH}: resource quota",
    ),
    Field(
        "priority",
        "/priority",
        Kind.NUMBER,
        _("Priority"),
        Number(least=1, most=9, optional=True),
        help=_("From 1 to 9 among the jobs of one quota; 1 is the lowest."),
        source=f"{BOTH}: priority",
    ),
    Field(
        "framework",
        "/framework",
        Kind.CHOICE,
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
        Kind.TEXT,
        _("Role"),
        Text(required=True, longest=255),
        help=_("Worker, PS, Chief, Evaluator, GraphLearn, Master or Head, as the framework has it."),
        source=f"{BOTH}: job resources",
    ),
    Field(
        "roles-*-replicas",
        "/roles/*/replicas",
        Kind.NUMBER,
        _("Number of nodes"),
        Number(least=1),
        source=f"{BOTH}: number of nodes",
    ),
    Field(
        "roles-*-spec",
        "/roles/*/resources/instance_type",
        Kind.TEXT,
        _("Resource specification"),
        help=_("A ready-made size instead of amounts, where the target has them, as ecs.g6.large."),
        source=f"{BOTH}: resource specification",
    ),
    Field(
        "roles-*-gpus",
        "/roles/*/resources/gpus",
        Kind.NUMBER,
        _("GPU"),
        Number(),
        unit=GPUS,
        source=f"{BOTH}: GPU (cards)",
    ),
    Field(
        "roles-*-gpu-type",
        "/roles/*/resources/gpu_type",
        Kind.TEXT,
        _("GPU type"),
        help=_("Empty: any."),
        source=f"{SEED_SCM}: GPU type",
    ),
    Field(
        "roles-*-cpu",
        "/roles/*/resources/cpu_milli",
        Kind.NUMBER,
        _("CPU"),
        Number(CPU, least=1),
        unit=CORES,
        source=f"{BOTH}: CPU (cores)",
    ),
    Field(
        "roles-*-memory",
        "/roles/*/resources/memory_mib",
        Kind.NUMBER,
        _("Memory"),
        Memory(least=1),
        unit="GiB",
        source=f"{BOTH}: memory (GiB)",
    ),
    Field(
        "roles-*-shm",
        "/roles/*/resources/shm_mib",
        Kind.NUMBER,
        _("Shared memory"),
        Memory(named=True),
        help=_("With its unit, such as 512 MiB or 2 GiB."),
        source=f"{BOTH}: shared memory (GiB)",
    ),
    Field(
        "roles-*-disk",
        "/roles/*/resources/disk_mib",
        Kind.NUMBER,
        _("Disk"),
        Memory(none=0, optional=True),
        unit="GiB",
        source=f"{SEED_SCM}: storage",
    ),
    Field(
        "roles-*-rdma",
        "/roles/*/resources/rdma",
        Kind.FLAG,
        _("RDMA network"),
        Flag(),
        help=_("A custom image has to bring the RDMA libraries itself."),
        source=f"{BOTH}: Lingjun, RDMA",
    ),
    Field(
        "roles-*-min-failed",
        "/roles/*/completion/min_failed",
        Kind.NUMBER,
        _("The job fails after so many failed"),
        Number(least=1, optional=True),
        help=_("Empty: the job does not fail because of this role."),
        source=f"{SEED_SCM}: minFailedTaskCount",
    ),
    Field(
        "roles-*-min-succeeded",
        "/roles/*/completion/min_succeeded",
        Kind.NUMBER,
        _("The job succeeds after so many succeeded"),
        Number(least=1, optional=True),
        help=_("Empty: when all have ended."),
        source=f"{SEED_SCM}: minSucceededTaskCount",
    ),
    Field(
        "roles-*-bid-discount",
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
        "/roles/*/nodes/only",
        Kind.LONG,
        _("Only on these nodes"),
        Lines(loosely=True),
        help=_("Names of nodes, one a line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-never",
        "/roles/*/nodes/never",
        Kind.LONG,
        _("Never on these nodes"),
        Lines(loosely=True),
        help=_("Names of nodes, one a line."),
        source=f"{BOTH}: node-specific scheduling",
    ),
    Field(
        "roles-*-nodes-labels",
        "/roles/*/nodes/labels",
        Kind.LONG,
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
        cell("label", Kind.TEXT, _("Label"), placeholder="tensorboard"),
        cell("begin", Kind.NUMBER, _("First port"), Number(most=65535, none=0, optional=True)),
        cell("count", Kind.NUMBER, _("How many"), Number(least=1, none=1, optional=True)),
    ),
    help=_(
        "Each becomes an address that only you and the workspace's admins reach. "
        "Without a first port, a free one is chosen."
    ),
    source=f"{SEED_SCM}: ports",
)
