"""Kubeflow manifests, and JobSpecs that they can say, made by hypothesis."""

import json
from typing import Any

from hypothesis import strategies as st

from jobs.dialects.kubeflow import keys
from jobs.dialects.kubeflow.kinds import ALL_WORKERS, KINDS, V1, V2BETA1, JobKind, completions, is_elastic
from jobs.dialects.yaml_text.emitter import write
from jobs.spec import (
    JobSpec,
    Mount,
    NodeChoice,
    PodContainer,
    Port,
    Resources,
    RestartCondition,
    RestartPolicy,
    RetryPolicy,
    RoleSpec,
    SecretRef,
)
from tests.jobs.dialects.from_keys import request, words
from tests.jobs.dialects.strategies import env_names, names, untidy

plain = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"], exclude_characters="@$"), max_size=12
)
labels = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
secrets = names("._-").map(lambda name: SecretRef(name=name))
scripts = st.text(st.sampled_from("abc $(){}'\"\\\n&;#A_"), min_size=1, max_size=30)
paths = words.map("/{}".format)
uris = (
    paths
    | words.map("pvc://{}".format)
    | st.builds("pvc://{}/{}".format, words, words)
    | st.builds("nfs://{}{}".format, words, paths)
)


def _groups(kind: JobKind) -> st.SearchStrategy[list[str]]:
    """Roles of a kind, with the one that it needs."""
    several = st.lists(st.sampled_from(kind.roles), min_size=1, max_size=3, unique=True)
    return several.map(lambda found: [*dict.fromkeys([*([kind.needed] if kind.needed else []), *found])])


_EMPTY_PLACES = st.builds(
    Mount,
    uri=st.just("emptydir://"),
    path=paths,
    read_only=st.booleans(),
    options=st.fixed_dictionaries({}, optional={"medium": st.just("Memory"), "sizeLimit": st.just("2Gi")}),
)


@st.composite
def kubeflow_specs(draw: st.DrawFn) -> JobSpec:
    """Any JobSpec that a manifest can say in full."""
    kind = draw(st.sampled_from(KINDS))
    called = draw(_groups(kind))
    roles = [draw(_role(name, kind)) for name in called]
    policy = draw(st.sampled_from(["", ALL_WORKERS]))
    dynamic = kind.name == "TFJob" and draw(st.booleans())
    ends = completions(kind, {role.name: role.replicas for role in roles}, policy, dynamic=dynamic)
    env = draw(st.dictionaries(env_names, plain, max_size=2))
    secret = draw(st.dictionaries(env_names, secrets, max_size=1))
    if len(roles) > 1:  # variables of one role alone; what all have is the job's
        own = draw(st.dictionaries(env_names.map("OWN_{}".format), plain, max_size=1))
        roles[-1] = roles[-1].model_copy(update={"env": own})
    places = st.builds(Mount, uri=uris, path=paths, read_only=st.booleans())
    mounts = draw(st.lists(places | _EMPTY_PLACES, max_size=2))
    limit, again = draw(st.sampled_from([0, 3, None])), draw(st.booleans())
    conditions = [
        draw(st.sampled_from(RestartCondition)) if limit != 0 and not again else RestartCondition.FAILURE
        for _role in roles
    ]
    if all(each is RestartCondition.NEVER for each in conditions):
        conditions[0] = RestartCondition.EXIT_CODE
    restarts = {
        role.name: RestartPolicy(
            condition=condition,
            limit=draw(st.none() | st.integers(0, 9)) if is_elastic(kind, role.name) else None,
        )
        for role, condition in zip(roles, conditions, strict=True)
    }
    return JobSpec(
        name=draw(labels),
        description=draw(plain),
        tags=draw(st.dictionaries(labels, labels, max_size=2)),
        framework=kind.framework,
        roles=tuple(
            role.model_copy(update={"completion": ends[role.name], "restart": restarts[role.name]})
            for role in roles
        ),
        env={name: value for name, value in env.items() if name not in secret},
        secret_env=secret,
        mounts=tuple({mount.path: mount for mount in mounts}.values()),
        quota=draw(labels | st.just("")),
        retry=RetryPolicy(limit=limit, on_success=again),
        time_limit_s=draw(st.none() | st.integers(1, 10**6)),
        grace_s=draw(st.sampled_from([0, 30, 90])),
        hold=draw(st.booleans()),
    )


_CONTAINERS = st.builds(
    PodContainer,
    name=labels.map("c-{}".format),
    image=st.sampled_from(["", "beside:1"]),
    command=st.lists(plain.filter(bool), max_size=2).map(tuple),
    args=st.lists(plain.filter(bool), max_size=1).map(tuple),
    working_dir=st.sampled_from(["", "/tmp"]),
    env=st.dictionaries(env_names, plain, max_size=1),
)


@st.composite
def _role(draw: st.DrawFn, name: str, kind: JobKind) -> RoleSpec:
    gpus = draw(st.integers(0, 8))
    ports = draw(st.lists(st.tuples(labels | st.just(""), st.integers(1, 65535)), max_size=2))
    others = draw(st.lists(_CONTAINERS, max_size=2, unique_by=lambda each: each.name))
    count = draw(st.integers(0, len(others)))
    is_shared = draw(st.booleans())
    return RoleSpec(
        init_containers=tuple(others[:count]),
        sidecars=tuple(others[count:]),
        shared_paths=("/beside",) if others and is_shared else (),
        name=name,
        replicas=1 if name in kind.single else draw(st.integers(1, 9)),
        command=draw(scripts),
        image=draw(words),
        resources=Resources(
            cpu_milli=draw(st.integers(1, 10**6)),
            memory_mib=draw(st.integers(1, 2**20)),
            shm_mib=draw(st.just(64) | st.integers(1, 2**20)),
            disk_mib=draw(st.integers(0, 2**20)),
            gpus=gpus,
            gpu_type=draw(st.sampled_from(["", "NVIDIA-A100-SXM4-80GB"])),
            rdma=draw(st.booleans()),
        ),
        ports=tuple(
            {
                label or str(port): Port(label=label or str(port), begin_at=port)
                for port, label in {port: label for label, port in ports}.items()
            }.values()
        ),
        nodes=NodeChoice(
            only=draw(st.lists(labels, max_size=2).map(tuple)),
            never=draw(st.lists(labels, max_size=2).map(tuple)),
            labels=draw(st.dictionaries(labels, labels, max_size=1)),
        ),
    )


objects = st.lists(st.fixed_dictionaries({"key": labels}, optional={"operator": labels}), max_size=2)
volumes: list[dict[str, Any]] = [
    {"emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}},
    {"emptyDir": {"medium": "Memory"}},
    {"emptyDir": {}},
    {"hostPath": {"path": "/data"}},
    {"hostPath": {"path": "/data", "type": "Directory"}},
    {"persistentVolumeClaim": {"claimName": "sets"}},
    {"nfs": {"server": "files", "path": "/export"}},
    {"configMap": {"name": "settings"}},
]
AMOUNTS = {
    "cpu": st.sampled_from(["4", "500m", 2, "1.5", "1e3"]),
    "memory": st.sampled_from(["16Gi", "512M", "1G", "1073741824", 2**30, "1.5Gi", "128974848000m"]),
    "ephemeral-storage": st.sampled_from(["100Gi", "1Ti"]),
    "nvidia.com/gpu": st.integers(0, 8) | st.just("4"),
    "rdma/hca_shared": st.just(1),
    "example.com/fpga": st.just(2),
}


@st.composite
def _pods(draw: st.DrawFn, kind: JobKind) -> dict[str, Any]:
    """The spec of pods, with side containers and volumes that are used or not."""
    pod = draw(POD)
    found = draw(st.lists(st.sampled_from(volumes), max_size=3))
    pod["volumes"] = [{"name": f"v{index}", **volume} for index, volume in enumerate(found)]
    main = draw(CONTAINER)
    main["name"] = draw(st.sampled_from([kind.container, kind.container, "other"]))
    main["volumeMounts"] = [
        {"name": f"v{index}", "mountPath": draw(st.sampled_from(["/dev/shm", "/data"])) + "x" * index}
        | draw(st.sampled_from([{}, {"readOnly": True}, {"subPath": "a/b"}, {"mountPropagation": "None"}]))
        for index in range(len(found))
    ]
    side = {"name": "side", "image": "i", "command": ["x"]}
    pod["containers"] = draw(st.sampled_from([[main], [main, side], [side, main]]))
    return {key: value for key, value in pod.items() if value != []}


commands = (
    st.lists(st.text("abc $(){}'\"-A=/", min_size=1, max_size=10), min_size=1, max_size=3)
    | scripts.map(lambda script: ["/bin/sh", "-c", script])
    | scripts.map(lambda script: ["/bin/bash", "-c", script])
)
ENV = st.lists(
    st.fixed_dictionaries({"name": env_names | st.just("A_TOKEN"), "value": plain})
    | st.fixed_dictionaries(
        {"name": env_names, "valueFrom": st.just({"fieldRef": {"fieldPath": "status.podIP"}})}
    ),
    max_size=3,
    unique_by=lambda each: str(each["name"]),
)
OWN: dict[str, Any] = {
    "/command": commands,
    "/args": st.lists(plain, max_size=2),
    "/env": ENV,
    "/resources": st.fixed_dictionaries(
        {}, optional={part: st.fixed_dictionaries({}, optional=AMOUNTS) for part in ("limits", "requests")}
    ),
    "/ports": st.lists(
        st.fixed_dictionaries({"containerPort": st.integers(1, 65535)}, optional={"name": labels}),
        max_size=2,
        unique_by=lambda each: each["containerPort"],
    ),
    "/envFrom": objects,
    "/volumeDevices": objects,
    "/automountServiceAccountToken": st.booleans(),
    "/affinity": st.sampled_from([{}, {"podAntiAffinity": {"x": [1]}}]),
    **{f"/{rule.key}": objects for rule in keys.POD.keys if getattr(rule, "items", "") == keys.OBJECTS},
    "/metadata/name": labels,
    "/metadata/labels": st.dictionaries(labels, labels, max_size=2),
    "/metadata/annotations": st.dictionaries(labels, labels, max_size=2),
    "/metadata/generateName": labels,
    "/metadata/managedFields": objects,
    "/metadata/ownerReferences": objects,
    "/metadata/finalizers": objects,
    "/rdzvConf": objects,
    "/metrics": objects,
    "/nprocPerNode": st.sampled_from(["auto", "8", 8]),
    "/successPolicy": st.sampled_from(["", "AllWorkers"]),
}
CONTAINER = st.builds(
    lambda container, command: {"command": command, **container},
    request([rule for rule in keys.CONTAINERS.keys if rule.key not in ("name", "volumeMounts")], OWN),
    commands,
)
POD = request([rule for rule in keys.POD.keys if rule.key not in ("containers", "volumes")], OWN)
METADATA = st.builds(
    lambda metadata, name: {**metadata, "name": name}, request(keys.METADATA.keys, OWN, "/metadata"), labels
)
RUN_POLICY = request(keys.RUN_POLICY.keys, OWN)
OF_KINDS = request(keys.OF_KINDS, OWN)


@st.composite
def kubeflow_values(draw: st.DrawFn) -> dict[str, Any]:
    """A manifest that is accepted, with keys of the person's own."""
    kind = draw(st.sampled_from(KINDS))
    specs = {}
    for name in draw(_groups(kind)):
        replicas = 1 if name in kind.single else draw(st.integers(1, 9))
        policy = draw(st.sampled_from([None, "Never", "OnFailure", "Always", "ExitCode"]))
        specs[draw(st.sampled_from([name, name.lower()]))] = {
            **draw(st.sampled_from([{}, {"replicas": replicas}])),
            **({"restartPolicy": policy} if policy else {}),
            "template": {"spec": draw(_pods(kind))},
        }
    version = draw(st.sampled_from([V1, V2BETA1])) if kind.name == "MPIJob" else V1
    spec = {**draw(OF_KINDS), "runPolicy": draw(RUN_POLICY), kind.specs: specs}
    return {"apiVersion": version, "kind": kind.name, "metadata": draw(METADATA), "spec": spec}


@st.composite
def kubeflow_texts(draw: st.DrawFn) -> str:
    """Such a manifest in YAML or JSON, with comments, alone or behind another document."""
    value = draw(kubeflow_values())
    if draw(st.integers(0, 3)) == 0:
        return untidy(json.dumps(value, indent=2), draw)
    text = write(value)
    before = draw(st.sampled_from(["", "# mine\n", "---\n", "kind: Namespace\nmetadata: {name: n}\n---\n"]))
    return before + text + draw(st.sampled_from(["", "# the end\n"]))
