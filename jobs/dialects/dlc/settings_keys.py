"""Keys of DLC's `Settings`, and the advanced settings in them."""

from __future__ import annotations

from typing import Final

from jobs.dialects.dlc import role_keys
from jobs.dialects.dlc.limits import PAGE, SDK_17, SDK_NEW
from jobs.dialects.fields import (
    CONSOLE,
    Bag,
    Choice,
    Flag,
    Group,
    Integer,
    Limit,
    Text,
)
from jobs.spec import Idle

MOST_MINUTES: Final = Limit(10 * 366 * 24 * 60, CONSOLE)
"""Ten years: longer than any job or reservation means to last."""

TAGS: Final = Bag(key="Tags", source=PAGE, path="tags", help="Labels of the job.")
ADVANCED: Final = Bag(
    key="AdvancedSettings",
    source=PAGE,
    path="framework_options",
    help="Settings of the framework.",
    known=(
        Text(
            key="ReleaseResourcePolicy",
            source=PAGE,
            help="pod-exit: each node's resources are free as soon as it has ended.",
        ),
        Text(key="EnableNvidiaIBGDA", source=PAGE, help="Load the GPU driver with IBGDA: true or false."),
        Text(key="EnableNvidiaGDRCopy", source=PAGE, help="Install GDRCopy 2.4.4: true or false."),
        Text(key="EnablePaiNUMACoreBinding", source=PAGE, help="Bind to NUMA nodes: true or false."),
        Text(
            key="EnableResourcePreCheck",
            source=PAGE,
            help="Check at submission that the quota can hold all roles at all: true or false.",
        ),
        Text(
            key="createSvcForAllWorkers",
            source=PAGE,
            help="Workers reach each other by name: true or false.",
        ),
        Text(
            key="customPortList",
            source=PAGE,
            help="Ports of each worker, 10000;10001-10010, without 23456; or customPortNumPerWorker.",
        ),
        Text(
            key="customPortNumPerWorker",
            source=PAGE,
            help="How many ports each worker gets, at most 65536; they are in CUSTOM_PORTS.",
        ),
        Text(
            key="RayRuntimeEnv",
            source=PAGE,
            help="Ray's runtime environment; goes before Envs and libraries.",
        ),
        Text(key="RayRedisAddress", source=PAGE, help="Redis outside the cluster for Ray's GCS."),
        Text(key="RayRedisUsername", source=PAGE, help="User name for Redis."),
        Text(key="RayRedisPassword", source=PAGE, help="Password for Redis."),
        Text(key="RaySubmitterBackoffLimit", source=PAGE, help="How often Ray's submitter tries again."),
        Text(key="RayObjectStoreMemoryBytes", source=PAGE, help="Ray's object store, in bytes of a node."),
    ),
)


JOB_TYPE_OF_SETTING: Final = {
    **dict.fromkeys(("createSvcForAllWorkers", "customPortList", "customPortNumPerWorker"), "PyTorchJob"),
    **dict.fromkeys(
        (
            "RayRuntimeEnv",
            "RayRedisAddress",
            "RayRedisUsername",
            "RayRedisPassword",
            "RaySubmitterBackoffLimit",
            "RayObjectStoreMemoryBytes",
        ),
        "RayJob",
    ),
}
"""The job type for which an advanced setting means something; the others mean something for all."""

OVERSOLD_TYPE: Final = Choice(
    key="OversoldType",
    source=PAGE,
    path="idle",
    meanings={
        "ForbiddenQuotaOverSold": Idle.FORBID,
        "AcceptQuotaOverSold": Idle.ACCEPT,
        "ForceQuotaOverSold": Idle.FORCE,
    },
    help="Whether the job runs on what other quotas leave idle: never, also, or only.",
)
ENABLE_RDMA: Final = Flag(
    key="EnableRDMA", source=PAGE, path="roles[].resources.rdma", help="Give the nodes RDMA devices."
)
CPU_AFFINITY: Final = Flag(
    key="EnableCPUAffinity", source=PAGE, path="cpu_affinity", help="Bind processes to CPU cores."
)
AIMASTER: Final = Flag(
    key="EnableErrorMonitoringInAIMaster",
    source=PAGE,
    path="fault_tolerance.enabled",
    help="Automatic fault tolerance: an AIMaster runs beside the job (1 core, 1 GiB).",
)
AIMASTER_ARGS: Final = Text(
    key="ErrorMonitoringArgs",
    source=PAGE,
    path="fault_tolerance.arguments",
    blank=True,
    help="Arguments of the AIMaster: --job-execution-mode Sync --enable-job-restart True …",
)
SANITY_CHECK: Final = Flag(
    key="EnableSanityCheck",
    source=PAGE,
    path="sanity_check.enabled",
    help="Check the nodes before the start; PyTorch with GPUs on a Lingjun quota only.",
)
SANITY_CHECK_ARGS: Final = Text(
    key="SanityCheckArgs",
    source=PAGE,
    path="sanity_check.arguments",
    blank=True,
    help="Arguments of the check: --sanity-check-timing=AfterJobFaultTolerant …",
)
RESERVED_MINUTES: Final = Integer(
    key="JobReservedMinutes",
    source=PAGE,
    path="reserve_after.seconds",
    unit="minutes",
    scale=True,
    default=0,
    least=Limit(0, CONSOLE),
    most=MOST_MINUTES,
    help="How long the ended job keeps its resources, in minutes.",
)
RESERVED_POLICY: Final = Choice(
    key="JobReservedPolicy",
    source=PAGE,
    path="reserve_after.when",
    meanings={"Always": "always", "OnFailure": "failed", "OnSucceed": "succeeded"},
    default="Always",
    help="After which end the resources are kept.",
)
GRACE: Final = Integer(
    key="TerminationGracePeriodSeconds",
    source=SDK_NEW,
    path="grace_s",
    unit="seconds",
    scale=True,
    least=Limit(0, CONSOLE),
    most=Limit(3600, CONSOLE),
    help="Seconds between the signal to end and the end.",
)

SETTINGS: Final = Group(
    key="Settings",
    source=PAGE,
    path="*",
    keys=(
        role_keys.stored_text("BusinessUserId", "The user in the caller's own system.", PAGE),
        role_keys.stored_text("Caller", "The system that made the job.", PAGE),
        role_keys.stored_text("PipelineId", "The pipeline that made the job.", PAGE),
        role_keys.stored_text("Driver", "Version of the GPU driver.", PAGE),
        OVERSOLD_TYPE,
        role_keys.stored_flag("EnableTideResource", "Use tidal resources.", PAGE),
        AIMASTER,
        AIMASTER_ARGS,
        ENABLE_RDMA,
        role_keys.stored_flag("EnableOssAppend", "Allow appending to objects in OSS.", PAGE),
        SANITY_CHECK,
        SANITY_CHECK_ARGS,
        RESERVED_MINUTES,
        RESERVED_POLICY,
        TAGS,
        ADVANCED,
        role_keys.stored_flag("DisableEcsStockCheck", "Don't look whether machines are in stock.", SDK_17),
        role_keys.stored_flag("AllocateAllRDMADevices", "Give each node all its RDMA devices."),
        role_keys.stored_flag("AllowUnschedulableNodes", "Also use nodes marked unschedulable."),
        CPU_AFFINITY,
        role_keys.stored_flag("EnableDSWDev", "Develop in DSW."),
        role_keys.stored_count(
            "ElasticSpotJobMaxRestartTimes", "How often an elastic spot job starts again."
        ),
        GRACE,
        role_keys.stored_text("Shell", "The shell that runs the command."),
        Group(
            key="DataJuicerConfig",
            source=SDK_NEW,
            help="How DataJuicer runs.",
            keys=(
                Choice(
                    key="CommandType",
                    source=SDK_NEW,
                    meanings={"shell": "", "config": ""},
                    help="Whether UserCommand is a command or a configuration.",
                ),
                Choice(
                    key="ExecutionMode",
                    source=SDK_NEW,
                    meanings={"standalone": "", "distributed": ""},
                    help="On one node or on several.",
                ),
                role_keys.stored_flag("EnableResourceEstimation", "Let DLC work out the resources."),
                Group(
                    key="ResourceLimit",
                    source=SDK_NEW,
                    help="The most that may be used.",
                    keys=(
                        role_keys.stored_text("CPU", "The number of CPU cores."),
                        role_keys.stored_text("GPU", "The number of GPUs."),
                        role_keys.stored_text("Memory", "Amount of memory."),
                    ),
                ),
            ),
        ),
        Group(
            key="ModelConfig",
            source=SDK_NEW,
            help="The model that the job is about.",
            keys=(
                role_keys.stored_text("ModelName", "Its name."),
                Group(
                    key="ModelTemplate",
                    source=SDK_NEW,
                    help="The template it comes from.",
                    keys=(
                        role_keys.stored_text("Collections", "Collections."),
                        role_keys.stored_text("ModelName", "Name of the model."),
                        role_keys.stored_text("Provider", "Who provides it."),
                    ),
                ),
            ),
        ),
    ),
    help="Further settings of the job.",
)
