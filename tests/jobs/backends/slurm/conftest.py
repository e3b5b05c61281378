import json
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.slurm.identity import as_user
from tests import unix_users
from tests.jobs.backends.apart import User, by_tokens, opened
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.sshd import Server


@pytest.fixture(scope="module")
def users() -> Iterator[list[User]]:
    with unix_users.made(2) as found:
        yield found


@pytest.fixture
def a(users: list[User]) -> User:
    return users[0]


@pytest.fixture
def b(users: list[User]) -> User:
    return users[1]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="job-console-test-", dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def by_jwt(slurm: Slurm, open_folder: Path) -> Iterator[SlurmBench]:
    """By tokens that the console makes with slurmctld's key; its own is of the cluster's settings."""
    with opened(open_folder, slurm, by_tokens(slurm)) as made:
        yield made


@pytest.fixture
def helped(slurm: Slurm, open_folder: Path) -> dict[str, Any]:
    """The settings of a cluster with a helper as an admin installs it."""
    helper = open_folder / "helper"
    shutil.copy(as_user.__file__, helper)
    helper.chmod(0o755)
    told = {
        "folder": str(open_folder / "jobs"),
        "console": pwd.getpwuid(os.geteuid()).pw_name,
        "configuration": str(slurm.configuration),
    }
    Path(f"{helper}.json").write_text(json.dumps(told))
    return {"identity": "sudo", "helper": str(helper)}


@pytest.fixture
def by_sudo(slurm: Slurm, open_folder: Path, helped: dict[str, Any]) -> Iterator[SlurmBench]:
    """By that helper."""
    with opened(open_folder, slurm, helped) as made:
        yield made


@pytest.fixture
def by_sudo_there(
    slurm: Slurm, open_folder: Path, helped: dict[str, Any], sshd: Server
) -> Iterator[SlurmBench]:
    """By that helper on a login node."""
    login = sshd.login(pwd.getpwuid(os.geteuid()).pw_name)
    with opened(open_folder, slurm, {**helped, "login": login}) as made:
        yield made


@pytest.fixture
def by_sudo_and_rest(slurm: Slurm, open_folder: Path, helped: dict[str, Any]) -> Iterator[SlurmBench]:
    """By that helper, where slurmrestd is looked at."""
    with opened(open_folder, slurm, {**helped, **by_rest(slurm)}) as made:
        yield made
