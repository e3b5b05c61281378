"""site.yaml and tables as CSV in the admin: shown first, checked as by hand, all or nothing, no formulas."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from console.site_yaml.export import export
from console.site_yaml.tables import TABLES
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import (
    AuditEntry,
    GpuType,
    Membership,
    Node,
    PriceSpan,
    Quota,
    Spec,
    SpotPrice,
    User,
    Workspace,
)
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import make_cluster, make_quota, make_user, make_workspace

SITE = "/admin/tables/"


@pytest.fixture
def admin(client: Client, db: None) -> Client:
    make_quota(make_workspace("vision"), make_cluster("local"), "all", name="All", gpus=8)
    make_user("alice")
    client.force_login(make_user("root", admin=True))
    return client


def url(table: str) -> str:
    return f"{SITE}{table}/" if table else SITE


def shown(admin: Client, table: str, text: str) -> Any:
    """What the page says of a file."""
    file = SimpleUploadedFile("table.csv", text.encode())
    return admin.post(url(table), {"file": file, "text": ""})


def confirmed(admin: Client, table: str, answer: Any, **more: str) -> Any:
    """The answer to the page's button that does it, as its form sends it."""
    page = answer.content.decode()
    digest = re.search(r'name="shown" value="(\w+)"', page)
    text = re.search(r"<textarea[^>]*>\n(.*)</textarea>", page, re.DOTALL)
    assert digest is not None
    assert text is not None
    fields = {"shown": digest[1], "text": html.unescape(text[1]), "apply": "yes"}
    return admin.post(url(table), {**fields, **more})


def imported(admin: Client, table: str, text: str) -> None:
    assert confirmed(admin, table, shown(admin, table, text)).status_code == 302


def faults(answer: Any) -> list[str]:
    assert answer.status_code == 422
    return [str(fault) for fault in answer.context["faults"]]


def downloaded(admin: Client, table: str, query: str = "") -> str:
    """The table as a file."""
    answer = admin.get(f"{url(table)}download/{query}")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"].startswith("attachment")
    return str(answer.content.decode())


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_table_file_is_previewed_before_import(admin: Client) -> None:
    text = "workspace,cluster,slug,name,part_of,gpus\nvision,local,train,Training,vision/all,4\n"
    answer = shown(admin, "quota", text)
    assert "+ /workspaces/vision/quotas/local/train" in answer.content.decode()
    assert not Quota.objects.filter(slug="train").exists()
    assert not AuditEntry.objects.filter(object_repr="Training").exists()
    assert confirmed(admin, "quota", answer).status_code == 302
    quota = Quota.objects.get(slug="train")
    assert (quota.gpus, quota.parent and quota.parent.slug) == (4, "all")
    entry = AuditEntry.objects.filter(content_type__model="quota", action="create").first()
    assert entry is not None
    assert (entry.actor_name, entry.way, entry.object_repr) == ("root", "admin", "Training")
    applied = AuditEntry.objects.get(action="apply")
    assert (applied.actor_name, applied.object_repr) == ("root", "quota.csv")


def test_pasted_table_is_imported_like_a_file(admin: Client) -> None:
    text = "workspace,user,role\r\nvision,alice,operator\r\n"
    answer = admin.post(url("membership"), {"text": text})
    assert confirmed(admin, "membership", answer).status_code == 302
    assert Membership.objects.get().role == "operator"


def test_table_import_refuses_content_different_from_the_preview(admin: Client) -> None:
    answer = shown(admin, "membership", "workspace,user,role\nvision,alice,viewer\n")
    other = "workspace,user,role\nvision,alice,admin\n"
    refused = confirmed(admin, "membership", answer, text=other)
    assert refused.status_code == 409
    assert "Nothing was changed: the data has changed since the preview." in refused.content.decode()
    assert not Membership.objects.exists()
    assert confirmed(admin, "membership", refused).status_code == 302
    assert Membership.objects.get().role == "admin"


def test_site_yaml_is_previewed_and_applied_on_the_same_page(admin: Client) -> None:
    text = "version: 1\nworkspaces:\n  speech: {members: {alice: admin}}\n"
    answer = shown(admin, "", text)
    assert "+ /workspaces/speech/members/alice" in answer.content.decode()
    assert not Workspace.objects.filter(slug="speech").exists()
    assert confirmed(admin, "", answer).status_code == 302
    assert Membership.objects.get().workspace.slug == "speech"
    assert AuditEntry.objects.get(action="apply").actor_name == "root"
    assert downloaded(admin, "") == export()
    assert "No changes: everything matches the file." in shown(admin, "", export()).content.decode()
    assert faults(shown(admin, "", "version: 1\nworkspace: {}\n")) == ["2:1 /workspace: Unknown key."]


@pytest.mark.parametrize(
    ("table", "text", "told"),
    [
        (
            "quota",
            "workspace,cluster,slug,name,part_of,gpus\nvision,local,t,T,vision/all,9\n",
            "2:3 /workspaces/vision/quotas/local/t: Limit of All exceeded: 8 available, but its child quotas",
        ),
        (
            "quota",
            "workspace,cluster,slug,name\nnowhere,local,t,T\n",
            "2:1 /workspaces/nowhere: Workspace not found.",
        ),
        (
            "quota",
            "workspace,cluster,slug,name\nvision,nowhere,t,T\n",
            "2:2 /workspaces/vision/quotas/nowhere: Cluster not found.",
        ),
        (
            "quota",
            "workspace,cluster,slug,name,part_of\nvision,local,t,T,vision/none\n",
            "2:5 /workspaces/vision/quotas/local/t/part_of: “vision/none” not found.",
        ),
        (
            "quota",
            "workspace,cluster,slug,name,gpus\nvision,local,t,T,-1\n",
            "2:5 /workspaces/vision/quotas/local/t/gpus: Too small.",
        ),
        (
            "quota",
            "workspace,cluster,slug,person.gpus\nvision,local,t,many\n",
            "2:4 /workspaces/vision/quotas/local/t/person/gpus: Wrong type",
        ),
        (
            "membership",
            "workspace,user,role\nvision,nobody,admin\n",
            "2:2 /workspaces/vision/members/nobody: User not found.",
        ),
        (
            "membership",
            "role,workspace,user\nking,vision,alice\n",
            "2:1 /workspaces/vision/members/alice: Must be one of",
        ),
        (
            "membership",
            "workspace,user,role\nvision,alice,admin\nvision,alice,viewer\n",
            "3:1 /: Duplicate name.",
        ),
        (
            "node",
            "cluster,name,state\nlocal,n9,cordoned\n",
            "2:2 /clusters/local/nodes/n9: Node not found in the cluster.",
        ),
        ("user", "user,unix_name\ncarol,root\n", "2:2 /people/carol/unix_name: root can't be used as"),
        (
            "spec",
            'name,cluster,workspace,cores,memory_gib,gpus\ns,,,1,1,"{""A"": 1, ""B"": 2}"\n',
            "2:6 /specs/0/gpus: ",
        ),
        ("spec", "name,cluster,workspace,cores\ns,,,1\n", "2:1 /specs/0/memory_gib: Required."),
        (
            "spec",
            "name,cluster,workspace,cores,memory_gib\ns,,vision,1,1,A100\n",
            "2:6 /: Unknown key.",
        ),
        ("spec", "name,cluster,workspace,colour\n", "1:4 /colour: Unknown key."),
        ("spotprice", "cluster,gpu_type\n", "1:1 /from_hour: Required."),
        ("gputype", f"name,aliases\nA100,{'a' * 200_000}\n", "field larger than field limit"),
        ("gputype", f"name,aliases\nA100,{'a' * 2_000_000}\n", "1:1 /: "),
    ],
)
def test_table_error_names_line_and_column_and_imports_nothing(
    admin: Client, table: str, text: str, told: str
) -> None:
    before = (Quota.objects.count(), Membership.objects.count(), Spec.objects.count())
    answer = shown(admin, table, text)
    assert any(told in fault for fault in faults(answer)), faults(answer)
    assert 'name="shown"' not in answer.content.decode()
    assert (Quota.objects.count(), Membership.objects.count(), Spec.objects.count()) == before


def test_table_import_shows_all_errors_at_once(admin: Client) -> None:
    rows = ('vision,"no\nbody",admin,', "nowhere,alice,admin,", "", "vision,alice,king,red")
    text = "\n".join(("workspace,user,role,colour", *rows))
    first, second, third = faults(shown(admin, "membership", text))
    assert first == "1:4 /colour: Unknown key."
    assert second == "4:1 /workspaces/nowhere: Workspace not found."
    assert third.startswith("6:3 /workspaces/vision/members/alice: Must be one of: 'viewer'")
    text = "workspace,user,role\nvision,bobby,admin\nvision,alice,admin\nvision,carol,viewer\n"
    assert [fault[:3] for fault in faults(shown(admin, "membership", text))] == ["2:2", "4:2"]
    assert not Membership.objects.exists()


def test_limit_below_usage_requires_explicit_confirmation(admin: Client) -> None:
    quota = Quota.objects.get()
    each = Amounts(1000, 1024, {"A100": 4})
    owner = User.objects.get(username="alice")
    request = ledger.ask("h", quota=quota, owner=owner, parts=[Part(1, each)], priority=1, declared_s=None)
    ledger.reserve(request, [])
    answer = shown(admin, "quota", "workspace,cluster,slug,gpus\nvision,local,all,2\n")
    assert "1 job uses 4 GPUs, above the limit of 2." in answer.content.decode()
    assert confirmed(admin, "quota", answer).status_code == 409
    assert Quota.objects.get().gpus == 8
    assert confirmed(admin, "quota", answer, drain="yes").status_code == 302
    assert Quota.objects.get().gpus == 2
    answer = shown(admin, "quota", "workspace,cluster,slug,jobs\nvision,local,all,0\n")
    assert "1 concurrent job, above the limit of 0." in answer.content.decode()


def test_each_table_kind_is_imported(admin: Client) -> None:
    Node.objects.create(cluster=Quota.objects.get().cluster, name="n1")
    for table, text in (
        ("user", "user,unix_name\nalice,asmith\n"),
        ("membership", "workspace,user,role\nvision,alice,operator\n"),
        ("node", "cluster,name,state,why\nlocal,n1,cordoned,new disks\n"),
        ("gputype", 'name,aliases\nA100,"[""NVIDIA-A100""]"\n'),
        (
            "spec",
            'name,cluster,workspace,cores,memory_gib,gpus,offered\ns,,vision,8,16,"{""A100"": 1}",FALSE\n',
        ),
        ("spotprice", "cluster,gpu_type,from_hour,until_hour,market,price\nlocal,A100,,,9,0.5\n"),
    ):
        imported(admin, table, text)
    assert User.objects.get(username="alice").unix_name == "asmith"
    assert Membership.objects.get().role == "operator"
    node = Node.objects.get()
    assert (node.state, node.state_why, str(node.state_by)) == ("cordoned", "new disks", "root")
    assert GpuType.objects.get().aliases == ["NVIDIA-A100"]
    spec = Spec.objects.get()
    assert (spec.cluster, spec.workspace and spec.workspace.slug, spec.gpus) == (None, "vision", {"A100": 1})
    assert (spec.cpu_milli, spec.memory_mib, spec.offered) == (8000, 16_384, False)
    assert SpotPrice.objects.get().price_micro == 500_000
    assert PriceSpan.objects.count() == 2


def test_missing_column_keeps_values_and_empty_cell_clears_them(admin: Client) -> None:
    quota = Quota.objects.get()
    Quota.objects.update(cpu_milli=7500, gpus_by_type={"A100": 4}, idle_warn_minutes=30, idle_percent=9)
    quota.idle_exempt_people.add(User.objects.get(username="alice"))
    make_quota(quota.workspace, quota.cluster, "t", parent=quota, gpus=2)
    imported(admin, "quota", "workspace,cluster,slug,name\nvision,local,all,Everything\nvision,local,t,T\n")
    changed = Quota.objects.get(slug="all")
    assert (changed.name, changed.gpus, changed.cpu_milli) == ("Everything", 8, 7500)
    assert (changed.gpus_by_type, changed.idle_warn_minutes, changed.idle_percent) == ({"A100": 4}, 30, 9)
    assert [person.username for person in changed.idle_exempt_people.all()] == ["alice"]
    assert Quota.objects.get(slug="t").parent == changed
    header = "workspace,cluster,slug,gpus,cores,idle.warn_minutes,idle.exempt_people,part_of\n"
    imported(admin, "quota", f"{header}vision,local,all,,,,,\nvision,local,t,2,,,,\n")
    changed = Quota.objects.get(slug="all")
    assert (changed.gpus, changed.cpu_milli, changed.idle_warn_minutes) == (None, None, None)
    assert (changed.gpus_by_type, changed.idle_percent) == ({"A100": 4}, 9)
    assert not changed.idle_exempt_people.exists()
    assert Quota.objects.get(slug="t").parent is None


def test_gpu_type_alias_is_replaced_by_its_name(admin: Client) -> None:
    GpuType.objects.create(name="A100", aliases=["nvidia-a100"])
    imported(admin, "quota", 'workspace,cluster,slug,gpus_by_type\nvision,local,all,"{""NVIDIA-A100"": 4}"\n')
    assert Quota.objects.get().gpus_by_type == {"A100": 4}


def test_quota_may_have_parent_in_another_workspace(admin: Client) -> None:
    make_workspace("guests")
    imported(admin, "quota", "workspace,cluster,slug,part_of\nguests,local,guest,vision/all\n")
    above = Quota.objects.get(slug="guest").parent
    assert above is not None
    assert above.slug == "all"
    assert "part_of: vision/all" in export()
    text = "workspace,cluster,slug,part_of\nvision,local,all,guests/guest\n"
    assert "A quota can't be its own parent." in faults(shown(admin, "quota", text))[0]


def test_idle_exemptions_round_trip_through_site_yaml(admin: Client) -> None:
    idle = "{warn_minutes: 30, release_minutes: 60, exempt_people: [alice], exempt_labels: {keep: yes}}"
    text = f"version: 1\nworkspaces: {{vision: {{quotas: {{local: {{all: {{gpus: 8, idle: {idle}}}}}}}}}}}\n"
    text = text.replace("keep: yes", 'keep: "yes"')
    imported(admin, "", text)
    quota = Quota.objects.get()
    assert (quota.idle_warn_minutes, quota.idle_release_minutes) == (30, 60)
    assert quota.idle_exempt_labels == {"keep": "yes"}
    assert "exempt_people:\n" in export()
    assert "No changes: everything matches the file." in shown(admin, "", export()).content.decode()
    assert "“bobby” not found." in faults(shown(admin, "", text.replace("alice", "bobby")))[0]
    wrong = faults(shown(admin, "", text.replace("release_minutes: 60", "release_minutes: 6")))
    assert "nothing is ended without a warning" in wrong[0]


@pytest.mark.parametrize("table", TABLES)
def test_exported_tables_import_without_changes(admin: Client, table: str) -> None:
    quota = Quota.objects.get()
    make_quota(quota.workspace, quota.cluster, "t", parent=quota, gpus=2, cpu_milli=7500)
    Membership.objects.create(workspace=quota.workspace, user=User.objects.get(username="alice"))
    make_user("bob", unix_name="bjones", unix_name_from="ldap")
    Node.objects.create(cluster=quota.cluster, name="n1", state="down", state_why="gone")
    GpuType.objects.create(name="A100", aliases=["NVIDIA-A100"])
    Spec.objects.create(name="s", cpu_milli=1500, memory_mib=1, gpus={"A100": 1}, price_micro=1)
    SpotPrice.objects.create(cluster=quota.cluster, gpu_type="A100", market_micro=9, price_micro=5)
    text = downloaded(admin, table)
    assert len(rows_of(text)) == TABLES[table].model._default_manager.count() > 0
    assert "No changes: everything matches the file." in shown(admin, table, text).content.decode()
    assert User.objects.get(username="bob").unix_name_from == "ldap"


def test_download_contains_only_rows_of_list_filter(admin: Client) -> None:
    make_quota(Quota.objects.get().workspace, make_cluster("north"), "other")
    query = f"?cluster__id__exact={Quota.objects.get(slug='other').cluster.pk}"
    page = admin.get(f"/admin/quotas/quota/{query}").content.decode()
    assert f'href="{url("quota")}"' in page
    assert f'href="{url("quota")}download/{query}"' in page
    text = downloaded(admin, "quota", query)
    assert [row["slug"] for row in rows_of(text)] == ["other"]
    assert admin.get(f"{url('quota')}download/?cluster__id__exact=x").status_code == 400


def test_formula_cell_is_escaped_in_download_and_restored_on_import(admin: Client) -> None:
    Quota.objects.update(name='=HYPERLINK("http://evil.example")')
    text = downloaded(admin, "quota")
    [row] = rows_of(text)
    assert row["name"].startswith("'=")
    imported(admin, "quota", text.replace(",8,", ",9,"))
    assert Quota.objects.get().name == '=HYPERLINK("http://evil.example")'
    assert Quota.objects.get().gpus == 9


def test_download_query_count_stays_fixed(admin: Client, django_assert_max_num_queries: Any) -> None:
    quota = Quota.objects.get()
    for number in range(20):
        make_quota(make_workspace(f"w{number}"), quota.cluster, "q", parent=quota)
    with django_assert_max_num_queries(30):
        assert len(rows_of(downloaded(admin, "quota"))) == 21


def test_download_is_recorded_in_audit_log(admin: Client) -> None:
    downloaded(admin, "membership")
    entry = AuditEntry.objects.filter(action="export").first()
    assert entry is not None
    assert (entry.actor_name, entry.details) == ("root", {"what": "Membership"})


@pytest.mark.parametrize("table", ["", *TABLES])
def test_table_page_lists_columns_and_is_linked_from_admin_list(admin: Client, table: str) -> None:
    page = admin.get(url(table)).content.decode()
    assert "<style" not in page
    if table:
        assert f"<code>{', '.join(TABLES[table].columns)}</code>" in page
        assert f'href="{url(table)}"' in admin.get(f"/admin/quotas/{table}/").content.decode()
    assert admin.get(url("nothing")).status_code == 404


@pytest.mark.parametrize("table", ["", *TABLES])
@pytest.mark.parametrize("who", OTHERS)
def test_table_pages_refuse_non_admins(quota: Quota, table: str, who: str) -> None:
    client = client_of(who, quota)
    for answer in (client.get(url(table)), client.post(url(table)), client.get(f"{url(table)}download/")):
        assert answer.status_code in (302, 403)
        assert "next=" in answer.headers.get("Location", "next=")


def test_table_errors_contain_no_console_internals(admin: Client) -> None:
    answer = shown(admin, "spec", "colour\nred\n")
    assert faults(answer) == [
        "1:1 /colour: Unknown key.",
        "1:1 /name: Required.",
        "1:1 /cluster: Required.",
        "1:1 /workspace: Required.",
    ]
    assert "Traceback" not in answer.content.decode()


def test_quota_kind_round_trips_through_tables_and_is_audited(admin: Client) -> None:
    imported(admin, "quota", "workspace,cluster,slug,name,kind\nvision,local,all,All,lingjun\n")
    assert Quota.objects.get(slug="all").kind == "lingjun"
    assert AuditEntry.objects.filter(action="update").latest("pk").changes["kind"] == ["general", "lingjun"]
    assert [row["kind"] for row in rows_of(downloaded(admin, "quota"))] == ["lingjun"]


def test_unknown_quota_kind_is_refused(admin: Client) -> None:
    answer = shown(admin, "quota", "workspace,cluster,slug,name,kind\nvision,local,all,All,quantum\n")
    assert faults(answer)[0].startswith("2:5 /workspaces/vision/quotas/local/all/kind: Must be one of")
    assert Quota.objects.get(slug="all").kind == "general"


def test_people_are_added_by_a_table_and_get_their_links_once(admin: Client) -> None:
    text = "user,email,workspaces\nann,ann@example.org,vision: operator\nalice,,vision: viewer\n"
    answer = shown(admin, "user", text)
    page = answer.content.decode()
    assert "First password of 1 new user" in page
    assert 'value="show"' in page
    assert 'value="mail"' not in page, "no mail server is set"
    assert not User.objects.filter(username="ann").exists()
    done = confirmed(admin, "user", answer, links="show")
    assert "no-store" in done.headers["Cache-Control"]
    assert re.search(r"ann <code>http\S+/sign-in/\S+</code>", done.content.decode())
    assert dict(Membership.objects.values_list("user__username", "role")) == {
        "ann": "operator",
        "alice": "viewer",
    }
    rows = {row["user"]: row for row in rows_of(downloaded(admin, "user"))}
    assert (rows["ann"]["email"], rows["ann"]["workspaces"]) == ("ann@example.org", "vision: operator")
    imported(admin, "user", "user,email\nann,\n")
    assert User.objects.get(username="ann").email == ""


def test_tables_take_types_as_pages_show_them_and_children_before_parents(admin: Client) -> None:
    text = (
        "workspace,cluster,slug,part_of,gpus_by_type,cores\n"
        'vision,local,leaf,vision/mid,"A100: 2",\n'
        'vision,local,mid,vision/all,"A100: 4, V100: 1",7.5\n'
    )
    imported(admin, "quota", text)
    leaf, mid = Quota.objects.get(slug="leaf"), Quota.objects.get(slug="mid")
    assert leaf.parent == mid
    assert (mid.gpus_by_type, mid.cpu_milli) == ({"A100": 4, "V100": 1}, 7500)
    rows = {row["slug"]: row for row in rows_of(downloaded(admin, "quota"))}
    assert (rows["mid"]["gpus_by_type"], rows["mid"]["cores"]) == ("A100: 4, V100: 1", "7.5")
    wrong = shown(admin, "quota", "workspace,cluster,slug,gpus_by_type\nvision,local,mid,A100: many\n")
    assert faults(wrong) == [
        "2:4 /workspaces/vision/quotas/local/mid/gpus_by_type: Wrong type: dict expected."
    ]
    loop = "workspace,cluster,slug,part_of\nvision,local,a,vision/b\nvision,local,b,vision/a\n"
    assert len(faults(shown(admin, "quota", loop))) == 2
