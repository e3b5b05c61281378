"""The launcher of Ray jobs, without Ray: what it makes of the job's settings."""

from __future__ import annotations

import os

import pytest

from jobs.node.frameworks import ray_launcher
from jobs.node.frameworks.ray import OBJECT_STORE, count_shared_memory_mib


@pytest.mark.parametrize(
    ("runtime_env", "is_hidden"),
    [
        ("{pip: requirements.txt, env_vars: {key: value}}", True),
        ("env_vars:\n  A: pip\nuv: [numpy]\n", True),
        ('{"env_vars": {"A": "1"}, "pip": ["numpy"]}', True),
        ("{env_vars: {A: pip, B: '1'}}", False),
        ("", False),
    ],
)
def test_runtime_env_with_packages_replaces_those_of_job(
    monkeypatch: pytest.MonkeyPatch, runtime_env: str, is_hidden: bool
) -> None:
    monkeypatch.setenv("PYTHONUSERBASE", "/job/.local")
    monkeypatch.setenv("PYTHONPATH", "/job/.local/packages:/opt/lib")
    ray_launcher.hide_packages(runtime_env, "/opt/bin/ray")
    assert os.environ["PYTHONPATH"] == ("/opt/lib" if is_hidden else "/job/.local/packages:/opt/lib")
    assert ("PYTHONUSERBASE" in os.environ) is not is_hidden


def test_packages_with_ray_itself_stay_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUSERBASE", "/job/.local")
    ray_launcher.hide_packages("{pip: [numpy]}", "/job/.local/bin/ray")
    assert os.environ["PYTHONUSERBASE"] == "/job/.local"


def test_object_store_size_asks_for_shared_memory() -> None:
    assert count_shared_memory_mib({OBJECT_STORE: "1073741824"}) == 1024
    assert count_shared_memory_mib({OBJECT_STORE: "many"}) == 0
    assert ray_launcher.choose_store_size(1 << 30) >= ray_launcher.LEAST_STORE_BYTES
