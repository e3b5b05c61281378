"""Uploads while the console's disk is nearly full."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.assets.uploads import arrivals
from jobs.assets.uploads.store import MIB, NotTaken
from jobs.messages.uploads import upload_message
from jobs.node import disk
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_upload_leaves_half_of_the_disk_floor_free(settings: Any) -> None:
    person, free = make_user("olga"), disk.free_mib(settings.CONSOLE_HOME)
    settings.CONSOLE_CODE_PERSON_MIB = 1 << 40
    settings.CONSOLE_DISK_FLOOR_MIB = free
    arrivals.check_room(person, MIB)
    with pytest.raises(NotTaken) as refused:
        arrivals.check_room(person, free * MIB)
    assert "almost full" in upload_message(refused.value.code, {})
    settings.CONSOLE_DISK_FLOOR_MIB = 4 * free
    with pytest.raises(NotTaken, match="disk_low"):
        arrivals.check_room(person, 0)
    settings.CONSOLE_DISK_FLOOR_MIB = 0
    arrivals.check_room(person, free * MIB)
