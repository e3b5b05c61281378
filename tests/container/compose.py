"""The containers of `deploy/container`, built and started by a podman whose store is the test's alone.

No registry is asked for an image: the base is a Debian made by debootstrap, in which pip is set up as it is
here, and the servers are Debian's packages (`Containerfile` beside this module).
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from console.home import CHECKOUT
from jobs.node.sandbox import engine
from tests import bare_machine
from tests.clients.environments import INSTALL, PLAINLY
from tests.ports import free_ports

HERE: Final = Path(__file__).parent
HOST: Final = "console.localhost"
PASSWORD: Final = "of-the-first-admin"
SERVERS: Final = ("postgres", "redis", "caddy")
_DNS: Final = Path("/usr/lib/podman/aardvark-dns")
_FILES: Final = ("deploy/container/compose.yaml", "deploy/container/.env")
_COMMAND_S: Final = 900


def find_missing() -> str:
    """Return what this machine lacks to build and start containers, or "" if nothing."""
    if missing := bare_machine.find_missing():
        return missing
    if shutil.which("podman") is None:
        return "there is no podman (Debian: podman runc)"
    return "" if _DNS.exists() else "there is no aardvark-dns (Debian: aardvark-dns)"


class Containers:
    """The containers of one copy of the checkout, below `folder`, and the commands of who runs them.

    Its path must be short: podman takes no run folder of more than 50 characters.
    """

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "job-console"
        self.http_port = free_ports(3)
        self.https_port, self.ssh_port = self.http_port + 1, self.http_port + 2
        self._folder = folder
        self._programs = folder / "programs"
        self._store = ("--root", str(folder / "store"), "--runroot", str(folder / "run"))
        self._environ = {
            **os.environ,
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "CONTAINERS_CONF": str(folder / "containers.conf"),
        }

    @property
    def compose(self) -> str:
        """The command line of podman-compose up to its command."""
        return f"podman-compose --file {_FILES[0]}"

    def prepare(self) -> None:
        """Copy what is committed, make the programs that a person has, and all images but the console's."""
        _call("git", "clone", "--quiet", str(CHECKOUT), str(self.checkout))
        self._programs.mkdir()
        self._write_configuration()
        self._install_compose()
        self._write_editor()
        self._import_base()
        build = f"podman build --build-arg BASE={_image('debian')} {HERE}"
        for name in SERVERS:
            self.run(f"{build} --target {name} --tag {_image(name)}")

    def run(self, script: str) -> str:
        """Run a shell script in the checkout and return what it printed.

        Raises AssertionError where it fails.
        """
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.checkout,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        assert done.returncode == 0, f"{script}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout.strip()

    def call(self, service: str, command: str) -> str:
        """Run a command in a service's container and return what it printed."""
        return self.run(f"podman exec {self.name(service)} {command}")

    def has_started(self) -> bool:
        """Tell whether the console's health check, run now, finds it healthy.

        podman has systemd run it now and then, which does not run where the tests do.
        """
        check = ["podman", "healthcheck", "run", self.name("console")]
        return subprocess.run(check, env=self._environ, capture_output=True, check=False).returncode == 0

    def logs(self) -> str:
        """Return the end of what each container has printed."""
        names = [self.name(service) for service in ("console", *SERVERS)]
        return self.run("; ".join(f"echo '--- {name}'; podman logs --tail 30 {name} 2>&1" for name in names))

    def name(self, service: str) -> str:
        """Return the name of a service's container."""
        return f"job-console_{service}_1"

    def inspect(self, service: str, path: str) -> str:
        """Return a field of a service's container."""
        return self.run(f"podman inspect --format '{{{{{path}}}}}' {self.name(service)}")

    def remove(self) -> None:
        """End all containers and delete what they left."""
        try:
            if (self.checkout / _FILES[1]).exists():
                self.run(f"{self.compose} down --volumes")
        finally:
            store = self._folder / "store" / "overlay"
            subprocess.run(["umount", "--lazy", store], check=False, capture_output=True)

    def _write_configuration(self) -> None:
        """Have podman ask for no more open files than this machine allows, and leave nothing in /etc."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        detected = engine.detect("podman", self._store)
        assert detected.command, "podman does not answer"
        options = dict(zip(detected.command[1::2], detected.command[2::2], strict=True))
        named = {"runtime": options.get("--runtime"), "cgroup_manager": options.get("--cgroup-manager")}
        settings = "".join(f'{name} = "{value}"\n' for name, value in named.items() if value)
        (self._folder / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=32768:32768"]\n'
            f'[network]\nnetwork_config_dir = "{self._folder / "networks"}"\n'
            f"[engine]\n{settings}"
        )
        self._write_program("podman", f'exec {shutil.which("podman")} {" ".join(self._store)} "$@"')

    def _install_compose(self) -> None:
        environment = self._folder / "compose"
        venv.create(environment, symlinks=True)
        into = ("--python", str(environment / "bin" / "python"))
        _call(*INSTALL, *into, "install", *PLAINLY, "--requirement", str(HERE / "compose.lock"))
        (self._programs / "podman-compose").symlink_to(environment / "bin" / "podman-compose")

    def _write_editor(self) -> None:
        """Write a program that edits the file as a person would: below the defaults, which it replaces."""
        settings = {
            "CONSOLE_HOST": HOST,
            "POSTGRES_PASSWORD": "of-the-database",
            "CONSOLE_ADMIN_PASSWORD": PASSWORD,
            "CADDY_GLOBAL_OPTIONS": "local_certs",
            "BASE_IMAGE": _image("debian"),
            **{f"{name.upper()}_IMAGE": _image(name) for name in SERVERS},
            "HTTP_PORT": self.http_port,
            "HTTPS_PORT": self.https_port,
            "SSH_PORT": self.ssh_port,
        }
        lines = " ".join(f"{name}={value}" for name, value in settings.items())
        self._write_program("editor", f'printf "%s\\n" {lines} >>"$1"')

    def _write_program(self, name: str, script: str) -> None:
        program = self._programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def _import_base(self) -> None:
        root = self._folder / "debian"
        bare_machine.debootstrap(root, ["ca-certificates"])
        bare_machine.copy_sources(root)
        settings = [f'--change "ENV {name}={value}"' for name, value in bare_machine.pip_variables().items()]
        archive = f"tar --exclude './var/cache/apt/archives/*' -C {root} -c ."
        self.run(f"{archive} | podman import {' '.join(settings)} - {_image('debian')}")
        shutil.rmtree(root)


@contextmanager
def make_containers() -> Iterator[Containers]:
    """Prepare containers, of which none is started yet, and remove all of it in the end."""
    with tempfile.TemporaryDirectory(prefix="jc-", dir="/var/tmp") as name:
        made = Containers(Path(name))
        try:
            made.prepare()
            yield made
        finally:
            made.remove()


def _image(name: str) -> str:
    return f"localhost/{name}:stand-in"


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_COMMAND_S)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
