"""Whatever address of pages and API takes a job file, a text written to cost much costs it little."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import reverse

from quotas.accounts import tokens
from quotas.models import Role, User
from tests.factories import make_cluster, make_quota, make_user, make_workspace
from tests.fuzz.cost import cost
from tests.fuzz.hostile import hostile, shared_variable
from tests.fuzz.target import MOST_CPU_S, MOST_MEMORY

pytestmark = [pytest.mark.django_db, pytest.mark.once]

MARGIN: Final = 5
"""For a busy machine."""

LONGEST_ANSWER: Final = 8 * 2**20
"""Bytes; a file of 1 MiB comes back in a page, its quotes written out."""

PAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "job_new": {},
    "job_check": {},
    "job_fix": {"fix": "all"},
    "job_convert": {"to": "openpai-v2"},
    "job_difference": {},
    "job_form_read": {},
    "job_form_change": {"name": "other"},
    "job_form_panel": {},
    "job_form_sent": {"sent_role": "r0"},
    "job_form_dry_run_new": {},
    "draft_save": {"name": "draft"},
}
"""Each with what it takes besides the text."""

API: Final[Mapping[str, Mapping[str, Any]]] = {
    "api_jobs": {},
    "api_check": {},
    "api_preview": {},
    "api_convert": {"to": "dlc"},
    "api_sweeps": {"parameters": {"lr": [1, 2]}},
}


@pytest.fixture
def person() -> User:
    made = make_user("olga")
    workspace = make_workspace("vision", members={made: Role.DEVELOPER})
    make_quota(workspace, make_cluster("local"), "default")
    return made


@pytest.mark.parametrize("name", PAGES)
def test_page_with_costly_text_answers_cheaply(person: User, name: str) -> None:
    client, text = Client(), shared_variable()
    client.force_login(person)
    ask(client, name, {"text": "{}", **PAGES[name]})  # what is imported at first use is no part of it
    judge(client, name, {"text": text, **PAGES[name]})


@pytest.mark.parametrize("what", ["parameter in commands", "aliases of kubeflow"])
def test_form_change_with_costly_text_answers_cheaply(person: User, what: str) -> None:
    client, text = Client(), hostile()[what]()
    client.force_login(person)
    ask(client, "job_form_change", {"text": "{}", **PAGES["job_form_change"]})
    judge(client, "job_form_change", {"text": text, **PAGES["job_form_change"]})


@pytest.mark.parametrize("name", API)
def test_api_operation_with_costly_file_answers_cheaply(person: User, name: str) -> None:
    token = tokens.issue(person, scopes=tokens.SCOPES, lifetime=timedelta(days=1))
    client, text = Client(headers={"Authorization": f"Bearer {token}"}), shared_variable()
    ask(client, name, {"file": "{}", **API[name]}, content_type="application/json")
    judge(client, name, {"file": text, **API[name]}, content_type="application/json")


def judge(client: Client, name: str, data: Mapping[str, Any], **more: Any) -> None:
    answers: list[Any] = []
    cpu_s, memory = cost(lambda: answers.append(ask(client, name, data, **more)))
    assert answers[0].status_code < 500
    assert len(answers[0].content) < LONGEST_ANSWER
    assert cpu_s < MARGIN * MOST_CPU_S
    assert memory < MOST_MEMORY


def ask(client: Client, name: str, data: Mapping[str, Any], **more: Any) -> Any:
    return client.post(reverse(name), data, **more)
