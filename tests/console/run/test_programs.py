"""The process list, as supervisord reads it."""

import os
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest
from supervisor.options import ServerOptions

from console.run.programs import Program, Rotation, programs, supervisord_config


def _read(listed: list[Program], folder: Path) -> Any:  # supervisor has no types
    path = folder / "supervisord.conf"
    rotation = Rotation(mib=20, files=7)
    path.write_text(supervisord_config(listed, checkout=folder, root=os.geteuid() == 0, rotation=rotation))
    options = ServerOptions()
    options.realize(["--configuration", str(path)])
    return options


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    awkward = tmp_path / 'a folder with 100% of "blanks" and it\'s quotes'
    awkward.mkdir()
    return awkward


def test_redis_starts_first_and_stops_after_its_users(folder: Path) -> None:
    options = _read(programs(["redis-server", "redis.conf"], {"control": 2, "logs": 1}), folder)
    stages = [
        [each.name for each in group.process_configs] for group in sorted(options.process_group_configs)
    ]
    assert stages == [["redis"], ["web", "watch", "shells", "worker-control", "worker-logs", "beat"]]


def test_each_web_process_is_a_program() -> None:
    named = {each.name: each.command for each in programs(None, {"control": 2}, 3)}
    assert [name for name in named if name.startswith("web")] == ["web", "web-2", "web-3"]
    assert named["web-3"] == named["web"]


def test_redis_program_is_absent_without_a_private_redis(folder: Path) -> None:
    options = _read(programs(None, {"control": 2}), folder)
    assert "redis" not in [
        each.name for group in options.process_group_configs for each in group.process_configs
    ]


def test_programs_always_restart_and_end_with_their_children(folder: Path) -> None:
    for group in _read(programs(["redis-server"], {"control": 2, "logs": 1}), folder).process_group_configs:
        for each in group.process_configs:
            assert each.autorestart is not False
            assert each.startsecs == 0
            assert each.killasgroup
            assert not each.stopasgroup


def test_program_arguments_and_paths_are_passed_unchanged(folder: Path) -> None:
    options = _read([Program("odd", 1, ["a b", "100%", "it's", '"x"', "%(ENV_HOME)s"], grace=3)], folder)
    (config,) = options.process_group_configs[0].process_configs
    assert shlex.split(config.command) == ["a b", "100%", "it's", '"x"', "%(ENV_HOME)s"]
    assert config.directory == str(folder)
    assert config.stdout_logfile == "odd.log"
    assert config.stopwaitsecs == 3
    assert (config.stdout_logfile_maxbytes, config.stdout_logfile_backups) == (20 << 20, 7)


def test_supervisord_has_no_server_and_a_private_umask(folder: Path) -> None:
    options = _read(programs(None, {"control": 2}), folder)
    assert options.server_configs == []
    assert stat.S_IMODE(0o777 & ~options.umask) == 0o700
