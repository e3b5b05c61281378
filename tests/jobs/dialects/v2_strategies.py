"""What hypothesis makes of OpenPAI v2: job files, and JobSpecs that v2 can say."""

import json
from typing import Any

import yaml
from hypothesis import assume
from hypothesis import strategies as st

from jobs.dialects import documents
from jobs.dialects.document import Document
from jobs.dialects.openpai_v2 import keys
from jobs.dialects.yaml_text import source
from jobs.dialects.yaml_text.rules import JS_YAML
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
    TensorBoard,
)
from tests.jobs.dialects.strategies import counts, env_names, json_keys, plain_values, scalars, texts, values

LETTERS = "ABCabcXYZxyz0189_"
role_names = st.text(LETTERS, min_size=1, max_size=8).filter(lambda name: not name[0].isdigit())
job_names = st.text(LETTERS + "-", min_size=1, max_size=12)
secret_names = st.text(LETTERS, min_size=1, max_size=8).filter(lambda name: not name[0].isdigit())
words = texts.filter(
    lambda text: text.strip() and "<%" not in text and "$SECRET:" not in text and "@" not in text
)
commands = words.map(str.strip).filter(lambda text: bool(text) and not text.startswith("export"))
uris = st.sampled_from(["hdfs://nn:9000/data", "$PAI_DEFAULT_FS_URI/code", "/mnt/x y", "数据"])


@st.composite
def v2_specs(draw: st.DrawFn) -> JobSpec:
    """Any JobSpec that OpenPAI v2 can say in full."""
    names = draw(st.lists(role_names, min_size=1, max_size=4, unique=True))
    env = draw(st.dictionaries(env_names, plain_values.filter(_is_no_template), max_size=3))
    secret = draw(st.dictionaries(env_names, secret_names.map(lambda name: SecretRef(name=name)), max_size=2))
    return JobSpec(
        name=draw(job_names),
        description=draw(words | st.just("")),
        roles=tuple(draw(_role(name)) for name in names),
        env={name: value for name, value in env.items() if name not in secret},
        secret_env=secret,
        registry_auth=draw(_logins()),
        mounts=draw(_mounts()),
        quota=draw(words | st.just("")),
        priority=draw(st.sampled_from([None, 1, 4, 7, 9])),
        retry=draw(_retries()),
        keep_failed_s=draw(st.sampled_from([0, 60, 604800])),
        tensorboard=draw(st.none() | words.map(lambda path: TensorBoard(log_path=path))),
    )


def _is_no_template(text: str) -> bool:
    return "<%" not in text


@st.composite
def _role(draw: st.DrawFn, name: str) -> RoleSpec:
    labels = draw(st.lists(role_names, max_size=3, unique=True))
    up_to = st.none() | counts
    return RoleSpec(
        name=name,
        replicas=draw(counts),
        command=draw(commands),
        image=draw(words),
        resources=Resources(
            cpu_milli=draw(counts) * 1000,
            memory_mib=draw(st.integers(1, 2**20)),
            shm_mib=draw(st.integers(0, 2**20)),
            disk_mib=draw(st.integers(0, 2**20)),
            gpus=draw(st.integers(0, 8)),
            gpu_type=draw(st.sampled_from(["", "K80", "TITAN X"])),
            rdma=draw(st.booleans()),
        ),
        ports=tuple(
            Port(label=label, begin_at=draw(st.integers(0, 65535)), count=draw(counts)) for label in labels
        ),
        completion=CompletionPolicy(min_failed=draw(up_to), min_succeeded=draw(up_to)),
    )


@st.composite
def _logins(draw: st.DrawFn) -> RegistryAuth | None:
    if draw(st.booleans()):
        return None
    return RegistryAuth(
        registry=draw(words), username=draw(words), password=SecretRef(name=draw(secret_names))
    )


@st.composite
def _mounts(draw: st.DrawFn) -> tuple[Mount, ...]:
    data = draw(st.lists(uris, max_size=2, unique=True))
    output, code = draw(st.none() | uris), draw(st.none() | uris)
    storages = draw(st.lists(role_names, max_size=2, unique=True))
    return (
        *(Mount(uri=uri) for uri in data),
        *([Mount(purpose=MountPurpose.OUTPUT, uri=output)] if output else []),
        *([Mount(purpose=MountPurpose.CODE, uri=code, read_only=True)] if code else []),
        *(Mount(id=name, path=draw(st.sampled_from(["", f"/mnt/{name}"]))) for name in storages),
    )


def _retries() -> st.SearchStrategy[RetryPolicy]:
    return st.integers(0, 9).map(lambda limit: RetryPolicy(limit=limit)) | st.sampled_from(
        [RetryPolicy(limit=None), RetryPolicy(limit=None, on_success=True, fancy=False)]
    )


@st.composite
def v2_documents(draw: st.DrawFn) -> dict[str, Any]:
    """The value of a job file, with keys of the person's own."""
    unknown = json_keys.filter(lambda key: key not in KNOWN)
    strange = st.dictionaries(unknown, scalars, max_size=1)
    images = draw(st.lists(role_names, min_size=1, max_size=2, unique=True))
    names = draw(st.lists(role_names, min_size=1, max_size=3, unique=True))
    parameters = draw(st.dictionaries(role_names, st.integers(0, 9) | words, max_size=2))
    return {
        "protocolVersion": draw(st.sampled_from([2, "2"])),
        "name": draw(job_names),
        "type": "job",
        **draw(st.dictionaries(unknown, values, max_size=2)),
        "prerequisites": [
            *({"type": "dockerimage", "name": name, "uri": draw(words)} for name in images),
            {"type": "data", "name": "data", "uri": [draw(uris)]},
        ],
        "parameters": parameters,
        "secrets": draw(st.dictionaries(secret_names, words | st.integers(0, 9), max_size=2)),
        "taskRoles": {name: draw(_role_document(images, parameters, strange)) for name in names},
        **draw(_some_more(names)),
    }


@st.composite
def _role_document(
    draw: st.DrawFn, images: list[str], parameters: dict[str, Any], strange: st.SearchStrategy[dict[str, Any]]
) -> dict[str, Any]:
    templates = ["<% $data.uri[0] %>", *(f"<% $parameters.{name} %>" for name in parameters)]
    some = st.fixed_dictionaries(
        {},
        optional={
            "instances": st.integers(1, 9),
            "completion": st.fixed_dictionaries(
                {},
                optional={
                    "minFailedInstances": st.none() | st.integers(-1, 3),
                    "minSucceededInstances": st.none() | st.integers(-1, 3),
                },
            ),
            "taskRetryCount": st.integers(0, 2),
            "extraContainerOptions": st.fixed_dictionaries({"shmMB": st.integers(0, 99)}),
        },
    )
    ports: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {}, optional={"ports": st.just({"http": 1})}
    )
    command = st.builds(lambda one, other: f"{one} {other}", commands, st.sampled_from(templates)) | commands
    return {
        "dockerImage": draw(st.sampled_from(images)),
        "data": "data",
        "resourcePerInstance": {
            "cpu": draw(st.integers(1, 9)),
            "gpu": draw(st.integers(0, 9)),
            "memoryMB": draw(st.integers(1, 9999)),
            **draw(ports),
            **draw(strange),
        },
        "commands": draw(st.lists(command | st.just("export A=1"), min_size=1, max_size=3)),
        **draw(some),
        **draw(strange),
    }


@st.composite
def _some_more(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    before = st.lists(commands, min_size=1, max_size=2)
    deployment = {"name": "d", "taskRoles": {names[0]: {"preCommands": draw(before)}}}
    some = st.fixed_dictionaries(
        {},
        optional={
            "jobRetryCount": st.integers(0, 3),
            "contributor": words,
            "version": st.just(1.5) | words,
            "deployments": st.just([deployment]),
            "defaults": words.map(lambda name: {"virtualCluster": name}),
            "extras": st.dictionaries(json_keys, values, max_size=2),
        },
    )
    more = draw(some)
    if "deployments" in more and draw(st.booleans()):
        more["defaults"] = {"virtualCluster": draw(words), "deployment": "d"}
    return more


KNOWN = {
    *(key.key for key in keys.JOB),
    *(key.key for key in keys.TASK_ROLES.keys),
    *(key.key for key in keys.RESOURCES.keys),
    "gpuType",
}


@st.composite
def v2_texts(draw: st.DrawFn) -> str:
    """A job file as people or libraries write it: YAML in several styles, or JSON."""
    held = draw(v2_documents())
    style = draw(st.sampled_from(["block", "mixed", "json"]))
    if style == "json":
        return json.dumps(held, ensure_ascii=False, indent=2)
    text = yaml.safe_dump(
        held, allow_unicode=True, sort_keys=False, default_flow_style=None if style == "mixed" else False
    )
    assume(source.forbidden(text) is None and not any(mark in text for mark in "\x85\xa0\u2028\u2029\u3000"))
    assume(documents.read(Document(text), JS_YAML).value == held)
    comment = draw(st.sampled_from(["", "# ours\n"]))
    return comment + text.replace("taskRoles:\n", "taskRoles: # the roles\n", 1)
