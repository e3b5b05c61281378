"""Orphaned jobs on the page of incidents."""

from __future__ import annotations

import pytest
from django.test import Client

from jobs.models import Job
from quotas.models import AdminAction
from tests.jobs import conftest
from tests.jobs.conftest import Place
from tests.jobs.engine import MemoryEngine
from tests.jobs.scheduling.test_orphans import orphaned

pytestmark = pytest.mark.django_db

PAGE = "/admin/incidents/"
engine, place = conftest.engine, conftest.place


def press(admin: Client, name: str, **values: str) -> str:
    return admin.post(f"{PAGE}{name}", values, follow=True).content.decode()


def test_incident_page_offers_nothing_without_orphans(
    admin: Client, engine: MemoryEngine, place: Place
) -> None:
    text = admin.get(PAGE).content.decode()
    assert "Orphaned" not in text
    assert "Adopt an orphaned job" not in text


def test_orphan_is_listed_and_adopted_after_a_preview(
    admin: Client, engine: MemoryEngine, place: Place
) -> None:
    orphan = orphaned(place)
    text = admin.get(PAGE).content.decode()
    assert f"Orphaned: {orphan} runs on Memory" in text
    asked = press(admin, "adopt_orphan", orphan=orphan.key, why="restored")
    assert (
        f"{orphan.public_id} becomes a running job of alice in the workspace vision, with its log." in asked
    )
    assert not Job.objects.exists()
    done = press(admin, "adopt_orphan", orphan=orphan.key, why="restored", confirmed="yes")
    assert "adopted." in done
    assert "Orphaned:" not in done
    assert Job.objects.get().public_id == orphan.public_id


def test_orphan_is_ended_after_a_preview_and_an_unknown_one_refused(
    admin: Client, engine: MemoryEngine, place: Place
) -> None:
    orphan = orphaned(place)
    assert "killed 30 seconds later" in press(admin, "end_orphan", orphan=orphan.key, why="not needed")
    assert engine.orders == []
    answer = admin.post(f"{PAGE}end_orphan", {"orphan": "x-y-1", "why": "typed", "confirmed": "yes"})
    assert answer.status_code == 422
    assert "is being ended." in press(
        admin, "end_orphan", orphan=orphan.key, why="not needed", confirmed="yes"
    )
    assert len(engine.orders) == 1
    assert AdminAction.objects.get().why == "not needed"


def test_orphan_that_lacks_its_quota_is_not_adopted(
    admin: Client, engine: MemoryEngine, place: Place
) -> None:
    orphan = orphaned(place)
    place.quota.delete()
    text = press(admin, "adopt_orphan", orphan=orphan.key, why="restored", confirmed="yes")
    assert "There is no quota default of the workspace vision on this cluster: create it first." in text
    assert not AdminAction.objects.exists()
