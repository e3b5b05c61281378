"""Tables in and out of the admin: shown first, checked as by hand, all of it or nothing, no formulas."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import AuditEntry, GpuType, Membership, Node, PriceSpan, Quota, Spec, SpotPrice, User
from tests.factories import make_cluster, make_membership, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db

TABLES = ("quota", "membership", "node", "gputype", "spec", "spotprice")


@pytest.fixture
def admin(client: Client) -> Client:
    make_quota(make_workspace("vision"), make_cluster("local"), "all", name="All", gpus=8)
    make_user("alice")
    client.force_login(make_user("root", admin=True))
    return client


def shown(admin: Client, table: str, text: str, kind: str = "csv") -> Any:
    """What the first page says of a file."""
    number = {"csv": "0", "json": "1"}[kind]
    file = SimpleUploadedFile(f"table.{kind}", text.encode())
    return admin.post(
        f"/admin/quotas/{table}/import/", {"import_file": file, "format": number, "resource": ""}
    )


def confirmed(admin: Client, table: str, answer: Any) -> Any:
    """The second page, as its form sends it."""
    text = answer.content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text))
    fields.pop("csrfmiddlewaretoken", None)
    assert "import_file_name" in fields
    return admin.post(f"/admin/quotas/{table}/process_import/", fields)


def taken(admin: Client, table: str, kind: str = "csv") -> str:
    """The whole table as a file."""
    number = {"csv": "0", "json": "1"}[kind]
    page = admin.get(f"/admin/quotas/{table}/export/").content.decode()
    chosen = dict.fromkeys(re.findall(r'name="(\w+resource_\w+|resource_\w+)"', page), "on")
    answer = admin.post(f"/admin/quotas/{table}/export/", {"format": number, "resource": "", **chosen})
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_a_file_is_shown_first_and_then_read_in(admin: Client) -> None:
    text = "workspace,cluster,slug,name,parent,gpus\nvision,local,train,Training,vision/all,4\n"
    answer = shown(admin, "quota", text)
    assert not Quota.objects.filter(slug="train").exists()
    assert confirmed(admin, "quota", answer).status_code == 302
    quota = Quota.objects.get(slug="train")
    assert (quota.gpus, quota.parent and quota.parent.slug) == (4, "all")
    entry = AuditEntry.objects.filter(content_type__model="quota", action="create").first()
    assert entry is not None
    assert (entry.actor_name, entry.way, entry.object_repr) == ("root", "admin", "Training")


@pytest.mark.parametrize(
    ("table", "text", "told"),
    [
        (
            "quota",
            "workspace,cluster,slug,name,parent,gpus\nvision,local,t,T,vision/all,9\n",
            "would promise 9",
        ),
        ("quota", "workspace,cluster,slug,name\nnowhere,local,t,T\n", "There is nothing called “nowhere”"),
        ("quota", "workspace,cluster,slug,name,gpus\nvision,local,t,T,-1\n", "greater than or equal to 0"),
        ("membership", "workspace,user,role\nvision,nobody,admin\n", "There is nothing called “nobody”"),
        ("membership", "workspace,user,role\nvision,alice,king\n", "is not a valid choice"),
        ("node", "cluster,name,state\nlocal,n9,cordoned\n", "The cluster has no node of this name."),
        (
            "spec",
            'name,cluster,workspace,cpu_milli,memory_mib,gpus\ns,,,1,1,"{""A"": 1, ""B"": 2}"\n',
            "Write one type",
        ),
    ],
)
def test_what_is_wrong_is_said_of_its_row_and_nothing_is_read_in(
    admin: Client, table: str, text: str, told: str
) -> None:
    before = (Quota.objects.count(), Membership.objects.count(), Spec.objects.count())
    page = shown(admin, table, text).content.decode()
    assert told in page
    assert "import_file_name" not in page
    assert (Quota.objects.count(), Membership.objects.count(), Spec.objects.count()) == before


def test_one_wrong_row_keeps_the_others_out(admin: Client) -> None:
    shown(admin, "membership", "workspace,user,role\nvision,alice,admin\nvision,nobody,admin\n")
    assert not Membership.objects.exists()


def test_a_ceiling_below_what_is_in_use_has_to_be_meant(admin: Client) -> None:
    quota = Quota.objects.get()
    each = Amounts(1000, 1024, {"A100": 4})
    owner = User.objects.get(username="alice")
    request = ledger.ask("h", quota=quota, owner=owner, parts=[Part(1, each)], priority=1, declared_s=None)
    ledger.reserve(request, [])
    answer = shown(admin, "quota", "workspace,cluster,slug,name,gpus\nvision,local,all,All,2\n")
    assert "4 are in use, above 2" in answer.content.decode()
    answer = shown(admin, "quota", "workspace,cluster,slug,name,gpus,drain\nvision,local,all,All,2,yes\n")
    confirmed(admin, "quota", answer)
    assert Quota.objects.get().gpus == 2


def test_members_nodes_types_specs_and_prices_are_read_in(admin: Client) -> None:
    Node.objects.create(cluster=Quota.objects.get().cluster, name="n1")
    for table, text in (
        ("membership", "workspace,user,role\nvision,alice,operator\n"),
        ("node", "cluster,name,state,state_why\nlocal,n1,cordoned,new disks\n"),
        ("gputype", 'name,aliases\nA100,"[""NVIDIA-A100""]"\n'),
        (
            "spec",
            'name,cluster,workspace,cpu_milli,memory_mib,gpus\ns,,vision,8,16,"{""A100"": 1}"\n',
        ),
        ("spotprice", "cluster,gpu_type,from_hour,until_hour,market_micro,price_micro\nlocal,A100,,,9,5\n"),
    ):
        assert confirmed(admin, table, shown(admin, table, text)).status_code == 302
    assert Membership.objects.get().role == "operator"
    node = Node.objects.get()
    assert (node.state, node.state_why, str(node.state_by)) == ("cordoned", "new disks", "root")
    assert GpuType.objects.get().aliases == ["NVIDIA-A100"]
    spec = Spec.objects.get()
    assert (spec.cluster, spec.workspace and spec.workspace.slug, spec.gpus) == (None, "vision", {"A100": 1})
    assert SpotPrice.objects.get().price_micro == 5
    assert PriceSpan.objects.count() == 2


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_what_goes_out_comes_in_again_and_changes_nothing(admin: Client, kind: str) -> None:
    make_quota(
        Quota.objects.get().workspace, Quota.objects.get().cluster, "t", parent=Quota.objects.get(), gpus=2
    )
    before = list(Quota.objects.values())
    text = taken(admin, "quota", kind)
    assert "vision/all" in text
    answer = shown(admin, "quota", text, kind)
    if "import_file_name" in answer.content.decode():
        confirmed(admin, "quota", answer)
    assert list(Quota.objects.values()) == before


def test_no_cell_that_goes_out_is_a_formula_and_it_comes_in_as_it_was(admin: Client) -> None:
    Quota.objects.update(name='=HYPERLINK("http://evil.example")')
    text = taken(admin, "quota")
    [row] = csv.DictReader(io.StringIO(text))
    assert row["name"].startswith("'=")
    confirmed_or_same = shown(admin, "quota", text.replace(",8,", ",9,"))
    confirmed(admin, "quota", confirmed_or_same)
    assert Quota.objects.get().name == '=HYPERLINK("http://evil.example")'
    assert Quota.objects.get().gpus == 9


def test_json_has_the_rows(admin: Client) -> None:
    [row] = json.loads(taken(admin, "quota", "json"))
    assert (row["workspace"], row["slug"], str(row["gpus"])) == ("vision", "all", "8")


def test_that_a_table_was_taken_is_in_the_trail(admin: Client) -> None:
    taken(admin, "membership")
    entry = AuditEntry.objects.filter(action="export").first()
    assert entry is not None
    assert (entry.actor_name, entry.details) == ("root", {"what": "Membership"})


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("page", ["import", "export"])
def test_the_pages_are_for_admins(admin: Client, table: str, page: str) -> None:
    address = f"/admin/quotas/{table}/{page}/"
    answer = admin.get(address)
    assert answer.status_code == 200
    assert "<style" not in answer.content.decode()
    member = User.objects.get(username="alice")
    make_membership(member, make_workspace())
    admin.force_login(member)
    assert admin.get(address, follow=True).status_code == 403
    User.objects.filter(pk=member.pk).update(is_staff=True)
    assert admin.get(address, follow=True).status_code == 403


def test_what_is_wrong_is_told_without_the_insides_of_the_console(admin: Client) -> None:
    page = shown(admin, "spec", "colour\nred\n").content.decode()
    assert "import_id_fields" in page
    assert "Traceback" not in page


def test_a_quotas_kind_comes_and_goes_in_tables_and_is_in_the_trail(admin: Client) -> None:
    text = "workspace,cluster,slug,name,kind\nvision,local,all,All,lingjun\n"
    assert confirmed(admin, "quota", shown(admin, "quota", text)).status_code == 302
    assert Quota.objects.get(slug="all").kind == "lingjun"
    assert AuditEntry.objects.filter(action="update").latest("pk").changes["kind"] == ["general", "lingjun"]
    rows = list(csv.DictReader(io.StringIO(taken(admin, "quota"))))
    assert [row["kind"] for row in rows] == ["lingjun"]


def test_a_kind_that_there_is_not_is_refused(admin: Client) -> None:
    answer = shown(admin, "quota", "workspace,cluster,slug,name,kind\nvision,local,all,All,quantum\n")
    assert "quantum" in answer.content.decode()
    assert Quota.objects.get(slug="all").kind == "general"
