"""What jobs are given before their command: a repository with history, and packages that pip can install."""

import os
import subprocess
import zipfile
from pathlib import Path

_GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "n",
    "GIT_AUTHOR_EMAIL": "n@example.org",
    "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "n@example.org",
}


def git(folder: Path, *words: str) -> str:
    """What git says in the folder."""
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, env=_GIT, capture_output=True, text=True, check=True).stdout.strip()


def repository(folder: Path) -> str:
    """One with two commits in which `file` says `one` and `two`; the branch `old` and the tag `v1` are at the
    first, whose id is answered.
    """
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for text in ("one", "two"):
        (folder / "file").write_text(f"{text}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", text)
        if text == "one":
            git(folder, "branch", "old")
            git(folder, "tag", "v1")
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    return git(folder, "rev-parse", "old")


def commit_all(folder: Path, message: str) -> None:
    """Commit what is in the folder, and let everybody read it."""
    git(folder, "add", ".gitmodules")
    git(folder, "commit", "--quiet", "--message", message)
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)


def wheel(folder: Path, name: str = "tiny", version: str = "1.0") -> None:
    """A package, and a command `<name>-says`, that say `<name> says hello`."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"def main():\n    print('{name} says hello')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-says = {name}:main\n",
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD")))
    path.chmod(0o644)
