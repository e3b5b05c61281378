"""Replica specs of a manifest ↔ roles of a job, with the nodes that they run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.dialects.commands import remark_on
from jobs.dialects.fields import AnyKey, Text, Texts
from jobs.dialects.kubeflow import commands, containers, keys, volumes
from jobs.dialects.kubeflow import resources as amounts
from jobs.dialects.kubeflow.containers import OtherContainers
from jobs.dialects.kubeflow.keys import OBJECTS
from jobs.dialects.kubeflow.kinds import OPERATOR, WORKER_COMMANDS, JobKind
from jobs.dialects.kubeflow.volumes import MountedVolumes
from jobs.dialects.objects import as_object, read_image, without_empty
from jobs.dialects.record import kind_of
from jobs.dialects.request import Request, is_nothing
from jobs.dialects.text_renderer import JsonObject
from jobs.dialects.variables import Variables, as_text, collect
from jobs.spec import NodeChoice, Port, Resources


class ManifestObject(Request):
    """One object at `pointer`; its members are read by the same rules."""

    def _inspect(self, rule: AnyKey) -> None:
        value = self.value.get(rule.key)
        if isinstance(rule, Texts) and rule.items == OBJECTS:
            if not isinstance(value, list):
                self._wrong_type(rule, value, "list", None)
        elif not (isinstance(rule, Text) and isinstance(value, int)):  # nprocPerNode: 8 is read as text
            super()._inspect(rule)


# --- roles -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KubeflowRole:
    """One replica spec; `forms` tell how it says what could be said otherwise."""

    name: str
    replicas: int
    restart: str
    command: str
    image: str
    resources: Resources
    volumes: MountedVolumes
    variables: Variables
    ports: tuple[Port, ...]
    nodes: NodeChoice
    grace_s: int | None
    others: OtherContainers
    shared_paths: tuple[str, ...]
    forms: Mapping[str, object]


def spell(kind: JobKind, value: object) -> dict[str, str]:
    """Return the roles that there are, each with the key under which it stands."""
    found: dict[str, str] = {}
    for key, member in as_object(value).items():
        role = kind.role(key)
        if role and not is_nothing(member) and (role not in found or key == role):
            found[role] = key
    return found


def read(specs: ManifestObject, kind: JobKind, api: str, there: Mapping[str, str]) -> Iterator[KubeflowRole]:
    """Read all roles; what is no role of the kind is a problem."""
    for key, value in specs.raw.items():
        if kind.role(key) is None and not is_nothing(value):
            known = ", ".join(kind.roles)
            specs.findings.problem(
                "not_a_role", specs.at(key), OPERATOR, name=key, kind=kind.name, choices=known
            )
    if not there:
        where = specs.pointer
        specs.findings.problem("too_few", where, OPERATOR, key=kind.specs, least=1)
    for name, key in there.items():
        value = specs.raw[key]
        at = specs.at(key)
        if isinstance(value, dict):
            yield from _read_role(
                ManifestObject(value, at, specs.findings, keys.ROLE).inspect(), kind, api, name
            )
        else:
            specs.findings.problem("wrong_type", at, OPERATOR, key=key, expected="object", got=kind_of(value))


def _read_role(role: ManifestObject, kind: JobKind, api: str, name: str) -> Iterator[KubeflowRole]:
    findings, replicas = role.findings, role.integer(keys.REPLICAS)
    if name in kind.single and replicas > 1:
        where, key = role.at(keys.REPLICAS.key), keys.REPLICAS.key
        findings.problem("too_great", where, OPERATOR, key=key, value=replicas, most=1)
    restart = role.choice(keys.RESTART_POLICY)
    pod = role.group(keys.TEMPLATE).group(keys.POD)
    found = list(pod.requests(keys.CONTAINERS))
    main = _find_main(found, kind)
    if main is None:
        if not pod.has(keys.CONTAINERS) and not pod.raw:
            findings.problem("required", pod.pointer, keys.KUBERNETES, key=keys.CONTAINERS.key)
        return
    reader = MainContainer(main, pod)
    command = reader.read_command(api if kind.name == "MPIJob" and name == "Worker" else "")
    label = pod.bag(keys.NODE_SELECTOR).get(keys.GPU_PRODUCT)
    has, named = reader.read_resources()
    mounted = reader.read_volumes()
    shared = {} if mounted.shm_mib is None else {"shm_mib": mounted.shm_mib}
    gpu_type = label if isinstance(label, str) else ""
    image = read_image(main, keys.IMAGE, main.pointer)
    beside = [each for each in found if each is not main]
    others = containers.read(list(pod.requests(keys.INIT_CONTAINERS)), beside, image)
    shared_paths = tuple(mounted.take_shared(others.find_shared(mounted.names)))
    called = main.text(keys.CONTAINER_NAME)
    forms = {
        "container": called if called != kind.container else "",
        **reader.find_resource_names(has, named),
        "restart": restart,
        containers.NATIVE: dict(others.native),
    }
    yield KubeflowRole(
        name=name,
        replicas=replicas,
        restart=restart,
        command=command,
        image=image,
        resources=has.model_copy(update={"gpu_type": gpu_type, **shared}),
        volumes=mounted,
        variables=reader.variables,
        ports=reader.read_ports(),
        nodes=_read_nodes(pod),
        grace_s=pod.integer(keys.GRACE) if pod.has(keys.GRACE) else None,
        others=others,
        shared_paths=shared_paths,
        forms={**reader.find_words(command), **without_empty(forms)},
    )


def _find_main(found: Sequence[ManifestObject], kind: JobKind) -> ManifestObject | None:
    """Return the container of the kind's name, else the first."""
    if not found:
        return None
    named = [each for each in found if each.value.get("name") == kind.container]
    main = (named or [*found])[0]
    if not named:
        name = kind.container
        main.findings.note("container_unnamed", main.at(keys.CONTAINER_NAME.key), name=name, source=OPERATOR)
    return main


def _read_nodes(pod: ManifestObject) -> NodeChoice:
    labels = {
        name: as_text(value)
        for name, value in pod.bag(keys.NODE_SELECTOR).items()
        if name != keys.GPU_PRODUCT or not isinstance(value, str)
    }
    only, never = read_nodes(pod.bag(keys.AFFINITY)) or ((), ())
    return NodeChoice(only=only, never=never, labels=labels)


class MainContainer:
    """The main container of a pod, and its parts."""

    def __init__(self, main: ManifestObject, pod: ManifestObject) -> None:
        self._main, self._pod, self._findings = main, pod, main.findings
        size = main.group(keys.RESOURCES)
        self._limits, self._requests = size.bag(keys.LIMITS), size.bag(keys.REQUESTS)
        self._size_at = size.pointer
        self.variables = self._read_variables()
        self._known = {*self.variables.plain, *self.variables.secret}

    def _read_variables(self) -> Variables:
        """Return the variables with values; those that only the cluster can fill are noted."""
        pairs = []
        for item in self._main.requests(keys.ENV):
            name = item.text(keys.ENV_NAME)
            if item.value.get("valueFrom"):
                self._findings.note("value_of_cluster", item.pointer, name=name)
            elif name:
                pairs.append((item.pointer, name, item.value.get(keys.ENV_VALUE.key, "")))
        return collect(pairs, self._findings)

    def read_command(self, api: str) -> str:
        """Return the command line; workers of an MPIJob of version `api` have one by default."""
        words, args = self._main.texts(keys.COMMAND), self._main.texts(keys.ARGS)
        if not words and api and not args:
            return commands.join(WORKER_COMMANDS.get(api, ()), (), ())
        where, key = self._main.at(keys.COMMAND.key), keys.COMMAND.key
        if not words:
            self._findings.problem("image_decides", self._main.pointer, keys.KUBERNETES, key=key)
            return "true"
        found = commands.join(words, args, self._known)
        remark_on(found, where, self._findings)
        if not found:
            self._findings.problem("empty", where, keys.KUBERNETES, key=key)
        return found or "true"

    def find_words(self, command: str) -> dict[str, object]:
        """Return command and arguments as they stand, where they would be written otherwise."""
        both = ((rule.key, self._main.value.get(rule.key)) for rule in (keys.COMMAND, keys.ARGS))
        said = {key: list(words) for key, words in both if isinstance(words, list)}
        return {} if said == {keys.COMMAND.key: commands.split(command, self._known)} else {"words": said}

    def read_resources(self) -> tuple[Resources, tuple[str, ...]]:
        """Return what it requests, and the fields that it names."""
        found, named = amounts.read(self._limits, self._requests, self._size_at, self._findings)
        if not {"cpu_milli", "memory_mib"} & set(named):
            self._findings.note("no_amounts", self._main.pointer, source=keys.KUBERNETES)
        return found, named

    def find_resource_names(self, has: Resources, named: Sequence[str]) -> dict[str, object]:
        """Return the amounts that are not named, and the names of GPUs and RDMA devices if not the usual."""
        names = [*self._limits, *self._requests]
        gpu = next((name for name in names if amounts.is_gpu(name)), keys.GPU)
        rdma = next((name for name in names if name.startswith("rdma/")), keys.RDMA)
        return {
            "silent": [name for name in ("cpu_milli", "memory_mib") if name not in named],
            "sized": amounts.size(has) if self._requests else [],
            "gpu": gpu if gpu != keys.GPU else "",
            "rdma": rdma if rdma != keys.RDMA else "",
        }

    def read_volumes(self) -> MountedVolumes:
        """Return what it mounts."""
        every = [item.value for item in self._pod.requests(keys.VOLUMES) if item.text(keys.VOLUME_NAME)]
        mounts = []
        for item in self._main.requests(keys.VOLUME_MOUNTS):
            if item.text(keys.MOUNT_PATH) and item.text(keys.MOUNT_NAME):
                item.flag(keys.READ_ONLY)
                mounts.append(item.value)
        return volumes.read(every, mounts, self._pod.pointer, self._findings)

    def read_ports(self) -> tuple[Port, ...]:
        """Return its ports; one without a name is called by its number."""
        found: dict[str, Port] = {}
        for item in self._main.requests(keys.PORTS):
            number = item.integer(keys.PORT)
            label = item.text(keys.PORT_NAME) or str(number)
            if number and label not in found:
                found[label] = Port(label=label, begin_at=number)
        return tuple(found.values())


# --- nodes -----------------------------------------------------------------------------------------------


HOSTNAME: Final = "kubernetes.io/hostname"
_NODES: Final = "nodeAffinity"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def read_nodes(affinity: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the nodes to run on and those to keep away from; None for any other affinity to nodes.

    Affinities to pods beside it are kept, and don't matter here.
    """
    found: dict[str, tuple[str, ...]] = {}
    try:
        expressions = affinity[_NODES][_REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"]
        for each in expressions:
            found[each["operator"]] = tuple(each["values"])
    except (TypeError, KeyError, IndexError):
        return None
    only, never = found.get("In", ()), found.get("NotIn", ())
    strings = all(isinstance(name, str) for name in (*only, *never))
    if not strings:
        return None
    same = write_affinity(NodeChoice(only=only, never=never)).get(_NODES) == affinity[_NODES]
    return (only, never) if same else None


def write_affinity(nodes: NodeChoice) -> JsonObject:
    """Return the affinity that says the names; empty when there are none."""
    expressions: list[Mapping[str, object]] = [
        {"key": HOSTNAME, "operator": operator, "values": list(values)}
        for operator, values in (("In", nodes.only), ("NotIn", nodes.never))
        if values
    ]
    if not expressions:
        return {}
    return {_NODES: {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}
