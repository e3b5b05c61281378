"""Virtual clusters of OpenPAI become quotas, from the answer of its REST API (v0.14 to v1.8)."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from console.site_yaml.virtual_clusters import WrongAnswer, parse_virtual_clusters
from quotas.models import AdminAction, Cluster, Quota, Workspace
from tests.console.administration.conftest import OTHERS, client_of

pytestmark = pytest.mark.django_db

PAGE: Final = "/admin/clusters/north/virtual-clusters/"
ANSWER: Final[dict[str, Any]] = {
    "default": {
        "capacity": 60,
        "maxCapacity": 100,
        "usedCapacity": 0,
        "numActiveJobs": 0,
        "numJobs": 0,
        "numPendingJobs": 0,
        "resourcesUsed": {"memory": 0, "vCores": 0, "GPUs": 0},
        "resourcesTotal": {"memory": 262144, "vCores": 48, "GPUs": 8},
        "dedicated": False,
        "status": "RUNNING",
    },
    "nlp": {
        "capacity": 40,
        "maxCapacity": 40,
        "resourcesTotal": {"memory": 131072.0, "vCores": 24.0, "GPUs": 4},
        "resourcesGuaranteed": {"memory": 65536, "cpu": 12, "gpu": 2},
        "dedicated": True,
        "nodeList": ["n3"],
        "status": "STOPPED",
    },
    "no name": {"resourcesTotal": {"memory": 1024, "vCores": 1, "GPUs": 0}},
}


def shown(text: str) -> str:
    found = re.search(r'name="shown"\s+value="(\w+)"', text)
    assert found is not None
    return found[1]


def test_virtual_clusters_are_shown_and_imported_as_shown(admin: Client, quota: Quota) -> None:
    text = json.dumps(ANSWER)
    upload = SimpleUploadedFile("vcs.json", text.encode())
    preview = unescape(admin.post(PAGE, {"file": upload}).content.decode())
    for told in ("default: maxCapacity 100", "nlp: status STOPPED", "nlp: dedicated n3"):
        assert told in preview
    assert "no name: not a valid short name." in preview
    assert not Workspace.objects.filter(slug="nlp").exists()
    answer = admin.post(PAGE, {"text": text, "shown": "another"})
    assert "Nothing was changed" in answer.content.decode()
    done = admin.post(PAGE, {"text": text, "shown": shown(preview)}, follow=True)
    assert "changes were made." in done.content.decode()
    rows = Quota.objects.filter(cluster__slug="north", slug__in=ANSWER).exclude(pk=quota.pk)
    assert {(row.workspace.slug, row.gpus, row.cpu_milli, row.memory_mib) for row in rows} == {
        ("default", 8, 48_000, 262_144),
        ("nlp", 2, 12_000, 65_536),
    }
    assert Cluster.objects.get(slug="north").config == quota.cluster.config
    assert AdminAction.objects.get().kind == "quotas"
    again = admin.post(PAGE, {"text": text}).content.decode()
    assert "No changes: the quotas match the virtual clusters." in again


def test_wrong_virtual_clusters_are_all_named_and_stay_in_the_field(admin: Client, quota: Quota) -> None:
    text = '{"a": 1, "b": {"resourcesTotal": {"memory": "much", "vCores": -1}}}'
    answer = admin.post(PAGE, {"text": text})
    assert answer.status_code == 422
    page = unescape(answer.content.decode())
    assert "a: no resources." in page
    assert "b: memory must be a number" in page
    assert "b: vCores must be a number" in page
    assert text in page


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", pytest.param("[" * 9_000, id="deep"), "null"])
def test_text_that_is_no_list_of_virtual_clusters_is_refused(text: str) -> None:
    with pytest.raises(WrongAnswer):
        parse_virtual_clusters(text)


@pytest.mark.parametrize("who", OTHERS)
def test_virtual_clusters_page_refuses_non_admins(quota: Quota, who: str) -> None:
    client = client_of(who, quota)
    for answer in (client.get(PAGE), client.post(PAGE, {"text": json.dumps(ANSWER)})):
        assert answer.status_code in {302, 403}
    assert not Workspace.objects.filter(slug="nlp").exists()


def test_cluster_page_links_to_the_import(admin: Client, quota: Quota) -> None:
    page = admin.get(f"/admin/quotas/cluster/{quota.cluster_id}/change/").content.decode()
    assert f'href="{PAGE}"' in page
