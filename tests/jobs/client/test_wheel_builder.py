"""The command line in an environment of its own, with what it declares to need and nothing else."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from django.test import Client

from console.home import CHECKOUT
from jobs.client import wheel_builder
from tests.factories import make_user

GOOD = '{"jobName": "a", "image": "i", "taskRoles": [{"name": "m", "command": "c"}]}'
IMPORT_ALL = """
import pkgutil, sys, jobs
for each in pkgutil.walk_packages(jobs.__path__, "jobs."):
    __import__(each.name)
print([name for name in sys.modules if name.split(".")[0] in ("django", "console", "quotas")])
"""


def needed(name: str) -> Iterator[str]:
    """The distribution, and all that it needs here."""
    yield name
    for each in metadata.requires(name) or ():
        if ";" not in each:
            yield from needed(re.split(r"[^A-Za-z0-9._-]", each)[0])


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which pip has installed the command line from the checkout, without any index."""
    made = tmp_path_factory.mktemp("client") / "venv"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    pip = [f"{made}/bin/pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, f"{CHECKOUT}/client"], check=True)
    (site,) = made.glob("lib/python*/site-packages")
    for library in {name for each in wheel_builder.LIBRARIES for name in needed(each)}:
        for file in metadata.files(library) or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(Path(str(metadata.distribution(library).locate_file(top))))
    return made


def call(venv: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [venv / "bin" / "job-console", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env={"HOME": str(venv), "LANG": "ja_JP.UTF-8", "PYTHONIOENCODING": "utf-8"},
        check=False,
    )


def test_client_works_alone_and_in_user_language(venv: Path) -> None:
    assert call(venv, "--version").stdout == f"job-console {wheel_builder.version()}\n"
    assert "\n-: openpai-v1, " in call(venv, "check", "-", stdin=GOOD).stdout
    converted = call(venv, "convert", "-", "--to", "sbatch", stdin=GOOD)
    assert (converted.returncode, converted.stdout[:2]) == (0, "#!")
    wrong = call(venv, "check", "-", stdin="{")
    assert wrong.returncode == 1
    assert re.search("[\u3040-\u30ff]", wrong.stdout)
    assert call(venv, "list").returncode == 125


def test_dlc_works_alone(venv: Path) -> None:
    command = [f"{venv}/bin/dlc", "submit", "tfjob", "--name=n", "--command=true"]
    done = subprocess.run(command, env={"HOME": str(venv)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("No access key.")


def test_client_imports_nothing_of_the_console(venv: Path) -> None:
    command = [f"{venv}/bin/python", "-c", IMPORT_ALL]
    done = subprocess.run(command, cwd=venv, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_client_starts_within_300_ms(venv: Path) -> None:
    call(venv, "--help")  # which leaves compiled modules
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert call(venv, "--help").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3


def test_wheel_build_is_reproducible_and_has_what_pip_checks(tmp_path: Path) -> None:
    path = tmp_path / wheel_builder.file_name()
    path.write_bytes(wheel_builder.wheel())
    wheel_builder.wheel.cache_clear()
    assert wheel_builder.wheel() == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith("/RECORD"))
        listed = [line.split(",")[0] for line in archive.read(record).decode().splitlines()]
    assert listed == names
    assert not [name for name in names if name.startswith(("jobs/models", "jobs/web", "jobs/backends"))]


@pytest.mark.django_db
def test_wheel_download_needs_no_session() -> None:
    answer = Client().get(f"/client/{wheel_builder.file_name()}")
    assert answer.status_code == 200
    assert answer.content == wheel_builder.wheel()
    assert Client().get("/client/other-1.0-py3-none-any.whl").status_code == 404
    client = Client()
    client.force_login(make_user("olga"))
    address = f"http://testserver/client/{wheel_builder.file_name()}"
    assert f"pipx install {address}" in client.get("/settings/tokens").text
