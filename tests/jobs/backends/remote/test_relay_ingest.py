"""Relay ingest: it stores nothing but what belongs to the attempt, whatever is sent."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.backends.remote import attempts, bundle, relay_ingest
from jobs.backends.remote.relay_ingest import AttemptOver, InvalidMessage, NotAdmitted, UnknownAttempt
from jobs.node import relay
from jobs.node.frameworks import sanity
from jobs.node.supervisor import announced_ports

KEY = "b1-job1-1"
START = "0" * 32
LOG = "run-1/logs/worker-0.output"


class Attempt:
    """One as the console has it once it was sent."""

    def __init__(self, root: Path, key: str = KEY) -> None:
        self.root, self.key = root, key
        self.folder = attempts.attempt_folder(root, key)
        self.folder.mkdir(parents=True)
        role = {
            "name": "worker",
            "prefix": "worker",
            "replicas": 2,
            "min_failed": 1,
            "min_succeeded": None,
            "memory_mib": 64,
            "image": False,
            "offset": 0,
            "each": 0,
            "ports": [],
        }
        told = {"format": 1, "ports": [20000, 29999], "time_limit_s": None, "roles": [role], "apart": True}
        (self.folder / "job.json").write_text(json.dumps(told))
        self.token = relay_ingest.attempt_token(root, key)

    def send(self, *pieces: tuple[str, int, bytes, int], token: str = "", **head: Any) -> dict[str, Any]:
        about = {"number": 7, "run": 1, "start": START, **head}
        named = [(name, at, len(data), version) for name, at, data, version in pieces]
        body = json.dumps({**about, "pieces": named}).encode() + b"\n" + b"".join(p[2] for p in pieces)
        return relay_ingest.receive(self.root, self.key, token or self.token, body)

    def claim(self, **head: Any) -> str:
        return str(self.send(claim=True, **head)["claim"])

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


@pytest.fixture(autouse=True)
def _asked_never() -> None:
    relay_ingest._request_counts.clear()


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    made = Attempt(tmp_path)
    assert made.claim() == "mine"
    return made


# --- who may ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", "x", "0" * 64, "ü"])
def test_relay_request_without_valid_token_is_refused(attempt: Attempt, token: str) -> None:
    body = json.dumps({"number": 7, "run": 1, "start": START}).encode() + b"\n"
    with pytest.raises(UnknownAttempt):
        relay_ingest.receive(attempt.root, KEY, token, body)
    with pytest.raises(UnknownAttempt):
        relay_ingest.read_input(attempt.root, KEY, token, "secrets", 0)


def test_token_made_by_attempt_is_admitted_by_its_digest_alone(tmp_path: Path) -> None:
    """Until the console knows that, no answer is final; what it derives itself is worth nothing here."""
    made = Attempt(tmp_path)
    record = json.loads((made.folder / "job.json").read_text())
    (made.folder / "job.json").write_text(json.dumps({**record, "makes_token": True}))
    with pytest.raises(NotAdmitted):
        made.send(claim=True, token="own")
    relay_ingest.admit(made.folder, hashlib.sha256(b"own").hexdigest())
    relay_ingest.admit(made.folder, hashlib.sha256(b"second").hexdigest())
    assert made.send(claim=True, token="own")["claim"] == "mine"
    for token in ("second", made.token, hashlib.sha256(b"own").hexdigest()):
        with pytest.raises(UnknownAttempt):
            made.send(token=token)


def test_root_of_an_attempt_is_the_one_that_has_its_record(tmp_path: Path) -> None:
    made, other = Attempt(tmp_path / "second"), Attempt(tmp_path / "first", "b1-job2-1")
    roots = [other.root, made.root]
    assert relay_ingest.find_root(roots, KEY) == made.root
    assert relay_ingest.find_root(roots, "b1-job2-1") == other.root
    for key in ("b1-job3-1", "../x"):
        with pytest.raises(UnknownAttempt):
            relay_ingest.find_root(roots, key)


def test_token_of_another_attempt_is_refused(attempt: Attempt) -> None:
    other = Attempt(attempt.root, "b1-job2-1")
    assert other.token != attempt.token
    with pytest.raises(UnknownAttempt):
        attempt.send(token=other.token)
    assert relay_ingest.attempt_token(attempt.root, KEY) == attempt.token, "always the same"
    assert (attempt.root / relay_ingest.KEY_FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("key", ["b1-nobody-1", "..-..-1", "b1-job1", "b1-job1-1/.."])
def test_unknown_attempt_is_refused(attempt: Attempt, key: str) -> None:
    with pytest.raises(UnknownAttempt):
        relay_ingest.read_input(
            attempt.root, key, relay_ingest.attempt_token(attempt.root, key), "secrets", 0
        )


def test_attempt_on_shared_folder_has_no_relay(attempt: Attempt) -> None:
    told = json.loads(attempt.read("job.json"))
    (attempt.folder / "job.json").write_text(json.dumps({**told, "apart": False, "time_limit_s": 1}))
    with pytest.raises(UnknownAttempt):
        attempt.send()


def test_finished_attempt_accepts_nothing_after_grace_period(attempt: Attempt) -> None:
    relay_ingest.close_attempt(attempt.folder)
    attempt.send((LOG, 0, b"on its way", 0))
    past = (attempt.folder / relay_ingest.OVER_FILE).stat().st_mtime - relay_ingest.GRACE_S - 1
    os.utime(attempt.folder / relay_ingest.OVER_FILE, (past, past))
    relay_ingest.close_attempt(attempt.folder)
    with pytest.raises(AttemptOver):
        attempt.send((LOG, 10, b"late", 0))
    with pytest.raises(AttemptOver):
        relay_ingest.read_input(attempt.root, KEY, attempt.token, "secrets", 0)
    assert attempt.read(LOG) == b"on its way"


def test_excessive_relay_requests_are_rate_limited(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_ingest, "_second", lambda: 1)
    relay_ingest._request_counts.clear()
    for _ in range(relay_ingest.REQUESTS_PER_S + 2 * relay_ingest.REQUESTS_PER_S_AND_REPLICA):
        attempt.send()
    with pytest.raises(relay_ingest.RateLimited):
        attempt.send()


# --- that nothing runs twice -----------------------------------------------------------------------------


def test_first_job_retains_claim_on_repeated_requests(attempt: Attempt) -> None:
    assert attempt.claim() == "mine"
    assert attempt.claim(number=8, start="1" * 32) == "another"
    with pytest.raises(AttemptOver):
        attempt.send((LOG, 0, b"of another", 0), number=8)


def test_run_starts_only_once(attempt: Attempt) -> None:
    assert attempt.claim(start="1" * 32) == "rewound"
    assert (attempt.folder / "rewound").exists()
    with pytest.raises(AttemptOver):
        attempt.send((LOG, 0, b"of another start", 0), start="1" * 32)
    with pytest.raises(AttemptOver):
        attempt.send(run=2)
    assert attempt.claim(run=2, start="2" * 32) == "rewound", "nor another after it"
    (attempt.folder / "rewound").unlink()
    assert attempt.claim(run=2, start="2" * 32) == "mine"
    attempt.send(("run-2/logs/worker-0.output", 0, b"again", 0), run=2, start="2" * 32)
    assert not (attempt.folder / LOG).exists()


# --- what is taken ---------------------------------------------------------------------------------------


def test_log_bytes_are_appended_only_at_end(attempt: Attempt) -> None:
    assert attempt.send((LOG, 0, b"one ", 0))["sizes"] == {LOG: 4}
    for at in (0, 3, 5, 1 << 40):
        assert attempt.send((LOG, at, b"XX", 0))["sizes"] == {LOG: 4}
    assert attempt.send((LOG, 4, b"two", 0), (LOG, 7, b"!", 0))["sizes"] == {LOG: 8}
    assert attempt.read(LOG) == b"one two!"


def test_oversized_log_is_reported_full(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_ingest, "MAX_LOG", 6)
    attempt.send((LOG, 0, b"12345", 0))
    assert attempt.send((LOG, 5, b"67", 0))["full"] == [LOG]
    assert attempt.read(LOG) == b"12345"


def test_relay_data_is_refused_when_disk_is_full(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_ingest, "MIN_FREE", 1 << 80)
    with pytest.raises(relay_ingest.NoSpace):
        attempt.send((LOG, 0, b"x", 0))


def test_progress_files_retain_first_value(attempt: Attempt) -> None:
    for name in ("run-1/end", "run-1/ends/worker-1", "run-1/started/worker-0", "run-1/hosts"):
        attempt.send((name, 0, b"first", 5))
        attempt.send((name, 0, b"second", 9))
        assert attempt.read(name) == b"first"


def test_rewound_mark_retains_first_console_time(attempt: Attempt) -> None:
    before = time.time()
    attempt.send(("rewound", 0, b"nonsense", 5))
    first = attempt.read("rewound")
    attempt.send(("rewound", 0, b"0", 9))
    assert attempt.read("rewound") == first
    assert before - 1 < float(first) < time.time() + 1


def test_changing_files_retain_latest_value_by_timestamp(attempt: Attempt) -> None:
    for name in (
        "run-1/steps/worker-0",
        f"run-1/work/worker-0/{announced_ports.NAME}",
        f"run-1/work/worker-0/{sanity.FILE}",
        "run-1/doors/worker-1.said",
    ):
        attempt.send((name, 0, b"later", 2000))
        attempt.send((name, 0, b"earlier", 1000))
        assert attempt.read(name) == b"later"
        attempt.send((name, 0, b"last", 3000))
        assert attempt.read(name) == b"last"


NAMES = [
    "",
    ".",
    "..",
    "job.json",
    "claim",
    "sent",
    "secrets",
    "over",
    "run-1",
    "run-1/start",
    "run-1/",
    "/etc/passwd",
    "run-1/logs/../../job.json",
    "run-1/logs/../worker-0.output",
    "run-1/logs/worker-2.output",
    "run-1/logs/.output",
    "run-1/logs/worker-0.output/x",
    "run-1//logs/worker-0.output",
    "./run-1/logs/worker-0.output",
    "run-2/logs/worker-0.output",
    "run-1/work/worker-0/x",
    "run-1/work/../announce",
    "run-1/ends/worker-9",
    "run-1/ends/..",
    "run-1/views/worker-0",
    "run-1/logs/worker-0.output\0",
    "../../job2/1/run-1/end",
]


@pytest.mark.parametrize("name", NAMES)
def test_relay_rejects_other_file_names(attempt: Attempt, name: str) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in attempt.root.rglob("*"))
    with pytest.raises(InvalidMessage):
        attempt.send((LOG, 0, b"beside it", 0), (name, 0, b"x", 1))
    assert sorted((path, path.stat().st_mtime_ns) for path in attempt.root.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["job.json", "door-key", "../2/secrets", "trees/../job.json", "luggage/x.pyz"]
)
def test_relay_input_rejects_other_names(attempt: Attempt, name: str) -> None:
    with pytest.raises(InvalidMessage):
        relay_ingest.read_input(attempt.root, KEY, attempt.token, name, 0)


def test_replica_inputs_are_served_in_chunks(attempt: Attempt) -> None:
    (attempt.folder / "secrets").write_text("export A=b\n")
    (attempt.folder / "trees").mkdir()
    (attempt.folder / "trees" / "abc.tar").write_bytes(b"x" * (relay.CHUNK + 5))

    def asked(name: str, at: int) -> bytes | None:
        return relay_ingest.read_input(attempt.root, KEY, attempt.token, name, at)

    assert asked("secrets", 7) == b"A=b\n"
    assert asked("login", 0) is None
    assert [len(asked("trees/abc.tar", at) or b"") for at in (0, relay.CHUNK, 2 * relay.CHUNK)] == [
        relay.CHUNK,
        5,
        0,
    ]
    assert asked(f"luggage/{bundle.file_name()}", 0) is not None


def test_relay_follows_no_links(attempt: Attempt, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"mine")
    (attempt.folder / LOG).symlink_to(outside / "file")
    (attempt.folder / "secrets").symlink_to(outside / "file")
    steps = attempt.folder / "run-1" / "steps"
    steps.rmdir()
    steps.symlink_to(outside)
    with pytest.raises(InvalidMessage):
        attempt.send((LOG, 0, b"x", 0))
    with pytest.raises(InvalidMessage):
        attempt.send(("run-1/steps/worker-0", 0, b"x", 1))
    assert relay_ingest.read_input(attempt.root, KEY, attempt.token, "secrets", 0) is None
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"file": b"mine"}


BODIES = [
    b"",
    b"\n",
    b"[]\n",
    b"{}\n",
    b'{"number": 7, "run": 1}\n',
    b'{"number": "7", "run": 1, "start": "%s"}\n' % START.encode(),
    b'{"number": 7, "run": 0, "start": "%s"}\n' % START.encode(),
    b'{"number": 7, "run": 1001, "start": "%s"}\n' % START.encode(),
    b'{"number": 7, "run": 1, "start": "../x"}\n',
    b'{"number": 7, "run": true, "start": "%s"}\n' % START.encode(),
    b'{"number": 7, "run": 1, "start": "%s", "pieces": [["run-1/end", 0, 5, 0]]}\nfour' % START.encode(),
    b'{"number": 7, "run": 1, "start": "%s", "pieces": [["run-1/end", -1, 0, 0]]}\n' % START.encode(),
    b'{"number": 7, "run": 1, "start": "%s", "pieces": [["run-1/end", 0]]}\n' % START.encode(),
    b'{"number": 7, "run": 1, "start": "%s"}\nmore' % START.encode(),
    b"[" * 100_000,
    b"\xff\xfe\n",
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_malformed_relay_body_changes_nothing(attempt: Attempt, body: bytes) -> None:
    with pytest.raises(InvalidMessage):
        relay_ingest.receive(attempt.root, KEY, attempt.token, body)


def test_oversized_relay_body_is_refused(attempt: Attempt) -> None:
    with pytest.raises(InvalidMessage):
        attempt.send((LOG, 0, bytes(relay_ingest.MAX_BODY), 0))
    with pytest.raises(InvalidMessage):
        attempt.send(("run-1/ends/worker-0", 0, bytes(relay_ingest.MAX_SMALL_FILE + 1), 0))
    assert not (attempt.folder / LOG).exists()


# --- what goes home --------------------------------------------------------------------------------------


def test_relay_answer_carries_stop_requests_and_files_of_other_nodes(attempt: Attempt) -> None:
    (attempt.folder / "stop").write_text("TERM 5 1.0\n")
    said = attempt.send(("run-1/ends/worker-0", 0, b"0 1 itself\n", 0), ("run-1/ending", 0, b"asked 1\n", 0))
    assert said["asked"] == {"stop": "TERM 5 1.0\n"}
    assert said["run"] == {"ending": "asked 1\n", "ends/worker-0": "0 1 itself\n"}
    assert attempt.send(ends=1)["run"] == {"ending": "asked 1\n"}, "what is known is not told again"
    (attempt.folder / "door").write_text("key")
    (attempt.folder / "enter-worker-0").write_text("x python3 archive\n")
    assert list(attempt.send()["asked"]) == ["door", "stop", "enter-worker-0"], "the key comes first"


# --- the law ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def roots() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@settings(max_examples=40)
@given(
    data=st.binary(max_size=60),
    pushes=st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), max_size=30),
)
def test_log_matches_node_output_for_any_push_order(
    roots: Path, data: bytes, pushes: list[tuple[int, int]]
) -> None:
    attempt = Attempt(Path(tempfile.mkdtemp(dir=roots)))
    attempt.claim()
    relay_ingest._request_counts.clear()
    for at, size in pushes:
        attempt.send((LOG, min(at, len(data)), data[at : at + size], 0))
        assert data.startswith(attempt.read(LOG))
    end = attempt.send((LOG, 0, b"", 0))["sizes"][LOG]
    attempt.send((LOG, end, data[end:], 0))
    assert attempt.read(LOG) == data


# --- event files of TensorBoard --------------------------------------------------------------------------

EVENTS = f"run-1/work/worker-0/runs/a/{relay.EVENT_FILE}1.node.7"


def test_event_file_below_a_work_folder_grows(attempt: Attempt) -> None:
    assert attempt.send((EVENTS, 0, b"one", 0))["sizes"] == {EVENTS: 3}
    assert attempt.send((EVENTS, 0, b"again", 0))["sizes"] == {EVENTS: 3}
    assert attempt.send((EVENTS, 3, b"two", 0)) | {"sizes": {EVENTS: 6}, "full": []} == attempt.send(
        (EVENTS, 6, b"", 0)
    )
    assert attempt.read(EVENTS) == b"onetwo"


@pytest.mark.parametrize(
    "path",
    [
        "worker-9/{mark}1",
        "worker-0/../{mark}1",
        "worker-0/.hidden/{mark}1",
        "worker-0/a//{mark}1",
        "worker-0/1/2/3/4/5/6/7/{mark}1",
        "worker-0/model.bin",
        "worker-0/{mark}\n",
        "worker-0/" + "a" * 400 + "/{mark}1",
    ],
)
def test_other_file_below_a_work_folder_is_refused(attempt: Attempt, path: str) -> None:
    with pytest.raises(InvalidMessage):
        attempt.send((f"run-1/work/{path.format(mark=relay.EVENT_FILE)}", 0, b"x", 0))


def test_event_files_are_stored_up_to_a_number_and_a_size(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "EVENT_FILES", 2)
    monkeypatch.setattr(relay_ingest, "MAX_EVENT_FILE", 4)
    names = [f"run-1/work/worker-0/{number}/{relay.EVENT_FILE}1" for number in range(3)]
    reply = attempt.send(*((name, 0, b"abc", 0) for name in names))
    assert reply["full"] == [*names[:2], names[2]]
    assert reply["sizes"] == {names[0]: 3, names[1]: 3, names[2]: 0}
    assert attempt.send((names[0], 3, b"de", 0))["full"] == [names[0]]
    assert attempt.read(names[0]) == b"abc"
    assert not (attempt.folder / names[2]).exists()
