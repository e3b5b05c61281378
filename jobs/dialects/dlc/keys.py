"""Every key of a DLC `CreateJob` request, from the pages and from three generations of the SDK."""

from __future__ import annotations

from typing import Final

from jobs.dialects.dlc import limits, role_keys
from jobs.dialects.dlc.job_types import JOB_TYPES
from jobs.dialects.dlc.limits import PAGE, SDK_17, SDK_NEW
from jobs.dialects.dlc.role_keys import ROLE
from jobs.dialects.dlc.settings_keys import MOST_MINUTES, SETTINGS
from jobs.dialects.extras import by
from jobs.dialects.fields import (
    CONSOLE,
    Bag,
    Choice,
    Flag,
    Group,
    Integer,
    Limit,
    Records,
    Text,
    Texts,
)
from jobs.dialects.ours import keys as ours
from jobs.spec import Visibility

DISPLAY_NAME: Final = Text(
    key="DisplayName",
    source=PAGE,
    path="name",
    required=True,
    allowed=limits.NAME,
    longest=limits.NAME_LONGEST,
    fallback="job",
    help="Name of the job.",
)
JOB_TYPE: Final = Choice(
    key="JobType",
    source=PAGE,
    path="framework",
    required=True,
    meanings={each.name: each.framework or "" for each in JOB_TYPES},
    help="Framework, with this exact spelling: TFJob, PyTorchJob, …",
)
JOB_SPECS: Final = Records(
    key="JobSpecs",
    source=PAGE,
    path="roles",
    required=True,
    keys=ROLE,
    identity="Type",
    least=1,
    most=1000,
    help="Roles, one element per role.",
)
USER_COMMAND: Final = Text(
    key="UserCommand",
    source=PAGE,
    path="roles[].command",
    blank=True,
    help="Command that every node runs in a shell.",
)
DESCRIPTION: Final = Text(
    key="Description", source=SDK_NEW, path="description", blank=True, help="Description of the job."
)
WORKSPACE_ID: Final = Text(
    key="WorkspaceId", source=PAGE, path="workspace", blank=True, help="The workspace of the job."
)
RESOURCE_ID: Final = Text(
    key="ResourceId",
    source=PAGE,
    path="quota",
    blank=True,
    help="Resource quota. If omitted, public resources.",
)
PRIORITY: Final = Integer(
    key="Priority",
    source=PAGE,
    path="priority",
    scale=True,
    least=limits.PRIORITY_LEAST,
    most=limits.PRIORITY_MOST,
    help="1 (lowest, DLC's default) to 9 (highest).",
)
MAX_RUNNING: Final = Integer(
    key="JobMaxRunningTimeMinutes",
    source=PAGE,
    path="time_limit_s",
    unit="minutes",
    scale=True,
    least=Limit(0, CONSOLE),
    most=MOST_MINUTES,
    help="Time limit in minutes; 0 for no limit. DLC's console sets 30 hours.",
)

DATA_SOURCE_ID: Final = Text(
    key="DataSourceId", source=PAGE, path="mounts[].id", blank=True, help="Dataset registered in DLC."
)
DATA_URI: Final = Text(
    key="Uri", source=PAGE, path="mounts[].uri", blank=True, help="Location to mount directly, oss://…"
)
DATA_PATH: Final = Text(
    key="MountPath",
    source=PAGE,
    path="mounts[].path",
    blank=True,
    help="Mount path. If omitted, the path set in the dataset.",
)
DATA_OPTIONS: Final = Text(
    key="Options",
    source=SDK_NEW,
    path="mounts[].options",
    blank=True,
    partial=True,
    help='Mount options, as a JSON string: {"mountType":"ossfs"}.',
)
DATA_ACCESS: Final = Choice(
    key="MountAccess",
    source=SDK_NEW,
    path="mounts[].read_only",
    meanings={"RO": "ro", "RW": "rw"},
    help="RO for read-only data.",
)
DATA_SOURCES: Final = Records(
    key="DataSources",
    source=PAGE,
    path="mounts",
    keys=(
        DATA_SOURCE_ID,
        DATA_URI,
        DATA_PATH,
        DATA_OPTIONS,
        DATA_ACCESS,
        role_keys.stored_text("DataSourceVersion", "Version of the dataset."),
        role_keys.stored_flag("EnableCache", "Cache data near the nodes."),
        role_keys.stored_text("AccessPointId", "Access point of the file system."),
        role_keys.stored_text("RoleArn", "RAM role used for mounting."),
        role_keys.stored_text("RoleChain", "Chain of RAM roles used for mounting, as a JSON string."),
    ),
    identity="DataSourceId",
    most=1000,
    help="Datasets and locations to mount.",
)

CODE_SOURCE_ID: Final = Text(
    key="CodeSourceId", source=PAGE, path="code.id", blank=True, help="Code source registered in DLC."
)
CODE_FIELDS: Final = (
    CODE_SOURCE_ID,
    Text(
        key="Branch",
        source=PAGE,
        path="code.branch",
        blank=True,
        help="Branch. If omitted, the branch of the code source.",
    ),
    Text(
        key="Commit",
        source=PAGE,
        path="code.commit",
        blank=True,
        help="Commit. If omitted, the newest one.",
    ),
    Text(key="MountPath", source=PAGE, path="code.path", blank=True, help="Code path in the job."),
)
CODE_SOURCE: Final = Group(
    key="CodeSource",
    source=PAGE,
    path="*",
    keys=(
        *CODE_FIELDS,
        role_keys.stored_flag("IsSharedMountPath", "All nodes share one copy."),
    ),
    help="Code to fetch before running the command.",
)

USER_VPC: Final = Group(
    key="UserVpc",
    source=PAGE,
    path="*",
    keys=(
        Text(key="VpcId", source=PAGE, path="network.vpc", blank=True, help="Virtual network."),
        Text(
            key="SwitchId",
            source=PAGE,
            path="network.switch",
            blank=True,
            help="vSwitch of the network; any if omitted.",
        ),
        Text(
            key="SecurityGroupId",
            source=PAGE,
            path="network.security_group",
            blank=True,
            help="Security group.",
        ),
        Texts(
            key="ExtendedCIDRs",
            source=PAGE,
            path="network.cidrs",
            aliases=("ExtendedCidrs",),
            help="Additional address ranges.",
        ),
        Text(
            key="DefaultRoute",
            source=PAGE,
            path="network.gateway",
            blank=True,
            help="Internet access: eth0 for the public gateway, eth1 for your own gateway.",
        ),
    ),
    help="Virtual network of the job.",
)

ENVS: Final = Bag(
    key="Envs", source=PAGE, path="env", help="Environment variables, at most 20 in DLC's console."
)
CUSTOM_ENV_KEY: Final = Text(
    key="Key", source=SDK_NEW, path="env", required=True, help="Name of the variable."
)
CUSTOM_ENV_VALUE: Final = Text(
    key="Value", source=SDK_NEW, path="env", blank=True, help="Value of the variable."
)
CUSTOM_ENVS: Final = Records(
    key="CustomEnvs",
    source=SDK_NEW,
    path="env",
    partial=True,
    keys=(CUSTOM_ENV_KEY, CUSTOM_ENV_VALUE, role_keys.stored_text("Visible", "Visibility.")),
    identity="Key",
    most=1000,
    help="Environment variables of the job, in the newer form.",
)
LIBRARIES: Final = Texts(
    key="ThirdpartyLibs",
    source=PAGE,
    path="requirements.packages",
    help="Python packages to install first, e.g. numpy==1.16.1.",
)
LIBRARY_DIR: Final = Text(
    key="ThirdpartyLibDir",
    source=PAGE,
    path="requirements.directory",
    blank=True,
    help="Directory with requirements.txt.",
)
SUCCESS_POLICY: Final = Choice(
    key="SuccessPolicy",
    source=PAGE,
    path="roles[].completion",
    meanings={"AllWorkers": "all", "ChiefWorker": "chief"},
    open=True,
    help=(
        "TFJob: with ChiefWorker, the job succeeds when the chief does; with AllWorkers, when "
        "all replicas do."
    ),
)
ACCESSIBILITY: Final = Choice(
    key="Accessibility",
    source=SDK_17,
    path="visibility",
    meanings={"PRIVATE": Visibility.PRIVATE, "PUBLIC": Visibility.PUBLIC},
    default="PRIVATE",
    help="PUBLIC: everyone in the workspace can see the job.",
)

ENABLE_CREDENTIALS: Final = Flag(
    key="EnableCredentialInject",
    source=SDK_17,
    path="instance_role",
    help="Give the job the credentials of a RAM role.",
)
ROLE_ARN: Final = Text(
    key="RoleArn",
    source=SDK_17,
    path="instance_role",
    blank=True,
    help="Role, as acs:ram::<account>:role/<name>.",
)
CREDENTIAL_ROLE_TYPE: Final = Choice(
    key="RoleType",
    source=SDK_17,
    path="instance_role",
    meanings={"service": "default", "user": ""},
    open=True,
    help="Whether the service or the user assumes the role.",
)
CREDENTIAL_ROLES: Final = Records(
    key="Roles",
    source=SDK_17,
    path="instance_role",
    keys=(
        ROLE_ARN,
        CREDENTIAL_ROLE_TYPE,
        role_keys.stored_text("AssumeRoleFor", "User on whose behalf the role is assumed.", SDK_17),
        role_keys.stored_text("Policy", "Policy that restricts the permissions of the role.", SDK_17),
        Group(
            key="AssumeUserInfo",
            source=SDK_17,
            help="Account that assumes the role.",
            keys=(
                role_keys.stored_text("Id", "User ID.", SDK_17),
                role_keys.stored_text("Type", "customer, sub or AssumedRoleUser.", SDK_17),
                role_keys.stored_text("AccessKeyId", "Access key.", SDK_17),
                role_keys.stored_text("SecurityToken", "Security token.", SDK_17),
            ),
        ),
    ),
    identity="RoleArn",
    most=100,
    help="Roles of the chain.",
)
CREDENTIAL_KEY: Final = Text(
    key="Key", source=SDK_17, path="instance_role", blank=True, help="Name of the item."
)
CREDENTIAL_ITEM_TYPE: Final = Choice(
    key="Type",
    source=SDK_17,
    path="instance_role",
    meanings={"Role": "role", "RoleChain": ""},
    open=True,
    help="Single role or chain of roles.",
)
CREDENTIAL_ITEMS: Final = Records(
    key="CredentialConfigItems",
    source=SDK_17,
    path="instance_role",
    keys=(
        CREDENTIAL_KEY,
        CREDENTIAL_ITEM_TYPE,
        CREDENTIAL_ROLES,
    ),
    identity="Key",
    most=100,
    help="Roles that the job can assume.",
)
CREDENTIAL_ENV_KEY: Final = Text(
    key="AliyunEnvRoleKey",
    source=SDK_17,
    path="instance_role",
    blank=True,
    help="Item with the role written to the environment.",
)
CREDENTIAL_CONFIG: Final = Group(
    key="CredentialConfig",
    source=SDK_17,
    path="*",
    keys=(ENABLE_CREDENTIALS, CREDENTIAL_ENV_KEY, CREDENTIAL_ITEMS),
    help="The RAM role of the job.",
)
DEFAULT_ROLE: Final = "AliyunPAIDLCDefaultRole"
"""The role that the console calls PAI's default (DLC page)."""


JOB_CONSOLE: Final = ours.group(ours.NAME)

JOB: Final = (
    DISPLAY_NAME,
    DESCRIPTION,
    JOB_TYPE,
    JOB_SPECS,
    USER_COMMAND,
    DATA_SOURCES,
    CODE_SOURCE,
    USER_VPC,
    LIBRARIES,
    LIBRARY_DIR,
    ENVS,
    CUSTOM_ENVS,
    MAX_RUNNING,
    WORKSPACE_ID,
    RESOURCE_ID,
    PRIORITY,
    SETTINGS,
    role_keys.stored_text("Options", "Options for all mounts: fs.oss.download.thread.concurrency=4,…", PAGE),
    SUCCESS_POLICY,
    ACCESSIBILITY,
    CREDENTIAL_CONFIG,
    Group(
        key="ElasticSpec",
        source=PAGE,
        help="Not supported according to the DLC documentation (kept in the file).",
        keys=(
            *(
                role_keys.stored_text(key, "Not supported.", PAGE)
                for key in ("AIMasterDockerImage", "AIMasterType", "ElasticStrategy")
            ),
            *(
                role_keys.stored_flag(key, "Not supported.", PAGE)
                for key in (
                    "EnableAIMaster",
                    "EnableEDP",
                    "EnableElasticTraining",
                    "EnablePsJobElasticPS",
                    "EnablePsJobElasticWorker",
                    "EnablePsResourceEstimate",
                )
            ),
            *(
                role_keys.stored_count(key, "Not supported.", PAGE)
                for key in (
                    "MinParallelism",
                    "MaxParallelism",
                    "EDPMinParallelism",
                    "EDPMaxParallelism",
                    "PSMinParallelism",
                    "PSMaxParallelism",
                )
            ),
        ),
    ),
    role_keys.stored_text(
        "DebuggerConfigContent", "Not supported according to the DLC documentation (kept in the file).", PAGE
    ),
    role_keys.stored_text("SchedulingStrategy", "Scheduling settings."),
    role_keys.stored_text("TemplateId", "Template of the job."),
    role_keys.stored_count("TemplateVersion", "Version of the template."),
    JOB_CONSOLE,
)
"""The keys of the whole request, in the order in which they are written."""

NAMES: Final = {
    "JobSpecs": by("Type"),
    "DataSources": by("DataSourceId", "Uri"),
    "CustomEnvs": by("Key"),
    CREDENTIAL_ITEMS.key: by(),
    CREDENTIAL_ROLES.key: by(),
    role_keys.INIT_CONTAINERS.key: by("Name"),
    role_keys.SIDECARS.key: by("Name"),
    role_keys.CONTAINER_ENV: by("Name"),
}
"""What tells the elements of lists apart."""

SECRET_KEYS: Final = frozenset({"Auth"})
VARIABLES: Final = frozenset({"Envs"}) | ours.VARIABLES
