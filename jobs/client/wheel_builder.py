"""The command line as a distribution of its own: with the few libraries that it needs, without the console.

A wheel is made of the same source tree: of the modules that `job-console` imports, their shell scripts, and
the catalogues of its sentences.  The console offers it for download, and `client/pyproject.toml` lets pip
make it of a checkout; the console's own wheel has it beside this file.  Standard library only.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

NAME: Final = "job-console-client"
LIBRARIES: Final = ("httpx", "pathspec", "pydantic", "pyyaml")
ROOT: Final = Path(__file__).parents[2]
_PACKAGE: Final = "jobs"
_WHOLE: Final = ("client", "dialects")
"""Packages with modules that are imported by a name which is made."""

_PYTHON: Final = "job_console"
"""The package of the Python client, which lies beside `client/pyproject.toml`."""

_TYPED: Final = f"{_PACKAGE}/py.typed"
"""The mark of a package with types: the checkout's own has none, as Django's types need a plugin."""

_WRITTEN: Final = (1980, 1, 1, 0, 0, 0)
"""The same sources make the same wheel."""


def file_name() -> str:
    """Return the name of the wheel's file."""
    return f"{_stem()}-py3-none-any.whl"


@cache
def wheel() -> bytes:
    """Return the wheel."""
    if not _is_checkout():
        return Path(__file__).with_name(file_name()).read_bytes()
    files = {**_sources(), **_information()}
    record = f"{_stem()}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            member = zipfile.ZipInfo(name, _WRITTEN)
            member.external_attr = 0o644 << 16
            archive.writestr(member, data, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _sources() -> dict[str, bytes]:
    """Return the modules, shell scripts and catalogues, by their places in the wheel."""
    scripts = (path for name in _WHOLE for path in (ROOT / _PACKAGE / name).rglob("*.sh"))
    paths = sorted([*_modules(), *scripts])
    found = {str(path.relative_to(ROOT)): path.read_bytes() for path in paths}
    for path in sorted((ROOT / "locale").glob("*/LC_MESSAGES/django.mo")):
        found[f"{_PACKAGE}/{path.relative_to(ROOT)}"] = path.read_bytes()
    for path in sorted((ROOT / "client" / _PYTHON).iterdir()):
        if path.is_file():
            found[f"{_PYTHON}/{path.name}"] = path.read_bytes()
    return {**found, _TYPED: b""}


def _modules() -> set[Path]:
    """Return the files of everything that the command line imports of ours."""
    package = ROOT / _PACKAGE
    waiting = [path for name in _WHOLE for path in (package / name).rglob("*.py")]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [folder / "__init__.py" for folder in path.parents if folder.is_relative_to(package)]
            waiting += _find_imports(path)
    return found


def _find_imports(path: Path) -> Iterator[Path]:
    """Yield the files of our modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        for name in names:
            if name.split(".")[0] == _PACKAGE:
                place = ROOT.joinpath(*name.split("."))
                files = (place.with_suffix(".py"), place / "__init__.py")
                yield from (file for file in files if file.is_file())


def version() -> str:
    """Return the release, from pyproject.toml: the one place that names it."""
    return str(_project()["version"]) if _is_checkout() else metadata.version("job-console")


def _is_checkout() -> bool:
    """Tell whether the sources are here, and not only what was installed of them."""
    return (ROOT / "client" / "pyproject.toml").is_file()


def _information() -> dict[str, bytes]:
    project = _project()
    needed = [f"Requires-Dist: {each}" for each in _requirements(project["dependencies"])]
    description = [
        "Metadata-Version: 2.1",
        f"Name: {NAME}",
        f"Version: {version()}",
        "Summary: The command line and the Python client of Job Console.",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *needed,
    ]
    wheel_lines = ["Wheel-Version: 1.0", f"Generator: {NAME}", "Root-Is-Purelib: true", "Tag: py3-none-any"]
    scripts = ["[console_scripts]", *(f"{name} = {place}" for name, place in project["scripts"].items())]
    texts = {"METADATA": description, "WHEEL": wheel_lines, "entry_points.txt": scripts}
    return {f"{_stem()}.dist-info/{name}": "\n".join([*lines, ""]).encode() for name, lines in texts.items()}


def _requirements(pinned: list[str]) -> Iterator[str]:
    """Yield what the command line needs: the console's own releases, or later ones that are compatible."""
    for each in pinned:
        name, _equal, release = each.partition("==")
        if name in LIBRARIES:
            yield f"{name}~={'.'.join(release.split('.')[:2])}"


@cache
def _project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    return project


def _stem() -> str:
    return f"{NAME.replace('-', '_')}-{version()}"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
