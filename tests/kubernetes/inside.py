"""Runs a Kubernetes cluster as the first process of private namespaces: see `cluster`.

`inside.py FOLDER BUILT PYTHON` starts the control plane and the nodes, says "ready" on stdout, and ends with
all of it when its stdin does.  `inside.py node NUMBER …` is one node, in mounts of its own: kubelets have
their devices' sockets at a fixed path.  Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NODES = 2
LOG_SIZES = ("20Mi", "1Mi")
"""The size at which each node begins another file for a container's output: every ten seconds it looks."""
GPUS = 4
API = "10.200.0.254"
API_PORT = 16443
ETCD = "http://127.0.0.1:12379"
POLL_S = 0.1
START_S = 120
TUNABLES = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""What a kubelet would set for the whole machine: here it finds files that already say so."""
KUBELET_FOLDERS = (Path("/var/lib/kubelet"), Path("/var/log/pods"), Path("/var/log/containers"))
"""Where every kubelet writes: each has its own there, which this machine does not see."""
CONTROLLERS = "*,-nodeipam,-bootstrapsigner,-tokencleaner,-attachdetach,-service,-route,-cloud-node-lifecycle"

CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd-{node}"
oom_score = 0
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
"""


def main() -> None:
    """Run the control plane and all nodes."""
    folder, built, python = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    for path in ("/run", "/var/lib/cni", "/mnt"):
        Path(path).mkdir(exist_ok=True)
        _run("mount", "-t", "tmpfs", "tmpfs", path)
    _fake_tunables()
    _run("ip", "link", "set", "lo", "up")
    for last in (254, *range(1, NODES + 1)):
        _run("ip", "addr", "add", f"10.200.0.{last}/32", "dev", "lo")
    _run("ip", "route", "add", "unreachable", "169.254.0.0/16")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    nodes = [
        _start(
            folder,
            f"node{number}",
            *("unshare", "--mount", "--propagation", "private"),
            *(sys.executable, "-I", "-S", __file__, "node", str(number), str(folder), str(built), python),
        )
        for number in range(1, NODES + 1)
    ]
    _start_control_plane(folder, built)
    relay(folder / "apiserver.sock", "127.0.0.1", API_PORT)
    threading.Thread(target=serve_names, args=[folder], daemon=True).start()
    _wait(
        lambda: all(map(_is_ready, _get(folder, "/api/v1/nodes").get("items", ()))) and _count_nodes(folder)
    )
    _wait(lambda: bool(_get(folder, "/api/v1/namespaces/default/serviceaccounts/default")))
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # nobody waits for what others have left to the first process
    print("ready", flush=True)  # noqa: T201
    sys.stdin.read()
    for node in nodes:
        node.kill()
    os._exit(0)  # the kernel ends all others with the first process


def _count_nodes(folder: Path) -> bool:
    return len(_get(folder, "/api/v1/nodes")["items"]) == NODES


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
    is_tainted = any(
        taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", ())
    )
    gpus = node["status"].get("allocatable", {}).get("nvidia.com/gpu")
    return conditions.get("Ready") == "True" and not is_tainted and gpus == str(GPUS)


def _fake_tunables() -> None:
    for name, value in TUNABLES.items():
        path = Path("/mnt", name.replace("/", "-"))
        path.write_text(f"{value}\n")
        _run("mount", "--bind", str(path), f"/proc/sys/{name}")


def _start_control_plane(folder: Path, built: Path) -> None:
    etcd = Path("/mnt/etcd")
    etcd.mkdir()
    _start(
        folder,
        "etcd",
        *("etcd", f"--data-dir={etcd}", f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}"),
        "--listen-peer-urls=http://127.0.0.1:12380",
    )
    keys = folder / "keys"
    _keep(
        folder,
        "apiserver",
        str(built / "kube-apiserver"),
        f"--etcd-servers={ETCD}",
        f"--secure-port={API_PORT}",
        "--insecure-port=0",
        "--bind-address=0.0.0.0",
        f"--advertise-address={API}",
        f"--tls-cert-file={keys}/server.crt",
        f"--tls-private-key-file={keys}/server.key",
        f"--client-ca-file={keys}/ca.crt",
        f"--token-auth-file={keys}/tokens.csv",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={keys}/accounts.key",
        f"--service-account-key-file={keys}/accounts.key",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged",
        "--kubelet-preferred-address-types=InternalIP",
        "--etcd-compaction-interval=0",
        "--watch-cache-sizes=secrets#0",  # their watches show what is compacted
        "--enable-admission-plugins=NodeRestriction",
    )
    _wait(lambda: bool(_get(folder, "/api/v1/namespaces/kube-system")))
    kubeconfig = f"--kubeconfig={folder}/inside.kubeconfig"
    _keep(
        folder,
        "controllers",
        str(built / "kube-controller-manager"),
        kubeconfig,
        f"--service-account-private-key-file={keys}/accounts.key",
        f"--root-ca-file={keys}/ca.crt",
        f"--controllers={CONTROLLERS}",
        "--node-monitor-period=1s",
        "--node-monitor-grace-period=8s",
        "--pod-eviction-timeout=10s",
        "--leader-elect=false",
        "--enable-hostpath-provisioner",
        "--port=0",
    )
    _keep(folder, "scheduler", str(built / "kube-scheduler"), kubeconfig, "--leader-elect=false", "--port=0")
    _start(
        folder,
        "proxy",
        str(built / "kube-proxy"),
        kubeconfig,
        "--proxy-mode=iptables",
        "--cluster-cidr=10.201.0.0/16",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
        "--hostname-override=node1",
    )


def run_node() -> None:
    """Run one node: containerd, the kubelet, and pretend GPUs."""
    number, shared, built, python = int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5]
    node, folder = f"node{number}", shared / f"node{number}"
    (folder / "cni").mkdir(parents=True)
    for path in KUBELET_FOLDERS:
        own = folder / path.name
        own.mkdir()
        path.mkdir(parents=True, exist_ok=True)
        _run("mount", "--bind", str(own), str(path))
        _run("mount", "--make-shared", str(path))
    (folder / "containerd.toml").write_text(CONTAINERD.format(folder=folder, node=node))
    (folder / "cni/bridge.conflist").write_text(json.dumps(_bridge(number)))
    _start(shared, f"containerd{number}", "containerd", "--config", str(folder / "containerd.toml"))
    _wait((folder / "containerd.sock").exists)
    for image in ("pause", "base"):
        where = ("--address", f"{folder}/containerd.sock", "--namespace", "k8s.io")
        _run("ctr", *where, "images", "import", str(built / f"{image}.tar"))
    root = f"{shared.name}-{number}"
    for group in Path("/sys/fs/cgroup").glob("*/cgroup.procs"):
        _make_group(group.parent / root)
    (folder / "kubelet.json").write_text(json.dumps(_kubelet_settings(number, f"/{root}")))
    threading.Thread(target=_give_gpus, args=[shared, number, python], daemon=True).start()
    command = (
        str(built / "kubelet"),
        f"--config={folder}/kubelet.json",
        f"--kubeconfig={shared}/inside.kubeconfig",
        "--root-dir=/var/lib/kubelet",
        f"--cert-dir={folder}/pki",
        f"--hostname-override={node}",
        f"--node-ip=10.200.0.{number}",
        "--container-runtime=remote",
        f"--container-runtime-endpoint=unix://{folder}/containerd.sock",
        "--pod-infra-container-image=localhost/pause:1",
    )
    _wait(lambda: bool(_get(shared, "/api/v1/namespaces/kube-system")))
    while True:  # a test may kill it, and keep it away by the file
        _start(shared, f"kubelet{number}", *command).wait()
        _wait(lambda: not (folder / "away").exists(), 3600)


def _make_group(group: Path) -> None:
    """Make a control group; a cpuset begins without any processor."""
    group.mkdir(exist_ok=True)
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / name).exists():
            (group / name).write_text((group.parent / name).read_text())


def _bridge(number: int) -> dict[str, Any]:
    subnet = f"10.201.{number}.0/24"
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {
        "type": "bridge",
        "bridge": f"k8sbr{number}",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": ipam,
    }
    return {"cniVersion": "0.4.0", "name": f"pods{number}", "plugins": [bridge]}


def _kubelet_settings(number: int, group: str) -> dict[str, Any]:
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "address": f"10.200.0.{number}",
        "port": 10250,
        "readOnlyPort": 0,
        "healthzPort": 10240 + number,
        "kubeAPIQPS": 50,  # as since Kubernetes 1.27: with 5 a second pods wait for kubelets
        "kubeAPIBurst": 100,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": group,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "clusterDNS": [f"10.200.0.{number}"],
        "clusterDomain": "cluster.local",
        "nodeStatusUpdateFrequency": "1s",
        "nodeStatusReportFrequency": "10s",
        "evictionHard": {"memory.available": "10Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "containerLogMaxSize": LOG_SIZES[number - 1],
        "serializeImagePulls": False,
    }


def _give_gpus(shared: Path, number: int, python: str) -> None:
    """Keep the device plugin running: it ends when a kubelet starts again."""
    while True:
        with contextlib.suppress(OSError):
            _start(shared, f"gpus{number}", python, "-I", str(HERE / "gpu_plugin.py"), str(GPUS)).wait()
        time.sleep(1)


# --- names ---------------------------------------------------------------------------------------------


def serve_names(folder: Path) -> None:
    """Answer questions for services and pods, in place of CoreDNS, which Debian does not have."""
    for number in range(1, NODES + 1):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((f"10.200.0.{number}", 53))
        threading.Thread(target=_serve_names, args=[made, folder], daemon=True).start()


def _serve_names(made: socket.socket, folder: Path) -> None:
    while True:
        question, client = made.recvfrom(4096)
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError):
            made.sendto(_answer(question, folder), client)


def _answer(question: bytes, folder: Path) -> bytes:
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode().lower())
        at += 1 + question[at]
    end = at + 5
    kind = question[at + 2]
    addresses = _addresses(labels, folder)
    answers = addresses if addresses and kind == 1 else []
    head = question[:2] + bytes((0x85, 0x80 if addresses is not None else 0x83))
    head += bytes((0, 1, 0, len(answers), 0, 0, 0, 0))
    records = (
        b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x01\x00\x04" + socket.inet_aton(address) for address in answers
    )
    return head + question[12:end] + b"".join(records)


def _addresses(labels: list[str], folder: Path) -> list[str] | None:
    """Return the addresses of a name, None if there is no such name."""
    if labels[-3:] != ["svc", "cluster", "local"] or len(labels) not in (5, 6):
        return None
    host, (name, namespace) = labels[0] if len(labels) == 6 else "", labels[-5:-3]
    service = _get(folder, f"/api/v1/namespaces/{namespace}/services/{name}")
    if not service:
        return None
    if not host and service["spec"].get("clusterIP") not in (None, "None"):
        return [service["spec"]["clusterIP"]]
    subsets = _get(folder, f"/api/v1/namespaces/{namespace}/endpoints/{name}").get("subsets") or ()
    found = [each for subset in subsets for each in subset.get("addresses", ())]
    return [each["ip"] for each in found if not host or each.get("hostname") == host] or None


# --- relays --------------------------------------------------------------------------------------------


def relay(path: Path, host: str, port: int) -> None:
    """Pass connections to a socket's path, which other network namespaces reach, on to a port here."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(128)
    serve_relay(listener, lambda: socket.create_connection((host, port)))


def serve_relay(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    """Pass each connection on, in threads that end with the process or the listener."""
    threading.Thread(target=_accept, args=[listener, connect], daemon=True).start()


def _accept(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    with contextlib.suppress(OSError):
        while True:
            near, _address = listener.accept()
            threading.Thread(target=_connect, args=[near, connect], daemon=True).start()


def _connect(near: socket.socket, connect: Callable[[], socket.socket]) -> None:
    with near, contextlib.suppress(OSError), connect() as far:
        back = threading.Thread(target=_pass_on, args=[far, near], daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
        return
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


# --- helpers -------------------------------------------------------------------------------------------


def _get(folder: Path, path: str) -> dict[str, Any]:
    """Return an object of the apiserver, {} without one."""
    token = (folder / "keys/admin.token").read_text()
    request = urllib.request.Request(
        f"https://127.0.0.1:{API_PORT}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    context = ssl.create_default_context(cafile=str(folder / "keys/ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            found: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return {}
    return found


def _wait(predicate: Callable[[], bool], timeout_s: float = START_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() > deadline:
            print("not ready in time", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(1)
        time.sleep(POLL_S)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _keep(folder: Path, name: str, *command: str) -> None:
    """Run a program, and start it again when a test has killed it."""
    first = _start(folder, name, *command)

    def keep() -> None:
        process = first
        while True:
            process.wait()
            process = _start(folder, name, *command)

    threading.Thread(target=keep, daemon=True).start()


def _start(folder: Path, name: str, *command: str) -> subprocess.Popen[bytes]:
    (folder / "logs").mkdir(exist_ok=True)
    with (folder / f"logs/{name}.log").open("ab") as file:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_node() if sys.argv[1] == "node" else main()
