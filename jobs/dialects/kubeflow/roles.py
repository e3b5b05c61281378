"""The replica specs of a manifest → the roles of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.dialects.commands import remark_on
from jobs.dialects.findings import Findings
from jobs.dialects.kubeflow import commands, keys, nodes, resources, volumes
from jobs.dialects.kubeflow.kinds import OPERATOR, WORKER_COMMANDS, Kind
from jobs.dialects.kubeflow.objects import Object
from jobs.dialects.kubeflow.resources import Given
from jobs.dialects.kubeflow.volumes import Places
from jobs.dialects.record import kind_of
from jobs.dialects.request import is_nothing
from jobs.dialects.variables import Variables, as_text, collect
from jobs.spec import NodeChoice, Port, Resources


@dataclass(frozen=True, slots=True)
class Role:
    """One replica spec; `spelled` is how it says what could be said otherwise."""

    name: str
    replicas: int
    restart: str
    command: str
    image: str
    given: Given
    gpu_type: str
    places: Places
    variables: Variables
    ports: tuple[Port, ...]
    nodes: NodeChoice
    grace_s: int | None
    spelled: dict[str, object] = field(default_factory=dict)

    @property
    def resources(self) -> Resources:
        """What each replica is given."""
        found = {"gpu_type": self.gpu_type}
        shared = {} if self.places.shm_mib is None else {"shm_mib": self.places.shm_mib}
        return self.given.resources.model_copy(update={**found, **shared})


def spelled(kind: Kind, value: object) -> dict[str, str]:
    """The roles that there are, each with the key under which it stands."""
    found: dict[str, str] = {}
    members: Mapping[str, object] = value if isinstance(value, dict) else {}
    for key in members:
        role = kind.role(key)
        if role and not is_nothing(members[key]) and (role not in found or key == role):
            found[role] = key
    return found


def read(specs: Object, kind: Kind, api: str, there: Mapping[str, str]) -> Iterator[Role]:
    """All roles; what is no role of the kind is a problem."""
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
            yield from _role(Object(value, at, specs.findings, keys.ROLE).inspect(), kind, api, name)
        else:
            specs.findings.problem("wrong_type", at, OPERATOR, key=key, expected="object", got=kind_of(value))


def _role(role: Object, kind: Kind, api: str, name: str) -> Iterator[Role]:
    findings = role.findings
    replicas = role.integer(keys.REPLICAS)
    if name in kind.single and replicas > 1:
        where = role.at(keys.REPLICAS.key)
        findings.problem("too_great", where, OPERATOR, key=keys.REPLICAS.key, value=replicas, most=1)
    restart = role.choice(keys.RESTART_POLICY)
    pod = role.group(keys.TEMPLATE).group(keys.POD)
    containers = list(pod.requests(keys.CONTAINERS))
    main = _main(containers, kind)
    if main is None:
        if not pod.has(keys.CONTAINERS) and not pod.raw:
            findings.problem("required", pod.pointer, keys.KUBERNETES, key=keys.CONTAINERS.key)
        return
    reader = _Container(main, pod)
    own = api if kind.name == "MPIJob" and name == "Worker" else ""
    command = reader.command(own)
    label = pod.bag(keys.NODE_SELECTOR).get(keys.GPU_PRODUCT)
    given = reader.given()
    places = reader.places()
    called = main.text(keys.CONTAINER_NAME)
    spelling: dict[str, object] = {
        **({"container": called} if called != kind.container else {}),
        **reader.words(command),
        **reader.resource_names(given),
        **({"restart": restart} if restart else {}),
    }
    yield Role(
        name=name,
        replicas=replicas,
        restart=restart,
        command=command,
        image=reader.image(),
        given=given,
        gpu_type=label if isinstance(label, str) else "",
        places=places,
        variables=reader.variables,
        ports=reader.ports(),
        nodes=_nodes(pod),
        grace_s=pod.integer(keys.GRACE) if pod.has(keys.GRACE) else None,
        spelled=spelling,
    )


def _main(containers: Sequence[Object], kind: Kind) -> Object | None:
    """The container that trains: the one of the kind's name, else the first; the others are told."""
    if not containers:
        return None
    named = [each for each in containers if each.value.get("name") == kind.container]
    main = (named or [*containers])[0]
    for each in containers:
        if each is not main:
            name = str(each.value.get("name", ""))
            each.findings.note("container_kept", each.pointer, name=name)
    if not named:
        name = kind.container
        main.findings.note("container_unnamed", main.at(keys.CONTAINER_NAME.key), name=name, source=OPERATOR)
    return main


def _nodes(pod: Object) -> NodeChoice:
    labels = {
        name: as_text(value)
        for name, value in pod.bag(keys.NODE_SELECTOR).items()
        if name != keys.GPU_PRODUCT or not isinstance(value, str)
    }
    only, never = nodes.names(pod.bag(keys.AFFINITY)) or ((), ())
    return NodeChoice(only=only, never=never, labels=labels)


class _Container:
    """The main container of a pod, read."""

    def __init__(self, main: Object, pod: Object) -> None:
        self._main = main
        self._pod = pod
        self._findings: Findings = main.findings
        self._size = main.group(keys.RESOURCES)
        self.variables = self._variables()

    def _variables(self) -> Variables:
        """The variables with values; those that only the cluster can fill are told."""
        pairs = []
        for item in self._main.requests(keys.ENV):
            name = item.text(keys.ENV_NAME)
            if item.value.get("valueFrom"):
                self._findings.note("value_of_cluster", item.pointer, name=name)
            elif name:
                pairs.append((item.pointer, name, item.value.get(keys.ENV_VALUE.key, "")))
        return collect(pairs, self._findings)

    def command(self, api: str) -> str:
        """The command line; workers of an MPIJob have one by default."""
        words, args = self._main.texts(keys.COMMAND), self._main.texts(keys.ARGS)
        if not words and api and not args:
            return commands.shell(WORKER_COMMANDS.get(api, ()), (), ())
        if not words:
            self._findings.problem("image_decides", self._main.pointer, keys.KUBERNETES, key=keys.COMMAND.key)
            return "true"
        found = commands.shell(words, args, {*self.variables.plain, *self.variables.secret})
        remark_on(found, self._main.at(keys.COMMAND.key), self._findings)
        if not found:
            where = self._main.at(keys.COMMAND.key)
            self._findings.problem("empty", where, keys.KUBERNETES, key=keys.COMMAND.key)
        return found or "true"

    def words(self, command: str) -> dict[str, object]:
        """The command as it was spelled, where it would be spelled otherwise."""
        known = {*self.variables.plain, *self.variables.secret}
        both = ((rule.key, self._main.value.get(rule.key)) for rule in (keys.COMMAND, keys.ARGS))
        said = {key: list(words) for key, words in both if isinstance(words, list)}
        return {} if said == {keys.COMMAND.key: commands.words(command, known)} else {"words": said}

    def image(self) -> str:
        """The image, by its absence told."""
        name = self._main.text(keys.IMAGE)
        if not name:
            self._findings.note("no_image", self._main.pointer, key=keys.IMAGE.key)
        return name

    def given(self) -> Given:
        """What it asks for."""
        limits, requests = self._size.bag(keys.LIMITS), self._size.bag(keys.REQUESTS)
        found = resources.read(limits, requests, self._size.pointer, self._findings)
        if not {"cpu_milli", "memory_mib"} & set(found.said):
            self._findings.note("no_amounts", self._main.pointer, source=keys.KUBERNETES)
        return found

    def resource_names(self, given: Given) -> dict[str, object]:
        """Which amounts are not named, and what GPUs and RDMA devices are called."""
        silent = [name for name in ("cpu_milli", "memory_mib") if name not in given.said]
        names = [*self._size.bag(keys.LIMITS), *self._size.bag(keys.REQUESTS)]
        gpu = next((name for name in names if resources.is_gpu(name)), keys.GPU)
        rdma = next((name for name in names if name.startswith("rdma/")), keys.RDMA)
        return {
            **({"silent": silent} if silent else {}),
            **({"sized": resources.size(given.resources)} if self._size.bag(keys.REQUESTS) else {}),
            **({"gpu": gpu} if gpu != keys.GPU else {}),
            **({"rdma": rdma} if rdma != keys.RDMA else {}),
        }

    def places(self) -> Places:
        """What it mounts."""
        every = [item.value for item in self._pod.requests(keys.VOLUMES) if item.text(keys.VOLUME_NAME)]
        mounts = []
        for item in self._main.requests(keys.VOLUME_MOUNTS):
            if item.text(keys.MOUNT_PATH) and item.text(keys.MOUNT_NAME):
                item.flag(keys.READ_ONLY)
                mounts.append(item.value)
        return volumes.read(every, mounts, self._pod.pointer, self._findings)

    def ports(self) -> tuple[Port, ...]:
        """Its ports; one without a name is called by its number."""
        found: dict[str, Port] = {}
        for item in self._main.requests(keys.PORTS):
            number = item.integer(keys.PORT)
            label = item.text(keys.PORT_NAME) or str(number)
            if number and label not in found:
                found[label] = Port(label=label, begin_at=number)
        return tuple(found.values())
