"""What translators are given: the pages' strings, and what the dialects' keys are for."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.commands import makemessages as django_makemessages

from jobs import dialects
from jobs.management.commands import makemessages


def test_makemessages_includes_every_key_of_every_dialect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[str] = []

    def collect(self: object, *args: Any, **options: Any) -> None:
        calls = ast.parse(makemessages.HINTS.read_text()).body
        seen.extend(ast.literal_eval(call.value.args[0]) for call in calls)  # type: ignore[attr-defined]

    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    monkeypatch.setattr(django_makemessages.Command, "handle", collect)
    call_command("makemessages", locale=["ja"])
    assert "Name of the job, unique among your jobs." in seen
    assert len(seen) == len(set(seen)) > 100
    assert not makemessages.HINTS.exists()
    for name in dialects.NAMES:
        assert dialects.get(name).schema()["title"] in seen
