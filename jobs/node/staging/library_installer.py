"""Installs a job's libraries: run by the job's own Python, whichever that is, from its text alone.

Arguments: HOW TARGET STORE MOST AGE SOURCE NAMES…  The environment is made once in a folder of STORE that is
named by all that decides about it, under a lock; every replica finds its files, which are read-only, in
TARGET: by `links`, or as `copies` where the command will not see the store.  Without a STORE, or where a
local folder is named, which may change, it is made in TARGET itself.  Environments that nobody uses, and
nobody has used for AGE seconds, are removed once all take MOST bytes.

SOURCE is a file or a folder with one: requirements.txt (pip), environment.yml (conda, mamba or micromamba),
uv.lock or pyproject.toml (uv, or else pip).
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import time

FILES = ("requirements.txt", "environment.yml", "environment.yaml", "uv.lock", "pyproject.toml")
"""In this order; the first one that is there decides."""

CONDAS = ("micromamba", "mamba", "conda")
COMPLETE = ".complete"
ENVIRONMENT = ".environment"
"""Beside the links: a link to the environment itself."""

_SETTINGS = ("PIP_", "UV_", "CONDARC", "CONDA_CHANNELS", "CONDA_OVERRIDE_", "MAMBA_")
_PLAIN_OPTIONS = ("--hash", "--index-url", "--extra-index-url", "--pre", "--prefer-binary", "--only-binary")
_LOCAL_SOURCE = re.compile(
    r"""=\s*\{\s*(path|directory|editable)\s*=\s*"(?!\.")|^\s*-\s+(-|\.|/|file:)""", re.MULTILINE
)


def say(text: str) -> None:
    """Write a line of the log."""
    print(text, flush=True)


def find_file(source: str) -> str:
    """Return the file that decides; "" without a source.  Ends where there is none."""
    if not source or os.path.isfile(source):
        return source
    for name in FILES:
        if os.path.isfile(os.path.join(source, name)):
            return os.path.join(source, name)
    sys.exit(f"There is none of {', '.join(FILES)} in {source}.")


def kind_of(file: str) -> str:
    """Return `pip`, `conda` or `uv`."""
    name = os.path.basename(file)
    if name.endswith((".yml", ".yaml")):
        return "conda"
    return "uv" if name.endswith((".lock", ".toml")) else "pip"


def read_text(path: str) -> str:
    """Return a file's text, "" for none."""
    if not path:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def key_of(file: str, names: list[str]) -> str:
    """Return the name of the environment in the store; "" for one that must not be stored."""
    kind, text = kind_of(file), read_text(file)
    lines = list(names)
    if kind == "pip":
        stripped = (line.partition(" #")[0].strip().rstrip("\\").strip() for line in text.splitlines())
        lines += [line for line in stripped if line and not line.startswith("#")]
    elif _LOCAL_SOURCE.search(text):
        return ""
    else:
        names_of_project = os.path.join(os.path.dirname(file), "pyproject.toml")
        more = read_text(names_of_project) if os.path.isfile(names_of_project) else ""
        lines += [text, more]
    checked = lines if kind == "pip" else names
    if any(is_local(line) for line in checked):
        return ""
    said = [
        kind,
        sys.version,
        sysconfig.get_platform(),
        os.path.realpath(sys.executable),
        install_scheme(),
    ]
    said += [shutil.which(program) or "" for program in ("uv", *CONDAS)] if kind != "pip" else []
    said += sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_SETTINGS))
    said += list_installed()
    return hashlib.sha256("\n".join(said + sorted(lines)).encode()).hexdigest()


def is_local(line: str) -> bool:
    """Tell whether a requirement is, or may be, a local folder, or another file."""
    if line.startswith(_PLAIN_OPTIONS):
        return False
    return line.startswith(("-", ".", "/")) or ":/" in line


def list_installed() -> list[str]:
    """Return what the interpreter has already, which pip leaves out."""
    try:
        from importlib.metadata import distributions  # noqa: PLC0415 not in every Python
    except ImportError:
        return []
    return sorted({f"{each.metadata['Name']}=={each.version}" for each in distributions()})


def install_scheme() -> str:
    """Return pip's option for the place: an environment that shows no packages of the user's has a folder."""
    return "--user" if site.ENABLE_USER_SITE else "--target"


# --- making it -------------------------------------------------------------------------------------------


def make(target: str, file: str, names: list[str]) -> None:
    """Make the environment in the folder `target`; ends where that fails."""
    kind = kind_of(file)
    if kind == "conda":
        make_conda(target, file, names)
    elif kind == "uv":
        make_uv(target, file, names)
    else:
        install_by_pip(target, [*(["-r", file] if file else []), *(["--", *names] if names else [])])


def call(*argv: str, **env: str) -> None:
    """Run a program to its end; ends as it does where it fails."""
    code = subprocess.call(argv, env={**os.environ, **env})
    if code:
        sys.exit(code if code > 0 else 1)


def install_by_pip(target: str, options: list[str]) -> None:
    """Install for the job's Python."""
    place = ["--user"] if install_scheme() == "--user" else ["--target", f"{target}/packages"]
    settings = ["--no-input", "--no-cache-dir", "--disable-pip-version-check"]
    call(*pip(), "install", *settings, *place, *options, PYTHONUSERBASE=target)


def pip() -> list[str]:
    """Return how pip is called: as a Python without it has one for virtual environments, too."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    ensurepip = importlib.util.find_spec("ensurepip")
    bundled = ensurepip and ensurepip.origin and os.path.join(os.path.dirname(ensurepip.origin), "_bundled")
    for folder in filter(None, (sysconfig.get_config_var("WHEEL_PKG_DIR"), bundled)):
        wheels = sorted(glob.glob(os.path.join(glob.escape(folder), "pip-*.whl")))
        if wheels:
            return [sys.executable, os.path.join(wheels[-1], "pip")]
    sys.exit(f"{sys.executable} has no pip.")


def make_conda(target: str, file: str, names: list[str]) -> None:
    """Make an environment of conda; named packages are added by its own pip."""
    program = next((name for name in CONDAS if shutil.which(name)), "")
    if not program:
        sys.exit(
            f"{os.path.basename(file)} needs one of {', '.join(CONDAS)} on the job's PATH; there is none."
        )
    begin = ["create"] if program == "micromamba" else ["env", "create"]
    call(program, *begin, "--prefix", f"{target}/conda", "--file", file, CONDA_ALWAYS_YES="true")
    if names:
        call(f"{target}/conda/bin/python", "-m", "pip", "install", "--no-input", "--", *names)


def make_uv(target: str, file: str, names: list[str]) -> None:
    """Install what a project depends on: the versions of its lock file by uv, else its own list by pip."""
    project = os.path.dirname(file) or "."
    if not shutil.which("uv"):
        if file.endswith(".lock"):
            say(
                "uv is not on the job's PATH: pip installs what pyproject.toml names, not what uv.lock holds."
            )
        install_by_pip(target, ["--", *dependencies(os.path.join(project, "pyproject.toml")), *names])
        return
    source = ["-r", file]
    if file.endswith(".lock"):
        source = ["-r", f"{target}/requirements.txt"]
        frozen = ["--frozen", "--no-dev", "--no-emit-project", "--no-cache", "--quiet", "--project", project]
        call("uv", "export", *frozen, "--output-file", f"{target}/requirements.txt")
    place = ["--python", sys.executable, "--target", f"{target}/packages", "--no-cache", "--project", project]
    call("uv", "pip", "install", *place, *source, *names)


def dependencies(file: str) -> list[str]:
    """Return a project's dependencies."""
    try:
        import tomllib  # noqa: PLC0415 not in every Python
    except ImportError:
        sys.exit("pyproject.toml needs uv on the job's PATH, or Python 3.11.")
    return [str(each) for each in tomllib.loads(read_text(file)).get("project", {}).get("dependencies", [])]


# --- the store -------------------------------------------------------------------------------------------


def is_complete(path: str) -> bool:
    """Tell whether an environment of our own is there."""
    try:
        about = os.lstat(os.path.join(path, COMPLETE))
    except OSError:
        return False
    return about.st_uid == os.geteuid() and not os.path.islink(path)


def lock(path: str, flags: int) -> int:
    """Open and lock an environment's lock file.  Raises BlockingIOError with LOCK_NB, OSError."""
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, flags)
    except OSError:
        os.close(fd)
        raise
    return fd


def lock_for_use(path: str) -> int:
    """Wait for whoever makes the same environment now."""
    try:
        return lock(path, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        say("The same Python packages are being installed by another replica; waiting for it.")
        return lock(path, fcntl.LOCK_SH)


def provide(path: str, file: str, names: list[str]) -> int:
    """Have the environment made at `path`, by us or somebody before us; return its lock."""
    held = lock_for_use(path)
    if not is_complete(path):
        os.close(held)
        held = lock(path, fcntl.LOCK_EX)
    if is_complete(path):
        say(f"Python packages as they were installed before: {os.path.basename(path)[:12]}")
    else:
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path, 0o700)
        make(path, file, names)
        protect(path)
        with open(os.path.join(path, COMPLETE), "w", encoding="utf-8"):
            pass
    os.utime(path)
    return held


def protect(path: str) -> None:
    """Let nobody write to its files; folders stay as they are, so that it can be removed."""
    for around, _, files in os.walk(path):
        for name in files:
            file = os.path.join(around, name)
            if not os.path.islink(file):
                os.chmod(file, os.lstat(file).st_mode & ~0o222)


def size(path: str) -> int:
    """Return the bytes of all files in a folder."""
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(path) for name in names)


def clean(store: str, most: int, age: float) -> None:
    """Remove what was not used for longest, and is not in use, until the rest fits."""
    paths = [os.path.join(store, name) for name in os.listdir(store)]
    found = sorted((os.lstat(path).st_mtime, path) for path in paths if os.path.isdir(path))
    sizes = {path: size(path) for _, path in found}
    for used_at, path in found:
        if sum(sizes.values()) <= most or used_at > time.time() - age:
            continue
        with contextlib.suppress(OSError):
            held = lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            os.close(held)
            del sizes[path]


def show(path: str, link: str) -> None:
    """Make links to the environment's files in a folder to which the job can add."""
    os.makedirs(link, exist_ok=True)
    for around, folders, files in os.walk(path):
        here = os.path.normpath(os.path.join(link, os.path.relpath(around, path)))
        os.makedirs(here, exist_ok=True)
        whole = [name for name in folders if around == path and name == "conda"]
        whole += [name for name in folders if os.path.islink(os.path.join(around, name))]
        folders[:] = [name for name in folders if name not in whole]
        for name in (*files, *whole):
            os.symlink(os.path.join(around, name), os.path.join(here, name))
    os.symlink(path, os.path.join(link, ENVIRONMENT))


def has_locks(store: str, path: str) -> bool:
    """Tell whether the store is there, and its file system can lock."""
    try:
        os.makedirs(store, mode=0o700, exist_ok=True)
        os.close(lock(path, fcntl.LOCK_SH | fcntl.LOCK_NB))
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def main(how: str, target: str, store: str, most: str, age: str, source: str, *names: str) -> None:
    """Do all of it."""
    file = find_file(source)
    is_fixed = kind_of(file) == "conda"  # to its place
    key = key_of(file, list(names)) if store and not (is_fixed and how == "copies") else ""
    path = os.path.join(store, key)
    if not key or not has_locks(store, path):
        os.makedirs(target, exist_ok=True)
        make(target, file, list(names))
        return
    held = provide(path, file, list(names))
    if how == "copies":
        shutil.copytree(path, target, symlinks=True)
    else:
        show(path, target)
    os.close(held)
    clean(store, int(most), float(age))


if __name__ == "__main__":
    main(*sys.argv[1:])
