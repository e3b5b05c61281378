"""Python packages that are there before the command, for the job's user alone."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Observation, Person
from jobs.messages import reason_message
from jobs.node.sandbox import engine
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import pip
from jobs.node.staging.mount_specs import PackageSpec
from jobs.spec import CodeSource, Mount, Requirements, Resources
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.local.goods import wheel
from tests.jobs.backends.local.images import IMAGE
from tests.waiting import wait_for

ROOM = Resources(cpu_milli=1000, memory_mib=512)


@pytest.fixture(params=["best", "none"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, place: Path) -> Iterator[LocalBench]:
    if request.param != "none" and os.geteuid():
        pytest.skip("no folder of an ordinary user is seen in jobs where it is")
    mode = {"best": None, "none": Isolation.NONE}[request.param]
    named = (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)
    made = LocalBench(tmp_path, {"isolation": mode, "folders": named})
    wheel(place / "sets")
    wheel(place / "sets", "other")
    (place / "sets" / "requirements.txt").write_text("other==1.0\n")
    yield made
    made.close()


def run(bench: LocalBench, command: str, place: Path, **spec: Any) -> tuple[Observation, list[str]]:
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{place}/sets", **spec.pop("env", {})}
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM), env=env, **spec))
    seen = wait_until_over(bench.backend, handle, timeout=60)
    assert (bench.attempt(handle) / "supervisor.log").read_text() == ""
    return seen, log_of(bench.backend, handle).splitlines()


def test_pip_packages_and_their_commands_are_found(bench: LocalBench, place: Path) -> None:
    command = "tiny-says; python3 -c 'import other; other.main()'; ls -A; env | grep PIP_BREAK"
    asked = Requirements(packages=("tiny==1.0",), directory=f"{place}/sets")
    seen, lines = run(bench, command, place, requirements=asked)
    assert lines[-3:] == ["tiny says hello", "other says hello", ".local"], lines
    assert seen.reason.code is ReasonCode.EXIT_CODE


def test_pip_reads_requirements_from_code(bench: LocalBench, place: Path) -> None:
    seen, lines = run(
        bench,
        "other-says",
        place,
        code=CodeSource(uri=f"{place}/sets", path="src"),
        requirements=Requirements(directory="src"),
    )
    assert (seen.state, lines[-1]) == (State.SUCCEEDED, "other says hello")


def test_pip_reuses_earlier_installation_that_no_job_can_change(bench: LocalBench, place: Path) -> None:
    (place / "sets" / "requirements.txt").write_text("# ours\nother==1.0  # pinned\n")
    asked = Requirements(packages=("tiny==1.0",), directory=f"{place}/sets")
    command = (
        "tiny-says && other-says && rm -r .local && ls /job-console/cache 2>&1 | head -n 3;"
        "(echo x > $(echo /job-console/libraries/*)/x) 2>/dev/null"
    )
    _, first = run(bench, command, place, requirements=asked)
    assert any("Successfully installed" in line for line in first), first
    for path in (place / "sets").glob("*.whl"):
        path.unlink()
    _, again = run(bench, command, place, requirements=asked)
    assert again[0].startswith("Python packages as they were installed before: "), again
    assert again[1:3] == ["tiny says hello", "other says hello"]
    assert not any("packages" in line for line in again[3:]), "the command finds no cache"
    seen, _ = run(bench, command, place, requirements=Requirements(packages=("tiny==1.1",)))
    assert seen.reason.code is ReasonCode.REQUIREMENTS_FAILED
    seen, _ = run(bench, "true", place, requirements=asked, person=Person("bob", 8))
    if bench.config.isolation is None:
        assert seen.reason.code is ReasonCode.REQUIREMENTS_FAILED, "another person's cache"


def test_pip_packages_of_three_replicas_are_installed_once(bench: LocalBench, place: Path) -> None:
    asked = Requirements(packages=("tiny==1.0",), directory=f"{place}/sets")
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{place}/sets"}
    spec = role("tiny-says && other-says", replicas=3, resources=Resources(cpu_milli=100, memory_mib=512))
    handle = bench.backend.submit(bench.submission(spec, env=env, requirements=asked))
    assert wait_until_over(bench.backend, handle, timeout=60).state is State.SUCCEEDED
    logs = [log_of(bench.backend, handle, index=index) for index in range(3)]
    assert sum("Successfully installed" in log for log in logs) == 1, logs
    assert sum("as they were installed before" in log for log in logs) == 2, logs
    assert not any("could not be kept" in log for log in logs), logs
    kept = Path(bench.config.cache_of(7)) / "packages"
    (environment,) = (path for path in kept.iterdir() if path.is_dir())
    files = [path for path in environment.rglob("*") if path.is_file() and path.name != ".complete"]
    assert not any(path.stat().st_mode & 0o222 for path in files), "read-only"
    assert all(path.is_symlink() for path in (bench.attempt(handle) / "work").rglob("*.py"))
    assert sorted(path.suffix for path in kept.iterdir()) == ["", ".lock"]


@pytest.mark.parametrize("bench", ["none"], indirect=True)
def test_killed_installation_of_shared_packages_is_begun_again(bench: LocalBench, place: Path) -> None:
    """The replica that installs is killed, while another one waits for it."""
    slow, begun = place / "slow", place / "out" / "begun"
    slow.mkdir()
    (slow / "sitecustomize.py").write_text(SLOW_PIP.format(place=place))
    begun.touch()
    begun.chmod(0o666)
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{place}/sets", "PYTHONPATH": str(slow)}
    spec = role("tiny-says", replicas=2, resources=Resources(cpu_milli=100, memory_mib=512))
    asked = Requirements(packages=("tiny==1.0",))
    handle = bench.backend.submit(bench.submission(spec, env=env, requirements=asked))
    wait_for(begun.read_text)
    (place / "sets" / "go").touch()
    for pid in bench.processes("jc-wrapper"):
        os.kill(pid, signal.SIGKILL)
    assert wait_until_over(bench.backend, handle, timeout=60).state is State.SUCCEEDED
    logs = [log_of(bench.backend, handle, index=index) for index in range(2)]
    assert all(log.endswith("tiny says hello\n") for log in logs), logs
    assert not any("Errno" in log for log in logs), logs


SLOW_PIP = """\
import os, sys, time
if "pip" in sys.orig_argv and not os.path.exists("{place}/sets/go"):
    with open("{place}/out/begun", "a") as file:
        file.write("begun")
    time.sleep(60)
"""


@pytest.mark.parametrize("bench", ["best"], indirect=True)
def test_library_file_decides_which_program_installs(bench: LocalBench, place: Path) -> None:
    """pyproject.toml and uv.lock by the real uv; environment.yml by a stand-in for conda, which says so."""
    programs, project, conda = place / "programs", place / "project", place / "conda"
    for folder in (programs, project, conda):
        folder.mkdir()
    (project / "pyproject.toml").write_text(PROJECT.format(place=place))
    (conda / "environment.yml").write_text("name: x\ndependencies:\n  - tiny=1.0\n")
    paths = {"PATH": f"{programs}:/usr/bin:/bin"}
    of_project, of_conda = Requirements(directory=str(project)), Requirements(directory=str(conda))
    assert run(bench, "tiny-says", place, requirements=of_project, env=paths)[1][-1] == "tiny says hello"
    seen, lines = run(bench, "true", place, requirements=of_conda, env=paths)
    assert seen.reason.code is ReasonCode.REQUIREMENTS_FAILED
    assert lines[0].startswith("environment.yml needs one of micromamba, mamba, conda on the job's PATH")
    (programs / "conda").write_text(CONDA)
    (programs / "conda").chmod(0o755)
    for words in ("stand-in for conda", "as they were installed before"):
        _, lines = run(bench, "conda-says; command -v python", place, requirements=of_conda, env=paths)
        assert words in lines[0]
        assert lines[-2] == "conda says hello"
        assert lines[-1].endswith("/.local/conda/bin/python")
    if (uv := shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")) is None:
        return
    shutil.copy(uv, programs)
    subprocess.run([uv, "lock", "--quiet", "--no-cache"], cwd=project, check=True)
    (project / "uv.lock").chmod(0o644)
    for words in ("", "as they were installed before"):
        _, lines = run(bench, "tiny-says", place, requirements=of_project, env=paths)
        assert words in lines[0]
        assert lines[-1] == "tiny says hello", lines


PROJECT = """\
[project]
name = "mine"
version = "1"
requires-python = ">=3"
dependencies = ["tiny==1.0"]
[tool.uv]
no-index = true
find-links = ["{place}/sets"]
"""

CONDA = """#!/bin/sh
# A stand-in for conda, mamba and micromamba: it makes the folder that `conda env create` would make.
echo "stand-in for conda: $*"
[ "$1 $2 $3 $5" = "env create --prefix --file" ] && [ -r "$6" ] || exit 2
mkdir -p "$4/bin" && ln -s /usr/bin/python3 "$4/bin/python" &&
printf '#!/bin/sh\\necho conda says hello\\n' > "$4/bin/conda-says" && chmod 755 "$4/bin/conda-says"
"""


def test_pip_packages_install_with_python_without_pip(bench: LocalBench, place: Path) -> None:
    """As Debian's has none before python3-pip is there."""
    venv = place / "bare"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
    subprocess.run(["chmod", "-R", "a+rX", str(venv)], check=True)
    asked = Requirements(packages=("tiny",))
    env = {"PATH": f"{venv}/bin:/usr/bin:/bin"}
    seen, lines = run(bench, "tiny-says", place, requirements=asked, env=env)
    assert (seen.state, lines[-1]) == (State.SUCCEEDED, "tiny says hello"), lines


def test_pip_failure_fails_job_and_reaches_no_shell(bench: LocalBench, place: Path) -> None:
    for names in (("absent",), ("tiny", "--index-url=http://x"), (f"x; touch {bench.judge}/x",), ("$(id)",)):
        seen, lines = run(bench, "echo ran", place, requirements=Requirements(packages=names))
        assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.REQUIREMENTS_FAILED)
        assert "ran" not in lines
        assert reason_message(seen.reason.code, seen.reason.params).startswith(
            "The Python packages of replica worker-0 could not be installed: "
        )
    assert list(bench.judge.iterdir()) == []


def test_pip_without_user_site_installs_into_folder(bench: LocalBench, place: Path) -> None:
    """As one in a virtual environment is."""
    seen, lines = run(
        bench,
        "tiny-says && ls .local",
        place,
        requirements=Requirements(packages=("tiny",)),
        env={"PYTHONNOUSERSITE": "1"},
    )
    assert (seen.state, lines[-2:]) == (State.SUCCEEDED, ["tiny says hello", "packages"])


def test_pip_receives_arguments_never_a_shell_line() -> None:
    packages = PackageSpec(("a; rm -rf /", "--user"), "/x y", 10)
    script, name, _, text, how, target, store, most, unused_s, *rest = pip.arguments(packages, "/job")
    ast.parse(text, feature_version=(3, 6))
    assert "__future__" not in text
    assert (script, name, how, target) == (pip.SCRIPT, "sh", "links", "/job/.local")
    assert (store, most, unused_s) == ("", "0", "3600")
    assert rest == ["/x y", "a; rm -rf /", "--user"]
    assert pip.visible({"PATH": "/bin", "PYTHONPATH": "/mine"}, "/job") == {
        "PYTHONUSERBASE": "/job/.local",
        "PYTHONPATH": "/job/.local/packages:/mine",
        "PATH": "/job/.local/conda/bin:/job/.local/bin:/job/.local/packages/bin:/bin",
    }
    told = pip.visible({}, "/job")
    assert pip.on_path({**told, "PATH": "/usr/bin"})["PATH"] == f"{told[pip.BIN]}:/usr/bin"
    assert pip.on_path({"PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


SLOW = """#!/bin/sh
echo begun
[ -e /mnt/x/go ] || sleep 60
"""


def test_pip_killed_in_container_restarts_and_leaves_nothing(
    tmp_path: Path, store: tuple[str, ...], place: Path
) -> None:
    named = (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)
    bench = LocalBench(tmp_path, {"engine": "podman", "engine_options": store, "folders": named})
    (place / "sets" / "python3").write_text(SLOW)
    (place / "sets" / "python3").chmod(0o755)
    spec = role("echo ran", image=IMAGE, env={"PATH": "/mnt/x:/bin"})
    asked = {"mounts": (Mount(uri=f"{place}/sets", path="/mnt/x"),)}
    handle = bench.backend.submit(
        bench.submission(spec, **asked, requirements=Requirements(packages=("tiny",)))
    )
    wait_for(lambda: "begun" in log_of(bench.backend, handle))
    (place / "sets" / "go").touch()
    for pid in bench.processes("jc-wrapper"):
        os.kill(pid, signal.SIGKILL)
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.SUCCEEDED
    assert log_of(bench.backend, handle).splitlines() == ["begun", "begun", "ran"]
    command = [*engine.detect("podman", store).command, "ps", "--all", "--format", "{{.Names}}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
    bench.close()


PYTHON = """#!/bin/sh
# Stands for an image's Python: what it is called with, and a package whose command it leaves behind.
echo "python:" "$@" | head -n 1
echo "user:" "$(id -u)" "cwd:" "$PWD" "index:" "$PIP_INDEX_URL"
ls /mnt/x
[ "$PIP_INDEX_URL" != "http://fails" ] || { echo no index; exit 1; }
echo "echo installed" > /job/.local-says
"""


def test_pip_in_container_installs_in_similar_container_first(
    tmp_path: Path, store: tuple[str, ...], place: Path
) -> None:
    named = (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)
    bench = LocalBench(tmp_path, {"engine": "podman", "engine_options": store, "folders": named})
    (place / "sets" / "python3").write_text(PYTHON)
    (place / "sets" / "python3").chmod(0o755)
    mount = Mount(uri=f"{place}/sets", path="/mnt/x")
    for index, state in (("http://index", State.SUCCEEDED), ("http://fails", State.FAILED)):
        spec = role(
            "cat .local-says; echo $PATH $PYTHONUSERBASE",
            image=IMAGE,
            env={"PIP_INDEX_URL": index, "PATH": "/mnt/x:/bin"},
        )
        asked = Requirements(packages=("tiny",))
        handle = bench.backend.submit(bench.submission(spec, mounts=(mount,), requirements=asked))
        seen = wait_until_over(bench.backend, handle)
        log = log_of(bench.backend, handle)
        assert seen.state is state, log
        assert f"user: {bench.config.uid_base + 7} cwd: /job index: {index}" in log
        assert "file" in log.splitlines()
        if state is State.SUCCEEDED:
            path = "/job/.local/conda/bin:/job/.local/bin:/job/.local/packages/bin:/mnt/x:/bin"
            assert log.splitlines()[-2:] == ["echo installed", f"{path} /job/.local"]
        else:
            assert seen.reason.code is ReasonCode.REQUIREMENTS_FAILED
            assert seen.reason.params["error"] == log.strip()
    bench.close()


def test_installer_needs_no_file_of_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica calls it in a root file system where the console's checkout may not be."""
    pip._installer.cache_clear()
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_kwargs: pytest.fail("a file is read"))
    [_script, _name, _c, text, *_rest] = pip.arguments(PackageSpec(("tiny",), "", 0), "/work")
    assert "def " in text
    compile(text, "installer", "exec")
