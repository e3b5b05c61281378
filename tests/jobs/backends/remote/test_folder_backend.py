"""What a backend does with the folders of its attempts, whatever the engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.backends.base import Gone, Handle, Observation, ReplicaRef, Unseen
from jobs.backends.remote import attempts, records
from jobs.backends.remote.folder_backend import OVERDUE_S, SECRETS, FolderBackend
from jobs.backends.remote.records import AttemptRecord
from jobs.backends.remote.replica_sessions import ReplicaSessions
from jobs.backends.sessions import Barrier, NoEntry
from jobs.spec import JobSpec, RoleSpec
from jobs.states import Phase, Reason, ReasonCode, State

KEY = "b1-job1-1"
HANDLE = Handle(KEY)


class Folders(FolderBackend):
    """Its engine ends nothing, and remembers what it was to end."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ended: list[str] = []

    def _key(self, handle: Handle) -> str:
        return str(handle)

    def _open_sessions(self, handle: Handle, replica: ReplicaRef) -> ReplicaSessions:
        raise NoEntry(Barrier.GONE)

    def _read_secrets(self, folder: Path) -> Mapping[str, str]:
        return {}

    def _end_by_engine(self, handle: Handle, record: AttemptRecord, *, is_early: bool) -> None:
        self.ended.append("early" if is_early else "late")

    def observe(self, state: State) -> Mapping[Handle, Observation | Gone | Unseen]:
        """Complete an observation without replicas."""
        seen = Observation(state, Reason(ReasonCode.RUNNING), Phase.RUNNING, (), 1)
        return self._complete({HANDLE: seen}, lambda node: node)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = attempts.attempt_folder(tmp_path, KEY)
    made.mkdir(parents=True)
    spec = JobSpec(name="job", roles=(RoleSpec(name="worker", command="true"),))
    (made / records.FILE).write_text(records.render(spec, (20000, 20010), [[]], lambda _role: False))
    for name in SECRETS:
        (made / name).touch()
    return made


@pytest.fixture
def backend(folder: Path, tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_ended_attempt_keeps_none_of_its_secrets(backend: Folders, folder: Path) -> None:
    backend.observe(State.RUNNING)
    assert {*SECRETS} < {path.name for path in folder.iterdir()}
    assert "bucket-login" in SECRETS
    backend.observe(State.FAILED)
    assert [path.name for path in folder.iterdir()] == [records.FILE]


def test_stop_asks_the_engine_first_and_again_when_the_job_is_overdue(backend: Folders, folder: Path) -> None:
    backend.stop(HANDLE, grace_s=30, signal="TERM")
    signal, grace_s, until = (folder / "stop").read_text().split()
    assert (signal, grace_s, backend.ended) == ("TERM", "30", ["early"])
    backend.stop(HANDLE, grace_s=60, signal="KILL")
    assert (folder / "stop").read_text().split() == [signal, grace_s, until], "the earlier one ends it sooner"
    assert backend.ended == ["early"]
    (folder / "stop").write_text(f"TERM 30 {time.time() - OVERDUE_S - 1:.3f}\n")
    backend.stop(HANDLE, grace_s=60, signal="TERM")
    assert backend.ended == ["early", "late"]


def test_stop_of_unknown_attempt_does_nothing(backend: Folders) -> None:
    backend.stop(Handle("b1-job2-1"), grace_s=0, signal="KILL")
    backend.stop(Handle("of another backend"), grace_s=0, signal="KILL")
    assert backend.ended == []
