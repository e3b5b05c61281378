"""A store of images of its own, for a real podman."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jobs.node.sandbox import engine

IMAGE = "localhost/small:1"
PROGRAMS = (
    "bash",
    "sh",
    "cat",
    "env",
    "id",
    "sleep",
    "touch",
    "head",
    "tail",
    "seq",
    "ls",
    "grep",
    "stat",
    "df",
)


@pytest.fixture(scope="session")
def store() -> Iterator[tuple[str, ...]]:
    """The options that make podman use a store of its own, which has one small image in it.

    Its path must be short: podman takes no run folder of more than 50 characters.
    """
    if shutil.which("podman") is None:
        pytest.skip("there is no podman (Debian: podman runc)")
    if os.geteuid() != 0:
        pytest.skip("an image store of its own needs root here")
    folder = Path(tempfile.mkdtemp(prefix="podman-"))
    options = ("--root", str(folder / "store"), "--runroot", str(folder / "run"))
    command = engine.detect("podman", options).command
    if not command:
        pytest.skip("podman does not answer")
    import_image(folder / "root", options, IMAGE, {})
    yield options
    for words in (["rm", "--all", "--force"], ["rmi", "--all", "--force"]):
        subprocess.run([*command, *words], check=False, capture_output=True)
    subprocess.run(["umount", "--lazy", str(folder / "store" / "overlay")], check=False, capture_output=True)
    shutil.rmtree(folder)


def import_image(root: Path, options: tuple[str, ...], image: str, scripts: Mapping[str, str]) -> str:
    """Make an image of this machine's programs and these scripts, in a store; its name."""
    _make_root(root)
    for name, text in scripts.items():
        (root / "bin" / name).write_text(text)
        (root / "bin" / name).chmod(0o755)
    command = " ".join(engine.detect("podman", options).command)
    subprocess.run(
        f"tar -C {root} -c . | {command} import - {image}", shell=True, check=True, capture_output=True
    )
    return image


def list_containers(options: tuple[str, ...]) -> str:
    """Return the names of all containers of a store."""
    command = [*engine.detect("podman", options).command, "ps", "--all", "--format", "{{.Names}}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _make_root(root: Path) -> None:
    """A small Linux of this machine's own programs."""
    for name in ("bin", "etc", "tmp", "proc", "dev", "sys"):
        (root / name).mkdir(parents=True)
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc" / "marker").write_text("inside\n")
    for program in PROGRAMS:
        path = shutil.which(program)
        assert path is not None
        shutil.copy(os.path.realpath(path), root / "bin" / program)
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for library in [word for word in listed.split() if word.startswith("/")]:
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
