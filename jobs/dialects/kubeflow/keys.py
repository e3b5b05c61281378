"""Every key of a Kubeflow manifest, down to the pods: the field it fills, or that the cluster's is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from jobs.dialects.extras import by
from jobs.dialects.fields import (
    CONSOLE,
    MOST_CPUS,
    MOST_GPUS,
    MOST_MEMORY_MIB,
    MOST_PORTS,
    MOST_REPLICAS,
    Amount,
    AnyKey,
    Bag,
    Choice,
    Flag,
    Group,
    Integer,
    Limit,
    Quantity,
    Records,
    Text,
    Texts,
)
from jobs.dialects.kubeflow.kinds import KINDS, MPI_OPERATOR, OPERATOR, V1, V2BETA1, JobKind
from jobs.spec import Resources

KUBERNETES: Final = "Kubernetes API"
DEFAULTS: Final = Resources()
MOST: Final = 1000
MOST_SECONDS: Final = Limit(2**31, CONSOLE)
OBJECTS: Final = "object"
"""The name in JSON Schema of the elements of lists that are kept as they are."""

DESCRIPTION_KEY: Final = "kubernetes.io/description"
GPU: Final = "nvidia.com/gpu"
GPU_PRODUCT: Final = "nvidia.com/gpu.product"
"""The label by which NVIDIA's feature discovery tells the type of a node's GPUs."""

RDMA: Final = "rdma/hca"
NAME_CHARACTERS: Final = r"a-z0-9\-"
_LONGEST_NAME: Final = 63
_LABEL: Final = re.compile(r"[a-z](?:[a-z0-9\-]*[a-z0-9])?")


def _text(key: str, about: str, source: str = KUBERNETES) -> Text:
    return Text(key=key, source=source, help=about, blank=True)


def _flag(key: str, about: str, source: str = KUBERNETES) -> Flag:
    return Flag(key=key, source=source, help=about)


def _count(key: str, about: str, source: str = KUBERNETES) -> Integer:
    return Integer(key=key, source=source, help=about, most=MOST_SECONDS)


def _map(key: str, about: str, source: str = KUBERNETES) -> Bag:
    return Bag(key=key, source=source, help=about)


def _list(key: str, about: str, source: str = KUBERNETES) -> Texts:
    return Texts(key=key, source=source, help=about, items=OBJECTS)


def _amount(
    key: str, path: str, quantity: Quantity, default: int, most: int, bare: str, about: str
) -> Amount:
    return Amount(
        key=key,
        source=KUBERNETES,
        path=path,
        quantity=quantity,
        default=default,
        least=Limit(0, KUBERNETES),
        most=Limit(most, CONSOLE),
        bare=bare,
        help=about,
    )


_SIZE: Final = "roles[].resources"
CPU: Final = _amount(
    "cpu",
    f"{_SIZE}.cpu_milli",
    Quantity.CPU,
    DEFAULTS.cpu_milli,
    MOST_CPUS * 1000,
    "",
    "CPU cores of each pod, such as 4 or 500m.",
)
MEMORY: Final = _amount(
    "memory",
    f"{_SIZE}.memory_mib",
    Quantity.MEMORY,
    DEFAULTS.memory_mib,
    MOST_MEMORY_MIB,
    "b",
    "Memory of each pod, such as 16Gi.",
)
DISK: Final = _amount(
    "ephemeral-storage",
    f"{_SIZE}.disk_mib",
    Quantity.MEMORY,
    0,
    MOST_MEMORY_MIB,
    "b",
    "Local disk of each pod, such as 100Gi.",
)
GPUS: Final = _amount(GPU, f"{_SIZE}.gpus", Quantity.COUNT, 0, MOST_GPUS, "", "GPUs of each pod.")

LIMITS: Final = Bag(
    key="limits",
    source=KUBERNETES,
    path=_SIZE,
    known=(
        CPU,
        MEMORY,
        DISK,
        GPUS,
        _amount(RDMA, f"{_SIZE}.rdma", Quantity.COUNT, 0, MOST_GPUS, "", "RDMA devices of each pod."),
    ),
    help="Resource limits of the container.",
)
REQUESTS: Final = Bag(
    key="requests",
    source=KUBERNETES,
    path=_SIZE,
    help="Resource requests of the container. If omitted, the limits.",
)
RESOURCES: Final = Group(
    key="resources",
    source=KUBERNETES,
    path="*",
    keys=(LIMITS, REQUESTS, _list("claims", "Dynamic resource claims.")),
    help="Resources of the container.",
)

ENV_NAME: Final = Text(key="name", source=KUBERNETES, path="env", required=True, help="Name of the variable.")
ENV_VALUE: Final = Text(
    key="value", source=KUBERNETES, path="roles[].env", blank=True, help="Value of the variable."
)
ENV: Final = Records(
    key="env",
    source=KUBERNETES,
    path="env",
    partial=True,
    keys=(ENV_NAME, ENV_VALUE, _map("valueFrom", "Source of the value in the cluster.")),
    identity="name",
    most=2000,
    help="Environment variables.",
)
PORT: Final = Integer(
    key="containerPort",
    source=KUBERNETES,
    path="roles[].ports[].begin_at",
    required=True,
    least=Limit(1, KUBERNETES),
    most=Limit(MOST_PORTS, KUBERNETES),
    help="Port number.",
)
PORT_NAME: Final = Text(
    key="name", source=KUBERNETES, path="roles[].ports[].label", blank=True, help="Port name."
)
PORTS: Final = Records(
    key="ports",
    source=KUBERNETES,
    path="roles[].ports",
    partial=True,
    keys=(PORT, PORT_NAME, _text("protocol", "TCP, UDP or SCTP."), _count("hostPort", "Node port.")),
    identity="containerPort",
    most=MOST,
    help="Ports that the container listens on.",
)
MOUNT_PATH: Final = Text(
    key="mountPath", source=KUBERNETES, path="mounts[].path", required=True, help="Path in the container."
)
MOUNT_NAME: Final = Text(
    key="name",
    source=KUBERNETES,
    path="mounts[].uri",
    required=True,
    help="Name of the mounted volume.",
)
READ_ONLY: Final = Flag(
    key="readOnly", source=KUBERNETES, path="mounts[].read_only", help="Whether the volume is read-only."
)
VOLUME_MOUNTS: Final = Records(
    key="volumeMounts",
    source=KUBERNETES,
    path="mounts",
    partial=True,
    keys=(
        MOUNT_PATH,
        MOUNT_NAME,
        READ_ONLY,
        Text(key="subPath", source=KUBERNETES, path="mounts[].uri", blank=True, help="Folder in the volume."),
        _text("subPathExpr", "Folder in the volume; variables are expanded."),
        _text("mountPropagation", "Whether mounts are shared with the node."),
    ),
    identity="mountPath",
    most=MOST,
    help="Mount paths of the volumes.",
)

CONTAINER_NAME: Final = Text(
    key="name", source=KUBERNETES, path="roles[].name", required=True, help="Name of the container."
)
IMAGE: Final = Text(key="image", source=KUBERNETES, path="roles[].image", blank=True, help="Container image.")
COMMAND: Final = Texts(
    key="command",
    source=KUBERNETES,
    path="roles[].command",
    help="Program and its first arguments, run without a shell.",
)
ARGS: Final = Texts(key="args", source=KUBERNETES, path="roles[].command", help="Arguments of the command.")
CONTAINERS: Final = Records(
    key="containers",
    source=KUBERNETES,
    path="roles",
    partial=True,
    least=1,
    required=True,
    keys=(
        CONTAINER_NAME,
        IMAGE,
        COMMAND,
        ARGS,
        RESOURCES,
        ENV,
        PORTS,
        VOLUME_MOUNTS,
        _list("envFrom", "Variables from ConfigMaps of the cluster."),
        _text("workingDir", "Working directory of the command."),
        _text("imagePullPolicy", "When the image is pulled."),
        _map("securityContext", "Security settings of the container."),
        _map("lifecycle", "Commands after the start and before the end."),
        _map("livenessProbe", "Liveness probe."),
        _map("readinessProbe", "Readiness probe."),
        _map("startupProbe", "Startup probe."),
        _list("volumeDevices", "Block devices."),
        _flag("stdin", "Keep standard input open."),
        _flag("stdinOnce", "Close standard input after the first session."),
        _flag("tty", "Allocate a terminal."),
        _text("terminationMessagePath", "File for the container's last message."),
        _text("terminationMessagePolicy", "Source of the container's last message."),
        _text("restartPolicy", "Restart policy of a sidecar container."),
    ),
    identity="name",
    most=MOST,
    help="Main container; the others are sidecar containers.",
)


def _others(key: str, path: str, about: str) -> Records:
    """Return the key of a list of containers, which the field of a role at `path` holds."""

    def words(name: str, member: str, about: str) -> Texts:
        return Texts(key=name, source=KUBERNETES, path=f"{path}[].{member}", help=about)

    def text(name: str, member: str, about: str) -> Text:
        return Text(key=name, source=KUBERNETES, path=f"{path}[].{member}", help=about, blank=True)

    own = (
        Text(
            key="name",
            source=KUBERNETES,
            path=f"{path}[].name",
            required=True,
            help="Name of the container.",
        ),
        text("image", "image", "Container image."),
        words("command", "command", "Program and its first arguments, run without a shell."),
        words("args", "args", "Arguments of the command."),
        text("workingDir", "working_dir", "Working directory of the command."),
        replace(
            ENV,
            path=f"{path}[].env",
            keys=(
                replace(ENV_NAME, path=f"{path}[].env"),
                replace(ENV_VALUE, path=f"{path}[].env"),
                _map("valueFrom", "Source of the value in the cluster."),
            ),
        ),
        replace(VOLUME_MOUNTS, path="roles[].shared_paths", keys=_OTHER_MOUNT),
        Group(
            key=RESOURCES.key,
            source=KUBERNETES,
            path="*",
            keys=(
                _map("limits", "Resource limits of the container."),
                _map("requests", "Resource requests of the container."),
                _list("claims", "Dynamic resource claims."),
            ),
            help="Resources of the container.",
        ),
        _list("ports", "Ports that the container listens on."),
    )
    named = {rule.key for rule in own}
    rest = tuple(rule for rule in CONTAINERS.keys if rule.key not in named)
    return Records(
        key=key,
        source=KUBERNETES,
        path=path,
        keys=(*own, *rest),
        identity="name",
        most=MOST,
        help=about,
    )


_OTHER_MOUNT: Final = tuple(
    replace(rule, path="roles[].shared_paths") if rule in (MOUNT_PATH, MOUNT_NAME) else replace(rule, path="")
    for rule in VOLUME_MOUNTS.keys
)
INIT_CONTAINERS: Final = _others(
    "initContainers", "roles[].init_containers", "Containers that run before the main one, in their order."
)
SIDECARS: Final = _others("containers", "roles[].sidecars", "Containers that run beside the main one.")
VOLUME_NAME: Final = Text(key="name", source=KUBERNETES, path="mounts", required=True, help="Volume name.")
VOLUMES: Final = Records(
    key="volumes",
    source=KUBERNETES,
    path="mounts",
    partial=True,
    keys=(
        VOLUME_NAME,
        Bag(
            key="emptyDir",
            source=KUBERNETES,
            path="roles[].resources.shm_mib",
            help=(
                "Empty folder of the pod. With medium: Memory and mounted at /dev/shm, this is the "
                "shared memory."
            ),
        ),
        Bag(key="hostPath", source=KUBERNETES, path="mounts[].uri", help="Folder on the node."),
        Bag(
            key="persistentVolumeClaim",
            source=KUBERNETES,
            path="mounts[].uri",
            help="Persistent volume claim, pvc://name.",
        ),
        Bag(key="nfs", source=KUBERNETES, path="mounts[].uri", help="NFS share, nfs://server/path."),
        _map("configMap", "ConfigMap of the cluster."),
        _map("secret", "Secret of the cluster."),
        _map("csi", "CSI volume."),
        _map("projected", "Multiple sources."),
        _map("downwardAPI", "Pod information from the cluster."),
        _map("ephemeral", "Volume claim created for this pod only."),
    ),
    identity="name",
    most=MOST,
    help="Volumes that the containers can mount.",
)
NODE_SELECTOR: Final = Bag(
    key="nodeSelector",
    source=KUBERNETES,
    path="roles[].nodes.labels",
    known=(
        Text(
            key=GPU_PRODUCT,
            source="NVIDIA GPU feature discovery",
            path="roles[].resources.gpu_type",
            help="GPU type.",
        ),
    ),
    help="Required node labels.",
)
AFFINITY: Final = Bag(
    key="affinity",
    source=KUBERNETES,
    path="roles[].nodes",
    help="Nodes to run on or exclude, by name; other rules are ignored (kept in the file).",
)
GRACE: Final = Integer(
    key="terminationGracePeriodSeconds",
    source=KUBERNETES,
    path="grace_s",
    unit="s",
    default=30,
    least=Limit(0, KUBERNETES),
    most=Limit(3600, CONSOLE),
    help="Grace period for pods to end.",
)
POD: Final = Group(
    key="spec",
    source=KUBERNETES,
    path="*",
    keys=(
        CONTAINERS,
        VOLUMES,
        NODE_SELECTOR,
        AFFINITY,
        GRACE,
        INIT_CONTAINERS,
        _list("tolerations", "Tolerated taints."),
        _list("imagePullSecrets", "Registry credentials."),
        _list("topologySpreadConstraints", "Topology spread of the pods."),
        _list("hostAliases", "Additional host names."),
        _list("resourceClaims", "Dynamic resource claims."),
        _list("schedulingGates", "Scheduling gates that must be removed first."),
        _text("priorityClassName", "Priority of the pods."),
        _text("schedulerName", "Scheduler of the pods."),
        _text("serviceAccountName", "Service account of the pods."),
        _text("nodeName", "Node name, bypassing the scheduler."),
        _text("runtimeClassName", "Container runtime."),
        _text("restartPolicy", "Ignored; the role's restart policy applies."),
        _text("dnsPolicy", "DNS settings."),
        _text("hostname", "Host name."),
        _text("subdomain", "Host domain."),
        _text("preemptionPolicy", "Preemption policy."),
        _map("dnsConfig", "DNS settings."),
        _map("securityContext", "Security settings of the pods."),
        _map("overhead", "Runtime overhead."),
        _flag("hostNetwork", "Use the node's network."),
        _flag("hostIPC", "Use the node's shared memory."),
        _flag("hostPID", "Use the node's process namespace."),
        _flag("shareProcessNamespace", "Share processes between containers."),
        _flag("automountServiceAccountToken", "Mount the service account token."),
        _flag("enableServiceLinks", "Variables for services."),
        _count("activeDeadlineSeconds", "Time limit of a pod."),
    ),
    help="Pods of the role.",
)
TEMPLATE: Final = Group(
    key="template",
    source=KUBERNETES,
    path="*",
    keys=(POD, _map("metadata", "Labels and annotations of the pods.")),
    help="Pod template.",
)
REPLICAS: Final = Integer(
    key="replicas",
    source=OPERATOR,
    path="roles[].replicas",
    default=1,
    least=Limit(1, OPERATOR),
    most=Limit(MOST_REPLICAS, CONSOLE),
    help="Number of pods of this role.",
)
RESTART_POLICY: Final = Choice(
    key="restartPolicy",
    source=OPERATOR,
    path="roles[].restart.condition",
    meanings={word: word for word in ("Never", "OnFailure", "Always", "ExitCode")},
    help="Restart policy of the pods.",
)
ROLE: Final[tuple[AnyKey, ...]] = (REPLICAS, RESTART_POLICY, TEMPLATE)
_SIDECARS_OF_TABLES: Final = replace(
    SIDECARS, keys=tuple(rule for rule in SIDECARS.keys if rule.path.startswith(f"{SIDECARS.path}[]"))
)
_POD_OF_TABLES: Final = replace(POD, keys=(*POD.keys, _SIDECARS_OF_TABLES))
_ROLE_OF_TABLES: Final = (
    *(REPLICAS, RESTART_POLICY),
    replace(TEMPLATE, keys=(_POD_OF_TABLES, *TEMPLATE.keys[1:])),
)
"""In a table, sidecars stand apart from the main container, with which they share a list."""

NAME: Final = Text(
    key="name",
    source=f"{KUBERNETES}, {OPERATOR}",
    path="name",
    blank=True,
    help="Name of the job: letters a-z, digits and hyphens.",
)
LABELS: Final = Bag(key="labels", source=KUBERNETES, path="tags", help="Labels of the job.")
DESCRIPTION: Final = Text(
    key=DESCRIPTION_KEY, source=KUBERNETES, path="description", help="Description of the job."
)
ANNOTATIONS: Final = Bag(
    key="annotations",
    source=KUBERNETES,
    path="description",
    known=(DESCRIPTION,),
    help="Annotations of the job.",
)
METADATA: Final = Group(
    key="metadata",
    source=KUBERNETES,
    path="*",
    keys=(
        NAME,
        LABELS,
        ANNOTATIONS,
        _text("namespace", "Namespace of the job."),
        _text("generateName", "Name prefix; the cluster adds the rest."),
        _text("creationTimestamp", "Creation time."),
        _text("resourceVersion", "Version of the object."),
        _text("uid", "Object ID."),
        _count("generation", "Number of changes to the object."),
        _list("finalizers", "Finalizers: parties that must agree before deletion."),
        _list("ownerReferences", "Owner objects."),
        _list("managedFields", "Record of changes by manager."),
    ),
    help="Name and labels.",
)
TIME_LIMIT: Final = Integer(
    key="activeDeadlineSeconds",
    source=OPERATOR,
    path="time_limit_s",
    unit="s",
    least=Limit(1, OPERATOR),
    most=Limit(2**53 - 1, CONSOLE),
    help="Time limit of the job; unlimited if omitted.",
)
BACKOFF: Final = Integer(
    key="backoffLimit",
    source=OPERATOR,
    path="retry",
    least=Limit(0, OPERATOR),
    most=MOST_SECONDS,
    help="Number of restarts of failed pods before the job fails.",
)
QUEUE: Final = Text(key="queue", source=OPERATOR, path="quota", blank=True, help="Scheduler queue.")
SCHEDULING: Final = Group(
    key="schedulingPolicy",
    source=OPERATOR,
    path="*",
    keys=(
        QUEUE,
        _text("priorityClass", "Gang priority.", OPERATOR),
        _count("minAvailable", "Minimum number of pods that start together.", OPERATOR),
        _map("minResources", "Resources of the pods.", OPERATOR),
        _count("scheduleTimeoutSeconds", "Time to wait for the pods.", OPERATOR),
    ),
    help="Gang scheduling of the pods.",
)
SUSPEND: Final = Flag(key="suspend", source=OPERATOR, path="hold", help="If true, no pods are started.")
RUN_POLICY: Final = Group(
    key="runPolicy",
    source=OPERATOR,
    path="*",
    keys=(
        TIME_LIMIT,
        BACKOFF,
        SUSPEND,
        SCHEDULING,
        _text("cleanPodPolicy", "Pods to delete when the job has ended: None, Running or All.", OPERATOR),
        _count("ttlSecondsAfterFinished", "Time after which the ended job is deleted.", OPERATOR),
        _text("managedBy", "Controller that manages the job.", OPERATOR),
    ),
    help="How the job runs and ends.",
)
SUCCESS_POLICY: Final = Choice(
    key="successPolicy",
    source=OPERATOR,
    path="roles[].completion",
    meanings={"AllWorkers": "AllWorkers"},
    help="TFJob: AllWorkers if all workers must succeed; otherwise the first one decides.",
)
DYNAMIC: Final = Flag(
    key="enableDynamicWorker",
    source=OPERATOR,
    path="roles[].completion",
    help="TFJob: allow workers to fail.",
)
MIN_REPLICAS: Final = Integer(
    key="minReplicas",
    source=OPERATOR,
    path="roles[].completion",
    partial=True,
    most=MOST_SECONDS,
    help="Number of workers with which the job goes on.",
)
MAX_RESTARTS: Final = Integer(
    key="maxRestarts",
    source=OPERATOR,
    path="roles[].restart.limit",
    partial=True,
    least=Limit(0, OPERATOR),
    most=MOST_SECONDS,
    help="PyTorchJob: restarts of a worker's processes by torchrun.",
)
ELASTIC_POLICY: Final = Group(
    key="elasticPolicy",
    source=OPERATOR,
    path="*",
    keys=(
        MIN_REPLICAS,
        _count("maxReplicas", "Maximum number of workers.", OPERATOR),
        _text("rdzvBackend", "Rendezvous of torchrun.", OPERATOR),
        _text("rdzvHost", "Host of the rendezvous.", OPERATOR),
        _count("rdzvPort", "Port of the rendezvous.", OPERATOR),
        _text("rdzvId", "Name of the rendezvous.", OPERATOR),
        _list("rdzvConf", "Settings of the rendezvous.", OPERATOR),
        _flag("standalone", "Run torchrun on one node.", OPERATOR),
        _count("nProcPerNode", "Processes per pod.", OPERATOR),
        MAX_RESTARTS,
        _list("metrics", "Metrics for scaling.", OPERATOR),
    ),
    help="PyTorchJob: elastic scaling of workers.",
)
OF_KINDS: Final[tuple[AnyKey, ...]] = (
    SUCCESS_POLICY,
    DYNAMIC,
    ELASTIC_POLICY,
    _text("nprocPerNode", "PyTorchJob: processes per pod, or auto, cpu, gpu.", OPERATOR),
    _count("slotsPerWorker", "MPIJob: processes per worker.", MPI_OPERATOR),
    _text("mainContainer", "MPIJob: the main container.", OPERATOR),
    _text("cleanPodPolicy", "MPIJob: old setting, replaced by runPolicy.", OPERATOR),
    _text("sshAuthMountPath", "MPIJob: path of the SSH keys.", MPI_OPERATOR),
    _text("mpiImplementation", "MPIJob: OpenMPI, Intel or MPICH.", MPI_OPERATOR),
    _text("launcherCreationPolicy", "MPIJob: when the launcher starts.", MPI_OPERATOR),
    _flag("runLauncherAsWorker", "MPIJob: the launcher also runs as a worker.", MPI_OPERATOR),
)
API_VERSION: Final = Text(
    key="apiVersion",
    source=KUBERNETES,
    path="framework",
    required=True,
    help=f"{V1}; {V2BETA1} of an MPIJob.",
)
KIND: Final = Choice(
    key="kind",
    source=OPERATOR,
    path="framework",
    required=True,
    meanings={kind.name: kind.framework for kind in KINDS},
    help="Job kind.",
)


def job(kind: JobKind, spelled: Mapping[str, str]) -> tuple[AnyKey, ...]:
    """The keys of a manifest of a kind; `spelled` are its roles, with the keys under which they stand."""
    groups = tuple(
        Group(
            key=role,
            source=OPERATOR,
            path="roles",
            keys=ROLE,
            aliases=() if key == role else (key,),
            help=f"{kind.name}: {role}.",
        )
        for role, key in spelled.items()
    )
    specs = Group(key=kind.specs, source=OPERATOR, path="roles", keys=groups, help="Roles of the job.")
    return _whole((specs,), () if kind.name == "TFJob" else (SUCCESS_POLICY, DYNAMIC))


def every() -> tuple[AnyKey, ...]:
    """The keys of manifests of all kinds, for a schema."""
    groups = (job(kind, {role: role for role in kind.roles}) for kind in KINDS)
    specs = (rule for keys in groups for rule in _inner(keys, "spec") if rule.key.endswith("ReplicaSpecs"))
    return _whole(tuple(specs))


def for_tables() -> tuple[AnyKey, ...]:
    """The same for a table: what is equal in all roles stands under one of them."""
    full, name = KINDS[0], "Worker"
    groups = []
    for kind in KINDS:
        roles = tuple(
            Group(
                key=role,
                source=OPERATOR,
                path="roles",
                keys=_ROLE_OF_TABLES if (kind, role) == (full, name) else (REPLICAS,),
                help="",
            )
            for role in kind.roles
        )
        groups.append(Group(key=kind.specs, source=OPERATOR, path="roles", keys=roles, help=""))
    return _whole(tuple(groups))


def _inner(keys: tuple[AnyKey, ...], key: str) -> tuple[AnyKey, ...]:
    """The keys of a group among `keys`."""
    return next(rule.keys for rule in keys if isinstance(rule, Group) and rule.key == key)


def _whole(specs: tuple[AnyKey, ...], void: tuple[AnyKey, ...] = ()) -> tuple[AnyKey, ...]:
    """All keys, with `specs`; those that are `void` say nothing in this kind."""
    others = tuple(replace(rule, path="") if rule in void else rule for rule in OF_KINDS)
    spec = Group(
        key="spec",
        source=OPERATOR,
        path="*",
        keys=(RUN_POLICY, *others, *specs),
        help="Specification of the job.",
    )
    return (API_VERSION, KIND, METADATA, spec, _map("status", "Status reported by the cluster."))


IDENTITIES: Final = {
    CONTAINERS.key: "name",
    INIT_CONTAINERS.key: "name",
    ENV.key: "name",
    PORTS.key: "containerPort",
    VOLUME_MOUNTS.key: "mountPath",
    VOLUMES.key: "name",
}
"""The member that tells the elements of a list apart."""

NAMES: Final = {key: by(member) for key, member in IDENTITIES.items()}


def fits_name(name: str) -> bool:
    """Tell whether the cluster takes the name (DNS label of RFC 1035, as the operator's webhook has it)."""
    return len(name) <= _LONGEST_NAME and bool(_LABEL.fullmatch(name))


def propose_name(name: str) -> str:
    """Return the nearest name that the cluster takes."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    started = plain if plain[:1].isalpha() else f"job-{plain}"
    return started[:_LONGEST_NAME].strip("-") or "job"
