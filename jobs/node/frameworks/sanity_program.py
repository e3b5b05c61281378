"""The sanity check of a job's nodes: what each replica runs before its command.

    sanity_program OFFSET SECONDS LIBRARY

OFFSET is the number of replicas of the roles before; SECONDS bounds the whole check; LIBRARY is `torch` where
the job trains with that.  It travels in the job's command, and needs only the standard library.

The first replica coordinates: the others connect to it, report after each phase, and hear whether the check
goes on.  So all of them pass, or none runs its command.  The result is written into a file in the replica's
folder at every phase; nothing but that and the exit code tells how it ended.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import importlib.util
import json
import os
import queue
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

FILE = ".job-console-sanity"
EXIT_CODE = 86
PHASES = ("CheckInit", "DeviceCheck", "SingleNodeCommCheck", "TwoNodeCommCheck", "AllNodeCommCheck")
RUNNING, SUCCEEDED, FAILED, SKIPPED = "Running", "Succeeded", "Failed", "Skipped"

BLOCK = 1 << 20
DISK_BLOCKS = 8
MEMORY_MIB = 64
VECTOR = struct.Struct("!1024q")
MOST_PEERS = 64  # every replica tries all others up to so many, else the next half of that
LONGEST = 1 << 20  # of a line
MOST_FAULTS = 8
TORCH_MIB = 1024  # a smaller replica can hardly load it
PAUSE_S = 0.1
LATE_S = 5.0  # the others wait so much longer than the coordinator, which knows who is late
TORCH = """
import datetime, os, sys, torch, torch.distributed as dist
backend, world = sys.argv[1], int(sys.argv[2])
limit = datetime.timedelta(seconds=float(sys.argv[3]))
rank = int(os.environ["RANK"])
dist.init_process_group(backend, init_method="env://", rank=rank, world_size=world, timeout=limit)
device = "cuda:0" if backend == "nccl" else "cpu"
value = torch.full((1 << 16,), float(rank), device=device)
dist.all_reduce(value)
assert value[-1].item() == sum(range(world)), value[-1].item()
dist.destroy_process_group()
"""
NO_CUDA = 77  # exit code of a program of torch that can't use a GPU
ON_NODE = """
import datetime, sys, torch, torch.distributed as dist
if not (torch.cuda.is_available() and dist.is_nccl_available()):
    sys.exit(NO_CUDA)
rank, world = int(sys.argv[1]), int(sys.argv[2])
limit = datetime.timedelta(seconds=float(sys.argv[3]))
torch.cuda.set_device(rank)
matrix = torch.rand(2048, 2048, device="cuda")
assert torch.equal(matrix @ matrix, matrix @ matrix), "the same product gave two results"
meeting = "file://" + sys.argv[4]
dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=world, timeout=limit)
value = torch.full((1 << 20,), float(rank), device="cuda")
dist.all_reduce(value)
assert value[-1].item() == sum(range(world)), value[-1].item()
dist.destroy_process_group()
""".replace("NO_CUDA", str(NO_CUDA))


class CheckFailed(Exception):
    """A check found a fault; `str` says which."""


class NotCheckable(Exception):
    """Something can't be checked here; `str` says why."""


# --- one node --------------------------------------------------------------------------------------------


def check_cpu() -> str:
    """Compute a digest twice, and compare; return the speed."""
    data, began = bytes(range(256)) * 4096, time.perf_counter()
    digests = {hashlib.sha256(data * 8).hexdigest() for _ in range(2)}
    if len(digests) != 1:
        raise CheckFailed("the same computation gave two results")
    return f"{16 / max(1e-6, time.perf_counter() - began):.0f} MiB/s SHA-256"


def check_memory() -> str:
    """Fill memory with a pattern and read it back."""
    limit = os.environ.get("PAI_TASK_MEM_MB", "")
    size = min(MEMORY_MIB, int(limit) // 8 if limit.isdigit() else MEMORY_MIB) or 1
    pattern = os.urandom(BLOCK)
    try:
        held = [bytearray(pattern) for _ in range(size)]
    except MemoryError:
        raise CheckFailed(f"{size} MiB could not be allocated") from None
    if any(each != pattern for each in held):
        raise CheckFailed("what was read differs from what was written")
    return f"{size} MiB"


def check_disk() -> str:
    """Write a file into the job's folder, flush it to the disk, and read it back."""
    path, pattern, began = f"{FILE}.{os.getpid()}", os.urandom(BLOCK), time.perf_counter()
    try:
        with open(path, "wb") as file:
            file.writelines(pattern for _ in range(DISK_BLOCKS))
            file.flush()
            os.fsync(file.fileno())
        took = time.perf_counter() - began
        with open(path, "rb") as file:
            if any(file.read(BLOCK) != pattern for _ in range(DISK_BLOCKS)):
                raise CheckFailed("what was read differs from what was written")
    except OSError as error:
        raise CheckFailed(str(error)) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return f"{DISK_BLOCKS / max(1e-6, took):.0f} MiB/s write and fsync"


def check_gpu() -> str:
    """Ask the driver for the GPUs, and for memory errors that it could not correct."""
    wanted = int(os.environ.get("PAI_TASK_GPU_NUM") or 0)
    if not wanted:
        raise NotCheckable("no GPU was requested")
    program = shutil.which("nvidia-smi")
    if program is None:
        if glob.glob("/dev/nvidia[0-9]*"):
            raise NotCheckable("nvidia-smi is not on the job's PATH")
        raise NotCheckable("there is no NVIDIA driver here")
    query = ["--query-gpu=name,ecc.errors.uncorrected.volatile.total", "--format=csv,noheader"]
    try:
        found = subprocess.run(
            [program, *query], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckFailed(f"nvidia-smi: {error}") from None
    lines = [line.strip() for line in found.stdout.decode(errors="replace").splitlines() if line.strip()]
    if found.returncode:
        raise CheckFailed(f"nvidia-smi: {lines[-1] if lines else f'exit code {found.returncode}'}")
    if len(lines) < wanted:
        raise CheckFailed(f"{wanted} GPUs were requested, the driver has {len(lines)}")
    errors = [line for line in lines if line.rpartition(",")[2].strip().isdigit()]
    if any(int(line.rpartition(",")[2]) for line in errors):
        raise CheckFailed("uncorrected memory errors (ECC)")
    return f"{len(lines)} GPUs: {lines[0].rpartition(',')[0]}"


def check_loopback() -> str:
    """Sum vectors with a process of this node."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=answer_sum, args=(theirs, theirs.makefile("rb"), 1), daemon=True)
        sender.start()
        if ask_for_sum(ours, ours.makefile("rb"), 2) != 3:
            raise CheckFailed("a wrong sum")
    return "sum of two"


DEVICES: dict[str, Callable[[], str]] = {
    "cpu": check_cpu,
    "memory": check_memory,
    "disk": check_disk,
    "gpu": check_gpu,
}


# --- between replicas ------------------------------------------------------------------------------------


def pack(value: int) -> bytes:
    """Return a vector of one value."""
    return VECTOR.pack(*[value] * 1024)


def unpack(data: bytes) -> int:
    """Return the value of a vector.  Raises CheckFailed where it is none of one value."""
    if len(data) != VECTOR.size:
        raise CheckFailed("the connection was lost")
    values = set(VECTOR.unpack(data))
    if len(values) != 1:
        raise CheckFailed("damaged data")
    return int(values.pop())


def ask_for_sum(connection: socket.socket, stream: IO[bytes], value: int) -> int:
    """Send a vector; return the sum with the other side's, as it has computed it."""
    connection.sendall(pack(value))
    return unpack(stream.read(VECTOR.size))


def answer_sum(connection: socket.socket, stream: IO[bytes], value: int) -> None:
    """Read a vector, and answer the sum with one of one's own."""
    with contextlib.suppress(OSError, CheckFailed):
        connection.sendall(pack(unpack(stream.read(VECTOR.size)) + value))


def write_line(connection: socket.socket, value: Any) -> None:
    """Send a value as a line of JSON."""
    connection.sendall(json.dumps(value).encode() + b"\n")


def read_line(stream: IO[bytes]) -> Any:
    """Return the next value.  Raises ConnectionError where there is none that is whole."""
    line = stream.readline(LONGEST)
    if not line.endswith(b"\n"):
        raise ConnectionError("the connection was lost")
    return json.loads(line)


class Peers:
    """The replicas by their ranks, and this one's own listener.

    Whoever connects says its rank and the attempt's name; connections of others are closed.
    """

    def __init__(self, hosts: list[tuple[str, str, int]], rank: int, key: str) -> None:
        self.hosts, self.rank, self._key = hosts, rank, key
        self.joined: dict[int, tuple[socket.socket, IO[bytes]]] = {}
        self.ring: queue.Queue[tuple[socket.socket, IO[bytes]]] = queue.Queue()
        address = hosts[rank][1]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._server = socket.socket(family, socket.SOCK_STREAM)
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._server.bind(("", hosts[rank][2]))
        self._server.listen(1024)
        threading.Thread(target=self._accept, daemon=True).start()

    def connect(self, rank: int, kind: str, until: float) -> tuple[socket.socket, IO[bytes]]:
        """Connect to a replica, again until it listens.  Raises CheckFailed."""
        _name, address, port = self.hosts[rank]
        while True:
            left = until - time.monotonic()
            try:
                connection = socket.create_connection((address, port), max(0.1, min(10.0, left)))
            except OSError as error:
                if time.monotonic() + PAUSE_S > until:
                    raise CheckFailed(f"{address}:{port}: {error}") from None
                time.sleep(PAUSE_S)
                continue
            connection.settimeout(max(0.1, left))
            write_line(connection, {"key": self._key, "kind": kind, "rank": self.rank})
            return connection, connection.makefile("rb")

    def close(self) -> None:
        """Listen no longer: the job's command may want the port."""
        with contextlib.suppress(OSError):  # which also wakes the thread that accepts
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection, _stream in self.joined.values():
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _address = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            connection.settimeout(30)
            stream = connection.makefile("rb")
            hello = read_line(stream)
            rank = int(hello["rank"])
            if hello["key"] == self._key and 0 <= rank < len(self.hosts):
                if hello["kind"] == "join":
                    self.joined[rank] = (connection, stream)
                    return
                if hello["kind"] == "ring":
                    self.ring.put((connection, stream))
                    return
                answer_sum(connection, stream, self.rank)
        connection.close()


class SanityCheck:
    """The check of one replica."""

    def __init__(
        self, hosts: list[tuple[str, str, int]], rank: int, key: str, limit_s: float, library: str
    ) -> None:
        self._hosts, self._rank, self._limit_s = hosts, rank, limit_s
        self._has_torch = library == "torch" and has_torch()
        self._until = time.monotonic() + limit_s
        self._key = key
        self._peers: Peers | None = None
        self._control: tuple[socket.socket, IO[bytes]] | None = None
        self._engine = "tcp"
        self.result: dict[str, Any] = {
            "status": RUNNING,
            "phases": [],
            "checks": [],
            "failed": [],
        }

    def run(self) -> bool:
        """Run all phases; return whether every one was passed, by all replicas."""
        phases = (self._join, self._check_devices, self._check_node, self._check_pairs, self._check_all)
        for position, phase in enumerate(phases):
            if not self._run_phase(PHASES[position], phase):
                break
        failed = bool(self.result["failed"])
        self.result["status"] = FAILED if failed else SUCCEEDED
        self._write()
        if self._peers is not None:
            self._peers.close()
        return not failed

    def _run_phase(self, name: str, phase: Callable[[], tuple[str, list[dict[str, Any]]]]) -> bool:
        row = {"phase": name, "status": RUNNING, "message": "", "started_at": time.time()}
        self.result["phases"].append(row)
        self._write()
        status, message = SUCCEEDED, ""
        failed: list[dict[str, Any]] = []
        try:
            message, failed = phase()
        except NotCheckable as error:
            status, message = SKIPPED, str(error)
        except CheckFailed as error:
            failed = [self._new_fault("network", str(error))]
        failed = self._agree(failed)
        if failed:
            status, message = FAILED, "; ".join(self._describe(each) for each in failed[:4])
        row.update(status=status, message=message, finished_at=time.time())
        self.result["failed"] = failed
        say(f"{name}: {status}: {message}")
        return not failed

    def _describe(self, fault: dict[str, Any]) -> str:
        names = ", ".join(self._hosts[rank][0] for rank in fault["ranks"])
        return f"{names}: {fault['check']}: {fault['detail']}"

    def _new_fault(self, check: str, detail: str, *ranks: int) -> dict[str, Any]:
        return {"check": check, "detail": detail[:300], "ranks": list(ranks) or [self._rank]}

    def _write(self) -> None:
        """Write the result; a full disk is found by its own check."""
        with contextlib.suppress(OSError):
            with open(f"{FILE}.new", "w", encoding="utf-8") as file:
                json.dump(self.result, file)
            os.replace(f"{FILE}.new", FILE)

    # --- phases ---

    def _join(self) -> tuple[str, list[dict[str, Any]]]:
        """Bring all replicas together at the first one."""
        if len(self._hosts) < 2:
            return "1 replica", []
        try:
            self._peers = Peers(self._hosts, self._rank, self._key)
        except OSError as error:
            return "", [self._new_fault("network", f"port {self._hosts[self._rank][2]}: {error}")]
        if self._rank:
            self._control = self._peers.connect(0, "join", self._until)
            return f"{len(self._hosts)} replicas", []
        everybody = set(range(1, len(self._hosts)))
        while everybody - self._peers.joined.keys() and time.monotonic() < self._until:
            time.sleep(PAUSE_S / 2)
        missing = sorted(everybody - self._peers.joined.keys())
        late = f"did not join within {self._limit_s:.0f} s"
        return f"{len(self._hosts)} replicas", [self._new_fault("network", late, rank) for rank in missing]

    def _check_devices(self) -> tuple[str, list[dict[str, Any]]]:
        failed, skipped = [], []
        for name, check in DEVICES.items():
            row = {"check": name, "status": SUCCEEDED, "detail": ""}
            try:
                row["detail"] = check()
            except NotCheckable as error:
                row.update(status=SKIPPED, detail=str(error))
                skipped.append(f"{name}: {error}")
            except CheckFailed as error:
                row.update(status=FAILED, detail=str(error))
                failed.append(self._new_fault(name, str(error)))
            self.result["checks"].append(row)
            say(f"{name}: {row['status']}: {row['detail']}")
        return "; ".join(f"not checked: {each}" for each in skipped), failed

    def _check_node(self) -> tuple[str, list[dict[str, Any]]]:
        """Sum with a process of this node; where the job has torch and GPUs, compute and sum on these too."""
        try:
            message = check_loopback()
        except (OSError, CheckFailed) as error:
            return "", [self._new_fault("loopback", str(error))]
        gpus = int(os.environ.get("PAI_TASK_GPU_NUM") or 0)
        if not self._has_torch or not gpus:
            return message, []
        if not has_memory(TORCH_MIB * gpus):
            return f"{message}; not checked: NCCL needs {TORCH_MIB * gpus} MiB of memory", []
        try:
            self._sum_on_node(gpus)
        except NotCheckable as error:
            return f"{message}; not checked: {error}", []
        except (OSError, CheckFailed) as error:
            return "", [self._new_fault("gpu", str(error))]
        return f"{message}; all-reduce of {gpus} GPUs by nccl", []

    def _check_pairs(self) -> tuple[str, list[dict[str, Any]]]:
        """Sum with each of the replicas behind this one."""
        count = len(self._hosts)
        if self._peers is None:
            raise NotCheckable("1 replica")
        others = list(range(self._rank + 1, count))
        if count > MOST_PEERS:
            others = [(self._rank + step) % count for step in range(1, MOST_PEERS // 2 + 1)]
        failed: list[dict[str, Any]] = []
        for rank in others:
            if len(failed) == MOST_FAULTS:
                break
            try:
                until = min(self._until, time.monotonic() + 10)
                connection, stream = self._peers.connect(rank, "sum", until)
                with connection:
                    if ask_for_sum(connection, stream, self._rank) != self._rank + rank:
                        raise CheckFailed("a wrong sum")
            except (OSError, CheckFailed) as error:
                failed.append(self._new_fault("pair", str(error), self._rank, rank))
        partners = "all pairs" if count <= MOST_PEERS else f"pairs of {MOST_PEERS // 2} neighbours"
        return f"sums over TCP, {partners}", failed

    def _check_all(self) -> tuple[str, list[dict[str, Any]]]:
        """Sum over all replicas: by torch where all of them have it, else in a ring over TCP."""
        if self._peers is None:
            raise NotCheckable("1 replica")
        try:
            if self._engine == "tcp":
                self._sum_in_ring(self._peers)
                return "all-reduce in a ring over TCP", []
            self._sum_by_torch()
        except (OSError, CheckFailed, queue.Empty) as error:
            return "", [self._new_fault("all_reduce", str(error) or "no data from the replica before")]
        return f"all-reduce by {self._engine}", []

    def _sum_in_ring(self, peers: Peers) -> None:
        count = len(self._hosts)
        forward, _stream = peers.connect((self._rank + 1) % count, "ring", self._until)
        behind, stream = peers.ring.get(timeout=max(0.1, self._until - time.monotonic()))
        with forward, behind:
            behind.settimeout(max(0.1, self._until - time.monotonic()))
            value = total = self._rank
            for _step in range(count - 1):
                forward.sendall(pack(value))
                value = unpack(stream.read(VECTOR.size))
                total += value
        if total != sum(range(count)):
            raise CheckFailed("a wrong sum")

    def _sum_on_node(self, gpus: int) -> None:
        """Multiply on each GPU of this replica, and sum over all of them: a process each, as in training."""
        meeting = os.path.abspath(f"{FILE}.nccl.{os.getpid()}")
        arguments = [[str(gpu), str(gpus), f"{self._left_s():.0f}", meeting] for gpu in range(gpus)]
        try:
            self._run_torch(ON_NODE, "nccl", arguments)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(meeting)

    def _sum_by_torch(self) -> None:
        self._run_torch(TORCH, self._engine, [[self._engine, str(len(self._hosts)), f"{self._left_s():.0f}"]])

    def _left_s(self) -> float:
        return max(1.0, self._until - time.monotonic())

    def _run_torch(self, program: str, engine: str, arguments: list[list[str]]) -> None:
        """Run a program of torch in processes side by side.  Raises CheckFailed with its last line."""
        running = [
            subprocess.Popen(
                [sys.executable, "-c", program, *each], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            for each in arguments
        ]
        try:
            for process in running:
                said, _nothing = process.communicate(timeout=self._left_s())
                if process.returncode == NO_CUDA:
                    raise NotCheckable("torch can't use CUDA and NCCL")
                if process.returncode:
                    lines = said.decode(errors="replace").strip().splitlines()
                    raise CheckFailed(
                        f"{engine}: {lines[-1] if lines else f'exit code {process.returncode}'}"
                    )
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{engine} came to no end") from None
        finally:
            for process in running:
                process.kill()
                process.communicate()

    # --- agreement ---

    def _agree(self, failed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Report this replica's faults; return those of all."""
        report = {"failed": failed, **self._abilities()}
        if self._peers is None:
            return failed
        if self._rank == 0:
            return self._collect(self._peers, report)
        if self._control is None:
            return failed
        connection, stream = self._control
        try:
            connection.settimeout(max(0.1, self._until - time.monotonic()) + LATE_S)
            write_line(connection, report)
            verdict = read_line(stream)
        except (OSError, ValueError) as error:
            return failed or [self._new_fault("network", str(error), 0)]
        self._engine = verdict["engine"]
        return list(verdict["failed"])

    def _abilities(self) -> dict[str, bool]:
        gpus = {"check": "gpu", "status": SUCCEEDED}.items()
        return {"torch": self._has_torch, "gpu": any(gpus <= each.items() for each in self.result["checks"])}

    def _collect(self, peers: Peers, own: dict[str, Any]) -> list[dict[str, Any]]:
        """Hear every replica, and tell all of them what was found."""
        reports, failed = [own], list(own["failed"])
        for rank, (connection, stream) in sorted(peers.joined.items()):
            try:
                connection.settimeout(max(0.01, self._until - time.monotonic()))
                report = read_line(stream)
                failed += report["failed"]
                reports.append(report)
            except (OSError, ValueError, KeyError) as error:
                late = isinstance(error, socket.timeout)
                detail = f"no result within {self._limit_s:.0f} s" if late else str(error)
                failed.append(self._new_fault("timeout" if late else "network", detail, rank))
        failed = blame(failed)
        if all(each["torch"] for each in reports):
            self._engine = "nccl" if all(each["gpu"] for each in reports) else "gloo"
        for connection, _stream in peers.joined.values():
            with contextlib.suppress(OSError):
                write_line(connection, {"failed": failed[:MOST_FAULTS], "engine": self._engine})
        return failed[:MOST_FAULTS]


def blame(failed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Name one replica instead of its pairs, where it is in all of several that failed."""
    pairs = [each for each in failed if len(each["ranks"]) > 1]
    common = set(pairs[0]["ranks"]).intersection(*(each["ranks"] for each in pairs)) if pairs else set()
    if len(pairs) < 2 or len(common) != 1:
        return failed
    others = [each for each in failed if len(each["ranks"]) == 1]
    return [*others, {**pairs[0], "ranks": sorted(common)}]


def say(text: str) -> None:
    """Write a line of the log."""
    print(f"Sanity check: {text}", flush=True)


def read_hosts(text: str) -> list[tuple[str, str, int]]:
    """Return name, address and port of each replica, in the order of ranks."""
    found = []
    for entry in filter(None, text.split(",")):
        name, _, reached = entry.partition("=")
        address, _, port = reached.rpartition(":")
        found.append((name, address.strip("[]"), int(port)))
    return found


def has_torch() -> bool:
    """Tell whether torch is there, and the replica has the memory to load it."""
    return has_memory(TORCH_MIB) and importlib.util.find_spec("torch") is not None


def has_memory(mib: int) -> bool:
    """Tell whether the replica may use so much memory."""
    limit = os.environ.get("PAI_TASK_MEM_MB", "")
    return not limit.isdigit() or int(limit) >= mib


def main(offset: str, seconds: str, library: str) -> int:
    """Run the check; return the exit code."""
    key = os.environ.get("APP_ID", "")
    hosts = read_hosts(os.environ.get("JOB_CONSOLE_SANITY_HOSTS", ""))
    rank = int(offset) + int(os.environ.get("PAI_TASK_INDEX") or 0)
    if rank >= len(hosts):
        hosts, rank = [("", "", 0)], 0
    return 0 if SanityCheck(hosts, rank, key, float(seconds), library).run() else EXIT_CODE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
