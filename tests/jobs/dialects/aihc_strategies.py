"""AIHC bodies, and JobSpecs that AIHC can say, made by hypothesis."""

import json
from typing import Any

from hypothesis import strategies as st

from jobs.dialects.aihc import keys
from jobs.dialects.aihc.parser import decide_completion
from jobs.dialects.aihc.resources import implied_shared
from jobs.spec import (
    FaultTolerance,
    Framework,
    JobSpec,
    Mount,
    RegistryAuth,
    Reservation,
    Resources,
    RoleSpec,
    SecretRef,
    Software,
    TensorBoard,
)
from tests.jobs.dialects.from_keys import plain, request, words
from tests.jobs.dialects.strategies import commands, counts, env_names, names, untidy

secrets = names("._-").map(lambda name: SecretRef(name=name))
option_names = st.text("abcXYZ", min_size=1, max_size=8)
gpu_types = st.sampled_from(["a800_80g_cgpu", "v100_32g_cgpu", "hpas"])
paths = words.map("/{}".format)
uris = (
    st.builds("{}://{}{}".format, st.sampled_from(["pfs", "cfs", "rapidfs"]), words, st.just("") | paths)
    | paths.map("file://{}".format)
    | words.map("bos://{}/x".format)
)
options = st.fixed_dictionaries({}, optional={"medium": plain, "sizeLimit": plain})


@st.composite
def aihc_specs(draw: st.DrawFn) -> JobSpec:
    """Any JobSpec that AIHC can say in full."""
    framework = draw(st.sampled_from([Framework.PYTORCH, Framework.TENSORFLOW, Framework.MPI]))
    several = framework is Framework.TENSORFLOW
    kinds = draw(
        st.lists(st.sampled_from(keys.ROLES), min_size=1, max_size=3, unique=True)
        if several
        else st.just(["Worker"])
    )
    command = draw(commands)
    auth = draw(st.none() | st.builds(RegistryAuth, username=words, password=st.none() | secrets))
    env = draw(st.dictionaries(env_names, plain, max_size=3))
    secret = draw(st.dictionaries(env_names, secrets, max_size=1))
    env = {name: value for name, value in env.items() if name not in secret}
    roles = [draw(_role(kind, command)) for kind in kinds]
    if len(roles) > 1:  # variables of one role alone; what all have is the job's
        own = {
            f"OWN_{name}": value
            for name, value in draw(st.dictionaries(env_names, plain, max_size=2)).items()
        }
        roles[-1] = roles[-1].model_copy(update={"env": own})
    policies = decide_completion({role.name: role.replicas for role in roles})
    return JobSpec(
        name=draw(names("-._")),
        tags=draw(st.dictionaries(option_names, plain, max_size=2)),
        framework=framework,
        roles=tuple(role.model_copy(update={"completion": policies[role.name]}) for role in roles),
        env=env,
        secret_env=secret,
        registry_auth=auth,
        mounts=tuple(draw(st.lists(_mounts(), max_size=2))),
        quota=draw(plain),
        priority=draw(st.sampled_from([None, 2, 5, 8])),
        software=draw(st.builds(Software, bccl=st.booleans())),
        fault_tolerance=draw(st.builds(FaultTolerance, enabled=st.booleans(), arguments=plain)),
        reserve_after=draw(
            st.none() | st.integers(1, 99_999).map(lambda minutes: Reservation(seconds=60 * minutes))
        ),
        tensorboard=draw(st.none() | st.builds(TensorBoard, enabled=st.booleans(), log_path=plain)),
    )


@st.composite
def _role(draw: st.DrawFn, kind: str, command: str) -> RoleSpec:
    memory, rdma = draw(st.integers(1, 2**20)), draw(st.booleans())
    gpus = draw(st.integers(0, 8))
    return RoleSpec(
        name=kind,
        replicas=draw(counts),
        command=command,
        image=draw(plain),
        resources=Resources(
            cpu_milli=draw(st.integers(1, 10**6)),
            memory_mib=memory,
            shm_mib=draw(st.just(implied_shared(rdma, memory)) | st.integers(0, 2**20)),
            gpus=gpus,
            gpu_type=draw(gpu_types | st.just("")),
            rdma=rdma,
        ),
    )


def _mounts() -> st.SearchStrategy[Mount]:
    by_id = st.builds(Mount, id=words, path=plain, read_only=st.booleans(), options=options)
    by_uri = st.builds(Mount, uri=uris, path=plain, read_only=st.booleans(), options=options)
    return by_id | by_uri


quantities = st.integers(1, 512) | st.integers(1, 512).map(str) | st.sampled_from(["16GB", "0.5", 1.5])
resource_lists = st.lists(
    st.sampled_from(
        ["cpu", "memory", "sharedMemory", "baidu.com/a800_80g_cgpu", "baidu.com/a800_80g_cgpu_memory", "x/y"]
    ),
    max_size=5,
    unique=True,
)


@st.composite
def _resources(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for name in draw(resource_lists):
        whole = "/" in name or name == "cpu"
        found.append({"name": name, "quantity": draw(st.integers(1, 8) if whole else quantities)})
    return found + draw(st.sampled_from([[], [{"name": "rdma/hca", "quantity": "1"}]]))


OWN: dict[str, st.SearchStrategy[Any]] = {
    "/name": names("-._"),
    "/command": commands,
    "/labels/key": option_names,
    "/labels/value": plain,
    "/datasources/type": st.sampled_from([*keys.TYPE.meanings, "emptydir"]),
    "/datasources/name": words,
    "/datasources/sourcePath": paths,
    "/retentionPeriod": st.sampled_from(["", "1m", "90m", "1h", "1d", "0m"]),
    "/jobSpec/resources": _resources(),
    "/jobSpec/envs": st.lists(
        st.fixed_dictionaries({"name": env_names | st.just("MY_TOKEN"), "value": plain | st.integers(0, 9)}),
        max_size=3,
    ),
    "/jobSpec/imageConfig/password": words,
}
JOB = request([rule for rule in keys.JOB if rule.key not in {"jobSpec", "command", "jobType"}], OWN)
ROLE = st.builds(
    lambda spec, image: {"image": image, **spec},
    request([rule for rule in keys.ROLE if rule.key != "command"], OWN, "/jobSpec"),
    words,
)


@st.composite
def aihc_values(draw: st.DrawFn) -> dict[str, Any]:
    """Any body that AIHC accepts, with keys of the person's own, in v1 or v2, spelled somehow."""
    job_type = draw(st.sampled_from(["PyTorchJob", "TFJob", "MPIJob", "pytorch"]))
    spec = draw(ROLE)
    if draw(st.booleans()):
        kinds = draw(st.lists(st.sampled_from(keys.ROLES), min_size=1, max_size=3, unique=True))
        lower = draw(st.booleans())
        spec = {kind.lower() if lower else kind: draw(ROLE) for kind in kinds}
    body = draw(JOB)
    if draw(st.booleans()):
        command = draw(commands)
        roles = (
            [spec] if "Worker" not in spec and "worker" not in spec and not _is_map(spec) else spec.values()
        )
        for role in roles:
            role["command"] = command
        return _spelled(draw, {**body, "jobFramework": job_type, "jobSpec": spec})
    return _spelled(draw, {**body, "jobType": job_type, "command": draw(commands), "jobSpec": spec})


def _is_map(spec: dict[str, Any]) -> bool:
    return bool({name.lower() for name in keys.ROLES} & {key.lower() for key in spec})


def _spelled(draw: st.DrawFn, body: dict[str, Any]) -> dict[str, Any]:
    for rule in (keys.QUEUE, keys.DATA_SOURCES):
        if rule.key in body:
            body[draw(st.sampled_from([rule.key, *rule.aliases]))] = body.pop(rule.key)
    return body


@st.composite
def aihc_texts(draw: st.DrawFn) -> str:
    """Such a body as people leave it."""
    value = draw(aihc_values())
    return untidy(json.dumps(value, ensure_ascii=draw(st.booleans()), indent=2), draw)
