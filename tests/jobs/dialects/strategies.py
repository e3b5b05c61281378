"""What hypothesis makes of JSON texts, job files and JobSpecs."""

import json
from typing import Any, Final, Literal

from hypothesis import strategies as st

from jobs.dialects.openpai_v1 import keys
from jobs.spec import (
    CompletionPolicy,
    JobSpec,
    Mount,
    MountPurpose,
    Port,
    RegistryAuth,
    Resources,
    RetryPolicy,
    RoleSpec,
    SecretRef,
)

SURROGATES: Final[tuple[Literal["Cs"]]] = ("Cs",)
LETTERS = "ABCabcXYZxyz0189"
texts = st.text(st.characters(exclude_categories=SURROGATES, exclude_characters="\0"), max_size=30)
json_keys = st.text(st.characters(categories=("L", "N", "P", "Zs"), exclude_characters="\0"), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts
values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(json_keys, inner, max_size=4),
    max_leaves=12,
)


def names(more: str = "._~") -> st.SearchStrategy[str]:
    return st.text(LETTERS + more, min_size=1, max_size=12)


env_names = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: not name.endswith(("TOKEN", "PASSWORD", "SECRET", "KEY", "PWD", "PASSWD", "CREDENTIAL"))
)
plain_values = texts.filter(lambda value: not value.startswith("$SECRET:"))
uris = st.sampled_from(["hdfs://nn:9000/data", "$PAI_DEFAULT_FS_URI/code", "/mnt/x y", "数据"])
commands = st.text(
    st.characters(exclude_categories=SURROGATES, exclude_characters="\0"), min_size=1, max_size=40
)
counts = st.integers(1, 50)


@st.composite
def v1_specs(draw: st.DrawFn) -> JobSpec:
    """Any JobSpec that OpenPAI v1 can say in full."""
    image, gpu_type, rdma = draw(texts.filter(bool)), draw(texts), draw(st.booleans())
    role_names = draw(st.lists(names(), min_size=1, max_size=4, unique=True))
    roles = tuple(draw(_role(name, image, gpu_type, rdma)) for name in role_names)
    env = draw(st.dictionaries(env_names, plain_values, max_size=4))
    secret = draw(st.dictionaries(env_names, names("._-").map(lambda name: SecretRef(name=name)), max_size=2))
    auth = draw(st.none() | uris)
    return JobSpec(
        name=draw(names("-._~")),
        roles=roles,
        env={name: value for name, value in env.items() if name not in secret},
        secret_env=secret,
        registry_auth=RegistryAuth(file_uri=auth) if auth else None,
        mounts=draw(_mounts()),
        quota=draw(texts),
        retry=draw(_retries()),
        keep_failed_s=draw(st.sampled_from([0, keys.KEEP_FAILED_S])),
    )


@st.composite
def _role(draw: st.DrawFn, name: str, image: str, gpu_type: str, rdma: bool) -> RoleSpec:
    replicas, memory = draw(counts), draw(st.integers(1, 2**20))
    labels = draw(st.lists(names(), max_size=3, unique=True))
    up_to = st.none() | st.integers(1, replicas)
    return RoleSpec(
        name=name,
        replicas=replicas,
        command=draw(commands),
        image=image,
        resources=Resources(
            cpu_milli=draw(counts) * 1000,
            memory_mib=memory,
            shm_mib=draw(st.integers(0, memory) | st.just(64)),
            disk_mib=draw(st.integers(0, 100)) * 1024,
            gpus=draw(st.integers(0, 8)),
            gpu_type=gpu_type,
            rdma=rdma,
        ),
        ports=tuple(
            Port(label=label, begin_at=draw(st.integers(0, 65535)), count=draw(counts)) for label in labels
        ),
        completion=CompletionPolicy(min_failed=draw(up_to), min_succeeded=draw(up_to)),
    )


@st.composite
def _mounts(draw: st.DrawFn) -> tuple[Mount, ...]:
    data, code = draw(st.none() | uris), draw(st.none() | uris)
    output = draw(st.just(keys.DEFAULT_OUTPUT) | uris)
    mounts = [(MountPurpose.DATA, data), (MountPurpose.OUTPUT, output), (MountPurpose.CODE, code)]
    return tuple(
        Mount(purpose=purpose, uri=uri, read_only=purpose is MountPurpose.CODE)
        for purpose, uri in mounts
        if uri
    )


def _retries() -> st.SearchStrategy[RetryPolicy]:
    return st.integers(0, 9).map(lambda limit: RetryPolicy(limit=limit)) | st.sampled_from(
        [
            RetryPolicy(limit=None),
            RetryPolicy(limit=None, on_success=True, fancy=False),
        ]
    )


def untidy(text: str, draw: st.DrawFn) -> str:
    """JSON `text` as people leave it: comments, trailing commas, odd spaces, another line end."""
    lines = text.split("\n")
    comment = draw(st.sampled_from(["", " // a note", " /* a\n note */", "\u00a0"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    trailing = draw(st.booleans())
    made = []
    for index, line in enumerate(lines):
        before_close = index + 1 < len(lines) and lines[index + 1].strip()[:1] in ("}", "]")
        comma = "," if trailing and before_close and line.strip()[-1:] not in ("{", "[", ",") else ""
        made.append(line + comma + comment)
    return draw(st.sampled_from(["", "\ufeff"])) + end.join(made)


@st.composite
def v1_texts(draw: st.DrawFn) -> str:
    """A job file of OpenPAI v1 with keys of the person's own, more or less well formed."""
    extras = st.dictionaries(json_keys.filter(lambda key: key not in KNOWN), values, max_size=3)
    job: dict[str, Any] = {
        "jobName": draw(names("-._~")),
        "image": draw(texts.filter(bool)),
        **draw(extras),
        "taskRoles": [
            {"name": name, "command": draw(commands), **draw(_some_keys()), **draw(extras)}
            for name in draw(st.lists(names(), min_size=1, max_size=3))
        ],
        "jobEnvs": draw(st.dictionaries(env_names, values, max_size=4)),
    }
    return untidy(json.dumps(job, ensure_ascii=draw(st.booleans()), indent=2), draw)


def _some_keys() -> st.SearchStrategy[dict[str, Any]]:
    port = st.fixed_dictionaries({"label": names()}, optional={"beginAt": st.integers(-1, 65535)})
    return st.fixed_dictionaries(
        {},
        optional={
            "taskNumber": st.integers(1, 9) | st.just("2") | st.just(0),
            "cpuNumber": st.integers(-1, 9) | st.just(2.0),
            "memoryMB": st.integers(1, 9000),
            "shmMB": st.just(1) | st.just("0"),
            "gpuNumber": st.integers(-1, 8),
            "storageGB": st.integers(0, 50),
            "minFailedTaskCount": st.none() | st.just(1),
            "minSucceededTaskCount": st.none() | st.just(1),
            "portList": st.lists(port, max_size=2),
        },
    )


KNOWN = {
    *(key.key for key in keys.JOB),
    *(key.key for key in keys.TASK_ROLES.keys),
    "protocolVersion",
}
