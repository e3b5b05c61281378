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
            help="pod-exit: release each node's resources as soon as the node finishes.",
        ),
        Text(key="EnableNvidiaIBGDA", source=PAGE, help="Load the GPU driver with IBGDA: true or false."),
        Text(key="EnableNvidiaGDRCopy", source=PAGE, help="Install GDRCopy 2.4.4: true or false."),
        Text(key="EnablePaiNUMACoreBinding", source=PAGE, help="Bind to NUMA nodes: true or false."),
        Text(
            key="EnableResourcePreCheck",
            source=PAGE,
            help="At submission, check that the quota can hold all roles: true or false.",
        ),
        Text(
            key="createSvcForAllWorkers",
            source=PAGE,
            help="Let workers reach each other by name: true or false.",
        ),
        Text(
            key="customPortList",
            source=PAGE,
            help=(
                "Ports of each worker, e.g. 10000;10001-10010, excluding 23456. Alternative: "
                "customPortNumPerWorker."
            ),
        ),
        Text(
            key="customPortNumPerWorker",
            source=PAGE,
            help="Number of ports per worker, at most 65536; listed in CUSTOM_PORTS.",
        ),
        Text(
            key="RayRuntimeEnv",
            source=PAGE,
            help="Ray's runtime environment; takes precedence over Envs and libraries.",
        ),
        Text(key="RayRedisAddress", source=PAGE, help="External Redis for Ray's GCS."),
        Text(key="RayRedisUsername", source=PAGE, help="User name for Redis."),
        Text(key="RayRedisPassword", source=PAGE, help="Password for Redis."),
        Text(key="RaySubmitterBackoffLimit", source=PAGE, help="Number of retries of Ray's submitter."),
        Text(
            key="RayObjectStoreMemoryBytes",
            source=PAGE,
            help="Size of Ray's object store per node, in bytes.",
        ),
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
    help="Use of other quotas' idle resources: never, also, or only.",
)
ENABLE_RDMA: Final = Flag(
    key="EnableRDMA", source=PAGE, path="roles[].resources.rdma", help="Give nodes RDMA devices."
)
CPU_AFFINITY: Final = Flag(
    key="EnableCPUAffinity", source=PAGE, path="cpu_affinity", help="Bind processes to CPU cores."
)
AIMASTER: Final = Flag(
    key="EnableErrorMonitoringInAIMaster",
    source=PAGE,
    path="fault_tolerance.enabled",
    help=("Automatic fault tolerance with an AIMaster (1 core, 1 GiB) that runs along with the job."),
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
    help="Check the nodes before the start (only PyTorch with GPUs on a Lingjun quota).",
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
    help="Minutes to retain resources after the job has ended.",
)
RESERVED_POLICY: Final = Choice(
    key="JobReservedPolicy",
    source=PAGE,
    path="reserve_after.when",
    meanings={"Always": "always", "OnFailure": "failed", "OnSucceed": "succeeded"},
    default="Always",
    help="Results after which resources are retained.",
)
GRACE: Final = Integer(
    key="TerminationGracePeriodSeconds",
    source=SDK_NEW,
    path="grace_s",
    unit="seconds",
    scale=True,
    least=Limit(0, CONSOLE),
    most=Limit(3600, CONSOLE),
    help="Grace period in seconds after the termination signal.",
)

SETTINGS: Final = Group(
    key="Settings",
    source=PAGE,
    path="*",
    keys=(
        role_keys.stored_text("BusinessUserId", "User in the calling system.", PAGE),
        role_keys.stored_text("Caller", "System that created the job.", PAGE),
        role_keys.stored_text("PipelineId", "Pipeline that created the job.", PAGE),
        role_keys.stored_text("Driver", "GPU driver version.", PAGE),
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
        role_keys.stored_flag("DisableEcsStockCheck", "Skip the stock check.", SDK_17),
        role_keys.stored_flag("AllocateAllRDMADevices", "Give each node all of its RDMA devices."),
        role_keys.stored_flag("AllowUnschedulableNodes", "Also use nodes marked unschedulable."),
        CPU_AFFINITY,
        role_keys.stored_flag("EnableDSWDev", "Develop in DSW."),
        role_keys.stored_count("ElasticSpotJobMaxRestartTimes", "Number of restarts of an elastic spot job."),
        GRACE,
        role_keys.stored_text("Shell", "Shell for the command."),
        Group(
            key="DataJuicerConfig",
            source=SDK_NEW,
            help="Execution mode of DataJuicer.",
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
                    help="Single node or multiple nodes.",
                ),
                role_keys.stored_flag("EnableResourceEstimation", "Let DLC determine the resources."),
                Group(
                    key="ResourceLimit",
                    source=SDK_NEW,
                    help="Maximum resources.",
                    keys=(
                        role_keys.stored_text("CPU", "Number of CPU cores."),
                        role_keys.stored_text("GPU", "Number of GPUs."),
                        role_keys.stored_text("Memory", "Amount of memory."),
                    ),
                ),
            ),
        ),
        Group(
            key="ModelConfig",
            source=SDK_NEW,
            help="Model that the job is based on.",
            keys=(
                role_keys.stored_text("ModelName", "Model name."),
                Group(
                    key="ModelTemplate",
                    source=SDK_NEW,
                    help="Source template.",
                    keys=(
                        role_keys.stored_text("Collections", "Collections."),
                        role_keys.stored_text("ModelName", "Name of the model."),
                        role_keys.stored_text("Provider", "Provider."),
                    ),
                ),
            ),
        ),
    ),
    help="Additional job settings.",
)
