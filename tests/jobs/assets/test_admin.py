"""Assets in Django admin."""

from __future__ import annotations

import pytest
from django.test import Client

from jobs.models import AssetKind, AssetUse, Dataset, Image
from tests.factories import make_job
from tests.jobs.assets.conftest import make_dataset, make_image
from tests.jobs.web.conftest import People, browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(people: People) -> Client:
    return browser(people.admin)


def test_image_added_in_admin_never_shows_its_password(admin: Client, people: People) -> None:
    values = {"key": "image-torch", "name": "torch", "address": "r/x:1", "username": "bot"}
    answer = admin.post("/admin/jobs/image/add/", {**values, "password": "canary"}, follow=True)
    image = Image.objects.get()
    assert (image.key, image.reveal(), image.created_by) == ("image-torch", "canary", people.admin)
    page = admin.get(f"/admin/jobs/image/{image.pk}/change/").content + answer.content
    assert b"canary" not in page
    assert image.ciphertext.encode() not in page


def test_dataset_admin_shows_its_versions(admin: Client) -> None:
    dataset = make_dataset(uri="/data/one")
    assert b"/data/one" in admin.get(f"/admin/jobs/dataset/{dataset.pk}/change/").content
    assert dataset.key.encode() in admin.get("/admin/jobs/dataset/").content


def test_image_in_use_can_be_retired_but_not_deleted(admin: Client) -> None:
    image = make_image()
    AssetUse.objects.create(job=make_job(), kind=AssetKind.IMAGE, key=image.key)
    assert admin.post(f"/admin/jobs/image/{image.pk}/delete/", {"post": "yes"}).status_code == 403
    data = {"action": "delete_selected", "_selected_action": [image.pk], "post": "yes"}
    admin.post("/admin/jobs/image/", data)
    assert Image.objects.filter(pk=image.pk).exists()
    admin.post("/admin/jobs/image/", {"action": "retire", "_selected_action": [image.pk]})
    assert Image.objects.get().is_retired
    admin.post("/admin/jobs/image/", {"action": "bring_back", "_selected_action": [image.pk]})
    assert not Image.objects.get().is_retired


def test_dataset_unused_can_be_deleted(admin: Client) -> None:
    dataset = make_dataset()
    admin.post(f"/admin/jobs/dataset/{dataset.pk}/delete/", {"post": "yes"})
    assert not Dataset.objects.exists()
