"""What the vendors' pages say, row by row: each is tried on a local cluster, and comes true or is told of.

A row is observed by a command inside a job (few jobs carry many rows), or by the check of a job file: a field
that acts has no note that it has no effect, one that can't act has a note, and a job that lacks something is
refused with what it lacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from jobs import submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.submission.checks import findings
from quotas.models import User


class Outcome(StrEnum):
    """What becomes of a row."""

    YES = "yes"
    NOTE = "note"
    REFUSED = "refused at check time"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Observed:
    """A row that a shell test observes inside the first replica of the job `job`."""

    page: str
    name: str
    job: str
    test: str
    outcome: Outcome = Outcome.YES


@dataclass(frozen=True, slots=True)
class Checked:
    """A row that the check of a job file tells; `word` is part of the note or problem that is looked for.

    With the outcome YES no note may say that `word` has no effect.
    """

    page: str
    name: str
    file: Mapping[str, Any]
    word: str
    outcome: Outcome = Outcome.YES
    quota: str = "default"


Row = Observed | Checked

WORKER: Final = {
    "Type": "Worker",
    "PodCount": 1,
    "Image": "i",
    "ResourceConfig": {"CPU": "1", "Memory": "512Mi"},
}
DLC: Final[dict[str, Any]] = {
    "DisplayName": "dlc",
    "JobType": "PyTorchJob",
    "UserCommand": "true",
    "JobSpecs": [WORKER],
    "JobMaxRunningTimeMinutes": 60,
}
TASK: Final = {
    "name": "main",
    "taskNumber": 1,
    "cpuNumber": 1,
    "memoryMB": 512,
    "gpuNumber": 0,
    "command": "true",
}
SCM: Final[dict[str, Any]] = {"jobName": "scm", "image": "i", "taskRoles": [TASK]}
AIHC: Final[dict[str, Any]] = {
    "name": "aihc",
    "queue": "default",
    "jobType": "PyTorchJob",
    "command": "true",
    "jobSpec": {"image": "i", "replicas": 1, "resources": [{"name": "cpu", "quantity": 1}]},
}


def dlc(role: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a DLC job with other fields."""
    return {**DLC, "JobSpecs": [{**WORKER, **(role or {})}], **more}


def scm(role: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an OpenPAI job with other fields."""
    return {**SCM, "taskRoles": [{**TASK, **(role or {})}], **more}


def settings(**values: object) -> dict[str, Any]:
    """Return a DLC job with advanced settings."""
    return dlc(Settings={"AdvancedSettings": values})


def spot(**limit: float) -> dict[str, Any]:
    """Return a preemptible DLC job."""
    return dlc({"SpotSpec": {"SpotStrategy": "SpotWithPriceLimit", **limit}})


JOBS: Final[Mapping[str, dict[str, Any]]] = {
    "pytorch": dlc(
        {"PodCount": 2, "ResourceConfig": {"CPU": "1", "Memory": "512Mi", "SharedMemory": "128Mi"}},
        Envs={"FOO": "bar"},
        DataSources=[{"DataSourceId": "d-1", "MountPath": "/root/data/nas1"}],
        CodeSource={"CodeSourceId": "code-1", "Branch": "main", "MountPath": "/root/code"},
        ThirdpartyLibs=["tiny==1.0"],
        ThirdpartyLibDir="/root/code/",
        Priority=7,
        Settings={"Tags": {"team": "a"}},
    ),
    "tensorflow": dlc(
        JobType="TFJob",
        JobSpecs=[WORKER | {"Type": "Chief"}, WORKER, WORKER | {"Type": "PS"}],
    ),
    "scm": scm(
        {"name": "main", "portList": [{"label": "web", "beginAt": 0, "portNumber": 2}], "shmMB": 128},
        jobEnvs={"LR": "0.1"},
        retryCount=0,
    ),
    "aihc": {
        **AIHC,
        "tensorboardConfig": {"enable": True, "logPath": "/tmp/logs"},
        "jobSpec": {**AIHC["jobSpec"], "envs": [{"name": "FOO", "value": "bar"}]},
    },
}
"""The jobs that run; their commands are made of the rows' tests."""

_NAMES: Final = (
    *("PAI_WORK_DIR", "PAI_JOB_NAME", "PAI_DEFAULT_FS_URI", "PAI_USER_NAME", "PAI_CURRENT_TASK_ROLE_NAME"),
    *("PAI_CURRENT_TASK_ROLE_TASK_COUNT", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_ROLE_LIST"),
    *("PAI_CURRENT_TASK_ROLE_CPU_COUNT", "PAI_CURRENT_TASK_ROLE_MEM_MB", "PAI_RESOURCE_main"),
)
"""Names of SCM's table that every job has."""

ROWS: Final[tuple[Row, ...]] = (
    # PAI-DLC's pages
    Observed("DLC", "image, where no engine is", "pytorch", "true"),
    Observed("DLC", "dataset, mounted read-only", "pytorch", "grep -q 1 /root/data/nas1/train"),
    Observed(
        "DLC", "injected variables", "pytorch", '[ "$WORLD_SIZE" = 2 ] && [ -n "$MASTER_ADDR$MASTER_PORT" ]'
    ),
    Observed("DLC", "RANK and NPROC_PER_NODE", "pytorch", '[ "$RANK" = 0 ] && [ "$NPROC_PER_NODE" = 1 ]'),
    Observed("DLC", "environment variables", "pytorch", '[ "$FOO" = bar ]'),
    Observed("DLC", "third-party libraries and folder", "pytorch", "tiny-says && other-says"),
    Observed("DLC", "code: source, branch, path", "pytorch", "grep -q two /root/code/file"),
    Observed("DLC", "shared memory", "pytorch", "df -m /dev/shm | grep -qw 128 || [ ! -O / ]"),
    Observed("DLC", "TF_CONFIG", "tensorflow", 'echo "$TF_CONFIG" | grep -q \'"chief"\''),
    Checked(
        "DLC", "at most 20 variables", dlc(Envs={f"V{n}": "1" for n in range(21)}), "at most 20", Outcome.NOTE
    ),
    Checked("DLC", "priority 1 to 9", dlc(Priority=10), "Priority", Outcome.REFUSED),
    Checked("DLC", "priority with a quota only", dlc(Priority=9), "Priorities", Outcome.NOTE, "public"),
    Checked("DLC", "Lingjun's frameworks", dlc(JobType="XGBoostJob"), "Lingjun", Outcome.NOTE, "lingjun"),
    Checked("DLC", "public: 2 GPUs, 8 cores", dlc({"PodCount": 9}), "allow", Outcome.REFUSED, "public"),
    Checked("DLC", "bids in steps of 0.1", spot(SpotDiscountLimit=0.45), "steps of 10", Outcome.NOTE, "spot"),
    Checked("DLC", "bids up to 0.9", spot(SpotDiscountLimit=0.95), "0.9", Outcome.REFUSED, "spot"),
    Checked("DLC", "ports in range", settings(customPortList="70000"), "list of ports", Outcome.NOTE),
    Checked(
        "DLC", "number of ports", settings(customPortNumPerWorker="70000"), "number of ports", Outcome.NOTE
    ),
    Checked(
        "DLC",
        "unknown size",
        dlc({"EcsSpec": "ecs.nothing", "ResourceConfig": {}}),
        "catalog",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "OSS that nobody mapped",
        dlc(DataSources=[{"Uri": "oss://b/", "MountPath": "/d"}]),
        "oss",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "dataset that nobody registered",
        dlc(DataSources=[{"DataSourceId": "d-none"}]),
        "d-none",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "code that nobody registered",
        dlc(CodeSource={"CodeSourceId": "code-none"}),
        "code-none",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "SlurmJob of two nodes on local",
        dlc({"PodCount": 2}, JobType="SlurmJob"),
        "Slurm",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "no time limit",
        {n: v for n, v in DLC.items() if "Minutes" not in n},
        "No time limit",
        Outcome.NOTE,
    ),
    Checked("DLC", "CPU affinity", dlc(Settings={"EnableCPUAffinity": True}), "CPU affinity: No"),
    Checked(
        "DLC",
        "retention",
        dlc(Settings={"JobReservedMinutes": 10, "JobReservedPolicy": "Always"}),
        "Retention: No",
    ),
    Checked(
        "DLC",
        "default role where the workspace has none",
        dlc(
            CredentialConfig={
                "EnableCredentialInject": True,
                "AliyunEnvRoleKey": "0",
                "CredentialConfigItems": [
                    {"Key": "0", "Type": "Role", "Roles": [{"RoleType": "Service", "RoleArn": ""}]}
                ],
            }
        ),
        "no default role",
        Outcome.REFUSED,
    ),
    Checked(
        "DLC",
        "RayRuntimeEnv",
        dlc({"Type": "Head"}, JobType="RayJob", Settings={"AdvancedSettings": {"RayRuntimeEnv": "{}"}}),
        "RayRuntimeEnv: No",
    ),
    Checked(
        "DLC",
        "fault tolerance",
        dlc(Settings={"EnableErrorMonitoringInAIMaster": True}),
        "Fault tolerance: No effect",
    ),
    Checked("DLC", "sanity check", dlc(Settings={"EnableSanityCheck": True}), "Sanity check", Outcome.NOTE),
    Checked(
        "DLC",
        "VPC",
        dlc(UserVpc={"VpcId": "vpc-1", "SwitchId": "vsw-1", "SecurityGroupId": "sg"}),
        "Network",
        Outcome.NOTE,
    ),
    Checked(
        "DLC",
        "init containers",
        dlc({"ExtraPodSpec": {"InitContainers": [{"Name": "x", "Image": "i"}]}}),
        "ExtraPodSpec",
        Outcome.NOTE,
    ),
    Checked("DLC", "Options", dlc(Options="a=b"), "Options", Outcome.NOTE),
    # SCM's page
    Observed(
        "SCM",
        "variables of the table",
        "scm",
        " && ".join(f'[ "${{{name}+x}}" ]' for name in _NAMES if name != "PAI_DEFAULT_FS_URI"),
    ),
    Observed(
        "SCM", "port list", "scm", '[ "$(echo "$PAI_PORT_LIST_main_0_web" | tr , "\\n" | grep -c .)" = 2 ]'
    ),
    Observed("SCM", "jobEnvs", "scm", '[ "$LR" = 0.1 ]'),
    Checked("SCM", "unique name", {**SCM, "jobName": "taken"}, "unique", Outcome.NOTE),
    Checked("SCM", "memoryMB at least 100", scm({"memoryMB": 50}), "at least 100", Outcome.NOTE),
    Checked("SCM", "taskNumber at least 1", scm({"taskNumber": 0}), "taskNumber", Outcome.NOTE),
    Checked("SCM", "cpuNumber at least 1", scm({"cpuNumber": 0}), "cpuNumber", Outcome.NOTE),
    Checked(
        "SCM",
        "ports in range",
        scm({"portList": [{"label": "a", "beginAt": 70000, "portNumber": 1}]}),
        "65535",
        Outcome.REFUSED,
    ),
    Checked(
        "SCM",
        "codeDir that nobody fetches",
        scm(codeDir="https://example.com/x.git"),
        "example.com",
        Outcome.REFUSED,
    ),
    Checked("SCM", "storageGB", scm({"storageGB": 10}), "Disk: No effect"),
    # AIHC's page
    Observed("AIHC", "environment variables", "aihc", '[ "$FOO" = bar ]'),
    Observed("AIHC", "AIHC_TENSORBOARD_LOG_PATH", "aihc", '[ -n "$AIHC_TENSORBOARD_LOG_PATH" ]'),
    Checked("AIHC", "only PyTorchJob", {**AIHC, "jobType": "TFJob"}, "TFJob", Outcome.NOTE),
    Checked(
        "AIHC",
        "queue",
        {name: value for name, value in AIHC.items() if name != "queue"},
        "queue is missing",
        Outcome.NOTE,
    ),
    Checked(
        "AIHC",
        "TensorBoard",
        {**AIHC, "tensorboardConfig": {"enable": True, "logPath": "/l"}},
        "TensorBoard: No",
    ),
    Checked("AIHC", "alertConfig", {**AIHC, "alertConfig": {"alertName": "x"}}, "alertConfig", Outcome.NOTE),
)
"""The rows of the pages, with their outcomes on a local cluster without an engine."""


def title(row: Row) -> str:
    """Return the row's page and name."""
    return f"{row.page}: {row.name}"


def files() -> dict[str, str]:
    """Return the job files that run, by name; each prints a line for each of its rows."""
    made = {}
    for name, job in JOBS.items():
        rows = [row for row in ROWS if isinstance(row, Observed) and row.job == name]
        lines = [
            f'if {{ {row.test}; }} >/dev/null 2>&1; then echo "row {title(row)}: yes"; fi' for row in rows
        ]
        command = "\n".join([*lines, "true"])
        made[name] = json.dumps(_with_command({**job, **_named(job, name)}, command))
    return made


def _named(job: Mapping[str, Any], name: str) -> dict[str, str]:
    key = next(key for key in ("DisplayName", "jobName", "name") if key in job)
    return {key: name}


def _with_command(job: dict[str, Any], command: str) -> dict[str, Any]:
    if "taskRoles" in job:
        return {**job, "taskRoles": [{**role, "command": command} for role in job["taskRoles"]]}
    key = "UserCommand" if "UserCommand" in job else "command"
    return {**job, key: command}


def judge(user: User, logs: Mapping[str, str]) -> dict[str, Outcome]:
    """Return what became of each row, by title; `logs` are those of the jobs' first replicas."""
    return {title(row): _judge(user, row, logs) for row in ROWS}


def _judge(user: User, row: Row, logs: Mapping[str, str]) -> Outcome:
    if isinstance(row, Observed):
        return Outcome.YES if f"row {title(row)}: yes" in logs[row.job] else Outcome.NO
    target = submission.JobTarget(quota=row.quota)
    found = findings.examine(user, Document(json.dumps(row.file)), place=target)
    problems = _mention([each.message for each in found.problems], row.word)
    if not problems and row.outcome is Outcome.REFUSED:
        problems = _is_refused(user, row.file, target)
    if problems:
        return Outcome.REFUSED
    if found.problems:
        return Outcome.NO
    is_noted = _mention([each.message for each in found.notes], row.word)
    if row.outcome is Outcome.YES:
        return Outcome.NO if is_noted else Outcome.YES
    return Outcome.NOTE if is_noted else Outcome.NO


def _mention(messages: Iterable[str], word: str) -> bool:
    return any(word in message for message in messages)


def _is_refused(user: User, file: Mapping[str, Any], target: submission.JobTarget) -> bool:
    try:
        submission.submit(user, Document(json.dumps(file)), place=target)
    except Refused:
        return True
    return False


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Return the rows with their outcomes as text."""
    return "\n".join(f"{name:<45} {outcome}" for name, outcome in outcomes.items())
