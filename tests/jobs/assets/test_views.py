"""The pages of assets, for whoever keeps them, uses them, or has nothing to do with them."""

from __future__ import annotations

import json

import pytest

from jobs.assets import changes
from jobs.dialects.document import Document
from jobs.models import AssetCheck, AssetKind, AssetUse, Dataset, Image, Vpc
from jobs.submission.checks.findings import examine
from quotas.models import Spec
from tests.factories import make_job
from tests.jobs.assets.conftest import make_code, make_dataset, make_image
from tests.jobs.web.conftest import People, browser, fragment, seen

pytestmark = pytest.mark.django_db


def test_asset_tabs_when_empty_show_the_next_step(people: People) -> None:
    for kind in (*AssetKind, "specs"):
        page = seen(browser(people.owner).get(f"/assets/?kind={kind}"))
        assert "No assets yet" in page
        assert "Workspace admins and algorithm O&M admins can add assets" in page
    assert "New dataset" in seen(browser(people.manager).get("/assets/?kind=datasets"))
    assert browser(people.owner).get("/assets/?kind=x").status_code == 404


def test_asset_list_is_searched_by_name_id_and_address(people: People) -> None:
    ours = make_image(people.quota.workspace, name="torch", address="registry/ml/torch:2")
    make_image(people.quota.workspace, name="jax", address="registry/ml/jax:1")
    client = browser(people.owner)
    for query in ("TORCH", ours.key, "ml/torch"):
        page = seen(client.get("/assets/", {"kind": "images", "q": query}))
        assert "registry/ml/torch:2" in page
        assert "jax" not in page
    assert "No matching assets" in seen(client.get("/assets/", {"kind": "images", "q": "tf"}))
    assert "registry/ml" not in seen(browser(people.stranger).get("/assets/"))


def test_asset_list_pages_follow_by_name(people: People) -> None:
    for number in range(55):
        make_image(people.quota.workspace, name=f"image {number:02}")
    client = browser(people.owner)
    first = client.get("/assets/?kind=images")
    assert seen(first).count("row-link") == 50
    page = seen(client.get(first.context["next_url"]))
    assert (page.count("row-link"), "image 54" in page, "image 49" in page) == (5, True, False)
    assert client.get("/assets/?kind=images&after=x").status_code == 200


def test_asset_list_shows_retired_assets_on_request(people: People) -> None:
    changes.retire(make_code(people.quota.workspace))
    client = browser(people.owner)
    assert "trainer" not in seen(client.get("/assets/?kind=code"))
    assert "retired" in seen(client.get("/assets/?kind=code&retired=1"))


def test_asset_page_lists_specs_with_prices(people: People) -> None:
    Spec.objects.create(
        name="gpu.small", cpu_milli=8000, memory_mib=32768, gpus={"A100": 1}, price_micro=12_500_000
    )
    page = seen(browser(people.owner).get("/assets/?kind=specs"))
    assert "gpu.small" in page
    assert "1 × A100" in page
    assert "12.5" in page


def test_asset_is_added_changed_and_removed_by_its_manager(people: People) -> None:
    client = browser(people.manager)
    values = {
        "name": "coco",
        "source": "oss",
        "uri": "oss://sets/coco/",
        "mount_path": "/mnt/coco",
        "options": "",
    }
    values["workspace"] = str(people.quota.workspace.pk)
    wrong = client.post("/assets/datasets/new", {**values, "uri": "s3://sets/coco"})
    assert wrong.status_code == 422
    assert "The address must start with oss://." in seen(wrong)
    answer = client.post("/assets/datasets/new", {**values, "password": "canary", "username": "AK"})
    row = Dataset.objects.get()
    assert answer["Location"] == f"/assets/datasets/{row.key}"
    page = seen(client.get(answer["Location"]))
    assert "oss://sets/coco/" in page
    assert "saved (hidden)" in page
    assert "canary" not in page + seen(client.get(f"/assets/datasets/{row.key}/edit"))
    client.post(f"/assets/datasets/{row.key}/edit", {**values, "name": "coco 2017", "username": "AK"})
    row.refresh_from_db()
    assert (row.name, row.reveal()) == ("coco 2017", "canary")
    client.post(f"/assets/datasets/{row.key}/versions", {"uri": "oss://sets/coco2/"})
    client.post(f"/assets/datasets/{row.key}/versions/1")
    assert [(each.number, each.is_default) for each in row.versions.all()] == [(2, False), (1, True)]
    assert client.post(f"/assets/datasets/{row.key}/versions", {"uri": "x"}).status_code == 422
    client.post(f"/assets/datasets/{row.key}/take-away")
    assert not Dataset.objects.exists()


def test_asset_page_for_job_owners_is_view_only(people: People) -> None:
    row = make_dataset(people.quota.workspace)
    client = browser(people.owner)
    page = seen(client.get(f"/assets/datasets/{row.key}"))
    assert "imagenet" in page
    assert "/edit" not in page
    assert client.post(f"/assets/datasets/{row.key}/take-away").status_code == 403
    assert browser(people.stranger).get(f"/assets/datasets/{row.key}").status_code == 404
    public = make_dataset(name="for all")
    assert browser(people.stranger).get(f"/assets/datasets/{public.key}").status_code == 200
    assert browser(people.manager).get(f"/assets/datasets/{public.key}/edit").status_code == 403
    assert browser(people.admin).get(f"/assets/datasets/{public.key}/edit").status_code == 200


def test_asset_in_use_is_retired_and_lists_jobs_to_permitted_users(people: People) -> None:
    row = make_image()
    job = make_job(owner=people.owner, quota=people.quota)
    AssetUse.objects.create(job=job, kind=AssetKind.IMAGE, key=row.key)
    page = seen(browser(people.member).get(f"/assets/images/{row.key}"))
    assert "Used by 1 job" in page
    assert f"/jobs/{job.public_id}/" in page
    page = seen(browser(people.stranger).get(f"/assets/images/{row.key}"))
    assert job.public_id not in page
    assert "in workspaces you can't access" in page
    client = browser(people.admin)
    assert f"“{row.name}” was retired because jobs use it." in seen(
        client.post(f"/assets/images/{row.key}/take-away", follow=True)
    )
    assert Image.objects.get().is_retired
    client.post(f"/assets/images/{row.key}/bring-back")
    assert not Image.objects.get().is_retired


def test_asset_check_is_started_and_polled_until_done(people: People) -> None:
    row = make_code(people.quota.workspace)
    client = browser(people.owner)
    answer = client.post(f"/assets/code/{row.key}/test")
    assert answer["Location"] == f"/assets/code/{row.key}#checks"
    page = seen(client.get(f"/assets/code/{row.key}"))
    assert 'hx-trigger="every 1s"' in page
    AssetCheck.objects.update(
        state="failed", code="failed", said="fatal: <b>no</b>", ended_at="2026-01-01T00:00:00Z"
    )
    part = client.get(f"/assets/code/{row.key}", headers=fragment("checks")).content.decode()
    assert "fatal: &lt;b&gt;no&lt;/b&gt;" in part
    assert "every 1s" not in part
    assert "Read failed." in part
    assert "fatal" not in seen(browser(people.member).get(f"/assets/code/{row.key}")), "another's own words"


def test_job_file_check_reports_unusable_assets(people: People) -> None:
    row = make_dataset(people.quota.workspace)
    changes.retire(row)
    job = {"DisplayName": "a", "JobType": "PyTorchJob", "UserCommand": "x", "WorkspaceId": "1"}
    worker = {"Type": "Worker", "Image": "i", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
    text = json.dumps({**job, "JobSpecs": [worker], "DataSources": [{"DataSourceId": row.key}]})
    found = examine(people.owner, Document(text, "dlc"))
    assert [(each.code, each.line) for each in found.problems] == [("asset_retired", 1)]
    changes.bring_back(row)
    assert examine(people.owner, Document(text, "dlc")).problems == ()


def test_new_job_form_offers_vpcs_of_the_workspace(people: People) -> None:
    Vpc.objects.create(workspace=people.quota.workspace, name="Training", vpc_id="vpc-1", switches=["vsw-1"])
    page = seen(browser(people.owner).get("/jobs/new"))
    assert '<option value="vpc-1" label="Training">' in page
    assert "vpc-1" not in seen(browser(people.stranger).get("/jobs/new"))
