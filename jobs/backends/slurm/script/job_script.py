"""The job script that is given to sbatch, and the record of its attempt.

Its options are rendered by the sbatch dialect, and `job_script.sh` follows them.  It runs a script that Slurm
itself spreads (the dialect's framework `slurm`) unchanged.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.backends.base import Submission
from jobs.backends.refusals import refusal, refuse_missing_secrets, refuse_restricted
from jobs.backends.remote import attempts, bundle, records
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.identity.as_user import SESSION_STEP
from jobs.backends.slurm.script import container_runtimes, containers, environment, ports, shell, staging
from jobs.backends.staging import job_secrets
from jobs.backends.staging import tensorboard as staged_tensorboard
from jobs.backends.staging.software import with_prologue
from jobs.dialects.sbatch import hosts
from jobs.dialects.sbatch.amounts import is_type
from jobs.dialects.sbatch.header import parse_pointer
from jobs.dialects.sbatch.renderer import COMPONENTS, document, header, is_plain
from jobs.dialects.text_renderer import JsonObject
from jobs.node import relay
from jobs.node.frameworks import registry
from jobs.node.supervisor import checkpoints, restart_lines
from jobs.node.wrapper import tensorboard
from jobs.spec import Framework, JobSpec, Resources, RoleSpec

NEVER: Final = "-"
BY_HAND: Final = 'folder=$PWD/job-$SLURM_JOB_ID && mkdir -p -m 700 "$folder"'
_LINES: Final = re.compile(r"\s+")
END_OF_PEERS: Final = "END_OF_PEERS"
END_OF_PROLOG: Final = "END_OF_PROLOG"
END_OF_RELAY: Final = "END_OF_RELAY"
MAIN_SCRIPT: Final = (
    (Path(__file__).with_name("job_script.sh").read_text(encoding="utf-8").rstrip("\n"))
    .replace("STRIDE", str(ports.STRIDE))
    .replace("BESIDE", " ".join(SESSION_STEP))
    .replace("RESTART_TEXT", restart_lines.TEXT)
    .replace("ISOLATED", " ".join(bundle.ISOLATED))
)
KILL_WAIT_S: Final = 30
"""Slurm's default for the time between the signal and the end at a job's time limit."""


def check(submission: Submission, config: SlurmConfig) -> None:
    """Raise Refused for what the job would lack when it runs."""
    spec = submission.spec
    refuse_missing_secrets(submission, job_secrets.list_used(spec))
    refuse_restricted(submission)
    _check_role(submission, config)
    container_runtimes.check(spec, config, alone=is_alone(spec))
    containers.check(spec, config, alone=is_alone(spec))
    staging.plan_staging(submission, config)
    resources = [role.resources for role in spec.roles]
    if any(has.gpus and has.gpu_type and not is_type(has.gpu_type) for has in resources):
        raise refusal("field", field="gpu_type")


def _check_role(submission: Submission, config: SlurmConfig) -> None:
    """Raise Refused for a job with a role of which a replica would get no credentials.

    Their server runs beside each replica on its node, so neither in an image that srun runs, nor on the other
    nodes of a script that Slurm itself spreads.
    """
    spec = submission.spec
    if not spec.instance_role:
        return
    runtime = container_runtimes.runtime_of(spec, config, alone=is_alone(spec))
    spread = is_alone(spec) and spec.replicas > 1
    why = "role_without_network" if spread or runtime in container_runtimes.BY_SRUN else ""
    if why or not submission.role_provider:
        raise refusal(why or "role_unknown", role=spec.instance_role)


def needs_nodes(spec: JobSpec) -> bool:
    """Return whether the script can be rendered only with the cluster's nodes.

    A list of nodes means all of them to Slurm; to choose among them, the others are excluded.
    """
    return any(map(_is_choice, spec.roles))


def render(
    submission: Submission,
    folder: Path | None,
    config: SlurmConfig,
    nodes: Sequence[str] = (),
    token: str = "",
) -> str:
    """Return the script of an attempt in `folder`; `nodes` are the cluster's, if needed.

    With a `token` each node has a folder of its own.  Without a folder the script is for a person who gives
    it to sbatch: it makes a folder where it is run.
    """
    spec = submission.spec
    by_hand = folder is None
    signal, engine = spec.end_signal, container_runtimes.runtime_of(spec, config, alone=is_alone(spec))
    prolog = staging.render_prolog(submission, config, alone=is_alone(spec))
    behind = END_OF_PROLOG
    while behind in prolog:
        behind += "_"
    options = document(
        _submitted_spec(submission, config, by_hand=by_hand),
        _extras(submission, folder, config, apart=bool(token)),
    )
    _choose_nodes(options, spec, nodes)
    lines = [
        header(options).rstrip("\n"),
        *(_hand_comments(submission) if by_hand else ()),
        MAIN_SCRIPT,
        "",
        BY_HAND if by_hand else f"folder={shlex.quote(str(folder))}",
        *(_render_relay(submission.key, config, token) if token else ()),
        f"checkpoints={shlex.quote(_checkpoints(folder)) if folder and not token else ''}",
        f"by_hand={'yes' if by_hand else ''}",
        f"grace={spec.grace_s}",
        f"limit={spec.time_limit_s or ''}",
        f"warning={signal.signal if signal else ''} warned={signal.seconds_before if signal else 0}",
        f"alone={'yes' if is_alone(spec) else ''}",
        f"restarts={'yes' if spec.restarts_replicas and not by_hand else ''}",
        *(("export SLURM_CPU_BIND=cores",) if spec.cpu_affinity else ()),
        "span=({} {})".format(*config.ports),
        *container_runtimes.render_images(spec, engine),
        f"tensorboard=({' '.join(_tensorboard(submission, config))})",
        f"seated() {{ seats=({' '.join(staging.container_mounts(submission, config))}); }}",
        *(_role(submission, place, config) for place in range(len(spec.roles))),
        "peers() {",
        f"  cat <<{END_OF_PEERS}",
        *environment.render_peers(spec),
        END_OF_PEERS,
        "}",
        f"laid={'yes' if prolog else ''}",
        *(shell.define_printing("before", prolog, behind) if prolog else ()),
        "begin",
    ]
    return "\n".join(lines) + "\n"


def _checkpoints(folder: Path) -> str:
    return str(checkpoints.folder_of(folder))


def _tensorboard(submission: Submission, config: SlurmConfig) -> Iterator[str]:
    """Yield the words of TensorBoard: its role's place, its log folder on the node, its command."""
    path = staged_tensorboard.log_path(submission.spec)
    if path is not None:
        yield str(staged_tensorboard.leading_role(submission.spec))
        yield shlex.quote(staging.log_folder(path, submission, config))
        yield shlex.quote(with_prologue(tensorboard.COMMAND, submission.spec.software))


def render_record(submission: Submission, config: SlurmConfig, user: str = "") -> str:
    """Return the attempt's record as JSON."""
    spec = submission.spec
    runtime = container_runtimes.runtime_of(spec, config, alone=is_alone(spec))
    return records.render(
        spec,
        config.ports,
        [[(port.label, port.at) for port in ports.ports_of(role)] for role in spec.roles],
        is_contained=lambda role: bool(role.image and runtime),
        user=user,
        apart=config.apart,
        checks_nodes=spec.sanity_check.enabled,
    )


def is_alone(spec: JobSpec) -> bool:
    """Return whether the command is a script that Slurm itself spreads over the nodes."""
    return spec.framework is Framework.SLURM and is_plain(spec)


def _hand_comments(submission: Submission) -> Iterator[str]:
    """Yield comments for a person who runs it by hand."""
    ours = "--hold --job-name=<key> --chdir=<folder> --output=<folder>/slurm.output --open-mode=append"
    yield f"# The console sends it with {ours}"
    for name in sorted(submission.spec.secret_env):
        yield f"# Not in here, as it is secret: export {name} before sbatch."
    if submission.uploads:
        yield "# Not in here: what was uploaded."


def _submitted_spec(submission: Submission, config: SlurmConfig, *, by_hand: bool) -> JobSpec:
    """Return the job as its options are rendered: its key for a name, and Slurm's own settings.

    Its dependencies are fulfilled when the console submits it; by hand Slurm waits for them.
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
            "roles": tuple(round_resources(role, config.rdma_feature) for role in spec.roles),
        }
    )


def round_resources(role: RoleSpec, rdma_feature: str = "") -> RoleSpec:
    """Return the role without its image, which is no option, and with the amounts that Slurm counts in.

    A role with RDMA asks for nodes with `rdma_feature`, if there is one.  Disk is left out: --tmp needs nodes
    whose slurm.conf has its size, and few do.
    """
    has = role.resources
    whole = Resources(
        cpu_milli=math.ceil(has.cpu_milli / 1000) * 1000,
        memory_mib=has.memory_mib,
        gpus=has.gpus,
        gpu_type=has.gpu_type,
    )
    nodes = role.nodes
    if has.rdma and rdma_feature:
        nodes = nodes.model_copy(update={"labels": {**nodes.labels, rdma_feature: "true"}})
    return role.model_copy(update={"image": "", "resources": whole, "env": {}, "nodes": nodes})


def _render_relay(key: str, config: SlurmConfig, token: str) -> Iterator[str]:
    """Yield the lines for the node relay; the token is secret."""
    yield f"relay_url={shlex.quote(f'{config.console_url}/courier/{key}')}"
    yield f"relay_python={shlex.quote(config.python)}"
    yield f"relay_token={token}"
    program = Path(relay.__file__).read_text(encoding="utf-8").rstrip("\n")
    yield from shell.define_printing("print_relay_program", program, END_OF_RELAY)


def _extras(
    submission: Submission, folder: Path | None, config: SlurmConfig, *, apart: bool
) -> dict[str, object]:
    """Return options beside the job's own: the cluster's, and those of the job file that it allows."""
    spec = submission.spec
    found = dict(config.options)
    if apart:  # the script makes the folder
        found |= {"output": "/dev/null", "chdir": config.nodes_folder}
    elif folder is not None:
        found |= {"output": f"{folder}/slurm.output", "open-mode": "append", "chdir": str(folder)}
    account = config.accounts.get(submission.workspace, config.account)
    if account:
        found["account"] = account
    if qos := config.qos.get(str(spec.priority)):
        found["qos"] = qos
    if any(role.completion.min_failed != 1 for role in spec.roles):
        found["no-kill"] = ""
    own = {at: value for at, value in submission.options.items() if parse_pointer(at)[1] in config.allowed}
    return {**own, **{f"/{name}": value for name, value in found.items()}}


def _choose_nodes(options: JsonObject, spec: JobSpec, nodes: Sequence[str]) -> None:
    """Set the nodes that each component may have."""
    components = options[COMPONENTS]
    assert isinstance(components, list)
    for component, role in zip(components, spec.roles, strict=True):
        found = role.nodes
        others = tuple(name for name in nodes if name not in found.only) if _is_choice(role) else ()
        component.pop("exclude", None)
        component.pop("nodelist", None)
        if found.only and not others:
            component["nodelist"] = hosts.to_text(found.only[: role.replicas])
        if never := tuple(dict.fromkeys((*found.never, *others))):
            component["exclude"] = hosts.to_text(never)


def _role(submission: Submission, place: int, config: SlurmConfig) -> str:
    """Return the line that defines a role."""
    role = submission.spec.roles[place]
    lines_of_role = "\n".join(environment.render_role(submission, place, config))
    if role.image and config.images == container_runtimes.APPTAINER:
        lines_of_role += "\n" + container_runtimes.render_apptainer(
            role.image, gpus=bool(role.resources.gpus)
        )
    completion = role.completion
    command = registry.wrap_command(submission.spec, place)
    words = (
        attempts.file_prefix(role.name, place),
        str(role.replicas),
        _count(completion.min_failed),
        _count(completion.min_succeeded),
        " ".join(str(port.at) for port in ports.ports_of(role)),
        lines_of_role,
        with_prologue(command, submission.spec.software, rdma=role.resources.rdma),
    )
    return f"role {' '.join(map(shlex.quote, words))}"


def _count(value: int | None) -> str:
    return NEVER if value is None else str(value)


def _is_choice(role: RoleSpec) -> bool:
    return bool(role.nodes.only) and (role.replicas, len(role.nodes.only)) != (1, 1)
