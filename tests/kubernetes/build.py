"""Builds Kubernetes 1.20.2 from Debian's source package, and the images that its pods run.

`python -m tests.kubernetes.build` builds what is not there yet: below `.venv/kubernetes`, where later runs
find it, by the hash of what builds it.  On two cores the programs take 3.5 minutes, and the images one.

Debian's tree has reflect2 1.0.1, which corrupts memory with Go 1.18 and later: it is replaced by Debian's own
1.0.2.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from console.home import CHECKOUT
from tests.kubernetes import images

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
PACKAGES = {
    "go": "golang-go",
    "rsync": "rsync",
    "dpkg-source": "dpkg-dev",
    "make": "make",
    "gcc": "gcc libc6-dev",
    "debootstrap": "debootstrap",
}
"""Program that the build needs → its Debian packages."""
REFLECT2 = Path("/usr/share/gocode/src/github.com/modern-go/reflect2")
"""From Debian's golang-github-modern-go-reflect2-dev."""
GO_SETTINGS = {
    "CGO_ENABLED": "0",
    "GOPROXY": "off",
    "GOSUMDB": "off",
    "GOTOOLCHAIN": "local",
    "GOFLAGS": "-tags=providerless",
    "KUBE_GIT_VERSION": "v1.20.2",
    "KUBE_GIT_COMMIT": "unknown",
    "KUBE_GIT_TREE_STATE": "archive",
}
"""Without the vendors' clouds the programs are half as large."""


def find_missing() -> str:
    """Return what this machine lacks for the build, "" where it is done or can be done."""
    if is_built():
        return ""
    absent = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if not REFLECT2.is_dir():
        absent.append("golang-github-modern-go-reflect2-dev")
    return f"Kubernetes can't be built without {', '.join(absent)} (Debian packages)" if absent else ""


def folder() -> Path:
    """Return the folder of the programs and images that this version of the build makes."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + Path(images.__file__).read_bytes()).hexdigest()
    return CHECKOUT / ".venv/kubernetes" / digest[:12]


def is_built() -> bool:
    """Tell whether everything is there."""
    return (folder() / "built").exists()


def ensure() -> Path:
    """Return the folder, built where it was not; another process that builds is waited for."""
    found = folder()
    found.mkdir(parents=True, exist_ok=True)
    with (found / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_built():
            with ThreadPoolExecutor(1) as beside:  # the images wait for the network
                built = beside.submit(images.build, found)
                _build_programs(found)
            built.result()
            (found / "built").touch()
    return found


def _build_programs(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="build-", dir=target) as temporary:
        source = _unpack_source(Path(temporary))
        vendored = source / "vendor/github.com/modern-go/reflect2"
        for each in [*vendored.glob("*.go"), *vendored.glob("*.s")]:
            each.unlink()
        for each in [*REFLECT2.glob("*.go"), *REFLECT2.glob("*.s")]:
            shutil.copy(each, vendored)
        (source / ".go/src/k8s.io").mkdir(parents=True)
        (source / ".go/src/k8s.io/kubernetes").symlink_to("../../..")
        (source / "home").mkdir()
        what = " ".join(f"cmd/{program}" for program in PROGRAMS)
        environ = {
            **os.environ,
            **GO_SETTINGS,
            "GOPATH": str(source / ".go"),
            "HOME": str(source / "home"),
            "PATH": f"/usr/lib/go/bin:{os.environ['PATH']}",
        }
        _run(["make", f"WHAT={what}"], source, environ)
        for program in PROGRAMS:
            shutil.move(source / "_output/local/go/bin" / program, target / program)


def _unpack_source(beside: Path) -> Path:
    """Return the tree of Debian's source package, from where this machine has its packages."""
    with _source_lists(beside) as options:
        _run(["apt-get", "--quiet", *options, "update"], beside)
        _run(["apt-get", "--quiet", *options, "source", "--download-only", "kubernetes"], beside)
    (description,) = beside.glob("kubernetes_*.dsc")
    _run(["dpkg-source", "--no-check", "--extract", str(description), "source"], beside)
    return beside / "source"


@contextmanager
def _source_lists(beside: Path) -> Iterator[list[str]]:
    """Give apt's options to fetch source packages, without a change of this machine's settings."""
    parts, lists = beside / "parts", beside / "lists"
    parts.mkdir()
    (lists / "partial").mkdir(parents=True)
    etc = Path("/etc/apt")
    for each in [etc / "sources.list", *etc.glob("sources.list.d/*")]:
        if each.is_file() and "debian" in (text := each.read_text()):
            text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
            text = re.sub(r"^deb(?=\s)", "deb-src", text, flags=re.MULTILINE)
            (parts / each.name).write_text(text)
    yield [
        "--option=Dir::Etc::sourcelist=/dev/null",
        f"--option=Dir::Etc::sourceparts={parts}",
        f"--option=Dir::State::lists={lists}",
        "--option=APT::Sandbox::User=root",
    ]


def _run(command: Sequence[str], cwd: Path, environ: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=environ, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    print(ensure())  # noqa: T201
