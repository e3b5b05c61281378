"""Which item of the navigation is the one of the page."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import get_resolver, reverse

from console.views.context import SECTIONS
from tests.factories import make_user
from tests.test_access_matrix import names


def test_navigation_sections_refer_to_existing_pages() -> None:
    known = {*names(get_resolver().url_patterns)}
    assert {*SECTIONS, *SECTIONS.values()} <= known


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["jobs", "jobs_others", "sweeps"])
def test_pages_below_jobs_mark_jobs_as_active(client: Client, page: str) -> None:
    client.force_login(make_user())
    [active] = [item for item in client.get(reverse(page)).context["nav"] if item["active"]]
    assert active["url"] == reverse("jobs")
