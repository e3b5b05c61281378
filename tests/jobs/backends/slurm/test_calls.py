"""One look at a cluster asks Slurm the same few things, however many jobs there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from jobs.backends.base import Handle, Observation
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.client.rest import connections
from jobs.backends.slurm.client.rest.client import RestClient
from jobs.states import State
from tests.jobs.backends.benches import role
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

MANY = 30


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every program that is run, and every request that is sent, from now on."""
    asked: list[str] = []

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: object, *arguments: Any, **more: Any) -> Any:
            asked.append(" ".join(map(str, arguments[:2])))
            return original(self, *arguments, **more)

        return call

    monkeypatch.setattr(Programs, "_run", counted(Programs._run))
    monkeypatch.setattr(RestClient, "ask", counted(RestClient.ask))
    return asked


@pytest.mark.parametrize("way", ["commands", "rest"])
def test_observation_of_many_jobs_makes_no_more_calls_than_of_one(
    tmp_path: Path, slurm: Slurm, calls: list[str], way: str
) -> None:
    bench = SlurmBench(tmp_path, slurm, by_rest(slurm) if way == "rest" else {})
    backend = SlurmBackend(bench.config)

    def all_run(handles: list[Handle]) -> bool:
        seen = backend.observe(handles).values()
        return all(isinstance(each, Observation) and each.state is State.RUNNING for each in seen)

    def look(handles: list[Handle]) -> list[str]:
        calls.clear()
        assert all_run(handles)
        return calls.copy()

    try:
        handles = [backend.submit(bench.submission(role("sleep 300"))) for _ in range(MANY)]
        backend.release(handles)
        wait_for(lambda: all_run(handles), 120)
        alone = look(handles[:1])
        assert len(alone) == 1
        assert look(handles) == alone
        calls.clear()
        backend.inventory()
        assert len(calls) == 3
    finally:
        bench.close()


@pytest.mark.parametrize(("way", "release"), [("commands", 2), ("rest", 2 * MANY)])
def test_submission_makes_one_call_and_one_fsync_without_listing_queue(
    tmp_path: Path, slurm: Slurm, calls: list[str], monkeypatch: pytest.MonkeyPatch, way: str, release: int
) -> None:
    bench = SlurmBench(tmp_path, slurm, by_rest(slurm) if way == "rest" else {})
    backend = SlurmBackend(bench.config)
    waits, opened = Mock(side_effect=os.fsync), Mock(side_effect=connections.connect)
    try:
        backend.inventory()
        monkeypatch.setattr(os, "fsync", waits)
        monkeypatch.setattr(connections, "connect", opened)
        calls.clear()
        handles = [backend.submit(bench.submission()) for _ in range(MANY)]
        assert (len(calls), waits.call_count) == (MANY, MANY)
        calls.clear()
        backend.release(handles)
        assert (len(calls), waits.call_count) == (release, MANY)
        assert opened.call_count < MANY / 2
    finally:
        bench.close()
