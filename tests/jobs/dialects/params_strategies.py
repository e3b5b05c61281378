"""Parameter files of DLC's command line, and JobSpecs that they can say, made by hypothesis."""

from typing import Any

from hypothesis import strategies as st

from jobs.dialects.dlc.completion import CHIEF_WORKER, Participant, Success, decide_completion
from jobs.dialects.dlc.job_types import JOB_TYPES, JobType
from jobs.dialects.dlc.roles import known_amounts
from jobs.dialects.dlc_params import shapes
from jobs.dialects.dlc_params.keys import COMMON, PARAMS, ROLES
from jobs.dialects.dlc_params.shapes import BLANKS
from jobs.spec import (
    CodeSource,
    FaultTolerance,
    Idle,
    JobSpec,
    Mount,
    Network,
    Requirements,
    Reservation,
    Resources,
    RoleSpec,
    SecretRef,
)
from tests.jobs.dialects.from_keys import amounts, words
from tests.jobs.dialects.strategies import commands, counts, env_names, names

TYPES = JOB_TYPES[:9]
_plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n@$,"), max_size=20)
line = _plain.map(lambda text: text.strip(BLANKS))
values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n@$"), max_size=12)
libraries = st.lists(st.sampled_from(["numpy==1.16.1", "torch>=1,<2", "x"]), max_size=2).map(tuple)
pair_values = values.filter(lambda text: text == text.strip(BLANKS))
option_names = st.text("abcXYZ", min_size=1, max_size=8)
secrets = names("._-").map(lambda name: SecretRef(name=name))


def _kinds(job_type: JobType) -> list[str]:
    known = [kind for kind, _count in ROLES.values()]
    return [kind for kind in known if not job_type.roles or job_type.role(kind)]


@st.composite
def params_specs(draw: st.DrawFn) -> JobSpec:
    """Any JobSpec that a parameter file can say in full."""
    job_type = draw(st.sampled_from(TYPES))
    command = draw(commands)
    kinds = draw(st.lists(st.sampled_from(_kinds(job_type)), min_size=1, max_size=3, unique=True))
    roles = [draw(_role(kind, command)) for kind in kinds]
    parts = tuple(Participant(role.name, role.replicas) for role in roles)
    policy = draw(st.sampled_from(["", CHIEF_WORKER])) if job_type.servers else ""
    completions = decide_completion(job_type, Success(policy, parts))
    secret = draw(st.dictionaries(env_names, secrets, max_size=1))
    env = draw(st.dictionaries(env_names, pair_values, max_size=3))
    known = [Mount(id=name) for name in draw(st.lists(words, max_size=2))]
    direct = [
        Mount(uri=uri, path=path)
        for uri, path in draw(st.lists(st.tuples(words.map("oss://{}/".format), words), max_size=2))
    ]
    arguments = draw(line)
    return JobSpec(
        name=draw(names("_.-")),
        tags=draw(st.dictionaries(option_names, pair_values, max_size=2)),
        framework=job_type.framework,
        roles=tuple(
            role.model_copy(update={"completion": completion})
            for role, completion in zip(roles, completions, strict=True)
        ),
        env={name: value for name, value in env.items() if name not in secret},
        secret_env=secret,
        mounts=(*known, *direct),
        code=draw(st.none() | st.builds(CodeSource, id=words, branch=line, commit=line)),
        requirements=draw(st.builds(Requirements, packages=libraries, directory=line)),
        workspace=draw(line),
        quota=draw(line),
        priority=draw(st.none() | st.integers(1, 9)),
        time_limit_s=draw(st.none() | counts.map(lambda minutes: minutes * 60)),
        idle=draw(st.none() | st.sampled_from(Idle)),
        reserve_after=draw(st.none() | _reservations()),
        fault_tolerance=FaultTolerance(enabled=bool(arguments), arguments=arguments),
        network=draw(
            st.builds(
                Network,
                vpc=line,
                switch=line,
                security_group=line,
                cidrs=st.lists(words, max_size=2).map(tuple),
                gateway=st.sampled_from(["", "eth0", "eth1"]),
            )
        ),
        framework_options=draw(st.dictionaries(option_names, pair_values, max_size=2)),
    )


@st.composite
def _role(draw: st.DrawFn, kind: str, command: str) -> RoleSpec:
    if draw(st.booleans()):
        resources = Resources.model_validate(known_amounts(draw(words)))
    else:
        resources = Resources(
            cpu_milli=draw(st.integers(1, 10**6)),
            memory_mib=draw(st.integers(1, 2**20)),
            shm_mib=draw(st.integers(0, 2**20)),
            gpus=draw(st.integers(0, 8)),
            gpu_type=draw(line),
        )
    replicas = 1 if kind == "Chief" else draw(counts)
    return RoleSpec(name=kind, replicas=replicas, command=command, image=draw(line), resources=resources)


def _reservations() -> st.SearchStrategy[Reservation]:
    return st.builds(
        Reservation,
        seconds=counts.map(lambda minutes: minutes * 60),
        when=st.sampled_from(["always", "failed", "succeeded"]),
    )


OWN = {
    "name": names("_.-"),
    "command": line.filter(bool),
    "data_sources": st.lists(words, max_size=2).map(",".join),
    "data_source_uris": st.sampled_from(
        ["oss://b.ep/p/::/mnt/x", "oss://u:pw@b/::/a,nas://n/::/b", "oss://b"]
    ),
    "code_source": words,
    "envs": st.sampled_from(["A=1", "A=1,B=x=y", "A=1,2,3", '"A=1,2",B=3', "HF_TOKEN=abc,B=1", "A-B=1"]),
    "tags": st.sampled_from(["a=1", '{"a": 1}', ""]),
    "advanced_settings": st.sampled_from(["customPortList=1;2-3", "RayRedisPassword=pw", "x=1,y=2"]),
    "priority": st.integers(1, 9).map(str),
    "success_policy": st.sampled_from(["", "AllWorkers", "ChiefWorker"]),
    "oversold_type": st.sampled_from(["AcceptQuotaOverSold", "ForceQuotaOverSold"]),
    "job_reserved_policy": st.sampled_from(["Always", "OnFailure", "OnSucceed"]),
    "driver": line,
}


def _value(param: Any) -> st.SearchStrategy[str]:
    if param.key in OWN:
        return OWN[param.key]
    if param.key.endswith(("_cpu", "_gpu", "_memory")):
        return amounts(param.rule).map(str)
    if param.shape is shapes.NUMBER:
        return st.integers(0, 9).map(str)
    if param.shape is shapes.FLAG:
        return st.sampled_from(["true", "false"])
    return line


@st.composite
def params_texts(draw: st.DrawFn) -> str:
    """A parameter file that is accepted, with keys of the person's own, comments and odd blanks."""
    job_type = draw(st.sampled_from(TYPES))
    kinds = draw(st.lists(st.sampled_from(_kinds(job_type)), min_size=1, max_size=2, unique=True))
    count_of = dict(ROLES.values())
    entries = {"name": draw(OWN["name"]), "command": draw(OWN["command"])}
    entries |= {count_of[kind]: "true" if kind == "Chief" else str(draw(counts)) for kind in kinds}
    ours = [
        param
        for param in PARAMS
        if param in COMMON or (param.to.split("/")[2] in kinds and not param.to.endswith("PodCount"))
    ]
    for param in draw(st.lists(st.sampled_from(ours), max_size=8, unique_by=lambda param: param.key)):
        entries[param.key] = draw(_value(param))
    if entries.keys() & {"code_branch", "code_commit"}:
        entries["code_source"] = draw(words)
    entries |= draw(st.dictionaries(st.sampled_from(["my_key", "api_token", "x.y"]), line, max_size=2))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    equals = draw(st.sampled_from(["=", " = ", "= "]))
    lines = [f"{key}{equals}{value}" for key, value in draw(st.permutations([*entries.items()]))]
    lines.insert(0, f"# dlc submit {job_type.name.lower()} --job_file x")
    lines += draw(st.sampled_from([[], ["", "# the end"], ["   "]]))
    return draw(st.sampled_from(["", "\ufeff"])) + end.join(lines) + draw(st.sampled_from(["", end]))
