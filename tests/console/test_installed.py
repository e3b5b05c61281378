"""The console as a wheel installs it: one server command, far from any checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from console.home import CHECKOUT
from tests.stack import Stack
from tests.waiting import wait_for
from tools.wheel import RESOURCES

JOB = "#!/bin/bash\n#SBATCH --job-name=%s\necho begun; sleep 300\n"
PATIENCE = 180.0  # seconds, on a machine that does much else


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`job-console-server` in an environment that sees the packages of this one, but not its code."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # A copy: setuptools keeps what it built beside the sources, and would pack it again.
    (folder / "source").mkdir()
    packages = ("client", "console", "jobs", "quotas")
    for name in (*packages, "LICENSE", "README.md", "locale", "pyproject.toml", "tools", *RESOURCES):
        subprocess.run(["cp", "-a", CHECKOUT / name, folder / "source"], check=True)
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *build, str(folder / "source")], check=True)
    (wheel,) = folder.glob("job_console-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (site,) = folder.glob("venv/lib/python*/site-packages")
    (site / "shared.pth").write_text(sysconfig.get_path("purelib"))
    install = ["install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([*pip, "--python", f"{folder}/venv/bin/python", *install], check=True)
    return folder / "venv" / "bin" / "job-console-server"


class Installed(Stack):
    """The same whole console, by the installed command, far from any checkout."""

    def __init__(self, server: Path) -> None:
        super().__init__()
        self.run_command = [str(server), "run"]
        self.manage_command = [str(server)]
        self.directory = self.home


@pytest.fixture
def console(server: Path) -> Iterator[Installed]:
    stack = Installed(server)
    try:
        stack.start()
        yield stack
    finally:
        stack.remove()


def call(server: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": "/usr/bin:/bin", **environ}
    return subprocess.run([server, *arguments], env=given, capture_output=True, text=True, check=False)


def submit(api: httpx.Client, name: str) -> str:
    answer = api.post("/api/console/v1/jobs", json={"file": JOB % name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def state_of(api: httpx.Client, job: str) -> str:
    answer = api.get(f"/api/console/v1/jobs/{job}")
    return str(answer.json().get("state", answer.status_code))


def test_server_command_keeps_its_data_in_the_users_folder(server: Path, tmp_path: Path) -> None:
    assert call(server, "--help").stdout.startswith("Usage: job-console-server COMMAND")
    assert call(server).returncode == 2
    answer = call(server, "check", HOME=str(tmp_path))
    assert f"{tmp_path}/.local/share/job-console/keys/secret_key" in answer.stderr
    looked = call(server, "doctor", XDG_DATA_HOME=str(tmp_path), PORT="1")
    assert f"ok       folder: {tmp_path}/job-console, made at the first start" in looked.stdout
    assert not (tmp_path / "job-console").exists()


def test_installed_console_serves_pages_and_runs_a_job(console: Installed) -> None:
    client = console.client()
    try:
        page = client.get("/settings/tokens").text
        for style in re.findall(r'href="(/static/[^"]+\.css)"', page):
            assert client.get(style).status_code == 200
        wheel = re.search(r"/client/[^\"&]+\.whl", page)
        assert wheel
        assert client.get(wheel[0]).status_code == client.get("/help/").status_code == 200
    finally:
        client.close()
    token = console.manage("issue_token", "admin", "--plain").strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=console.base_url, headers=headers, timeout=60, trust_env=False) as api:
        job = submit(api, "first")
        wait_for(lambda: state_of(api, job) == "RUNNING", PATIENCE)
    console.stop()


def test_damaged_backup_restores_nothing(server: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        archive.add(CHECKOUT / "LICENSE", "keys/fernet")
    answer = call(server, "restore", str(file), CONSOLE_HOME=str(tmp_path / "home"))
    assert answer.returncode == 1
    assert answer.stderr == f"Nothing was restored. {file} is no whole backup: its end is missing.\n"
    assert not list((tmp_path / "home").glob("keys"))
