"""The script that is shown beforehand, run by hand with plain sbatch; and scripts that came as job files."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs import dialects
from jobs.backends.base import MASK
from jobs.dialects.document import Document
from jobs.spec import CodeSource, Mount, SecretRef
from jobs.states import State
from tests.jobs.backends.benches import log_of, role, wait_until_over
from tests.jobs.backends.slurm_bench import Releasing, SlurmBench
from tests.waiting import wait_for


def shown(bench: SlurmBench, *roles: object, **spec: Any) -> str:
    return bench.backend.render(bench.submission(*roles, **spec)).roles[0].script  # type: ignore[arg-type]


def by_hand(bench: SlurmBench, text: str) -> tuple[str, str]:
    """How Slurm says that the script ended, and what it printed."""
    script, output = bench.folder / "script", bench.folder / "output"
    script.write_text(text)
    options = ("--parsable", f"--chdir={bench.folder}", f"--output={output}")
    number = bench.slurm.call("sbatch", *options, str(script)).strip()
    told = ("squeue", "--noheader", "--states=all", f"--jobs={number}", "--Format=State:|,exit_code:")

    def over() -> str:
        state, code = bench.slurm.call(*told).strip().split("|")
        return code.strip() if state.strip() in ("COMPLETED", "FAILED") else ""

    return wait_for(over, 60), output.read_text()


@pytest.mark.parametrize("end", [0, 3])
def test_shown_script_run_by_hand_ends_like_console_job(
    on_slurm: SlurmBench, tmp_path: Path, end: int
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "say").write_text(
        f"echo said $RANK of $WORLD_SIZE, $WORD; cat /far/word; exit {end}\n"
    )
    (tmp_path / "word").write_text("known\n")
    said: dict[str, Any] = {
        "env": {"WORD": "it's"},
        "code": CodeSource(uri=str(tmp_path / "code")),
        "mounts": (Mount(uri=str(tmp_path), path="/far", read_only=True),),
    }
    one = role("sh code/say")
    handle = on_slurm.backend.submit(on_slurm.submission(one, **said))
    seen = wait_until_over(on_slurm.backend, handle)
    code, output = by_hand(on_slurm, shown(on_slurm, one, **said))
    assert log_of(on_slurm.backend, handle) == "said 0 of 1, it's\nknown\n"
    assert output.endswith(log_of(on_slurm.backend, handle))
    assert int(code) >> 8 == seen.replicas[0].exit_code == end


def test_shown_script_differs_from_sent_only_in_place_and_name(on_slurm: SlurmBench) -> None:
    submission = on_slurm.submission(role(replicas=2), env={"A": "b"}, description="two\nlines")
    handle = on_slurm.backend.submit(submission)
    sent = (on_slurm.attempt(handle) / "script").read_text()
    lines = on_slurm.backend.render(submission).roles[0].script.splitlines()
    others = [line[2:] for line in difflib.ndiff(lines, sent.splitlines()) if line[0] in "-+"]
    flags = ("#SBATCH --job-name", "#SBATCH --chdir", "#SBATCH --o", "# The console sends it")
    known = (*flags, "folder=", "checkpoints=", "by_hand=")
    assert [line for line in others if not line.startswith(known)] == []
    wait_until_over(on_slurm.backend, handle)


def test_shown_script_contains_no_secret(on_slurm: SlurmBench) -> None:
    sent = on_slurm.backend.render(on_slurm.submission(secret_env={"PASS": SecretRef(name="s")}))
    assert sent.roles[0].env["PASS"] == MASK
    assert "export PASS before sbatch" in sent.roles[0].script


FOREIGN = """\
#!/bin/bash
#SBATCH --job-name=mine --comment="a 'note'"
#SBATCH --nodes=1 --ntasks-per-node=2 --mem=100M
#SBATCH --licenses=tool:1
#SBATCH --exclusive

# It's mine: $HOME, `date`, "quotes" and \\backslashes\\ stay.
echo "$0" | grep -c script
srun --ntasks=2 bash -c 'echo "task $SLURM_PROCID"'
cat <<'EOF' | wc -l
END_OF_BEFORE
EOF
exit 5
"""


def test_foreign_sbatch_script_runs_byte_for_byte(on_slurm: SlurmBench) -> None:
    parsed = dialects.get("sbatch").parse(Document(FOREIGN))
    options = {at: said for at, said in parsed.extras.items() if at.startswith("/") and isinstance(said, str)}
    backend = Releasing(replace(on_slurm.config, allowed=("licenses", "exclusive")))
    submission = replace(on_slurm.submission(), spec=parsed.spec, options=options)
    handle = backend.submit(submission)
    number = handle.split(".")[0]
    told = on_slurm.slurm.call("scontrol", "show", "job", number)
    seen = wait_until_over(backend, handle)
    assert (seen.state, seen.replicas[0].exit_code) == (State.FAILED, 5)
    assert sorted(log_of(backend, handle, "main").splitlines()) == ["1", "1", "task 0", "task 1"]
    assert "Licenses=tool:1" in told
    assert "OverSubscribe=NO" in told
    ran = on_slurm.attempt(handle) / "run-1" / "script"
    assert FOREIGN.endswith(ran.read_text())
    assert ran.read_text().lstrip().startswith("# It's mine")


def test_disallowed_option_is_left_out_of_script(on_slurm: SlurmBench) -> None:
    submission = replace(on_slurm.submission(), options={"/licenses": "tool:1", "/exclusive": ""})
    text = on_slurm.backend.render(submission).roles[0].script
    assert "licenses" not in text.split("shopt")[0]
