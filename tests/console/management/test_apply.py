"""`manage.py apply` and `site_export`: all of it or nothing, twice the same, every problem with its place."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from console.home import CHECKOUT
from console.site_yaml import shape
from console.site_yaml.export import export
from console.site_yaml.parser import read
from console.site_yaml.shape import Site, json_schema
from jobs.models import LogSink
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.models import (
    AuditEntry,
    Cluster,
    GpuType,
    Kind,
    Membership,
    Node,
    NodeState,
    Period,
    PriceSpan,
    Quota,
    Role,
    Source,
    Spec,
    SpotPrice,
    User,
    Workspace,
)
from tests.factories import make_cluster, make_membership, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db

WHOLE = """\
version: 1
gpu_types:
  A100: [NVIDIA-A100-SXM4-80GB]
clusters:
  local:
    nodes:
      n1: {state: draining, why: new disks}
    spot_prices:
      - {gpu_type: A100, market: 3, price: 1.25}
      - {gpu_type: A100, market: 3, price: 0.5, from_hour: 22, until_hour: 6}
specs:
  - {name: ecs.g1, cores: 8, memory_gib: 64, gpus: {A100: 1}, price: 3.5}
  - {name: ecs.g1, workspace: vision, cluster: local, cores: 7.5, memory_gib: 60, gpus: {A100: 1}, price: 3}
workspaces:
  vision:
    name: Vision group
    members:
      alice: admin
      bob: developer
    quotas:
      local:
        all:
          gpus: 8
          cores: 64
          accepts_jobs: false
          quotas:
            train: {gpus: 6, person: {gpus: 4}}
            debug: {gpus: 2, gpus_by_type: {A100: 2}, memory_gib: 0.5}
"""


@pytest.fixture
def site(tmp_path: Path) -> Any:
    """A cluster with a node, two people, and a way to apply a text."""
    Node.objects.create(cluster=make_cluster("local"), name="n1", gpus={"A100": 8})
    make_user("alice")
    make_user("bob")
    path = tmp_path / "site.yaml"

    def run(text: str, *options: str) -> str:
        path.write_text(text)
        out = StringIO()
        call_command("apply", str(path), *options, stdout=out)
        return out.getvalue()

    return run


def faults(site: Any, text: str) -> list[str]:
    with pytest.raises(CommandError) as error:
        site(text)
    return [line.partition("site.yaml:")[2] for line in str(error.value).splitlines()]


def test_apply_makes_the_database_match_the_file(site: Any) -> None:
    told = site(WHOLE)
    assert "+ /workspaces/vision/members/bob" in told
    assert "changes were made." in told
    vision = Workspace.objects.get(slug="vision")
    assert vision.name == "Vision group"
    members = {row.user.username: row.role for row in Membership.objects.filter(workspace=vision)}
    assert members == {"alice": "admin", "bob": "developer"}
    quotas = {row.slug: row for row in Quota.objects.select_related("parent")}
    assert (quotas["all"].cpu_milli, quotas["all"].accepts_jobs) == (64_000, False)
    assert (quotas["train"].parent, quotas["train"].person_gpus) == (quotas["all"], 4)
    assert (quotas["debug"].memory_mib, quotas["debug"].gpus_by_type) == (512, {"A100": 2})
    node = Node.objects.get()
    assert (node.state, node.state_why) == (NodeState.DRAINING, "new disks")
    assert set(SpotPrice.objects.values_list("price_micro", "from_hour")) == {
        (1_250_000, None),
        (500_000, 22),
    }
    assert set(Spec.objects.values_list("cpu_milli", "workspace__slug")) == {(8000, None), (7500, "vision")}
    assert PriceSpan.objects.filter(ends=None).count() == 4
    assert GpuType.objects.get().aliases == ["NVIDIA-A100-SXM4-80GB"]


def test_apply_twice_changes_nothing_the_second_time(site: Any) -> None:
    site(WHOLE)
    before = AuditEntry.objects.count()
    assert site(WHOLE) == "No changes: everything matches the file.\n"
    assert AuditEntry.objects.count() == before


def test_site_export_matches_the_database(site: Any) -> None:
    site(WHOLE)
    text = export()
    assert site(text, "--diff", "--prune") == "No changes: everything matches the file.\n"
    assert "cores: 7.5" in text


def test_apply_diff_shows_changes_and_makes_none(site: Any) -> None:
    site(WHOLE)
    before = (list(Quota.objects.values()), AuditEntry.objects.count(), PriceSpan.objects.count())
    with pytest.raises(SystemExit) as end:
        site(WHOLE.replace("gpus: 6", "gpus: 5").replace("price: 3.5", "price: 4"), "--diff")
    assert end.value.code == 2
    assert (list(Quota.objects.values()), AuditEntry.objects.count(), PriceSpan.objects.count()) == before


def test_apply_prints_one_line_per_change(site: Any, capsys: pytest.CaptureFixture[str]) -> None:
    site(WHOLE)
    told = site(WHOLE.replace("gpus: 6", "gpus: 5").replace("alice: admin", "alice: viewer"))
    assert told.splitlines() == [
        "~ /workspaces/vision/members/alice: role admin → viewer",
        "~ /workspaces/vision/quotas/local/all/quotas/train: gpus 6 → 5",
        "2 changes were made.",
    ]


def test_apply_keeps_unlisted_rows_unless_pruning(site: Any) -> None:
    site(WHOLE)
    shorter = WHOLE.replace("      bob: developer\n", "").replace(
        "            debug: {gpus: 2, gpus_by_type: {A100: 2}, memory_gib: 0.5}\n", ""
    )
    shorter = shorter.replace(
        "  - {name: ecs.g1, cores: 8, memory_gib: 64, gpus: {A100: 1}, price: 3.5}\n", ""
    )
    assert site(shorter) == "No changes: everything matches the file.\n"
    told = site(shorter, "--prune")
    assert told.splitlines() == [
        "- /workspaces/vision/members/bob",
        "- /workspaces/vision/quotas/local/debug",
        "- /specs/ecs.g1",
        "3 changes were made.",
    ]
    assert Workspace.objects.filter(slug="vision").exists()


def test_apply_prune_keeps_unlisted_workspaces(site: Any) -> None:
    make_membership(make_user("carol"), make_workspace("other"))
    site(WHOLE, "--prune")
    assert Membership.objects.filter(workspace__slug="other").exists()


def test_apply_prune_refuses_to_remove_a_used_quota(site: Any) -> None:
    site(WHOLE)
    quota = Quota.objects.get(slug="debug")
    member = Membership.objects.get(user__username="bob").user
    ledger.ask("h", quota=quota, owner=member, parts=[], priority=1, declared_s=None)
    with pytest.raises(CommandError, match="Set it to accept no jobs instead"):
        site("version: 1\nworkspaces:\n  vision:\n    quotas: {}\n", "--prune")
    assert Quota.objects.count() == 3


def test_apply_lowers_parent_and_child_limits_at_once(site: Any) -> None:
    site(WHOLE)
    site(WHOLE.replace("gpus: 8", "gpus: 4").replace("gpus: 6", "gpus: 3").replace("{gpus: 2,", "{gpus: 1,"))
    assert dict(Quota.objects.values_list("slug", "gpus")) == {"all": 4, "train": 3, "debug": 1}


def test_apply_shows_all_errors_at_once_with_positions(site: Any) -> None:
    text = (
        WHOLE.replace("bob: developer", "bobby: developer").replace("n1:", "n9:").replace("train:", "local:")
    )
    text = text.replace("gpus: 8", "gpus: 7").replace(
        "      local:\n        all", "      local:\n        all"
    )
    found = faults(site, text)
    assert found == [
        "7:7 /clusters/local/nodes/n9: Node not found in the cluster.",
        "19:7 /workspaces/vision/members/bobby: User not found.",
        *(line for line in found if "/quotas/local/" in line),
    ]
    assert any("exceeded: 7 available" in line for line in found)
    assert not Workspace.objects.filter(slug="vision").exists()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("gpus: 8", "gpu: 8", "23:11 /workspaces/vision/quotas/local/all/gpu: Unknown key."),
        (
            "gpus: 8",
            "gpus: many",
            "23:17 /workspaces/vision/quotas/local/all/gpus: Wrong type",
        ),
        ("gpus: 8", "gpus: -8", "23:17 /workspaces/vision/quotas/local/all/gpus: Too small."),
        ("alice: admin", "alice: king", "18:14 /workspaces/vision/members/alice: Must be one of"),
        ("version: 1", "versions: 1", "/version: Required."),
        ("version: 1", "version: [1", "2:1"),
        (
            "  vision:\n    name",
            "  vi/sion:\n    name",
            "Letters, digits, - and _ only, up to 63 characters.",
        ),
    ],
)
def test_apply_shows_schema_errors_with_positions(site: Any, old: str, new: str, told: str) -> None:
    assert any(told in line for line in faults(site, WHOLE.replace(old, new)))


def test_apply_shows_effect_on_running_jobs(site: Any) -> None:
    site(WHOLE)
    quota = Quota.objects.get(slug="train")
    each = Amounts(1000, 1024, {"A100": 5})
    owner = Membership.objects.get(user__username="bob").user
    request = ledger.ask("h", quota=quota, owner=owner, parts=[Part(1, each)], priority=1, declared_s=None)
    ledger.reserve(request, [("n1", each)])
    told = site(WHOLE.replace("gpus: 6", "gpus: 4"))
    assert (
        "! /workspaces/vision/quotas/local/all/quotas/train: "
        "1 job uses 5 GPUs, above the limit of 4. Running jobs finish"
    ) in told


def test_apply_shows_number_of_waiting_jobs_to_start(site: Any) -> None:
    site(WHOLE.replace("state: draining, why: new disks", "state: schedulable"))
    Node.objects.update(cpu_milli=64_000, memory_mib=100_000)
    owner = Membership.objects.get(user__username="bob").user
    each = Amounts(1000, 1024, {"A100": 6})
    quota = Quota.objects.get(slug="train")
    ledger.ask("h", quota=quota, owner=owner, parts=[Part(1, each)], priority=1, declared_s=None)
    relaxed = WHOLE.replace("person: {gpus: 4}", "person: {gpus: 6}")
    told = site(relaxed.replace("state: draining, why: new disks", "state: schedulable"))
    assert "! local: of the waiting jobs, 1 would start now instead of 0" in told


def test_apply_audit_entries_name_file_and_revision(site: Any) -> None:
    site(WHOLE, "--revision", "4f2a91c")
    assert {row.actor_name for row in AuditEntry.objects.filter(way="command")} == {"site.yaml@4f2a91c"}
    assert AuditEntry.objects.get(action="apply").details["changes"] > 10
    entry = AuditEntry.objects.get(content_type__model="node")
    assert entry.changes["state"] == ["schedulable", "draining"]


def test_quota_below_another_workspace_keeps_its_parent(site: Any) -> None:
    site(WHOLE)
    top = Quota.objects.get(slug="all")
    guests = make_workspace("guests")
    guest = make_quota(guests, top.cluster, "guest", parent=top)
    text = export()
    assert site(text, "--diff", "--prune") == "No changes: everything matches the file.\n"
    guest.refresh_from_db()
    assert guest.parent == top


def test_apply_with_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("apply", str(tmp_path / "none.yaml"))


def test_site_schema_is_published_and_matches_row_names(client: Client) -> None:
    answer = client.get("/schemas/site.json")
    assert answer.headers["Content-Type"] == "application/schema+json"
    assert answer.json() == json.loads(json.dumps(json_schema()))
    out = StringIO()
    call_command("site_export", "--schema", stdout=out)
    assert json.loads(out.getvalue()) == answer.json()
    assert set(get_args(shape.RoleName)) == set(Role.values)
    assert set(get_args(shape.SourceName)) == set(Source.values)
    assert set(get_args(shape.KindName)) == set(Kind.values)
    assert set(get_args(shape.PeriodName)) == set(Period.values)
    assert set(get_args(shape.StateName)) == set(NodeState.values) - {"down"}
    assert Site.model_validate({"version": 1}).workspaces == {}


def test_site_export_contains_no_secret() -> None:
    make_cluster("remote", config={"access_key_secret": "c4n4ry"})
    out = StringIO()
    call_command("site_export", stdout=out)
    assert "remote" in out.getvalue()
    assert "c4n4ry" not in out.getvalue()


def test_cluster_without_region_in_file_keeps_its_region(site: Any) -> None:
    site("version: 1\nclusters:\n  local: {region: cn-wulanchabu}\n")
    site("version: 1\nclusters:\n  local: {nodes: {n1: {state: cordoned}}}\n")
    assert Node.objects.get().cluster.region == "cn-wulanchabu"
    assert "region: cn-wulanchabu" in export()


def test_cluster_settings_are_checked_by_the_backend(site: Any) -> None:
    config = {"code_from": ["https://*"], "token": "abc"}
    Cluster.objects.filter(slug="local").update(config={"prepare_s": 60})
    with pytest.raises(CommandError) as refused:
        site(f"version: 1\nclusters:\n  local: {{settings: {json.dumps(config)}}}\n")
    assert "/clusters/local/settings/token: Unknown setting." in str(refused.value)
    text = "version: 1\nclusters:\n  local: {settings: {code_from: ['https://*']}}\n"
    assert "~ /clusters/local/settings" in site(text)
    assert Cluster.objects.get(slug="local").config == {"code_from": ["https://*"]}
    assert site(text) == "No changes: everything matches the file.\n"
    assert "code_from" not in export()


def test_quota_kind_is_not_inherited_from_parent(site: Any) -> None:
    text = WHOLE.replace("          gpus: 8\n", "          gpus: 8\n          kind: lingjun\n")
    site(text)
    assert dict(Quota.objects.values_list("slug", "kind"))["all"] == Kind.LINGJUN
    assert dict(Quota.objects.values_list("slug", "kind"))["train"] == Kind.GENERAL
    assert site(export()) == "No changes: everything matches the file.\n"


def test_egress_policy_is_applied_exported_and_kept_where_omitted(site: Any) -> None:
    for said, policy in [
        ("none", []),
        ("[192.0.2.0/24:443, 198.51.100.7]", ["192.0.2.0/24:443", "198.51.100.7/32"]),
        ("internet", ["internet"]),
        ("[]", []),
    ]:
        text = f"version: 1\nworkspaces:\n  vision: {{egress: {said}}}\n"
        site(text)
        assert Workspace.objects.get(slug="vision").egress == policy
        exported = export()
        assert ("egress:" in exported) is (policy != ["internet"])
        assert "No changes" in site(exported)
    site("version: 1\nworkspaces:\n  vision: {name: Vision}\n")
    assert Workspace.objects.get(slug="vision").egress == []
    wrong = "version: 1\nworkspaces:\n  vision: {egress: [db.example.org, 127.0.0.1]}\n"
    for told, line in zip(faults(site, wrong), ("db.example.org: Names", "127.0.0.1: Loopback"), strict=True):
        assert told.startswith("3:12")
        assert line in told


def test_unix_names_are_applied_and_exported(tmp_path: Path) -> None:
    make_user("alice", unix_name="earlier", unix_name_from="corp")
    make_user("bob", unix_name="bjones", unix_name_from="ldap")
    file = tmp_path / "site.yaml"
    file.write_text("version: 1\npeople:\n  alice: {unix_name: asmith}\n")
    call_command("apply", str(file), stdout=StringIO())
    alice = User.objects.get(username="alice")
    assert (alice.unix_name, alice.unix_name_from) == ("asmith", "")
    assert "alice:\n    unix_name: asmith" in export()
    assert "bjones" not in export(), "the directory says it"


@pytest.mark.parametrize("line", ["alice: {unix_name: root}", "carol: {unix_name: root}"])
def test_invalid_unix_names_are_refused(tmp_path: Path, line: str) -> None:
    make_user("alice")
    file = tmp_path / "site.yaml"
    file.write_text(f"version: 1\npeople:\n  {line}\n")
    with pytest.raises(CommandError):
        call_command("apply", str(file), stdout=StringIO(), stderr=StringIO())
    assert User.objects.get(username="alice").unix_name == ""


def test_omitted_name_and_description_are_unchanged(site: Any) -> None:
    quotas = "quotas: {local: {all: {gpus: 8}}}"
    named = quotas.replace("gpus: 8", "gpus: 8, name: All of it")
    site(f"version: 1\nworkspaces:\n  vision: {{name: Vision Lab, description: Eyes, {named}}}\n")
    told = site(f"version: 1\nworkspaces:\n  vision: {{{quotas}}}\n")
    workspace = Workspace.objects.get(slug="vision")
    assert (workspace.name, workspace.description) == ("Vision Lab", "Eyes")
    assert Quota.objects.get(slug="all").name == "All of it"
    assert "Vision" not in told


SINKS = """\
version: 1
workspaces:
  vision:
    log_sinks:
      loki: {url: %s, auth: bearer, labels: {site: lab}}
      archive: {url: "https://logs.example.org/in", format: ndjson, enabled: false}
"""
LOKI = "https://loki.example.org/loki/api/v1/push"


def test_log_sinks_are_applied_exported_and_kept_where_omitted(site: Any) -> None:
    site(SINKS % LOKI)
    sink = LogSink.objects.get(name="loki")
    assert (sink.url, sink.format, sink.labels, sink.enabled) == (LOKI, "loki", {"site": "lab"}, True)
    LogSink.objects.filter(pk=sink.pk).update(failures=3, error="timeout")
    exported = export()
    assert "archive:\n        url: https://logs.example.org/in" in exported
    assert "No changes" in site(exported)
    assert LogSink.objects.get(name="loki").failures == 3
    site("version: 1\nworkspaces: {vision: {}}\n", "--prune")
    assert LogSink.objects.count() == 2
    told = site("version: 1\nworkspaces: {vision: {log_sinks: {}}}\n", "--prune")
    assert "- /workspaces/vision/log_sinks/loki" in told
    assert not LogSink.objects.exists()


def test_log_sink_of_another_server_loses_its_credential(site: Any) -> None:
    site(SINKS % LOKI)
    sink = LogSink.objects.get(name="loki")
    sink.encrypt("token-of-loki")
    sink.save()
    assert "token-of-loki" not in export()
    site(SINKS % f"{LOKI}?tenant=a")
    assert LogSink.objects.get(name="loki").credential() == "token-of-loki"
    site(SINKS % "https://other.example.org/loki/api/v1/push")
    assert not LogSink.objects.get(name="loki").ciphertext


def test_log_sink_with_wrong_values_is_refused_with_its_position(site: Any) -> None:
    assert faults(site, SINKS % "http://loki.example.org")[0].startswith("5:14 ")
    reserved = (SINKS % LOKI).replace("site: lab", "job: x")
    assert "job can't be a label" in faults(site, reserved)[0]
    assert not LogSink.objects.exists()


def test_example_of_the_documentation_is_read_and_has_workspaces() -> None:
    site = read((CHECKOUT / "docs" / "site-example.yaml").read_text(encoding="utf-8")).site
    assert list(site.workspaces) == ["vision"]
