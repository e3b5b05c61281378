"""A bare Debian in a root file system of its own: Python, make and git, and an ordinary user without rights.

What a newcomer's machine has, so that whatever else a console needs shows.  Made by debootstrap from the
package source that this machine has itself; pip is set up there as it is here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

PACKAGES: Final = ("python3", "python3-venv", "make", "git", "ca-certificates")
USER: Final = "newcomer"
HOME: Final = f"/home/{USER}"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SOURCE: Final = "/srv/job-console"
"""Where the checkout is seen there."""

_SHARED: Final = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"),
    *("/etc/pip.conf", "/etc/xdg/pip"),
)
"""How this machine reaches package sources; what it lacks is not needed."""

_ENTER: Final = """\
set -eu
cd "$1"
mount --bind . . && cd "$1"
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mount -t tmpfs tmpfs tmp
mkdir -p ".$2" old
mount --bind "$3" ".$2"
pivot_root . old
umount -l /old
user=$4
shift 4
setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all "$@"
"""
"""A root of its own rather than a chroot, in which the kernel gives ordinary users no namespaces.

The shell stays: who becomes another user is not killed with its parent any more (prctl(2), PR_SET_PDEATHSIG).
"""


def find_missing() -> str:
    """Return what this machine lacks for one, or "" if nothing."""
    if os.geteuid() != 0:
        return "making a root file system needs root"
    missing = next((name for name in ("debootstrap", "unshare", "setpriv") if not shutil.which(name)), "")
    return f"there is no {missing} (Debian: debootstrap util-linux)" if missing else ""


class BareMachine:
    """A root file system in the folder `root`, with the repository `checkout` to be seen at `SOURCE`."""

    def __init__(self, root: Path, checkout: Path) -> None:
        self.root = root
        self.checkout = checkout

    @property
    def home(self) -> Path:
        """The ordinary user's home, as seen from outside."""
        return self.root / HOME.lstrip("/")

    def start(self, script: str, *, output: Path, user: str = USER) -> subprocess.Popen[bytes]:
        """Start a shell script as the ordinary user, or root; what it prints goes to `output`.

        It is the first process of a namespace: when it ends, or is killed, all that it started ends too.
        """
        command = [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL"),
            *("/bin/sh", "-c", _ENTER, "enter", str(self.root), SOURCE, str(self.checkout), user),
            *("env", "-i", f"HOME={'/root' if user == 'root' else HOME}", f"PATH={PATH}", "LANG=C.UTF-8"),
            *(f"{name}={value}" for name, value in pip_variables().items()),
            *("/bin/bash", "-euo", "pipefail", "-c", f"cd; {script}"),
        ]
        with output.open("wb") as file:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


@contextmanager
def make_machine(checkout: Path) -> Iterator[BareMachine]:
    """Make a bare machine, and remove it in the end.  Raises RuntimeError where a step fails.

    What is not committed in the checkout is not there.
    """
    with TemporaryDirectory(prefix="bare-", dir="/var/tmp") as name:
        root, repository = Path(name, "root"), Path(name, "repository.git")
        Path(name).chmod(0o755)
        _call("git", "clone", "--quiet", "--bare", str(checkout), str(repository))
        debootstrap(root, PACKAGES)
        copy_sources(root)
        _call("chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", USER)
        trusted = f"[safe]\ndirectory = {SOURCE}\n"  # it is another user's
        (root / HOME.lstrip("/") / ".gitconfig").write_text(trusted)
        yield BareMachine(root, repository)


def debootstrap(root: Path, packages: Sequence[str]) -> None:
    """Install a minimal Debian with these packages, from where this machine has its own."""
    answer = _call("apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)", "Created-By: Packages")
    site, codename = next(
        line.split() for line in answer.splitlines() if line.count(" ") == 1 and "-" not in line.split()[1]
    )
    _call("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", codename, str(root), site)


def copy_sources(root: Path) -> None:
    """Set a root file system up to reach package sources as this machine does, `pip_variables` apart."""
    for path in map(Path, _SHARED):
        if path.exists():
            _copy(path, root / path.relative_to("/"))


def pip_variables() -> dict[str, str]:
    """Return this machine's settings of pip that are in no file."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, target, dirs_exist_ok=True)
    else:
        target.write_bytes(path.read_bytes())


def _call(*command: str) -> str:
    """Return what a command prints; what it says otherwise is told where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr}")
    return done.stdout
