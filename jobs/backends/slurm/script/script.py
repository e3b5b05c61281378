"""An attempt as the script that sbatch is given, and what the console keeps to understand what comes of it.

The options are those of the sbatch dialect, which is the one renderer of them.  What stands behind them is
`body.sh`; only a script that Slurm itself spreads (the dialect's framework `slurm`) is run as it is, byte for
byte, by that body.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Refused, Submission
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.relay import courier
from jobs.backends.slurm.script import boxes, environment, layout, ports, staging
from jobs.backends.slurm.sessions import luggage
from jobs.backends.staging.software import before
from jobs.dialects.rendering import JsonObject
from jobs.dialects.sbatch import hosts
from jobs.dialects.sbatch.amounts import is_type
from jobs.dialects.sbatch.document import COMPONENTS, document, is_plain
from jobs.dialects.sbatch.lines import parse_pointer
from jobs.dialects.sbatch.writing import header
from jobs.spec import Framework, JobSpec, Resources, TaskRole
from jobs.states import Reason, ReasonCode

FORMAT: Final = 1
NEVER: Final = "-"
BY_HAND: Final = 'folder=$PWD/job-$SLURM_JOB_ID && mkdir -p -m 700 "$folder"'
_LINES: Final = re.compile(r"\s+")
END_OF_PEERS: Final = "END_OF_PEERS"
END_OF_BEFORE: Final = "END_OF_BEFORE"
END_OF_COURIER: Final = "END_OF_COURIER"
BODY: Final = (
    (Path(__file__).with_name("body.sh").read_text(encoding="utf-8").rstrip("\n"))
    .replace("STRIDE", str(ports.STRIDE))
    .replace("BESIDE", " ".join(luggage.SRUN))
    .replace("ISOLATED", " ".join(luggage.ISOLATED))
)
KILL_WAIT_S: Final = 30
"""Slurm's own time between the signal and the end, at a job's time limit, where an admin has set no other."""


def check(submission: Submission, config: SlurmConfig) -> None:
    """Raise Refused for what would be missing when the job runs."""
    spec = submission.spec
    for name in sorted({each.name for each in spec.secret_env.values()} | staging.secrets_named(spec)):
        if name not in submission.secrets:
            raise Refused(Reason(ReasonCode.REFUSED, {"why": "no_secret", "name": name}))
    boxes.check(spec, config, alone=is_alone(spec))
    staging.laid(submission, config)
    if any(has.gpus and has.gpu_type and not is_type(has.gpu_type) for has in map(_resources, spec.roles)):
        raise Refused(Reason(ReasonCode.REFUSED, {"why": "field", "field": "gpu_type"}))


def needs_nodes(spec: JobSpec) -> bool:
    """Whether the script can only be written by one who knows the cluster's nodes.

    A list of nodes means all of them to Slurm; a choice among them is said by the others, which are left out.
    """
    return any(map(_is_choice, spec.roles))


def written(
    submission: Submission,
    folder: Path | None,
    config: SlurmConfig,
    nodes: Sequence[str] = (),
    token: str = "",
) -> str:
    """The script of an attempt whose files lie in `folder`; `nodes` are the cluster's, as far as needed.

    With a `token` that folder is one of each node's own.  Without a folder it is for a person, who runs it by
    sbatch where they are: it makes a folder there.
    """
    spec = submission.spec
    by_hand = folder is None
    signal, engine = spec.end_signal, boxes.used(spec, config, alone=is_alone(spec))
    before = staging.lines(submission, config)
    behind = END_OF_BEFORE
    while behind in before:
        behind += "_"
    options = document(
        _sent(submission, config, by_hand=by_hand), _extras(submission, folder, config, apart=bool(token))
    )
    _choose_nodes(options, spec, nodes)
    lines = [
        header(options).rstrip("\n"),
        *(_remarks(submission) if by_hand else ()),
        BODY,
        "",
        BY_HAND if by_hand else f"folder={shlex.quote(str(folder))}",
        *(_carried(submission.key, config, token) if token else ()),
        f"by_hand={'yes' if by_hand else ''}",
        f"grace={spec.grace_s}",
        f"limit={spec.time_limit_s or ''}",
        f"warning={signal.signal if signal else ''} warned={signal.seconds_before if signal else 0}",
        f"alone={'yes' if is_alone(spec) else ''}",
        "span=({} {})".format(*config.ports),
        *boxes.lines(spec, engine),
        f"seated() {{ seats=({' '.join(staging.seats(submission, config))}); }}",
        *(_role(submission, place, config) for place in range(len(spec.roles))),
        "peers() {",
        f"  cat <<{END_OF_PEERS}",
        *environment.peers(spec),
        END_OF_PEERS,
        "}",
        f"laid={'yes' if before else ''}",
        *(("before() {", f"  cat <<'{behind}'", before, behind, "}") if before else ()),
        "begin",
    ]
    return "\n".join(lines) + "\n"


def kept(submission: Submission, config: SlurmConfig, user: str = "") -> str:
    """What the console needs to know of the job when it looks at it again, as JSON."""
    spec = submission.spec
    value = {
        "format": FORMAT,
        "ports": list(config.ports),
        "time_limit_s": spec.time_limit_s,
        "roles": list(_kept_roles(spec, config)),
        **({"user": user} if user else {}),
        **({"apart": True} if config.apart else {}),
    }
    return json.dumps(value, ensure_ascii=False)


def is_alone(spec: JobSpec) -> bool:
    """Whether the command is a script that Slurm itself spreads over the nodes."""
    return spec.framework is Framework.SLURM and is_plain(spec)


def _remarks(submission: Submission) -> Iterator[str]:
    """What whoever runs it by hand has to know."""
    ours = "--hold --job-name=<key> --chdir=<folder> --output=<folder>/slurm.output --open-mode=append"
    yield f"# The console sends it with {ours}"
    for name in sorted(submission.spec.secret_env):
        yield f"# Not in here, as it is secret: export {name} before sbatch."
    if submission.uploads:
        yield "# Not in here: what was uploaded."


def _sent(submission: Submission, config: SlurmConfig, *, by_hand: bool) -> JobSpec:
    """The job as its options are to be written: its key for a name, and what only Slurm knows.

    What it waits for has come about when the console sends it; whoever does so by hand has Slurm wait.
    """
    spec = submission.spec
    partition = config.partitions.get(submission.virtual_cluster, config.partition)
    limit = spec.time_limit_s
    return spec.model_copy(
        update={
            "name": spec.name if by_hand else submission.key,
            "description": _LINES.sub(" ", spec.description),
            "quota": partition,
            "hold": spec.hold and by_hand,
            "not_before": spec.not_before if by_hand else "",
            "after": (),
            "mounts": (),
            "time_limit_s": limit and limit + max(0, spec.grace_s - KILL_WAIT_S),
            "end_signal": None if limit else spec.end_signal,
            "roles": tuple(sized(role) for role in spec.roles),
        }
    )


def sized(role: TaskRole) -> TaskRole:
    """The role without an image, which the options can't say, and with the size that Slurm counts in.

    Disk is left out: what --tmp asks for are nodes whose slurm.conf says how much they have, and few do.
    """
    has = role.resources
    whole = Resources(
        cpu_milli=math.ceil(has.cpu_milli / 1000) * 1000,
        memory_mib=has.memory_mib,
        gpus=has.gpus,
        gpu_type=has.gpu_type,
    )
    return role.model_copy(update={"image": "", "resources": whole, "env": {}})


def _carried(key: str, config: SlurmConfig, token: str) -> Iterator[str]:
    """What a node needs that shares no folder with the console; the token is secret."""
    yield f"courier_url={shlex.quote(f'{config.console_url}/courier/{key}')}"
    yield f"courier_python={shlex.quote(config.python)}"
    yield f"courier_token={token}"
    yield "couriers_program() {"
    yield f"  cat <<'{END_OF_COURIER}'"
    yield Path(courier.__file__).read_text(encoding="utf-8").rstrip("\n")
    yield END_OF_COURIER
    yield "}"


def _extras(
    submission: Submission, folder: Path | None, config: SlurmConfig, *, apart: bool
) -> dict[str, object]:
    """Options that a JobSpec has no word for: the cluster's, and those of the job file that it allows."""
    spec = submission.spec
    said = dict(config.options)
    if apart:  # there is no such folder before the script makes it
        said |= {"output": "/dev/null", "chdir": config.nodes_folder}
    elif folder is not None:
        said |= {"output": f"{folder}/slurm.output", "open-mode": "append", "chdir": str(folder)}
    account = config.accounts.get(submission.workspace, config.account)
    if account:
        said["account"] = account
    if qos := config.qos.get(str(spec.priority)):
        said["qos"] = qos
    if any(role.completion.min_failed != 1 for role in spec.roles):
        said["no-kill"] = ""
    own = {at: value for at, value in submission.options.items() if parse_pointer(at)[1] in config.allowed}
    return {**own, **{f"/{name}": value for name, value in said.items()}}


def _choose_nodes(options: JsonObject, spec: JobSpec, nodes: Sequence[str]) -> None:
    """Which nodes each component may have."""
    components = options[COMPONENTS]
    assert isinstance(components, list)
    for component, role in zip(components, spec.roles, strict=True):
        said = role.nodes
        others = tuple(name for name in nodes if name not in said.only) if _is_choice(role) else ()
        component.pop("exclude", None)
        component.pop("nodelist", None)
        if said.only and not others:
            component["nodelist"] = hosts.written(said.only[: role.replicas])
        if never := tuple(dict.fromkeys((*said.never, *others))):
            component["exclude"] = hosts.written(never)


def _role(submission: Submission, place: int, config: SlurmConfig) -> str:
    """The line that names a role."""
    role = submission.spec.roles[place]
    told = "\n".join(environment.of_role(submission, place))
    if role.image and config.images == boxes.APPTAINER:
        told += "\n" + boxes.apptainer(role.image, gpus=bool(role.resources.gpus))
    completion = role.completion
    words = (
        layout.prefix(role.name, place),
        str(role.replicas),
        _count(completion.min_failed),
        _count(completion.min_succeeded),
        " ".join(str(port.at) for port in ports.of_role(role)),
        told,
        before(role.command, submission.spec.software),
    )
    return f"role {' '.join(map(shlex.quote, words))}"


def _kept_roles(spec: JobSpec, config: SlurmConfig) -> Iterator[dict[str, Any]]:
    for place, (role, offset) in enumerate(zip(spec.roles, ports.offsets(spec.roles), strict=True)):
        asked = {port.label for port in role.ports}
        yield {
            "name": role.name,
            "prefix": layout.prefix(role.name, place),
            "replicas": role.replicas,
            "min_failed": role.completion.min_failed,
            "min_succeeded": role.completion.min_succeeded,
            "memory_mib": role.resources.memory_mib,
            "image": bool(role.image),
            "contained": bool(role.image and boxes.used(spec, config, alone=is_alone(spec))),
            "offset": offset,
            "each": len(ports.of_role(role)),
            "ports": [[p.label, p.at, p.position] for p in ports.of_role(role) if p.label in asked],
        }


def _count(value: int | None) -> str:
    return NEVER if value is None else str(value)


def _is_choice(role: TaskRole) -> bool:
    return bool(role.nodes.only) and (role.replicas, len(role.nodes.only)) != (1, 1)


def _resources(role: TaskRole) -> Resources:
    return role.resources
