"""A real Kubernetes for one run of the tests: a control plane, and two kubelets with containerd.

All of it runs in namespaces of its own (`inside`), so that nothing of it is in this machine's network, and
nothing is left when it ends.  Only a socket leads in, to which a port of this machine's loopback is relayed.
GPUs are pretended by a device plugin, and names resolved by a stand-in for CoreDNS.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client.api import Api, ApiError
from jobs.backends.kubernetes.client.connection import ApiConnection, from_settings
from jobs.node import kernel
from tests.kubernetes import build, inside, keys
from tests.waiting import wait_for

PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "etcd": "etcd-server",
    "runc": "runc",
    "conntrack": "conntrack",
    "iptables": "iptables",
    "ip": "iproute2",
    "unshare": "util-linux",
}
"""Program → its Debian package."""
PYTHON = "/usr/bin/python3"
"""Debian's, which has its python3-grpcio."""
MASTERS = "system:masters"
PLACE, PREFIX = Path("/var/tmp"), "jck8s-"
CGROUPS = Path("/sys/fs/cgroup")


def find_missing() -> str:
    """Return what this machine lacks for a cluster, "" if nothing."""
    if os.geteuid() != 0:
        return "Kubernetes needs root"
    if not os.access(CGROUPS / "memory", os.W_OK):
        return "Kubernetes 1.20 needs control groups of version 1"
    absent = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if not Path("/usr/lib/cni/bridge").exists():
        absent.append("containernetworking-plugins")
    if not Path("/usr/lib/python3/dist-packages/grpc").is_dir():
        absent.append("python3-grpcio")
    if absent:
        return f"Kubernetes can't run without {', '.join(absent)} (Debian packages)"
    return build.find_missing()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: its apiserver's URL, its CA (PEM), the token of an admin, and its folder."""

    server: str
    ca: str
    token: str
    folder: Path
    authority: keys.Authority
    namespace: int

    @property
    def connection(self) -> ApiConnection:
        """An admin's."""
        return from_settings(self.server, token=self.token, ca=self.ca)

    @property
    def api(self) -> Api:
        """The apiserver, asked as an admin."""
        return Api(self.connection)

    @property
    def kubeconfig(self) -> Path:
        """An admin's kubeconfig file."""
        return self.folder / "kubeconfig"

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as an admin and return its output."""
        command = [str(build.folder() / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, text=True, check=True, capture_output=True).stdout

    @contextlib.contextmanager
    def make_namespace(self) -> Iterator[str]:
        """Give a namespace that is deleted in the end, with all in it."""
        name = f"test-{secrets.token_hex(3)}"
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts"
        wait_for(lambda: [each for each in self.api.list(account).items if each.get("secrets")])
        yield name
        self.api.delete_many(f"/api/v1/namespaces/{name}/pods", labels="!never")
        self.api.delete(f"/api/v1/namespaces/{name}")

    def compact(self) -> None:
        """Have etcd forget all versions before the present one."""
        version = int(self.api.list("/api/v1/namespaces").resource_version)
        with self.enter_network():
            httpx.post(f"{inside.ETCD}/v3/kv/compaction", json={"revision": version}, trust_env=False)

    def kill_kubelet(self, number: int = 1, *, stay_away: bool = False) -> None:
        """Kill a node's kubelet with SIGKILL; it starts again at once, or when `return_kubelet` is called."""
        away = self.folder / f"node{number}/away"
        if stay_away:
            away.touch()
        for pid in _find_processes(f"--config={self.folder}/node{number}/kubelet.json"):
            os.kill(pid, signal.SIGKILL)

    def return_kubelet(self, number: int = 1) -> None:
        """Let a node's kubelet start again."""
        (self.folder / f"node{number}/away").unlink(missing_ok=True)

    def make_storage_class(self, name: str) -> None:
        """Make a storage class whose volumes are folders below /tmp/hostpath_pv of this machine."""
        path = "/apis/storage.k8s.io/v1/storageclasses"
        body = {"metadata": {"name": name}, "provisioner": "kubernetes.io/host-path"}
        with contextlib.suppress(ApiError):  # it is there
            self.api.create(path, body)

    def restart_control_plane(self) -> None:
        """Kill the API server, the controllers and the scheduler with SIGKILL, and wait for the first."""
        names = {
            "kube-apiserver",
            "kube-controller",
            "kube-scheduler",
        }  # 15 characters, as the kernel has them
        keys_, kubeconfig = f"{self.folder}/keys/ca.crt", f"{self.folder}/inside.kubeconfig"
        for mark in (f"--client-ca-file={keys_}", f"--kubeconfig={kubeconfig}"):
            for pid in _find_processes(mark):
                if Path(f"/proc/{pid}/comm").read_text().strip() in names:
                    os.kill(pid, signal.SIGKILL)

        def is_back() -> bool:
            with contextlib.suppress(Unreachable):
                return bool(self.api.get("/api/v1/namespaces/kube-system"))
            return False

        wait_for(is_back, 60)

    @contextlib.contextmanager
    def enter_network(self) -> Iterator[str]:
        """Give the address at which pods reach what this thread begins to listen on meanwhile."""
        own, theirs = Path("/proc/thread-self/ns/net"), Path(f"/proc/{self.namespace}/ns/net")
        with own.open() as back, theirs.open() as there:
            kernel.join(there.fileno(), kernel.CLONE_NEWNET)
            try:
                yield inside.API
            finally:
                kernel.join(back.fileno(), kernel.CLONE_NEWNET)

    @contextlib.contextmanager
    def publish(self, path: Path) -> Iterator[str]:
        """Give an address, `HOST:PORT`, at which pods reach a Unix socket of this machine."""
        with self.enter_network() as address:
            listener = socket.create_server((address, 0))
        inside.serve_relay(listener, lambda: _connect(path))
        yield f"{address}:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@contextlib.contextmanager
def server() -> Iterator[Cluster]:
    """Give a cluster, and end it with all that runs there."""
    built = build.ensure()
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
    lock = (folder / "new-lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    Path(lock.name).rename(folder / "lock")
    try:
        authority, token = keys.Authority(), secrets.token_hex(16)
        _write_keys(folder / "keys", authority, token)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            for name, address in (
                ("kubeconfig", url),
                ("inside.kubeconfig", f"https://127.0.0.1:{inside.API_PORT}"),
            ):
                (folder / name).write_text(_kubeconfig(address, authority.pem, token))
            with _start(folder, built) as process:
                try:
                    first = _wait_until_ready(process, folder)
                    inside.serve_relay(listener, lambda: _connect(folder / "apiserver.sock"))
                    yield Cluster(url, authority.pem, token, folder, authority, first)
                finally:
                    process.kill()
            listener.shutdown(socket.SHUT_RDWR)
    finally:
        _remove_groups(folder.name)
        shutil.rmtree(folder)
        lock.close()


def _sweep() -> None:
    """Remove what is left of clusters whose tests were killed: with these they have ended."""
    for folder in PLACE.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_groups(folder.name)
            shutil.rmtree(folder)


def _start(folder: Path, built: Path) -> subprocess.Popen[bytes]:
    """Start it; it ends with this process, however this ends."""
    namespaces = (
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount",
        "--net",
        "--ipc",
        "--uts",
        "--mount-proc",
    )
    command = ("-I", "-S", str(Path(inside.__file__)), str(folder), str(built), PYTHON)
    return subprocess.Popen(
        ["unshare", *namespaces, sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _wait_until_ready(process: subprocess.Popen[bytes], folder: Path) -> int:
    """Return the first process of the namespaces.  Raises RuntimeError with the logs' ends."""
    assert process.stdout
    if process.stdout.readline() != b"ready\n":
        logs = (f"--- {log.name}\n{log.read_text()[-1500:]}" for log in sorted(folder.glob("logs/*.log")))
        raise RuntimeError("Kubernetes did not start\n" + "\n".join(logs))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return int(children.split()[0])


def _connect(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.connect(str(path))
    except OSError:
        made.close()
        raise
    return made


def _write_keys(folder: Path, authority: keys.Authority, token: str) -> None:
    folder.mkdir()
    names = ("127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1", inside.API)
    certificate, key = authority.issue_server(*names)
    texts = {
        "ca.crt": authority.pem,
        "server.crt": certificate,
        "server.key": key,
        "accounts.key": keys.make_account_key(),
        "admin.token": token,
        "tokens.csv": f'{token},admin,1,"{MASTERS}"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


def _kubeconfig(url: str, ca: str, token: str) -> str:
    """Return a kubeconfig, as JSON, which is YAML too."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin",
            "contexts": [{"name": "admin", "context": {"cluster": "here", "user": "admin"}}],
            "clusters": [
                {
                    "name": "here",
                    "cluster": {"server": url, "certificate-authority-data": keys.as_base64(ca)},
                }
            ],
            "users": [{"name": "admin", "user": {"token": token}}],
        }
    )


def _find_processes(argument: str) -> Iterator[int]:
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if argument.encode() in each.read_bytes().split(b"\0"):
                yield int(each.parent.name)


def _remove_groups(name: str) -> None:
    """Remove the control groups, as soon as what was in them has ended."""

    def removed() -> bool:
        groups = [group for root in CGROUPS.glob(f"*/{name}-*") for group in (*root.rglob("*/"), root)]
        for group in sorted(groups, key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(OSError):
                group.rmdir()
        return not list(CGROUPS.glob(f"*/{name}-*"))

    wait_for(removed)
