"""What takes too much of the machine's disk, or of its ports, is ended and told why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.messages import reason_message
from jobs.node import disk
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import excess
from jobs.node.wrapper.excess import Excess
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import SMALL, LocalBench, role, wait_until_over


def test_job_listening_on_too_many_ports_is_ended(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of(most_ports=20, network="host")
    first, last = bench.config.ports
    command = (
        'exec python3 -c "\nimport socket, time\nheld = []\n'
        f"for port in range({first + 4000}, {last}):\n"
        " try: held.append(socket.create_server(('', port)))\n except OSError: pass\n"
        ' if len(held) == 60: time.sleep(600)"'
    )
    handle = bench.backend.submit(bench.submission(role(command)))
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.TOO_MANY_PORTS)
    said = reason_message(seen.reason.code, seen.reason.params)
    assert said.startswith("Replica worker-0 was stopped: it listened on 60 ports of the job port range")


def test_job_listening_on_some_ports_goes_on(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of(most_ports=20, network="host")
    first = bench.config.ports[0]
    command = (
        'exec python3 -c "\nimport socket, time\nheld = []\n'
        f"for port in range({first + 3000}, {first + 3999}):\n"
        " try: held.append(socket.create_server(('', port)))\n except OSError: pass\n"
        ' if len(held) == 19: break\ntime.sleep(9)"'
    )
    handle = bench.backend.submit(bench.submission(role(command)))
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED


@pytest.mark.parametrize(("isolation", "work_mib", "disk_mib"), [(None, 64, 8), (Isolation.NONE, 8, 0)])
def test_job_with_too_large_folders_is_ended(
    bench_of: Callable[..., LocalBench], isolation: Isolation | None, work_mib: int, disk_mib: int
) -> None:
    """By the machine's bound or by the disk that its role asks for; another role's replica has none."""
    bench = bench_of(work_mib=work_mib, isolation=isolation)
    write = "head -c 5M /dev/zero > a; mkdir in; head -c 5M /dev/zero > in/b; exec sleep 600"
    asking = SMALL.model_copy(update={"disk_mib": disk_mib})
    roles = (role("exec sleep 600", name="quiet"), role(write, resources=asking))
    handle = bench.backend.submit(bench.submission(*roles))
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.FOLDER_TOO_LARGE)
    said = reason_message(seen.reason.code, seen.reason.params)
    assert said == "Replica worker-0 was stopped: its folders exceed 8 MiB."


def test_sparse_files_count_only_space_used(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of(work_mib=8)
    handle = bench.backend.submit(bench.submission(role("truncate -s 1T a; sleep 4")))
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED


class Replica:
    """As much of `ReplicaHandle` as is looked at."""

    def __init__(self, name: str) -> None:
        self.running = True
        self.place = self
        self.role = self
        self.name = name
        self.index = 0
        self.disk_mib = 0


def test_growing_replica_is_ended_while_disk_is_nearly_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet, loud = Replica("quiet-0"), Replica("loud-0")
    for one in (quiet, loud):
        (tmp_path / "work" / one.name).mkdir(parents=True)
    (tmp_path / "work" / "quiet-0" / "much").write_bytes(bytes(90 << 20))
    house: Any = type("House", (), {"keep_free_mib": 1000, "work_mib": 0})
    plan: Any = type("Plan", (), {"house": house, "roles": ()})
    free = [2000]
    monkeypatch.setattr(disk, "free_mib", lambda _path: free[0])
    watched: Any = [quiet, loud]
    looks = Excess(tmp_path, plan, watched)
    assert looks.look(0) == (None, excess.LOOK_S)
    free[0] = 900
    assert looks.look(2) == (None, 2 + excess.HURRIED_S)
    (tmp_path / "work" / "loud-0" / "more").write_bytes(bytes(70 << 20))
    reason, _again = looks.look(2.5)
    assert reason is not None
    assert reason.params == {"role": "loud-0", "index": 0, "free_mib": 900}
    said = reason_message(reason.code, reason.params)
    assert said.endswith("only 900 MiB free on the console's disk, and its folders kept growing.")


@pytest.mark.parametrize(
    ("work_mib", "disk_mib", "bound"), [(8, 2, 2), (2, 8, 2), (0, 2, 2), (2, 0, 2), (8, 0, 0), (0, 0, 0)]
)
def test_excess_bound_is_the_smaller_of_machine_and_role(
    tmp_path: Path, work_mib: int, disk_mib: int, bound: int
) -> None:
    one = Replica("main-0")
    one.disk_mib = disk_mib
    (tmp_path / "tmp" / "main-0").mkdir(parents=True)
    (tmp_path / "tmp" / "main-0" / "much").write_bytes(bytes(4 << 20))
    house: Any = type("House", (), {"keep_free_mib": 1, "work_mib": work_mib})
    plan: Any = type("Plan", (), {"house": house, "roles": (one,)})
    watched: Any = [one]
    reason, _again = Excess(tmp_path, plan, watched).look(0)
    assert (reason.params.get("most_mib") if reason else 0) == bound


def test_excess_without_limits_checks_nothing(tmp_path: Path) -> None:
    house: Any = type("House", (), {"keep_free_mib": 0, "work_mib": 0})
    plan: Any = type("Plan", (), {"house": house, "roles": ()})
    assert Excess(tmp_path, plan, []).look(0) == (None, None)
