"""The pods of an attempt: a restricted one for each replica, or for each role as the template of its pods."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jobs.backends.base import Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.handles import (
    INDEX_LABEL,
    INSTALLATION_LABEL,
    JOB_LABEL,
    KEY_LABEL,
    ROLE_LABEL,
    pod_name,
)
from jobs.backends.kubernetes.objects import code, kubeflow, placement, transfers
from jobs.backends.kubernetes.objects.code import Code
from jobs.backends.kubernetes.objects.environment import (
    Peers,
    export_rank,
    replica_variables,
    template_variables,
)
from jobs.backends.kubernetes.objects.volumes import Object, Volume, list_volumes
from jobs.backends.staging import software
from jobs.backends.staging.transfer_orders import Order
from jobs.dialects import placeholders
from jobs.dialects.kubeflow.kinds import BY_NAME, KINDS
from jobs.node.frameworks import mpi, registry
from jobs.node.frameworks.job import WEB, find_leader
from jobs.node.staging import mount_paths, pip
from jobs.node.staging.mount_paths import WORK
from jobs.node.staging.mount_specs import PackageSpec
from jobs.node.supervisor import checkpoints
from jobs.node.wrapper.environment import INDEX_VARIABLES
from jobs.spec import JobSpec, PodContainer, RoleSpec, name_containers

MAIN: Final = "main"
"""The container that runs a replica's command; a Kubeflow kind has a name of its own for it."""
_MAINS: Final = frozenset({MAIN, *(kind.container for kind in KINDS)})
CODE: Final = "job-console-code"
DATA: Final = "job-console-data"
RESUME: Final = "job-console-resume"
PACKAGES: Final = "job-console-packages"
OWN: Final = (RESUME, CODE, DATA, PACKAGES)
"""Init containers of the console's own."""

ABOUT: Final = "JOB_CONSOLE_PACKAGES"
"""Tells whoever looks at the pod what its init container installs."""

GATE: Final = "APP_ID"
"""The key of the claim without which no container of the attempt starts."""

_UNSAFE: Final = re.compile(r"[^a-z0-9-]+")

RESUME_FILE: Final = f"{WORK}/.job-console-resume"

LAUNCH: Final = f"""\
if [ -s {RESUME_FILE} ]; then {checkpoints.RESUME_VARIABLE}=$(cat {RESUME_FILE}); \
export {checkpoints.RESUME_VARIABLE}; fi
if [ -n "${{{pip.BIN}:-}}" ]; then export PATH="${pip.BIN}:$PATH"; fi
exec 2>&1
if command -v bash >/dev/null; then exec bash -c "$1"; fi
exec sh -c "$1"
"""
"""What runs a role's command, by bash where the image has it.

Its errors go where its output goes: a container's two streams keep no order between them.
"""

LISTENS: Final = (
    'grep -qE " (0100007F|0{8}|0{32}|0{24}01000000|0{16}FFFF00000100007F):$1 [0-9A-F]+:[0-9A-F]+ 0A " '
    "/proc/net/tcp /proc/net/tcp6 2>/dev/null"
)
"""Whether something in the pod listens where port-forward connects to: at all addresses or the loopback's."""

FIND_CHECKPOINT: Final = f"""\
cd "${checkpoints.VARIABLE}" || exit 1
is_complete() {{
  case "$1" in ''|.*|*{checkpoints.UNFINISHED}|*/*|{checkpoints.LATEST}) return 1 ;; esac
  [ ! -L "$1" ] || return 1
  if [ -d "$1" ]; then [ -n "$(ls -A "$1" 2>/dev/null)" ]; else [ -f "$1" ] && [ -s "$1" ]; fi
}}
found=
if [ -L {checkpoints.LATEST} ]; then found=$(readlink {checkpoints.LATEST})
elif [ -f {checkpoints.LATEST} ]; then found=$(head -n 1 {checkpoints.LATEST}); fi
is_complete "$found" || found=
if [ -z "$found" ]; then
  ls -1t | while IFS= read -r name; do
    if is_complete "$name"; then printf %s "$name" >{RESUME_FILE}.new; break; fi
  done
  [ -e {RESUME_FILE}.new ] && found=$(cat {RESUME_FILE}.new)
fi
if [ -n "$found" ]; then
  printf '%s/%s' "${checkpoints.VARIABLE}" "$found" >{RESUME_FILE}
  printf '%s %s' "$(stat -c %Y "$found")" "$found" >/dev/termination-log
fi
exit 0
"""
"""As `jobs.node.supervisor.checkpoints.find_newest`, for an image that has no Python."""


def checkpoint_name(installation: str, job_id: str) -> str:
    """Return the name of the claim that outlives the attempts of a job."""
    return f"{installation}-{job_id}-checkpoints"


def object_labels(key: str, job_id: str) -> dict[str, str]:
    """Return the labels of every object of an attempt."""
    return {KEY_LABEL: key, INSTALLATION_LABEL: key.partition("-")[0], JOB_LABEL: job_id}


def render_pods(
    submission: Submission,
    config: KubernetesConfig,
    peers: Peers,
    brought: Code | None,
    orders: Mapping[str, Order],
) -> list[Object]:
    """Return the pods of all replicas, without their owner, or one for each role of a Kubeflow kind.

    Raises Refused.
    """
    return [
        _render_pod(submission, config, peers, brought, orders, position, index, volumes)
        for position, role in enumerate(submission.spec.roles)
        for volumes in [list_volumes(submission, role, config)]
        for index in range(1 if peers.kind else role.replicas)
    ]


def name_main(kind: str) -> str:
    """Return the name of the container that runs the command, for a Kubeflow kind or "" for none."""
    return BY_NAME[kind].container if kind else MAIN


def find_main(pod: Mapping[str, Any]) -> str:
    """Return the name of the container that runs the command in a pod, whoever made it."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    return next((each["name"] for each in containers if each["name"] in _MAINS), MAIN)


def _render_pod(
    submission: Submission,
    config: KubernetesConfig,
    peers: Peers,
    brought: Code | None,
    orders: Mapping[str, Order],
    position: int,
    index: int,
    volumes: Sequence[Volume],
) -> Object:
    spec, role, name = submission.spec, submission.spec.roles[position], peers.name(position, index)
    labels = {ROLE_LABEL: peers.labels[position][:63].strip("-")}
    labels |= {} if peers.kind else {INDEX_LABEL: str(index)}
    named = {f"volume-{number}": volume for number, volume in enumerate(volumes)}
    sources = [{"name": each, **volume.source} for each, volume in named.items()]
    mounts = [volume.mount(each) for each, volume in named.items()]
    if config.checkpoint_class and not submission.is_check:
        claim = checkpoint_name(submission.key.partition("-")[0], submission.job_id)
        sources.append({"name": "checkpoints", "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": "checkpoints", "mountPath": mount_paths.CHECKPOINTS})
    init = _init_containers(submission, config, role, brought, volumes, mounts)
    if orders:
        sources.append({"name": "transfers", **transfers.secret_volume(submission.key, orders)})
    if brought is not None and brought.parts:
        sources.append({"name": "code", **code.parts_volume(submission.key, len(brought.parts))})
    uid = config.uid_of(submission.person.number)
    pod: Object = {
        "restartPolicy": "Never",
        **({} if peers.kind else {"hostname": name, "subdomain": submission.key}),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,  # the command is not process 1, which ignores signals
        "terminationGracePeriodSeconds": spec.grace_s,
        "securityContext": {
            "seccompProfile": {"type": "RuntimeDefault"},
            **({"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid, "fsGroup": uid} if uid else {}),
        },
        "initContainers": init,
        "containers": [
            _main(submission, config, peers, position, index, mounts),
            *_sidecars(submission, config, role, mounts),
        ],
        "volumes": sources,
        "imagePullSecrets": [{"name": each} for each in _pull_secrets(submission, config)],
        **placement.render(submission, role, config),
    }
    if spec.time_limit_s:
        pod["activeDeadlineSeconds"] = spec.time_limit_s
    if config.service_account:
        pod["serviceAccountName"] = config.service_account
    about = {
        "name": pod_name(submission.key, name),
        "labels": {**object_labels(submission.key, submission.job_id), **labels},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": pod}


def _main(
    submission: Submission,
    config: KubernetesConfig,
    peers: Peers,
    position: int,
    index: int,
    mounts: Sequence[Object],
) -> Object:
    spec, role = submission.spec, submission.spec.roles[position]
    command = registry.wrap_command(spec, position)
    command = software.with_prologue(command, spec.software, rdma=role.resources.rdma)
    if peers.kind:
        command = export_rank(spec, peers, position, submission.job_id) + command
        variables = template_variables(spec, peers, position, submission.job_id)
        is_first = position == find_leader(role.name for role in spec.roles)
        indexed = {**_INDEXED, **({"RANK": _INDEX} if is_first else {})}
    else:
        indexed = {}
        variables = replica_variables(spec, peers, position, index, submission.job_id)
    if config.checkpoint_class and not submission.is_check:
        variables = {checkpoints.VARIABLE: mount_paths.CHECKPOINTS, **variables}
    if packages_of(spec) is not None:
        variables |= pip.visible(variables, WORK)
    container: Object = {
        "name": peers.kind.container if peers.kind else MAIN,
        "image": role.image or config.image,
        "command": ["/bin/sh", "-c", escape(LAUNCH), "sh", escape(command)],
        "workingDir": WORK,
        "envFrom": [{"configMapRef": {"name": submission.key}}],
        "env": [
            {"name": "PAI_CONTAINER_HOST_IP", **_POD_IP},
            {"name": "PAI_CURRENT_CONTAINER_IP", **_POD_IP},
            *({"name": name, **source} for name, source in indexed.items()),
            *_variables(submission, variables),
        ],
        "resources": render_resources(role, config),
        "volumeMounts": list(mounts),
        "securityContext": _security_context(config),
    }
    if peers.kind:
        meeting = {"name": kubeflow.port_name(peers.kind), "containerPort": peers.ports[position][WEB][0]}
        container["ports"] = [meeting]
    if role.ports and not (peers.kind and spec.replicas > 1):  # names of the operator's are of ready pods
        port = peers.ports[position][role.ports[0].label][0]
        probe = ["/bin/sh", "-c", LISTENS, "sh", f"{port:04X}"]
        container["readinessProbe"] = {
            "exec": {"command": probe},
            "periodSeconds": 2,
            "failureThreshold": 1,
        }
    return container


def _variables(submission: Submission, variables: Mapping[str, str]) -> list[Object]:
    """Return the variables of a container that has the job's secrets."""
    return [
        gate_variable(submission.key),
        *({"name": name, "value": escape(value)} for name, value in variables.items()),
        *(secret_variable(submission.key, name) for name in secret_values(submission)),
    ]


def _field(path: str) -> Object:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


_POD_IP: Final = _field("status.podIP")
_INDEX: Final = _field(f"metadata.labels['{kubeflow.INDEX_LABEL}']")
_INDEXED: Final = {"PAI_CONTAINER_ID": _field("metadata.name"), **dict.fromkeys(INDEX_VARIABLES, _INDEX)}
"""Variables that differ between the pods of one template."""


def gate_variable(key: str) -> Object:
    """Return the variable without which the container does not start: the claim's own."""
    return {"name": GATE, "valueFrom": {"configMapKeyRef": {"name": key, "key": GATE}}}


def secret_variable(key: str, name: str) -> Object:
    """Return the reference to a value in the attempt's Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": key, "key": name}}}


def secret_values(submission: Submission) -> dict[str, str]:
    """Return the variables whose values lie in the attempt's Secret."""
    found = submission.secret_variables()
    if registry.needs_key(submission.spec.framework):
        found[mpi.KEY] = ""  # drawn when the Secret is made
    return found


def render_resources(role: RoleSpec, config: KubernetesConfig) -> Object:
    """Return the resources of a replica's main container: as much as it requests, and no more."""
    has = role.resources
    amounts = {"cpu": f"{has.cpu_milli}m", "memory": f"{has.memory_mib}Mi"}
    if has.disk_mib:
        amounts["ephemeral-storage"] = f"{has.disk_mib}Mi"
    if has.gpus:
        amounts[config.gpu_resource] = str(has.gpus)
    if has.rdma and config.rdma_resource:
        amounts[config.rdma_resource] = "1"
    return {"requests": amounts, "limits": amounts}


def _init_containers(
    submission: Submission,
    config: KubernetesConfig,
    role: RoleSpec,
    brought: Code | None,
    volumes: Sequence[Volume],
    mounts: Sequence[Object],
) -> list[Object]:
    """Return what runs before a replica's command: the console's own, then the job's."""
    found: list[Object] = []
    if config.checkpoint_class and not submission.is_check:
        env = {checkpoints.VARIABLE: mount_paths.CHECKPOINTS}
        found.append(_shell(submission, config, role, RESUME, FIND_CHECKPOINT, env, mounts))
    if brought is not None and brought.order:
        folders = [(transfers.CODE, brought.path)]
        found.append(_mover(submission, config, role, CODE, folders, brought.env, mounts))
    elif brought is not None:
        image = config.git_image if brought.is_git else ""
        step = _shell(submission, config, role, CODE, brought.script, brought.env, mounts, image=image)
        if brought.secret:
            password = secret_variable(submission.key, file_key(brought.secret))
            step["env"].append({**password, "name": code.PASSWORD})
        if brought.parts:
            step["volumeMounts"].append({"name": "code", "mountPath": code.PARTS, "readOnly": True})
        found.append(step)
    if fetched := [volume for volume in volumes if volume.order]:
        folders = [(str(number), volume.path) for number, volume in enumerate(fetched)]
        about = {transfers.ABOUT: ", ".join(volume.order["name"] for volume in fetched if volume.order)}
        paths = {volume.path for volume in fetched}
        filled = [{**each, "readOnly": False} if each["mountPath"] in paths else each for each in mounts]
        found.append(_mover(submission, config, role, DATA, folders, about, filled))
    if (packages := packages_of(submission.spec)) is not None:
        found.append(_installer(submission, config, role, packages, mounts))
    for name, container in zip(_container_names(role), role.init_containers, strict=False):
        found.append(_own_container(submission, config, role, name, container, mounts))
    return found


def _mover(
    submission: Submission,
    config: KubernetesConfig,
    role: RoleSpec,
    name: str,
    folders: Sequence[tuple[str, str]],
    env: Mapping[str, str],
    mounts: Sequence[Object],
) -> Object:
    """Return the container in which the data mover fills folders, each by the order of a name."""
    found = _shell(submission, config, role, name, transfers.FETCH, env, mounts)
    found["command"] += ["sh", *(escape(word) for pair in folders for word in pair)]
    found["volumeMounts"].append({"name": "transfers", "mountPath": transfers.FOLDER, "readOnly": True})
    return found


def packages_of(spec: JobSpec) -> PackageSpec | None:
    """Return the libraries that are installed before the command, None for none."""
    asked = spec.requirements
    if not (asked.packages or asked.directory):
        return None
    return PackageSpec(asked.packages, mount_paths.locate(asked.directory) if asked.directory else "")


def _installer(
    submission: Submission,
    config: KubernetesConfig,
    role: RoleSpec,
    packages: PackageSpec,
    mounts: Sequence[Object],
) -> Object:
    """Return the container that installs libraries for the role's own Python, by the job's own settings."""
    variables = {**pip.configuration(), **submission.spec.env, **role.env, ABOUT: pip.about(packages)}
    return {
        **_container(submission, config, role, PACKAGES, "", mounts),
        "command": ["/bin/sh", "-c", *map(escape, pip.arguments(packages, WORK))],
        "envFrom": [{"configMapRef": {"name": submission.key}}],
        "env": _variables(submission, variables),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _sidecars(
    submission: Submission, config: KubernetesConfig, role: RoleSpec, mounts: Sequence[Object]
) -> list[Object]:
    """Return what runs beside a replica's command, within its limits and without a request of its own."""
    names = _container_names(role)[len(role.init_containers) :]
    found = [
        _own_container(submission, config, role, name, container, mounts)
        for name, container in zip(names, role.sidecars, strict=True)
    ]
    for each in found:
        each["resources"]["requests"] = {"cpu": "0", "memory": "0"}
    return found


def file_key(secret: str) -> str:
    """Return the key in the attempt's Secret of a secret that is no variable of the command."""
    return f"secret.{secret}"


def _shell(
    submission: Submission,
    config: KubernetesConfig,
    role: RoleSpec,
    name: str,
    script: str,
    env: Mapping[str, str],
    mounts: Sequence[Object],
    *,
    image: str = "",
) -> Object:
    return {
        **_container(submission, config, role, name, image, mounts),
        "command": ["/bin/sh", "-c", escape(script)],
        "env": [
            gate_variable(submission.key),
            *({"name": each, "value": escape(value)} for each, value in env.items()),
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _own_container(
    submission: Submission,
    config: KubernetesConfig,
    role: RoleSpec,
    name: str,
    container: PodContainer,
    mounts: Sequence[Object],
) -> Object:
    """Return a container of the job file; a value that is a secret's placeholder is a reference."""
    found = _container(submission, config, role, name, container.image, mounts)
    env: list[Object] = [gate_variable(submission.key)]
    for variable, value in container.env.items():
        secret = placeholders.reference(value)
        reference = secret_variable(submission.key, file_key(secret or ""))
        env.append({**reference, "name": variable} if secret else {"name": variable, "value": escape(value)})
    found |= {"env": env, "envFrom": [{"configMapRef": {"name": submission.key}}]}
    if container.command:
        found["command"] = [escape(each) for each in container.command]
    if container.args:
        found["args"] = [escape(each) for each in container.args]
    if container.working_dir:
        found["workingDir"] = mount_paths.locate(container.working_dir)
    return found


def _container_names(role: RoleSpec) -> list[str]:
    """Return the names in their pod of a role's init containers and sidecars, near to the job file's."""
    names: list[str] = []
    for number, (name, _container) in enumerate(name_containers(role)):
        label = _UNSAFE.sub("-", name.lower())[:50].strip("-")
        is_free = label and label not in (*names, MAIN, *OWN)
        names.append(label if is_free else f"init-{number}-{len(names)}")
    return names


def _container(
    submission: Submission,
    config: KubernetesConfig,
    role: RoleSpec,
    name: str,
    image: str,
    mounts: Sequence[Object],
) -> Object:
    has = role.resources
    amounts = {"cpu": f"{has.cpu_milli}m", "memory": f"{has.memory_mib}Mi"}
    return {
        "name": name,
        "image": image or role.image or config.image,
        "workingDir": WORK,
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": list(mounts),
        "securityContext": _security_context(config),
    }


def _security_context(config: KubernetesConfig) -> Object:
    """Return what Kubernetes' restricted Pod Security Standard asks of a container."""
    found: Object = {"allowPrivilegeEscalation": False}
    if not config.allow_root:
        found["capabilities"] = {"drop": ["ALL"]}
    return found


def _pull_secrets(submission: Submission, config: KubernetesConfig) -> list[str]:
    own = [pull_secret_name(submission.key)] if submission.spec.registry_auth else []
    return own + ([config.pull_secret] if config.pull_secret else [])


def pull_secret_name(key: str) -> str:
    """Return the name of the Secret with the job's own login for an image registry."""
    return f"{key}-pull"


def escape(text: str) -> str:
    """Return a text in which the kubelet expands no `$(NAME)`."""
    return text.replace("$", "$$")
