"""Which container engine is found on a machine, and what is told of those that are none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.node.sandbox import engine
from jobs.node.sandbox.isolation import Isolation

WORKS = "exit 0"
NO_DAEMON = "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1"


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(engine, "time", made)
    monkeypatch.setattr(engine, "_detections", {})
    return made


@pytest.fixture
def path(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for."""
    made = tmp_path / "bin"
    made.mkdir()
    monkeypatch.setenv("PATH", str(made))
    return made


def install(path: Path, name: str, script: str) -> None:
    program = path / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("installed", "wanted", "command", "states"),
    [
        ({}, "auto", "", {"podman": "absent", "docker": "absent"}),
        ({"docker": NO_DAEMON}, "auto", "", {"podman": "absent", "docker": "silent"}),
        ({"docker": WORKS}, "auto", "docker", {"podman": "absent", "docker": "used"}),
        ({"podman": NO_DAEMON, "docker": WORKS}, "auto", "docker", {"podman": "silent", "docker": "used"}),
        ({"podman": WORKS, "docker": WORKS}, "auto", "podman", {"podman": "used"}),
        ({"podman": WORKS, "docker": NO_DAEMON}, "docker", "", {"docker": "silent"}),
        ({"podman": WORKS}, "none", "", {}),
    ],
)
def test_engine_detection_reports_every_candidate(
    path: Path, installed: Mapping[str, str], wanted: str, command: str, states: Mapping[str, str]
) -> None:
    for name, script in installed.items():
        install(path, name, script)
    found = engine.detect(wanted, ())
    assert ("".join(found.command[:1]), dict(found.states)) == (command, states)


@pytest.mark.parametrize("script", [NO_DAEMON, WORKS])
def test_cluster_runs_images_only_with_responding_engine(path: Path, tmp_path: Path, script: str) -> None:
    install(path, "docker", script)
    config = LocalConfig(root=tmp_path / "jobs", hide=tmp_path, isolation=Isolation.NONE, gpus={})
    backend = LocalBackend(config)
    facilities = backend.inventory().facilities
    assert facilities is not None
    assert facilities.images is (script == WORKS)
    assert facilities.engines == {"podman": "absent", "docker": "used" if script == WORKS else "silent"}


def test_engine_daemon_started_later_is_found_and_cached(path: Path, clock: Clock) -> None:
    install(path, "docker", NO_DAEMON)
    assert engine.detect("auto", ()).command == ()
    install(path, "docker", WORKS)
    assert engine.detect("auto", ()).command == (), "it is not asked all the time"
    clock.now += engine.AGAIN_S
    assert engine.detect("auto", ()).command == ("docker",)
    install(path, "docker", NO_DAEMON)
    clock.now += engine.AGAIN_S
    assert engine.detect("auto", ()).command == ("docker",)
