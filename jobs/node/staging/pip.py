"""Installing Python packages for a job's user: how pip is called, and how the job then finds them.

pip's configuration is the job's own (its environment, a pip.conf); nothing here names an index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jobs.node.staging.mount_specs import PackageSpec

BIN: Final = "JOB_CONSOLE_BIN"
"""Tells a container, which has a PATH of its own, what comes before it."""

SCRIPT: Final = 'if command -v python3 >/dev/null 2>&1; then exec python3 "$@"; fi; exec python "$@"'
"""For a POSIX shell, which knows the PATH; what follows are its arguments and never part of it."""

_INSTALL: Final = """\
import errno, fcntl, glob, hashlib, importlib.util, os, runpy, shutil, site, sys, sysconfig, tempfile
target, cache, most, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
where = ["--user"] if site.ENABLE_USER_SITE else ["--target", target]
base = os.path.dirname(target)

def key():
    said = [sys.version, sysconfig.get_platform(), where[0]]
    said += sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("PIP_"))
    names = options[options.index("--") + 1:] if "--" in options else []
    if options[:1] == ["-r"]:
        with open(options[1], encoding="utf-8") as file:
            lines = [line.partition(" #")[0].strip() for line in file]
        names = names + [line for line in lines if line and not line.startswith("#")]
    if any(name.startswith(("-", ".", "/")) or ":/" in name for name in names):
        return ""
    return hashlib.sha256("\\n".join(said + sorted(names)).encode()).hexdigest()

def size(path):
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(path) for name in names)

def clean(keep):
    found = sorted((os.lstat(os.path.join(cache, name)).st_mtime, name) for name in os.listdir(cache))
    sizes = {name: size(os.path.join(cache, name)) for _, name in found}
    for _, name in found:
        if sum(sizes.values()) > most and name != keep:
            shutil.rmtree(os.path.join(cache, name), ignore_errors=True)
            del sizes[name]

def known(path):
    return os.path.isdir(path) and not os.path.islink(path) and os.lstat(path).st_uid == os.geteuid()

def keep(path):
    draft = tempfile.mkdtemp(dir=cache, suffix=".draft")
    try:
        shutil.copytree(base, draft, symlinks=True, dirs_exist_ok=True)
        os.rename(draft, path)
        clean(os.path.basename(path))
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            print(f"The packages could not be kept for the next time: {error}", flush=True)

def wait_for_turn(path):
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("The same Python packages are being installed by another replica; waiting for it.", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)

def reuse(path):
    if not known(path):
        return False
    try:
        os.utime(path)
        shutil.copytree(path, base, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error):
        shutil.rmtree(base, ignore_errors=True)
        return False
    print(f"Python packages as they were installed before: {os.path.basename(path)[:12]}", flush=True)
    return True

def find_pip():
    ensurepip = importlib.util.find_spec("ensurepip")
    bundled = ensurepip and os.path.join(os.path.dirname(ensurepip.origin), "_bundled")
    for folder in filter(None, (sysconfig.get_config_var("WHEEL_PKG_DIR"), bundled)):
        sys.path[:0] = sorted(glob.glob(os.path.join(glob.escape(folder), "pip-*.whl")))[-1:]

path = ""
try:
    if cache:
        os.makedirs(cache, mode=0o700, exist_ok=True)
        path = key() and os.path.join(cache, key())
    if path and not known(path):
        wait_for_turn(path)
except OSError:
    path = ""
if path and reuse(path):
    sys.exit(0)
if importlib.util.find_spec("pip") is None:
    find_pip()
sys.argv[1:] = ["install", "--no-input", "--no-cache-dir", "--disable-pip-version-check", *where, *options]
try:
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
except SystemExit as end:
    if end.code:
        raise
if path and os.path.isdir(base):
    keep(path)
"""
"""An environment that shows no packages of the user's own, as a virtual one, gets them in a folder.

What was installed is kept in the person's cache, under what decides about it: the Python, pip's settings, and
the names (not of what is local: that may change).  A job has a copy of its own.  Of several replicas that
want the same at once, one installs it.  A Python without pip uses the one that it keeps for virtual
environments.
"""


def arguments(packages: PackageSpec, work: str, cache: str = "") -> list[str]:
    """Return a shell's arguments; `work` is the replica's own folder, `cache` the person's or ''."""
    file = f"{packages.directory.rstrip('/')}/requirements.txt" if packages.directory else ""
    listed = ["-r", file] if file else []
    names = ["--", *packages.names] if packages.names else []
    kept = [cache, str(packages.cache_bytes)]
    return [SCRIPT, "sh", "-c", _INSTALL, _target(work), *kept, *listed, *names]


def configuration() -> dict[str, str]:
    """For pip alone: the system's packages are not touched by what goes to the user's own folder."""
    return {"PIP_BREAK_SYSTEM_PACKAGES": "1"}


def about(packages: PackageSpec) -> str:
    """Return the packages as they are shown to people."""
    return " ".join((*packages.names, packages.directory)).strip()


def visible(env: Mapping[str, str], work: str) -> dict[str, str]:
    """The variables by which the job finds what was installed, on top of its environment."""
    own = f"{work}/.local/bin:{_target(work)}/bin"
    before = env.get("PYTHONPATH")
    return {
        "PYTHONUSERBASE": f"{work}/.local",
        "PYTHONPATH": f"{_target(work)}:{before}" if before else _target(work),
        **({"PATH": f"{own}:{env['PATH']}"} if "PATH" in env else {BIN: own}),
    }


def on_path(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a container, with what BIN names before its PATH."""
    if BIN not in env:
        return dict(env)
    return {**env, "PATH": ":".join(filter(None, (env[BIN], env.get("PATH"))))}


def _target(work: str) -> str:
    return f"{work}/.local/packages"
