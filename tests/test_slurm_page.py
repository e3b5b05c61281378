"""The scripts of docs/slurm.md, run as they stand: from a Slurm that runs to the first job by each way."""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from console.home import CHECKOUT
from tests import page_scripts, unix_users
from tests.jobs.backends.slurm_bench import TOKEN_COMMAND
from tests.page_scripts import MAKE, blocks, mark, with_values
from tests.slurm import Slurm
from tests.sshd import Server
from tests.stack import Stack
from tests.waiting import wait_for

pytestmark = pytest.mark.once

PAGE: Final = CHECKOUT / "docs" / "slurm.md"
SECTION: Final = "From a cluster to the first job"
REST: Final = "By slurmrestd"
TOKENS: Final = "By tokens (jwt)"
PROMISED_S: Final = 600
"""What the page says that it takes, for a person."""

PATIENCE_S: Final = 1200
"""For all ways together, where the machine does much else."""


@dataclass(frozen=True)
class Way:
    """Another way of the page: as whom its job runs, and what is set in the first lines of its script."""

    user: str
    values: Mapping[str, str]


def with_configuration(text: str, slurm: Slurm) -> str:
    """The same for a slurm.conf that is not in its usual place."""
    return re.sub(r'^\{"', f'{{"configuration": "{slurm.configuration}", "', text, flags=re.MULTILINE)


@pytest.fixture
def stack(tmp_path: Path, slurm: Slurm) -> Iterator[Stack]:
    """A console that has not been started, and what its shell has in its environment."""
    with page_scripts.console(tmp_path, {"SLURM_CONF": str(slurm.configuration)}) as made:
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that everybody may pass through."""
    with tempfile.TemporaryDirectory(prefix="job-console-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def ways(slurm: Slurm, sshd: Server, folder: Path) -> Iterator[dict[str, Way]]:
    """The other ways, in the order in which they stand there, by their headings."""
    sudoers = Path(f"/etc/sudoers.d/{secrets.token_hex(8)}")
    with unix_users.made(1) as [person]:
        login = {
            "LOGIN": "127.0.0.1",
            "LOGIN_PORT": str(sshd.port),
            "LOGIN_KEY": str(sshd.folder / "person"),
        }
        sudo = {
            "HELPER": str(folder / "helper"),
            "CONSOLE": "root",
            "PEOPLE": person.pw_name,
            "SUDOERS": str(sudoers),
            "UNIX_NAME": person.pw_name,
        }
        tokens = {"CONSOLE_SLURM_TOKEN_COMMAND": ",".join(TOKEN_COMMAND)}
        yield {
            REST: Way("root", {**tokens, "URL": slurm.rest}),
            "By a login node": Way("root", login),
            "By sudo": Way(person.pw_name, sudo),
            TOKENS: Way(person.pw_name, tokens),
        }
        sudoers.unlink(missing_ok=True)


@pytest.mark.skipif(bool(unix_users.missing()), reason=unix_users.missing() or "there are some")
@pytest.mark.timeout(1500)
def test_slurm_page_leads_to_the_first_job_by_each_way(
    stack: Stack,
    slurm: Slurm,
    folder: Path,
    ways: Mapping[str, Way],
    record_property: Callable[[str, object], None],
) -> None:
    own = {
        "FOLDER": str(folder / "jobs"),
        "CONFIG": json.dumps({"configuration": str(slurm.configuration)}),
        "PORT": stack.environ["PORT"],
    }
    lines, *steps, quota, sign_in, job = with_values(blocks(PAGE, SECTION), own)
    others = {name: with_values(blocks(PAGE, name), way.values) for name, way in ways.items()}
    commands = [others[name].pop(0) for name in (REST, TOKENS)]
    script = [MAKE, mark(""), lines, *commands, *steps, quota, sign_in, job, mark("to the first job")]
    for name, texts in others.items():
        script += [with_configuration("".join(texts), slurm), quota, job, mark(name)]
    wait_for(slurm.ready)
    done = page_scripts.run("".join(script), stack.environ, PATIENCE_S)
    told = done.stdout + done.stderr
    _before, first, *rest = re.split(r"^### .*\n", done.stdout, flags=re.MULTILINE)
    for said, user in zip([first, *rest], ["root", *(way.user for way in ways.values())], strict=False):
        assert f"Hello from {os.uname().nodename}, as {user}\n" in said, told
        assert re.search(r"^\w{12}  SUCCEEDED .* first-job  All replicas succeeded\.$", said, re.MULTILINE), (
            told
        )
        assert "Everything is there. Tried: cpu1, cpu2, gpu1, gpu2" in said, told
    marks = re.findall(r"^### (.*)=(\d+)$", done.stdout, re.MULTILINE)
    assert len(marks) == len(ways) + 2, told
    for (_, began), (name, ended) in pairwise(marks):
        record_property(f"docs/slurm.md, {name}", f"{int(ended) - int(began)} s")
    assert int(marks[1][1]) - int(marks[0][1]) < PROMISED_S
