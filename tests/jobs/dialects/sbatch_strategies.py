"""Scripts for sbatch, and JobSpecs that one can say, made by hypothesis."""

from hypothesis import strategies as st

from jobs.dialects.sbatch.header import SPACES
from jobs.dialects.sbatch.header import quote as written
from jobs.dialects.sbatch.options import OPTIONS, Takes
from jobs.dialects.sbatch.script import BASH, GUARD
from jobs.spec import (
    CompletionPolicy,
    EndSignal,
    Framework,
    JobSpec,
    Mount,
    NodeChoice,
    Resources,
    RetryPolicy,
    RoleSpec,
    SecretRef,
)
from tests.jobs.dialects.from_keys import words
from tests.jobs.dialects.strategies import commands, counts, env_names, names, plain_values

line = st.text(
    st.characters(exclude_categories=["Cs", "Cf", "Zs", "Zl", "Zp"], exclude_characters="\0\r\n\x85"),
    max_size=12,
)
letters = st.text("abcXYZ019 '\"\\#=,:", max_size=10)
hashes = st.sampled_from(["# a note\n", "\n", "#SBATCH --nodes=9\n", "  # x\n", "##SBATCH -N2\n"])
bodies = st.builds(
    lambda before, command: "".join(before) + command, st.lists(hashes, max_size=2), commands
).filter(lambda text: text.strip() and "\r" not in text and "srun" not in text)
secrets = names("._-").map(lambda name: SecretRef(name=name))
images = st.sampled_from(
    ["", "pytorch/pytorch:2.4", "nvcr.io/nvidia/pytorch:24.01-py3", "/images/x.sqsh", "localhost:5000/a"]
)
node_lists = st.lists(st.text("abc019-", min_size=1, max_size=6), max_size=3, unique=True).map(tuple)
features = st.dictionaries(words, st.just("true"), max_size=2)
interpreters = st.sampled_from(
    [BASH, "/bin/bash -l", "/bin/sh", "/usr/bin/env python3", "/usr/bin/env -S a b"]
)


@st.composite
def sbatch_specs(draw: st.DrawFn) -> JobSpec:
    """Any JobSpec that a script can say in full: Slurm's own, one process, or several roles."""
    kind = draw(st.sampled_from(["process", "slurm", "roles"]))
    replicas = 1 if kind == "process" else draw(st.integers(2, 20))
    several = st.lists(names(), min_size=1, max_size=3, unique=True)
    role_names = draw(several) if kind == "roles" else ["main"]
    roles = tuple(draw(_role(name, replicas, by_task=kind == "roles")) for name in role_names)
    never = draw(node_lists)
    command = draw(bodies)
    if kind != "roles":
        roles = tuple(role.model_copy(update={"command": command}) for role in roles)
    env = draw(st.dictionaries(env_names, plain_values, max_size=3))
    secret = draw(st.dictionaries(env_names, secrets, max_size=1))
    return JobSpec(
        name=draw(line.filter(bool)),
        description=draw(line),
        framework=Framework.SLURM if kind == "slurm" else None,
        roles=tuple(
            role.model_copy(update={"nodes": role.nodes.model_copy(update={"never": never})})
            for role in roles
        ),
        env={name: value for name, value in env.items() if name not in secret},
        secret_env=secret,
        mounts=() if kind == "roles" else draw(_mounts()),
        quota=draw(line),
        retry=RetryPolicy(fancy=draw(st.booleans())),
        time_limit_s=draw(st.none() | counts.map(lambda minutes: minutes * 60)),
        end_signal=draw(st.none() | _signals()),
        hold=draw(st.booleans()),
        not_before=draw(st.sampled_from(["", "2027-01-01T00:00:00Z"])),
    )


@st.composite
def _role(draw: st.DrawFn, name: str, replicas: int, *, by_task: bool) -> RoleSpec:
    cpus, gpus = draw(st.integers(1, 64)), draw(st.integers(0, 8))
    memory = draw(st.integers(1, 2**20))
    return RoleSpec(
        name=name,
        replicas=replicas,
        command=draw(bodies),
        image=draw(images),
        resources=Resources(
            cpu_milli=cpus * 1000,
            memory_mib=memory * cpus if by_task else memory,
            gpus=gpus,
            gpu_type=draw(st.sampled_from(["", "a100", "nvidia_h100.x"])) if gpus else "",
        ),
        completion=CompletionPolicy(
            min_failed=draw(st.sampled_from([1, None])) if by_task else 1,
            min_succeeded=draw(st.sampled_from([replicas, None])) if by_task else None,
        ),
        env=draw(st.dictionaries(env_names, plain_values, max_size=2)) if by_task else {},
        nodes=NodeChoice(only=draw(node_lists)[:replicas], labels=draw(features)),
    )


def _signals() -> st.SearchStrategy[EndSignal]:
    signals = st.sampled_from(["USR1", "USR2", "INT", "HUP", "TERM"])
    return st.builds(EndSignal, signal=signals, seconds_before=st.integers(0, 65_535))


def _mounts() -> st.SearchStrategy[tuple[Mount, ...]]:
    place = st.builds(
        lambda source, target, read_only: Mount(uri=f"/{source}", path=f"/{target}", read_only=read_only),
        words,
        words,
        st.booleans(),
    )
    return st.lists(place, max_size=2).map(tuple)


VALUES: dict[str, st.SearchStrategy[str]] = {
    "nodes": st.sampled_from(["1", "2", "2-4", "1k", "1,3"]),
    "ntasks": counts.map(str),
    "ntasks-per-node": counts.map(str),
    "cpus-per-task": counts.map(str),
    "cpus-per-gpu": counts.map(str),
    "mincpus": counts.map(str),
    "ntasks-per-gpu": counts.map(str),
    "mem": st.sampled_from(["0", "16G", "480GB", "1024", "5k", "1T"]),
    "mem-per-cpu": st.sampled_from(["4G", "500"]),
    "mem-per-gpu": st.sampled_from(["32g", "100M"]),
    "gpus": st.sampled_from(["8", "a100:8", "a100:2,v100:1", "0"]),
    "gpus-per-node": st.sampled_from(["4", "a100:4"]),
    "gpus-per-task": st.sampled_from(["1", "h100:2"]),
    "gres": st.sampled_from(
        ["gpu", "gpu:2", "gpu:a100:4", "gpu:a100:1(S:0-1),nvme:1", "shard:2", "gpu:1,shard:3"]
    ),
    "tmp": st.sampled_from(["10G", "5"]),
    "constraint": st.sampled_from(["a100", "a100&ib", "a|b", "[x*2]"]),
    "nodelist": st.sampled_from(["gpu[1-3]", "n1,n2", "./hosts"]),
    "exclude": st.sampled_from(["gpu[01-02]", "n1"]),
    "time": st.sampled_from(["10", "1:30", "1:00:00", "2-12", "1-0:5", "0", "UNLIMITED"]),
    "signal": st.sampled_from(["USR1", "B:USR1@300", "10@60", "SIGTERM@90", "R:KILL@5"]),
    "begin": st.sampled_from(["now+1hour", "2027-01-01T10:00", "uts1800000000"]),
    "requeue": st.just(""),
    "export": st.sampled_from(["ALL", "NONE", "ALL,A=1", "B=2,C", "ALL,API_TOKEN=abc", "X='1,2',Y=\"it's\""]),
    "container-image": st.sampled_from(["nvcr.io#nvidia/x:1", "ubuntu", "/a.sqsh"]),
    "container-mounts": st.sampled_from(["/data:/data", "/a:/b:ro,/c", "x:/y"]),
    "job-name": letters,
}
_OTHERS = sorted(set(OPTIONS) - {"array"})  # an array has no components; test_sbatch_arrays has them


@st.composite
def _option(draw: st.DrawFn, name: str) -> str:
    """One option in any of its spellings."""
    option = OPTIONS[name]
    if option.takes is Takes.NOTHING:
        return draw(st.sampled_from([f"--{name}", *([f"-{option.letter}"] if option.letter else [])]))
    value = draw(VALUES.get(name, letters))
    if option.takes is Takes.MAYBE and not value:
        return f"--{name}"
    quote = draw(st.booleans())
    bare = written(value) or '""'
    if quote and not set(value) & set("'\\"):
        bare = f"'{value}'"
    forms = [f"--{name}={bare}"]
    if option.takes is Takes.VALUE:
        forms += [f"--{name} {bare}"]
        forms += [f"-{option.letter} {bare}"] if option.letter else []
    if option.letter and value.strip(SPACES):
        forms += [f"-{option.letter}{bare}"]
    return draw(st.sampled_from(forms))


@st.composite
def sbatch_texts(draw: st.DrawFn) -> str:
    """A script that is accepted, with options of all kinds, strangers, comments and odd spaces."""
    lines: list[str] = []
    for component in range(draw(st.integers(1, 2))):
        if component:
            lines.append(draw(st.sampled_from(["#SBATCH hetjob", "#SBATCH packjob", "#SBATCH\thetjob"])))
        chosen = draw(st.lists(st.sampled_from([*VALUES, *_OTHERS]), max_size=7))
        while chosen:
            some = [draw(_option(chosen.pop())) for _ in range(min(len(chosen), draw(st.integers(1, 2))))]
            comment = draw(st.sampled_from(["", "  # why", " "]))
            gap = draw(st.sampled_from([" ", "  ", "\t", ""]))
            lines.append(f"#SBATCH{gap}{' '.join(some)}{comment}")
            lines += draw(st.sampled_from([[], [], ["# a comment"], ["", "##SBATCH --nodes=7"]]))
        lines += draw(st.sampled_from([[], [], ["#SBATCH --site-option=x"]]))
    body = draw(st.sampled_from(["", "\n", "# then\n"])) + draw(
        bodies.filter(lambda text: not _misread(text))
    )
    end = draw(st.sampled_from(["", "\n"]))
    start = draw(st.sampled_from(["", "\ufeff"]))
    first = f"{start}#!{draw(interpreters)}"
    return "\n".join([first, *lines, f"{body}{end}"])


def _misread(text: str) -> bool:
    """Whether a body begins with what would be an option or a guard."""
    return "#SBATCH" in text or text.startswith(GUARD)
