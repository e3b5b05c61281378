"""How jobs are written as sbatch scripts, and scripts changed; the starter runs with an srun that is none."""

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from jobs import dialects
from jobs.dialects.document import Document
from jobs.dialects.sbatch import launcher
from jobs.spec import CompletionPolicy, JobSpec, Resources, RoleSpec

SBATCH = dialects.get("sbatch")
TEXT = """\
#!/bin/bash
# Mine.
#SBATCH -J train -p gpu --time=1:00:00   # as ever
#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=2
##SBATCH --qos=high
#SBATCH --gres=gpu:a100:4,nvme:1 --mem 64G
#SBATCH --mail-type=END

srun python train.py
"""


def changed(**update: Any) -> str:
    parsed = SBATCH.parse(Document(TEXT))
    return SBATCH.render(parsed.spec.model_copy(update=update), parsed.extras, base=Document(TEXT)).text


def resized(**update: Any) -> str:
    role = SBATCH.parse(Document(TEXT)).spec.roles[0]
    resources = role.resources.model_copy(update=update)
    return changed(roles=(role.model_copy(update={"resources": resources}),))


def difference(after: str) -> list[tuple[str, str]]:
    before = TEXT.split("\n")
    lines = after.split("\n")
    assert len(before) == len(lines)
    return [pair for pair in zip(before, lines, strict=True) if pair[0] != pair[1]]


def test_sbatch_script_changed_value_replaces_only_its_word() -> None:
    assert difference(changed(name="it's new")) == [
        (TEXT.split("\n")[2], '#SBATCH -J "it\'s new" -p gpu --time=1:00:00   # as ever')
    ]
    assert "--gres=gpu:a100:2,nvme:1 --mem 64G" in resized(gpus=2)
    assert "--gres=nvme:1 --mem 64G" in resized(gpus=0, gpu_type="")
    assert "--ntasks-per-node=4 --cpus-per-task=4" in resized(cpu_milli=16_000)
    assert "nvme:1 --mem 32G" in resized(memory_mib=32 * 1024)


def test_sbatch_script_drops_removed_options_and_appends_new_ones() -> None:
    without = changed(quota="", time_limit_s=None)
    assert "#SBATCH -J train   # as ever\n" in without
    more = changed(hold=True, description="why")
    assert "#SBATCH --mail-type=END\n#SBATCH --comment=why\n#SBATCH --hold\n\nsrun" in more
    assert SBATCH.render(SBATCH.parse(Document(TEXT)).spec, {}, base=Document(more)).text == TEXT


def test_sbatch_script_changed_command_keeps_options() -> None:
    role = SBATCH.parse(Document(TEXT)).spec.roles[0].model_copy(update={"command": "srun ./other"})
    after = changed(roles=(role,))
    assert after == TEXT.replace("srun python train.py", "srun ./other")


def test_sbatch_command_resembling_options_stays_command() -> None:
    spec = JobSpec(name="a", roles=(RoleSpec(name="main", command="#SBATCH --nodes=9\nrun"),))
    text = SBATCH.render(spec, {}).text
    assert SBATCH.parse(Document(text)).spec == spec


def test_sbatch_render_of_image_notes_pyxis_plugin_requirement() -> None:
    spec = JobSpec(name="a", roles=(RoleSpec(name="main", command="run", image="registry.example.com/a:1"),))
    rendered = SBATCH.render(spec, {})
    assert '--container-image="registry.example.com#a:1"' in rendered.text
    assert [note.code for note in rendered.notes] == ["needs_pyxis"]


def test_sbatch_render_quotes_variables_and_secret_placeholders() -> None:
    job: dict[str, Any] = {
        "name": "a",
        "roles": [{"name": "main", "command": "run"}],
        "env": {"A": "it's $(rm -rf /)\n`x`"},
        "secret_env": {"HF_TOKEN": {"name": "hf"}},
    }
    text = SBATCH.render(JobSpec.model_validate(job, strict=False), {}).text
    assert "export HF_TOKEN='$SECRET:hf'\n" in text
    filled = SBATCH.with_secrets(Document(text), {"hf": "a'b\"; exit 1 #"})
    shown = bash(filled.replace("\nrun\n", '\nprintf "%s|%s" "$A" "$HF_TOKEN"\n'))
    assert shown.stdout == "it's $(rm -rf /)\n`x`|a'b\"; exit 1 #"


def bash(text: str, path: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script to its own end; what it leaves running is ended then, as Slurm does."""
    around = {"PATH": f"{path}:{os.environ['PATH']}", **env}
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            ["bash"], stdin=PIPE, stdout=said, stderr=errors, text=True, env=around, start_new_session=True
        ) as process:
            process.communicate(text, timeout=60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        said.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess("bash", process.returncode, said.read(), errors.read())


@pytest.fixture
def slurm(tmp_path: Path) -> str:
    """An srun that runs its tasks one after the other here, and what else the starter calls."""
    (tmp_path / "srun").write_text(
        """#!/bin/bash
tasks=1
while [[ $1 == --* ]]; do
  [[ $1 == --ntasks=* ]] && tasks=${1#*=}
  shift
done
worst=0
for ((task = 0; task < tasks; task++)); do
  SLURM_PROCID=$task "$@" || worst=$?
done
exit "$worst"
"""
    )
    (tmp_path / "scontrol").write_text('#!/bin/bash\necho "$3" | cut -d, -f1\n')
    for name in ("srun", "scontrol"):
        (tmp_path / name).chmod(0o755)
    return str(tmp_path)


def started(slurm: str, roles: tuple[RoleSpec, ...]) -> subprocess.CompletedProcess[str]:
    spec = JobSpec(name="a", roles=roles)
    text = SBATCH.render(spec, {}).text
    assert SBATCH.parse(Document(text)).spec == spec
    env = {"SLURM_JOB_ID": "7", "SLURM_HET_SIZE": str(len(roles)) if len(roles) > 1 else ""}
    for index, role in enumerate(roles):
        end = f"_HET_GROUP_{index}" if len(roles) > 1 else ""
        env |= {f"SLURM_NTASKS{end}": str(role.replicas), f"SLURM_JOB_NODELIST{end}": f"node{index},other"}
    return bash(text, slurm, **env)


def test_launcher_ranks_start_at_master_and_use_its_node_address(slurm: str) -> None:
    show = 'echo "$NAME $RANK/$WORLD_SIZE $MASTER_ADDR"'
    roles = (
        RoleSpec(name="Worker", replicas=2, command=show, env={"NAME": "the worker's"}),
        RoleSpec(name="Master", command=show, env={"NAME": "m"}),
    )
    done = started(slurm, roles)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "m 0/3 node1",
        "the worker's 1/3 node1",
        "the worker's 2/3 node1",
    ]


def test_launcher_role_fails_job_according_to_completion_policy(slurm: str) -> None:
    good = RoleSpec(name="good", command="true")
    bad = RoleSpec(name="bad", command="exit 7")
    assert started(slurm, (good, bad)).returncode == 7
    quiet = bad.model_copy(update={"completion": CompletionPolicy(min_failed=None)})
    assert started(slurm, (good, quiet)).returncode == 0


def test_launcher_role_with_success_policy_ends_job(slurm: str) -> None:
    chief = RoleSpec(name="chief", command="true", completion=CompletionPolicy(min_succeeded=1))
    server = RoleSpec(name="ps", command="read -r never < <(sleep 30)")
    assert started(slurm, (server, chief)).returncode == 0


def test_launcher_starts_all_replicas_of_role_with_one_srun(slurm: str) -> None:
    role = RoleSpec(name="w", replicas=3, command='echo "$RANK"', resources=Resources(cpu_milli=2000))
    assert started(slurm, (role,)).stdout == "0\n1\n2\n"


def test_sbatch_parser_reads_script_of_earlier_release() -> None:
    roles = (RoleSpec(name="a", command="true"), RoleSpec(name="b", command="false"))
    text = SBATCH.render(JobSpec(name="j", roles=roles), {}).text
    earlier = text.replace(launcher.PREAMBLE, launcher.EARLIER)
    assert earlier != text
    assert [role.command for role in SBATCH.parse(Document(earlier)).spec.roles] == ["true", "false"]
