"""The report of interruptions, by cause and by node."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.administration import interruptions
from jobs.fault_tolerance.decisions import Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.models import Attempt
from jobs.states import State
from quotas.models import Quota
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import attempt_of, make_job

pytestmark = pytest.mark.django_db

PAGE = "/admin/interruptions/"


def interrupt(quota: Quota, code: str, node: str, days_ago: int = 0) -> None:
    attempt = attempt_of(make_job(State.FAILED, quota=quota))
    fault = Fault(code, Origin.PLATFORM, node=node).to_json()
    ended_at = timezone.now() - timedelta(days=days_ago)
    Attempt.objects.filter(pk=attempt.pk).update(fault=fault, ended_at=ended_at)


@pytest.mark.parametrize("who", OTHERS)
def test_interruptions_are_hidden_from_non_admins(who: str, quota: Quota) -> None:
    assert client_of(who, quota).get(PAGE).status_code in {302, 403}


def test_interruptions_are_counted_by_cause_and_node(admin: Client, quota: Quota) -> None:
    for code, node in (("gpu_lost", "n1"), ("gpu_lost", "n2"), ("nccl", "n1"), ("hang", "")):
        interrupt(quota, code, node)
    interrupt(quota, "nccl", "n9", interruptions.DAYS + 1)
    text = re.sub(r"<[^>]+>|\s+", " ", admin.get(PAGE).content.decode())
    text = re.sub(r"\s+", " ", text)
    assert "GPU fault 2 2 n1, n2" in text
    assert "n1 2 2 GPU fault, NCCL error" in text
    assert "n9" not in text


def test_interruptions_cost_one_query_for_any_number(quota: Quota) -> None:
    for _attempt in range(3):
        interrupt(quota, "nccl", "n1")
    with CaptureQueriesContext(connection) as queries:
        assert len(interruptions.list_interruptions()) == 3
    assert len(queries) == 1
