"""DLC requests, and JobSpecs that DLC can say, made by hypothesis."""

import json
from typing import Any

from hypothesis import strategies as st

from jobs.dialects.dlc import keys
from jobs.dialects.dlc.completion import CHIEF_WORKER, Participant, Success, decide_completion
from jobs.dialects.dlc.job_types import BY_NAME, JOB_TYPES, JobType
from jobs.dialects.dlc.roles import known_amounts
from jobs.spec import (
    Bid,
    Check,
    CodeSource,
    FaultTolerance,
    Idle,
    JobSpec,
    Mount,
    Network,
    NodeChoice,
    PodContainer,
    Port,
    RegistryAuth,
    Requirements,
    Reservation,
    Resources,
    RoleSpec,
    SecretRef,
    Visibility,
)
from tests.jobs.dialects.from_keys import member, plain, request, words
from tests.jobs.dialects.strategies import commands, counts, env_names, names, untidy, values

FRAMEWORKS = JOB_TYPES[:9]
option_names = st.text("abcXYZ", min_size=1, max_size=8)
node_names = st.lists(words, max_size=2).map(tuple)
pod_containers = st.lists(
    st.builds(
        PodContainer,
        name=plain,
        image=plain,
        command=st.lists(plain, max_size=2).map(tuple),
        args=st.lists(plain, max_size=2).map(tuple),
        working_dir=plain,
        env=st.dictionaries(env_names, plain, max_size=2),
    ),
    max_size=2,
).map(tuple)
secrets = names("._-").map(lambda name: SecretRef(name=name))
arns = st.builds("acs:ram::{}:role/{}".format, st.integers(1, 10**6), words)


def _roles_of(job_type: JobType) -> st.SearchStrategy[list[str]]:
    known = [*job_type.roles] or ["Launcher", "Worker", "Node"]
    more = words.map("Worker-{}".format) if job_type.more_workers else st.sampled_from(known)
    return st.lists(st.sampled_from(known) | more, min_size=1, max_size=3, unique_by=str.lower)


def _bid_of(limit: str, value: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"SpotStrategy": st.just("SpotWithPriceLimit"), limit: value})


OURS = st.fixed_dictionaries(
    {},
    optional={
        "hold": st.booleans(),
        "not_before": plain,
        "priority": st.integers(1, 9) | st.none(),
        "retry": st.fixed_dictionaries({}, optional={"limit": st.none() | st.integers(0, 9), "own": plain}),
        "after": st.lists(st.fixed_dictionaries({"job": words}, optional={"own": plain}), max_size=2),
        "time_limit_s": st.none() | st.integers(1, 10**6),
        "env": st.dictionaries(env_names, plain | st.none(), max_size=2),
        "tags": st.dictionaries(env_names, plain | st.none(), max_size=2),
        "software": st.fixed_dictionaries({}, optional={"modules": st.just(["gcc/13"]), "venv": plain}),
        "mounts": st.lists(st.fixed_dictionaries({"uri": words}, optional={"own": plain}), max_size=2),
        "roles": st.dictionaries(
            st.sampled_from(["Worker", "Master", "nobody"]),
            st.fixed_dictionaries({}, optional={"name": words, "env": st.just({"A": "1"}), "own": plain}),
            max_size=1,
        ),
        "own": values,
    },
)
"""Our own object, with what nobody knows in it."""


OWN: dict[str, st.SearchStrategy[Any]] = {
    "/DisplayName": names("_.-"),
    "/JobConsole": OURS,
    "/JobType": st.nothing(),
    "/JobSpecs": st.nothing(),
    "/UserCommand": commands,
    "/SuccessPolicy": st.sampled_from(["AllWorkers", "ChiefWorker"]),
    "/JobSpecs/SpotSpec": _bid_of("SpotDiscountLimit", st.integers(10, 90).map(lambda percent: percent / 100))
    | _bid_of("SpotPriceLimit", st.integers(1, 10**9).map(lambda micro: micro / 10**6)),
    "/JobSpecs/ImageConfig/Password": words,
    "/JobSpecs/ImageConfig/Auth": words,
    "/DataSources/DataSourceId": words,
    "/DataSources/Options": st.sampled_from(["", '{"mountType":"ossfs"}', '{"nconnect": 4}', "ro,soft"]),
    "/CodeSource/CodeSourceId": words,
    "/Envs": st.dictionaries(env_names, plain | st.integers(0, 9), max_size=3),
    "/CustomEnvs/Key": env_names,
}
"""What the table of keys does not say about the values."""


def _with(key: str, rules: Any, pointer: str) -> st.SearchStrategy[Any]:
    """An object that surely has `key`."""
    rule = next(rule for rule in rules if rule.key == key)
    both = st.tuples(request(rules, OWN, pointer), member(rule, OWN, pointer))
    return both.map(lambda pair: {**pair[0], key: pair[1]})


APART = {"JobType", "JobSpecs", "DataSources", "CodeSource", "UserCommand"}
JOB = request([rule for rule in keys.JOB if rule.key not in APART], OWN)
ROLE = request([rule for rule in keys.JOB_SPECS.keys if rule.key != "Type"], OWN, "/JobSpecs")
SOURCE = _with("DataSourceId", keys.DATA_SOURCES.keys, "/DataSources")
CODE = _with("CodeSourceId", keys.CODE_SOURCE.keys, "/CodeSource")


@st.composite
def dlc_values(draw: st.DrawFn) -> dict[str, Any]:
    """Any request that DLC accepts, with keys of the person's own."""
    job_type = draw(st.sampled_from([*BY_NAME.values()]))
    return {
        **draw(JOB),
        "JobType": job_type.name,
        "JobSpecs": [{"Type": name, **draw(ROLE)} for name in draw(_roles_of(job_type))],
        "UserCommand": draw(commands),
        "DataSources": draw(st.lists(SOURCE, max_size=2)),
        "CodeSource": draw(st.none() | CODE),
    }


@st.composite
def dlc_texts(draw: st.DrawFn) -> str:
    """Such a request as people leave it."""
    value = draw(dlc_values())
    return untidy(json.dumps(value, ensure_ascii=draw(st.booleans()), indent=2), draw)


@st.composite
def dlc_specs(draw: st.DrawFn) -> JobSpec:
    """Any JobSpec that DLC can say in full."""
    job_type = draw(st.sampled_from(FRAMEWORKS))
    types = draw(_roles_of(job_type))
    rdma, command = draw(st.booleans()), draw(commands)
    auth = draw(st.none() | _registries())
    roles = [draw(_role(name, command, rdma)) for name in types]
    parts = [Participant(role.name, role.replicas) for role in roles]
    policy = draw(st.sampled_from(["", CHIEF_WORKER])) if job_type.servers else ""
    completions = decide_completion(job_type, Success(policy, tuple(parts)))
    env = draw(st.dictionaries(env_names, plain, max_size=3))
    secret = draw(st.dictionaries(env_names, secrets, max_size=1))
    return JobSpec(
        name=draw(names("_.-")),
        description=draw(plain),
        tags=draw(st.dictionaries(option_names, plain, max_size=2)),
        framework=job_type.framework,
        roles=tuple(
            role.model_copy(update={"completion": completion})
            for role, completion in zip(roles, completions, strict=True)
        ),
        env={name: value for name, value in env.items() if name not in secret},
        secret_env=secret,
        registry_auth=auth,
        mounts=tuple(draw(st.lists(_mounts(), max_size=2))),
        code=draw(st.none() | st.builds(CodeSource, id=words, branch=plain, commit=plain, path=plain)),
        requirements=draw(
            st.builds(Requirements, packages=st.lists(plain, max_size=2).map(tuple), directory=plain)
        ),
        workspace=draw(plain),
        quota=draw(plain),
        priority=draw(st.none() | st.integers(1, 9)),
        time_limit_s=draw(st.none() | counts.map(lambda minutes: minutes * 60)),
        grace_s=draw(st.integers(0, 3600)),
        idle=draw(st.none() | st.sampled_from(Idle)),
        cpu_affinity=draw(st.booleans()),
        reserve_after=draw(st.none() | _reservations()),
        fault_tolerance=draw(st.builds(FaultTolerance, enabled=st.booleans(), arguments=plain)),
        sanity_check=draw(st.builds(Check, enabled=st.booleans(), arguments=plain)),
        network=draw(
            st.builds(
                Network,
                vpc=plain,
                switch=plain,
                security_group=plain,
                cidrs=st.lists(plain, max_size=2).map(tuple),
                gateway=st.sampled_from(["", "eth0", "eth1"]),
            )
        ),
        instance_role=draw(st.sampled_from(["", "default"]) | arns),
        visibility=draw(st.sampled_from(Visibility)),
        framework_options=draw(st.dictionaries(option_names, plain, max_size=2)),
    )


@st.composite
def _role(draw: st.DrawFn, name: str, command: str, rdma: bool) -> RoleSpec:
    ports = draw(st.lists(st.integers(1, 65535), max_size=3, unique=True))
    labels = ["default" if index == 0 else f"port-{port}" for index, port in enumerate(ports)]
    return RoleSpec(
        name=name,
        replicas=draw(counts),
        command=draw(st.just(command) | commands),
        image=draw(plain),
        resources=draw(_resources(rdma)),
        ports=tuple(Port(label=label, begin_at=port) for label, port in zip(labels, ports, strict=True)),
        bid=draw(
            st.none()
            | st.just(Bid())
            | st.integers(10, 90).map(lambda percent: Bid(discount_percent=percent))
            | st.integers(1, 10**9).map(lambda micro: Bid(price_micro=micro))
        ),
        nodes=draw(st.builds(NodeChoice, only=node_names, never=node_names)),
        init_containers=draw(pod_containers),
        sidecars=draw(pod_containers),
        shared_paths=draw(st.lists(plain, max_size=2).map(tuple)),
    )


@st.composite
def _resources(draw: st.DrawFn, rdma: bool) -> Resources:
    disk = draw(st.integers(0, 100)) * 1024
    if draw(st.booleans()):
        size = draw(st.sampled_from(["ecs.g7.xlarge", "ecs.gn6e-c12g1.3xlarge"]) | words)
        return Resources.model_validate({**known_amounts(size), "disk_mib": disk, "rdma": rdma})
    return Resources(
        cpu_milli=draw(st.integers(1, 10**6)),
        memory_mib=draw(st.integers(1, 2**20)),
        shm_mib=draw(st.integers(0, 2**20)),
        disk_mib=disk,
        gpus=draw(st.integers(0, 8)),
        gpu_type=draw(plain),
        rdma=rdma,
    )


def _registries() -> st.SearchStrategy[RegistryAuth]:
    return st.builds(RegistryAuth, registry=plain, username=words, password=st.none() | secrets)


def _mounts() -> st.SearchStrategy[Mount]:
    return st.builds(
        Mount,
        id=words,
        uri=plain,
        path=plain,
        read_only=st.booleans(),
        options=st.dictionaries(option_names, plain, max_size=2),
    )


def _reservations() -> st.SearchStrategy[Reservation]:
    return st.builds(
        Reservation,
        seconds=counts.map(lambda minutes: minutes * 60),
        when=st.sampled_from(["always", "failed", "succeeded"]),
    )
