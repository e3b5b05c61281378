"""The images that pods run, made without a registry: a small Debian, and the process that holds a pod."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.bare_machine import debootstrap

BASE = "localhost/base:12"
"""Debian with a shell, Python, pip and git, which containers that prepare a job need too."""
PAUSE = "localhost/pause:1"
"""A single program that sleeps: it has no shell."""
PACKAGES = ("python3", "python3-pip-whl", "git", "ca-certificates")
PATH = "PATH=/usr/local/bin:/usr/bin:/bin"
USELESS = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists")

_PAUSE_SOURCE = """\
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void leave(int number) { _exit(0); }
static void reap(int number) { while (waitpid(-1, NULL, WNOHANG) > 0); }
int main(void) {
  signal(SIGINT, leave);
  signal(SIGTERM, leave);
  signal(SIGCHLD, reap);
  for (;;) pause();
}
"""


def build(target: Path) -> None:
    """Write `base.tar` and `pause.tar`, as `docker save` would."""
    with tempfile.TemporaryDirectory(prefix="images-", dir=target) as temporary:
        root = Path(temporary, "base")
        debootstrap(root, PACKAGES)
        for each in USELESS:
            shutil.rmtree(root / each)
            (root / each).mkdir()
        _write(root, target / "base.tar", BASE, {"Cmd": ["/bin/sh"], "Env": [PATH]})
        root = Path(temporary, "pause")
        root.mkdir()
        source = Path(temporary, "pause.c")
        source.write_text(_PAUSE_SOURCE)
        subprocess.run(["gcc", "-Os", "-static", "-s", "-o", root / "pause", source], check=True)
        _write(root, target / "pause.tar", PAUSE, {"Entrypoint": ["/pause"]})


def _write(root: Path, to: Path, name: str, settings: dict[str, list[str]]) -> None:
    """Write a root file system as an archive of one image with one layer."""
    layer = to.with_suffix(".layer")
    with tarfile.open(layer, "w") as archive:
        archive.add(root, ".")
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(to, "w") as archive:
        archive.add(layer, "layer.tar")
        for member, data in (("config.json", config), ("manifest.json", json.dumps(manifest).encode())):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    layer.unlink()
