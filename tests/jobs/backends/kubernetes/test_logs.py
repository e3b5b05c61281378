"""Copies of logs: what a kubelet tells, to the byte, whatever happens in between."""

import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from console.home import CHECKOUT
from jobs.backends.kubernetes.client.exec import run
from jobs.backends.kubernetes.logs import copies
from jobs.backends.kubernetes.logs.entries import EntryReader, NotALog
from jobs.backends.kubernetes.logs.log_file import GAP, open_log, read_position
from jobs.backends.kubernetes.sessions import ContainerRef
from jobs.node.wrapper.log_times import ENTRY
from tests.jobs.backends.kubernetes.pods import DRAIN, start_pod
from tests.kubernetes.cluster import Cluster
from tests.waiting import wait_for

TIMES = tuple(f"2026-01-02T03:04:{second:02}.{part}00000000Z" for second in range(60) for part in range(10))

LINES = "import sys\nfor i in range(100_000): print('line', i, 'of many')\n"
LONG = "for i in range(20): print(chr(97 + i) * 100_000)\n"
BYTES = (
    "import random, sys\nr = random.Random(7)\nfor i in range(300):\n"
    "  line = r.randbytes(r.choice((0, 1, 50, 8192, 16384, 40_000))).replace(b'\\r\\n', b'')\n"
    "  sys.stdout.buffer.write(line.removesuffix(b'\\r') + b'\\n')\n"
)
"""Of a line that ends with a carriage return containerd does not keep that."""
SLOW = "import sys, time\nfor i in range(3000): print('x' * 1000, i, flush=True); time.sleep(0.01)\n"


def entries(*parts: tuple[int, bytes]) -> bytes:
    """Return what a kubelet tells of entries at some of TIMES."""
    return b"".join(TIMES[number].encode() + b" " + data for number, data in parts)


def texts(told: bytes, cuts: Sequence[int]) -> bytes:
    """Return the bytes of entries that come cut into pieces."""
    reader, found, at = EntryReader(), b"", 0
    for cut in (*cuts, len(told)):
        found += b"".join(piece.data for piece in reader.feed(told[at:cut]))
        at = cut
    return found


def test_entries_come_cut_anywhere() -> None:
    told = entries((0, b"one\n"), (1, b"\n"), (1, b"\0\xff 2026-01-02T03:04:05Z \n"), (2, b"end"))
    for cut in range(len(told)):
        assert texts(told, [cut]) == b"one\n\n\0\xff 2026-01-02T03:04:05Z \nend", cut
    assert texts(told, range(1, len(told))) == texts(told, [])


@pytest.mark.parametrize("size", [8192, 16384])
def test_parts_of_a_long_line_are_joined(size: int) -> None:
    line = bytes(random.Random(1).choices(b"abc", k=3 * size + 5)) + b"\n"
    parts = [line[at : at + size] for at in range(0, len(line), size)]
    earlier = entries(*((number, part) for number, part in enumerate(parts)), (9, b"next\n"))
    later = entries((0, line), (9, b"next\n"))
    generator = random.Random(2)
    for told in (earlier, later):
        for _ in range(50):
            cuts = sorted(generator.sample(range(len(told)), 5))
            assert texts(told, cuts) == line + b"next\n"


def test_kubelet_s_own_words_are_no_log() -> None:
    with pytest.raises(NotALog, match="unable to retrieve"):
        list(EntryReader().feed(b"unable to retrieve container logs for containerd://1"))


def copy(log: Path, *chunks: bytes, **more: Any) -> bytes:
    """Copy what a kubelet tells, and return the copy."""
    with open_log(log) as file:
        assert file is not None
        file.copy(chunks, **more)
    return log.read_bytes()


def test_copy_goes_on_after_any_byte_that_was_written(tmp_path: Path) -> None:
    told = entries(
        (0, b"same\n"), (0, b"same\n"), (1, b"other\n"), (1, b"x" * 20_000 + b"\n"), (2, b"same\n")
    )
    whole = copy(tmp_path / "whole.output", told)
    for cut in range(0, len(told), 211):
        log = tmp_path / f"{cut}.output"
        copy(log, told[:cut])
        for torn in (0, 3):  # bytes that were written after the position was noted
            if torn:
                with log.open("ab") as file:
                    file.write(whole[log.stat().st_size :][:torn])
            since = read_position(log).time
            again = told[told.find(since.encode()) :] if since else told
            assert copy(log, again) == whole, cut


def test_copy_names_what_was_rotated_away(tmp_path: Path) -> None:
    log = tmp_path / "a.output"
    copy(log, entries((0, b"one\n"), (1, b"two\n")))
    assert copy(log, entries((40, b"later\n"))) == b"one\ntwo\n" + GAP + b"later\n"
    assert copy(log, entries((40, b"later\n"), (41, b"end\n"))) == b"one\ntwo\n" + GAP + b"later\nend\n"


def test_copy_of_a_file_that_was_read_to_its_end_has_no_gap(tmp_path: Path) -> None:
    log = tmp_path / "a.output"
    copy(log, entries((0, b"one\n"), (1, b"two\n")))
    assert copy(log, entries((2, b"three\n")), is_unbroken=True) == b"one\ntwo\nthree\n"
    assert copy(log, entries((80, b"four\n")), is_unbroken=True) == b"one\ntwo\nthree\nfour\n"
    found = copy(log, entries((200, b"five\n")), is_unbroken=True)
    assert found == b"one\ntwo\nthree\nfour\n" + GAP + b"five\n"


def test_copy_has_times_of_its_bytes(tmp_path: Path) -> None:
    copy(tmp_path / "a.output", entries((0, b"one\n"), (20, b"two\n")))
    index = (tmp_path / "a.times").read_bytes()
    found = [ENTRY.unpack_from(index, at) for at in range(0, len(index), ENTRY.size)]
    assert found == [(0, 1767323040000), (4, 1767323042000)]


def test_copy_is_written_by_one_alone(tmp_path: Path) -> None:
    log = tmp_path / "a.output"
    with open_log(log) as first:
        with open_log(log) as second:
            assert (first is None, second) == (False, None)
        assert first is not None
        first.complete()
    with open_log(log) as later:
        assert later is None
    assert read_position(log).is_complete


# --- with a kubelet ------------------------------------------------------------------------------------


def output_of(program: str) -> bytes:
    """Return what a program writes."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout


def start(kubernetes: Cluster, namespace: str, program: str, node: str = "node1") -> ContainerRef:
    """Start a pod that runs a Python program."""
    env = [{"name": "PROGRAM", "value": program}]
    command = f'python3 -c "$PROGRAM"; {DRAIN}'
    name = start_pod(kubernetes, namespace, command, env=env, node=node)
    return ContainerRef(namespace, name, "main")


@pytest.fixture
def killed(kubernetes: Cluster, tmp_path: Path) -> Iterator["Killed"]:
    made = Killed(kubernetes, tmp_path / "a.output")
    yield made
    made.kill()


class Killed:
    """A process that follows a log, and is killed now and then."""

    def __init__(self, kubernetes: Cluster, log: Path) -> None:
        self._kubernetes, self.log = kubernetes, log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, ref: ContainerRef) -> None:
        cluster = self._kubernetes
        words = [cluster.server, cluster.ca, cluster.token, ref.namespace, ref.pod, str(self.log)]
        command = [sys.executable, "-m", "tests.jobs.backends.kubernetes.follow", *words]
        self._process = subprocess.Popen(command, cwd=CHECKOUT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait(self) -> None:
        assert self._process is not None
        assert self._process.wait(120) == 0

    def wait_for_more(self) -> None:
        """Wait until the copy has grown, or is complete."""
        before = self._size()
        wait_for(lambda: self._size() > before or read_position(self.log).is_complete)

    def _size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0


@pytest.mark.parametrize("program", [LINES, LONG, BYTES], ids=["lines", "long lines", "any bytes"])
def test_log_is_copied_to_the_byte(kubernetes: Cluster, namespace: str, tmp_path: Path, program: str) -> None:
    ref, log = start(kubernetes, namespace, program), tmp_path / "a.output"
    copies.follow(kubernetes.api, ref, log, threading.Event())
    assert log.read_bytes() == output_of(program)
    assert read_position(log).is_complete


def test_follower_that_is_killed_goes_on_without_gap_or_repeat(
    kubernetes: Cluster, namespace: str, killed: Killed
) -> None:
    program = (
        "import time\nfor i in range(60_000):\n  print('line', i)\n  if i % 50 == 0: time.sleep(0.005)\n"
    )
    ref = start(kubernetes, namespace, program)
    for _ in range(4):
        killed.start(ref)
        killed.wait_for_more()
        killed.kill()
    killed.start(ref)
    killed.wait()
    assert killed.log.read_bytes() == output_of(program)


def test_log_is_copied_across_its_rotation_and_a_kubelet_s_restart(
    kubernetes: Cluster, namespace: str, tmp_path: Path
) -> None:
    ref, log = start(kubernetes, namespace, SLOW, "node2"), tmp_path / "a.output"
    following = threading.Thread(target=copies.follow, args=[kubernetes.api, ref, log, threading.Event()])
    following.start()
    wait_for(lambda: log.exists() and log.stat().st_size > 100_000)
    kubernetes.kill_kubelet(2)
    following.join(240)
    assert log.read_bytes() == output_of(SLOW.replace("time.sleep(0.01)", "pass"))
    assert len(list((kubernetes.folder / "node2/pods").glob(f"{namespace}_{ref.pod}_*/main/*"))) > 1


def test_log_without_a_line_s_end_is_copied(kubernetes: Cluster, namespace: str, tmp_path: Path) -> None:
    ref, log = start(kubernetes, namespace, "print('one\\ntwo', end='')"), tmp_path / "a.output"
    copies.follow(kubernetes.api, ref, log, threading.Event())
    assert log.read_bytes() in (b"one\ntwo", b"one\ntwo\n")


async def test_log_of_a_running_container_is_caught_up_with(
    kubernetes: Cluster, namespace: str, tmp_path: Path
) -> None:
    command = "echo one; until [ -e /tmp/go ]; do sleep 0.1; done; echo two"
    ref = ContainerRef(namespace, start_pod(kubernetes, namespace, command), "main")
    log = tmp_path / "a.output"

    def copied(*, is_last: bool = False) -> bytes:
        copies.catch_up(kubernetes.api, ref, log, is_last=is_last)
        return log.read_bytes()

    wait_for(lambda: copied() == b"one\n")
    await run(kubernetes.connection, namespace, ref.pod, "main", ["touch", "/tmp/go"])
    wait_for(lambda: copied() == b"one\ntwo\n")
    assert copied(is_last=True) == b"one\ntwo\n"
    assert read_position(log).is_complete


def test_log_of_a_pod_that_is_gone_ends(kubernetes: Cluster, namespace: str, tmp_path: Path) -> None:
    log = tmp_path / "a.output"
    copies.follow(kubernetes.api, ContainerRef(namespace, "absent", "main"), log, threading.Event())
    assert read_position(log).is_complete
    assert log.read_bytes() == b""
