"""The machine's own records of use, in the admin."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from quotas.models import UsageHour
from tests.factories import make_quota, make_user


@pytest.mark.django_db
def test_usage_hours_page_names_cpu_cores_rows() -> None:
    quota = make_quota()
    for gpu_type in ("", "A100"):
        UsageHour.objects.create(quota=quota, hour=timezone.now(), gpu_type=gpu_type, seconds=60)
    client = Client()
    client.force_login(make_user(admin=True))
    page = client.get("/admin/quotas/usagehour/").content.decode()
    assert ("CPU cores" in page, "A100" in page) == (True, True)


@pytest.mark.django_db
@pytest.mark.parametrize("staff", [False, True])
def test_usage_hours_page_requires_view_permission(*, staff: bool) -> None:
    person = make_user("olga")
    person.is_staff = staff
    person.save()
    client = Client()
    client.force_login(person)
    assert client.get("/admin/quotas/usagehour/").status_code == (403 if staff else 302)
